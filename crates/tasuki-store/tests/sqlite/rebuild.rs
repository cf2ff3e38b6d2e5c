// SPDX-License-Identifier: Apache-2.0
//! Rows follow from events alone: thrown away and made anew, they are the same.

use std::path::Path;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngSeed, TestRunner};
use rusqlite::types::ValueRef;
use tasuki_core::commands::Proof;
use tasuki_core::{Event, HandoffId};
use tasuki_store::{Error, TaskFilter, maintenance};

use crate::random::{op, pause_ms};
use crate::stage::Stage;
use crate::support::Stage as Model;
use crate::{database, open};

/// A long random story; the model chooses what the wishes are about.
async fn play(stage: &Stage, steps: usize) {
    let mut model = Model::new();
    let mut claims: Vec<(HandoffId, Proof)> = Vec::new();
    let config = Config { rng_seed: RngSeed::Fixed(7), ..Config::default() };
    let mut runner = TestRunner::new(config);
    for _ in 0..steps {
        let (op, pause) = (op(), pause_ms()).new_tree(&mut runner).unwrap().current();
        model.wait(pause);
        stage.clock.advance_ms(pause);
        let Some(command) = op.command(&mut model, &claims) else { continue };
        let seen = model.world.log.len();
        let expected = model.run(command.clone());
        match stage.run(command).await {
            Ok(done) => assert_eq!(done.outcome, expected.unwrap()),
            Err(Error::Refused(refusal)) => assert_eq!(refusal, expected.unwrap_err()),
            Err(error) => panic!("{error}"),
        }
        for sealed in &model.world.log[seen..] {
            if let (Some(id), Event::Claimed(claimed)) =
                (sealed.record.handoff_id, &sealed.record.event)
            {
                claims.push((id, Proof { claim_id: claimed.claim_id, fence: claimed.fence }));
            }
        }
    }
}

/// Every row of a table as text. Leases are left out: heartbeats move them without an event.
fn rows(dir: &Path, table: &str) -> Vec<String> {
    let db = database(dir);
    // The sums are over the leases too.
    let part = if table == "meta" { "WHERE name <> 'row_sums'" } else { "" };
    let mut all = db.prepare(&format!("SELECT * FROM {table} {part} ORDER BY 1, 2")).unwrap();
    let columns = all.column_count();
    let row = |row: &rusqlite::Row<'_>| {
        let values = (0..columns).map(|column| match row.get_ref(column).unwrap() {
            ValueRef::Text(text) if text.starts_with(b"{") => {
                let mut data: serde_json::Value = serde_json::from_slice(text).unwrap();
                if let Some(state) = data.get_mut("state").and_then(|state| state.as_object_mut()) {
                    state.remove("lease_until_ms");
                }
                data.to_string()
            }
            value => format!("{value:?}"),
        });
        Ok(values.collect::<Vec<_>>().join(" | "))
    };
    all.query_map([], row).unwrap().collect::<Result<_, _>>().unwrap()
}

const TABLES: [&str; 4] = ["task", "handoff", "idempotency", "meta"];

#[tokio::test]
async fn rebuilt_rows_are_the_rows_there_were() {
    let stage = open().await;
    play(&stage, 2500).await;
    stage.store.close().await;
    let before = TABLES.map(|table| rows(&stage.dir, table));
    let counts = before.each_ref().map(Vec::len);
    assert!(counts[0] > 100 && counts[1] > 100 && counts[2] > 3, "too little to tell: {counts:?}");
    let head = maintenance::count(&stage.dir).unwrap();

    // Nothing is taken from the rows there are.
    database(&stage.dir).execute_batch("DELETE FROM handoff; DELETE FROM idempotency").unwrap();
    let mut told = 0;
    let last = maintenance::rebuild(&stage.dir, &*stage.clock, &mut |done| told = done);
    assert_eq!((last.unwrap(), told), (head, head));
    for (table, before) in TABLES.iter().zip(&before) {
        assert_eq!(rows(&stage.dir, table), *before, "{table}");
    }
    assert_eq!(maintenance::integrity(&stage.dir).unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn work_goes_on_after_a_rebuild() {
    let stage = open().await;
    let (first, second) = (stage.offered().await, stage.offered().await);
    let proof = stage.claim(first, "coder").await;
    stage.store.close().await;
    maintenance::rebuild(&stage.dir, &*stage.clock, &mut |_| ()).unwrap();
    let stage = stage.go_on_in(&stage.dir).await;
    stage.act(first, proof, crate::support::complete("done")).await.unwrap();
    assert_eq!(stage.claim_next("coder", 10).await, [second]);
    let listed = stage.store.list_tasks(TaskFilter { max: 10, ..Default::default() }).await;
    assert_eq!(listed.unwrap().len(), 2);
    stage.verified().await;
}

#[tokio::test]
async fn an_interrupted_rebuild_is_finished_by_the_next_start() {
    let stage = open().await;
    let id = stage.offered().await;
    stage.kill(id).await;
    stage.store.close().await;
    // The state it leaves when it is killed after the rows were thrown away.
    database(&stage.dir)
        .execute_batch(
            "DELETE FROM task; DELETE FROM handoff; DELETE FROM idempotency; \
             DELETE FROM meta WHERE name = 'row_sums'; \
             UPDATE meta SET value = 0 WHERE name = 'projected'",
        )
        .unwrap();
    let stage = stage.go_on_in(&stage.dir).await;
    assert_eq!(stage.state(id).await, "dead_lettered");
    stage.redrive(id).await.unwrap();
    stage.verified().await;
}

// SPDX-License-Identifier: Apache-2.0
//! Rows that decide are what the log says, or the broker does not serve on them.

use rusqlite::{Connection, params};
use tasuki_core::commands::{Command, RegistryWish};
use tasuki_core::event::Actor;
use tasuki_core::identity::SecretKey;
use tasuki_core::registry::rules::Rule;
use tasuki_core::{HandoffId, Position};
use tasuki_store::{ManualClock, OpenError, Store, maintenance};

use crate::stage::{BEGIN, Stage};
use crate::support::{agent, complete, to};
use crate::{database, open, refusal};

/// A closed store with one agent that may do nothing, work that waits, work that is held and work that
/// is done.
async fn closed() -> (Stage, HandoffId) {
    let stage = open().await;
    let key = SecretKey::from_seed([3; 32]).public();
    let wish = RegistryWish::Enroll { agent: agent("mallory"), key, rules: Some(Vec::new()) };
    stage.run(Command::registry(Actor::Broker, None, wish)).await.unwrap();
    let waits = stage.offered().await;
    let held = stage.offer_to(to("tester"), |_| {}).await;
    stage.claim(held, "tester").await;
    let done = stage.offer_to(to("writer"), |_| {}).await;
    let proof = stage.claim(done, "writer").await;
    stage.act(done, proof, complete("done")).await.unwrap();
    stage.store.close().await;
    (stage, waits)
}

async fn refused(change: &str, table: &str, problem: &str) {
    let (stage, waits) = closed().await;
    let changed = database(&stage.dir).execute(change, []).unwrap();
    assert!(changed > 0, "{change}");
    let OpenError::Rows { differences, .. } = refusal(&stage.dir).await else {
        panic!("{change}: another refusal");
    };
    let named = differences.iter().any(|it| it.table == table && it.problem == problem);
    assert!(named, "{change}: {differences:?}");
    // What is asked for says the same.
    let clock = ManualClock::at(BEGIN);
    assert_eq!(maintenance::compare_rows(&stage.dir, &*clock).unwrap(), differences);
    // The log knows better than the rows.
    maintenance::rebuild(&stage.dir, &*clock, &mut |_| ()).unwrap();
    let stage = stage.go_on_in(&stage.dir).await;
    assert_eq!(stage.state(waits).await, "pending");
    let registry = stage.store.registry().borrow().clone();
    assert!(registry.agents[&agent("mallory")].rules.is_empty(), "{change}");
    assert_eq!(stage.claim_next("coder", 5).await, [waits]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_row_makes_nobody_an_administrator() {
    let rule = serde_json::to_string(&Rule::everything()).unwrap();
    let change = format!(
        "UPDATE registry SET data = json_set(data, '$.rules', json('[{rule}]')) WHERE name = 'mallory'"
    );
    refused(&change, "registry", "was changed").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_row_gives_work_to_nobody_else() {
    let change = "UPDATE handoff SET data = replace(data, 'coder', 'mallory'), to_name = 'mallory' \
                  WHERE to_name = 'coder'";
    refused(change, "handoff", "was changed").await;
    refused("UPDATE task SET owner = 'mallory' WHERE live IS NOT NULL", "task", "was changed")
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_are_taken_away_or_put_in_are_missed() {
    refused("DELETE FROM registry WHERE name = 'mallory'", "registry", "is missing").await;
    refused("DELETE FROM handoff WHERE to_name = 'coder'", "handoff", "is missing").await;
    let hide = "UPDATE handoff SET ended = 1, state = 'completed' WHERE to_name = 'coder'";
    refused(hide, "handoff", "was changed").await;
    let forge = "INSERT INTO registry SELECT kind, 'eve', at, replace(data, 'mallory', 'eve'), body \
                 FROM registry WHERE name = 'mallory'";
    refused(forge, "registry", "is not in the log").await;
}

/// Everything that was written about the rows at one moment, to be put back later.
fn saved(db: &Connection) -> (Vec<u8>, String) {
    let seal = "SELECT value FROM meta WHERE name = 'row_sums'";
    let data = "SELECT data FROM registry WHERE name = 'mallory'";
    let read = |sql| db.query_row(sql, [], |row| row.get(0)).unwrap();
    (db.query_row(seal, [], |row| row.get(0)).unwrap(), read(data))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_sums_or_with_sums_of_another_key_nothing_of_the_rows_is_believed() {
    for sums in [
        "DELETE FROM meta WHERE name = 'row_sums'",
        "UPDATE meta SET value = zeroblob(1080) WHERE name = 'row_sums'",
    ] {
        let (stage, waits) = closed().await;
        let db = database(&stage.dir);
        let change = "UPDATE registry SET data = replace(data, '\"rules\"', '\"other\"')";
        db.execute_batch(&format!("{change}; DELETE FROM handoff; {sums}")).unwrap();
        drop(db);
        let stage = stage.go_on_in(&stage.dir).await;
        assert_eq!(stage.claim_next("coder", 5).await, [waits]);
        let registry = stage.store.registry().borrow().clone();
        assert!(registry.agents[&agent("mallory")].rules.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_rows_that_are_put_back_with_their_sums_learn_what_came_since() {
    let stage = open().await;
    let key = SecretKey::from_seed([3; 32]).public();
    let rules = Some(vec![Rule::everything()]);
    let wish = RegistryWish::Enroll { agent: agent("mallory"), key, rules };
    stage.run(Command::registry(Actor::Broker, None, wish)).await.unwrap();
    stage.store.close().await;
    let (seal, data) = saved(&database(&stage.dir));
    let stage = stage.go_on_in(&stage.dir).await;
    let wish = RegistryWish::SetRules { agent: agent("mallory"), rules: Vec::new() };
    stage.run(Command::registry(Actor::Broker, None, wish)).await.unwrap();
    stage.store.close().await;
    let db = database(&stage.dir);
    db.execute("UPDATE registry SET data = ?1, at = 1 WHERE name = 'mallory'", params![data])
        .unwrap();
    db.execute("UPDATE meta SET value = ?1 WHERE name = 'row_sums'", params![seal]).unwrap();
    drop(db);
    let options =
        tasuki_store::SqliteOptions { dir: stage.dir.clone(), sync: tasuki_store::Sync::Full };
    match tasuki_store::Sqlite::open(options, ManualClock::at(BEGIN)).await {
        Ok(store) => {
            let registry = store.registry().borrow().clone();
            assert!(
                registry.agents[&agent("mallory")].rules.is_empty(),
                "the log has the last word"
            );
        }
        Err(error) => assert!(matches!(error, OpenError::Rows { .. }), "{error}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_that_are_added_while_no_broker_runs_are_not_taken() {
    let (stage, _) = closed().await;
    let db = database(&stage.dir);
    let (last, record): (i64, String) = db
        .query_row("SELECT position, record FROM event WHERE previous IS NULL ORDER BY position DESC LIMIT 1", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    let end: i64 = db.query_row("SELECT max(position) FROM event", [], |row| row.get(0)).unwrap();
    assert!(last <= end);
    let hash = tasuki_core::event::link(tasuki_core::Hash::ZERO, record.as_bytes());
    db.execute(
        "INSERT INTO event VALUES (?1, NULL, ?2, ?3, NULL)",
        params![end + 1, hash.0, record],
    )
    .unwrap();
    drop(db);
    let OpenError::Damaged(finding) = refusal(&stage.dir).await else { panic!("another refusal") };
    assert_eq!(finding.position, Position(u64::try_from(end).unwrap() + 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rows_of_a_backup_are_not_believed() {
    let (stage, waits) = closed().await;
    let backup = stage.base.path().join("backup.db");
    maintenance::backup(&stage.dir, &backup).unwrap();
    let change = "UPDATE handoff SET data = replace(data, 'coder', 'mallory')";
    Connection::open(&backup).unwrap().execute(change, []).unwrap();
    let restored = stage.base.path().join("restored");
    maintenance::restore(&backup, &restored, &mut |_| ()).unwrap();
    // With the key of the broker that wrote it, too.
    std::fs::copy(stage.dir.join("broker.key"), restored.join("broker.key")).unwrap();
    let stage = stage.go_on_in(&restored).await;
    assert_eq!(stage.claim_next("coder", 5).await, [waits]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_acts_by_itself_in_the_database_is_refused() {
    for foreign in [
        "CREATE TRIGGER helper AFTER INSERT ON event BEGIN UPDATE task SET owner = 'mallory'; END",
        "ALTER TABLE idempotency RENAME TO other; CREATE VIEW idempotency AS SELECT * FROM other",
    ] {
        let (stage, _) = closed().await;
        database(&stage.dir).execute_batch(foreign).unwrap();
        let refused = refusal(&stage.dir).await;
        assert!(matches!(&refused, OpenError::Foreign { .. }), "{foreign}: {refused}");
    }
}

// SPDX-License-Identifier: Apache-2.0
//! The same rows in a database that brokers share: who can write it and does not have the row key
//! changes nothing in silence.

use std::path::PathBuf;
use std::sync::Arc;

use tasuki_core::HandoffId;
use tasuki_core::commands::{Act, Command, RegistryWish};
use tasuki_core::event::Actor;
use tasuki_core::identity::SecretKey;
use tasuki_core::registry::rules::Rule;
use tasuki_store::{ManualClock, Postgres, PostgresError, PostgresOptions};

use crate::stage::{BEGIN, Backend, Stage};
use crate::support::{agent, complete, to};

const ROW_KEY: [u8; 32] = [9; 32];

fn options(url: &str, dir: Option<PathBuf>) -> PostgresOptions {
    let key = tasuki_store::key::SigningKey::from_bytes(&[4; 32]);
    let row_key = Some(ROW_KEY);
    PostgresOptions { connections_max: 6, row_key, dir, ..PostgresOptions::new(url, key) }
}

async fn broker(options: PostgresOptions, like: Option<&Stage>) -> Stage {
    let clock = like.map_or_else(|| ManualClock::at(BEGIN), |stage| stage.clock.clone());
    let store = Arc::new(Postgres::open(options, clock.clone()).await.unwrap());
    let base = Arc::new(tempfile::tempdir().unwrap());
    let ids = like.map_or_else(Arc::default, |stage| stage.ids.clone());
    let dir = base.path().to_owned();
    Stage { store, clock, dir, base, backend: Backend::Postgres, ids }
}

async fn refusal(options: PostgresOptions) -> PostgresError {
    Postgres::open(options, ManualClock::at(BEGIN)).await.err().expect("the start is refused")
}

/// Work that waits, work that is held, work that is done, and one agent that may do nothing.
async fn played(stage: &Stage) -> HandoffId {
    let key = SecretKey::from_seed([3; 32]).public();
    let wish = RegistryWish::Enroll { agent: agent("mallory"), key, rules: Some(Vec::new()) };
    stage.run(Command::registry(Actor::Broker, None, wish)).await.unwrap();
    let waits = stage.offered().await;
    let held = stage.offer_to(to("tester"), |_| {}).await;
    let proof = stage.claim(held, "tester").await;
    stage.act(held, proof, Act::Heartbeat).await.unwrap();
    let done = stage.offer_to(to("writer"), |_| {}).await;
    let proof = stage.claim(done, "writer").await;
    stage.act(done, proof, complete("done")).await.unwrap();
    waits
}

async fn changed(url: &str, sql: &str) {
    let database = url.rsplit('/').next().unwrap();
    scratch_postgres::shared().run_sql(database, sql).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn brokers_that_write_in_turns_keep_the_sums_right() {
    let url = scratch_postgres::shared().database().await;
    let one = broker(options(&url, None), None).await;
    let two = broker(options(&url, None), Some(&one)).await;
    let waits = played(&one).await;
    let proof = two.claim(waits, "coder").await;
    one.act(waits, proof, complete("done")).await.unwrap();
    let last = two.offered().await;
    one.store.close().await;
    two.store.close().await;
    let again = broker(options(&url, None), Some(&one)).await;
    assert_eq!(again.claim_next("coder", 5).await, [last]);
    again.verified().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_does_not_start_on_rows_that_were_changed_and_names_them() {
    let rule = serde_json::to_string(&Rule::everything()).unwrap();
    let promoted = format!(
        "UPDATE registry SET data = jsonb_set(data::jsonb, '{{rules}}', '[{rule}]')::text \
         WHERE name = 'mallory'"
    );
    for (change, table, problem) in [
        (&*promoted, "registry", "was changed"),
        ("DELETE FROM registry WHERE name = 'mallory'", "registry", "is missing"),
        (
            "INSERT INTO registry SELECT kind, 'eve', at, replace(data, 'mallory', 'eve'), body \
             FROM registry WHERE name = 'mallory'",
            "registry",
            "is not in the log",
        ),
        (
            "UPDATE handoff SET data = replace(data, 'coder', 'mallory'), target = 'agent:mallory' \
             WHERE target = 'agent:coder'",
            "handoff",
            "was changed",
        ),
        ("DELETE FROM handoff WHERE target = 'agent:coder'", "handoff", "is missing"),
        ("UPDATE task SET owner = 'mallory' WHERE live IS NOT NULL", "task", "was changed"),
    ] {
        let url = scratch_postgres::shared().database().await;
        let stage = broker(options(&url, None), None).await;
        played(&stage).await;
        stage.store.close().await;
        changed(&url, change).await;
        let PostgresError::Rows(found) = refusal(options(&url, None)).await else {
            panic!("{change}: another refusal");
        };
        let named = found.iter().any(|it| it.table == table && it.problem == problem);
        assert!(named, "{change}: {found:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sums_that_were_taken_away_or_put_back_are_missed() {
    for (before, after) in [
        ("SELECT 1", "UPDATE log_head SET sums = NULL"),
        ("SELECT 1", "UPDATE log_head SET sums = decode(repeat('00', 1080), 'hex')"),
        // A seal of an earlier moment, with the rows of then.
        (
            "CREATE TABLE moment AS SELECT sums FROM log_head; \
             CREATE TABLE known AS SELECT * FROM registry",
            "UPDATE log_head SET sums = moment.sums FROM moment; DELETE FROM registry; \
             INSERT INTO registry SELECT * FROM known",
        ),
    ] {
        let url = scratch_postgres::shared().database().await;
        let dir = tempfile::tempdir().unwrap();
        let here = || options(&url, Some(dir.path().to_owned()));
        let stage = broker(here(), None).await;
        played(&stage).await;
        stage.store.close().await;
        changed(&url, before).await;
        let stage = broker(here(), Some(&stage)).await;
        let wish = RegistryWish::SetRules { agent: agent("mallory"), rules: Vec::new() };
        stage.run(Command::registry(Actor::Broker, None, wish)).await.unwrap();
        stage.store.close().await;
        changed(&url, after).await;
        let refused = refusal(here()).await;
        assert!(matches!(refused, PostgresError::Rows(_)), "{after}: {refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_writes_on_covered_rows_without_their_key_or_on_a_seal_that_was_changed() {
    let url = scratch_postgres::shared().database().await;
    let stage = broker(options(&url, None), None).await;
    played(&stage).await;
    let without = PostgresOptions { row_key: None, ..options(&url, None) };
    let refused = refusal(without).await;
    assert!(matches!(refused, PostgresError::RowKey), "{refused}");
    assert!(refused.to_string().contains("--row-key"), "{refused}");
    let other = PostgresOptions { row_key: Some([8; 32]), ..options(&url, None) };
    assert!(matches!(refusal(other).await, PostgresError::Rows(_)));
    // While it runs, too.
    changed(&url, "UPDATE log_head SET sums = NULL").await;
    let offer = Command::offer(stage.offer(to("coder")));
    let refused = stage.run(offer).await.unwrap_err();
    assert!(!matches!(refused, tasuki_store::Error::Refused(_)), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_from_before_are_compared_with_the_log_once_and_covered_from_then_on() {
    let url = scratch_postgres::shared().database().await;
    let bare = || PostgresOptions { row_key: None, ..options(&url, None) };
    let stage = broker(bare(), None).await;
    let waits = played(&stage).await;
    stage.store.close().await;
    changed(&url, "UPDATE task SET owner = 'mallory' WHERE live IS NOT NULL").await;
    assert!(matches!(refusal(options(&url, None)).await, PostgresError::Rows(_)));
    changed(
        &url,
        "UPDATE task SET owner = 'planner' WHERE owner = 'mallory' AND id IN \
                   (SELECT task_id FROM handoff WHERE state = 'pending')",
    )
    .await;
    changed(&url, "UPDATE task SET owner = 'tester' WHERE owner = 'mallory'").await;
    let stage = broker(options(&url, None), Some(&stage)).await;
    assert_eq!(stage.claim_next("coder", 5).await, [waits]);
    stage.store.close().await;
    assert!(matches!(refusal(bare()).await, PostgresError::RowKey));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_acts_by_itself_in_the_database_is_refused() {
    for foreign in [
        "CREATE FUNCTION helper() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         UPDATE task SET owner = 'mallory'; RETURN NULL; END $$; \
         CREATE TRIGGER helper AFTER INSERT ON event FOR EACH STATEMENT EXECUTE FUNCTION helper()",
        "CREATE RULE helper AS ON UPDATE TO registry DO INSTEAD NOTHING",
        "ALTER TABLE registry ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE registry RENAME TO other; CREATE VIEW registry AS SELECT * FROM other",
    ] {
        let url = scratch_postgres::shared().database().await;
        let stage = broker(options(&url, None), None).await;
        played(&stage).await;
        stage.store.close().await;
        changed(&url, foreign).await;
        let refused = refusal(options(&url, None)).await;
        assert!(matches!(refused, PostgresError::Foreign { .. }), "{foreign}: {refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_gives_rights_while_a_broker_runs_ends_it_as_soon_as_it_was_read() {
    let url = scratch_postgres::shared().database().await;
    let stage = broker(options(&url, None), None).await;
    played(&stage).await;
    let rule = serde_json::to_string(&Rule::everything()).unwrap();
    let promoted = format!(
        "UPDATE registry SET data = jsonb_set(data::jsonb, '{{rules}}', '[{rule}]')::text, \
         at = (SELECT position + 1 FROM log_head) WHERE name = 'mallory'"
    );
    changed(&url, &promoted).await;
    // Whatever makes it look at who is known.
    let _ = stage.run(Command::offer(stage.offer(to("coder")))).await;
    let failed = stage.store.workers().failed();
    let failed = tokio::time::timeout(std::time::Duration::from_secs(60), failed).await;
    let why = failed.expect("it ends").to_string();
    assert!(why.contains("doctor --full"), "{why}");
}

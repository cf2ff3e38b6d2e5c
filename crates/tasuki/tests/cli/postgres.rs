// SPDX-License-Identifier: Apache-2.0
//! Commands about a PostgreSQL: serve on one, look at one, move to one and back.

use tasuki_testing::database;
use tasuki_testing::stage::{Stage, Talk};

#[test]
fn a_store_that_cannot_be_used_is_refused_with_what_to_do() {
    let stage = Stage::new();
    let gone = "postgres://u:secret@127.0.0.1:1/db";
    let ran = stage.run(&["serve", "--store", gone]).ends(69, &["cannot be reached", "doctor"]);
    assert!(!ran.err.contains("secret"), "{}", ran.err);
    stage.run(&["serve", "--store", "mysql://x"]).ends(2, &["postgres://user@host/database"]);
    stage.run(&["doctor", "--store", gone]).ends(1, &["database", "cannot be reached"]);
    stage.run(&["serve", "--store-connections", "1"]).ends(2, &["store_connections"]);
}

#[test]
fn everything_moves_to_postgres_and_back() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    for _ in 0..3 {
        talk.offer("");
    }
    let (handoff, proof) = talk.claim();
    talk.run(&format!("handoff complete {handoff} {proof} --payload '{{\"type\":\"x\"}}'")).ok();
    let (stale, stale_proof) = talk.claim();
    let url = database();
    stage.run(&["migrate", "--from", "data", "--to", &url]).ends(75, &["in use"]);
    broker.stop();
    stage.run(&["migrate", "--from", "data", "--to", "data2"]).ends(2, &["PostgreSQL URL"]);
    stage.run(&["migrate", "--from", "nowhere", "--to", &url]).ends(3, &["nowhere"]);
    stage.run(&["migrate", "--from", "data", "--to", &url]).ends(0, &["moved", "verified"]);
    stage.run(&["migrate", "--from", "data", "--to", &url]).ends(1, &["empty"]);

    let broker = stage.broker_with("node", &["--store", &url]);
    let there = Talk { stage: &stage, broker: &broker };
    assert_eq!(there.json(&format!("handoff show {handoff}"))["state"], "completed");
    there.run(&format!("handoff start {stale} {stale_proof}")).ends(4, &["stale_claim"]);
    there.run("audit verify").ok();
    let (next, _) = there.claim();
    stage
        .run(&["doctor", "--store", &url, "--url", &format!("http://{}", broker.address())])
        .ends(1, &["primary", "synchronous_commit = on", "fsync = off", "ready at"]);
    broker.stop();

    stage.run(&["migrate", "--from", &url, "--to", "back"]).ends(0, &["moved", "--data back"]);
    let broker = stage.broker("back");
    let back = Talk { stage: &stage, broker: &broker };
    back.run("audit verify").ok();
    assert_eq!(back.json(&format!("handoff show {next}"))["state"], "pending");
}

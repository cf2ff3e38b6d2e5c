// SPDX-License-Identifier: Apache-2.0
//! Rows are changed past the broker.

use rusqlite::Connection;
use tasuki_testing::stage::{Stage, Talk};

fn change(stage: &Stage, sql: &str) {
    let db = Connection::open(stage.path("data/tasuki.db")).unwrap();
    assert!(db.execute(sql, []).unwrap() > 0, "{sql}");
}

#[test]
fn a_broker_does_not_serve_on_changed_rows_and_says_which_they_are() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    Talk { stage: &stage, broker: &broker }.offer("");
    broker.stop();
    stage.run(&["audit", "verify", "--rows", "--data", "data"]).ends(0, &["intact"]);

    change(&stage, "UPDATE handoff SET data = replace(data, 'reviewer', 'mallory')");
    let said = stage.run(&["serve", "--data", "data", "--listen", "127.0.0.1:0"]);
    assert_ne!(said.code, 0);
    for part in ["handoff handoff_", "was changed", "tasuki rebuild --data data"] {
        assert!(said.err.contains(part), "{part} is not in: {}", said.err);
    }
    let said = stage.run(&["audit", "verify", "--rows", "--data", "data"]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.out.contains("NOT intact") && said.out.contains("was changed"), "{}", said.out);
    let said = stage.run(&["doctor", "--full", "--data", "data"]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.out.contains("was changed"), "{}", said.out);
    // The log is whole, and says so.
    stage.run(&["audit", "verify", "--data", "data"]).ends(0, &["intact"]);

    stage.run(&["rebuild", "--data", "data"]).ends(0, &["anew"]);
    stage.run(&["doctor", "--full", "--data", "data"]).ends(0, &["every row is what the log says"]);
    let broker = stage.broker("data");
    broker.stop();
}

#[test]
fn an_older_database_is_refused_and_the_way_on_makes_claims_stale() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    Talk { stage: &stage, broker: &broker }.offer("");
    broker.stop();
    std::fs::copy(stage.path("data/tasuki.db"), stage.path("old.db")).unwrap();
    let broker = stage.broker("data");
    Talk { stage: &stage, broker: &broker }.offer("");
    broker.stop();
    std::fs::copy(stage.path("old.db"), stage.path("data/tasuki.db")).unwrap();
    let said = stage.run(&["serve", "--data", "data", "--listen", "127.0.0.1:0"]);
    assert_ne!(said.code, 0);
    assert!(said.err.contains("tasuki rebuild --accept-loss --data data"), "{}", said.err);
    stage
        .run(&["rebuild", "--accept-loss", "--data", "data"])
        .ends(0, &["every claim so far is stale"]);
    let broker = stage.broker("data");
    let log = stage.run(&["audit", "export", "--data", "data"]);
    assert!(log.out.contains("epoch_raised"), "{}", log.out);
    broker.stop();
}

// SPDX-License-Identifier: Apache-2.0
//! Every failure says what to do next, and ends with the code that the reference promises.

use tasuki_testing::stage::{Ran, Stage, Talk};

const NOBODY: &str = "handoff_00000000000000000000000000";

#[test]
fn a_refusal_names_the_next_command_and_has_its_exit_code() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };

    talk.run(&format!("handoff show {NOBODY}"))
        .ends(3, &["there is no handoff", "next:  tasuki handoff list", "handoff_not_found"]);
    let handoff = talk.offer("");
    let (_, proof) = talk.claim();
    talk.run(&format!("handoff release {handoff} {proof}")).ok();
    let show = format!("next:  tasuki handoff show {handoff}");
    talk.run(&format!("handoff start {handoff} {proof}")).ends(4, &["stale_claim", &show]);
    let task = talk.json(&format!("handoff show {handoff}"))["task_id"].clone();
    let task = task.as_str().unwrap();
    talk.run(&format!(
        "handoff offer --from stranger --to b --task {task} --payload '{{\"type\":\"x\"}}'"
    ))
    .ends(1, &["not_owner", &format!("next:  tasuki task show {task}")]);
    talk.run("handoff claim --agent reviewer --max 100000").ends(1, &["expected 1 to"]);
    talk.run("handoff show nonsense").ends(2, &["expected handoff_", "--help"]);
    talk.run("handoff offer --from a --to b --to-capability c --payload x").ends(2, &["--help"]);
    talk.run("handoff claim --agent a --wait 10").ends(2, &["500ms, 30s, 10m, 2h or 1d"]);
}

#[test]
fn with_json_an_error_is_the_brokers_own() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    let error = |ran: Ran| -> serde_json::Value {
        assert_eq!(ran.out, "");
        let error: serde_json::Value = serde_json::from_str(&ran.err).unwrap();
        for name in ["code", "message", "hint", "retryable", "details"] {
            assert!(error.get(name).is_some(), "{error} has no {name}");
        }
        error
    };
    let refused = error(talk.run(&format!("handoff show {NOBODY} --json")));
    assert_eq!(refused["code"], "handoff_not_found");
    assert!(refused["request_id"].is_string());
    assert_eq!(error(talk.run("handoff show nonsense --json"))["code"], "usage");
    assert_eq!(error(talk.run("backup --data none --to x --json"))["code"], "not_found");
    let gone = error(talk.run("stats --url http://127.0.0.1:1 --json"));
    assert_eq!((&gone["code"], &gone["retryable"]), (&"unavailable".into(), &true.into()));
}

#[test]
fn without_a_broker_it_says_how_to_start_one() {
    let stage = Stage::new();
    for line in ["stats", "task list", "audit verify", "audit export", "audit log"] {
        let mut words: Vec<_> = line.split(' ').collect();
        words.extend(["--url", "http://127.0.0.1:1"]);
        let said = ["no broker answers at http://127.0.0.1:1", "next:  tasuki serve"];
        stage.run(&words).ends(69, &said);
    }
    stage.run(&["stats", "--url", "ftp://127.0.0.1:1"]).ends(2, &["http://"]);
}

#[test]
fn data_that_is_not_there_is_not_made() {
    let stage = Stage::new();
    for words in [
        &["rebuild", "--data", "none"][..],
        &["backup", "--data", "none", "--to", "b.db"],
        &["audit", "verify", "--data", "none"],
        &["audit", "export", "--data", "none"],
        &["audit", "verify", "--file", "none"],
        &["restore", "--from", "none", "--data", "new"],
    ] {
        stage.run(words).ends(3, &["none", "hint:"]);
    }
    assert!(!stage.path("none").exists() && !stage.path("new").exists());
}

// SPDX-License-Identifier: Apache-2.0
//! Commands on a data directory: backup, restore, rebuild, and the log offline.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use tasuki_testing::stage::{Stage, Talk};

#[test]
fn a_backup_of_a_running_broker_is_restored_and_its_claims_are_stale() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    talk.offer("");
    let (handoff, proof) = talk.claim();
    stage
        .run(&["backup", "--data", "data", "--to", "b.db"])
        .ends(0, &["tasuki restore --from b.db"]);
    stage.run(&["backup", "--data", "data", "--to", "b.db"]).ends(1, &["b.db exists"]);
    // The claim goes on where it was given.
    talk.run(&format!("handoff start {handoff} {proof}")).ok();

    stage
        .run(&["restore", "--from", "b.db", "--data", "new"])
        .ends(0, &["tasuki serve --data new"]);
    stage.run(&["restore", "--from", "b.db", "--data", "new"]).ends(1, &["new", "already"]);
    let restored = stage.broker("new");
    let there = Talk { stage: &stage, broker: &restored };
    there.run(&format!("handoff start {handoff} {proof}")).ends(4, &["stale_claim"]);
    let (again, newer) = there.claim();
    assert_eq!(again, handoff);
    assert_ne!(newer, proof);
    there.run(&format!("handoff start {handoff} {newer}")).ok();
}

#[test]
fn a_rebuild_changes_nothing_and_waits_for_the_broker_to_end() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    for _ in 0..3 {
        talk.offer("");
    }
    let (handoff, proof) = talk.claim();
    talk.run(&format!("handoff complete {handoff} {proof} --payload '{{\"type\":\"x\"}}'")).ok();
    let before = talk.json("handoff list");
    let pid = broker.pid().to_string();
    stage.run(&["rebuild", "--data", "data"]).ends(75, &["in use by process", &pid]);
    broker.stop();
    stage.run(&["rebuild", "--data", "data"]).ends(0, &["anew"]);
    let broker = stage.broker("data");
    let after = Talk { stage: &stage, broker: &broker }.json("handoff list");
    assert_eq!(before, after);
}

#[test]
fn a_log_that_was_tampered_with_is_found_out() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    talk.offer("");
    let (handoff, proof) = talk.claim();
    talk.run(&format!("handoff progress {handoff} {proof} --percent 50")).ok();
    talk.run("audit verify").ends(0, &["intact"]);
    talk.run("audit export --to log.jsonl").ends(0, &["tasuki audit verify --file log.jsonl"]);
    talk.run("audit export --to log.jsonl").ends(1, &["log.jsonl exists"]);
    stage.run(&["audit", "verify", "--data", "data"]).ends(0, &["intact"]);
    stage.run(&["audit", "verify", "--file", "log.jsonl"]).ends(0, &["intact"]);

    // What is read from the directory is what the broker tells, checkpoints that came since apart.
    let offline = stage.run(&["audit", "export", "--data", "data"]).ok();
    let exported = std::fs::read_to_string(stage.path("log.jsonl")).unwrap();
    let events = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.starts_with("{\"event\"")).map(String::from).collect()
    };
    assert_eq!(events(&exported), events(&offline));

    stage.write("altered.jsonl", exported.replace("\"percent\":50", "\"percent\":99"));
    let said = ["NOT intact", "entry 3", "altered"];
    stage.run(&["audit", "verify", "--file", "altered.jsonl"]).ends(1, &said);
    let shorter: Vec<_> = exported.lines().skip(1).collect();
    stage.write("shorter.jsonl", shorter.join("\n"));
    stage.run(&["audit", "verify", "--file", "shorter.jsonl"]).ends(1, &["entries are missing"]);
    let found = stage.run(&["audit", "verify", "--file", "altered.jsonl", "--json"]);
    let found: serde_json::Value = serde_json::from_str(&found.out).unwrap();
    assert_eq!((&found["intact"], &found["first_bad"]["position"]), (&false.into(), &3.into()));
}

#[test]
fn a_damaged_backup_is_not_restored() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    Talk { stage: &stage, broker: &broker }.offer("");
    stage.run(&["backup", "--data", "data", "--to", "b.db"]).ok();
    let bytes = std::fs::read(stage.path("b.db")).unwrap();
    stage.write("bad.db", altered(bytes));
    stage.run(&["restore", "--from", "bad.db", "--data", "new"]).ends(74, &["entry 1", "altered"]);
    stage.write("no.db", "this is no database");
    stage.run(&["restore", "--from", "no.db", "--data", "new"]).ends(74, &["not a database"]);
    assert!(!stage.path("new/tasuki.db").exists());
}

/// One word of an intent, changed behind the store's back.
pub(crate) fn altered(mut bytes: Vec<u8>) -> Vec<u8> {
    let word = b"look at it";
    let at = bytes.windows(word.len()).position(|part| part == word).unwrap();
    bytes[at] = b'L';
    bytes
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    // More than a pipe holds, so that the writer notices.
    stage.write("big.json", format!("{{\"type\":\"x\",\"text\":\"{}\"}}", "x".repeat(400_000)));
    for _ in 0..2 {
        talk.run("handoff offer --from a --to b --intent x --payload @big.json").ok();
    }
    for line in ["audit export", "audit export --data data", "audit log --follow --after 0"] {
        let mut command = talk.command(line);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        reader.read_line(&mut first).unwrap();
        assert!(!first.is_empty());
        drop(reader);
        // A follower only notices when it has something to say.
        if line.contains("log") {
            talk.offer("");
            talk.offer("");
        }
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.as_str()), (Some(0), ""), "{line}");
    }
}

#[test]
fn a_follower_sees_events_as_they_happen_and_learns_how_to_go_on() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    let handoff = talk.offer("");
    let mut command = talk.command(&format!("audit log --follow --after 0 --handoff {handoff}"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("transfer_offered"));
    talk.claim();
    assert!(lines.next().unwrap().unwrap().contains("agent:reviewer"));
    let url = broker.url.clone();
    broker.stop();
    assert!(lines.next().is_none());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(69));
    let said = String::from_utf8(output.stderr).unwrap();
    let next = format!("next:  tasuki audit log --follow --after 1-2 --handoff {handoff}");
    assert!(said.contains(&next) && said.contains(&url), "{said}");
}

#[test]
fn a_population_is_the_same_from_a_broker_and_from_its_exported_log() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    for _ in 0..3 {
        talk.offer("");
    }
    talk.claim();
    talk.run("audit export --to log.jsonl").ok();
    let live = talk.json("analyze");
    assert_eq!((&live["handoffs"], &live["findings"]), (&3.into(), &serde_json::json!([])));
    let why = live["looked"][1]["unjudged"].as_str().unwrap();
    assert!(why.contains("100 are needed"), "{why}");
    let read = stage.run(&["analyze", "--file", "log.jsonl", "--json"]).ok();
    assert_eq!(live, serde_json::from_str::<serde_json::Value>(&read).unwrap());

    stage.write("no.jsonl", "no log\n");
    let said = ["line 1 of", "tasuki audit export"];
    stage.run(&["analyze", "--file", "no.jsonl"]).ends(1, &said);
    stage.run(&["analyze", "--false-alarms", "0.001"]).ends(2, &["0.05 to 0.5"]);
}

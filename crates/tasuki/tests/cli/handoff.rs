// SPDX-License-Identifier: Apache-2.0

use tasuki_testing::stage::{Stage, Talk};

/// The value of a line `name: value`.
#[track_caller]
fn fact(text: &str, name: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
    line.unwrap_or_else(|| panic!("no {name} in\n{text}")).trim().to_owned()
}

#[test]
fn two_agents_hand_work_over_with_the_commands_that_are_printed() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };

    let offered = talk
        .run("handoff offer --from coder --to reviewer --intent 'Add GET /users/{id}' --payload '{\"type\":\"code\",\"diff\":\"+ ok\"}'")
        .ok();
    assert_eq!(fact(&offered, "status"), "stored");

    let claimed = talk.run("handoff claim --agent reviewer").ok();
    assert_eq!(fact(&claimed, "handoff"), fact(&offered, "handoff"));
    assert_eq!(fact(&claimed, "intent"), "Add GET /users/{id}");
    let started = talk.run(&fact(&claimed, "begin")).ok();
    assert_eq!(fact(&started, "state"), "in_progress");
    let completed = talk.run(&fact(&claimed, "complete")).ok();
    assert_eq!(fact(&completed, "state"), "completed (done)");

    let waited = talk.run(&fact(&offered, "next")).ok();
    assert_eq!(fact(&waited, "result"), r#"{"text":"…","type":"result"}"#);
    let task = talk.run(&format!("task show {}", fact(&offered, "task"))).ok();
    assert_eq!(fact(&task, "owner"), "reviewer");
    assert_eq!(fact(&task, "intent"), "Add GET /users/{id}");
}

#[test]
fn a_payload_comes_in_place_from_a_file_or_from_stdin() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    stage.write("payload.json", r#"{"type":"code","from":"file"}"#);
    let line = "handoff offer --from a --to b --intent x --json --payload";

    let id = talk.run(&format!("{line} @payload.json")).json()["handoff_id"].to_string();
    let envelope = talk.json(&format!("handoff envelope {}", id.trim_matches('"')));
    assert_eq!(envelope["payload"]["from"], "file");

    let mut command = talk.command(&format!("{line} -"));
    command.stdin(std::fs::File::open(stage.path("payload.json")).unwrap());
    tasuki_testing::stage::Ran::of(command).ok();

    talk.run(&format!("{line} @none.json")).ends(2, &["none.json", "@FILE"]);
    talk.run(&format!("{line} 'just text'")).ends(2, &["--payload"]);
    talk.run(&format!("{line} '{{\"no\":\"type\"}}'")).ends(2, &["type"]);
}

#[test]
fn what_nobody_could_do_waits_for_a_decision() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    let handoff = talk.offer("--attempts 1");
    let (_, proof) = talk.claim();
    let fail = "--type broken --message 'does not build' --class permanent --hint mend";
    talk.run(&format!("handoff fail {handoff} {proof} {fail}")).ok();

    talk.run(&format!("handoff wait {handoff}"))
        .ends(1, &["dead_lettered", "tasuki dead-letter show"]);
    talk.run("dead-letter list").ends(0, &[&handoff, "permanent_failure", "waiting"]);
    let shown = talk.run(&format!("dead-letter show {handoff}"));
    shown.ends(0, &["does not build", "look at it", "tasuki dead-letter redrive"]);
    let again = talk.json(&format!("dead-letter redrive {handoff} --by coder"));
    assert_ne!(again["handoff_id"], handoff.as_str());
    talk.run(&format!("dead-letter discard {handoff} --by coder --reason late"))
        .ends(4, &["already_reviewed", &format!("tasuki dead-letter show {handoff}")]);
    assert_eq!(talk.run("dead-letter list").ok(), "no dead letters\n");
}

#[test]
fn an_offer_can_wait_until_it_is_claimed() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    let line = "handoff offer --from a --to reviewer --intent x --payload '{\"type\":\"x\"}'";
    // What nobody claims while its sender waits would go to the dead letters.
    talk.run(&format!("{line} --wait 50ms --ack 60s")).ends(5, &["pending"]);
    talk.claim();
    let offer = talk.command(&format!("{line} --wait 60s"));
    let waiting = std::thread::spawn(move || tasuki_testing::stage::Ran::of(offer));
    talk.run("handoff claim --agent reviewer --wait 60s").ok();
    waiting.join().unwrap().ends(0, &["state:    claimed", "holder:   reviewer"]);
}

#[test]
fn ended_work_and_no_work_have_exit_codes_of_their_own() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    talk.run("handoff claim --agent reviewer").ends(5, &["tasuki handoff claim", "--wait"]);
    talk.run("handoff peek --agent reviewer").ends(5, &["nothing to peek"]);
    let handoff = talk.offer("");
    talk.run(&format!("handoff wait {handoff} --timeout 10ms")).ends(5, &["the time was up"]);
    talk.run(&format!("handoff cancel {handoff} --by coder --reason x")).ok();
    talk.run(&format!("handoff wait {handoff}")).ends(1, &["cancelled"]);
}

// SPDX-License-Identifier: Apache-2.0
//! A claim is remembered from one command to the next.

use std::os::unix::fs::PermissionsExt;

use tasuki_testing::stage::{Broker, Ran, Stage, Talk, text};

const DONE: &str = "handoff complete --payload '{\"type\":\"done\"}'";

#[test]
fn who_holds_one_claim_needs_no_ids_for_it() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    let handoff = talk.offer("");
    talk.run("handoff claim --agent reviewer")
        .ends(0, &[&format!("tasuki handoff start {handoff}\n")]);
    talk.run("handoff start").ends(0, &["in_progress"]);
    talk.run("handoff heartbeat").ends(0, &["lease left"]);
    talk.run("handoff progress --percent 50").ends(0, &["in_progress"]);
    talk.run("handoff attach --name notes --text half").ok();
    talk.run("handoff reserve src/api").ends(0, &["src/api"]);
    talk.run("handoff unreserve src/api").ends(0, &["nothing is reserved"]);
    talk.run(DONE).ends(0, &["completed"]);
    // It ended, so it is forgotten.
    talk.run(DONE).ends(2, &["no claim is remembered", "tasuki handoff claim"]);
}

#[test]
fn whatever_ends_a_claim_ends_what_is_remembered() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    for end in [
        "handoff fail --type x --message y",
        "handoff release",
        "handoff ask --text 'which branch?'",
        "handoff put-back --for 10m",
    ] {
        let handoff = talk.offer("--backoff 0ms");
        talk.run(&format!("handoff claim --agent reviewer --id {handoff}")).ok();
        talk.run(end).ok();
        talk.run(end).ends(2, &["no claim is remembered"]);
        talk.run(&format!("handoff cancel {handoff} --by coder --reason next")).ok();
    }
    let handoff = talk.offer("");
    talk.claim();
    talk.run(&format!("handoff decline {handoff} --agent reviewer --reason busy")).ok();
    talk.run("handoff start").ends(2, &["no claim is remembered"]);
}

#[test]
fn between_two_claims_nothing_is_guessed() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    let first = talk.offer("");
    talk.run("handoff claim --agent reviewer").ok();
    let second = talk.offer("");
    talk.run("handoff claim --agent reviewer").ok();
    talk.run(DONE).ends(2, &["2 claims are held", &first, &second, "name the handoff"]);
    talk.run(&format!("{DONE} {second}")).ends(0, &[&second]);
    talk.run(DONE).ends(0, &[&first]);
}

#[test]
fn two_agents_of_one_user_are_told_apart() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    let own = talk.offer("");
    talk.run("handoff claim --agent reviewer").ok();
    talk.run("handoff offer --from coder --to tester --intent x").ok();
    talk.run("handoff claim --agent tester").ok();
    talk.run(DONE).ends(2, &["2 claims are held", "--agent"]);
    let mut command = talk.command(DONE);
    command.env("TASUKI_AGENT", "reviewer");
    Ran::of(command).ends(0, &[&own]);
    talk.run(&format!("{DONE} --agent tester")).ok();
}

#[test]
fn a_claim_that_was_lost_is_told_and_forgotten() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    let lost = talk.offer("");
    talk.run("handoff claim --agent reviewer").ok();
    talk.run(&format!("handoff cancel {lost} --by coder --reason enough")).ok();
    talk.run(DONE).ends(4, &["no longer holds, and is forgotten", "stale_claim"]);
    talk.run(DONE).ends(2, &["no claim is remembered"]);
    // One of two is lost: the other one is meant.
    let lost = talk.offer("");
    talk.run("handoff claim --agent reviewer").ok();
    let held = talk.offer("");
    talk.run("handoff claim --agent reviewer").ok();
    talk.run(&format!("handoff cancel {lost} --by coder --reason enough")).ok();
    talk.run(DONE).ends(0, &[&lost, "is forgotten", &format!("handoff: {held}")]);
}

#[test]
fn a_claim_is_remembered_over_a_restart_of_the_broker_and_not_for_another_one() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    talk.offer("");
    talk.run("handoff claim --agent reviewer").ok();
    let other = stage.broker("other");
    Talk { stage: &stage, broker: &other }
        .run(DONE)
        .ends(2, &["no claim is remembered", &other.url]);
    let address = broker.address().to_owned();
    broker.stop();
    let again = ["serve", "--listen", &address, "--data", "data"];
    let broker = Broker::start(stage.command(&again));
    Talk { stage: &stage, broker: &broker }.run(DONE).ends(0, &["completed"]);
}

#[test]
fn only_the_user_can_read_what_is_remembered() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    talk.offer("");
    talk.run("handoff claim --agent reviewer").ok();
    let mode =
        |name: &str| std::fs::metadata(stage.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("state"), 0o700);
    assert_eq!(mode("state/claims.json"), 0o600);
}

#[test]
fn a_claim_that_cannot_be_remembered_is_held_all_the_same() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    stage.write("state", "a file stands in the way");
    talk.offer("");
    let claimed = talk.run("handoff claim --agent reviewer");
    let claimed = claimed.ends(0, &["is not remembered", "--claim claim_"]);
    let line = claimed.out.lines().find_map(|line| line.strip_prefix("begin:")).unwrap();
    talk.run(line.trim()).ends(0, &["in_progress"]);
    std::fs::remove_file(stage.path("state")).unwrap();
    std::fs::create_dir(stage.path("state")).unwrap();
    stage.write("state/claims.json", "{ broken");
    talk.run("handoff start").ends(1, &["claims.json", "repair or remove the file"]);
}

#[test]
fn many_claims_at_once_are_all_remembered() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    let offered: Vec<_> = (0..8).map(|_| talk.offer("")).collect();
    let claims = offered.iter().map(|_| {
        let mut command = talk.command("handoff claim --agent reviewer --json");
        std::thread::spawn(move || command.output().unwrap())
    });
    let claims: Vec<_> = claims.collect();
    for claim in claims {
        assert!(claim.join().unwrap().status.success());
    }
    for handoff in &offered {
        talk.run(&format!("{DONE} {handoff}")).ok();
    }
}

#[test]
fn a_claim_that_is_shown_counts_before_one_that_is_remembered() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    talk.offer("");
    let (handoff, proof) = talk.claim();
    talk.offer("");
    talk.claim();
    talk.run(&format!("handoff start {proof}")).ends(2, &["its handoff is not named"]);
    talk.run("handoff start --fence 1").ends(2, &["--claim"]);
    talk.run(&format!("{DONE} {handoff} {proof}")).ends(0, &[&handoff]);
    assert_eq!(text(&talk.json("handoff list --state claimed")["handoffs"][0]["state"]), "claimed");
}

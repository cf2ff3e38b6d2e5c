// SPDX-License-Identifier: Apache-2.0

use tasuki_testing::stage::{Stage, Talk, text};

#[test]
fn a_chain_leaves_one_broker_is_checked_alone_and_read_at_another() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    let handoff = talk.offer("--project web --constraint 'Never push to main.'");
    let (_, proof) = talk.claim();
    talk.run(&format!("handoff complete {handoff} {proof} --payload '{{\"type\":\"done\"}}'")).ok();
    let task = text(&talk.json(&format!("handoff show {handoff}"))["task_id"]);
    assert!(talk.run("task list --project web").ok().contains(&task));
    assert!(!talk.run("task list --project ledger").ok().contains(&task));

    let wrote = talk.run(&format!("task export {task} --to chain.json")).ok();
    assert!(wrote.contains("next: tasuki chain verify chain.json"), "{wrote}");
    talk.run(&format!("task export {task} --to chain.json")).ends(1, &["chain.json"]);
    stage.run(&["chain", "verify", "chain.json"]).ends(0, &["intact", "events", "hops"]);
    stage
        .run(&["chain", "show", "chain.json"])
        .ends(0, &["transfer_offered", "completed", "whole"]);

    let file = std::fs::read_to_string(stage.path("chain.json")).unwrap();
    stage.write("altered.json", file.replacen("look at it", "do not look", 1));
    stage.run(&["chain", "verify", "altered.json"]).ends(1, &["NOT intact", "event 0", "altered"]);
    stage.run(&["chain", "verify", "none.json"]).ends(3, &["none.json", "tasuki task export"]);
    stage.write("other.json", "{}");
    stage.run(&["chain", "verify", "other.json"]).ends(1, &["is no exported chain"]);

    let other = stage.broker("other");
    let there = Talk { stage: &stage, broker: &other };
    there.run("chain import altered.json --by reader").ends(1, &["not intact"]);
    let chain = text(&there.json("chain import chain.json --by reader --project web")["chain_id"]);
    there.run("chain list").ends(0, &[&chain, &task]);
    there.run(&format!("chain fetch {chain} --to fetched.json")).ok();
    assert_eq!(std::fs::read_to_string(stage.path("fetched.json")).unwrap(), file);
    there.run(&format!("task show {task}")).ends(3, &["there is no task"]);

    let branch = talk.run(&format!("task branch {task} --hop 0 --by coder --to tester")).ok();
    assert!(branch.contains(&format!("hop 0 of {task}")), "{branch}");
    talk.run(&format!("task branch {task} --hop 4 --by coder")).ends(1, &["no such hop"]);
}

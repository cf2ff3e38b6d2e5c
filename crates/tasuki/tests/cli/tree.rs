// SPDX-License-Identifier: Apache-2.0
//! A whole run as a tree.

use tasuki_testing::stage::{Stage, Talk, text};

#[test]
fn a_tree_shows_handoffs_attempts_and_the_tasks_below_with_what_they_cost() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    let handoff = talk.offer("--backoff 0ms");
    let task = text(&talk.json(&format!("handoff show {handoff}"))["task_id"]);
    talk.run("handoff claim --agent reviewer").ok();
    talk.run("handoff fail --type broken --message 'no disk'").ok();
    talk.run("handoff claim --agent reviewer --wait 10s").ok();
    let below = talk.json(&format!("task open --from reviewer --parent {task}"));
    let below = text(&below["task_id"]);
    let offer = format!(
        "handoff offer --from reviewer --to tester --task {below} --payload '{{\"type\":\"x\"}}'"
    );
    let deeper = text(&talk.json(&offer)["handoff_id"]);
    talk.run("handoff claim --agent tester").ok();
    let usage = "'{\"input_tokens\": 900, \"output_tokens\": 300, \"cost\": 0.02}'";
    let done = "--payload '{\"type\":\"x\"}'";
    talk.run(&format!("handoff complete --agent tester {done} --usage {usage}")).ok();

    let tree = talk.run(&format!("task tree {task}")).ok();
    let lines: Vec<_> = tree.lines().collect();
    assert_eq!(lines[0], "look at it");
    assert!(lines[1].starts_with(&format!("{task}  open  owner reviewer")), "{tree}");
    assert!(lines[1].ends_with("so far  1200 tokens, cost 0.02"), "{tree}");
    assert!(lines[2].starts_with(&format!("├─ {handoff}  claimed  coder → reviewer")), "{tree}");
    assert!(lines[3].starts_with("│  ├─ attempt 1  reviewer  failed_unknown"), "{tree}");
    assert!(lines[4].starts_with("│  └─ attempt 2  reviewer  under way"), "{tree}");
    assert!(lines[5].starts_with(&format!("└─ {below}")), "{tree}");
    assert!(lines[6].starts_with(&format!("   └─ {deeper}  completed")), "{tree}");
    assert!(lines[6].ends_with("1200 tokens, cost 0.02"), "{tree}");

    // A handoff's id means its task.
    let json = talk.json(&format!("task tree {handoff}"));
    assert_eq!(json["tasks"][0]["handoffs"][0]["used"]["tokens"], 1200, "{json}");
}

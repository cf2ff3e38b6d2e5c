// SPDX-License-Identifier: Apache-2.0
//! Ids may be shortened to any part that only one of them has.

use tasuki_testing::stage::{Stage, Talk, text};

#[test]
fn a_part_of_an_id_is_enough() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    let handoff = talk.offer("");
    let task = text(&talk.json(&format!("handoff show {handoff}"))["task_id"]);
    let end = |id: &str| id[id.len() - 8..].to_owned();
    assert_eq!(
        talk.json(&format!("handoff show {}", end(&handoff)))["handoff_id"],
        handoff.as_str()
    );
    let upper = end(&handoff).to_uppercase();
    assert_eq!(talk.json(&format!("handoff show {upper}"))["handoff_id"], handoff.as_str());
    assert_eq!(talk.json(&format!("task show {}", end(&task)))["task_id"], task.as_str());
    assert_eq!(talk.json(&format!("task show {}", &task[..28]))["task_id"], task.as_str());
    talk.run(&format!("explain {}", end(&handoff))).ends(0, &[&handoff]);
    let listed = talk.json(&format!("handoff list --task {}", end(&task)));
    assert_eq!(listed["handoffs"].as_array().unwrap().len(), 1);
    talk.run(&format!("handoff cancel {} --by coder --reason x", end(&handoff)))
        .ends(0, &[&handoff]);
}

#[test]
fn a_part_of_several_ids_is_refused_with_the_candidates() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    let (first, second) = (talk.offer(""), talk.offer(""));
    let shared: String =
        first.chars().zip(second.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a).collect();
    assert!(shared.len() > "handoff_".len() + 3, "they were made within minutes: {shared}");
    talk.run(&format!("handoff show {shared}")).ends(2, &[&first, &second, "give more of the id"]);
    talk.run(&format!("handoff cancel {shared} --by coder")).ends(2, &[&first, &second]);
    assert_eq!(talk.json("handoff list --state cancelled")["handoffs"], serde_json::json!([]));
}

#[test]
fn what_is_part_of_no_id_says_so_and_what_cannot_be_one_is_refused_as_before() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    talk.offer("");
    talk.run("handoff show zzzzzzz").ends(3, &["no handoff that you may see has \"zzzzzzz\""]);
    talk.run("handoff show ab").ends(2, &["expected handoff_"]);
    talk.run("handoff show a/b").ends(2, &["expected handoff_"]);
    stage
        .run(&["handoff", "show", "abcd", "--url", "http://127.0.0.1:1"])
        .ends(69, &["no broker answers"]);
}

#[test]
fn the_newest_one_has_a_name() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    talk.run("handoff show last").ends(3, &["there is no handoff that you may see"]);
    let first = talk.run("handoff offer --from a --to b --intent x --quiet").ok();
    let second = talk.offer("");
    assert_eq!(talk.json("handoff show last")["handoff_id"], second.as_str());
    assert_ne!(first.trim(), second);
    let task = talk.run("task open --from a --intent y --quiet").ok();
    assert_eq!(talk.json("task show last")["task_id"], task.trim());
    talk.run("explain last").ends(0, &[&second]);
}

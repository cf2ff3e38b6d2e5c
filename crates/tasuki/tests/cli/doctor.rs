// SPDX-License-Identifier: Apache-2.0

use serde_json::Value;

use crate::data::altered;
use tasuki_testing::stage::{Stage, Talk};

fn status_of<'r>(report: &'r Value, name: &str) -> &'r str {
    let checks = report["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == name);
    check.unwrap_or_else(|| panic!("no {name} in {report}"))["status"].as_str().unwrap()
}

#[test]
fn a_healthy_broker_and_its_data_pass() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    talk.offer("");
    let in_use = format!("in use by process {}", broker.pid());
    let said = talk.run("doctor --data data");
    let said = said.ends(0, &["ready at", &in_use, "all intact", "4 KiB", "none wait"]);
    assert!(said.out.lines().all(|line| !line.starts_with("fail")), "{}", said.out);
    let report = talk.json("doctor --data data");
    assert_eq!(report["healthy"], true);
    for name in ["broker", "version", "schema", "database", "audit log", "free space", "clock"] {
        assert_eq!(status_of(&report, name), "ok", "{name}");
    }
    broker.stop();
    // Without a broker the data is well, but the broker that was asked for is not.
    let alone = stage.run(&["doctor", "--data", "data", "--url", "http://127.0.0.1:1"]);
    alone.ends(1, &["fail  broker", "tasuki serve", "not in use", "all intact"]);
}

#[test]
fn damage_is_found_and_the_remedy_named() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    Talk { stage: &stage, broker: &broker }.offer("");
    broker.stop();
    let good = std::fs::read(stage.path("data/tasuki.db")).unwrap();

    stage.write("data/tasuki.db", altered(good.clone()));
    let doctor = ["doctor", "--data", "data", "--url", "http://127.0.0.1:1"];
    stage.run(&doctor).ends(1, &["fail  audit log", "entry 1", "tasuki restore"]);
    let report = stage.run(&[&doctor[..], &["--json"]].concat());
    let report: Value = serde_json::from_str(&report.out).unwrap();
    assert_eq!(report["healthy"], false);
    assert_eq!(status_of(&report, "database"), "ok");

    let mut torn = good;
    let from = torn.len() / 2;
    torn[from..].fill(0xee);
    stage.write("data/tasuki.db", torn);
    stage.run(&doctor).ends(1, &["fail  database", "tasuki restore"]);
    stage.write("data/tasuki.db", "no database at all");
    stage.run(&doctor).ends(1, &["fail  schema", "fail  database", "fail  audit log"]);
    stage.run(&["doctor", "--data", "none"]).ends(1, &["fail  data directory", "--data"]);
}

#[test]
fn what_waits_for_a_person_is_a_warning() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    let handoff = talk.offer("--needs-approval");
    talk.run(&format!("handoff reject {handoff} --by boss --reason no")).ok();
    talk.run("doctor --data data")
        .ends(0, &["warn  dead letters", "1 wait", "tasuki dead-letter list"]);
    broker.stop();
    let doctor = ["doctor", "--data", "data", "--url", "http://127.0.0.1:1"];
    stage.run(&doctor).ends(1, &["warn  dead letters", "1 wait", "1 failed"]);
}

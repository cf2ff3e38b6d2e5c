// SPDX-License-Identifier: Apache-2.0

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use tasuki_testing::stage::{Ran, Stage, Talk, text};

/// Runs the demo where nothing else puts its temporary files. Nothing of it may be left there.
fn demo(stage: &Stage, more: &[&str]) -> Ran {
    let tmp = stage.path("tmp");
    std::fs::create_dir_all(&tmp).unwrap();
    let mut command = stage.command(&[&["demo"], more].concat());
    // Its own broker must not hear what is meant for others.
    command.env("TMPDIR", &tmp).env("TASUKI_STORE", "postgres://nowhere");
    let began = Instant::now();
    let ran = Ran::of(command);
    assert!(began.elapsed() < Duration::from_secs(60), "{}", ran.out);
    let left: Vec<_> = std::fs::read_dir(&tmp).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    ran
}

fn kept(report: &Value) -> usize {
    let promises = report["promises"].as_array().unwrap();
    for one in promises {
        assert_eq!(one["kept"], true, "{one}");
    }
    promises.len()
}

#[test]
fn the_demo_keeps_what_it_promises_and_tells_it_as_it_goes() {
    let stage = Stage::new();
    let told = demo(&stage, &[]).ok();
    let parts = [
        "the receiver owns the task",
        "constraint_dropped",
        "constraint_altered",
        "reviewer-2 got it",
        "stale_claim",
        "attempt 3",
        "hint: add tests/data/users.json",
        "What `tasuki explain` says of the task:",
        "1. Where is it, and who owns it?",
        "5. What to do next?",
        "17 of 17 promises kept",
        "tasuki demo --chaos",
    ];
    let mut from = 0;
    for part in parts {
        let at = told[from..].find(part);
        from += at.unwrap_or_else(|| panic!("{part:?} is not there, or too early, in\n{told}"));
    }
    assert!(!told.contains("BROKEN"), "{told}");
}

#[test]
fn a_killed_broker_loses_nothing_that_it_acknowledged() {
    let stage = Stage::new();
    let report = demo(&stage, &["--chaos", "--json"]).json();
    assert_eq!(kept(&report), 20);
    assert_eq!((&report["ok"], &report["chaos"]), (&true.into(), &true.into()));
    assert_eq!(report["explained"]["constraints"]["hops"].as_array().unwrap().len(), 5);
}

#[test]
fn what_the_demo_left_can_be_looked_at() {
    let stage = Stage::new();
    let report = demo(&stage, &["--data", "kept", "--json"]).json();
    assert_eq!(kept(&report), 17);
    let broker = stage.broker("kept/data");
    let talk = Talk { stage: &stage, broker: &broker };
    let task = text(&report["task_id"]);
    talk.run(&format!("explain {task}")).ends(0, &["The task is completed"]);
    demo(&stage, &["--data", "kept"]).ends(1, &["kept", "not there yet"]);
}

/// A demo that has begun, the rest of what it says, and where its broker listens.
fn begun(stage: &Stage) -> (Child, BufReader<ChildStdout>, String) {
    std::fs::create_dir_all(stage.path("tmp")).unwrap();
    let mut command = stage.command(&["demo"]);
    command.env("TMPDIR", stage.path("tmp")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut told = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    told.read_line(&mut first).unwrap();
    let url = first.split_whitespace().find_map(|word| word.strip_prefix("http://"));
    let address = url.unwrap_or_else(|| panic!("{first}")).trim_end_matches(',').to_owned();
    (child, told, address)
}

fn process(id: u32) -> Pid {
    i32::try_from(id).ok().and_then(Pid::from_raw).unwrap()
}

#[test]
fn an_interrupted_demo_leaves_nothing_behind() {
    let stage = Stage::new();
    let (child, told, address) = begun(&stage);
    kill_process(process(child.id()), Signal::TERM).unwrap();
    drop(told);
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert!(std::fs::read_dir(stage.path("tmp")).unwrap().next().is_none());
    assert!(std::net::TcpStream::connect(address).is_err(), "its broker is still there");
}

#[cfg(target_os = "linux")]
#[test]
fn a_demo_that_cannot_keep_its_promises_fails_and_names_them() {
    let stage = Stage::new();
    let (mut child, mut told, _) = begun(&stage);
    let id = child.id();
    let threads = std::fs::read_dir(format!("/proc/{id}/task")).unwrap();
    let children =
        threads.filter_map(|it| std::fs::read_to_string(it.unwrap().path().join("children")).ok());
    let broker = children.collect::<String>();
    kill_process(process(broker.trim().parse().unwrap()), Signal::KILL).unwrap();
    let mut out = String::new();
    told.read_to_string(&mut out).unwrap();
    let err = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{out}{err}");
    for part in ["http://127.0.0.1", "the demo did not see that", "the task is completed"] {
        assert!(err.contains(part), "{part:?} is not in\n{err}");
    }
    assert!(!out.contains("17 of 17"), "{out}");
    assert!(std::fs::read_dir(stage.path("tmp")).unwrap().next().is_none());
}

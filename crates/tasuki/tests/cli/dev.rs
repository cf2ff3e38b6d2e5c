// SPDX-License-Identifier: Apache-2.0
//! A broker for trying things out, which leaves nothing behind.

use rustix::process::Signal;
use tasuki_testing::stage::{Broker, Ran, Stage, Talk};

fn left(stage: &Stage) -> usize {
    std::fs::read_dir(stage.path("tmp")).unwrap().count()
}

fn dev(stage: &Stage, arguments: &[&str]) -> std::process::Command {
    std::fs::create_dir_all(stage.path("tmp")).unwrap();
    let mut command = stage.command(&[&["dev"], arguments].concat());
    command.env("TMPDIR", stage.path("tmp"));
    command
}

#[test]
fn a_broker_for_trying_serves_greets_and_leaves_nothing() {
    let stage = Stage::new();
    // What is configured for other brokers is not meant for this one.
    stage.write("tasuki.toml", "listen = \"nonsense\"\n");
    let broker = Broker::start(dev(&stage, &["--port", "0"]));
    assert!(broker.greeting.contains("tasuki work --agent shouter"), "{}", broker.greeting);
    assert!(broker.greeting.contains("export TASUKI_URL="), "{}", broker.greeting);
    let talk = Talk { stage: &stage, broker: &broker };
    talk.offer("");
    assert_eq!(left(&stage), 1);
    broker.signal(Signal::TERM);
    let (status, said) = broker.end();
    assert!(status.success(), "{said}");
    assert_eq!(left(&stage), 0);
}

#[test]
fn a_broker_for_a_command_ends_with_it_and_as_it_did() {
    let stage = Stage::new();
    let tasuki = env!("CARGO_BIN_EXE_tasuki");
    let script = format!("{tasuki} ready && exit 7");
    Ran::of(dev(&stage, &["--", "sh", "-c", &script])).ends(7, &["ready"]);
    Ran::of(dev(&stage, &["--", "true"])).ends(0, &[]);
    Ran::of(dev(&stage, &["--", "./is-not-there"])).ends(2, &["cannot start ./is-not-there"]);
    assert_eq!(left(&stage), 0);
}

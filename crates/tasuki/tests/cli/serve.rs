// SPDX-License-Identifier: Apache-2.0

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use tasuki_testing::stage::{Broker, Ran, Stage, Talk};

#[test]
fn it_tells_where_it_is_and_that_it_is_ready() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let first = format!("tasuki {}\n", env!("CARGO_PKG_VERSION"));
    assert!(broker.greeting.starts_with(&first), "{}", broker.greeting);
    for path in ["/v1", "/docs", "/readyz"] {
        let url = format!("{}{path}\n", broker.url);
        assert!(broker.greeting.contains(&url), "{}", broker.greeting);
    }
    assert!(!broker.url.ends_with(":0"));
}

#[test]
fn with_json_the_greeting_is_one_document() {
    let stage = Stage::new();
    let mut command = stage.command(&["serve", "--listen", "127.0.0.1:0", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut from = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut from, &mut line).unwrap();
    // Before anything can fail, or it would stay.
    child.kill().unwrap();
    child.wait().unwrap();
    let greeting: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(greeting["status"], "ready");
    assert!(greeting["api"].as_str().unwrap().ends_with("/v1"));
}

#[test]
fn it_ends_with_whoever_holds_its_input_open() {
    let stage = Stage::new();
    let mut command = stage.command(&["serve", "--listen", "127.0.0.1:0", "--until-stdin-closes"]);
    command.stdin(Stdio::piped());
    let broker = Broker::start(command);
    Talk { stage: &stage, broker: &broker }.offer("");
    // Waiting for a child closes its input.
    let (status, said) = broker.end();
    assert!(status.success(), "{status}: {said}");
}

#[test]
fn a_signal_ends_long_waits_and_everything_is_kept() {
    for signal in [Signal::TERM, Signal::INT] {
        let stage = Stage::new();
        let broker = stage.broker("data");
        let talk = Talk { stage: &stage, broker: &broker };
        let handoff = talk.offer("");
        let before = talk.json("stats")["commands"].as_u64().unwrap();
        let claim = talk.command("handoff claim --agent nobody --wait 60s --json");
        let waiting = std::thread::spawn(move || Ran::of(claim));
        // A claim looks twice before it waits: once at first, once when it listens.
        while talk.json("stats")["commands"].as_u64().unwrap() < before + 2 {}
        broker.signal(signal);
        let (status, said) = broker.end();
        assert!(status.success(), "{status}: {said}");
        waiting.join().unwrap().ends(5, &["{\"claims\":[]}"]);

        let broker = stage.broker("data");
        let shown =
            Talk { stage: &stage, broker: &broker }.json(&format!("handoff show {handoff}"));
        assert_eq!(shown["state"], "pending");
    }
}

#[test]
fn a_second_signal_does_not_wait_for_anybody() {
    let stage = Stage::new();
    let mut broker = stage.broker("data");
    // A request that never ends: its body does not come.
    let mut stream = TcpStream::connect(broker.address()).unwrap();
    let head = "POST /v1/handoffs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                expect: 100-continue\r\ncontent-length: 100\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    // The broker asks for the body once it has begun with the request.
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 100");
    broker.signal(Signal::TERM);
    broker.wait_for_log("once more");
    broker.signal(Signal::TERM);
    let (status, _) = broker.end();
    assert_eq!(status.code(), Some(143));
}

#[test]
fn a_second_broker_keeps_its_hands_off() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let pid = format!("process {}", broker.pid());
    let second = ["serve", "--listen", "127.0.0.1:0", "--data", "data"];
    stage.run(&second).ends(75, &["in use", &pid, "--data"]);
    stage
        .run(&["serve", "--data", "other", "--listen", broker.address()])
        .ends(75, &["cannot listen on", "next:  tasuki serve --listen 127.0.0.1:"]);
    Talk { stage: &stage, broker: &broker }.offer("");
}

#[test]
fn an_address_that_others_reach_needs_authentication() {
    let stage = Stage::new();
    let open = ["serve", "--data", "data", "--listen", "0.0.0.0:0"];
    stage.run(&open).ends(2, &["without authentication", "--auth required"]);
    let broker = Broker::start(
        stage.command(&[&open[..], &["--auth", "required", "--behind-proxy"]].concat()),
    );
    drop(broker);
}

#[test]
fn measuring_without_sync_is_loud() {
    let stage = Stage::new();
    let listen = ["serve", "--data", "data", "--listen", "127.0.0.1:0", "--sync", "off"];
    let mut broker = Broker::start(stage.command(&listen));
    broker.wait_for_log("WARNING: sync is off");
}

#[test]
fn other_hosts_are_let_in_by_name() {
    let stage = Stage::new();
    let serve = ["serve", "--data", "data", "--listen", "127.0.0.1:0", "--host", "broker.example"];
    let broker = Broker::start(stage.command(&serve));
    let status = |host: &str| {
        let mut stream = TcpStream::connect(broker.address()).unwrap();
        let head = format!("GET /healthz HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(
        ["broker.example", "localhost:1", "evil.example"].map(status),
        ["200", "200", "421"]
    );
}

#[test]
fn log_lines_can_be_json() {
    let stage = Stage::new();
    let serve = ["serve", "--data", "data", "--listen", "127.0.0.1:0", "--log-format", "json"];
    let broker = Broker::start(stage.command(&serve));
    broker.signal(Signal::TERM);
    let (status, said) = broker.end();
    assert!(status.success());
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["message"] == "ended"), "{said}");
}

#[test]
fn damaged_data_is_not_served() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    Talk { stage: &stage, broker: &broker }.offer("");
    broker.stop();
    stage.write("data/tasuki.db", "no database at all");
    stage
        .run(&["serve", "--data", "data", "--listen", "127.0.0.1:0"])
        .ends(74, &["not a database", "next:  tasuki doctor"]);
}

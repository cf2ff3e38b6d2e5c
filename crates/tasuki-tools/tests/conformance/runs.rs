// SPDX-License-Identifier: Apache-2.0
//! Our own server keeps the whole protocol, and one that breaks a rule is found out: by the checks
//! that are about that rule, and by no others.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::sync::Mutex;
use std::thread;

use serde_json::Value;

use crate::breakages;
use crate::proxy::{broken, serve};
use tasuki_testing::stage::{Ran, Stage, text};

/// How many broken servers are looked at at the same time. Most of a run is waiting.
const AT_A_TIME: usize = 6;

fn tools(stage: &Stage, arguments: &[&str]) -> Ran {
    Ran::of(stage.tools(arguments))
}

fn run(stage: &Stage, url: &str, more: &[&str]) -> Ran {
    tools(stage, &[&["conformance", "run", "--target", url], more].concat())
}

fn report(ran: &Ran) -> Value {
    serde_json::from_str(&ran.out)
        .unwrap_or_else(|error| panic!("{error} in\n{}{}", ran.out, ran.err))
}

fn failed(report: &Value) -> BTreeSet<String> {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().filter(|check| check["ok"] == false).map(|check| text(&check["id"])).collect()
}

#[track_caller]
fn keeps_everything(stage: &Stage, url: &str) {
    let ran = run(stage, url, &["--format", "json"]);
    let report = report(&ran);
    let why: Vec<_> = report["checks"].as_array().unwrap().iter().map(|c| &c["failure"]).collect();
    assert!(failed(&report).is_empty(), "{:?}: {why:?}", failed(&report));
    assert_eq!((ran.code, &report["may_claim"]), (0, &"versioning".into()));
    assert!(report["passed"].as_u64().unwrap() >= 80, "{}", report["passed"]);
    for level in report["levels"].as_array().unwrap() {
        assert_eq!((&level["may_claim"], &level["failed"]), (&true.into(), &0.into()), "{level}");
    }
}

#[test]
fn our_own_server_keeps_everything_however_often_it_is_asked() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    // The second and the third at the same time: neither sees the other's work.
    keeps_everything(&stage, &broker.url);
    thread::scope(|scope| {
        scope.spawn(|| keeps_everything(&stage, &broker.url));
        keeps_everything(&stage, &broker.url);
    });
}

#[test]
fn our_own_server_keeps_everything_on_postgres() {
    let stage = Stage::new();
    let url = tasuki_testing::database();
    let broker = stage.broker_with("node", &["--store", &url]);
    keeps_everything(&stage, &broker.url);
}

#[test]
fn a_report_is_for_people_or_for_programs() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let level = ["--level", "versioning"];
    let said = run(&stage, &broker.url, &level).ends(0, &["14 of 14 checks pass", "not run"]);
    assert!(said.out.contains("No level of protocol 1 may be claimed"), "{}", said.out);
    let tap = run(&stage, &broker.url, &[&level[..], &["--format", "tap"]].concat()).ok();
    assert!(tap.starts_with("TAP version 14\n1..14\n"), "{tap}");
    assert_eq!(tap.matches("\nok ").count(), 14, "{tap}");
    let only = ["--only", "chain.*-lifts", "--json"];
    assert_eq!(report(&run(&stage, &broker.url, &only))["passed"], 2);
    run(&stage, &broker.url, &["--only", "nothing"]).ends(2, &["no check is chosen"]);
    tools(&stage, &["conformance", "list", "--level", "chain"]).ends(0, &["chain.links (C1)"]);
}

#[test]
fn a_suite_from_a_file_is_run_and_one_that_is_not_understood_is_not() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let suite = tools(&stage, &["conformance", "suite"]).ok();
    stage.write("suite.json", &suite);
    let from_file = ["--suite", "suite.json", "--only", "schema.payload-*"];
    let ran = run(&stage, &broker.url, &from_file).ends(0, &["3 of 3 checks pass"]);
    assert!(!ran.out.contains("brings along"), "{}", ran.out);
    stage.write("other.json", suite.replace("\"at_once\"", "\"at_twice\""));
    run(&stage, &broker.url, &["--suite", "other.json"]).ends(2, &["at_twice"]);
    run(&stage, &broker.url, &["--suite", "none.json"]).ends(2, &["none.json"]);
}

#[test]
fn a_suite_that_was_cut_down_proves_no_level() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let mut suite: Value =
        serde_json::from_str(&tools(&stage, &["conformance", "suite"]).ok()).unwrap();
    suite["checks"].as_array_mut().unwrap().truncate(3);
    stage.write("some.json", suite.to_string());
    let from_file = ["--suite", "some.json"];
    let words = "not the checks that this program brings along: no level";
    run(&stage, &broker.url, &from_file).ends(0, &["3 of 3 checks pass", words]);
    let found = report(&run(&stage, &broker.url, &["--suite", "some.json", "--json"]));
    assert_eq!((&found["own_suite"], &found["may_claim"]), (&false.into(), &Value::Null));
    for level in found["levels"].as_array().unwrap() {
        let complete = level["level"] == "schema";
        assert_eq!((&level["complete"], &level["may_claim"]), (&complete.into(), &false.into()));
    }
}

#[test]
fn the_target_is_the_broker_of_all_commands_if_no_other_is_named() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let only = ["conformance", "run", "--only", "schema.payload-text-refused", "--url"];
    tools(&stage, &[&only[..], &[&*broker.url]].concat()).ends(0, &["1 of 1 checks pass"]);
    let said = tools(&stage, &[&only[..], &["http://127.0.0.1:1"]].concat());
    said.ends(69, &["no broker answers", "--target"]);
}

#[test]
fn a_server_that_asks_who_each_agent_is_is_not_held_against_anything() {
    let stage = Stage::new();
    let broker = stage.broker_with("data", &["--auth", "required"]);
    let words = ["asks who each agent is", "takes names at their word"];
    let administrator = std::fs::read_to_string(stage.path("data/admin.token")).unwrap();
    for more in [&[][..], &["--token", administrator.trim()]] {
        let ran = run(&stage, &broker.url, more).ends(2, &words);
        assert!(ran.out.is_empty(), "{}", ran.out);
    }
}

/// What must be refused is refused by whoever refuses everything. That proves nothing, so every
/// check also asks for something that must be taken.
#[test]
fn whoever_refuses_everything_fails_every_check_that_does_anything() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    for breakage in breakages::quiet::NO_TO_EVERYTHING {
        let url = broken(broker.address(), *breakage);
        let report = report(&run(&stage, &url, &["--format", "json"]));
        let checks = report["checks"].as_array().unwrap().iter();
        let passed: Vec<_> =
            checks.filter(|check| check["ok"] == true).map(|check| text(&check["id"])).collect();
        // It reads, and does nothing else.
        assert_eq!(passed, ["schema.refusal-members-of-unknown"]);
    }
}

/// Runs every breakage, some at a time, and says where what failed is not what had to.
#[test]
fn whoever_breaks_a_rule_fails_the_checks_of_that_rule_and_no_others() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let queue = Mutex::new(breakages::all());
    let wrong = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let Some((name, breakage, fails)) = queue.lock().unwrap().next() else {
                        return;
                    };
                    let url = broken(broker.address(), *breakage);
                    let ran = run(&stage, &url, &["--format", "json"]);
                    let expected = fails.iter().map(|id| (*id).to_owned()).collect();
                    let found = failed(&report(&ran));
                    if found != expected || ran.code != 1 {
                        wrong.lock().unwrap().push((name, breakage, expected, found, ran.code));
                    }
                }
            });
        }
    });
    // What was beyond the rule may have waited too long beside all the others: it fails for this reason
    // if it does so by itself, too.
    let mut told = Vec::new();
    for (name, breakage, expected, mut found, code) in wrong.into_inner().unwrap() {
        found.retain(|id: &String| {
            expected.contains(id) || {
                let url = broken(broker.address(), *breakage);
                let ran = run(&stage, &url, &["--format", "json", "--only", id]);
                failed(&report(&ran)).contains(id)
            }
        });
        if found != expected || code != 1 {
            told.push(format!("{name}: {code} {found:#?}"));
        }
    }
    assert!(told.is_empty(), "{}", told.join("\n"));
}

#[test]
fn every_check_finds_something() {
    let found: BTreeSet<_> = breakages::all().flat_map(|(.., fails)| *fails).copied().collect();
    let listed = tools(&Stage::new(), &["conformance", "list", "--json"]).json();
    let ids = listed.as_array().unwrap().iter().map(|check| text(&check["id"]));
    let idle: Vec<_> = ids.filter(|id| !found.contains(&**id)).collect();
    assert!(idle.is_empty(), "no broken server fails {idle:?}");
}

#[test]
fn a_failure_says_which_step_what_was_expected_what_came_and_why_it_matters() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let (_, breakage, _) =
        breakages::all().find(|(name, ..)| *name == "errors have no hint").unwrap();
    let url = broken(broker.address(), *breakage);
    let only = ["--only", "schema.refusal-members"];
    let parts = ["step 1", "POST /v1/handoffs", "/hint: nothing is there", "invalid_request", "S4"];
    run(&stage, &url, &only).ends(1, &parts);
    let tap = run(&stage, &url, &[&only[..], &["--format", "tap"]].concat());
    tap.ends(1, &["not ok 1 - schema.refusal-members", "  ---\n  reason: ", "found: \"/hint"]);
}

#[track_caller]
fn fails_everything(url: &str, more: &[&str]) {
    let stage = Stage::new();
    let ran = run(&stage, url, &[&["--json", "--timeout", "300ms"], more].concat());
    let report = report(&ran);
    let all = report["checks"].as_array().unwrap().len();
    assert_eq!((ran.code, failed(&report).len()), (1, all));
    assert!(ran.out.len() < all * 4000, "{} bytes", ran.out.len());
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
}

/// Reads what comes until the other side has said all it wants to say for now.
fn heard(stream: &mut TcpStream) {
    let _ = stream.read(&mut [0; 65536]);
}

#[test]
fn a_server_that_speaks_garbage_fails_everything() {
    fails_everything(
        &serve(|mut stream| {
            heard(&mut stream);
            let _ = stream.write_all(b"SSH-2.0-nonsense\r\n\0\xff\xfe");
        }),
        &[],
    );
}

#[test]
fn whoever_stops_reading_is_no_reason_to_panic_and_what_failed_has_failed() {
    let stage = Stage::new();
    let (broker, hung_up) = (stage.broker("data"), serve(drop));
    for (url, code) in [(&broker.url, 0), (&hung_up, 1)] {
        let only = ["conformance", "run", "--only", "versioning.*", "--target", url];
        let mut command = stage.tools(&only);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!((ended.status.code(), &*said), (Some(code), ""));
    }
}

#[test]
fn a_server_that_answers_nonsense_with_a_good_status_fails_everything() {
    for body in ["null", "[[[[", "{}", "\"\u{1b}[2J\"", "{\"claims\":[],\"handoffs\":[]}"] {
        let url = serve(move |mut stream| {
            heard(&mut stream);
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
        });
        fails_everything(&url, &["--level", "schema", "--level", "chain"]);
    }
}

#[test]
fn a_server_that_hangs_fails_everything() {
    fails_everything(
        &serve(|mut stream| while stream.read(&mut [0; 4096]).is_ok_and(|bytes| bytes > 0) {}),
        &[],
    );
}

#[test]
fn a_server_that_hangs_up_fails_everything() {
    fails_everything(&serve(drop), &[]);
}

#[test]
fn a_server_that_never_stops_talking_fails_everything() {
    let url = serve(|mut stream| {
        heard(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(&[b' '; 65536]).is_ok() {}
    });
    fails_everything(&url, &["--level", "versioning"]);
}

#[test]
fn where_nobody_listens_nothing_is_checked() {
    let stage = Stage::new();
    run(&stage, "http://127.0.0.1:1", &[]).ends(69, &["no broker answers"]);
    run(&stage, "ftp://x", &[]).ends(2, &["is no broker's URL"]);
    run(&stage, "https://127.0.0.1:1", &[]).ends(69, &["no broker answers"]);
}

#[test]
fn a_server_that_speaks_tls_is_checked_like_any_other() {
    let stage = Stage::new();
    let broker = stage.broker_with("data", &["--tls", "self-signed"]);
    let level = ["--level", "versioning"];
    run(&stage, &broker.url, &level).ends(69, &["no broker answers"]);
    let known = [&level[..], &["--tls-ca", "data/tls.pem"]].concat();
    run(&stage, &broker.url, &known).ends(0, &["14 of 14 checks pass"]);
}

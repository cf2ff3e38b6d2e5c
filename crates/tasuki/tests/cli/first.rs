// SPDX-License-Identifier: Apache-2.0
//! What somebody meets who uses it for the first time.

use serde_json::Value;
use tasuki_testing::stage::{Broker, Ran, Stage, Talk, text};

#[test]
fn the_address_of_the_api_that_is_printed_can_be_opened() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let url = broker.greeting.lines().find_map(|line| line.strip_prefix("API:")).unwrap();
    let path = url.trim().strip_prefix(&broker.url).unwrap();
    let (status, body) = get(&broker, path);
    assert_eq!(status, 200);
    let links: Value = serde_json::from_str(&body).unwrap();
    for (name, link) in links["links"].as_object().unwrap() {
        if name == "events" {
            continue;
        }
        let (status, _) = get(&broker, link.as_str().unwrap());
        assert!(status == 200 || name == "dashboard" && status == 307, "{name}: {status}");
    }
}

fn get(broker: &Broker, path: &str) -> (u16, String) {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(broker.address()).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1.to_owned();
    (status, body)
}

#[test]
fn a_port_is_enough_to_listen_elsewhere() {
    let stage = Stage::new();
    let broker = Broker::start(stage.command(&["serve", "--port", "0"]));
    assert!(broker.url.starts_with("http://127.0.0.1:"));
    assert!(!broker.url.ends_with(":8788") && !broker.url.ends_with(":0"), "{}", broker.url);
    stage.run(&["serve", "--port", "70000"]).ends(2, &["--port"]);
}

#[test]
fn the_name_of_the_agent_is_said_once() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    let as_agent = |agent: &str, line: &str| {
        let mut command = talk.command(line);
        command.env("TASUKI_AGENT", agent);
        Ran::of(command)
    };
    as_agent("coder", "handoff offer --to reviewer --intent 'look at it'").ok();
    as_agent("reviewer", "handoff claim").ends(0, &["from:    coder", "look at it"]);
    talk.run("handoff offer --to reviewer --intent x").ends(2, &["--from <AGENT>"]);
    // An option says it against the environment.
    let offer = "handoff offer --from tester --to x --intent y --json";
    let offered = as_agent("coder", offer).json();
    let shown = talk.json(&format!("handoff show {}", text(&offered["handoff_id"])));
    assert_eq!(shown["from_agent"], "tester");
}

#[test]
fn an_offer_needs_no_payload_where_words_say_it_all() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    talk.run("handoff offer --from a --to b --intent 'Fix the login page.'").ok();
    let claimed = talk.json("handoff claim --agent b");
    assert_eq!(claimed["claims"][0]["envelope"]["intent"], "Fix the login page.");
    assert_eq!(claimed["claims"][0]["envelope"]["payload"]["type"], "request");
}

#[test]
fn the_log_shows_the_past_and_ends() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    talk.run("audit log").ok();
    let first = talk.offer("");
    let second = talk.offer("");
    let log = talk.run("audit log").ok();
    assert!(log.contains(&first) && log.contains(&second), "{log}");
    let log = talk.run(&format!("audit log --handoff {first}")).ok();
    assert!(log.contains(&first) && !log.contains(&second), "{log}");
    let after = talk.run("audit log --json").ok();
    let last: Value = serde_json::from_str(after.lines().last().unwrap()).unwrap();
    assert_eq!(talk.run(&format!("audit log --after {}", text(&last["position"]))).ok().trim(), "");
}

#[test]
fn a_handoffs_id_means_its_task_where_a_task_is_looked_at() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    let handoff = talk.offer("");
    let task = text(&talk.json(&format!("handoff show {handoff}"))["task_id"]);
    assert_eq!(talk.json(&format!("task show {handoff}"))["task_id"], task.as_str());
    assert_eq!(
        talk.json(&format!("task events {handoff}"))["events"][0]["record"]["task_id"],
        task.as_str()
    );
    // What decides about a task is told its name and does nothing.
    talk.run(&format!("task cancel {handoff} --by coder")).ends(2, &["a task is wanted", &task]);
    assert_eq!(talk.json(&format!("task show {task}"))["state"], "open");
}

#[test]
fn a_name_that_nobody_listens_to_is_told_at_once_with_the_nearest_names() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    talk.run("handoff claim --agent reviewer").ends(5, &[]);
    let offer = |to: &str| talk.run(&format!("handoff offer --from coder --to {to} --intent x"));
    offer("reveiwer").ends(0, &["nobody is there yet", "meant?:    reviewer"]);
    assert!(!offer("reviewer").ok().contains("nobody is there"));
    assert!(!offer("quite-another").ok().contains("meant?"));
}

#[test]
fn agents_that_are_connected_are_listed_with_a_manifest_or_without_one() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    assert_eq!(talk.run("agent list").ok(), "no agents\n");
    talk.run("handoff claim --agent reviewer --capability review").ends(5, &[]);
    talk.run("agent publish '{\"agent_id\":\"tester\"}'").ok();
    talk.run("agent list").ends(0, &["reviewer  active    yes", "tester"]);
    let live = talk.json("agent list --live");
    assert_eq!(live["agents"].as_array().unwrap().len(), 1, "{live}");
    assert_eq!(live["agents"][0]["agent_id"], "reviewer");
    assert_eq!(live["agents"][0]["version"], 0);
    // What an agent would have to have published, one without a manifest has not.
    assert_eq!(talk.run("agent list --capability review").ok(), "no agents\n");
}

#[test]
fn status_says_what_waits_what_is_wrong_and_what_to_do_next() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    talk.run("status").ends(0, &["ready", "wrong:     nothing", "tasuki handoff offer"]);
    let handoff = talk.offer("--attempts 1");
    let said = [
        "waiting:   1 for agent reviewer",
        "nobody listens for agent reviewer",
        "tasuki handoff ready",
    ];
    talk.run("status").ends(0, &said);
    talk.claim();
    talk.run("status").ends(0, &["under way: 1", "connected: reviewer", "wrong:     nothing"]);
    talk.run("handoff fail --type broken --message x --class permanent --hint y").ok();
    let said = ["1 dead letters wait for a decision", "next:      tasuki dead-letter list"];
    talk.run("status").ends(0, &said);
    assert_eq!(talk.json("status")["wrong"].as_array().unwrap().len(), 1);
    talk.run(&format!("dead-letter show {handoff}")).ok();
    broker.stop();
    stage.run(&["status", "--url", "http://127.0.0.1:1"]).ends(69, &["tasuki serve"]);
}

#[test]
fn what_a_task_spent_is_shown_with_it() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    let handoff = talk.offer("");
    talk.claim();
    let usage = "'{\"input_tokens\": 900, \"output_tokens\": 300, \"cost\": 0.02}'";
    talk.run(&format!("handoff complete --payload '{{\"type\":\"x\"}}' --usage {usage}")).ok();
    talk.run(&format!("task show {handoff}")).ends(0, &["1200 tokens, cost 0.02"]);
}

#[test]
fn help_shows_commands_by_what_one_wants_to_do() {
    let stage = Stage::new();
    let help = stage.run(&["--help"]).ok();
    for part in ["Start:", "Hand work over:", "See what happened:", "--json", "  status "] {
        assert!(help.contains(part), "{part} is not in\n{help}");
    }
    assert_eq!(help.matches("\n  serve ").count(), 1, "{help}");
    assert!(!help.contains("conformance"), "what is hidden stays hidden:\n{help}");
}

#[test]
fn the_usage_of_a_command_does_not_ask_for_what_was_given_or_is_known() {
    let stage = Stage::new();
    let mut command = stage.command(&["task", "show", "--url", "http://127.0.0.1:1"]);
    command.env("TASUKI_TOKEN", "tsk_x");
    let ran = Ran::of(command).ends(2, &["<TASK>", "Usage: tasuki task show [OPTIONS] <TASK>"]);
    assert!(!ran.err.contains("--url <URL>"), "{}", ran.err);
}

#[test]
fn a_terminal_shows_colours_and_how_long_ago_and_a_pipe_neither() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    talk.offer("");
    talk.claim();
    talk.run("handoff complete --payload '{\"type\":\"x\"}'").ok();
    let tasuki = env!("CARGO_BIN_EXE_tasuki");
    let on_terminal = |more: &str| {
        let mut command = std::process::Command::new("script");
        let line = format!("{tasuki} handoff list --url {} {more}", broker.url);
        command.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
        command.env("TERM", "xterm").env_remove("NO_COLOR");
        Ran::of(command).ok()
    };
    let seen = on_terminal("");
    assert!(seen.contains("\u{1b}[32mcompleted\u{1b}[0m") && seen.contains(" ago"), "{seen}");
    assert!(!on_terminal("--json").contains("\u{1b}["));
    let piped = talk.run("handoff list").ok();
    assert!(!piped.contains('\u{1b}') && !piped.contains(" ago"), "{piped}");
}

// SPDX-License-Identifier: Apache-2.0
//! `--json` everywhere: one document, the broker's own.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use tasuki_testing::stage::{Ran, Stage, Talk, text};

/// The commands of the reference that do something: those without verbs below them.
fn commands() -> BTreeSet<String> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/cli.md");
    let page = std::fs::read_to_string(page).unwrap();
    let names: Vec<_> = page
        .lines()
        .filter_map(|line| line.strip_prefix("### `tasuki ")?.strip_suffix('`'))
        .collect();
    let is_noun = |name: &str| names.iter().any(|other| other.starts_with(&format!("{name} ")));
    names.iter().filter(|name| !is_noun(name)).map(|name| (*name).to_owned()).collect()
}

/// Checks that a command prints one document, and notes that it was checked.
struct Checked<'t>(&'t Talk<'t>, BTreeSet<String>);

impl Checked<'_> {
    fn run(&mut self, line: &str) -> Value {
        let words = line.split(' ');
        let is_name = |word: &&str| {
            ["dead-letter", "put-back"].contains(word) || !word.contains(['-', '_', '@'])
        };
        let name: Vec<_> = words.take_while(is_name).collect();
        self.1.insert(name.join(" "));
        self.0.json(line)
    }
}

#[test]
fn every_command_prints_one_document() {
    let stage = Stage::new();
    stage.write("pipelines-1.json", PIPELINES);
    let broker = stage.broker_with("data", &["--pipelines", "pipelines-1.json"]);
    let talk = Talk { stage: &stage, broker: &broker };
    let mut checked = Checked(&talk, BTreeSet::new());
    what_is_said_while_work_goes_on(&mut checked, &talk);
    the_road_of_a_handoff(&mut checked, &talk);
    what_others_decide(&mut checked, &talk);
    everything_about_tasks(&mut checked);
    everything_about_chains(&mut checked, &talk);
    everything_about_patterns(&mut checked, &talk);
    everything_about_agents(&mut checked);
    everything_about_documents(&mut checked, &talk);
    checked.run("target pause load-tester --for 10m");
    checked.run("target resume load-tester");
    stage.write("who-may.json", r#"{"coder": [{"role": "worker"}]}"#);
    stage.write("cases.json", r#"[{"agent": "coder", "permission": "claim", "allowed": true}]"#);
    checked.run("agent check --rules who-may.json --cases cases.json");
    checked.run("alerts list");
    checked.run("alerts rules");
    checked.run("alerts silence --rule HandoffFailed --for 2h --reason known");
    checked.run("alerts unsilence --rule HandoffFailed --reason over");
    checked.run("alerts test");
    checked.run("ready");
    checked.run("status");
    checked.run("stats");
    checked.run("task tree last");
    checked.run("profile add local --url http://127.0.0.1:1");
    checked.run("profile use local");
    checked.run("profile list");
    checked.run("profile remove local");
    checked.run("audit denials");
    checked.run("audit verify");
    checked.run("audit export --to log.jsonl");
    checked.run("audit log --after 0 --max 1");
    checked.run("backup --data data --to backup.db");
    checked.run("restore --from backup.db --data restored");
    checked.run("rebuild --data restored");
    checked.run("token recover --data restored");
    checked.run("mcp config --client codex --agent coder");
    checked.run("doctor --data data");
    checked.run(&format!("migrate --from restored --to {}", tasuki_testing::database()));

    // These print a greeting, a play and a script, or speak a protocol; they have tests of their own.
    let elsewhere = ["serve", "dev", "demo", "work", "completions", "mcp"].map(String::from);
    checked.1.extend(elsewhere);
    let missing: Vec<_> = commands().difference(&checked.1).cloned().collect();
    assert!(missing.is_empty(), "not checked: {missing:?}");
}

fn what_is_said_while_work_goes_on(checked: &mut Checked<'_>, talk: &Talk<'_>) {
    talk.offer("");
    let (handoff, proof) = talk.claim();
    checked.run(&format!("handoff message {handoff} --by coder --text 'change of plan'"));
    checked.run(&format!("handoff attach {handoff} {proof} --name notes --text half"));
    let attached = checked.run(&format!("handoff artifacts {handoff}"));
    assert_eq!(attached["artifacts"][0]["name"], "notes");
    checked.run(&format!("handoff reserve {handoff} src/api {proof}"));
    checked.run(&format!("handoff unreserve {handoff} src/api {proof}"));
    checked.run(&format!("handoff ask {handoff} {proof} --text 'which branch?'"));
    let asked = checked.run("question list");
    assert_eq!(asked["questions"][0]["handoff_id"], handoff.as_str());
    checked.run(&format!("question answer {handoff} --by coder --answer '\"main\"'"));
    let (again, proof) = talk.claim();
    assert_eq!(again, handoff);
    checked.run(&format!("handoff put-back {handoff} {proof} --for 10m"));
    checked.run("handoff ready");
    talk.offer("");
    let (handoff, proof) = talk.claim();
    talk.run(&format!("handoff complete {handoff} {proof} --payload '{{\"type\":\"done\"}}'")).ok();
    checked.run(&format!("handoff retract {handoff} --by reviewer --reason wrong"));
    let handoff = talk.offer("");
    checked.run(&format!("handoff counter {handoff} --agent reviewer --attempts 5 --reason hard"));
    checked.run(&format!("handoff settle {handoff} --by coder --agent reviewer --refuse"));
    talk.run(&format!("handoff cancel {handoff} --by coder --reason enough")).ok();
    checked.run("agent breaker load-tester --failures 5 --open 30s");
    let task = text(&talk.json("task open --from coder --intent x")["task_id"]);
    checked.run(&format!("task complete {task} --by coder --payload '{{\"type\":\"x\"}}'"));
}

fn the_road_of_a_handoff(checked: &mut Checked<'_>, talk: &Talk<'_>) {
    let offer = "handoff offer --from coder --to reviewer --intent x --payload '{\"type\":\"x\"}'";
    let handoff = text(&checked.run(&format!("{offer} --attempts 2 --backoff 0ms"))["handoff_id"]);
    let peeked = checked.run("handoff peek --agent reviewer");
    assert_eq!(peeked["waiting"][0]["handoff_id"], handoff.as_str());
    checked.run("handoff claim --agent reviewer");
    checked.run(&format!("handoff show {handoff}"));
    checked.run(&format!("handoff envelope {handoff}"));
    let shown = checked.run(&format!("envelope show {handoff}"));
    assert_eq!(shown["intent"], "x");
    let explained = checked.run(&format!("explain {handoff}"));
    assert_eq!(explained["constraints"]["intact"], true);
    let compared = checked.run(&format!("envelope diff {handoff} {handoff}"));
    assert_eq!(compared["same_intent"], true);
    assert_eq!(compared["tokens"], serde_json::json!([]));
    assert!(compared["tokens_from"].as_u64() > Some(50));
    let bound = offer.replace("reviewer", "somebody");
    let bound = checked.run(&format!("{bound} --constraint Never."));
    let bound = checked.run(&format!("envelope show {}", text(&bound["handoff_id"])));
    let (task, rule) = (text(&bound["task_id"]), text(&bound["constraints"][0]["id"]));
    checked.run(&format!("task lift {task} {rule} --by coder --reason enough"));
    let found = checked.run(&format!("task bisect {} --fact x", text(&shown["task_id"])));
    assert_eq!(found["present"][0], 0);
    let put = checked.run("handoff assemble --from coder --intent x --ask y --max-tokens 900");
    assert_eq!(put["receipt"]["budget"], 900);
    checked.run("handoff list --state claimed --to reviewer --from coder");
    for verb in ["start", "heartbeat", "progress", "release"] {
        talk.offer("");
        let (handoff, proof) = talk.claim();
        checked.run(&format!("handoff {verb} {handoff} {proof}"));
    }
    let (handoff, proof) = talk.claim();
    let follow_up = "--follow-up '{\"to\":{\"agent\":\"tester\"},\"payload\":{\"type\":\"x\"}}'";
    let result = "--payload '{\"type\":\"done\"}'";
    checked.run(&format!("handoff complete {handoff} {proof} {result} {follow_up}"));
    checked.run(&format!("handoff wait {handoff}"));
    talk.offer("--attempts 1");
    let (handoff, proof) = talk.claim();
    checked.run(&format!(
        "handoff fail {handoff} {proof} --type x --message y --class permanent --hint z"
    ));
    checked.run("dead-letter list");
    checked.run(&format!("dead-letter show {handoff}"));
    checked.run(&format!("dead-letter redrive {handoff} --by coder"));
    let (handoff, proof) = talk.claim();
    talk.run(&format!(
        "handoff fail {handoff} {proof} --type x --message y --class permanent --hint z"
    ))
    .ok();
    checked.run(&format!("dead-letter discard {handoff} --by coder --reason enough"));
}

fn what_others_decide(checked: &mut Checked<'_>, talk: &Talk<'_>) {
    for verb in ["cancel", "abort"] {
        let handoff = talk.offer("");
        checked.run(&format!("handoff {verb} {handoff} --by coder --reason enough"));
    }
    for decision in ["approve", "reject --reason no"] {
        let handoff = talk.offer("--needs-approval");
        checked.run(&format!("handoff {decision} {handoff} --by boss"));
    }
    let handoff = talk.offer("");
    checked.run(&format!("handoff decline {handoff} --agent reviewer --reason busy"));
}

fn everything_about_tasks(checked: &mut Checked<'_>) {
    let open = "task open --from coder --intent x --idempotency-key k";
    let task = text(&checked.run(open)["task_id"]);
    assert_eq!(checked.run(open)["task_id"], task.as_str());
    checked.run(&format!("task show {task}"));
    checked.run("task list --state open --owner coder");
    checked.run(&format!("task events {task}"));
    checked.run(&format!("task cancel {task} --by coder --reason x"));
    // It ended as cancelled, which a wait tells by its exit code.
    let waited = checked.0.run(&format!("task wait {task} --json"));
    assert_eq!(waited.code, 1);
    serde_json::from_str::<Value>(&waited.out).unwrap();
    checked.1.insert("task wait".into());
}

const PIPELINES: &str = r#"{"pipelines": [{"name": "p-1", "version": 1, "first": "one", "stages": [
    {"name": "one", "to": {"agent": "first"}, "next": [{"to": "end"}]}]}]}"#;

fn everything_about_patterns(checked: &mut Checked<'_>, talk: &Talk<'_>) {
    checked.run("pipeline check pipelines-1.json");
    talk.stage.write("wrong.json", PIPELINES.replace("end", "nowhere"));
    let wrong = talk.run("pipeline check wrong.json");
    wrong.ends(2, &["/pipelines/0/stages/0/next/0/to", "there is no stage"]);
    assert_eq!(checked.run("pipeline list")["pipelines"][0]["name"], "p-1");
    let payload = "--from coder --intent x --payload '{\"type\":\"x\"}'";
    checked.run(&format!("pipeline start p-1 {payload}"));
    checked.run("channel subscribe news-1 --agent reviewer");
    checked.run("channel show news-1");
    let told = checked.run(&format!("channel publish news-1 {payload}"));
    checked.run("channel messages news-1");
    checked.run("channel unsubscribe news-1 --agent reviewer");
    let task = text(&told["task_id"]);
    let joined = talk.run(&format!("task join {task} --json"));
    assert_eq!(joined.code, 5, "nobody has answered yet");
    serde_json::from_str::<Value>(&joined.out).unwrap();
    checked.1.insert("task join".into());
    let dead = || {
        talk.offer("--attempts 1");
        let (handoff, proof) = talk.claim();
        let fail = "--type x --message y --class permanent --hint z --tries 2 --cause w";
        talk.run(&format!("handoff fail {handoff} {proof} {fail}")).ok();
        handoff
    };
    let letters = [dead(), dead(), dead(), dead()];
    assert_eq!(checked.run("dead-letter groups")["groups"][0]["count"], 4);
    checked.run(&format!("dead-letter take {} --by boss --for 1m", letters[0]));
    checked.run(&format!("dead-letter reroute {} --by boss --to tester", letters[0]));
    checked.run(&format!("dead-letter amend {} --by boss --ask again", letters[1]));
    checked.run(&format!("dead-letter answer {} --by boss --decision yes --about k", letters[2]));
    checked.run(&format!("dead-letter decide {} --by boss --abort enough --dry-run", letters[3]));
    checked.run(&format!("dead-letter decide {} --by boss --abort enough", letters[3]));
    checked.run("health");
    let clear = "--by coder --reason fine --source";
    let (handoff, _) = (talk.offer(""), ());
    let shown = talk.json(&format!("handoff show {handoff}"));
    let task = text(&shown["task_id"]);
    talk.run(&format!("task clear-taint {task} {clear} {handoff}")).ends(4, &["not tainted"]);
    checked.1.insert("task clear-taint".into());
}

fn everything_about_chains(checked: &mut Checked<'_>, talk: &Talk<'_>) {
    let handoff = talk.offer("");
    let task = text(&talk.json(&format!("handoff show {handoff}"))["task_id"]);
    checked.run(&format!("task export {task} --to chain-1.json"));
    checked.run(&format!("task branch {task} --hop 0 --by coder"));
    checked.run("chain verify chain-1.json");
    checked.run("chain show chain-1.json");
    let chain = text(&checked.run("chain import chain-1.json --by coder")["chain_id"]);
    checked.run("chain list");
    let fetched = checked.0.run(&format!("chain fetch {chain} --to chain-2.json --json"));
    serde_json::from_str::<Value>(&fetched.ok()).unwrap();
    checked.1.insert("chain fetch".into());
}

fn everything_about_agents(checked: &mut Checked<'_>) {
    checked.run("keys new --out some-key");
    checked.run("keys show some-key");
    checked.run("keys certificate --key some-key --out some-certificate");
    let join = text(&checked.run("agent invite new-coder")["text"]);
    checked.run(&format!("agent enroll new-coder --join {join} --out first-key"));
    let rotated = checked.run("keys rotate --agent new-coder --key first-key --out second-key");
    for key in rotated["keys"].as_array().unwrap() {
        checked.run(&format!("keys revoke {} --agent new-coder", text(&key["key_id"])));
    }
    checked.run("agent publish '{\"agent_id\":\"new-coder\"}'");
    checked.run("agent list");
    checked.run("agent rules new-coder --role worker --deny send:x");
    let token = text(&checked.run("token issue --agent new-coder --allow read")["token_id"]);
    checked.run("token list");
    checked.run(&format!("token revoke {token}"));
    for verb in ["show", "drain", "resume", "deregister"] {
        checked.run(&format!("agent {verb} new-coder"));
    }
    checked.run("tenant set some-tenant --in-flight 1");
    checked.run("tenant list");
}

#[test]
fn the_document_is_the_brokers_own_byte_for_byte() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    let handoff = talk.offer("");
    let printed = talk.run(&format!("handoff show {handoff} --json")).ok();

    let mut stream = TcpStream::connect(broker.address()).unwrap();
    let path = format!("/v1/handoffs/{handoff}");
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    assert_eq!(printed.trim_end(), body);
}

#[test]
fn claims_that_found_nothing_are_a_document_too() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    let Ran { code, out, .. } = talk.run("handoff claim --agent reviewer --json");
    assert_eq!((code, out.as_str()), (5, "{\"claims\":[]}\n"));
}

fn everything_about_documents(checked: &mut Checked<'_>, talk: &Talk<'_>) {
    checked.run("memory add --by coder --id ms-1 --text words --project web-shop");
    talk.json("memory add --by coder --id ms-2 --text others --project web-shop");
    checked.run("memory show ms-1 --detail summary");
    checked.run("memory edit ms-1 --by coder --text 'other words' --tag style");
    checked.run("memory list --project web-shop");
    checked.run("memory search other-words");
    checked.run("memory pin ms-1 --by coder");
    checked.run("memory unpin ms-1 --by coder");
    checked.run("memory erase ms-1 --by coder --revision 1 --reason private");
    checked.run("memory supersede ms-1 --with ms-2 --by coder");
    checked.run("memory delete ms-2 --by coder --reason wrong");
    checked.run("context write web-shop --by lead --state '{\"branch\":\"main\"}'");
    checked.run("context decide web-shop --by lead --question database --decision sqlite");
    checked.run("context show web-shop");
    let handoff = talk.offer("");
    talk.run(&format!("handoff cancel {handoff} --by coder --reason x")).ok();
    checked.run(&format!("handoff erase {handoff} --by admin --reason private"));
}

/// The file is looked at every second; how often the broker is asked meanwhile does not matter.
#[test]
fn pipelines_are_read_again_when_their_file_changes() {
    let stage = Stage::new();
    stage.write("p.json", PIPELINES);
    let broker = stage.broker_with("data", &["--pipelines", "p.json"]);
    let talk = Talk { stage: &stage, broker: &broker };
    let version = || talk.json("pipeline list")["pipelines"][0]["version"].as_u64().unwrap();
    assert_eq!(version(), 1);
    stage.write("p.json", PIPELINES.replace(r#""version": 1"#, r#""version": 2"#));
    assert!((0..5000).any(|_| version() == 2), "it was not read again");
}

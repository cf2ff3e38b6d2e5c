// SPDX-License-Identifier: Apache-2.0
//! What brokers of earlier releases wrote: it opens, it verifies, it shows what was there, and the
//! work that was under way goes on. `tests/fixtures/make` makes such data, once for each release.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use tasuki_testing::stage::{Broker, Ran, Stage, text};

/// How long after its broker was killed the old data is opened.
const AWAY_SECONDS: i64 = 5;
/// How long before its broker was killed the old data may have been looked at.
const LOOKED_BEFORE_MS: i64 = 5_000;
/// What tells of the moment in which it was asked for, and not of what is kept.
const PASSING: [&str; 7] = [
    "lease_left_ms",
    "work_left_ms",
    "ack_left_ms",
    "reset_in_ms",
    "live",
    "last_seen",
    "observed",
];

/// One folder of fixtures, unpacked.
struct Old {
    facts: Value,
    folder: PathBuf,
    stage: Stage,
    clock: [(&'static str, String); 3],
    /// How far that clock is ahead, in seconds.
    shift: i64,
}

impl Old {
    /// The data of every release on one kind of store.
    fn every(store: &str) -> Vec<Self> {
        let folders = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        let folders = std::fs::read_dir(folders).unwrap().map(|entry| entry.unwrap().path());
        let old: Vec<_> =
            folders.filter(|path| path.is_dir()).map(|path| Self::new(path, store)).collect();
        assert!(!old.is_empty());
        old
    }

    fn new(folder: PathBuf, store: &str) -> Self {
        let facts = std::fs::read_to_string(folder.join(format!("{store}.json"))).unwrap();
        let facts: Value = serde_json::from_str(&facts).unwrap();
        let stage = Stage::new();
        let mut unpack = Command::new("tar");
        unpack
            .arg("-xzf")
            .arg(folder.join(format!("{store}.tar.gz")))
            .arg("-C")
            .arg(stage.path(""));
        assert!(unpack.status().unwrap().success());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let shift = facts["made_at"].as_i64().unwrap() + AWAY_SECONDS - i64::try_from(now).unwrap();
        Self { clock: clock(shift), shift, facts, folder, stage }
    }

    /// The program, at the time at which the data was left behind: deadlines have not passed.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.stage.command(arguments);
        command.envs(self.clock.clone());
        command
    }

    fn serve(&self, more: &[&str]) -> Broker {
        let serve = ["serve", "--listen", "127.0.0.1:0", "--data", "data"];
        let pipelines = ["--pipelines", "pipelines.json"];
        Broker::start(self.command(&[&serve[..], &pipelines, more].concat()))
    }

    fn held(&self, name: &str) -> &Value {
        &self.facts["held"][name]
    }

    /// For how long the old broker is gone, by the clock of the new one.
    fn gone_ms(&self) -> i64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let now = i64::try_from(now).unwrap() + self.shift * 1000;
        now - self.facts["made_at"].as_i64().unwrap() * 1000
    }
}

/// The environment of a process whose clock is this many seconds ahead.
fn clock(shift: i64) -> [(&'static str, String); 3] {
    let library = ["x86_64", "aarch64"]
        .map(|cpu| format!("/usr/lib/{cpu}-linux-gnu/faketime/libfaketime.so.1"))
        .into_iter()
        .find(|path| Path::new(path).exists());
    let library = library.expect("the package faketime is installed; ./test does that");
    [
        ("LD_PRELOAD", library),
        ("FAKETIME", format!("{shift:+}s")),
        ("DONT_FAKE_MONOTONIC", "1".to_owned()),
    ]
}

/// Requests to a broker, as any client makes them.
struct Http<'b> {
    runtime: tokio::runtime::Runtime,
    client: reqwest::Client,
    broker: &'b Broker,
}

impl<'b> Http<'b> {
    fn to(broker: &'b Broker) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { runtime, client, broker }
    }

    fn sent(&self, request: reqwest::RequestBuilder) -> (u16, Value) {
        self.runtime.block_on(async {
            let answer = request.send().await.unwrap();
            (answer.status().as_u16(), answer.json().await.unwrap())
        })
    }

    #[track_caller]
    fn get(&self, path: &str) -> Value {
        let (status, answer) = self.sent(self.client.get(format!("{}{path}", self.broker.url)));
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.sent(self.client.post(format!("{}{path}", self.broker.url)).json(body))
    }

    /// Completes with a claim that the old broker gave.
    fn complete(&self, claim: &Value, payload: &Value) -> (u16, Value) {
        let body = json!({
            "claim_id": claim["claim_id"], "fence": claim["fence"], "payload": payload,
        });
        self.post(&format!("/v1/handoffs/{}/complete", text(&claim["handoff_id"])), &body)
    }

    /// Claims for an agent, with which the work of a pipeline comes to its next stage.
    #[track_caller]
    fn claim(&self, agent: &str) -> Value {
        let (status, answer) =
            self.post("/v1/claims", &json!({ "agent": agent, "wait_ms": 30_000 }));
        assert_eq!(status, 200, "{answer}");
        let claim = answer["claims"][0].clone();
        assert!(claim.is_object(), "there is nothing for {agent}");
        claim
    }
}

#[test]
fn a_data_directory_of_every_release_opens_and_its_work_goes_on() {
    for old in Old::every("embedded") {
        let verify = ["audit", "verify", "--data", "data"];
        Ran::of(old.command(&verify)).ends(0, &["intact"]);
        goes_on(&old, &[]);
        Ran::of(old.command(&verify)).ends(0, &["intact"]);
        keys_and_tokens_count(&old, &[]);
        Ran::of(old.command(&["rebuild", "--data", "data"])).ends(0, &["anew"]);
    }
}

#[test]
fn a_database_of_every_release_opens_and_its_work_goes_on() {
    for old in Old::every("postgres") {
        let mut unpack = Command::new("gzip");
        unpack.arg("-dc").arg(old.folder.join("postgres.sql.gz"));
        // What begins with a backslash is meant for `psql`.
        let sql: String = Ran::of(unpack)
            .ok()
            .lines()
            .filter(|line| !line.starts_with('\\'))
            .flat_map(|line| [line, "\n"])
            .collect();
        let server = scratch_postgres::Server::start_in(&old.clock);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let url = runtime.block_on(async {
            let url = server.database().await;
            server.run_sql(url.rsplit('/').next().unwrap(), &sql).await;
            url
        });
        goes_on(&old, &["--store", &url]);
        keys_and_tokens_count(&old, &["--store", &url]);
    }
}

/// Opens the data, looks at everything, and finishes what was under way, with a restart between.
fn goes_on(old: &Old, more: &[&str]) {
    let broker = old.serve(more);
    let http = Http::to(&broker);
    let verdict = http.get("/v1/audit/verify");
    assert_eq!(verdict["intact"], true, "{verdict}");
    assert!(verdict["events"].as_u64() >= old.facts["events"].as_u64(), "{verdict}");
    shows_what_was_there(old, &http);

    // The claim holds, and so does what was agreed.
    let careful = old.held("careful");
    let (status, refused) = http.complete(careful, &json!({ "type": "review" }));
    assert_eq!((status, &refused["code"]), (422, &json!("invalid_payload")), "{refused}");
    let (status, done) =
        http.complete(careful, &json!({ "type": "review", "verdict": "it is good" }));
    assert_eq!((status, &done["state"]), (200, &json!("completed")), "{done}");
    assert_eq!(http.get("/v1/reservations")["reservations"], json!([]));

    // The pipeline goes on from the stage that was claimed, also after another restart.
    let staged = old.held("staged");
    let (status, done) = http.complete(staged, &json!({ "type": "change" }));
    assert_eq!(status, 200, "{done}");
    drop(http);
    broker.stop();
    let broker = old.serve(more);
    let http = Http::to(&broker);
    for agent in ["reviewer", "unit-tester", "load-tester", "writer"] {
        let claim = http.claim(agent);
        let (status, done) = http.complete(&claim, &json!({ "type": "report" }));
        assert_eq!(status, 200, "{agent}: {done}");
    }
    let task = http.get(&format!("/v1/tasks/{}", text(&staged["task_id"])));
    assert_eq!(task["state"], "completed", "{task}");

    // What waited can be claimed, in its turn and not before.
    let patient = http.claim("patient");
    assert_eq!(patient["handoff_id"], *old.held("pending"));
    http.complete(&patient, &json!({ "type": "result" }));
    assert_eq!(http.claim("patient")["handoff_id"], *old.held("after"));
    let approved = format!("/v1/handoffs/{}/approve", text(old.held("approval")));
    assert_eq!(http.post(&approved, &json!({ "by": "boss" })).1["state"], "pending");

    // A request of then is the same request now.
    let first = json!({
        "from_agent": "lead", "to": { "agent": "one" }, "intent": "Build the page of the users.",
        "payload": { "type": "request" }, "idempotency_key": "first",
    });
    let (status, again) = http.post("/v1/handoffs", &first);
    assert_eq!(status, 200, "{again}");

    let task = text(&old.facts["tasks"]["tainted"]);
    let clear =
        json!({ "by": "lead", "source": old.facts["tasks"]["retracted"], "reason": "fine" });
    let (status, cleared) = http.post(&format!("/v1/tasks/{task}/clear-taint"), &clear);
    assert_eq!(status, 200, "{cleared}");
    assert_eq!(http.get("/v1/audit/verify")["intact"], true);
    drop(http);
    broker.stop();
}

/// Every list has what the old broker showed, member by member; there may be more to each.
fn shows_what_was_there(old: &Old, http: &Http<'_>) {
    for (name, path) in old.facts["pages"].as_object().unwrap() {
        let now = http.get(path.as_str().unwrap());
        let differs = difference(&old.facts["shown"][name], &now, old.gone_ms());
        assert_eq!(differs, None, "{name} of {}", old.folder.display());
    }
}

/// Where something that was there is missing or another.
fn difference(then: &Value, now: &Value, gone_ms: i64) -> Option<String> {
    match (then, now) {
        (Value::Object(then), Value::Object(now)) => then
            .iter()
            .filter(|(name, _)| !PASSING.contains(&name.as_str()))
            // A breaker that was open lets one through when its time is over.
            .filter(|(name, _)| {
                let open_ms = then.get("reset_in_ms").and_then(Value::as_i64).unwrap_or(i64::MAX);
                *name != "breaker"
                    || now[*name] != "half_open"
                    || gone_ms < open_ms - LOOKED_BEFORE_MS
            })
            // Every end was called "done" once; now only a result is.
            .filter(|(name, was)| {
                let ends = ["dead_lettered", "cancelled", "rejected", "failed"];
                let told_better = *was == "done"
                    && then["state"] != "completed"
                    && ends.iter().any(|end| now[*name] == *end);
                *name != "status" || !told_better
            })
            .find_map(|(name, then)| {
                let now = now.get(name).unwrap_or(&Value::Null);
                difference(then, now, gone_ms).map(|inner| format!("/{name}{inner}"))
            }),
        (Value::Array(then), Value::Array(now)) => {
            // The broker itself has said something since, perhaps to somebody who had no work yet.
            let name = |it: &Value| it.get("target").cloned();
            let new_target = |it: &Value| {
                name(it).is_some() && !then.iter().any(|known| name(known) == name(it))
            };
            let new = |it: &&Value| {
                let said = ["from_agent", "created_by", "opened_by", "owner"];
                let said = said.iter().any(|who| it[*who] == "broker");
                said && !then.contains(it) || new_target(it)
            };
            let now: Vec<_> = now.iter().filter(|it| !new(it)).collect();
            if then.len() != now.len() {
                return Some(format!(": had {}, has {}", then.len(), now.len()));
            }
            let mut pairs = then.iter().zip(now).enumerate();
            pairs.find_map(|(at, (then, now))| {
                difference(then, now, gone_ms).map(|inner| format!("/{at}{inner}"))
            })
        }
        // A place in the log was a number once; now it is a cursor, which ends in it.
        (Value::Number(then), Value::String(now)) if now.ends_with(&format!("-{then}")) => None,
        _ if then == now => None,
        _ => Some(format!(": was {then}, is {now}")),
    }
}

/// Who could show who it is then can do so now.
fn keys_and_tokens_count(old: &Old, more: &[&str]) {
    let broker = old.serve(&[more, &["--auth", "required"]].concat());
    let ask = |arguments: &[&str]| {
        let mut command = old.command(&[arguments, &["--url", &broker.url]].concat());
        command.env("TASUKI_TOKEN", old.facts["token"].as_str().unwrap());
        Ran::of(command)
    };
    ask(&["handoff", "claim", "--agent", "reviewer"]).ends(5, &[]);
    ask(&["handoff", "claim", "--agent", "reviewer", "--token", "tsk_no"]).ends(1, &["token"]);
    let offer = ["handoff", "offer", "--from", "coder", "--to", "reviewer", "--intent", "Look."];
    let signed = ["--payload", "{\"type\":\"x\"}", "--key", "coder.key"];
    ask(&[&offer[..], &signed].concat()).ok();
    ask(&["handoff", "claim", "--agent", "reviewer"]).ok();
    broker.stop();
}

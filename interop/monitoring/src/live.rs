// SPDX-License-Identifier: Apache-2.0
//! Brokers at work, watched by themselves and by a real Prometheus with Alertmanager.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use tasuki_testing::stage::{Broker, Stage, Talk};

use crate::hook::{Hook, Named};

/// How long something is waited for.
const PATIENCE: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(200);

/// A program that ends with its owner.
struct Program(Child);

impl Program {
    fn start(name: &str, arguments: &[String], log: &Path) -> anyhow::Result<Self> {
        let log = std::fs::File::create(log)?;
        let child = Command::new(name)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn();
        Ok(Self(child.with_context(|| format!("cannot start {name}: is its package installed?"))?))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Prometheus with our rules, and Alertmanager, which tells a webhook.
struct Watchers {
    prometheus: u16,
    _programs: Vec<Program>,
}

impl Watchers {
    fn start(stage: &Stage, brokers: &[&Broker], hook: &Hook) -> anyhow::Result<Self> {
        let (prometheus, manager) = (free_port()?, free_port()?);
        stage.write("tasuki.rules.yml", stage.run(&["alerts", "rules"]).ok());
        let targets: Vec<_> =
            brokers.iter().map(|broker| format!("\"{}\"", broker.address())).collect();
        let config = format!(
            "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\n\
             rule_files: [tasuki.rules.yml]\n\
             alerting: {{ alertmanagers: [{{ static_configs: [{{ targets: [\"127.0.0.1:{manager}\"] }}] }}] }}\n\
             scrape_configs:\n  - {{ job_name: tasuki, static_configs: [{{ targets: [{}] }}] }}\n",
            targets.join(", ")
        );
        stage.write("prometheus.yml", config);
        let config = format!(
            "route: {{ receiver: hook, group_by: ['...'], group_wait: 0s, group_interval: 1s, \
             repeat_interval: 1h }}\n\
             receivers: [{{ name: hook, webhook_configs: [{{ url: '{}' }}] }}]\n",
            hook.url
        );
        stage.write("alertmanager.yml", config);
        let at = |name: &str| stage.path(name).display().to_string();
        let manager = Program::start(
            "prometheus-alertmanager",
            &[
                format!("--config.file={}", at("alertmanager.yml")),
                format!("--storage.path={}", at("alertmanager")),
                format!("--web.listen-address=127.0.0.1:{manager}"),
                "--cluster.listen-address=".into(),
            ],
            &stage.path("alertmanager.log"),
        )?;
        let watcher = Program::start(
            "prometheus",
            &[
                format!("--config.file={}", at("prometheus.yml")),
                format!("--storage.tsdb.path={}", at("prometheus")),
                format!("--web.listen-address=127.0.0.1:{prometheus}"),
            ],
            &stage.path("prometheus.log"),
        )?;
        Ok(Self { prometheus, _programs: vec![watcher, manager] })
    }

    /// Whether Prometheus has a series, and how many brokers it has it from.
    fn has(&self, query: &str) -> usize {
        let url = format!("http://127.0.0.1:{}/api/v1/query", self.prometheus);
        let asked = Command::new("curl")
            .args(["-sG", "--max-time", "5", &url, "--data-urlencode"])
            .arg(format!("query={query}"))
            .output();
        let Ok(answered) = asked else { return 0 };
        let answer: serde_json::Value =
            serde_json::from_slice(&answered.stdout).unwrap_or_default();
        answer["data"]["result"].as_array().map_or(0, Vec::len)
    }
}

/// Waits until something is so.
fn until(what: &str, is_so: impl Fn() -> bool) -> anyhow::Result<()> {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        if Instant::now() > end {
            bail!("{what}: not within {PATIENCE:?}");
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// A handoff that one attempt ends.
fn fail(talk: &Talk<'_>, to: &str, class: &str) {
    let offered = talk.json(&format!(
        "handoff offer --from planner --to {to} --intent 'look at it' --attempts 1 \
         --payload '{{\"type\":\"code\"}}'"
    ));
    let id = offered["handoff_id"].as_str().unwrap().to_owned();
    let claims = talk.json(&format!("handoff claim --agent {to}"));
    let claim = &claims["claims"][0];
    let (number, fence) = (claim["claim_id"].as_str().unwrap(), &claim["fence"]);
    let hint = if class == "permanent" { "--hint 'ask for less'" } else { "" };
    talk.run(&format!(
        "handoff fail {id} --claim {number} --fence {fence} --class {class} --type broken \
         --message 'it does not work' {hint}"
    ))
    .ok();
}

/// What goes wrong: a breaker opens, and somebody else fails once.
fn go_wrong(talks: &[Talk<'_>]) {
    for number in 0..3 {
        fail(&talks[number % talks.len()], "coder", "retryable");
    }
    fail(&talks[0], "tester", "permanent");
}

fn expected() -> Vec<Named> {
    let named = |rule: &str, target: &str, severity: &str| {
        (rule.to_owned(), target.to_owned(), severity.to_owned())
    };
    vec![
        named("HandoffCircuitOpen", "agent:coder", "critical"),
        named("HandoffConsecutiveFailures", "agent:coder", "warning"),
        named("HandoffFailed", "agent:coder", "info"),
        named("HandoffFailed", "agent:tester", "info"),
    ]
}

fn compare(what: &str, stage: &Stage, brokers: &[&Broker], own: &Hook) -> anyhow::Result<()> {
    let theirs = Hook::open()?;
    let watchers = Watchers::start(stage, brokers, &theirs)?;
    let talks: Vec<_> = brokers.iter().map(|broker| Talk { stage, broker }).collect();
    for agent in ["coder", "tester"] {
        talks[0].run(&format!("agent publish '{{\"agent_id\":\"{agent}\"}}'")).ok();
    }
    // The first failure must be an increase: it is seen only because the series is there at 0.
    for agent in ["coder", "tester"] {
        let query = format!(
            "handoff_terminal_total{{target=\"agent:{agent}\",outcome=\"dead_lettered\"}} == 0"
        );
        until(&query, || watchers.has(&query) == brokers.len())?;
    }
    go_wrong(&talks);
    let names = |hook: &Hook| hook.firing().into_keys().collect::<Vec<_>>();
    let complete = |hook: &Hook| expected().iter().all(|alert| names(hook).contains(alert));
    until("the brokers' own notices", || complete(own))?;
    until("those of Alertmanager", || complete(&theirs))?;
    // Rates have to be high for five minutes, and that is not waited for here.
    assert_eq!(names(own), expected(), "{what}: the brokers' own");
    assert_eq!(names(&theirs), expected(), "{what}: Alertmanager's");
    let often: Vec<_> = own.firing().into_iter().filter(|(_, count)| *count != 1).collect();
    assert!(often.is_empty(), "{what}: told more than once: {often:?}");
    println!("{what}: the same {} alerts, each told once", expected().len());
    Ok(())
}

fn arguments(hook: &Hook) -> Vec<String> {
    let arguments = ["--alert-webhook", &hook.url, "--webhook-allow", "127.0.0.0/8"];
    arguments.iter().map(|it| (*it).to_owned()).collect()
}

pub(crate) fn one_broker_tells_what_prometheus_does() -> anyhow::Result<()> {
    let stage = Stage::new();
    let own = Hook::open()?;
    let arguments = arguments(&own);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let broker = stage.broker_with("data", &arguments);
    compare("one broker", &stage, &[&broker], &own)?;
    check_metrics(&broker)
}

pub(crate) fn two_brokers_tell_it_once() -> anyhow::Result<()> {
    let stage = Stage::new();
    let own = Hook::open()?;
    let store = tasuki_testing::database();
    let mut arguments = arguments(&own);
    arguments.extend(["--store".to_owned(), store]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let first = stage.broker_with("first", &arguments);
    let second = stage.broker_with("second", &arguments);
    compare("two brokers", &stage, &[&first, &second], &own)
}

/// What Prometheus' own linter says of our metrics.
fn check_metrics(broker: &Broker) -> anyhow::Result<()> {
    let scraped =
        Command::new("curl").args(["-sf", &format!("{}/metrics", broker.url)]).output()?;
    anyhow::ensure!(scraped.status.success(), "/metrics cannot be read");
    let mut linter = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut input = linter.stdin.take().context("it has an input")?;
    std::io::Write::write_all(&mut input, &scraped.stdout)?;
    drop(input);
    let said = linter.wait_with_output()?;
    let text = String::from_utf8_lossy(&said.stdout) + String::from_utf8_lossy(&said.stderr);
    anyhow::ensure!(said.status.success() && text.trim().is_empty(), "promtool: {text}");
    println!("promtool check metrics: clean");
    Ok(())
}

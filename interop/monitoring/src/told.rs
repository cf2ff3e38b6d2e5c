// SPDX-License-Identifier: Apache-2.0
//! Rule by rule, on a clock that is told: events are measured and evaluated as the broker does it, and
//! the series that come of it are given to `promtool`, which must find the same alerts at the same times.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::process::Command;

use anyhow::Context;
use serde_json::{Value, json};
use tasuki_core::alert::{Test, Watch, rules};
use tasuki_core::event::Sealed;
use tasuki_core::meter::exposition::{self, Form};
use tasuki_core::{Hash, Position, Record, Timestamp};

/// How often the series are sampled, and the time of the first sample.
const EVERY_S: u64 = 15;
const BEGIN: i64 = 1_800_000_000_000;

/// What happens, second by second, and when the alerts are compared.
struct Play {
    name: &'static str,
    events: BTreeMap<u64, Vec<Value>>,
    probes_s: Vec<u64>,
    handoffs: u128,
}

impl Play {
    fn new(name: &'static str, probes_s: &[u64]) -> Self {
        Self { name, events: BTreeMap::new(), probes_s: probes_s.to_vec(), handoffs: 0 }
    }

    fn at(&mut self, second: u64, handoff: u128, event: Value) {
        let id = tasuki_core::HandoffId(handoff).to_string();
        let task = tasuki_core::TaskId(handoff).to_string();
        let at = Timestamp(BEGIN).plus_ms(second * 1000).to_string();
        let mut record = json!({
            "v": 1, "task_id": task, "index": 0, "handoff_id": id, "at": at, "actor": "broker",
        });
        let Value::Object(members) = event else { panic!("no event: {event}") };
        record.as_object_mut().unwrap().extend(members);
        self.events.entry(second).or_default().push(record);
    }

    fn offer(&mut self, second: u64, hop: u32, contract: Value) -> u128 {
        self.handoffs += 1;
        let terms = serde_json::to_value(tasuki_core::Terms::default()).unwrap();
        let expires = Timestamp(BEGIN).plus_ms(1_000_000_000).to_string();
        let mut offered = json!({
            "kind": "transfer_offered", "from": "planner", "to": { "agent": "coder" },
            "envelope": Hash::ZERO, "hop": hop, "priority": 5, "terms": terms,
            "expires_at": expires,
        });
        if !contract.is_null() {
            offered["contract"] = contract;
        }
        self.at(second, self.handoffs, offered);
        self.handoffs
    }

    fn claim(&mut self, second: u64, handoff: u128) {
        let until = Timestamp(BEGIN).plus_ms(1_000_000_000).to_string();
        let claimed = json!({
            "kind": "claimed", "agent": "coder", "fence": 1, "attempt": 1, "lease_ms": 60_000,
            "claim_id": tasuki_core::ClaimId(handoff).to_string(), "hard_until": until,
        });
        self.at(second, handoff, claimed);
    }

    fn fail(&mut self, second: u64) {
        let handoff = self.offer(second, 1, Value::Null);
        self.claim(second, handoff);
        let (class, failure) = ("permanent", Hash::ZERO);
        let failed = json!({
            "kind": "attempt_failed", "fence": 1, "class": class, "failure": failure,
        });
        self.at(second, handoff, failed);
        let dead = json!({
            "kind": "dead_lettered", "reason": "permanent_failure", "against": { "agent": "coder" },
            "limits": { "failures": 3, "open_ms": 60_000 },
        });
        self.at(second, handoff, dead);
    }

    fn complete(&mut self, second: u64, hop: u32) {
        let handoff = self.offer(second, hop, Value::Null);
        self.claim(second, handoff);
        self.at(second, handoff, json!({ "kind": "completed", "fence": 1, "result": Hash::ZERO }));
    }

    fn fill(&mut self, second: u64, tokens: u64, completeness: u64) {
        let fill = json!({
            "token_count": tokens, "budget": 1000, "completeness_per_mille": completeness,
        });
        self.offer(second, 1, json!({ "fill": fill }));
    }

    fn drop_constraint(&mut self, second: u64) {
        let denied = json!({
            "kind": "registry_changed", "change": "access_denied", "agent": "coder",
            "code": "constraint_dropped", "operation": "handoff_complete",
        });
        self.at(second, 1, denied);
    }
}

/// A play for each rule, with times of comparison that are no closer to a change than a sample is long.
fn plays() -> Vec<Play> {
    let mut single = Play::new("one dead letter", &[60, 180, 705]);
    single.fail(120);
    let mut steady = Play::new("failures that go on", &[240, 795, 1095, 1500, 3900]);
    (60..=900).step_by(30).for_each(|second| steady.fail(second));
    let mut context = Play::new("less and less context", &[105, 255, 600, 1500]);
    (60..=700).step_by(20).for_each(|second| context.fill(second, 500, 700));
    (720..=1800).step_by(20).for_each(|second| context.fill(second, 500, 900));
    let mut full = Play::new("budgets that are full", &[795, 1200]);
    (60..=1500).step_by(20).for_each(|second| full.fill(second, 980, 1000));
    let mut bound = Play::new("a constraint that was dropped", &[60, 180, 705]);
    bound.drop_constraint(120);
    let day = 24 * 60 * 60;
    let mut deep = Play::new("chains that grow", &[3000, day + 2400]);
    (30..=3600).step_by(60).for_each(|second| deep.complete(second, 2));
    (day + 30..=day + 3000).step_by(60).for_each(|second| deep.complete(second, 5));
    vec![single, steady, context, full, bound, deep]
}

/// Which alerts fire at a time: rule and target.
type Firing = BTreeSet<(String, Option<String>)>;

/// The series as they are sampled, and the alerts at the times of comparison.
type Played = (BTreeMap<String, Vec<String>>, Vec<(u64, Firing)>);

fn played(play: &Play) -> anyhow::Result<Played> {
    let mut watch = Watch::default();
    watch.registers(&tasuki_core::Target::Agent("coder".parse()?));
    let mut series: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let expressions: String = rules::RULES.iter().map(rules::Rule::expression).collect();
    let mut compared = Vec::new();
    let mut events = play.events.iter().peekable();
    let mut position = 0;
    let last = play.probes_s.iter().max().context("it is compared at some time")?;
    for second in (0..=last + EVERY_S).step_by(EVERY_S as usize) {
        while let Some((_, records)) = events.next_if(|(at, _)| **at <= second) {
            for record in records {
                position += 1;
                let record: Record = serde_json::from_value(record.clone())
                    .with_context(|| format!("no event: {record}"))?;
                let position = Position(position);
                watch.note(&Sealed { position, previous: None, hash: Hash::ZERO, record });
            }
        }
        let now = Timestamp(BEGIN).plus_ms(second * 1000);
        watch.until(now);
        let text = exposition::write(watch.meters.samples(now, None), Form::Prometheus);
        for line in text.lines().filter(|line| is_asked_for(line, &expressions)) {
            let (name, value) = line.rsplit_once(' ').context("a line has a value")?;
            series.entry(name.to_owned()).or_default().push(value.to_owned());
        }
        if play.probes_s.contains(&second) {
            let firing = watch.standing().filter(|(.., it)| it.fires_since.is_some());
            let named = firing.map(|(rule, target, _)| (rule.name.to_owned(), target));
            compared.push((second, named.collect()));
        }
    }
    anyhow::ensure!(compared.len() == play.probes_s.len(), "a time is between two samples");
    Ok((series, compared))
}

/// Whether a rule looks at a series; all of them would be too many for a day.
fn is_asked_for(line: &str, expressions: &str) -> bool {
    let name = line.split(['{', ' ']).next().unwrap_or_default();
    let plain = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
    let plain = plain.unwrap_or(name);
    !line.starts_with('#') && expressions.contains(plain)
}

pub(crate) fn every_rule_fires_when_prometheus_says_so() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    std::fs::write(dir.path().join("tasuki.rules.yml"), rules::file())?;
    let mut fired = BTreeSet::new();
    let mut tests =
        String::from("rule_files: [tasuki.rules.yml]\nevaluation_interval: 15s\ntests:\n");
    for play in plays() {
        let (series, compared) = played(&play)?;
        write!(tests, "  - interval: {EVERY_S}s\n    name: {}\n    input_series:\n", play.name)?;
        for (name, values) in &series {
            // Two brokers show the same, which must not count twice.
            for instance in ["a", "b"] {
                let (family, labels) =
                    name.trim_end_matches('}').split_once('{').unwrap_or((name, ""));
                let all = [labels, &format!("instance=\"{instance}\"")].join(",");
                let all = all.trim_start_matches(',');
                let values = values.join(" ");
                write!(tests, "      - series: '{family}{{{all}}}'\n        values: '{values}'\n")?;
            }
        }
        tests.push_str("    alert_rule_test:\n");
        for (second, firing) in &compared {
            fired.extend(firing.iter().map(|(rule, _)| rule.clone()));
            for rule in rules::RULES.iter().filter(|rule| rule.is_built_in()) {
                write!(tests, "      - eval_time: {second}s\n        alertname: {}\n", rule.name)?;
                let about: Vec<_> = firing.iter().filter(|(name, _)| name == rule.name).collect();
                if about.is_empty() {
                    tests.push_str("        exp_alerts: []\n");
                    continue;
                }
                tests.push_str("        exp_alerts:\n");
                for (_, target) in about {
                    let labels = target.as_ref().map(|it| format!(", target: '{it}'"));
                    let before = target.as_ref().map(|it| format!("{it}: ")).unwrap_or_default();
                    write!(
                        tests,
                        "          - exp_labels: {{ severity: {}{} }}\n            \
                         exp_annotations: {{ summary: '{before}{}', description: '{}' }}\n",
                        rule.severity,
                        labels.unwrap_or_default(),
                        rule.summary,
                        rule.action
                    )?;
                }
            }
        }
    }
    let missing = rules::RULES.iter().filter(|rule| rule.test != Test::Down);
    let missing: Vec<_> = missing.filter(|rule| !fired.contains(rule.name)).collect();
    anyhow::ensure!(missing.is_empty(), "no play makes these fire: {missing:?}");
    std::fs::write(dir.path().join("tests.yml"), tests)?;
    for arguments in [&["check", "rules", "tasuki.rules.yml"], &["test", "rules", "tests.yml"]] {
        let said = Command::new("promtool").args(arguments).current_dir(dir.path()).output();
        let said = said.context("cannot start promtool: is the package prometheus installed?")?;
        let text = String::from_utf8_lossy(&said.stdout) + String::from_utf8_lossy(&said.stderr);
        anyhow::ensure!(said.status.success(), "promtool {}: {text}", arguments.join(" "));
    }
    println!(
        "promtool finds the same alerts in {} plays, of all {} rules",
        plays().len(),
        fired.len()
    );
    Ok(())
}

// SPDX-License-Identifier: Apache-2.0
//! What came of a run: for people, as TAP 14 and as JSON. Pure.

use std::fmt::Write;
use std::time::Duration;

use serde::Serialize;

use super::suite::{Check, LEVELS, Suite};

/// What came of one check.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) number: usize,
    pub(crate) failed: Option<Failed>,
    pub(crate) took: Duration,
}

/// Where a check ended, and why.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Failed {
    /// Which step it was, counted from 1.
    pub(crate) step: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request: Option<String>,
    /// What was expected and what was found, place by place.
    pub(crate) findings: Vec<String>,
    /// The answer, as far as it is worth reading.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) came: Option<String>,
}

impl Failed {
    pub(crate) fn of(finding: String) -> Self {
        Self { findings: vec![finding], ..Self::default() }
    }
}

impl From<String> for Failed {
    fn from(finding: String) -> Self {
        Self::of(finding)
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    target: String,
    suite: String,
    protocol: u32,
    /// Whether these are the checks that this program brings along. Others prove no level.
    own_suite: bool,
    pub(crate) ok: bool,
    passed: usize,
    failed: usize,
    /// The highest level that may be claimed, if any.
    may_claim: Option<&'static str>,
    levels: Vec<Level>,
    checks: Vec<Checked>,
}

#[derive(Debug, Serialize)]
struct Level {
    level: &'static str,
    passed: usize,
    failed: usize,
    /// Whether the level has checks and all of them were run.
    complete: bool,
    may_claim: bool,
}

#[derive(Debug, Serialize)]
struct Checked {
    id: String,
    level: String,
    title: String,
    reason: String,
    rule: String,
    ok: bool,
    ms: u128,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Failed>,
}

impl Report {
    pub(crate) fn of(suite: &Suite, own_suite: bool, target: &str, outcomes: Vec<Outcome>) -> Self {
        let checks: Vec<_> = outcomes
            .into_iter()
            .map(|outcome| Checked::of(&suite.checks[outcome.number], outcome))
            .collect();
        let count = |level: &str, ok: bool| {
            checks.iter().filter(|check| check.level == level && check.ok == ok).count()
        };
        let mut holds = own_suite;
        let levels: Vec<_> = LEVELS
            .into_iter()
            .map(|level| {
                let all = suite.checks.iter().filter(|check| check.level == level).count();
                let (passed, failed) = (count(level, true), count(level, false));
                // Of a level without checks nothing is known.
                let complete = all > 0 && passed + failed == all;
                // A level is kept with those before it, or not at all.
                holds = holds && complete && failed == 0;
                Level { level, passed, failed, complete, may_claim: holds }
            })
            .collect();
        let failed = checks.iter().filter(|check| !check.ok).count();
        Self {
            target: target.to_owned(),
            suite: suite.suite.clone(),
            protocol: suite.protocol,
            own_suite,
            ok: failed == 0 && !checks.is_empty(),
            passed: checks.len() - failed,
            failed,
            may_claim: levels.iter().rev().find(|level| level.may_claim).map(|level| level.level),
            levels,
            checks,
        }
    }

    pub(crate) fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report is made of JSON")
    }

    /// The Test Anything Protocol, version 14.
    pub(crate) fn tap(&self) -> String {
        let mut text = format!("TAP version 14\n1..{}\n", self.checks.len());
        let _ = writeln!(text, "# target {}", line(&self.target));
        for (number, check) in self.checks.iter().enumerate() {
            let not = if check.ok { "" } else { "not " };
            let title = escaped(&check.title);
            let _ = writeln!(text, "{not}ok {} - {}: {title}", number + 1, escaped(&check.id));
            let Some(failure) = &check.failure else { continue };
            let _ = writeln!(text, "  ---");
            let mut fact = |name: &str, value: &str| {
                // A text of JSON is a text of YAML.
                let value = serde_json::Value::from(value);
                let _ = writeln!(text, "  {name}: {value}");
            };
            fact("reason", &check.reason);
            fact("rule", &check.rule);
            fact("step", &failure.step.to_string());
            if let Some(request) = &failure.request {
                fact("request", request);
            }
            fact("found", &failure.findings.join("; "));
            if let Some(came) = &failure.came {
                fact("came", came);
            }
            let _ = writeln!(text, "  ...");
        }
        for level in &self.levels {
            let Level { level, passed, failed, .. } = level;
            let _ = writeln!(text, "# {level}: {passed} passed, {failed} failed");
        }
        let _ = writeln!(text, "# {}", self.claim());
        text
    }

    pub(crate) fn for_people(&self) -> String {
        let mut text = String::new();
        for check in self.checks.iter().filter(|check| !check.ok) {
            let _ = writeln!(text, "FAIL {}: {}", check.id, check.title);
            let _ = writeln!(text, "     why it matters: {} (rule {})", check.reason, check.rule);
            let Some(failure) = &check.failure else { continue };
            let request = failure.request.as_deref().unwrap_or("what is known by then");
            let _ = writeln!(text, "     step {}, {request}:", failure.step);
            for finding in &failure.findings {
                let _ = writeln!(text, "       {}", line(finding));
            }
            if let Some(came) = &failure.came {
                let _ = writeln!(text, "     the answer: {}", line(came));
            }
        }
        for level in &self.levels {
            let Level { level, passed, failed, complete, may_claim } = level;
            let note = match (passed + failed, complete, may_claim) {
                (0, ..) => "not run",
                (_, false, _) => "not all of it was run",
                (_, true, true) => "may be claimed",
                (_, true, false) => "",
            };
            let row = format!("{level:<11} {passed:>3} passed {failed:>3} failed  {note}");
            let _ = writeln!(text, "{}", row.trim_end());
        }
        let _ = writeln!(text, "{} of {} checks pass. {}", self.passed, self.total(), self.claim());
        text
    }

    fn total(&self) -> usize {
        self.checks.len()
    }

    fn claim(&self) -> String {
        match self.may_claim {
            _ if !self.own_suite => {
                let other = "These are not the checks that this program brings along:";
                format!("{other} no level of protocol {} may be claimed.", self.protocol)
            }
            Some(level) => format!("Protocol {} may be claimed up to {level}.", self.protocol),
            None => format!("No level of protocol {} may be claimed.", self.protocol),
        }
    }
}

impl Checked {
    fn of(check: &Check, outcome: Outcome) -> Self {
        Self {
            id: check.id.clone(),
            level: check.level.clone(),
            title: check.title.clone(),
            reason: check.reason.clone(),
            rule: check.rule.clone(),
            ok: outcome.failed.is_none(),
            ms: outcome.took.as_millis(),
            failure: outcome.failed,
        }
    }
}

/// A text that stays in its line, whatever a server put into it.
fn line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// `#` would begin a directive.
fn escaped(text: &str) -> String {
    line(text).replace('\\', "\\\\").replace('#', "\\#")
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;

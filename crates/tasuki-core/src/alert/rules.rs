// SPDX-License-Identifier: Apache-2.0
//! When people are told. One table: the evaluator in the broker and the rules file for Prometheus are
//! both made from it, so they cannot part.

use std::fmt::Write;

use crate::event::words;
use crate::meter::families::{Family, Kind};

/// How urgent it is: to be read some time, to be looked at today, to be looked at now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Info,
    Warning,
    Critical,
}

words!(Severity { Info = "info", Warning = "warning", Critical = "critical" });

/// What has to be so. Shares and limits are in thousandths, so that everybody computes the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Test {
    /// It was counted at all within the window.
    Any { of: Family, words: &'static [&'static str], window_ms: u64 },
    /// Of what was counted within the window, more than this share has one of these words.
    ShareOver { of: Family, words: &'static [&'static str], window_ms: u64, per_mille: u64 },
    /// The values of a histogram were less than this on average within the window.
    MeanUnder { of: Family, window_ms: u64, per_mille: u64 },
    /// More than this share of the values lay above a bound of their scale.
    ManyAbove { of: Family, bound: u64, window_ms: u64, per_mille: u64 },
    /// The average is above this, and so many times what it was at the same time a day before.
    Rising { of: Family, window_ms: u64, times_per_mille: u64, over_per_mille: u64 },
    /// So many attempts in a row failed.
    RunAtLeast(u64),
    /// The circuit breaker is open.
    CircuitOpen,
    /// The oldest dead letter waits for longer.
    LetterOlder { ms: u64 },
    /// The broker does not answer, which it cannot say itself.
    Down,
}

#[derive(Debug, PartialEq)]
pub struct Rule {
    pub name: &'static str,
    pub severity: Severity,
    pub test: Test,
    /// For how long it has to be so.
    pub for_ms: u64,
    /// Whether each target is looked at by itself.
    pub by_target: bool,
    pub summary: &'static str,
    /// What to do.
    pub action: &'static str,
}

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
pub(crate) const DAY: u64 = 24 * HOUR;

/// All rules.
pub static RULES: &[Rule] = &[
    Rule {
        name: "HandoffFailed",
        severity: Severity::Info,
        test: Test::Any { of: Family::Terminal, words: &["dead_lettered"], window_ms: 5 * MINUTE },
        for_ms: 0,
        by_target: true,
        summary: "a handoff became a dead letter",
        action: "look at it with `tasuki dead-letter list` and decide",
    },
    Rule {
        name: "HandoffConsecutiveFailures",
        severity: Severity::Warning,
        test: Test::RunAtLeast(3),
        for_ms: 0,
        by_target: true,
        summary: "three attempts or more in a row failed",
        action: "look at the failures with `tasuki dead-letter list`, and at the agent itself",
    },
    Rule {
        name: "HandoffContextCompletenessLow",
        severity: Severity::Warning,
        test: Test::MeanUnder { of: Family::Completeness, window_ms: 5 * MINUTE, per_mille: 950 },
        for_ms: 5 * MINUTE,
        by_target: false,
        summary: "less than 95 % of the context that there was to pass got into envelopes",
        action: "raise the token budgets of receivers, or pass less; see which references had gaps",
    },
    Rule {
        name: "HandoffFailureRateElevated",
        severity: Severity::Warning,
        test: Test::ShareOver {
            of: Family::Terminal,
            words: &["dead_lettered"],
            window_ms: 5 * MINUTE,
            per_mille: 5,
        },
        for_ms: 5 * MINUTE,
        by_target: false,
        summary: "more than 0.5 % of the handoffs that ended are dead letters",
        action: "group them with `tasuki dead-letter groups` and fix the largest group first",
    },
    Rule {
        name: "HandoffHopDepthRising",
        severity: Severity::Warning,
        test: Test::Rising {
            of: Family::Hops,
            window_ms: HOUR,
            times_per_mille: 1500,
            over_per_mille: 3000,
        },
        for_ms: 0,
        by_target: false,
        summary: "chains have half as many hops again as at the same time yesterday",
        action: "look at the longest chains: work may go back and forth",
    },
    Rule {
        name: "HandoffTokenBudgetSaturated",
        severity: Severity::Warning,
        test: Test::ManyAbove {
            of: Family::Utilisation,
            bound: 950,
            window_ms: 15 * MINUTE,
            per_mille: 500,
        },
        for_ms: 15 * MINUTE,
        by_target: false,
        summary: "more than half of the envelopes fill over 95 % of their token budget",
        action: "raise the budgets, or pass less: what does not fit is trimmed",
    },
    Rule {
        name: "HandoffDeadLetterBacklog",
        severity: Severity::Warning,
        test: Test::LetterOlder { ms: HOUR },
        for_ms: 0,
        by_target: false,
        summary: "a dead letter waits for longer than an hour for somebody to decide",
        action: "decide on it: `tasuki dead-letter list`",
    },
    Rule {
        name: "HandoffCircuitOpen",
        severity: Severity::Critical,
        test: Test::CircuitOpen,
        for_ms: 0,
        by_target: true,
        summary: "the circuit breaker is open: nothing is sent to this agent",
        action: "find out why the agent fails; it is tried again by itself when its time is over",
    },
    Rule {
        name: "HandoffContextCompletenessCritical",
        severity: Severity::Critical,
        test: Test::MeanUnder { of: Family::Completeness, window_ms: 5 * MINUTE, per_mille: 800 },
        for_ms: MINUTE,
        by_target: false,
        summary: "less than 80 % of the context that there was to pass got into envelopes",
        action: "stop what sends them, or raise the token budgets of receivers at once",
    },
    Rule {
        name: "HandoffFailureRateCritical",
        severity: Severity::Critical,
        test: Test::ShareOver {
            of: Family::Terminal,
            words: &["dead_lettered"],
            window_ms: 5 * MINUTE,
            per_mille: 20,
        },
        for_ms: 5 * MINUTE,
        by_target: false,
        summary: "more than 2 % of the handoffs that ended are dead letters",
        action: "group them with `tasuki dead-letter groups` and fix the largest group first",
    },
    Rule {
        name: "HandoffConstraintViolation",
        severity: Severity::Critical,
        test: Test::Any { of: Family::Violations, words: &[], window_ms: 5 * MINUTE },
        for_ms: 0,
        by_target: false,
        summary: "somebody tried to pass work on without what binds it, or with other words",
        action: "see who with `tasuki audit denials`; the envelope was refused",
    },
    Rule {
        name: "HandoffBrokerDown",
        severity: Severity::Critical,
        test: Test::Down,
        for_ms: 0,
        by_target: false,
        summary: "a broker does not answer",
        action: "start it again: nothing that was acknowledged is lost",
    },
];

/// The rule of this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.name == name)
}

impl Rule {
    /// Whether the broker can find out by itself.
    #[must_use]
    pub fn is_built_in(&self) -> bool {
        self.test != Test::Down
    }

    /// The same as an expression of Prometheus. Log metrics are equal at every broker, so whichever
    /// shows most is taken, and nothing is added up over brokers.
    #[must_use]
    pub fn expression(&self) -> String {
        match self.test {
            Test::Any { of, words, window_ms } => {
                let counted = self.all(&increase(of, "", words, window_ms, 0), of);
                format!("{counted} > 0")
            }
            Test::ShareOver { of, words, window_ms, per_mille } => {
                let part = self.all(&increase(of, "", words, window_ms, 0), of);
                let whole = self.all(&increase(of, "", &[], window_ms, 0), of);
                format!("{part} / ({whole} > 0) > {}", thousandths(per_mille))
            }
            Test::MeanUnder { of, window_ms, per_mille } => {
                format!("{} < {}", self.mean(of, window_ms, 0), thousandths(per_mille))
            }
            Test::ManyAbove { of, bound, window_ms, per_mille } => {
                let per = of.scale().map_or(1, |scale| scale.per);
                let bucket = format!("_bucket{{le=\"{}\"}}", bound as f64 / per as f64);
                let within = self.all(&range(of, &bucket, window_ms, 0), of);
                let count = self.all(&range(of, "_count", window_ms, 0), of);
                format!("1 - {within} / ({count} > 0) > {}", thousandths(per_mille))
            }
            Test::Rising { of, window_ms, times_per_mille, over_per_mille } => {
                let now = self.mean(of, window_ms, 0);
                let before = self.mean(of, window_ms, DAY);
                format!(
                    "({now} > {}) and ({now} > {} * ({before}))",
                    thousandths(over_per_mille),
                    thousandths(times_per_mille)
                )
            }
            Test::RunAtLeast(run) => format!("max by (target) ({}) >= {run}", Family::Run.name()),
            Test::CircuitOpen => {
                format!("max by (target) ({}{{state=\"open\"}}) == 1", Family::Circuit.name())
            }
            Test::LetterOlder { ms } => {
                format!("max({}) > {}", Family::LetterAge.name(), ms / 1000)
            }
            Test::Down => "up{job=~\"tasuki.*\"} == 0".into(),
        }
    }

    fn mean(&self, of: Family, window_ms: u64, offset_ms: u64) -> String {
        let sum = self.all(&range(of, "_sum", window_ms, offset_ms), of);
        let count = self.all(&range(of, "_count", window_ms, offset_ms), of);
        format!("{sum} / ({count} > 0)")
    }

    /// What all brokers say, as one number or one for each target.
    fn all(&self, counted: &str, of: Family) -> String {
        let labels: Vec<_> = of.facts().labels.iter().map(|label| label.name()).collect();
        let each = format!("max by ({}) ({counted})", labels.join(", "));
        if self.by_target { format!("sum by (target) ({each})") } else { format!("sum({each})") }
    }
}

fn increase(of: Family, suffix: &str, words: &[&str], window_ms: u64, offset_ms: u64) -> String {
    let chosen = match (of.words(), words) {
        (Some((label, _)), [_, ..]) => format!("{{{label}=~\"{}\"}}", words.join("|")),
        _ => String::new(),
    };
    debug_assert!(of.facts().kind == Kind::Counter);
    range(of, &format!("{suffix}{chosen}"), window_ms, offset_ms)
}

fn range(of: Family, suffix: &str, window_ms: u64, offset_ms: u64) -> String {
    let offset = match offset_ms {
        0 => String::new(),
        ms => format!(" offset {}", span(ms)),
    };
    format!("increase({}{suffix}[{}]{offset})", of.name(), span(window_ms))
}

fn thousandths(per_mille: u64) -> String {
    (per_mille as f64 / 1000.0).to_string()
}

/// A time span as Prometheus writes it.
#[must_use]
pub fn span(ms: u64) -> String {
    match ms {
        0 => "0s".into(),
        ms if ms.is_multiple_of(DAY) => format!("{}d", ms / DAY),
        ms if ms.is_multiple_of(HOUR) => format!("{}h", ms / HOUR),
        ms if ms.is_multiple_of(MINUTE) => format!("{}m", ms / MINUTE),
        ms => format!("{}s", ms / 1000),
    }
}

/// The rules file for Prometheus.
#[must_use]
pub fn file() -> String {
    let mut text = String::from(
        "# Made by `tasuki alerts rules` from the table that the broker itself evaluates.\n\
         # HandoffBrokerDown expects that the job which scrapes the brokers is called tasuki.\n\
         groups:\n  - name: tasuki\n    rules:\n",
    );
    for rule in RULES {
        let (name, severity) = (rule.name, rule.severity);
        let target = if rule.by_target { "{{ $labels.target }}: " } else { "" };
        let _ = write!(
            text,
            "      - alert: {name}\n        expr: '{}'\n        for: {}\n        labels:\n          \
             severity: {severity}\n        annotations:\n          summary: '{target}{}'\n          \
             description: '{}'\n",
            rule.expression().replace('\'', "''"),
            span(rule.for_ms),
            rule.summary,
            rule.action,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_the_same_expression_everywhere() {
        let check = |name: &str, expected: &str| {
            assert_eq!(named(name).unwrap().expression(), expected, "{name}");
        };
        check(
            "HandoffFailed",
            "sum by (target) (max by (target, outcome) \
             (increase(handoff_terminal_total{outcome=~\"dead_lettered\"}[5m]))) > 0",
        );
        check(
            "HandoffContextCompletenessLow",
            "sum(max by (target) (increase(handoff_context_completeness_ratio_sum[5m]))) / \
             (sum(max by (target) (increase(handoff_context_completeness_ratio_count[5m]))) > 0) \
             < 0.95",
        );
        check(
            "HandoffTokenBudgetSaturated",
            "1 - sum(max by (target) \
             (increase(handoff_token_utilisation_ratio_bucket{le=\"0.95\"}[15m]))) / \
             (sum(max by (target) (increase(handoff_token_utilisation_ratio_count[15m]))) > 0) > 0.5",
        );
        check(
            "HandoffConsecutiveFailures",
            "max by (target) (handoff_target_consecutive_failures) >= 3",
        );
    }

    #[test]
    fn names_are_there_once_and_thresholds_lie_on_bounds() {
        let mut seen = std::collections::BTreeSet::new();
        for rule in RULES {
            assert!(seen.insert(rule.name));
            match rule.test {
                Test::ManyAbove { of, bound, .. } => {
                    assert!(of.scale().unwrap().bounds.contains(&bound), "{}", rule.name);
                }
                Test::MeanUnder { of, .. } => assert_eq!(of.scale().unwrap().per, 1000),
                _ => {}
            }
        }
    }
}

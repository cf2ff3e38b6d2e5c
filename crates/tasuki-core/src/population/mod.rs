// SPDX-License-Identifier: Apache-2.0
//! What populations of agents do, from the log alone: a pass that keeps a bounded part of it, and analyses of
//! that part. Each says what is unusual, how large it is, how often chance alone would do it, and which handoffs
//! are behind it. None says why: that is for somebody who reads them.

mod choices;
mod collect;
mod excess;
mod graph;
mod legibility;
mod line;
mod loops;
mod names;
mod parallel;
pub mod random;
pub mod report;
mod series;

use std::ops::Range;

use self::choices::Asked;
pub use self::collect::{Collected, HANDOFFS_MAX, MESSAGE_WORDS_MAX, STICKY};
pub use self::legibility::VOCABULARY_MAX;
pub use self::loops::HOPS_MIN;
use self::random::Random;
pub use self::report::{Behind, Finding, Group, Kind, Looked, Report, Span};
pub use self::series::{FIELDS_MAX, SERIES_MAX};
use crate::ids::Timestamp;

/// How many agents, and capabilities, are told apart.
pub const AGENTS_MAX: usize = 1_500;
pub const CAPABILITIES_MAX: usize = 1_000;
/// How often an honest population may raise any alarm, if nobody says otherwise. So many permutations cannot tell
/// what is rarer.
pub const FALSE_ALARMS: f64 = 0.05;

/// What is looked at, and against what.
#[derive(Debug, Clone)]
pub struct Settings {
    pub baseline: Baseline,
    pub false_alarm_rate: f64,
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { baseline: Baseline::FirstThird, false_alarm_rate: FALSE_ALARMS, seed: 1 }
    }
}

/// What counts as usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Baseline {
    FirstThird,
    /// What somebody found to be honest, from a time up to another.
    Between(Timestamp, Timestamp),
    /// Nothing: agents are compared with each other alone.
    None,
}

/// Analyses what was collected.
#[must_use]
pub fn study(collected: &Collected, settings: &Settings) -> Report {
    let count = collected.handed.len();
    let (baseline, current) = match settings.baseline {
        Baseline::None => (0..0, 0..count),
        Baseline::FirstThird => (0..count / 3, count / 3..count),
        Baseline::Between(from, until) => {
            let at = |time: Timestamp| collected.handed.partition_point(|it| it.at < time);
            (at(from)..at(until), at(until)..count)
        }
    };
    let alpha = settings.false_alarm_rate / Kind::ALL.len() as f64;
    let asked = Asked { collected, baseline: baseline.clone(), current: current.clone(), alpha };
    let mut random = Random::seeded(settings.seed);
    let begins = collected.handed.get(current.start).map_or(Timestamp(0), |handed| handed.at);
    let unknown = legibility::unknown(&asked);
    let circles = graph::circles(&asked);
    let all = [
        legibility::drift(&asked, &unknown, &mut random),
        choices::routing(&asked, &circles, &mut random),
        choices::acceptance(&asked, &circles, &mut random),
        collected.loops.findings(&collected.agents, begins, alpha),
        graph::drift(&asked, &unknown, &mut random),
        parallel::moves(&asked, &mut random),
    ];
    let (looked, findings): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    let findings: Vec<Finding> = findings.into_iter().flatten().collect();
    Report {
        events: collected.events,
        handoffs: collected.offers,
        kept: count as u64,
        kept_every: collected.every,
        agents: collected.agents.len() as u64,
        baseline: span(collected, &baseline),
        baseline_chosen: matches!(settings.baseline, Baseline::Between(..)),
        current: span(collected, &current).unwrap_or(Span {
            from: Timestamp(0),
            until: Timestamp(0),
            handoffs: 0,
        }),
        false_alarm_rate: settings.false_alarm_rate,
        seed: settings.seed,
        looked,
        groups: report::groups(&findings),
        findings,
        bounds_reached: bounds(collected, unknown.vocabulary_full),
    }
}

fn span(collected: &Collected, range: &Range<usize>) -> Option<Span> {
    let handed = collected.handed.get(range.clone())?;
    let (first, last) = (handed.first()?, handed.last()?);
    Some(Span { from: first.at, until: last.at, handoffs: handed.len() as u64 })
}

/// What there was too much of, each said in a sentence.
fn bounds(collected: &Collected, vocabulary_full: bool) -> Vec<String> {
    let mut told = Vec::new();
    if collected.every > 1 {
        told.push(format!(
            "more than {HANDOFFS_MAX} handoffs: every {}th is looked at (loops are looked for in all)",
            collected.every
        ));
    }
    if collected.agents.passed_over > 0 {
        told.push(format!("more than {AGENTS_MAX} agents: those that came later are left out"));
    }
    if collected.capabilities.passed_over > 0 {
        told.push(format!("more than {CAPABILITIES_MAX} capabilities: later ones are left out"));
    }
    if vocabulary_full {
        told.push(format!(
            "the baseline has more than {VOCABULARY_MAX} words: later ones count as unknown"
        ));
    }
    for field in collected.series.fields.iter().filter(|field| field.passed_over) {
        told.push(format!(
            "more than {SERIES_MAX} agents give `{}`: later ones are left out",
            field.name
        ));
    }
    told
}

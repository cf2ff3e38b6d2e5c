// SPDX-License-Identifier: Apache-2.0
//! Every metric there is, in one table: from it come what is served, the reference, the dashboard for
//! Grafana and the names that alert rules use. What begins with `handoff_` follows from the log alone
//! and is the same at every broker; what begins with `tasuki_` or `process_` is of one broker, and
//! begins at 0 with it.

/// What a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram(&'static Scale),
}

/// How the values of a histogram are told apart. Values are whole numbers, so that a fold gives the
/// same everywhere; `per` of them are one of what is shown.
#[derive(Debug, PartialEq, Eq)]
pub struct Scale {
    pub per: u64,
    pub bounds: &'static [u64],
}

/// Wide enough for a millisecond below and a day of waiting above. 10, 15, 30, 60 and 300 seconds are
/// bounds, because time-outs are often set to these.
pub static SECONDS: Scale = Scale {
    per: 1_000_000,
    bounds: &[
        1_000,
        2_500,
        5_000,
        10_000,
        25_000,
        50_000,
        100_000,
        250_000,
        500_000,
        1_000_000,
        2_500_000,
        5_000_000,
        10_000_000,
        15_000_000,
        30_000_000,
        60_000_000,
        120_000_000,
        300_000_000,
        3_600_000_000,
    ],
};

/// For what one broker does within itself.
pub static SHORT_SECONDS: Scale = Scale {
    per: 1_000_000,
    bounds: &[
        50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000,
    ],
};

/// With the thresholds of the alerts among the bounds.
pub static COMPLETENESS: Scale = Scale { per: 1000, bounds: &[500, 800, 900, 950, 990, 1000] };
pub static UTILISATION: Scale =
    Scale { per: 1000, bounds: &[100, 250, 500, 750, 900, 950, 990, 1000] };
pub static TOKENS: Scale =
    Scale { per: 1, bounds: &[1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576] };
pub static HOPS: Scale = Scale { per: 1, bounds: &[0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16] };
pub static BATCH: Scale = Scale { per: 1, bounds: &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024] };

/// By what the series of a metric are told apart. There are never more of them than these say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    /// An agent or a capability; the first [`super::TARGETS_MAX`] by name, all others together.
    Target,
    /// A declared route; the first [`super::PIPELINES_MAX`] by name, all others together.
    Pipeline,
    /// One of a few words.
    Word(&'static str, &'static [&'static str]),
    /// One of a list that is fixed elsewhere: the operations, the codes of errors.
    Listed(&'static str),
}

impl Label {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Pipeline => "pipeline",
            Self::Word(name, _) | Self::Listed(name) => name,
        }
    }
}

#[derive(Debug)]
pub struct Facts {
    /// A counter's name ends in `_total`.
    pub name: &'static str,
    pub kind: Kind,
    pub labels: &'static [Label],
    pub help: &'static str,
}

pub const DELIVERED: &[&str] = &["claimed", "declined", "expired", "dead_lettered"];
pub const STAGES: &[&str] = &["queue", "claim_to_start", "work", "whole"];
pub const MODES: &[&str] = &["direct", "broadcast", "pipeline"];
pub const ENDS: &[&str] = &["completed", "dead_lettered", "cancelled", "aborted"];
pub const RESULTS: &[&str] = &["completed", "failed", "lost", "given_back", "ended"];
pub const CAUSES: &[&str] = &["silence", "hard_deadline", "restored", "revoked"];
pub const CIRCUITS: &[&str] = &["closed", "open", "half_open"];
pub const CIRCUIT_MOVES: &[&str] = &["closed", "open"];
pub const VIOLATIONS: &[&str] = &["dropped", "altered", "not_yours", "intent_altered"];
/// As [`crate::event::DeadReason`] calls them, in its order.
pub const REASONS: &[&str] = &[
    "attempts_exhausted",
    "permanent_failure",
    "poison",
    "declined",
    "expired",
    "rejected",
    "unacknowledged",
    "hop_limit",
    "cycle",
    "budget_exhausted",
    "deadlock",
];
pub const OUTCOMES: &[&str] = &["done", "refused", "failed"];
pub const NOTICES: &[&str] = &["sent", "failed"];
/// Why spans of traces were not sent.
pub const DROPS: &[&str] = &["buffer_full", "not_sent", "refused", "not_followed"];
/// What is passed instead of all: a summary, a line, or no more than the id in the receipt.
pub const RUNGS: &[&str] = &["summary", "stub", "listed"];

macro_rules! families {
    ($($name:ident $metric:literal $kind:expr, [$($label:expr),*], $help:literal;)+) => {
        /// A metric, by name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Family { $($name),+ }

        const TABLE: &[Facts] = &[
            $(Facts { name: $metric, kind: $kind, labels: &[$($label),*], help: $help }),+
        ];

        impl Family {
            pub const ALL: &'static [Self] = &[$(Self::$name),+];
        }
    };
}

use Kind::{Counter, Gauge, Histogram};
use Label::{Listed, Pipeline, Target, Word};

families! {
    Delivery "handoff_delivery_seconds" Histogram(&SECONDS), [Target, Word("outcome", DELIVERED)],
        "From the offer of a handoff to its first claim, or to its end without one";
    Stage "handoff_stage_seconds" Histogram(&SECONDS), [Word("stage", STAGES)],
        "How long handoffs spend in a stage: waiting to be claimed, claimed and not begun, worked on, all";
    Completeness "handoff_context_completeness_ratio" Histogram(&COMPLETENESS), [Target],
        "How much of what there was to pass got into the envelope, as its sender was told";
    Utilisation "handoff_token_utilisation_ratio" Histogram(&UTILISATION), [Target],
        "How full the token budgets of envelopes were, as their senders were told";
    Tokens "handoff_envelope_tokens" Histogram(&TOKENS), [],
        "How many tokens the assembled context of an envelope had, as its sender was told";
    Hops "handoff_hop_depth" Histogram(&HOPS), [Pipeline],
        "How many hops a chain had when its task was completed";
    Offers "handoff_offers_total" Counter, [Target, Word("mode", MODES)],
        "Handoffs that were offered: to one, to all on a channel, or by a declared route";
    Gaps "handoff_offers_with_gaps_total" Counter, [Target],
        "Handoffs whose envelope names references that the work has to do without";
    Terminal "handoff_terminal_total" Counter, [Target, Word("outcome", ENDS)],
        "Handoffs that came to their end";
    DeadLettered "handoff_dead_lettered_total" Counter, [Target, Word("reason", REASONS)],
        "Handoffs that became dead letters, by the reason";
    Attempts "handoff_attempts_total" Counter, [Target, Word("result", RESULTS)],
        "Claims that ended, by how";
    Lost "handoff_leases_lost_total" Counter, [Word("cause", CAUSES)],
        "Claims that were lost, by the cause";
    Escalated "handoff_escalated_total" Counter, [Target],
        "Handoffs that this target could not or would not do, so that somebody else was asked";
    Late "handoff_late_reports_total" Counter, [],
        "Results and failures that came from claims which no longer held: refused, and kept";
    HopLimit "handoff_hop_limit_exceeded_total" Counter, [],
        "Handoffs that were stopped because their chain had as many hops as it may have";
    Cycles "handoff_cycles_detected_total" Counter, [],
        "Handoffs that were stopped because the same work came to the same target again";
    Violations "handoff_constraint_violations_total" Counter, [Word("kind", VIOLATIONS)],
        "Envelopes that were refused because a constraint or the intent did not arrive as it was \
         (of one sender, one in ten seconds is counted)";
    Lifted "handoff_constraints_lifted_total" Counter, [],
        "Constraints that were lifted between two hops by whom they belong to";
    Fetched "handoff_trims_fetched_total" Counter, [Target],
        "Memories that a receiver fetched because its envelope had passed less of them";
    CircuitMoves "handoff_circuit_transitions_total" Counter, [Target, Word("to", CIRCUIT_MOVES)],
        "How often the circuit breaker of a target opened and closed";
    Run "handoff_target_consecutive_failures" Gauge, [Target],
        "Attempts in a row that did not end in a result";
    Circuit "handoff_circuit_state" Gauge, [Target, Word("state", CIRCUITS)],
        "1 for the state that the circuit breaker of a target is in, 0 for the others";
    Letters "handoff_dead_letters" Gauge, [Target, Word("reason", REASONS)],
        "Dead letters that nobody has decided on yet";
    LetterAge "handoff_dead_letter_oldest_age_seconds" Gauge, [],
        "How long the oldest dead letter waits for somebody to decide, 0 without any";
    Queue "handoff_queue_depth" Gauge, [Target],
        "Handoffs that wait to be claimed";
    QueueAge "handoff_queue_oldest_age_seconds" Gauge, [Target],
        "How long the oldest handoff waits to be claimed, 0 without any";
    Inflight "handoff_inflight" Gauge, [Target],
        "Handoffs that are claimed and not at their end";
    Waiting "handoff_scheduled" Gauge, [Target],
        "Handoffs that wait for a time, an approval, or other tasks";
    Build "tasuki_build_info" Gauge, [Listed("version")], "The version of this broker; always 1";
    Commits "tasuki_commits_total" Counter, [], "Commits of this broker's store";
    Commands "tasuki_commands_total" Counter, [], "Commands that this broker's store decided";
    Events "tasuki_events_total" Counter, [], "Events that this broker wrote into the log";
    Batch "tasuki_commit_batch_events" Histogram(&BATCH), [], "How many events one commit had";
    Wait "tasuki_commit_wait_seconds" Histogram(&SHORT_SECONDS), [],
        "How long the first command of a batch waited for it to begin";
    Commit "tasuki_commit_seconds" Histogram(&SHORT_SECONDS), [],
        "How long a commit took, the sync included";
    Sync "tasuki_sync_seconds" Histogram(&SHORT_SECONDS), [], "How long making a commit durable took";
    Live "tasuki_live_handoffs" Gauge, [], "Handoffs that this broker's store keeps in memory";
    LiveBytes "tasuki_live_bytes" Gauge, [], "About how much memory they take";
    Lag "tasuki_projection_lag_rows" Gauge, [], "Rows that queries still have to wait for";
    DiskFull "tasuki_disk_full" Gauge, [], "1 while new work is refused because the disk is full";
    Presence "tasuki_agents_live" Gauge, [Target], "1 for each target that somebody listens for";
    Requests "tasuki_requests_total" Counter, [Listed("operation"), Word("outcome", OUTCOMES)],
        "Requests that this broker answered";
    Refusals "tasuki_refusals_total" Counter, [Listed("code")],
        "Requests that were answered with an error, by its code";
    Trimmed "tasuki_items_trimmed_total" Counter, [Word("to", RUNGS)],
        "Items of which an assembly by this broker passed less than there was";
    Notices "tasuki_alert_notices_total" Counter, [Word("result", NOTICES)],
        "Notices of alerts that this broker tried to send";
    SpansSent "tasuki_spans_sent_total" Counter, [], "Spans of traces that this broker sent";
    SpansDropped "tasuki_spans_dropped_total" Counter, [Word("reason", DROPS)],
        "Spans of traces that were dropped: the buffer was full, the receiver was not there or did not \
         want them, or too much was under way to follow a task";
    Memory "process_resident_memory_bytes" Gauge, [], "Resident memory of this broker";
    Cpu "process_cpu_seconds_total" Counter, [], "Processor time that this broker has used";
    Files "process_open_fds" Gauge, [], "File descriptors that this broker has open";
    Start "process_start_time_seconds" Gauge, [], "When this broker was started, since 1970";
}

impl Family {
    #[must_use]
    pub fn facts(self) -> &'static Facts {
        &TABLE[self as usize]
    }

    #[must_use]
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// Whether it follows from the log alone.
    #[must_use]
    pub fn is_of_log(self) -> bool {
        self.name().starts_with("handoff_")
    }

    /// How a histogram tells values apart.
    #[must_use]
    pub fn scale(self) -> Option<&'static Scale> {
        match self.facts().kind {
            Kind::Histogram(scale) => Some(scale),
            Kind::Counter | Kind::Gauge => None,
        }
    }

    /// The words of its label that has words, if it has one.
    #[must_use]
    pub fn words(self) -> Option<(&'static str, &'static [&'static str])> {
        self.facts().labels.iter().find_map(|label| match label {
            Label::Word(name, words) => Some((*name, *words)),
            Label::Target | Label::Pipeline | Label::Listed(_) => None,
        })
    }

    /// Whether its series are told apart by target.
    #[must_use]
    pub fn by_target(self) -> bool {
        self.facts().labels.contains(&Label::Target)
    }
}

/// A number for the shape of the table, so that what was saved by another shape is not taken up.
#[must_use]
pub(crate) fn shape() -> u64 {
    let mut sum: u64 = 0xcbf2_9ce4_8422_2325;
    let mut take = |text: &str| {
        for byte in text.bytes().chain([0]) {
            sum = (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for facts in TABLE {
        take(facts.name);
        take(&format!("{:?}", facts.kind));
        take(&format!("{:?}", facts.labels));
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::DeadReason;

    #[test]
    fn names_follow_the_conventions_and_each_is_there_once() {
        let mut seen = std::collections::BTreeSet::new();
        for family in Family::ALL {
            let facts = family.facts();
            assert!(seen.insert(facts.name), "{}", facts.name);
            let counts = facts.name.ends_with("_total");
            assert_eq!(counts, facts.kind == Kind::Counter, "{}", facts.name);
            assert!(facts.labels.len() <= 2 && !facts.help.is_empty(), "{}", facts.name);
        }
    }

    #[test]
    fn reasons_are_those_of_dead_letters() {
        let words: Vec<_> = DeadReason::ALL.iter().map(|reason| reason.as_str()).collect();
        assert_eq!(words, REASONS);
    }

    #[test]
    fn bounds_rise() {
        for scale in Family::ALL.iter().filter_map(|family| family.scale()) {
            assert!(scale.bounds.is_sorted(), "{scale:?}");
        }
    }
}

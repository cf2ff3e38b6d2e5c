// SPDX-License-Identifier: Apache-2.0
//! The relay: four handoffs, after each of which the next agent knows only what it was passed and its
//! own stage. Scored is what reaches the fifth agent.

use std::collections::BTreeMap;

use serde::Serialize;
use tasuki_core::assembly::{
    Assembled, Brief, Candidate, Carried, Delivery, Entry, Item, Prepared, Priority, Reader,
    Receipt, Request, Rule, Strategy, Tokenizer, assemble, claim_reserve, prompt,
};
use tasuki_core::envelope::parts::{Freshness, MemoryRef, Parts};
use tasuki_core::envelope::{Constraint, ConstraintKind};
use tasuki_core::{AgentId, Timestamp};

use super::baseline;
use super::scenario::{STAGES, Scenario};

/// The tokenizer that everything is counted in.
pub(super) const TOKENIZER: Tokenizer = Tokenizer::O200k;

/// Who says what binds.
const ISSUER: &str = "user";

/// A way to pass things on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Method {
    /// One text, of which the end is kept.
    KeepTail,
    /// One text, summarised at each hop.
    SummaryPerHop,
    /// The policy and the last messages that fit, as `LangChain`'s `trim_messages` keeps them.
    LastMessages,
    /// The policy and whatever fits of the messages, the newest first.
    NewestThatFit,
    /// The policy and whatever fits of the messages, those first that share most with the intent.
    Bm25,
    /// The policy and the last messages that fit, with arrays of JSON records cut to their first, their
    /// last and what stands out, as Headroom does it.
    ArrayCompression,
    /// Ours; the broker assembles anew from everything that the envelope before has or refers to.
    Lazy,
    SummaryRefs,
    Priority,
    /// The same, but what one envelope did not keep is not offered to the next.
    PriorityKept,
    /// Everything, whatever the budget.
    Full,
}

impl Method {
    pub(super) const ALL: [Self; 11] = [
        Self::KeepTail,
        Self::SummaryPerHop,
        Self::LastMessages,
        Self::NewestThatFit,
        Self::Bm25,
        Self::ArrayCompression,
        Self::Lazy,
        Self::SummaryRefs,
        Self::Priority,
        Self::PriorityKept,
        Self::Full,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::KeepTail => "naive: keep the tail",
            Self::SummaryPerHop => "naive: summary per hop",
            Self::LastMessages => "naive: last messages",
            Self::NewestThatFit => "naive: newest that fit",
            Self::Bm25 => "naive: BM25",
            Self::ArrayCompression => "naive: array compression",
            Self::Lazy => "tasuki: lazy",
            Self::SummaryRefs => "tasuki: summary_refs",
            Self::Priority => "tasuki: priority",
            Self::PriorityKept => "tasuki: priority, kept only",
            Self::Full => "tasuki: full (no budget)",
        }
    }
}

/// What one relay came to.
#[derive(Debug, Clone, Default)]
pub(super) struct Outcome {
    pub(super) constraints: Share,
    pub(super) prohibitions: Share,
    pub(super) facts_inline: Share,
    pub(super) facts_reachable: Share,
    /// Handoffs of more tokens than the budget.
    pub(super) overruns: u64,
    /// Handoffs that were refused because what must be passed does not fit.
    pub(super) refusals: u64,
    /// How many tokens each handoff was.
    pub(super) tokens: Vec<u64>,
}

/// How many of how many.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Share {
    pub(super) kept: u64,
    pub(super) all: u64,
}

impl Share {
    fn of<'a>(texts: impl Iterator<Item = &'a str>, arrives: impl Fn(&str) -> bool) -> Self {
        let mut share = Self::default();
        for text in texts {
            share.all += 1;
            share.kept += u64::from(arrives(text));
        }
        share
    }
}

/// Passes a conversation along and says what arrived.
pub(super) fn run(scenario: &Scenario, method: Method, budget: u64) -> Outcome {
    let passed = match method {
        Method::KeepTail => baseline::keep_tail(scenario, budget),
        Method::SummaryPerHop => baseline::summary_per_hop(scenario, budget),
        Method::LastMessages => baseline::last_messages(scenario, budget),
        Method::NewestThatFit => baseline::newest_that_fit(scenario, budget),
        Method::Bm25 => baseline::best_that_fit(scenario, budget),
        Method::ArrayCompression => baseline::compressed_arrays(scenario, budget),
        Method::Lazy => ladder(scenario, Strategy::Lazy, Some(budget), false),
        Method::SummaryRefs => ladder(scenario, Strategy::SummaryRefs, Some(budget), false),
        Method::Priority => ladder(scenario, Strategy::Priority, Some(budget), false),
        Method::PriorityKept => ladder(scenario, Strategy::Priority, Some(budget), true),
        Method::Full => ladder(scenario, Strategy::Full, None, false),
    };
    let last = passed.texts.last().map_or("", String::as_str);
    let inline = |text: &str| last.contains(text);
    let constraints = || scenario.constraints.iter();
    let prohibitions = constraints().filter(|constraint| constraint.prohibition);
    let facts = || scenario.facts.iter().map(String::as_str);
    // Counted anew and as a whole, whatever the way of passing believes it came to.
    let tokens: Vec<u64> = passed.texts.iter().map(|text| TOKENIZER.count(text)).collect();
    let limit = if method == Method::Full { u64::MAX } else { budget };
    Outcome {
        constraints: Share::of(constraints().map(|it| it.text.as_str()), inline),
        prohibitions: Share::of(prohibitions.map(|it| it.text.as_str()), inline),
        facts_inline: Share::of(facts(), inline),
        facts_reachable: Share::of(facts(), |fact| {
            inline(fact) || passed.reachable.iter().any(|text| text.contains(fact))
        }),
        overruns: tokens.iter().filter(|tokens| **tokens > limit).count() as u64,
        refusals: passed.refusals,
        tokens,
    }
}

/// What was passed at each handoff.
#[derive(Default)]
pub(super) struct Passed {
    pub(super) texts: Vec<String>,
    /// What the last agent can fetch.
    pub(super) reachable: Vec<String>,
    pub(super) refusals: u64,
}

/// Our way: each message is a memory. An agent sees what it is passed and its own stage; the broker
/// assembles from what the last envelope had or refers to and from the new stage, as it does for
/// every follow-up. With `kept_only`, from what the last envelope had and the new stage.
fn ladder(scenario: &Scenario, strategy: Strategy, budget: Option<u64>, kept_only: bool) -> Passed {
    let mut passed = Passed::default();
    let mut stored: BTreeMap<String, Candidate> = BTreeMap::new();
    let mut kept: Vec<(String, u64, Carried)> = Vec::new();
    // What the last envelope had or refers to.
    let mut referred: Vec<String> = Vec::new();
    let mut inherited: Vec<Entry> = Vec::new();
    let (mut time, mut hop) = (0, 0);
    for stage in &scenario.stages[..STAGES - 1] {
        let mut items: Vec<Candidate> = if kept_only {
            let carried = |carried: &Carried| Carried { settled: false, ..carried.clone() };
            let of = |(id, _, kept): &(String, u64, Carried)| Candidate {
                carried: Some(carried(kept)),
                ..stored[id].clone()
            };
            kept.iter().map(of).collect()
        } else {
            referred.iter().map(|id| stored[id].clone()).collect()
        };
        for message in stage {
            time += 1;
            let item = Item {
                id: format!("m{time}"),
                revision: 1,
                kind: message.who.clone(),
                text: message.text.clone(),
                at: Timestamp(time * 60_000),
                ..plain_item()
            };
            let candidate = Candidate::from(Prepared::new(item, TOKENIZER));
            stored.insert(format!("m{time}"), candidate.clone());
            // Whoever is refused still has its own stage.
            referred.push(format!("m{time}"));
            items.push(candidate);
        }
        let request = Request {
            brief: brief(scenario),
            items,
            inherited,
            strategy,
            tokenizer: TOKENIZER,
            budget,
            reserved_claim: budget.map_or(0, claim_reserve),
            ..Request::default()
        };
        hop += 1;
        match assemble(&request) {
            Ok(assembled) => {
                referred = has_or_refers_to(&assembled.receipt);
                passed.texts.push(as_read(scenario, &assembled, budget, hop));
                kept = assembled.carried;
                inherited = assembled.manifest;
            }
            Err(_) => {
                passed.refusals += 1;
                inherited = request.inherited;
            }
        }
    }
    let listed = inherited.iter().filter_map(|entry| stored.get(&entry.id));
    passed.reachable = listed.map(|it| it.prepared.item().text.clone()).collect();
    passed
}

/// What the receiver reads: the assembled part, as its envelope gives it, and what its claim is told,
/// within the budget.
fn as_read(scenario: &Scenario, assembled: &Assembled, budget: Option<u64>, hop: u32) -> String {
    let issuer: AgentId = ISSUER.parse().expect("a plain name");
    let constraints = scenario.constraints.iter().map(|it| {
        let kind = if it.prohibition { ConstraintKind::MustNot } else { ConstraintKind::Must };
        Constraint::new(it.text.clone(), kind, true, issuer.clone())
    });
    let refs = assembled.referred.iter().map(|(id, revision, title)| MemoryRef {
        id: id.clone(),
        revision: u32::try_from(*revision).ok(),
        freshness: Freshness::Latest,
        title: Some(title.clone()).filter(|title| !title.is_empty()),
    });
    let parts = Parts {
        constraints: constraints.collect(),
        context: assembled.context.clone(),
        memory_refs: refs.collect(),
        reading: Some(assembled.reading.clone()),
        ..Parts::default()
    };
    let told = Delivery {
        frame: vec![
            format!("From agent-{hop}: request, hop {hop}; you own the task once you claim it."),
            "Attempt 1, by agent; finish by 2027-01-15T09:00:00.000Z.".into(),
        ],
        ..Delivery::default()
    };
    let reader = Reader { tokenizer: TOKENIZER, available: budget, ..Reader::default() };
    prompt(&scenario.intent, &parts, Timestamp(0), &told, reader)
        .map_or_else(|_| assembled.prompt.clone(), |prompt| prompt.text())
}

/// A memory about which nothing is said but its text.
pub(super) fn plain_item() -> Item {
    Item {
        id: String::new(),
        revision: 1,
        kind: String::new(),
        title: String::new(),
        summary: None,
        text: String::new(),
        priority: Priority::Normal,
        pinned: false,
        tags: Vec::new(),
        at: Timestamp(0),
        source: None,
        by: None,
        trust: tasuki_core::trust::Trust::Agent,
    }
}

/// What an envelope with this receipt has or refers to. Lines of the brief are no memories.
fn has_or_refers_to(receipt: &Receipt) -> Vec<String> {
    let kept = receipt.kept.iter().map(|one| &one.id);
    let demoted = receipt.demoted.iter().map(|one| &one.id);
    let dropped = receipt.dropped.iter().filter(|one| one.fetch.is_some()).map(|one| &one.id);
    kept.chain(demoted).chain(dropped).cloned().collect()
}

fn brief(scenario: &Scenario) -> Brief {
    let rule = |constraint: &super::scenario::Constraint| Rule {
        kind: if constraint.prohibition { "must_not" } else { "must" }.into(),
        text: constraint.text.clone(),
        issuer: Some(ISSUER.into()),
    };
    Brief {
        intent: scenario.intent.clone(),
        constraints: scenario.constraints.iter().map(rule).collect(),
        ..Brief::default()
    }
}

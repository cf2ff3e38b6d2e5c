// SPDX-License-Identifier: Apache-2.0
//! What a receiver gets to read, within its token budget. Intent, constraints, pins, the ask, open
//! decisions and the expected output are always in it, or there is an error that says how much room
//! they need; everything else is on a ladder of detail ([`ladder`]). Nothing is left out silently:
//! the [`Receipt`] names everything that was given.
//!
//! Reading order: [`tokens`], [`text`], [`summary`], [`item`], [`score`], [`ladder`], [`render`].

mod chosen;
mod item;
mod ladder;
mod lint;
mod manifest;
mod profile;
mod receipt;
mod render;
mod said;
mod score;
mod summary;
mod text;
mod tokens;

use std::cmp::Reverse;
use std::sync::Arc;

pub use item::{ITEMS_MAX, Item, Prepared, Priority, Rung, TEXT_BYTES_MAX};
pub use manifest::Entry;
pub use profile::{PROFILES_MAX, Profile, Profiles, Selection, WORDS_MAX};
pub use receipt::{
    Demoted, Dropped, Gap, Kept, Large, Reason, Receipt, Strategy, TooSmall, Warning, WarningCode,
};
pub use render::{Brief, Rule};
pub use said::{SAID_TOKENS_MAX, said};
pub use summary::{SUMMARY_TOKENS_MAX, extract, gist};
pub use text::{PART_TOKENS, identifier_density, parts, sentences};
pub use tokens::{Piece, Tokenizer};

use chosen::Chosen;
use ladder::{Tally, longest, steps};
use profile::Viewed;
use render::Base;
use score::{Query, Scores, score};

/// How many of the largest parts an error names.
const LARGEST: usize = 5;

/// What is to be assembled, for whom, and within what.
#[derive(Debug, Clone, Default)]
pub struct Request {
    pub brief: Brief,
    pub items: Vec<Candidate>,
    /// What was asked for and could not be read.
    pub unresolved: Vec<Gap>,
    /// What earlier envelopes of the task listed; it stays listed.
    pub inherited: Vec<Entry>,
    /// What the receiver's role wants to see.
    pub profile: Option<Profile>,
    pub strategy: Strategy,
    /// The receiver's.
    pub tokenizer: Tokenizer,
    /// What the receiver can take in all; no limit if absent.
    pub budget: Option<u64>,
    /// What of that it needs for its system prompt.
    pub reserved_system_prompt: u64,
    /// What of that it needs for its own work and answer.
    pub reserved_work: u64,
}

/// An item that may be passed.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub prepared: Arc<Prepared>,
    /// What an earlier assembly kept of it, if the sender has no more than that.
    pub carried: Option<Carried>,
}

impl From<Prepared> for Candidate {
    fn from(prepared: Prepared) -> Self {
        Self { prepared: Arc::new(prepared), carried: None }
    }
}

/// What an assembly kept of an item, and what it was worth: assembling again from that changes
/// nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    pub rung: Rung,
    pub score: i64,
    /// Whether what it was worth stands, or is worked out anew among the other items.
    pub settled: bool,
    /// Whether the sender's summary is there, beside parts.
    pub summary: bool,
    /// Parts of a long text by place, with what each is worth. Empty for what is not in parts.
    pub parts: Vec<(usize, i64)>,
}

/// What the receiver gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assembled {
    /// For a model, as Markdown.
    pub prompt: String,
    pub receipt: Receipt,
    /// Everything that there is, sorted; the receipt has its address.
    pub manifest: Vec<Entry>,
    /// What was kept of each item, by id and revision, pins apart.
    pub carried: Vec<(String, u64, Carried)>,
}

/// Assembles what a receiver gets to read. The same request gives the same result, whatever the
/// order of its items.
pub fn assemble(request: &Request) -> Result<Assembled, TooSmall> {
    let candidates = sorted(request);
    let manifest = manifest::list(&request.inherited, &candidates);
    let manifest_hash = manifest::address(&manifest);
    let (taken, mut dropped) = take(&candidates, request.profile.as_ref());
    let listed = Some((manifest.len(), manifest_hash)).filter(|(number, _)| *number > 0);
    let base = render::base(&request.brief, pins(&candidates), listed, request.tokenizer);
    let lines = render::lines(&request.brief, request.tokenizer);

    let reserved = request.reserved_system_prompt.saturating_add(request.reserved_work);
    let available = request.budget.map_or(u64::MAX, |budget| budget.saturating_sub(reserved));
    let too_small = |tokens: u64, largest: Vec<(String, u64)>| TooSmall {
        needed: tokens.saturating_add(reserved),
        budget: request.budget.unwrap_or(u64::MAX),
        largest: largest.into_iter().map(|(part, tokens)| Large { part, tokens }).collect(),
    };
    let base_tokens = base.tokens();
    // Reserves alone may be more than the budget, so the sum is compared, not the difference.
    let fits =
        |tokens: u64| request.budget.is_none_or(|budget| tokens.saturating_add(reserved) <= budget);
    if !fits(base_tokens) {
        return Err(too_small(base_tokens, base.largest(LARGEST)));
    }

    let query = Query::new(&request.brief, request.profile.as_ref());
    let scores = score(&request.brief, &candidates, &taken, &query, request.profile.as_ref());
    let taken = without_copies(&candidates, taken, &scores, &mut dropped);
    let steps = steps(request.strategy, &candidates, &taken, &scores, &lines);
    let tally = || Tally::new(&candidates, &lines, request.tokenizer, base_tokens);
    let (prefix, everything, whole) = longest(tally(), &steps, available);
    if request.strategy == Strategy::Full && prefix < steps.len() {
        return Err(too_small(everything, largest_of_all(&base, &candidates)));
    }
    let steps = &steps[..prefix];
    let mut kept = tally();
    steps.iter().for_each(|&step| kept.take(step));

    let (candidates, lines, scores) = (&candidates, &lines, &scores);
    let chosen = Chosen { candidates, lines, scores, steps, kept, whole };
    let mut receipt = Receipt {
        strategy: request.strategy,
        tokenizer: request.tokenizer,
        token_count: chosen.kept.tokens,
        exact: request.tokenizer.is_exact(),
        budget: request.budget,
        reserved_system_prompt: request.reserved_system_prompt,
        reserved_work: request.reserved_work,
        utilisation_per_mille: match request.budget {
            Some(_) => per_mille(chosen.kept.tokens, available),
            None => 0,
        },
        budget_for_everything: everything.saturating_add(reserved),
        manifest_hash,
        completeness_per_mille: completeness(request),
        kept: Vec::new(),
        demoted: Vec::new(),
        dropped,
        unresolved: sorted_gaps(request),
        warnings: warnings(request, candidates, base_tokens, available),
    };
    chosen.report(&taken, &mut receipt);
    let prompt = chosen.render(&base, request.tokenizer);
    let carried = chosen.carried(&taken);
    Ok(Assembled { prompt, receipt, manifest, carried })
}

/// Candidates in an order of their own, counted for the receiver.
fn sorted(request: &Request) -> Vec<Candidate> {
    let mut candidates = request.items.clone();
    for candidate in &mut candidates {
        if candidate.prepared.tokenizer != request.tokenizer {
            candidate.prepared = Arc::new(candidate.prepared.counted_in(request.tokenizer));
        }
    }
    // Items with the same id and revision should be the same; where they are not, some order must
    // still be theirs and not the caller's.
    candidates.sort_by(|one, two| {
        let key = |c: &Candidate| {
            let item = &c.prepared.item;
            (item.revision, c.prepared.hash, Reverse(item.pinned), item.priority, item.at)
        };
        let (first, second) = (&one.prepared, &two.prepared);
        let by_id = first.item.id.cmp(&second.item.id);
        by_id
            .then_with(|| key(one).cmp(&key(two)))
            .then_with(|| first.full.text().cmp(second.full.text()))
    });
    candidates
}

/// Which items are on the ladder, and what is dropped before it.
fn take(candidates: &[Candidate], profile: Option<&Profile>) -> (Vec<bool>, Vec<Dropped>) {
    let mut dropped = Vec::new();
    let mut taken = Vec::with_capacity(candidates.len());
    for (at, candidate) in candidates.iter().enumerate() {
        let item = &candidate.prepared.item;
        let again = at > 0 && candidates[at - 1].is_same(candidate);
        let unwanted = profile.is_some_and(|profile| profile.view(item) == Viewed::LeftOut);
        taken.push(!item.pinned && !again && !unwanted);
        if again {
            dropped.push(candidate.dropped(Reason::Duplicate { of: item.id.clone() }));
        } else if unwanted && !item.pinned {
            dropped.push(candidate.dropped(Reason::Role));
        }
    }
    (taken, dropped)
}

/// Takes items off the ladder of which every part is said by another item, word for word.
fn without_copies(
    candidates: &[Candidate],
    mut taken: Vec<bool>,
    scores: &Scores,
    dropped: &mut Vec<Dropped>,
) -> Vec<bool> {
    for (at, taken) in taken.iter_mut().enumerate().filter(|(_, taken)| **taken) {
        let repeats = scores.repeats(at);
        if let Some(Some(of)) = repeats.first().copied()
            && repeats.iter().all(Option::is_some)
        {
            *taken = false;
            let of = candidates[of].prepared.item.id.clone();
            dropped.push(candidates[at].dropped(Reason::Duplicate { of }));
        }
    }
    taken
}

fn pins(candidates: &[Candidate]) -> Vec<(String, Piece)> {
    let mut pins: Vec<(String, Piece)> = Vec::new();
    for (at, candidate) in candidates.iter().enumerate() {
        if candidate.prepared.item.pinned && (at == 0 || !candidates[at - 1].is_same(candidate)) {
            pins.push((candidate.prepared.item.id.clone(), candidate.prepared.full.clone()));
        }
    }
    pins
}

fn largest_of_all(base: &Base, candidates: &[Candidate]) -> Vec<(String, u64)> {
    let mut parts = base.largest(LARGEST);
    let items = candidates.iter().filter(|candidate| !candidate.prepared.item.pinned);
    parts.extend(items.map(|c| (format!("item {}", c.prepared.item.id), c.prepared.tokens())));
    parts.sort_by(|one, two| two.1.cmp(&one.1).then_with(|| one.0.cmp(&two.0)));
    parts.truncate(LARGEST);
    parts
}

fn sorted_gaps(request: &Request) -> Vec<Gap> {
    let mut gaps = request.unresolved.clone();
    gaps.sort_unstable();
    gaps
}

fn completeness(request: &Request) -> u64 {
    let resolved = u64::try_from(request.items.len()).expect("a length fits");
    let missing = u64::try_from(request.unresolved.len()).expect("a length fits");
    if missing == 0 { 1000 } else { per_mille(resolved, resolved + missing) }
}

fn per_mille(part: u64, whole: u64) -> u64 {
    part.saturating_mul(1000).checked_div(whole).unwrap_or(0)
}

fn warnings(
    request: &Request,
    candidates: &[Candidate],
    base: u64,
    available: u64,
) -> Vec<Warning> {
    let mut warnings: Vec<Warning> =
        candidates.iter().flat_map(|candidate| candidate.prepared.warnings.clone()).collect();
    let mut warn = |code, text: String| warnings.push(Warning { code, id: None, text });
    if request.budget.is_some() && base.saturating_mul(4) > available.saturating_mul(3) {
        let text = format!("what must be passed takes {base} of {available} tokens");
        warn(WarningCode::LargeBase, text);
    }
    if !request.tokenizer.is_exact() {
        let text = "the receiver's tokenizer is not known: bytes are counted, an upper bound";
        warn(WarningCode::InexactCount, text.into());
    }
    warnings
}

impl Candidate {
    fn item(&self) -> &Item {
        &self.prepared.item
    }

    fn is_same(&self, other: &Self) -> bool {
        let key = |c: &Self| (c.prepared.item.revision, c.prepared.hash);
        self.prepared.item.id == other.prepared.item.id && key(self) == key(other)
    }

    /// What the item was worth in an earlier assembly, if that stands.
    fn settled(&self) -> Option<&Carried> {
        self.carried.as_ref().filter(|carried| carried.settled)
    }

    /// How many tokens a line, a summary and all of it are.
    fn sizes(&self) -> (u64, u64, u64) {
        let prepared = &self.prepared;
        (prepared.stub.tokens(), prepared.summary.tokens(), prepared.full.tokens())
    }

    fn passes_summary(&self, top: Rung) -> bool {
        self.prepared.item.summary.is_some()
            && top >= Rung::Summary
            && self.carried.as_ref().is_none_or(|carried| carried.summary || top == Rung::Full)
    }

    fn passes_part(&self, place: usize, top: Rung) -> bool {
        let carried = self.carried.as_ref();
        top == Rung::Full || carried.is_some_and(|c| c.parts.iter().any(|(at, _)| *at == place))
    }

    fn dropped(&self, reason: Reason) -> Dropped {
        let item = &self.prepared.item;
        Dropped {
            id: item.id.clone(),
            revision: item.revision,
            reason,
            tokens: self.prepared.tokens(),
            fetch: Some(receipt::fetch(&item.id)),
        }
    }
}

impl Carried {
    fn score_of(&self, place: usize) -> i64 {
        let part = self.parts.iter().find(|(at, _)| *at == place);
        part.map_or(self.score, |(_, score)| *score)
    }
}

// SPDX-License-Identifier: Apache-2.0
//! What a receiver gets to read, within its token budget. Intent, constraints, pins, the ask, open
//! decisions and the expected output are always in it, or there is an error that says how much room
//! they need; everything else is on a ladder of detail ([`ladder`]). Nothing is left out silently:
//! the [`Receipt`] names everything that was given.
//!
//! Reading order: [`tokens`], [`marker`], [`units`], [`item`], [`score`], [`ladder`], [`render`],
//! [`chosen`], [`reading`], [`delivery`], [`prompt`].

mod chosen;
mod delivery;
mod families;
mod item;
mod ladder;
mod lint;
mod manifest;
mod marker;
mod profile;
mod prompt;
mod reading;
mod receipt;
mod relevance;
mod render;
mod score;
mod summary;
mod text;
mod tokens;
mod units;

use std::cmp::Reverse;
use std::rc::Rc;
use std::sync::Arc;

use crate::envelope::parts::{ContextItem, Form};
use crate::stems::Language;
use crate::trust::Trust;

pub use chosen::LeftOut;
pub use delivery::{Delivery, Told, claim_reserve, deliver};
pub use families::Family;
pub use item::{Excerpt, ITEMS_MAX, Item, Passed, Prepared, Priority, Rung, TEXT_BYTES_MAX};
pub use lint::advise;
pub use manifest::Entry;
pub use marker::{shown, word as plain};
pub use profile::{PROFILES_MAX, Profile, Profiles, Selection, WORDS_MAX};
pub use prompt::{Prompt, prompt};
pub use reading::{Read, Reader, Reading, read};
pub use receipt::{
    Demoted, Dropped, Gap, Kept, Large, Reason, Receipt, Strategy, TooSmall, Warning, WarningCode,
};
pub use render::{Brief, PromptForm, Rule};
pub use summary::{SUMMARY_TOKENS_MAX, extract, gist};
pub use text::{identifier_density, sentences};
pub use tokens::{Piece, Tokenizer};
pub use units::{Cut, PART_TOKENS, cut};

use chosen::{Chosen, Names};
use ladder::{Costs, Step, Tally, longest, steps};
use marker::Contained;
use profile::Viewed;
use relevance::Query;
use render::{Base, Line, Pen};
use score::{Scores, score};

/// How many steps more are tried than the estimates allow, and how many tokens must be left for that.
const MORE_MAX: usize = 4;
const WORTH_TRYING: u64 = 12;
/// How many of the largest parts an error names.
const LARGEST: usize = 5;

/// What is to be assembled, for whom, and within what.
#[derive(Debug, Clone, Default)]
pub struct Request {
    pub brief: Brief,
    pub items: Vec<Candidate>,
    /// What was asked for and could not be read.
    pub unresolved: Vec<Gap>,
    /// How many items there are that are not among these.
    pub not_considered: u64,
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
    /// What of that is kept for what a claim adds.
    pub reserved_claim: u64,
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
    /// What an envelope passes of it, in the order of the short names.
    pub context: Vec<ContextItem>,
    /// The ids of what it only refers to, in the order of the short names, with revision and title.
    pub referred: Vec<(String, u64, String)>,
    /// What an envelope stores of the choice.
    pub reading: Reading,
}

/// Assembles what a receiver gets to read. The same request gives the same result, whatever the
/// order of its items.
pub fn assemble(request: &Request) -> Result<Assembled, TooSmall> {
    let candidates = sorted(request);
    let manifest = manifest::list(&request.inherited, &candidates);
    let manifest_hash = manifest::address(&manifest);
    let (taken, mut dropped) = take(&candidates, request.profile.as_ref());
    let mark = mark(&request.brief, &candidates);
    let pen = Pen { mark, form: PromptForm::Markdown };
    let lines = render::lines(&request.brief, &pen, request.tokenizer);
    let query = Query::new(&request.brief, request.profile.as_ref(), Language::default());
    let scores = score(&request.brief, &candidates, &taken, &query, request.profile.as_ref());
    let taken = without_copies(&candidates, taken, &scores, &mut dropped);
    let asked = query.is_asked();
    let steps = steps(request.strategy, &candidates, &taken, &scores, &lines, asked);
    let unwanted = |it: &Dropped| it.reason == Reason::Role;
    let out: Vec<usize> = (0..candidates.len())
        .filter(|&at| !taken[at] && !candidates[at].item().pinned)
        .filter(|&at| dropped.iter().any(|it| unwanted(it) && it.id == candidates[at].item().id))
        .collect();
    let names = Names::by_steps(&candidates, &steps, &out);
    for dropped in &mut dropped {
        let at = candidates.iter().position(|it| it.prepared.item.id == dropped.id);
        dropped.name = at.map_or_else(String::new, |at| format!("m{}", names.of(at)));
    }

    let reserved = request.reserved_system_prompt.saturating_add(request.reserved_work);
    let reserved = reserved.saturating_add(request.reserved_claim);
    let before = LeftOut::default();
    let page = Page {
        brief: &request.brief,
        candidates: &candidates,
        taken: &taken,
        out: &out,
        names: &names,
        lines: &lines,
        steps: &steps,
        pen: &pen,
        before: &before,
        tokenizer: request.tokenizer,
        all_or_nothing: request.strategy == Strategy::Full,
        assembled: None,
    };
    let fitted = page.fit(request.budget, reserved)?;
    let available = request.budget.map_or(u64::MAX, |budget| budget.saturating_sub(reserved));
    let chosen = &fitted.chosen;
    let mut receipt = Receipt {
        strategy: request.strategy,
        tokenizer: request.tokenizer,
        token_count: fitted.token_count,
        exact: request.tokenizer.is_exact(),
        budget: request.budget,
        reserved_system_prompt: request.reserved_system_prompt,
        reserved_work: request.reserved_work,
        reserved_claim: request.reserved_claim,
        utilisation_per_mille: match request.budget {
            Some(_) => per_mille(fitted.token_count, available),
            None => 0,
        },
        budget_for_everything: fitted.everything.saturating_add(reserved),
        manifest_hash,
        completeness_per_mille: completeness(request),
        not_considered: request.not_considered,
        kept: Vec::new(),
        demoted: Vec::new(),
        dropped,
        unresolved: sorted_gaps(request),
        warnings: warnings(request, &candidates, fitted.base_tokens, available),
    };
    chosen.report(&taken, &fitted.whole, &mut receipt);
    let (context, referred) = passed(chosen, &taken, &receipt.dropped);
    let reading = Reading {
        mark: pen.mark.clone(),
        tokenizer: request.tokenizer,
        strategy: request.strategy,
        budget: request.budget.map(|budget| {
            let others = request.reserved_system_prompt.saturating_add(request.reserved_work);
            budget.saturating_sub(others)
        }),
        token_count: fitted.token_count,
        order: chosen.order(),
        left_out: LeftOut { lines: 0, ..chosen.left_out(&taken).0 },
    };
    let carried = chosen.carried(&taken, &scores);
    let prompt = fitted.stable + &fitted.rest;
    Ok(Assembled { prompt, receipt, manifest, carried, context, referred, reading })
}

/// The mark of our lines among these texts.
fn mark(brief: &Brief, candidates: &[Candidate]) -> String {
    let contained = candidates
        .iter()
        .fold(brief.contained(), |all: Contained, it| all.and(it.prepared.contained));
    marker::mark(contained, |found| {
        brief.each_text(found);
        candidates.iter().for_each(|candidate| candidate.prepared.each_text(found));
    })
}

/// Everything that is to be rendered as far as there is room: the one way from what was said to the
/// text, for whoever assembles and whoever reads.
struct Page<'a> {
    brief: &'a Brief,
    candidates: &'a [Candidate],
    taken: &'a [bool],
    out: &'a [usize],
    names: &'a Names,
    lines: &'a [Line],
    steps: &'a [Step],
    pen: &'a Pen,
    before: &'a LeftOut,
    tokenizer: Tokenizer,
    /// Whether it is refused rather than cut.
    all_or_nothing: bool,
    /// How many steps it had when it was assembled, if it was.
    assembled: Option<usize>,
}

/// A text that fits, and what it came from.
struct Fitted<'a> {
    stable: String,
    rest: String,
    token_count: u64,
    base_tokens: u64,
    everything: u64,
    chosen: Chosen<'a>,
    whole: Tally<'a>,
}

impl<'a> Page<'a> {
    fn fit(&self, budget: Option<u64>, reserved: u64) -> Result<Fitted<'a>, TooSmall> {
        let base = render::base(self.brief, self.pins(), self.pen, self.tokenizer);
        let base_tokens = base.tokens();
        let available = budget.map_or(u64::MAX, |budget| budget.saturating_sub(reserved));
        let too_small = |tokens: u64, largest: Vec<(String, u64)>| TooSmall {
            needed: tokens.saturating_add(reserved),
            budget: budget.unwrap_or(u64::MAX),
            largest: largest.into_iter().map(|(part, tokens)| Large { part, tokens }).collect(),
        };
        let count = |text: &str| self.tokenizer.count(text);
        let most = self.names.most();
        let longest_footer = LeftOut::longest(
            self.pen,
            self.candidates,
            self.before,
            (most, self.lines.len()),
            self.assembled.is_some(),
        );
        let footer = count(&longest_footer) + 6;
        // What was left out before, or is not for this role, is said whatever the room.
        let (always, footer, cut) = match self.before.is_empty() && self.out.is_empty() {
            true => (base_tokens, footer, count(&chosen::fetch_line(self.pen))),
            false => (base_tokens + footer, 0, 0),
        };
        let costs = Rc::new(Costs::new(self.pen, self.names, self.tokenizer));
        let tally = || Tally::new(self.candidates, self.lines, costs.clone(), always);
        let (mut prefix, everything, whole) = longest(tally(), self.steps, available, footer, cut);
        // What is told of everything is never too little.
        let everything = everything.saturating_add(2 * self.steps.len() as u64 + 8);
        // Reserves alone may be more than the budget, so the sum is compared, not the difference.
        let fits =
            |tokens: u64| budget.is_none_or(|budget| tokens.saturating_add(reserved) <= budget);
        let needed = everything.min(always.saturating_add(footer));
        if !fits(needed) && !self.all_or_nothing {
            return Err(too_small(needed, base.largest(LARGEST)));
        }
        if self.all_or_nothing {
            prefix = self.steps.len();
        }
        let mut last = None;
        let mut more = 0;
        loop {
            let (chosen, stable, rest) = self.rendered(&base, tally(), prefix);
            let token_count = self.tokenizer.count(&format!("{stable}{rest}"));
            let fit = fits(token_count);
            // Costs are estimates; the text decides. A step at a time, so that more room never
            // takes anything away.
            match (fit, last.take()) {
                (false, Some(before)) => return Ok(before),
                (false, None) if self.all_or_nothing => {
                    return Err(too_small(token_count, largest_of_all(&base, self.candidates)));
                }
                (false, None) if prefix == 0 => {
                    return Err(too_small(token_count, base.largest(LARGEST)));
                }
                (false, None) => {
                    prefix -= 1;
                    // What is too much is not tried again.
                    more = MORE_MAX;
                    continue;
                }
                (true, _) => {}
            }
            // The whole text is what everything needs, where it was rendered.
            let whole_text = prefix == self.steps.len();
            let all = match (self.all_or_nothing, whole_text) {
                (true, _) => token_count,
                (false, true) => everything.max(token_count),
                (false, false) => everything,
            };
            let fitted = Fitted {
                stable,
                rest,
                token_count,
                base_tokens,
                everything: all,
                chosen,
                whole: whole.clone(),
            };
            let left = available.saturating_sub(token_count);
            if whole_text || more >= MORE_MAX || left < WORTH_TRYING {
                return Ok(fitted);
            }
            last = Some(fitted);
            more += 1;
            prefix += 1;
        }
    }

    /// The text after so many steps.
    fn rendered(
        &self,
        base: &Base,
        mut kept: Tally<'a>,
        prefix: usize,
    ) -> (Chosen<'a>, String, String) {
        let steps = &self.steps[..prefix];
        steps.iter().for_each(|&step| kept.take(step));
        let shortened = self.assembled.is_some_and(|assembled| prefix < assembled);
        let Self { candidates, names, out, lines, pen, before, .. } = *self;
        let chosen = Chosen { candidates, names, out, lines, steps, kept, pen, before, shortened };
        let (stable, rest) = chosen.render(base, self.taken);
        (chosen, stable, rest)
    }

    /// Pinned items as they stand in the text, under their ids.
    fn pins(&self) -> Vec<(String, String)> {
        let mut pins = Vec::new();
        for (at, candidate) in self.candidates.iter().enumerate() {
            let item = candidate.item();
            let again = at > 0 && self.candidates[at - 1].is_same(candidate);
            if item.pinned && !again {
                let head = chosen::head(self.names, at, candidate);
                let head = if head.ends_with(']') { head } else { format!("{head}:") };
                pins.push((item.id.clone(), self.pen.quote(&head, candidate.prepared.full.text())));
            }
        }
        pins
    }
}

/// What an envelope passes, and what it only refers to, each in the order of the names.
fn passed(
    chosen: &Chosen<'_>,
    taken: &[bool],
    dropped: &[Dropped],
) -> (Vec<ContextItem>, Vec<(String, u64, String)>) {
    let mut order: Vec<usize> = (0..chosen.candidates.len()).collect();
    order.sort_unstable_by_key(|&at| chosen.names.of(at));
    let copy = |id: &str| {
        let found = dropped.iter().find(|one| one.id == id);
        found.is_some_and(|one| matches!(one.reason, Reason::Duplicate { .. }))
    };
    let (mut context, mut referred) = (Vec::new(), Vec::new());
    for at in order {
        let (candidate, held) = (&chosen.candidates[at], &chosen.kept.held[at]);
        let (item, prepared) = (candidate.item(), &candidate.prepared);
        let again = at > 0 && chosen.candidates[at - 1].is_same(candidate);
        let rung = if item.pinned { Rung::Full } else { held.rung() };
        if (item.pinned && again) || (!item.pinned && (!taken[at] || rung == Rung::Listed)) {
            if !item.pinned && !again && !copy(&item.id) {
                referred.push((item.id.clone(), item.revision, item.title.clone()));
            }
            continue;
        }
        let short = rung != Rung::Full;
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let excerpts = if short { chosen.excerpts(at) } else { Vec::new() };
        context.push(ContextItem {
            id: item.id.clone(),
            revision: u32::try_from(item.revision).ok().filter(|revision| *revision > 0),
            form: match rung {
                Rung::Listed | Rung::Stub => Form::Stub,
                Rung::Summary => Form::Summary,
                Rung::Full => Form::Full,
            },
            pinned: item.pinned,
            title: some(&item.title),
            text: match rung {
                Rung::Full => Some(item.text.clone()),
                Rung::Summary if held.summary => some(prepared.summary.text().trim_end()),
                Rung::Listed | Rung::Stub | Rung::Summary => None,
            },
            kind: some(&item.kind).filter(|kind| kind != "memory"),
            by: item.by.clone(),
            trust: Some(item.trust).filter(|trust| *trust != Trust::Agent),
            about: some(prepared.about.text().trim_end()).filter(|_| short),
            lead: prepared
                .lead
                .as_ref()
                .and_then(|lead| some(lead.text()))
                .filter(|_| !excerpts.is_empty()),
            of: (!excerpts.is_empty()).then(|| u32::try_from(prepared.of).unwrap_or(u32::MAX)),
            tokens: short.then_some(prepared.size),
            excerpts,
        });
    }
    (context, referred)
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
    let missing = missing.saturating_add(request.not_considered);
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
    if let Some(caveat) = request.tokenizer.caveat() {
        warn(WarningCode::InexactCount, caveat);
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
        // What a line says besides what the item is about, and what a summary does.
        const STUB: u64 = 4;
        const SUMMARY: u64 = 6;
        let stub = prepared.about.tokens() + STUB;
        (stub, prepared.summary.tokens() + SUMMARY, prepared.full.tokens())
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
            name: String::new(),
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

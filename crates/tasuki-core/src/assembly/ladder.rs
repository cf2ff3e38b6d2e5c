// SPDX-License-Identifier: Apache-2.0
//! The detail ladder. Every item can be passed on several rungs; every step up is put into one order
//! that does not depend on the budget, and the longest beginning of that order that fits is taken.
//! That is why a larger budget never takes anything away, and why a reader with less room reads a
//! shorter beginning of the same.

use std::cmp::Reverse;
use std::rc::Rc;

use super::Candidate;
use super::chosen::Names;
use super::item::Rung;
use super::receipt::Strategy;
use super::render::{Line, Pen, Section};
use super::score::{RANK_MAX, SPARE_BITS, Scores, order};
use super::tokens::Tokenizer;

/// What the beginning of a log and what failed in it are worth beside the best of its other parts.
const TELLING: i64 = 6000;

/// What a part is worth: what tells most of a log comes before the rest of it, whatever is asked.
pub(super) fn worth(candidate: &Candidate, scores: &Scores, at: usize, place: usize) -> i64 {
    let own = scores.of_parts(at)[place];
    let part = &candidate.prepared.parts[place];
    match (candidate.settled().is_none(), part.telling, part.routine) {
        (true, true, _) => scores.of_item(at).max(own) + TELLING,
        // What went as it should says least, however well its words fit.
        (true, _, true) => own.min(own / 8),
        _ => own,
    }
}

/// A text of up to so many times what a line about it costs is a line first. On our own corpus of short
/// messages that is what makes choosing the best no worse than a line for each.
const SHORT: u64 = 3;

/// One step up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A line of the brief.
    Line(usize),
    Stub(usize),
    Summary(usize),
    /// A part, by its place among those that are there.
    Part(usize, usize),
    Whole(usize),
}

impl Step {
    /// The item that it is about.
    pub(super) fn item(self) -> Option<usize> {
        match self {
            Self::Line(_) => None,
            Self::Stub(at) | Self::Summary(at) | Self::Part(at, _) | Self::Whole(at) => Some(at),
        }
    }
}

/// All steps in their order. `taken` says which items are candidates.
pub(super) fn steps(
    strategy: Strategy,
    candidates: &[Candidate],
    taken: &[bool],
    scores: &Scores,
    lines: &[Line],
    asked: bool,
) -> Vec<Step> {
    let mut all: Vec<Step> = Vec::with_capacity(candidates.len() * 4 + lines.len());
    let mut keys: Vec<u128> = Vec::with_capacity(all.capacity());
    let mut keep = |order: u128, step: Step| {
        // Of equals the first one comes first.
        keys.push(order | ((1 << SPARE_BITS) - 1 - all.len() as u128));
        all.push(step);
    };
    for (at, line) in lines.iter().enumerate() {
        keep(order(line.priority, false, line_score(line, at), RANK_MAX), Step::Line(at));
    }
    for at in (0..candidates.len()).filter(|&at| taken[at]) {
        let candidate = &candidates[at];
        let item = &candidate.prepared.item;
        let best = candidate.settled().map_or_else(|| scores.of_item(at), |c| c.score);
        let mut put = |later: bool, score: i64, step: Step| {
            keep(order(item.priority, later, score, scores.rank(at)), step);
        };
        let (stub, summary, full) = candidate.sizes();
        let top = candidate.carried.as_ref().map_or(Rung::Full, |carried| carried.rung);
        let whole_if = |small: bool, other: Step| {
            if small && top == Rung::Full { Step::Whole(at) } else { other }
        };
        match strategy {
            Strategy::Full if top == Rung::Full => put(false, best, Step::Whole(at)),
            Strategy::Lazy => put(false, best, whole_if(full <= stub, Step::Stub(at))),
            Strategy::SummaryRefs => {
                put(false, best, whole_if(full <= stub, Step::Stub(at)));
                if full > stub && top >= Rung::Summary {
                    put(true, best, whole_if(full <= summary, Step::Summary(at)));
                }
            }
            Strategy::Priority if !candidate.prepared.is_long() && top == Rung::Full => {
                // A line says most of a short text; the rest of it comes after what says more. Where
                // something is asked, what answers it is worth more than a line about everything.
                if !asked && full > stub && full <= stub * SHORT {
                    put(false, best, Step::Stub(at));
                    put(true, best, Step::Whole(at));
                } else {
                    put(false, best, Step::Whole(at));
                }
            }
            Strategy::Priority | Strategy::Full => {
                if top < Rung::Summary {
                    put(false, best, Step::Stub(at));
                }
                if candidate.passes_summary(top) {
                    put(false, best, Step::Summary(at));
                }
                for place in 0..candidate.prepared.parts.len() {
                    let new = scores.repeats(at)[place].is_none();
                    if new && candidate.passes_part(place, top) {
                        let score = worth(candidate, scores, at, place);
                        put(false, score, Step::Part(at, place));
                    }
                }
            }
        }
    }
    keys.sort_unstable_by_key(|&key| Reverse(key));
    let place = |key: u128| (1 << SPARE_BITS) - 1 - (key & ((1 << SPARE_BITS) - 1));
    keys.into_iter().map(|key| all[usize::try_from(place(key)).expect("it was one")]).collect()
}

/// Lines of the brief are few and short: what is said about the task as a whole comes before the
/// items of its class, the newest history among the good ones.
fn line_score(line: &Line, at: usize) -> i64 {
    let at = i64::try_from(at).expect("a length fits");
    match line.section {
        Section::State => i64::MAX - at,
        Section::Context | Section::History => 9000 - at * 200,
    }
}

/// What lines of ours cost, about: what comes of it is counted as a whole before it is believed.
#[derive(Debug, Clone)]
pub(super) struct Costs {
    headings: [u64; 3],
    /// The line of an item up to its name.
    name: u64,
    /// Saying that nobody knows who wrote it.
    unknown: u64,
    summary: u64,
    stub: u64,
    /// Naming a run of parts, by how many digits the number of parts has.
    run: [u64; DIGITS],
    /// Who wrote most, which is said once.
    source: String,
}

const DIGITS: usize = 8;

impl Costs {
    pub(super) fn new(pen: &Pen, names: &Names, tokenizer: Tokenizer) -> Self {
        let count = |text: &str| tokenizer.count(text);
        let around = |head: &str| {
            let (open, close) = pen.around(head, false);
            count(&open) + count(&close)
        };
        let name = format!("[m{}]", names.most());
        let size = 8_888;
        Self {
            headings: Section::ALL.map(|section| {
                let source = names.source();
                let longer = format!("{}, {source} unless said otherwise", section.words());
                count(&pen.heading(&longer)).max(count(&pen.heading(section.words())))
            }),
            name: around(&format!("{name}:")),
            unknown: count(" of unknown source"),
            run: std::array::from_fn(|digits| {
                let number = "8".repeat(digits + 1);
                count(&format!(" parts {number}-{number} of {number}:"))
            }),
            summary: count(&format!(", summary of {size} tokens:")),
            stub: count(&format!(", {size} tokens: ")),
            source: names.source().to_owned(),
        }
    }

    /// What naming an item and who wrote it costs.
    fn named(&self, candidate: &Candidate) -> u64 {
        let prepared = &candidate.prepared;
        let words = |piece: &super::Piece| {
            if piece.text().trim_end().is_empty() { 0 } else { piece.tokens() }
        };
        let source = prepared.source.text().trim_end();
        let source = match source == self.source {
            true => 0,
            false if source.is_empty() => self.unknown,
            false => prepared.source.tokens(),
        };
        self.name + words(&prepared.label) + source
    }

    fn run(&self, of: usize) -> u64 {
        let digits = usize::try_from(of.max(1).ilog10()).expect("few digits");
        self.run[digits.min(DIGITS - 1)]
    }
}

/// What has been taken, and how many tokens it is at most.
#[derive(Clone)]
pub(super) struct Tally<'a> {
    candidates: &'a [Candidate],
    lines: &'a [Line],
    costs: Rc<Costs>,
    sections: [usize; 3],
    pub(super) held: Vec<Held>,
    pub(super) lines_held: Vec<bool>,
    pub(super) tokens: u64,
}

/// How much of an item has been taken.
#[derive(Debug, Clone, Default)]
pub(super) struct Held {
    stub: bool,
    pub(super) summary: bool,
    whole: bool,
    /// Places of the parts, sorted.
    pub(super) parts: Vec<usize>,
    parts_tokens: u64,
    /// How many runs of neighbouring parts there are, and what saying what they belong to costs.
    runs: u64,
    labels: u64,
}

impl Held {
    pub(super) fn rung(&self) -> Rung {
        if self.whole {
            Rung::Full
        } else if self.summary || !self.parts.is_empty() {
            Rung::Summary
        } else if self.stub {
            Rung::Stub
        } else {
            Rung::Listed
        }
    }

    fn tokens(&self, candidate: &Candidate, costs: &Costs) -> u64 {
        let prepared = &candidate.prepared;
        let named = || costs.named(candidate);
        let lead = || prepared.lead.as_ref().map_or(0, super::Piece::tokens);
        match self.rung() {
            Rung::Listed => 0,
            Rung::Stub if prepared.is_small_stub() => named() + prepared.about.tokens() + 1,
            Rung::Stub => named() + costs.stub + prepared.about.tokens(),
            Rung::Full => named() + prepared.full.tokens(),
            Rung::Summary => {
                let said = if self.summary { costs.summary + prepared.summary.tokens() } else { 0 };
                // The first run stands in the line of the item, unless a summary does.
                let named_again = self.runs - u64::from(!self.summary && self.runs > 0);
                let runs = self.runs * costs.run(prepared.of) + self.labels;
                let lead = if self.runs > 0 { lead() } else { 0 };
                named() + said + lead + runs + named_again * costs.name + self.parts_tokens
            }
        }
    }

    fn add(&mut self, place: usize, candidate: &Candidate) {
        let parts = &candidate.prepared.parts;
        let Err(at) = self.parts.binary_search(&place) else { return };
        let number = parts[place].number;
        let next_to = |other: Option<&usize>, step: i64| {
            other.is_some_and(|&other| i64::from(parts[other].number) + step == i64::from(number))
        };
        let before = at.checked_sub(1).and_then(|at| self.parts.get(at));
        let (left, right) = (next_to(before, 1), next_to(self.parts.get(at), -1));
        self.runs = self.runs + 1 - u64::from(left) - u64::from(right);
        // The first part of a run says what it belongs to.
        if !left {
            self.labels += parts[place].label_tokens;
        }
        if let Some(&after) = self.parts.get(at).filter(|_| right) {
            self.labels = self.labels.saturating_sub(parts[after].label_tokens);
        }
        self.parts.insert(at, place);
        self.parts_tokens += parts[place].piece.tokens();
        self.whole = self.parts.len() == candidate.prepared.of;
    }
}

impl<'a> Tally<'a> {
    pub(super) fn new(
        candidates: &'a [Candidate],
        lines: &'a [Line],
        costs: Rc<Costs>,
        base: u64,
    ) -> Self {
        Self {
            candidates,
            lines,
            costs,
            sections: [0; 3],
            held: vec![Held::default(); candidates.len()],
            lines_held: vec![false; lines.len()],
            tokens: base,
        }
    }

    /// Takes a step.
    pub(super) fn take(&mut self, step: Step) {
        let Some(at) = step.item() else {
            let Step::Line(at) = step else { return };
            if !std::mem::replace(&mut self.lines_held[at], true) {
                self.enter(self.lines[at].section);
                self.tokens += self.lines[at].piece.tokens();
            }
            return;
        };
        let candidate = &self.candidates[at];
        let before = self.held[at].tokens(candidate, &self.costs);
        if self.held[at].rung() == Rung::Listed {
            self.enter(Section::Context);
        }
        let held = &mut self.held[at];
        match step {
            Step::Line(_) => {}
            Step::Stub(_) => held.stub = true,
            Step::Summary(_) => held.summary = true,
            Step::Whole(_) => held.whole = true,
            Step::Part(_, place) => held.add(place, candidate),
        }
        self.tokens = self.tokens - before + held.tokens(candidate, &self.costs);
    }

    /// Whether some item is there, but not whole.
    pub(super) fn is_cut(&self) -> bool {
        self.held.iter().any(|held| matches!(held.rung(), Rung::Stub | Rung::Summary))
    }

    fn enter(&mut self, section: Section) {
        let at = section as usize;
        if self.sections[at] == 0 {
            self.tokens += self.costs.headings[at];
        }
        self.sections[at] += 1;
    }
}

/// How many steps fit into so many tokens, how many tokens all of them need, and what is held after
/// all of them. Where not all fit, `footer` tokens are kept for saying what was left out, and `cut` tokens
/// for how to get the rest where items are there in short.
pub(super) fn longest<'a>(
    mut tally: Tally<'a>,
    steps: &[Step],
    available: u64,
    footer: u64,
    cut: u64,
) -> (usize, u64, Tally<'a>) {
    let mut fits = steps.len();
    let with_footer = available.saturating_sub(footer);
    for (at, &step) in steps.iter().enumerate() {
        tally.take(step);
        if tally.tokens > with_footer && fits == steps.len() {
            fits = at;
        }
    }
    let everything = tally.tokens + if tally.is_cut() { cut } else { 0 };
    (if everything <= available { steps.len() } else { fits }, everything, tally)
}

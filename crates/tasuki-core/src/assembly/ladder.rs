// SPDX-License-Identifier: Apache-2.0
//! The detail ladder. Every item can be passed on several rungs; every step up is put into one order
//! that does not depend on the budget, and the longest beginning of that order that fits is taken.
//! That is why a larger budget never takes anything away.

use std::cmp::Reverse;

use super::Candidate;
use super::item::Rung;
use super::receipt::Strategy;
use super::render::{Line, Section};
use super::score::{RANK_MAX, SPARE_BITS, Scores, order};
use super::tokens::{Piece, Tokenizer};

/// One step up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A line of the brief.
    Line(usize),
    Stub(usize),
    Summary(usize),
    Part(usize, usize),
    Whole(usize),
}

/// All steps in their order. `taken` says which items are candidates.
pub(super) fn steps(
    strategy: Strategy,
    candidates: &[Candidate],
    taken: &[bool],
    scores: &Scores,
    lines: &[Line],
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
                put(false, best, Step::Whole(at));
            }
            Strategy::Priority | Strategy::Full => {
                if candidate.prepared.head.is_some() || top < Rung::Summary {
                    put(false, best, Step::Stub(at));
                }
                if candidate.passes_summary(top) {
                    put(false, best, Step::Summary(at));
                }
                for (place, &score) in scores.of_parts(at).iter().enumerate() {
                    let new = scores.repeats(at)[place].is_none();
                    if new && candidate.passes_part(place, top) {
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

/// What has been taken, and how many tokens it is.
pub(super) struct Tally<'a> {
    candidates: &'a [Candidate],
    lines: &'a [Line],
    headings: [u64; 3],
    sections: [usize; 3],
    pub(super) held: Vec<Held>,
    pub(super) lines_held: Vec<bool>,
    pub(super) tokens: u64,
}

/// How much of an item has been taken.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Held {
    stub: bool,
    pub(super) summary: bool,
    whole: bool,
    /// How many parts.
    pub(super) parts: usize,
    parts_tokens: u64,
}

impl Held {
    pub(super) fn rung(&self) -> Rung {
        if self.whole {
            Rung::Full
        } else if self.summary || self.parts > 0 {
            Rung::Summary
        } else if self.stub {
            Rung::Stub
        } else {
            Rung::Listed
        }
    }

    fn tokens(&self, candidate: &Candidate) -> u64 {
        let prepared = &candidate.prepared;
        if self.whole {
            prepared.full.tokens()
        } else if self.parts > 0 {
            let head = if self.summary { Some(&prepared.summary) } else { prepared.head.as_ref() };
            head.map_or(0, Piece::tokens) + self.parts_tokens
        } else if self.summary {
            prepared.summary.tokens()
        } else if self.stub {
            prepared.stub.tokens()
        } else {
            0
        }
    }
}

impl<'a> Tally<'a> {
    pub(super) fn new(
        candidates: &'a [Candidate],
        lines: &'a [Line],
        tokenizer: Tokenizer,
        base: u64,
    ) -> Self {
        Self {
            candidates,
            lines,
            headings: Section::ALL.map(|section| section.heading(tokenizer).tokens()),
            sections: [0; 3],
            held: vec![Held::default(); candidates.len()],
            lines_held: vec![false; lines.len()],
            tokens: base,
        }
    }

    /// Takes a step.
    pub(super) fn take(&mut self, step: Step) {
        let (Step::Stub(at) | Step::Summary(at) | Step::Part(at, _) | Step::Whole(at)) = step
        else {
            let Step::Line(at) = step else { return };
            self.lines_held[at] = true;
            self.enter(self.lines[at].section);
            self.tokens += self.lines[at].piece.tokens();
            return;
        };
        let candidate = &self.candidates[at];
        let before = self.held[at].tokens(candidate);
        if self.held[at].rung() == Rung::Listed {
            self.enter(Section::Context);
        }
        let held = &mut self.held[at];
        match step {
            Step::Line(_) => {}
            Step::Stub(_) => held.stub = true,
            Step::Summary(_) => held.summary = true,
            Step::Whole(_) => held.whole = true,
            Step::Part(_, place) => {
                held.parts += 1;
                held.parts_tokens += candidate.prepared.parts[place].piece.tokens();
                held.whole = held.parts == candidate.prepared.parts.len();
            }
        }
        self.tokens = self.tokens - before + held.tokens(candidate);
    }

    fn enter(&mut self, section: Section) {
        let at = section as usize;
        if self.sections[at] == 0 {
            self.tokens += self.headings[at];
        }
        self.sections[at] += 1;
    }
}

/// How many steps fit into so many tokens, how many tokens all of them need on the way, and what is
/// held after all of them.
pub(super) fn longest<'a>(
    mut tally: Tally<'a>,
    steps: &[Step],
    available: u64,
) -> (usize, u64, Tally<'a>) {
    let mut fits = steps.len();
    let mut most = tally.tokens;
    for (at, &step) in steps.iter().enumerate() {
        tally.take(step);
        most = most.max(tally.tokens);
        if tally.tokens > available && fits == steps.len() {
            fits = at;
        }
    }
    (fits, most, tally)
}

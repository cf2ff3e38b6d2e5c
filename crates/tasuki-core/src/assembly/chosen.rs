// SPDX-License-Identifier: Apache-2.0
//! What came of a walk up the ladder: the text, the receipt, and what the next assembly may carry.

use std::cmp::Reverse;

use super::item::Rung;
use super::ladder::{Step, Tally};
use super::receipt::{Demoted, Dropped, Kept, Reason, Receipt, fetch};
use super::render::{Base, Line, Section};
use super::score::Scores;
use super::tokens::Tokenizer;
use super::{Candidate, Carried};

/// What was chosen, and what would be with room for everything.
pub(super) struct Chosen<'a> {
    pub(super) candidates: &'a [Candidate],
    pub(super) lines: &'a [Line],
    pub(super) scores: &'a Scores,
    /// What was done, in order.
    pub(super) steps: &'a [Step],
    pub(super) kept: Tally<'a>,
    pub(super) whole: Tally<'a>,
}

impl Chosen<'_> {
    /// Says what became of every item.
    pub(super) fn report(&self, taken: &[bool], receipt: &mut Receipt) {
        for (at, candidate) in self.candidates.iter().enumerate() {
            let item = &candidate.prepared.item;
            let (id, revision) = (item.id.clone(), item.revision);
            if item.pinned {
                if at == 0 || !self.candidates[at - 1].is_same(candidate) {
                    receipt.kept.push(Kept { id, revision, rung: Rung::Full, pinned: true });
                }
                continue;
            }
            if !taken[at] {
                continue;
            }
            let (held, whole) = (&self.kept.held[at], &self.whole.held[at]);
            let rung = held.rung();
            if rung == whole.rung() && held.parts == whole.parts {
                receipt.kept.push(Kept { id, revision, rung, pinned: false });
            } else if rung == Rung::Listed {
                receipt.dropped.push(candidate.dropped(Reason::Budget));
            } else {
                let count = |parts: usize| u32::try_from(parts).unwrap_or(u32::MAX);
                let all = candidate.prepared.parts.len();
                let parts = (held.parts > 0).then(|| (count(held.parts), count(all)));
                let fetch = fetch(&id);
                let reason = Reason::Budget;
                receipt.demoted.push(Demoted { id, revision, rung, parts, reason, fetch });
            }
        }
        for (line, held) in self.lines.iter().zip(&self.kept.lines_held) {
            if !held {
                receipt.dropped.push(Dropped {
                    id: line.name.clone(),
                    revision: 0,
                    reason: Reason::Budget,
                    tokens: line.piece.tokens(),
                    fetch: None,
                });
            }
        }
    }

    /// Puts the pieces together.
    pub(super) fn render(&self, base: &Base, tokenizer: Tokenizer) -> String {
        let mut prompt = String::new();
        base.above.iter().for_each(|(_, piece)| prompt.push_str(piece.text()));
        for section in Section::ALL {
            let mut body = String::new();
            match section {
                Section::Context => self.render_items(&mut body),
                Section::State | Section::History => self.render_lines(section, &mut body),
            }
            if !body.is_empty() {
                prompt.push_str(section.heading(tokenizer).text());
                prompt.push_str(&body);
            }
        }
        base.below.iter().for_each(|(_, piece)| prompt.push_str(piece.text()));
        prompt
    }

    fn render_lines(&self, section: Section, body: &mut String) {
        let held = self.lines.iter().zip(&self.kept.lines_held);
        let held = held.filter(|(line, held)| **held && line.section == section);
        let mut texts: Vec<&str> = held.map(|(line, _)| line.piece.text()).collect();
        // The newest history was taken first; it is read in the order in which it happened.
        if section == Section::History {
            texts.reverse();
        }
        texts.iter().for_each(|text| body.push_str(text));
    }

    /// Items from both ends towards the middle, the best first: the best at the top, the second best
    /// at the bottom, the weakest in between.
    fn render_items(&self, body: &mut String) {
        let mut ranked: Vec<usize> = Vec::new();
        let mut seen = vec![false; self.candidates.len()];
        for step in self.steps {
            let (Step::Stub(at) | Step::Summary(at) | Step::Part(at, _) | Step::Whole(at)) = *step
            else {
                continue;
            };
            if !std::mem::replace(&mut seen[at], true) {
                ranked.push(at);
            }
        }
        let parts = self.parts();
        let top = ranked.iter().step_by(2);
        let bottom = ranked.iter().skip(1).step_by(2).rev();
        for &at in top.chain(bottom) {
            self.render_item(at, &parts[at], body);
        }
    }

    /// The places of the parts that are held of each item, in the order of its text.
    fn parts(&self) -> Vec<Vec<usize>> {
        let mut parts = vec![Vec::new(); self.candidates.len()];
        for step in self.steps {
            if let Step::Part(at, place) = *step {
                parts[at].push(place);
            }
        }
        parts.iter_mut().for_each(|places| places.sort_unstable());
        parts
    }

    fn render_item(&self, at: usize, parts: &[usize], body: &mut String) {
        let (prepared, held) = (&self.candidates[at].prepared, &self.kept.held[at]);
        match held.rung() {
            Rung::Listed => {}
            Rung::Stub => body.push_str(prepared.stub.text()),
            Rung::Full => body.push_str(prepared.full.text()),
            Rung::Summary => {
                let head =
                    if held.summary { Some(&prepared.summary) } else { prepared.head.as_ref() };
                head.iter().for_each(|head| body.push_str(head.text()));
                parts.iter().for_each(|&place| body.push_str(prepared.parts[place].piece.text()));
            }
        }
    }

    pub(super) fn carried(&self, taken: &[bool]) -> Vec<(String, u64, Carried)> {
        let all_parts = self.parts();
        let mut carried = Vec::new();
        for (at, candidate) in self.candidates.iter().enumerate() {
            let held = &self.kept.held[at];
            if !taken[at] || held.rung() == Rung::Listed {
                continue;
            }
            let item = &candidate.prepared.item;
            let score = candidate.settled().map_or_else(|| self.scores.of_item(at), |c| c.score);
            let parts = all_parts[at].iter().map(|&place| (place, self.scores.of_parts(at)[place]));
            let mut parts: Vec<(usize, i64)> = parts.collect();
            parts.sort_unstable_by_key(|&(place, score)| (Reverse(score), place));
            let (rung, summary) = (held.rung(), held.summary);
            let kept = Carried { rung, score, settled: true, summary, parts };
            carried.push((item.id.clone(), item.revision, kept));
        }
        carried
    }
}

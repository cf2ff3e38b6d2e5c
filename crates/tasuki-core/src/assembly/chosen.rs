// SPDX-License-Identifier: Apache-2.0
//! What came of a walk up the ladder: the text, the receipt, what the envelope stores of it, and what
//! the next assembly may carry.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::item::{Excerpt, Rung};
use super::ladder::{Step, Tally};
use super::marker::word;
use super::receipt::{Demoted, Dropped, Kept, Reason, Receipt, fetch};
use super::render::{Base, Line, Pen, Section};
use super::score::Scores;
use super::{Candidate, Carried};

/// How many kinds the line about what was left out names.
const KINDS_MAX: usize = 3;

/// How many ranges of names it names. What is assembled leaves out the last ones, in one range.
const RANGES_MAX: usize = 2;

/// The short names of items: `m1`, `m2`, in the order in which they are wanted.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    /// The number of each item.
    of: Vec<usize>,
    /// How many there are, with those that are not among the items any more.
    all: usize,
    /// What most is by, as it is said in the heading; items by the same do not repeat it.
    source: String,
}

impl Names {
    /// Pins first, then as the steps come to them, then what the role does not want, then copies.
    pub(super) fn by_steps(candidates: &[Candidate], steps: &[Step], out: &[usize]) -> Self {
        let mut of = vec![0; candidates.len()];
        let mut last = 0;
        let again = |at: usize| at > 0 && candidates[at - 1].is_same(&candidates[at]);
        let pins = (0..candidates.len()).filter(|&at| candidates[at].item().pinned && !again(at));
        let steps = steps.iter().filter_map(|step| step.item());
        let mut first = None;
        let rest = out.iter().copied().chain(0..candidates.len());
        for at in pins.chain(steps).chain(rest) {
            if of[at] == 0 {
                last += 1;
                of[at] = last;
                if !candidates[at].item().pinned && first.is_none() {
                    first = Some(at);
                }
            }
        }
        let source = first.map(|at| source(&candidates[at])).unwrap_or_default();
        Self { of, all: last, source }
    }

    /// In the order in which they are given, with so many more that are only referred to.
    pub(super) fn in_order(candidates: &[Candidate], first: Option<usize>, more: usize) -> Self {
        let all = candidates.len() + more;
        let source = first.map(|at| source(&candidates[at])).unwrap_or_default();
        Self { of: (1..=candidates.len()).collect(), all, source }
    }

    pub(super) fn of(&self, item: usize) -> usize {
        self.of[item]
    }

    pub(super) fn most(&self) -> usize {
        self.all
    }

    pub(super) fn source(&self) -> &str {
        &self.source
    }
}

fn source(candidate: &Candidate) -> String {
    candidate.prepared.source.text().trim_end().to_owned()
}

/// What was left out before there was anything to render: of what an envelope only refers to.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    pub items: u64,
    pub tokens: u64,
    /// Lines of the state and the history.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lines: u64,
    /// How many of each kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kinds: BTreeMap<String, u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl LeftOut {
    pub(super) fn add(&mut self, kind: &str, tokens: u64) {
        self.items += 1;
        self.tokens = self.tokens.saturating_add(tokens);
        *self.kinds.entry(word(kind)).or_default() += 1;
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items == 0 && self.lines == 0
    }

    /// The lines that say so.
    pub(super) fn say(
        &self,
        pen: &Pen,
        names: &[usize],
        most: usize,
        cut: bool,
        shortened: bool,
    ) -> String {
        let mut text = String::new();
        if shortened {
            text = pen.line("This is shortened for a reader with less room than it was made for.");
        }
        let mut words = Vec::new();
        if self.items > 0 {
            let mut kinds: Vec<_> = self.kinds.iter().collect();
            kinds.sort_by_key(|(kind, number)| (Reverse(**number), kind.as_str()));
            let more = kinds.len().saturating_sub(KINDS_MAX);
            kinds.truncate(KINDS_MAX);
            let mut said: Vec<String> =
                kinds.iter().map(|(kind, number)| format!("{number} {kind}")).collect();
            if more > 0 {
                said.push(format!("{more} kinds more"));
            }
            let (tokens, which) = (self.tokens, ranges(names, most));
            words.push(format!("{which} ({}; {tokens} tokens)", said.join(", ")));
        }
        if self.lines > 0 {
            words.push(format!("{} lines of state and history", self.lines));
        }
        if !words.is_empty() {
            text.push_str(&pen.line(&format!("Not in this text: {}.", words.join("; "))));
        }
        if cut || self.items > 0 {
            text.push_str(&pen.line(FETCH));
        }
        text
    }

    /// The longest that the lines about what was left out of this can be.
    pub(super) fn longest(
        pen: &Pen,
        candidates: &[Candidate],
        before: &Self,
        (most, lines): (usize, usize),
        shortened: bool,
    ) -> String {
        let mut worst = before.clone();
        for candidate in candidates {
            worst.add(&candidate.item().kind, candidate.prepared.size);
        }
        worst.lines += lines as u64;
        worst.items = worst.items.max(1);
        let mut kinds: Vec<String> = worst.kinds.keys().cloned().collect();
        kinds.sort_by_key(|kind| Reverse(kind.len()));
        kinds.truncate(KINDS_MAX + 1);
        worst.kinds = kinds.into_iter().map(|kind| (kind, worst.items)).collect();
        // As many ranges as are ever named, each as long as one can be.
        let at = |back: usize| [most.saturating_sub(back + 1), most.saturating_sub(back)];
        let mut names: Vec<usize> = (0..RANGES_MAX + 1).flat_map(|range| at(range * 3)).collect();
        names.sort_unstable();
        worst.say(pen, &names, most, true, shortened)
    }
}

/// How a model asks for more. The same words are those of the tools that it is given.
const FETCH: &str =
    "fetch_memory(\"m1\") reads an item whole, search_memory(\"words\") finds others.";

/// How many tokens it takes to say how to get more.
pub(super) fn fetch_line(pen: &Pen) -> String {
    pen.line(FETCH)
}

/// Names that follow each other, as ranges; the longest list says how many it leaves away.
fn ranges(names: &[usize], most: usize) -> String {
    let mut found: Vec<(usize, usize)> = Vec::new();
    for &name in names {
        match found.last_mut() {
            Some((_, last)) if *last + 1 == name => *last = name,
            _ => found.push((name, name)),
        }
    }
    let more = found.len().saturating_sub(RANGES_MAX);
    found.truncate(RANGES_MAX);
    let mut words: Vec<String> = found
        .iter()
        .map(|(first, last)| match first == last {
            true => format!("m{first}"),
            false => format!("m{first}-m{last}"),
        })
        .collect();
    if more > 0 || words.is_empty() {
        words.push(format!("others up to m{most}"));
    }
    words.join(", ")
}

/// What was chosen, and what would be with room for everything.
pub(super) struct Chosen<'a> {
    pub(super) candidates: &'a [Candidate],
    pub(super) names: &'a Names,
    /// What the receiver's role does not want.
    pub(super) out: &'a [usize],
    pub(super) lines: &'a [Line],
    /// What was done, in order.
    pub(super) steps: &'a [Step],
    pub(super) kept: Tally<'a>,
    pub(super) pen: &'a Pen,
    /// What was left out before.
    pub(super) before: &'a LeftOut,
    /// Whether this is less than what was assembled.
    pub(super) shortened: bool,
}

impl Chosen<'_> {
    /// Says what became of every item.
    pub(super) fn report(&self, taken: &[bool], whole: &Tally<'_>, receipt: &mut Receipt) {
        for (at, candidate) in self.candidates.iter().enumerate() {
            let item = &candidate.prepared.item;
            let (id, revision) = (item.id.clone(), item.revision);
            let name = format!("m{}", self.names.of(at));
            if item.pinned {
                if at == 0 || !self.candidates[at - 1].is_same(candidate) {
                    let rung = Rung::Full;
                    receipt.kept.push(Kept { id, revision, name, rung, pinned: true });
                }
                continue;
            }
            if !taken[at] {
                continue;
            }
            let (held, whole) = (&self.kept.held[at], &whole.held[at]);
            let rung = held.rung();
            if rung == whole.rung() && held.parts.len() == whole.parts.len() {
                receipt.kept.push(Kept { id, revision, name, rung, pinned: false });
            } else if rung == Rung::Listed {
                receipt.dropped.push(Dropped { name, ..candidate.dropped(Reason::Budget) });
            } else {
                let count = |parts: usize| u32::try_from(parts).unwrap_or(u32::MAX);
                let parts = (!held.parts.is_empty())
                    .then(|| (count(held.parts.len()), count(candidate.prepared.of)));
                let fetch = fetch(&id);
                let reason = Reason::Budget;
                receipt.demoted.push(Demoted { id, revision, name, rung, parts, reason, fetch });
            }
        }
        for (line, held) in self.lines.iter().zip(&self.kept.lines_held) {
            if !held {
                receipt.dropped.push(Dropped {
                    id: line.name.clone(),
                    revision: 0,
                    name: String::new(),
                    reason: Reason::Budget,
                    tokens: line.piece.tokens(),
                    fetch: None,
                });
            }
        }
    }

    /// What is not there, with what was left out before.
    pub(super) fn left_out(&self, taken: &[bool]) -> (LeftOut, Vec<usize>) {
        let mut left = self.before.clone();
        let mut names = Vec::new();
        for (at, candidate) in self.candidates.iter().enumerate() {
            let item = candidate.item();
            let dropped = taken[at] && self.kept.held[at].rung() == Rung::Listed;
            if dropped || self.out.contains(&at) {
                left.add(&item.kind, candidate.prepared.size);
                names.push(self.names.of(at));
            }
        }
        left.lines += self.kept.lines_held.iter().filter(|held| !**held).count() as u64;
        names.extend(self.candidates.len() + 1..=self.names.most());
        names.sort_unstable();
        (left, names)
    }

    /// Puts the pieces together: what stays the same, and the rest.
    pub(super) fn render(&self, base: &Base, taken: &[bool]) -> (String, String) {
        let mut stable = String::new();
        let mut rest = String::new();
        for (at, (_, piece)) in base.above.iter().enumerate() {
            (if at < base.stable { &mut stable } else { &mut rest }).push_str(piece.text());
        }
        for section in Section::ALL {
            let mut body = String::new();
            match section {
                Section::Context => self.render_items(&mut body),
                Section::State | Section::History => self.render_lines(section, &mut body),
            }
            if body.is_empty() {
                continue;
            }
            let source = self.names.source();
            rest.push_str(&match (section, source.is_empty()) {
                (Section::Context, false) => {
                    self.pen.heading(&format!("Context, {source} unless said otherwise"))
                }
                _ => self.pen.heading(section.words()),
            });
            rest.push_str(&body);
        }
        base.below.iter().for_each(|(_, piece)| rest.push_str(piece.text()));
        let (left, names) = self.left_out(taken);
        rest.push_str(&left.say(
            self.pen,
            &names,
            self.names.most(),
            self.kept.is_cut(),
            self.shortened,
        ));
        (stable, rest)
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
        for at in self.steps.iter().filter_map(|step| step.item()) {
            if !std::mem::replace(&mut seen[at], true) {
                ranked.push(at);
            }
        }
        let top = ranked.iter().step_by(2);
        let bottom = ranked.iter().skip(1).step_by(2).rev();
        for &at in top.chain(bottom) {
            self.render_item(at, body);
        }
    }

    fn render_item(&self, at: usize, body: &mut String) {
        let (prepared, held) = (&self.candidates[at].prepared, &self.kept.held[at]);
        let head = head(self.names, at, &self.candidates[at]);
        let mut quote = |said: &str, text: &str| {
            let inline = !text.trim_end().contains('\n');
            let (open, close) = self.pen.around(&format!("{head}{said}"), inline);
            body.extend([&open, text, &close]);
        };
        match held.rung() {
            Rung::Listed => {}
            Rung::Stub => {
                let about = prepared.about.text().trim_end();
                let size = match prepared.is_small_stub() {
                    true => String::new(),
                    false => format!(", {} tokens", prepared.size),
                };
                body.push_str(&self.pen.line(&format!("{head}{size}: {about}")));
            }
            Rung::Full => {
                quote(if head.ends_with(']') { "" } else { ":" }, prepared.full.text());
            }
            Rung::Summary => {
                if held.summary {
                    let said = format!(", summary of {} tokens:", prepared.size);
                    quote(&said, prepared.summary.text());
                }
                self.render_parts(at, body);
            }
        }
    }

    /// Parts in the order of their text, neighbours together.
    fn render_parts(&self, at: usize, body: &mut String) {
        let (prepared, held) = (&self.candidates[at].prepared, &self.kept.held[at]);
        let parts = &prepared.parts;
        let mut lead = prepared.lead.as_ref();
        let mut first = true;
        let adjacent = |one: &usize, two: &usize| parts[*one].number + 1 == parts[*two].number;
        for run in held.parts.chunk_by(adjacent) {
            let Some((&from, &to)) = run.first().zip(run.last()) else { continue };
            let (from, to) = (&parts[from], &parts[to]);
            let head = if std::mem::take(&mut first) && !held.summary {
                head(self.names, at, &self.candidates[at])
            } else {
                format!("[m{}]", self.names.of(at))
            };
            let which = match from.number == to.number {
                true => format!("part {}", from.number),
                false => format!("parts {}-{}", from.number, to.number),
            };
            let label = from.shown_label().unwrap_or_default();
            let head = format!("{head} {which} of {}{label}:", prepared.of);
            let (open, close) = self.pen.around(&head, false);
            body.push_str(&open);
            lead.take().iter().for_each(|lead| body.push_str(lead.text()));
            run.iter().for_each(|&place| body.push_str(parts[place].piece.text()));
            body.push_str(&close);
        }
    }

    /// What is stored of the order in which things were taken.
    pub(super) fn order(&self) -> Vec<String> {
        let name = |at: usize| self.names.of(at);
        let word = |step: &Step| match *step {
            Step::Line(at) => format!("l{at}"),
            Step::Stub(at) => format!("s{}", name(at)),
            Step::Summary(at) => format!("u{}", name(at)),
            Step::Whole(at) => format!("w{}", name(at)),
            Step::Part(at, place) => {
                format!("p{}.{}", name(at), self.candidates[at].prepared.parts[place].number)
            }
        };
        self.steps.iter().map(word).collect()
    }

    /// What an envelope passes of an item that is not passed whole.
    pub(super) fn excerpts(&self, at: usize) -> Vec<Excerpt> {
        let parts = &self.candidates[at].prepared.parts;
        let excerpt = |place: &usize| Excerpt {
            part: parts[*place].number,
            text: parts[*place].piece.text().to_owned(),
            label: parts[*place].label.clone(),
        };
        self.kept.held[at].parts.iter().map(excerpt).collect()
    }

    pub(super) fn carried(&self, taken: &[bool], scores: &Scores) -> Vec<(String, u64, Carried)> {
        let mut carried = Vec::new();
        for (at, candidate) in self.candidates.iter().enumerate() {
            let held = &self.kept.held[at];
            if !taken[at] || held.rung() == Rung::Listed {
                continue;
            }
            let item = &candidate.prepared.item;
            let score = candidate.settled().map_or_else(|| scores.of_item(at), |c| c.score);
            // What tells most came first; it does again.
            let worth = |place: usize| super::ladder::worth(candidate, scores, at, place);
            let parts = held.parts.iter().map(|&place| (place, worth(place)));
            let mut parts: Vec<(usize, i64)> = parts.collect();
            parts.sort_unstable_by_key(|&(place, score)| (Reverse(score), place));
            let (rung, summary) = (held.rung(), held.summary);
            let kept = Carried { rung, score, settled: true, summary, parts };
            carried.push((item.id.clone(), item.revision, kept));
        }
        carried
    }
}

/// The line of an item up to what is said about its form.
pub(super) fn head(names: &Names, at: usize, candidate: &Candidate) -> String {
    let prepared = &candidate.prepared;
    let mut head = format!("[m{}]", names.of(at));
    let label = prepared.label.text().trim_end();
    let source = prepared.source.text().trim_end();
    let source = match (prepared.item.pinned, names.source().is_empty()) {
        (false, false) if source == names.source() => "",
        (false, false) if source.is_empty() => "of unknown source",
        _ => source,
    };
    for words in [label, source].into_iter().filter(|words| !words.is_empty()) {
        head.push(' ');
        head.push_str(words);
    }
    head
}

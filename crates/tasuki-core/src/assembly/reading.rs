// SPDX-License-Identifier: Apache-2.0
//! What assembly chose, as an envelope stores it, and the text that every reader gets from it: byte
//! for byte what the sender saw where it fits, and where it does not a shorter beginning of the same
//! steps, which says so.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::chosen::{LeftOut, Names};
use super::item::{Item, Passed, Prepared, Priority};
use super::ladder::Step;
use super::marker;
use super::receipt::{Strategy, TooSmall};
use super::relevance::Query;
use super::render::{self, Pen, PromptForm};
use super::score::score;
use super::tokens::Tokenizer;
use super::{Candidate, Carried, Page, Rung};
use crate::envelope::brief::brief;
use crate::envelope::parts::{ContextItem, Form, Parts};
use crate::ids::Timestamp;
use crate::trust::Trust;

/// How many steps a stored order may have.
const ORDER_MAX: usize = 100_000;

/// What assembly chose. The items themselves, and the parts of them, are the envelope's `context`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// What the broker's lines begin with.
    pub mark: String,
    /// What it was counted in.
    pub tokenizer: Tokenizer,
    pub strategy: Strategy,
    /// What the whole prompt may have, with what a claim adds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u64>,
    /// How many tokens the text is.
    pub token_count: u64,
    /// The steps that were taken, in order: `l3` is the fourth line of the brief, `s2`, `u2`, `w2`
    /// the line, the summary and the whole of item m2, `p2.5` its fifth part.
    pub order: Vec<String>,
    /// What was left out then.
    #[serde(default, skip_serializing_if = "LeftOut::is_empty")]
    pub left_out: LeftOut,
}

impl Reading {
    /// What is wrong with it, if a sender made it up.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        if !marker::is_mark(&self.mark) {
            return Some("has a mark that is none of the broker's");
        }
        (self.order.len() > ORDER_MAX).then_some("has more than 100000 steps")
    }
}

/// Who reads.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reader {
    pub tokenizer: Tokenizer,
    /// How many tokens the text may have.
    pub available: Option<u64>,
    pub form: PromptForm,
    /// Everything that the envelope has, whatever was chosen.
    pub all: bool,
}

/// What a reader gets of an envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// What stays the same from hop to hop: the task, the rules, the pins.
    pub stable: String,
    pub rest: String,
    pub token_count: u64,
    /// Whether it is less than what was assembled.
    pub shortened: bool,
    pub mark: String,
    pub left_out: LeftOut,
    /// Ids of what is not there at all.
    pub missing: Vec<String>,
    /// What each short name stands for.
    pub names: Vec<(String, String)>,
}

impl Read {
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}{}", self.stable, self.rest)
    }
}

/// Renders what an envelope passes, for a reader.
pub fn read(intent: &str, parts: &Parts, at: Timestamp, reader: Reader) -> Result<Read, TooSmall> {
    let brief = brief(intent, parts);
    let tokenizer = reader.tokenizer;
    let reading = parts.reading.as_ref().filter(|_| !reader.all);
    let here = parts.context.iter().map(|item| candidate(item, at, tokenizer, reading.is_some()));
    let mut candidates: Vec<Candidate> = here.collect();
    let passed = |id: &str| parts.context.iter().any(|item| item.id == id);
    let refs: Vec<_> = parts.memory_refs.iter().filter(|one| !passed(&one.id)).collect();
    let mut ids: Vec<&str> = parts.context.iter().map(|item| item.id.as_str()).collect();
    ids.extend(refs.iter().map(|one| one.id.as_str()));
    // What nobody chose among is shown as far as it is known: a reference is a line.
    if reading.is_none() {
        candidates.extend(refs.iter().map(|one| {
            let item = ContextItem {
                title: one.title.clone(),
                about: Some("only referred to; fetch it if it matters".into()),
                ..ContextItem::stub(one.id.clone(), one.revision)
            };
            candidate(&item, at, tokenizer, false)
        }));
    }
    let mark = reading.map(|reading| reading.mark.clone()).filter(|mark| marker::is_mark(mark));
    let mark = mark.filter(|mark| !contains(&brief, &candidates, mark));
    let mark = mark.unwrap_or_else(|| super::mark(&brief, &candidates));
    let pen = Pen { mark, form: reader.form };
    let lines = render::lines(&brief, &pen, tokenizer);
    let taken: Vec<bool> = candidates.iter().map(|it| !it.item().pinned).collect();
    let steps = match reading {
        Some(reading) => stored(reading, &candidates, lines.len()),
        None => {
            let query = Query::new(&brief, None, crate::stems::Language::default());
            let scores = score(&brief, &candidates, &taken, &query, None);
            let asked = query.is_asked();
            super::steps(Strategy::Priority, &candidates, &taken, &scores, &lines, asked)
        }
    };
    let more = reading.map_or(0, |reading| reading.left_out.items);
    let more = usize::try_from(more).unwrap_or(0).min(super::ITEMS_MAX);
    let first = steps.iter().filter_map(|step| step.item()).find(|&at| taken[at]);
    let names = Names::in_order(&candidates, first, more);
    let none = LeftOut::default();
    let page = Page {
        brief: &brief,
        candidates: &candidates,
        taken: &taken,
        out: &[],
        names: &names,
        lines: &lines,
        steps: &steps,
        pen: &pen,
        before: reading.map_or(&none, |reading| &reading.left_out),
        tokenizer,
        all_or_nothing: false,
        assembled: reading.map(|_| steps.len()),
    };
    // What was counted when it was assembled is not counted again by what it costs at most.
    let as_it_was = reading.filter(|reading| {
        reading.tokenizer == tokenizer
            && reader.form == PromptForm::Markdown
            && reader.available.is_none_or(|available| reading.token_count <= available)
    });
    let mut fitted = page.fit(if as_it_was.is_some() { None } else { reader.available }, 0)?;
    if reader.available.is_some_and(|available| fitted.token_count > available) {
        fitted = page.fit(reader.available, 0)?;
    }
    let (left_out, gone) = fitted.chosen.left_out(&taken);
    Ok(Read {
        shortened: fitted.chosen.shortened,
        token_count: fitted.token_count,
        missing: gone
            .iter()
            .filter_map(|name| ids.get(name - 1).map(|id| (*id).to_owned()))
            .collect(),
        names: (1..).zip(&ids).map(|(name, id)| (format!("m{name}"), (*id).to_owned())).collect(),
        left_out,
        stable: fitted.stable,
        rest: fitted.rest,
        mark: pen.mark,
    })
}

fn contains(brief: &render::Brief, candidates: &[Candidate], mark: &str) -> bool {
    let mut found = false;
    brief.each_text(&mut |text| found |= text.contains(mark));
    for candidate in candidates {
        candidate.prepared.each_text(&mut |text| found |= text.contains(mark));
    }
    found
}

/// The steps that were stored. What they do not speak of comes last: nothing is dropped that way.
fn stored(reading: &Reading, candidates: &[Candidate], lines: usize) -> Vec<Step> {
    let mut steps = Vec::with_capacity(reading.order.len());
    let mut seen = vec![false; candidates.len()];
    let item = |name: &str| {
        let number: usize = name.parse().ok()?;
        let at = number.checked_sub(1).filter(|at| *at < candidates.len())?;
        (!candidates[at].item().pinned).then_some(at)
    };
    for word in reading.order.iter().take(ORDER_MAX) {
        let Some((kind, name)) = word.split_at_checked(1) else { continue };
        let step = match kind {
            "l" => name.parse().ok().filter(|at| *at < lines).map(Step::Line),
            "s" => item(name).map(Step::Stub),
            "u" => item(name).map(Step::Summary),
            "w" => item(name).map(Step::Whole),
            "p" => name.split_once('.').and_then(|(name, part)| {
                let (at, part): (usize, u32) = (item(name)?, part.parse().ok()?);
                let parts = &candidates[at].prepared.parts;
                let place = parts.iter().position(|known| known.number == part)?;
                Some(Step::Part(at, place))
            }),
            _ => None,
        };
        if let Some(step) = step {
            step.item().iter().for_each(|&at| seen[at] = true);
            steps.push(step);
        }
    }
    for (at, candidate) in candidates.iter().enumerate() {
        if seen[at] || candidate.item().pinned {
            continue;
        }
        let prepared = &candidate.prepared;
        match candidate.carried.as_ref().map_or(Rung::Full, |carried| carried.rung) {
            Rung::Listed | Rung::Stub => steps.push(Step::Stub(at)),
            Rung::Summary if prepared.parts.is_empty() => steps.push(Step::Summary(at)),
            Rung::Summary => steps.extend((0..prepared.parts.len()).map(|p| Step::Part(at, p))),
            Rung::Full => steps.push(Step::Whole(at)),
        }
    }
    steps
}

/// An item of an envelope.
fn candidate(item: &ContextItem, at: Timestamp, tokenizer: Tokenizer, chosen: bool) -> Candidate {
    let text = item.text.clone().unwrap_or_default();
    let whole = item.form == Form::Full;
    let made = Item {
        id: item.id.clone(),
        revision: u64::from(item.revision.unwrap_or(0)),
        kind: item.kind.clone().unwrap_or_else(|| "memory".into()),
        title: item.title.clone().unwrap_or_default(),
        summary: Some(text.clone()).filter(|text| !whole && !text.is_empty()),
        text: if whole { text } else { String::new() },
        priority: Priority::Normal,
        pinned: item.pinned,
        tags: Vec::new(),
        at,
        source: None,
        by: item.by.clone(),
        trust: item.trust.unwrap_or(Trust::Agent),
    };
    let rung = match item.form {
        Form::Full => Rung::Full,
        Form::Summary if made.summary.is_some() || !item.excerpts.is_empty() => Rung::Summary,
        Form::Summary | Form::Stub => Rung::Stub,
    };
    let summary = made.summary.is_some();
    let passed = Passed {
        about: item.about.as_deref(),
        lead: item.lead.as_deref(),
        excerpts: &item.excerpts,
        of: item.of.or((!whole).then_some(0)),
        tokens: item.tokens,
    };
    let prepared = Prepared::passed(made, &passed, tokenizer);
    let all = (0..prepared.parts.len()).map(|place| (place, 0)).collect();
    let carried = (!whole || chosen).then_some(Carried {
        rung,
        score: 0,
        settled: false,
        summary,
        parts: if whole { Vec::new() } else { all },
    });
    Candidate { prepared: std::sync::Arc::new(prepared), carried }
}

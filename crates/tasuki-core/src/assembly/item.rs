// SPDX-License-Identifier: Apache-2.0
//! What can be passed along: items, and what is worked out about each once, so that assembling many
//! of them costs little.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::lint;
use super::marker::{Contained, one_line, shown, word};
use super::receipt::Warning;
use super::relevance::terms_of;
use super::summary::{SUMMARY_TOKENS_MAX, extract, gist};
use super::text::{Sketch, digest, identifiers};
use super::tokens::{Piece, Tokenizer};
use super::units::cut;
use crate::canonical;
use crate::ids::{Hash, Timestamp};
use crate::stems::Language;
use crate::trust::Trust;

/// How many items one assembly takes.
pub const ITEMS_MAX: usize = 10_000;
/// How long the text of an item may be, in bytes.
pub const TEXT_BYTES_MAX: usize = 1024 * 1024;

/// A stored piece of knowledge: a memory, a message, a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub id: String,
    pub revision: u64,
    /// What it is: `decision`, `code`, `log`, `message`, whatever its writer calls it.
    pub kind: String,
    pub title: String,
    /// The sender's own summary, which wins over an extracted one.
    pub summary: Option<String>,
    pub text: String,
    pub priority: Priority,
    /// Travels whole, always.
    pub pinned: bool,
    pub tags: Vec<String>,
    pub at: Timestamp,
    /// Where the same text can be had from (a path, a URL), if it is only a copy.
    pub source: Option<String>,
    /// Who wrote it, if that is known.
    pub by: Option<String>,
    /// Who stands behind what it says.
    pub trust: Trust,
}

/// How much the writer of an item wants it to arrive. What is high comes before all that is normal.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    High,
    #[default]
    Normal,
    Low,
}

/// How much of an item is passed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// Only in the list of everything that there is.
    Listed,
    /// A line: id, title, size, what it is about.
    Stub,
    /// A summary, or the parts of a long text that matter most.
    Summary,
    Full,
}

/// An item with everything that does not depend on what it is assembled with: its forms and their
/// sizes in the receiver's tokens, its terms, its fingerprints. Worth keeping for each revision.
#[derive(Debug, Clone)]
pub struct Prepared {
    pub(super) item: Item,
    pub(super) tokenizer: Tokenizer,
    pub(super) hash: Hash,
    /// All of it, as it is shown.
    pub(super) full: Piece,
    /// What it is about, in one line.
    pub(super) about: Piece,
    pub(super) summary: Piece,
    /// Said once before parts: the names of a table's columns.
    pub(super) lead: Option<Piece>,
    pub(super) parts: Vec<Part>,
    /// How many parts the text has; what was passed before may have fewer of them here.
    pub(super) of: usize,
    /// How many tokens it is, all of it, for who wrote it down first.
    pub(super) size: u64,
    /// What stands in its line besides its name, and who wrote it.
    pub(super) label: Piece,
    pub(super) source: Piece,
    pub(super) contained: Contained,
    pub(super) warnings: Vec<Warning>,
}

/// A piece of a long text, or all of a short one.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// Its place among the parts of the text, from 1.
    pub(super) number: u32,
    /// What it belongs to, if that is not in it.
    pub(super) label: Option<String>,
    /// What saying so costs.
    pub(super) label_tokens: u64,
    pub(super) piece: Piece,
    /// Whether it is the beginning of a log or test run, or says that something failed there.
    pub(super) telling: bool,
    /// Whether it is any other part of such a text.
    pub(super) routine: bool,
    /// Hashes of its terms with their counts, sorted.
    pub(super) terms: Vec<(u64, u32)>,
    pub(super) signature: Signature,
    pub(super) length: u64,
    /// Hashes of its identifiers, each with how surely it is one, in thousandths.
    pub(super) identifiers: Vec<(u64, i64)>,
    pub(super) words: i64,
    pub(super) digest: u64,
    pub(super) sketch: Sketch,
}

impl Prepared {
    /// Works out what assembly needs to know about an item.
    #[must_use]
    pub fn new(item: Item, tokenizer: Tokenizer) -> Self {
        let cut = cut(&shown(&item.text));
        let log = lint::is_run(&item);
        let mut failed = 0;
        // A run that fails everywhere must not take all the room: its first failures tell most, and
        // how it ended.
        let last = cut.parts.len().saturating_sub(1);
        let mut telling = |at: usize, text: &str| {
            let fails = lint::says_failure(text);
            failed += usize::from(fails);
            at == 0 || fails && (failed <= TELLING_MAX || at == last)
        };
        let part = |(at, range): (usize, &std::ops::Range<usize>)| {
            let text = &cut.text[range.clone()];
            let telling = log && telling(at, text);
            let label = cut.labels.get(at).cloned().flatten();
            let routine = log && !telling;
            let part = Part { telling, routine, ..Part::new(at + 1, text, &item.title, tokenizer) };
            part.labelled(label, tokenizer)
        };
        let parts: Vec<Part> = cut.parts.iter().enumerate().map(part).collect();
        let lead = cut.lead.unwrap_or_default();
        let whole = format!("{lead}{}", cut.text);
        let size = tokenizer.count(&whole);
        let summary = item.summary.clone().filter(|own| !own.trim().is_empty());
        let summary = summary.unwrap_or_else(|| {
            if parts.len() < 2 {
                return whole.trim().to_owned();
            }
            extract(&whole, &[], SUMMARY_TOKENS_MAX, tokenizer)
        });
        Self::of(item, tokenizer, &whole, &lead, &summary, None, parts, size)
    }

    /// An item as an envelope passes it: as much of its text as is there.
    #[must_use]
    pub fn passed(item: Item, passed: &Passed<'_>, tokenizer: Tokenizer) -> Self {
        if passed.excerpts.is_empty() && passed.of.is_none() {
            let mut made = Self::new(item, tokenizer);
            made.size = passed.tokens.unwrap_or(made.size);
            if let Some(about) = passed.about {
                made.about =
                    Piece::new(format!("{}\n", one_line(about, LINE_CHARS_MAX)), tokenizer);
            }
            return made;
        }
        let parts = passed.excerpts.iter().map(|excerpt| {
            Part::new(excerpt.part as usize, &shown(&excerpt.text), &item.title, tokenizer)
                .labelled(excerpt.label.clone(), tokenizer)
        });
        let parts: Vec<Part> = parts.collect();
        let lead = passed.lead.map(shown).unwrap_or_default().into_owned();
        let summary = item.summary.clone().unwrap_or_default();
        let of = passed.of.map_or(parts.len(), |of| of as usize).max(parts.len());
        let size = passed.tokens.unwrap_or(0);
        let text: String = parts.iter().map(|part| part.piece.text()).collect();
        let mut made = Self::of(item, tokenizer, &text, &lead, &summary, passed.about, parts, size);
        made.of = of;
        made
    }

    #[allow(clippy::too_many_arguments, reason = "each is one form of the same text")]
    fn of(
        item: Item,
        tokenizer: Tokenizer,
        whole: &str,
        lead: &str,
        summary: &str,
        about: Option<&str>,
        parts: Vec<Part>,
        size: u64,
    ) -> Self {
        let piece = |text: String| Piece::new(text, tokenizer);
        let about = about.map_or_else(
            || gist(if summary.trim().is_empty() { whole } else { summary }),
            str::to_owned,
        );
        let texts = [&item.id, &item.title, &item.text, &item.kind];
        let more = item.summary.iter().chain(&item.by).chain(&item.source);
        let own = parts.iter().map(|part| part.piece.text());
        let labels = parts.iter().filter_map(|part| part.label.as_deref());
        let contained = texts
            .into_iter()
            .chain(more)
            .map(String::as_str)
            .chain(own)
            .chain(labels)
            .chain([lead, about.as_str()])
            .fold(Contained::default(), |all, text| all.and(Contained::of(text)));
        Self {
            hash: canonical::hash(item.text.as_bytes()),
            full: piece(ended(whole)),
            about: piece(format!("{}\n", one_line(&about, LINE_CHARS_MAX))),
            summary: piece(ended(&shown(summary.trim_end()))),
            lead: (!lead.is_empty()).then(|| piece(ended(lead))),
            label: piece(format!("{}\n", label(&item))),
            source: piece(format!("{}\n", source(&item))),
            of: parts.len(),
            size,
            contained,
            parts,
            warnings: lint::check(&item),
            tokenizer,
            item,
        }
    }

    #[must_use]
    pub fn item(&self) -> &Item {
        &self.item
    }

    /// The address of the item's text.
    #[must_use]
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// How many tokens the item is if it is passed whole.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.full.tokens()
    }

    /// Whether the text is so long that it is passed in parts.
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.parts.len() > 1 || self.of > 1
    }

    /// Whether the line about it says by itself that there is more, and not much more.
    pub(super) fn is_small_stub(&self) -> bool {
        self.size < SMALL_TOKENS && self.about.text().trim_end().ends_with('…')
    }

    /// For a receiver with another tokenizer: the same item, counted anew.
    #[must_use]
    pub fn counted_in(&self, tokenizer: Tokenizer) -> Self {
        Self::new(self.item.clone(), tokenizer)
    }

    /// Calls back with every text of somebody else's that may be shown of it.
    pub(super) fn each_text<'s>(&'s self, found: &mut dyn FnMut(&'s str)) {
        let item = &self.item;
        [&item.id, &item.title, &item.text, &item.kind].into_iter().for_each(|text| found(text));
        let more = item.summary.iter().chain(&item.by).chain(&item.source);
        more.for_each(|text| found(text));
        found(self.about.text());
        self.lead.iter().for_each(|lead| found(lead.text()));
        for part in &self.parts {
            found(part.piece.text());
            part.label.iter().for_each(|label| found(label));
        }
    }
}

/// What an envelope passes of an item that it does not pass whole.
#[derive(Debug, Clone, Copy, Default)]
pub struct Passed<'a> {
    pub about: Option<&'a str>,
    pub lead: Option<&'a str>,
    pub excerpts: &'a [Excerpt],
    /// How many parts the text has.
    pub of: Option<u32>,
    /// How many tokens all of it is.
    pub tokens: Option<u64>,
}

/// A part of a text, as it stands there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Excerpt {
    /// Its place among the parts of the text, from 1.
    pub part: u32,
    pub text: String,
    /// What it belongs to, such as the file of a diff's hunk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// A text of fewer tokens does not say how many they are.
const SMALL_TOKENS: u64 = 100;

/// How many parts of a log that say that something failed come before all others.
const TELLING_MAX: usize = 12;

/// How long a line about an item may be, in characters.
const LINE_CHARS_MAX: usize = 120;

/// What an item is, for its line.
fn label(item: &Item) -> String {
    let mut label = String::new();
    if !matches!(item.kind.as_str(), "" | "memory") {
        label.push_str(&word(&item.kind));
    }
    let title = one_line(&item.title, LINE_CHARS_MAX);
    if !title.is_empty() {
        if !label.is_empty() {
            label.push(' ');
        }
        label.push_str(&in_quotes(&title));
    }
    label
}

/// A name that somebody else made up, for a line of ours: nothing of it can end the quotation.
fn in_quotes(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "'"))
}

/// Who stands behind an item, for its line.
fn source(item: &Item) -> String {
    let by = item.by.as_deref().map(|by| format!("by {}", word(by)));
    let trust = (item.trust != Trust::Agent).then(|| format!("({})", item.trust));
    by.into_iter().chain(trust).collect::<Vec<_>>().join(" ")
}

/// A text that ends its last line.
pub(super) fn ended(text: &str) -> String {
    if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

/// What a part belongs to, for a line of ours.
pub(super) fn label_of(label: &str) -> String {
    format!(", in {}", in_quotes(&one_line(label, LABEL_CHARS_MAX)))
}

/// How much of what a part belongs to is said, in characters.
const LABEL_CHARS_MAX: usize = 160;

impl Part {
    /// What it belongs to, as its line says it.
    pub(super) fn shown_label(&self) -> Option<String> {
        self.label.as_deref().map(label_of)
    }

    /// Says what it belongs to.
    fn labelled(mut self, label: Option<String>, tokenizer: Tokenizer) -> Self {
        self.label = label.filter(|label| !label.trim().is_empty());
        self.label_tokens = self.shown_label().map_or(0, |label| tokenizer.count(&label) + 1);
        self
    }

    fn new(number: usize, text: &str, title: &str, tokenizer: Tokenizer) -> Self {
        let (hashes, terms) = terms_of([text, title], Language::default());
        let (identifiers, words) = identifiers(text);
        Self {
            number: u32::try_from(number).unwrap_or(u32::MAX),
            label: None,
            label_tokens: 0,
            telling: false,
            routine: false,
            piece: Piece::new(ended(text), tokenizer),
            length: u64::try_from(hashes.len()).expect("a length fits"),
            signature: Signature::of(&hashes),
            terms,
            identifiers,
            words: words.max(1),
            digest: digest(text),
            sketch: Sketch::of(text),
        }
    }
}

/// One bit for each term, so that most terms that are not there need not be looked for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Signature([u64; 8]);

impl Signature {
    fn of(hashes: &[u64]) -> Self {
        let mut signature = Self::default();
        for hash in hashes {
            let (word, bit) = Self::place(*hash);
            signature.0[word] |= bit;
        }
        signature
    }

    pub(super) fn may_have(&self, hash: u64) -> bool {
        let (word, bit) = Self::place(hash);
        self.0[word] & bit != 0
    }

    fn place(hash: u64) -> (usize, u64) {
        // FNV's upper bits are mixed best.
        (usize::try_from(hash >> 61).expect("three bits"), 1 << (hash >> 55 & 63))
    }
}

/// Sorted numbers with how often each occurs.
pub(super) fn counted(mut hashes: Vec<u64>) -> Vec<(u64, u32)> {
    hashes.sort_unstable();
    let mut terms: Vec<(u64, u32)> = Vec::new();
    for hash in hashes {
        match terms.last_mut() {
            Some((last, count)) if *last == hash => *count = count.saturating_add(1),
            _ => terms.push((hash, 1)),
        }
    }
    terms
}

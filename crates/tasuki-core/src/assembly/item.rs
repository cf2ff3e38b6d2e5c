// SPDX-License-Identifier: Apache-2.0
//! What can be passed along: items, and what is worked out about each once, so that assembling many
//! of them costs little.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::lint;
use super::receipt::Warning;
use super::render::{labelled, quoted};
use super::summary::{SUMMARY_TOKENS_MAX, extract, gist};
use super::text::{Sketch, digest, identifiers, parts};
use super::tokens::{Piece, Tokenizer};
use crate::canonical;
use crate::ids::{Hash, Timestamp};
use crate::search::each_term;

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
    pub(super) full: Piece,
    pub(super) stub: Piece,
    pub(super) summary: Piece,
    /// What stands above the parts of a text that is not passed whole. Parts of what has no title
    /// stand alone.
    pub(super) head: Option<Piece>,
    pub(super) parts: Vec<Part>,
    pub(super) warnings: Vec<Warning>,
}

/// A piece of a long text, or all of a short one.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) piece: Piece,
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
        let tokens = tokenizer.count(&item.text);
        let name = format!("[{}] {}", one_line(&item.id), one_line(&item.title));
        let name = name.trim_end();
        let texts = parts(&item.text);
        let summary = item.summary.clone().unwrap_or_else(|| {
            if texts.len() < 2 {
                return item.text.trim().to_owned();
            }
            extract(&item.text, &[], SUMMARY_TOKENS_MAX, tokenizer)
        });
        let about = gist(if summary.trim().is_empty() { &item.text } else { &summary });
        let piece = |text: String| Piece::new(text, tokenizer);
        let parts = texts.iter().map(|text| Part::new(text, &item.title, tokenizer)).collect();
        Self {
            hash: canonical::hash(item.text.as_bytes()),
            full: piece(labelled(&one_line(&item.title), &item.text)),
            stub: piece(format!("- {name} ({tokens} tokens): {about}\n")),
            summary: piece(format!("- {name} (summary of {tokens} tokens): {}", quoted(&summary))),
            head: (!item.title.trim().is_empty())
                .then(|| piece(format!("- {name} (parts of {tokens} tokens):\n"))),
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
        self.parts.len() > 1
    }

    /// For a receiver with another tokenizer: the same item, counted anew.
    #[must_use]
    pub fn counted_in(&self, tokenizer: Tokenizer) -> Self {
        Self::new(self.item.clone(), tokenizer)
    }
}

impl Part {
    fn new(text: &str, title: &str, tokenizer: Tokenizer) -> Self {
        let mut hashes = Vec::new();
        each_term(text, |term| hashes.push(digest(term)));
        each_term(title, |term| hashes.push(digest(term)));
        let (identifiers, words) = identifiers(text);
        Self {
            piece: Piece::new(format!("> {}", quoted(text)), tokenizer),
            length: u64::try_from(hashes.len()).expect("a length fits"),
            signature: Signature::of(&hashes),
            terms: counted(hashes),
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

/// A title or id as one line: what is shown in a list must not break it.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

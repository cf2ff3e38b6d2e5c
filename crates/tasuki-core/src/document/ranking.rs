// SPDX-License-Identifier: Apache-2.0
//! Which memories answer a question best. A store finds those that have any of its words and
//! supplies the statistics; what follows from them is decided here, the same for every store.

use std::sync::Arc;

use super::Document;
use crate::search::{self, Statistics};

/// How many words of a question count.
pub const TERMS_MAX: usize = 64;
/// How many memories are looked at for one word.
pub const CANDIDATES_MAX: usize = 5000;

/// A question, in the terms by which texts are found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    pub terms: Vec<(String, u32)>,
}

impl Question {
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut terms = search::terms(text);
        terms.truncate(TERMS_MAX);
        Self { terms }
    }
}

/// A memory that has some of a question's words.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    pub document: Arc<Document>,
    /// How many terms it has, repetitions included.
    pub length: u64,
    /// How often it has each of the question's terms that it has, sorted by term.
    pub terms: Vec<(String, u32)>,
}

/// What a store found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Candidates {
    pub found: Vec<Candidate>,
    pub statistics: Statistics,
}

/// The best answers first, with their scores. Of two that are equally good, the one that changed
/// last comes first.
#[must_use]
pub fn rank(question: &Question, candidates: Candidates) -> Vec<(Arc<Document>, i64)> {
    let Candidates { found, statistics } = candidates;
    let mut scored: Vec<_> = found
        .into_iter()
        .map(|candidate| {
            let score =
                search::bm25(&question.terms, &candidate.terms, candidate.length, &statistics);
            (candidate.document, score)
        })
        .collect();
    scored.sort_by_key(|(document, score)| (-score, std::cmp::Reverse(document.last_pos)));
    scored
}

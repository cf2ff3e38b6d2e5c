// SPDX-License-Identifier: Apache-2.0
//! Which memories answer a question best. A store finds those that have any of its words and
//! supplies the statistics; what follows from them is decided here, the same for every store.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Document;
use crate::search::{self, Statistics};
use crate::stems::Language;

/// How many words of a question count.
pub const TERMS_MAX: usize = 64;
/// How many memories are looked at for one word.
pub const CANDIDATES_MAX: usize = 5000;

/// How many forms of them are looked for in all.
const FORMS_MAX: usize = 512;

/// A question, in the terms by which texts are found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// Every form of every word, each once: what a store looks for.
    pub terms: Vec<(String, u32)>,
    /// The stem that each of them has, and how often the question says it.
    stems: BTreeMap<String, (String, u32)>,
}

impl Question {
    /// A question in the language that texts are mostly written in. Texts are indexed as they are
    /// written, so every form of a word is looked for. Words that every text has count only if there
    /// is nothing else.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let language = Language::default();
        let mut words = search::terms(text);
        if words.iter().any(|(word, _)| !language.is_common(word)) {
            words.retain(|(word, _)| !language.is_common(word));
        }
        words.truncate(TERMS_MAX);
        let mut asked: BTreeMap<String, u32> = BTreeMap::new();
        for (word, count) in &words {
            *asked.entry(language.stem(word).into_owned()).or_default() += count;
        }
        let mut question = Self::default();
        // The words themselves first, so that they are never those that are too many.
        let forms = words.iter().flat_map(|(word, _)| language.forms(word).into_iter().skip(1));
        let own = words.iter().map(|(word, _)| word.clone());
        for form in own.chain(forms) {
            if question.terms.len() >= FORMS_MAX {
                break;
            }
            let stem = language.stem(&form).into_owned();
            let Some(&count) = asked.get(&stem) else { continue };
            if question.stems.insert(form.clone(), (stem, count)).is_none() {
                question.terms.push((form, 1));
            }
        }
        question
    }

    /// What counts of forms are as counts of stems, sorted.
    fn by_stem<C: Copy>(
        &self,
        counts: impl Iterator<Item = (String, C)>,
        add: impl Fn(C, C) -> C,
    ) -> BTreeMap<String, C> {
        let mut all: BTreeMap<String, C> = BTreeMap::new();
        for (form, count) in counts {
            let stem = self.stems.get(&form).map_or(form, |(stem, _)| stem.clone());
            all.entry(stem).and_modify(|known| *known = add(*known, count)).or_insert(count);
        }
        all
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
    let Candidates { found, mut statistics } = candidates;
    // In how many documents any form occurs is at most the sum over the forms.
    let frequency = std::mem::take(&mut statistics.frequency);
    statistics.frequency = question.by_stem(frequency.into_iter(), u64::saturating_add);
    let asked: BTreeMap<String, u32> = question.stems.values().cloned().collect();
    let asked: Vec<(String, u32)> = asked.into_iter().collect();
    let mut scored: Vec<_> = found
        .into_iter()
        .map(|candidate| {
            let terms = question.by_stem(candidate.terms.into_iter(), u32::saturating_add);
            let terms: Vec<(String, u32)> = terms.into_iter().collect();
            let score = search::bm25(&asked, &terms, candidate.length, &statistics);
            (candidate.document, score)
        })
        .collect();
    scored.sort_by_key(|(document, score)| (-score, std::cmp::Reverse(document.last_pos)));
    scored
}

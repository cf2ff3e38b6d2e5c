// SPDX-License-Identifier: Apache-2.0
//! How much each part of each item has to do with what is asked, in whole numbers.
//!
//! Where something is asked, three things are done beyond BM25, each with its figure in ADR 064:
//! sums are squared (a part with two words of the question is worth more than two parts with one);
//! neighbours of a hit are raised with it, because an answer is rarely one turn or one paragraph; and
//! the words of the first hits are looked for as well, with less weight (RM3).

use std::collections::BTreeMap;

use super::Candidate;
use super::item::{Part, counted};
use super::profile::Profile;
use super::render::Brief;
use super::score::{Unit, Units};
use super::text::digest;
use crate::search::{UNIT, gain, idf, norm_with};
use crate::stems::{Language, each_stem};

/// How many different words of the ask and the intent are looked for.
const QUERY_TERMS_MAX: usize = 256;
/// What a word of the ask weighs, an identifier in it, and a word of the intent or of the role where
/// there is an ask.
const ASKED: i64 = 100;
const IDENTIFIER: i64 = 400;
const BESIDE: i64 = 10;
/// How much the length of a part is held against it (`b` = 0.4), in hundredths. Parts are cut to
/// about one size, so length says less than it does of documents.
const PART_LENGTH_HUNDREDTHS: u64 = 40;
/// What of a hit's worth each neighbour gets for each step away from it, in hundredths.
const NEIGHBOUR_HUNDREDTHS: i64 = 93;
/// What a part's own worth counts beside what its neighbours give it.
const OWN: i64 = 3;
/// Feedback: from how many of the first hits, how many words, and how much they weigh in all, in
/// hundredths of what the question weighs.
const FEEDBACK_PARTS: usize = 10;
const FEEDBACK_TERMS: usize = 20;
const FEEDBACK_HUNDREDTHS: i64 = 25;
/// What the best part is worth before it is squared.
const BEST: i64 = 1 << 14;

/// What items are held against.
pub(super) struct Query {
    /// Hashes with what each weighs, sorted.
    terms: Vec<(u64, i64)>,
    /// One bit for some of the bits of each term: most terms of most texts are in no query, and this
    /// says so without a search.
    filter: [u64; 64],
    asked: bool,
}

impl Query {
    pub(super) fn new(brief: &Brief, profile: Option<&Profile>, language: Language) -> Self {
        let asked = brief.ask.as_ref().is_some_and(|ask| !ask.trim().is_empty());
        let mut weights: BTreeMap<u64, i64> = BTreeMap::new();
        let mut take = |text: &str, weight: i64, identifier: i64| {
            each_stem(language, text, |term| {
                let weight = if is_identifier(term) { identifier } else { weight };
                if weights.len() < QUERY_TERMS_MAX {
                    let known = weights.entry(digest(term)).or_default();
                    *known = weight.max(*known);
                }
            });
        };
        brief.ask.iter().for_each(|ask| take(ask, ASKED, IDENTIFIER));
        let beside = if asked { BESIDE } else { ASKED };
        profile
            .into_iter()
            .flat_map(|profile| &profile.terms)
            .for_each(|term| take(term, beside, beside));
        take(&brief.intent, beside, beside);
        Self::of(weights.into_iter().collect(), asked)
    }

    fn of(terms: Vec<(u64, i64)>, asked: bool) -> Self {
        let mut filter = [0; 64];
        for (term, _) in &terms {
            filter[usize::try_from(term >> 58).expect("six bits")] |= 1 << ((term >> 52) & 63);
        }
        Self { terms, filter, asked }
    }

    /// Whether somebody asks for something: then relevance leads.
    pub(super) fn is_asked(&self) -> bool {
        self.asked
    }

    fn find(&self, term: u64) -> Option<usize> {
        let word = self.filter[usize::try_from(term >> 58).expect("six bits")];
        if word >> ((term >> 52) & 63) & 1 == 0 {
            return None;
        }
        self.terms.binary_search_by_key(&term, |(term, _)| *term).ok()
    }

    /// Calls back with each term of the query that a part has, and how often it has it. Whoever has
    /// fewer terms, the query or the part, is gone through.
    fn each_in(&self, part: &Part, mut found: impl FnMut(usize, u32)) {
        if self.terms.len() > part.terms.len() {
            for &(term, count) in &part.terms {
                if let Some(wanted) = self.find(term) {
                    found(wanted, count);
                }
            }
            return;
        }
        for (wanted, &(term, _)) in self.terms.iter().enumerate() {
            if part.signature.may_have(term)
                && let Ok(at) = part.terms.binary_search_by_key(&term, |(term, _)| *term)
            {
                found(wanted, part.terms[at].1);
            }
        }
    }

    /// The query with the words of the first hits beside its own.
    fn with_feedback(&self, units: &Units<'_>, relevance: &[i64]) -> Option<Self> {
        let mut first: Vec<usize> =
            (0..units.all.len()).filter(|&at| units.all[at].taken && relevance[at] > 0).collect();
        first.sort_unstable_by_key(|&at| (std::cmp::Reverse(relevance[at]), at));
        first.truncate(FEEDBACK_PARTS);
        let best = relevance[*first.first()?];
        // What of the first hits is said in each word, in 2^20ths.
        let mut said: BTreeMap<u64, i64> = BTreeMap::new();
        for &at in &first {
            let part = units.all[at].part;
            // Of a shared scale, so that the products below stay small.
            let worth = i64::try_from(i128::from(relevance[at]) * 1024 / i128::from(best))
                .expect("at most 1024");
            let length = i64::try_from(part.length).unwrap_or(i64::MAX).max(1);
            for &(term, count) in &part.terms {
                *said.entry(term).or_default() += worth * i64::from(count) * 1024 / length;
            }
        }
        let terms: Vec<(u64, i64)> = said.into_iter().collect();
        let wanted = Self::of(terms.clone(), true);
        let (mut frequency, mut documents) = (vec![0_u64; terms.len()], 0);
        for unit in units.all.iter().filter(|unit| unit.taken) {
            documents += 1;
            wanted.each_in(unit.part, |wanted, _| frequency[wanted] += 1);
        }
        let mut weighed: Vec<(u64, i64)> = terms
            .iter()
            .zip(frequency)
            .map(|(&(term, said), frequency)| (term, said * idf(documents, frequency) / UNIT))
            .collect();
        weighed.sort_unstable_by_key(|&(term, weight)| (std::cmp::Reverse(weight), term));
        weighed.truncate(FEEDBACK_TERMS);
        let sum = weighed.iter().map(|(_, weight)| *weight).sum::<i64>().max(1);
        let own: i64 = self.terms.iter().map(|(_, weight)| *weight).sum();
        let mut all: BTreeMap<u64, i64> =
            self.terms.iter().map(|&(term, weight)| (term, weight * 100)).collect();
        for (term, weight) in weighed {
            *all.entry(term).or_default() += own * FEEDBACK_HUNDREDTHS * weight / sum;
        }
        Some(Self::of(all.into_iter().collect(), true))
    }
}

/// Whether a term names one thing and no other: it has a digit, or is joined of several.
fn is_identifier(term: &str) -> bool {
    term.bytes().any(|byte| byte.is_ascii_digit()) || term.contains(['_', '/', '@', '.', ':'])
}

/// What each part has to do with the query; 0 for parts that are not on the ladder.
pub(super) fn relevance(units: &Units<'_>, candidates: &[Candidate], query: &Query) -> Vec<i64> {
    if !query.asked {
        return bm25(units, query, 75);
    }
    let sequence = Sequence::of(units, candidates);
    let first = sequence.spread(bm25(units, query, PART_LENGTH_HUNDREDTHS));
    let Some(query) = query.with_feedback(units, &first) else { return first };
    sequence.spread(bm25(units, &query, PART_LENGTH_HUNDREDTHS))
}

fn bm25(units: &Units<'_>, query: &Query, length_hundredths: u64) -> Vec<i64> {
    let mut frequency = vec![0_u64; query.terms.len()];
    let (mut documents, mut length_total) = (0, 0);
    // Which terms of the query each part has: part, term, count.
    let mut found: Vec<(usize, usize, u32)> = Vec::with_capacity(units.all.len() * 2);
    for (at, unit) in units.all.iter().enumerate().filter(|(_, unit)| unit.taken) {
        documents += 1;
        length_total += unit.part.length;
        query.each_in(unit.part, |wanted, count| {
            frequency[wanted] += 1;
            found.push((at, wanted, count));
        });
    }
    let idf: Vec<i64> = frequency.iter().map(|&frequency| idf(documents, frequency)).collect();
    let mut relevance = vec![0; units.all.len()];
    for of_one in found.chunk_by(|one, two| one.0 == two.0) {
        let at = of_one[0].0;
        let norm = norm_with(units.all[at].part.length, documents, length_total, length_hundredths);
        let gains = of_one.iter().map(|&(_, wanted, count)| {
            gain(idf[wanted], count, norm) * query.terms[wanted].1 / ASKED
        });
        relevance[at] = gains.sum();
    }
    relevance
}

/// Parts in the order in which they were said or stand in their text, in runs.
struct Sequence {
    order: Vec<usize>,
    /// Where each run begins in the order.
    begins: Vec<bool>,
}

impl Sequence {
    /// A conversation's turns follow each other, and so do the parts of a text. What has a title
    /// that nothing else has is a text of its own: its parts are a run, and nothing beside it is.
    fn of(units: &Units<'_>, candidates: &[Candidate]) -> Self {
        let mut titles: BTreeMap<&str, usize> = BTreeMap::new();
        for candidate in candidates {
            *titles.entry(candidate.item().title.trim()).or_default() += 1;
        }
        let alone = |unit: &Unit<'_>| {
            let title = candidates[unit.item].item().title.trim();
            !title.is_empty() && titles[title] == 1
        };
        let mut order: Vec<usize> =
            (0..units.all.len()).filter(|&at| units.all[at].taken).collect();
        // Candidates are sorted by id, so parts that are equal here stand in their item's order.
        order.sort_by_key(|&at| {
            let unit = &units.all[at];
            let own = alone(unit);
            (own, own.then_some(unit.item), candidates[unit.item].item().at, at)
        });
        let mut begins = vec![false; order.len()];
        let mut before: Option<usize> = None;
        for (place, &at) in order.iter().enumerate() {
            let unit = &units.all[at];
            let same = before.is_some_and(|before| units.all[before].item == unit.item);
            begins[place] = before.is_none() || (alone(unit) && !same);
            before = Some(at);
        }
        Self { order, begins }
    }

    /// Squares what each part is worth and gives its neighbours a share of it.
    fn spread(&self, mut relevance: Vec<i64>) -> Vec<i64> {
        let best = relevance.iter().copied().max().unwrap_or(0).max(1);
        for worth in &mut relevance {
            let scaled = i128::from(*worth) * i128::from(BEST) / i128::from(best);
            let scaled = i64::try_from(scaled).expect("at most the best");
            *worth = scaled * scaled;
        }
        let mut spread = vec![0; relevance.len()];
        let mut carried = 0;
        for (place, &at) in self.order.iter().enumerate() {
            carried = if self.begins[place] { 0 } else { carried * NEIGHBOUR_HUNDREDTHS / 100 };
            spread[at] += carried;
            carried += relevance[at];
        }
        carried = 0;
        for (place, &at) in self.order.iter().enumerate().rev() {
            spread[at] += carried + relevance[at] * OWN;
            carried += relevance[at];
            carried = if self.begins[place] { 0 } else { carried * NEIGHBOUR_HUNDREDTHS / 100 };
        }
        spread
    }
}

/// Sorted hashes of the terms of a text with their counts, as parts have them.
pub(super) fn terms_of(texts: [&str; 2], language: Language) -> (Vec<u64>, Vec<(u64, u32)>) {
    let mut hashes = Vec::new();
    for text in texts {
        each_stem(language, text, |term| hashes.push(digest(term)));
    }
    let counted = counted(hashes.clone());
    (hashes, counted)
}

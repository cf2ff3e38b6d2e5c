// SPDX-License-Identifier: Apache-2.0
//! How much each part of each item is worth to this receiver, in whole numbers: relevance to what is
//! asked (BM25), recency and density in identifiers. The weights were not fitted to any test data.

use std::collections::HashMap;

use super::Candidate;
use super::item::counted;
use super::profile::{Profile, Viewed};
use super::render::Brief;
use super::text::{Sketch, digest};
use crate::ids::Timestamp;
use crate::search::{each_term, gain, idf, norm};

/// What the best relevance, the newest time and the densest text are worth.
const RELEVANCE: i64 = 4000;
const RECENCY: i64 = 3000;
const DENSITY: i64 = 6000;
/// What a role's liking or disliking is worth.
const ROLE: i64 = 3000;
/// How many different words of the ask and the intent are looked for.
const QUERY_TERMS_MAX: usize = 256;

/// What items are held against.
pub(super) struct Query {
    terms: Vec<u64>,
    /// One bit for some of the bits of each term: most terms of most texts are in no query, and this
    /// says so without a search.
    filter: [u64; 64],
}

impl Query {
    pub(super) fn new(brief: &Brief, profile: Option<&Profile>) -> Self {
        let mut hashes = Vec::new();
        let mut take = |text: &str| {
            each_term(text, |term| {
                if hashes.len() < QUERY_TERMS_MAX * 4 {
                    hashes.push(digest(term));
                }
            });
        };
        profile.into_iter().flat_map(|profile| &profile.terms).for_each(|term| take(term));
        brief.ask.iter().for_each(|ask| take(ask));
        take(&brief.intent);
        let mut terms: Vec<u64> = counted(hashes).into_iter().map(|(hash, _)| hash).collect();
        terms.truncate(QUERY_TERMS_MAX);
        let mut filter = [0; 64];
        for term in &terms {
            filter[usize::try_from(term >> 58).expect("six bits")] |= 1 << ((term >> 52) & 63);
        }
        Self { terms, filter }
    }

    fn find(&self, term: u64) -> Option<usize> {
        let word = self.filter[usize::try_from(term >> 58).expect("six bits")];
        if word >> ((term >> 52) & 63) & 1 == 0 {
            return None;
        }
        self.terms.binary_search(&term).ok()
    }
}

/// What a part repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeats {
    Nothing,
    /// The part of another item, word for word.
    Item(usize),
}

/// The worth of each part of each item that may be passed.
pub(super) struct Scores {
    pub(super) parts: Vec<Vec<i64>>,
    pub(super) repeats: Vec<Vec<Repeats>>,
}

/// Scores the parts of items. `taken` says which items are candidates at all; pinned ones are not,
/// but what they say need not be said again.
pub(super) fn score(
    candidates: &[Candidate],
    taken: &[bool],
    query: &Query,
    profile: Option<&Profile>,
) -> Scores {
    let relevance = relevance(candidates, taken, query);
    let best = relevance.iter().flatten().copied().max().unwrap_or(0).max(1);
    let recency = recency(candidates, taken);
    let parts = candidates
        .iter()
        .enumerate()
        .map(|(at, candidate)| {
            let prepared = &candidate.prepared;
            let liked = match profile.map_or(Viewed::AsItIs, |p| p.view(&prepared.item)) {
                Viewed::Raised => ROLE,
                Viewed::Lowered => -ROLE,
                Viewed::AsItIs | Viewed::LeftOut => 0,
            };
            let of_part = |(place, part): (usize, &super::item::Part)| {
                if let Some(carried) = &candidate.carried {
                    return carried.score_of(place);
                }
                let relevant = relevance[at].get(place).map_or(0, |r| r * RELEVANCE / best);
                relevant + recency[at] + part.density * DENSITY / 1000 + liked
            };
            prepared.parts.iter().enumerate().map(of_part).collect()
        })
        .collect();
    let mut scores = Scores {
        parts,
        repeats: candidates
            .iter()
            .map(|c| vec![Repeats::Nothing; c.prepared.parts.len()])
            .collect(),
    };
    scores.find_repetition(candidates, taken);
    scores
}

impl Scores {
    /// The worth of an item as a whole: that of its best part.
    pub(super) fn of_item(&self, at: usize) -> i64 {
        self.parts[at].iter().copied().max().unwrap_or(0)
    }

    /// Finds parts that say what a better one says: word for word, or almost, which halves their
    /// worth. Here and not while a budget is spent, because the order must not depend on the budget.
    fn find_repetition(&mut self, candidates: &[Candidate], taken: &[bool]) {
        let mut order: Vec<(bool, i64, usize, usize)> = Vec::new();
        for (at, candidate) in candidates.iter().enumerate() {
            let pinned = candidate.prepared.item.pinned;
            if taken[at] || pinned {
                let parts = self.parts[at].iter().enumerate();
                order.extend(parts.map(|(place, &score)| (!pinned, -score, at, place)));
            }
        }
        // Within equal scores by item and place; classes do not matter for what is said twice,
        // except that pins, which are always passed, come first.
        order.sort_unstable_by_key(|&(free, score, at, place)| {
            let item = &candidates[at].prepared.item;
            (free, item.priority, score, std::cmp::Reverse(item.at), at, place)
        });
        let mut said: HashMap<u64, (usize, usize)> = HashMap::with_capacity(order.len());
        let mut alike: HashMap<(usize, u64), Sketch> = HashMap::with_capacity(order.len() * 4);
        for (free, _, at, place) in order {
            let part = &candidates[at].prepared.parts[place];
            let first = *said.entry(part.digest).or_insert((at, place));
            if !free {
                continue;
            }
            let same = candidates[first.0].prepared.parts[first.1].piece == part.piece;
            if first != (at, place) && first.0 != at && same {
                self.repeats[at][place] = Repeats::Item(first.0);
                continue;
            }
            if candidates[at].carried.is_some() {
                continue;
            }
            let near = part
                .sketch
                .bands()
                .any(|band| alike.get(&band).is_some_and(|sketch| sketch.resembles(&part.sketch)));
            if near {
                let score = &mut self.parts[at][place];
                *score = (*score).min(*score / 2);
            }
            for band in part.sketch.bands() {
                alike.entry(band).or_insert(part.sketch);
            }
        }
    }
}

fn relevance(candidates: &[Candidate], taken: &[bool], query: &Query) -> Vec<Vec<i64>> {
    let mut frequency = vec![0_u64; query.terms.len()];
    let (mut documents, mut length_total) = (0, 0);
    // Which terms of the query each part has: item, part, term, count.
    let mut found: Vec<(usize, usize, usize, u32)> = Vec::new();
    for (at, candidate) in candidates.iter().enumerate().filter(|(at, _)| taken[*at]) {
        for (place, part) in candidate.prepared.parts.iter().enumerate() {
            documents += 1;
            length_total += part.length;
            for &(term, count) in &part.terms {
                if let Some(wanted) = query.find(term) {
                    frequency[wanted] += 1;
                    found.push((at, place, wanted, count));
                }
            }
        }
    }
    let idf: Vec<i64> = frequency.iter().map(|&frequency| idf(documents, frequency)).collect();
    let mut relevance: Vec<Vec<i64>> =
        candidates.iter().map(|candidate| vec![0; candidate.prepared.parts.len()]).collect();
    for (at, place, wanted, count) in found {
        let part = &candidates[at].prepared.parts[place];
        relevance[at][place] +=
            gain(idf[wanted], count, norm(part.length, documents, length_total));
    }
    relevance
}

/// How recent each item is among the others: by rank, because some tasks take seconds and others
/// weeks.
fn recency(candidates: &[Candidate], taken: &[bool]) -> Vec<i64> {
    let times = candidates.iter().zip(taken).filter(|(_, taken)| **taken);
    let mut times: Vec<Timestamp> = times.map(|(c, _)| c.prepared.item.at).collect();
    times.sort_unstable();
    times.dedup();
    let last = i64::try_from(times.len()).expect("a length fits").saturating_sub(1).max(1);
    let of = |candidate: &Candidate| {
        let rank = times.partition_point(|&time| time < candidate.prepared.item.at);
        i64::try_from(rank).expect("a length fits").min(last) * RECENCY / last
    };
    candidates.iter().map(of).collect()
}

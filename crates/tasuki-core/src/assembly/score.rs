// SPDX-License-Identifier: Apache-2.0
//! How much each part of each item is worth to this receiver, in whole numbers: relevance to what is
//! asked (BM25), recency, and density in identifiers that are not passed already; one that several
//! items mention is worth more than one that occurs once. The weights were set on the even tasks of
//! tau-bench's airline data; the odd ones were never looked at.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use super::Candidate;
use super::item::{Part, Priority, counted};
use super::profile::{Profile, Viewed};
use super::render::Brief;
use super::text::{digest, identifiers};
use crate::ids::Timestamp;
use crate::search::{UNIT, each_term, gain, idf, log2, norm};

/// What the best relevance, the newest time and a text of nothing but new identifiers are worth.
const RELEVANCE: i64 = 4000;
const RECENCY: i64 = 3000;
const DENSITY: i64 = 10_000;
/// Identifiers that several items mention count for more, up to this, in thousandths.
const DENSITY_MAX: i64 = 3000;
/// How many mentions of an identifier count.
const MENTIONS_MAX: u64 = 31;
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

/// The worth of each part of each item that may be passed.
pub(super) struct Scores {
    /// Where the parts of each item begin in the two lists that follow.
    first: Vec<usize>,
    scores: Vec<i64>,
    /// The item that says the same, word for word.
    repeats: Vec<Option<usize>>,
}

impl Scores {
    pub(super) fn of_parts(&self, item: usize) -> &[i64] {
        &self.scores[self.first[item]..self.first[item + 1]]
    }

    pub(super) fn repeats(&self, item: usize) -> &[Option<usize>] {
        &self.repeats[self.first[item]..self.first[item + 1]]
    }

    /// The worth of an item as a whole: that of its best part.
    pub(super) fn of_item(&self, item: usize) -> i64 {
        self.of_parts(item).iter().copied().max().unwrap_or(0)
    }
}

/// Scores the parts of items. `taken` says which items are candidates at all; pinned ones are not,
/// but what they say need not be said again.
pub(super) fn score(
    brief: &Brief,
    candidates: &[Candidate],
    taken: &[bool],
    query: &Query,
    profile: Option<&Profile>,
) -> Scores {
    let units = Units::of(candidates, taken);
    let (repeats, alike) = repetition(&units, candidates);
    let relevance = relevance(&units, query);
    let best = relevance.iter().copied().max().unwrap_or(0).max(1);
    let recency = recency(candidates, taken);
    let liking: Vec<i64> = candidates
        .iter()
        .map(|candidate| match profile.map_or(Viewed::AsItIs, |p| p.view(candidate.item())) {
            Viewed::Raised => ROLE,
            Viewed::Lowered => -ROLE,
            Viewed::AsItIs | Viewed::LeftOut => 0,
        })
        .collect();
    let fixed = units.all.iter().zip(&relevance).map(|(unit, relevance)| {
        relevance * RELEVANCE / best + recency[unit.item] + liking[unit.item]
    });
    let fixed: Vec<i64> = fixed.collect();
    let scores = Coverage::new(brief, &units, candidates).walk(&fixed, &repeats, &alike);
    Scores { first: units.first, scores, repeats }
}

/// All parts of all items in one list.
struct Units<'a> {
    all: Vec<Unit<'a>>,
    first: Vec<usize>,
}

struct Unit<'a> {
    item: usize,
    place: usize,
    part: &'a Part,
    /// On the ladder; otherwise pinned or left out.
    taken: bool,
}

impl<'a> Units<'a> {
    fn of(candidates: &'a [Candidate], taken: &[bool]) -> Self {
        let mut all = Vec::with_capacity(candidates.len() * 2);
        let mut first = Vec::with_capacity(candidates.len() + 1);
        for (item, candidate) in candidates.iter().enumerate() {
            first.push(all.len());
            let parts = candidate.prepared.parts.iter().enumerate();
            all.extend(parts.map(|(place, part)| Unit { item, place, part, taken: taken[item] }));
        }
        first.push(all.len());
        Self { all, first }
    }
}

/// Which parts say what another one says, word for word (which item does), and which almost do.
/// Found before any budget is known, because the order of steps must not depend on it.
fn repetition(units: &Units<'_>, candidates: &[Candidate]) -> (Vec<Option<usize>>, Vec<bool>) {
    let mut order: Vec<usize> = (0..units.all.len()).collect();
    // The first copy is a pin's, which is always passed, or the most wanted and newest one.
    order.sort_unstable_by_key(|&at| {
        let item = candidates[units.all[at].item].item();
        (!item.pinned, item.priority, Reverse(item.at), at)
    });
    let mut repeats = vec![None; units.all.len()];
    let mut alike = vec![false; units.all.len()];
    let mut said: HashMap<u64, usize, Plain> =
        HashMap::with_capacity_and_hasher(units.all.len(), Plain::default());
    let mut sketches: HashMap<u64, usize, Plain> =
        HashMap::with_capacity_and_hasher(units.all.len() * 4, Plain::default());
    for at in order {
        let unit = &units.all[at];
        let candidate = &candidates[unit.item];
        if !unit.taken && !candidate.item().pinned {
            continue;
        }
        let first = &units.all[*said.entry(unit.part.digest).or_insert(at)];
        if unit.taken && first.item != unit.item && first.part.piece == unit.part.piece {
            repeats[at] = Some(first.item);
            continue;
        }
        for band in unit.part.sketch.bands() {
            let first = *sketches.entry(band).or_insert(at);
            alike[at] |= unit.taken
                && first != at
                && units.all[first].part.sketch.resembles(&unit.part.sketch);
        }
    }
    (repeats, alike)
}

fn relevance(units: &Units<'_>, query: &Query) -> Vec<i64> {
    let mut frequency = vec![0_u64; query.terms.len()];
    let (mut documents, mut length_total) = (0, 0);
    // Which terms of the query each part has: part, term, count.
    let mut found: Vec<(usize, usize, u32)> = Vec::new();
    for (at, unit) in units.all.iter().enumerate().filter(|(_, unit)| unit.taken) {
        documents += 1;
        length_total += unit.part.length;
        for &(term, count) in &unit.part.terms {
            if let Some(wanted) = query.find(term) {
                frequency[wanted] += 1;
                found.push((at, wanted, count));
            }
        }
    }
    let idf: Vec<i64> = frequency.iter().map(|&frequency| idf(documents, frequency)).collect();
    let mut relevance = vec![0; units.all.len()];
    for (at, wanted, count) in found {
        let norm = norm(units.all[at].part.length, documents, length_total);
        relevance[at] += gain(idf[wanted], count, norm);
    }
    relevance
}

/// How recent each item is among the others: by rank, because some tasks take seconds and others
/// weeks.
fn recency(candidates: &[Candidate], taken: &[bool]) -> Vec<i64> {
    let times = candidates.iter().zip(taken).filter(|(_, taken)| **taken);
    let mut times: Vec<Timestamp> = times.map(|(c, _)| c.item().at).collect();
    times.sort_unstable();
    times.dedup();
    let last = i64::try_from(times.len()).expect("a length fits").saturating_sub(1).max(1);
    let of = |candidate: &Candidate| {
        let rank = times.partition_point(|&time| time < candidate.item().at);
        i64::try_from(rank).expect("a length fits").min(last) * RECENCY / last
    };
    candidates.iter().map(of).collect()
}

/// Which identifiers have been passed on the way through the parts, the best first.
struct Coverage<'a> {
    units: &'a Units<'a>,
    candidates: &'a [Candidate],
    /// For each part, where its identifiers begin in `of_units`.
    first: Vec<usize>,
    /// Numbers of identifiers, and how surely each is one, weighted by how many items mention it.
    of_units: Vec<(usize, i64)>,
    covered: Vec<bool>,
}

impl<'a> Coverage<'a> {
    fn new(brief: &Brief, units: &'a Units<'a>, candidates: &'a [Candidate]) -> Self {
        let mut numbers: HashMap<u64, usize, Plain> =
            HashMap::with_capacity_and_hasher(units.all.len() * 8, Plain::default());
        let (mut first, mut of_units) = (Vec::with_capacity(units.all.len() + 1), Vec::new());
        // How many items mention each identifier, and the last one that did.
        let mut mentions: Vec<(u64, usize)> = Vec::new();
        for unit in &units.all {
            first.push(of_units.len());
            for &(identifier, surely) in &unit.part.identifiers {
                let number = *numbers.entry(identifier).or_insert_with(|| {
                    mentions.push((0, usize::MAX));
                    mentions.len() - 1
                });
                if mentions[number].1 != unit.item {
                    mentions[number] = (mentions[number].0 + 1, unit.item);
                }
                of_units.push((number, surely));
            }
        }
        first.push(of_units.len());
        let worth: Vec<i64> = (0..=MENTIONS_MAX).map(|mentions| log2(1 + mentions)).collect();
        for (number, surely) in &mut of_units {
            let mentions = mentions[*number].0.min(MENTIONS_MAX);
            *surely = *surely * worth[usize::try_from(mentions).expect("bounded above")] / UNIT;
        }
        let mut coverage =
            Self { units, candidates, first, of_units, covered: vec![false; mentions.len()] };
        for text in [Some(&brief.intent), brief.ask.as_ref()].into_iter().flatten() {
            for (identifier, _) in identifiers(text).0 {
                numbers
                    .get(&identifier)
                    .iter()
                    .for_each(|&&number| coverage.covered[number] = true);
            }
        }
        for (at, unit) in units.all.iter().enumerate() {
            if candidates[unit.item].item().pinned {
                coverage.cover(at);
            }
        }
        coverage
    }

    fn cover(&mut self, at: usize) {
        for (number, _) in &self.of_units[self.first[at]..self.first[at + 1]] {
            self.covered[*number] = true;
        }
    }

    /// What a part's identifiers are worth that have not been passed.
    fn density(&self, at: usize) -> i64 {
        let identifiers = self.of_units[self.first[at]..self.first[at + 1]].iter();
        let new = identifiers.filter(|(number, _)| !self.covered[*number]).map(|(_, worth)| worth);
        let density = new.sum::<i64>() / self.units.all[at].part.words;
        density.min(DENSITY_MAX) * DENSITY / 1000
    }

    /// Takes the best part again and again. The worth of the others only falls while identifiers are
    /// covered, so what is still the best when it is worked out anew is the best of all.
    fn walk(mut self, fixed: &[i64], repeats: &[Option<usize>], alike: &[bool]) -> Vec<i64> {
        type Entry = (Reverse<Priority>, i64, Timestamp, Reverse<usize>);
        let worth = |coverage: &Self, at: usize| -> i64 {
            let unit = &coverage.units.all[at];
            if let Some(carried) = coverage.candidates[unit.item].settled() {
                return carried.score_of(unit.place);
            }
            let worth = fixed[at] + coverage.density(at);
            if alike[at] { worth.min(worth / 2) } else { worth }
        };
        let entry = |coverage: &Self, at: usize| -> Entry {
            let item = coverage.candidates[coverage.units.all[at].item].item();
            (Reverse(item.priority), worth(coverage, at), item.at, Reverse(at))
        };
        let mut scores = vec![0; fixed.len()];
        let ladder =
            (0..fixed.len()).filter(|&at| self.units.all[at].taken && repeats[at].is_none());
        let mut heap: BinaryHeap<Entry> = ladder.map(|at| entry(&self, at)).collect();
        while let Some(top) = heap.pop() {
            let at = top.3.0;
            let now = entry(&self, at);
            if now < top && heap.peek().is_some_and(|next| now < *next) {
                heap.push(now);
                continue;
            }
            scores[at] = now.1;
            self.cover(at);
        }
        scores
    }
}

/// Hashes what is a hash already.
type Plain = BuildHasherDefault<Fold>;

#[derive(Default)]
struct Fold(u64);

impl Hasher for Fold {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

// SPDX-License-Identifier: Apache-2.0
//! How much each part of each item is worth to this receiver, in whole numbers: relevance to what is
//! asked (BM25), recency, and density in identifiers that are not passed already; one that several
//! items mention is worth more than one that occurs once. The weights were set on the even tasks of
//! tau-bench's airline data; the odd ones were never looked at.
//!
//! This is most of what an assembly costs, so orders are packed into single numbers and what is
//! counted again and again is counted along.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Candidate;
use super::item::{Part, Priority};
use super::profile::{Profile, Viewed};
use super::relevance::{Query, relevance};
use super::render::Brief;
use super::text::identifiers;
use crate::ids::Timestamp;
use crate::search::{UNIT, log2};

/// What the best relevance, the newest time and a text of nothing but new identifiers are worth.
const RELEVANCE: i64 = 4000;
/// What the best relevance is worth where something is asked: it leads, and the rest breaks ties.
const ASKED: i64 = 1_000_000;
const RECENCY: i64 = 3000;
const DENSITY: i64 = 10_000;
/// Identifiers that several items mention count for more, up to this, in thousandths.
const DENSITY_MAX: i64 = 3000;
/// How many mentions of an identifier count.
const MENTIONS_MAX: u64 = 31;
/// What a role's liking or disliking is worth.
const ROLE: i64 = 3000;

/// The worth of each part of each item that may be passed.
pub(super) struct Scores {
    /// Where the parts of each item begin in the two lists that follow.
    first: Vec<usize>,
    scores: Vec<i64>,
    /// The item that says the same, word for word.
    repeats: Vec<Option<usize>>,
    ranks: Vec<Rank>,
}

/// The place of an item's time among those of all items: the newest has the highest.
type Rank = u32;

/// What decides first which part or step comes first, in one number: priority, worth and time. The
/// greater comes first. The lowest [`SPARE_BITS`] are the caller's.
pub(super) fn order(priority: Priority, later: bool, worth: i64, rank: Rank) -> u128 {
    let class = match priority {
        Priority::High => 2,
        Priority::Normal => 1,
        Priority::Low => 0,
    };
    let class = class << 1 | u128::from(!later);
    // Adding half of the range keeps the order and makes it positive.
    let worth = u128::from(worth.cast_unsigned() ^ (1 << 63));
    class << 125 | worth << 61 | u128::from(rank.min(RANK_MAX)) << SPARE_BITS
}

/// How many bits of an [`order`] are left: more than parts fit into memory.
pub(super) const SPARE_BITS: u32 = 37;
/// The newest of all.
pub(super) const RANK_MAX: Rank = (1 << (61 - SPARE_BITS)) - 1;

impl Scores {
    pub(super) fn of_parts(&self, item: usize) -> &[i64] {
        &self.scores[self.first[item]..self.first[item + 1]]
    }

    pub(super) fn repeats(&self, item: usize) -> &[Option<usize>] {
        &self.repeats[self.first[item]..self.first[item + 1]]
    }

    pub(super) fn rank(&self, item: usize) -> Rank {
        self.ranks[item]
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
    let relevance = relevance(&units, candidates, query);
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
        let leads = if query.is_asked() { ASKED } else { RELEVANCE };
        let relevant = i128::from(*relevance) * i128::from(leads) / i128::from(best);
        let relevant = i64::try_from(relevant).expect("at most what the best is worth");
        relevant + recency[unit.item] + liking[unit.item]
    });
    let fixed: Vec<i64> = fixed.collect();
    let ranks = ranks(candidates);
    let coverage = Coverage::new(brief, &units, candidates);
    let scores = coverage.walk(&fixed, &repeats, &alike, &ranks);
    Scores { first: units.first, scores, repeats, ranks }
}

/// All parts of all items in one list.
pub(super) struct Units<'a> {
    pub(super) all: Vec<Unit<'a>>,
    first: Vec<usize>,
}

pub(super) struct Unit<'a> {
    pub(super) item: usize,
    place: usize,
    pub(super) part: &'a Part,
    /// On the ladder; otherwise pinned or left out.
    pub(super) taken: bool,
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
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    // The first copy is a pin's, which is always passed, or the most wanted and newest one.
    order.sort_unstable_by_key(|&at| {
        let item = candidates[at].item();
        (!item.pinned, item.priority, Reverse(item.at), at)
    });
    let mut repeats = vec![None; units.all.len()];
    let mut alike = vec![false; units.all.len()];
    let (mut said, mut said_by) = (Numbers::for_about(units.all.len()), Vec::new());
    let (mut bands, mut bands_of) = (Numbers::for_about(units.all.len() * 4), Vec::new());
    for at in order.into_iter().flat_map(|item| units.first[item]..units.first[item + 1]) {
        let unit = &units.all[at];
        if !unit.taken && !candidates[unit.item].item().pinned {
            continue;
        }
        let first = said.first_with(unit.part.digest, at, &mut said_by);
        let first = &units.all[first];
        if unit.taken && first.item != unit.item && first.part.piece == unit.part.piece {
            repeats[at] = Some(first.item);
            continue;
        }
        for band in unit.part.sketch.bands() {
            let first = bands.first_with(band, at, &mut bands_of);
            alike[at] |= unit.taken
                && first != at
                && units.all[first].part.sketch.resembles(&unit.part.sketch);
        }
    }
    (repeats, alike)
}

/// The place of each item's time among all.
fn ranks(candidates: &[Candidate]) -> Vec<Rank> {
    let mut times: Vec<Timestamp> = candidates.iter().map(|c| c.item().at).collect();
    times.sort_unstable();
    times.dedup();
    let rank = |candidate: &Candidate| times.partition_point(|&time| time < candidate.item().at);
    candidates.iter().map(|it| Rank::try_from(rank(it)).unwrap_or(RANK_MAX)).collect()
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
    /// For each part, where its identifiers begin in `mentions`.
    first: Vec<usize>,
    mentions: Vec<Mention>,
    /// For each identifier, its last mention, until it has been passed.
    open: Vec<Option<usize>>,
    /// For each part, what its identifiers are worth that have not been passed.
    worth: Vec<i64>,
}

/// An identifier in a part.
struct Mention {
    unit: usize,
    identifier: usize,
    /// The mention of the same identifier before this one.
    before: Option<usize>,
    /// How surely it is one, weighted by how many items mention it.
    worth: i64,
}

impl<'a> Coverage<'a> {
    fn new(brief: &Brief, units: &'a Units<'a>, candidates: &'a [Candidate]) -> Self {
        let number: usize = units.all.iter().map(|unit| unit.part.identifiers.len()).sum();
        let mut numbers = Numbers::for_about(number);
        let mut first = Vec::with_capacity(units.all.len() + 1);
        let mut mentions: Vec<Mention> = Vec::with_capacity(number);
        let mut open: Vec<Option<usize>> = Vec::with_capacity(number);
        // How many items mention each identifier, and the last one that did.
        let mut items: Vec<(usize, usize)> = Vec::with_capacity(number);
        for (at, unit) in units.all.iter().enumerate() {
            first.push(mentions.len());
            for &(identifier, surely) in &unit.part.identifiers {
                let (identifier, new) = numbers.number(identifier);
                if new {
                    open.push(None);
                    items.push((0, usize::MAX));
                }
                if items[identifier].1 != unit.item {
                    items[identifier] = (items[identifier].0 + 1, unit.item);
                }
                let before = open[identifier].replace(mentions.len());
                mentions.push(Mention { unit: at, identifier, before, worth: surely });
            }
        }
        first.push(mentions.len());
        let weights: Vec<i64> = (0..=MENTIONS_MAX).map(|mentions| log2(1 + mentions)).collect();
        let mut worth = vec![0; units.all.len()];
        for mention in &mut mentions {
            let items = items[mention.identifier].0.min(weights.len() - 1);
            mention.worth = mention.worth * weights[items] / UNIT;
            worth[mention.unit] += mention.worth;
        }
        let mut coverage = Self { units, candidates, first, mentions, open, worth };
        for text in [Some(&brief.intent), brief.ask.as_ref()].into_iter().flatten() {
            for (identifier, _) in identifiers(text).0 {
                numbers.find(identifier).iter().for_each(|&known| coverage.pass(known));
            }
        }
        for (at, unit) in units.all.iter().enumerate() {
            if candidates[unit.item].item().pinned {
                coverage.cover(at);
            }
        }
        coverage
    }

    /// An identifier is worth nothing more, wherever it is mentioned.
    fn pass(&mut self, identifier: usize) {
        let mut last = self.open[identifier].take();
        while let Some(at) = last {
            let mention = &self.mentions[at];
            self.worth[mention.unit] -= mention.worth;
            last = mention.before;
        }
    }

    fn cover(&mut self, at: usize) {
        for at in self.first[at]..self.first[at + 1] {
            self.pass(self.mentions[at].identifier);
        }
    }

    /// What a part's identifiers are worth that have not been passed.
    fn density(&self, at: usize) -> i64 {
        let density = self.worth[at] / self.units.all[at].part.words;
        density.min(DENSITY_MAX) * DENSITY / 1000
    }

    /// Takes the best part again and again. The worth of the others only falls while identifiers are
    /// covered, so what is still the best when it is worked out anew is the best of all.
    fn walk(
        mut self,
        fixed: &[i64],
        repeats: &[Option<usize>],
        alike: &[bool],
        ranks: &[Rank],
    ) -> Vec<i64> {
        const PLACE: u128 = (1 << SPARE_BITS) - 1;
        let worth = |coverage: &Self, at: usize| -> i64 {
            let unit = &coverage.units.all[at];
            if let Some(carried) = coverage.candidates[unit.item].settled() {
                return carried.score_of(unit.place);
            }
            let worth = fixed[at] + coverage.density(at);
            if alike[at] { worth.min(worth / 2) } else { worth }
        };
        // Of equals the one that comes first is the greater.
        let entry = |coverage: &Self, at: usize, worth: i64| -> u128 {
            let item = coverage.units.all[at].item;
            let priority = coverage.candidates[item].item().priority;
            order(priority, false, worth, ranks[item]) | (PLACE - at as u128)
        };
        let mut scores = vec![0; fixed.len()];
        let ladder =
            (0..fixed.len()).filter(|&at| self.units.all[at].taken && repeats[at].is_none());
        let mut heap: BinaryHeap<u128> =
            ladder.map(|at| entry(&self, at, worth(&self, at))).collect();
        while let Some(top) = heap.pop() {
            let at = usize::try_from(PLACE - (top & PLACE)).expect("it was one");
            let worth = worth(&self, at);
            let now = entry(&self, at, worth);
            if now < top && heap.peek().is_some_and(|next| now < *next) {
                heap.push(now);
                continue;
            }
            scores[at] = worth;
            self.cover(at);
        }
        scores
    }
}

/// Numbers for hashes, from 0 in the order in which they come.
struct Numbers {
    /// The number of a hash and one more, at a place that the hash says; 0 where there is none.
    slots: Vec<u32>,
    hashes: Vec<u64>,
}

impl Numbers {
    fn for_about(hashes: usize) -> Self {
        let slots = hashes.saturating_mul(2).next_power_of_two().max(16);
        Self { slots: vec![0; slots], hashes: Vec::with_capacity(hashes) }
    }

    /// The number of a hash, and whether it is a new one.
    fn number(&mut self, hash: u64) -> (usize, bool) {
        let slot = match self.slot(hash) {
            Ok(number) => return (number, false),
            Err(slot) => slot,
        };
        self.hashes.push(hash);
        self.slots[slot] = u32::try_from(self.hashes.len()).expect("far fewer are given");
        if self.hashes.len() * 2 > self.slots.len() {
            let mut larger = Self::for_about(self.slots.len());
            self.hashes.iter().for_each(|&hash| _ = larger.number(hash));
            *self = larger;
        }
        (self.hashes.len() - 1, true)
    }

    fn find(&self, hash: u64) -> Option<usize> {
        self.slot(hash).ok()
    }

    /// Who came first with a hash; whoever does now, if nobody has before.
    fn first_with(&mut self, hash: u64, comer: usize, comers: &mut Vec<usize>) -> usize {
        let (number, new) = self.number(hash);
        if new {
            comers.push(comer);
        }
        comers[number]
    }

    /// The number of a hash, or the slot that it would have.
    fn slot(&self, hash: u64) -> Result<usize, usize> {
        let mask = self.slots.len() - 1;
        let spread = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let mut at = usize::try_from(spread).expect("half of it") & mask;
        loop {
            match self.slots[at] as usize {
                0 => return Err(at),
                number if self.hashes[number - 1] == hash => return Ok(number - 1),
                _ => at = (at + 1) & mask,
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Whether the graph of who hands to whom is what it was: how much goes both ways, how much stays within groups,
//! how much one receiver gets more than another, and how many words are unknown everywhere. Measured
//! on blocks of equally many handoffs between agents that were there before and still are, so that neither
//! more traffic nor new agents are a drift; blocks are shuffled between before and now.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::choices::{Asked, behind};
use super::excess::{ROUNDS, share_above};
use super::legibility::Unknown;
use super::names::{NONE, Name};
use super::random::Random;
use super::report::{BEHIND_MAX, Finding, Kind, Looked};

/// How many blocks the baseline has, how many there are at most now, and how many handoffs one has at least.
const BEFORE: usize = 12;
const NOW_MAX: usize = 24;
const BLOCK_MIN: usize = 60;
/// How often groups are looked for anew.
const SETTLES: usize = 20;

struct Measure {
    name: &'static str,
    /// How much it must change to be worth somebody's time.
    change_min: f64,
}

const MEASURES: [Measure; 4] = [
    Measure { name: "handoffs that go both ways", change_min: 0.1 },
    Measure { name: "inequality among receivers (Gini)", change_min: 0.1 },
    Measure { name: "handoffs within the groups of before", change_min: 0.15 },
    Measure { name: "words that were unknown before", change_min: 0.15 },
];

#[derive(Clone, Copy)]
struct Edge {
    of: u32,
    from: Name,
    to: Name,
}

/// Looks for a drift of the population as a whole.
pub(super) fn drift(
    asked: &Asked<'_>,
    unknown: &Unknown,
    random: &mut Random,
) -> (Looked, Vec<Finding>) {
    let (before, now) = edges(asked);
    let size = before.len() / BEFORE;
    let mut looked = Looked {
        kind: Kind::GraphDrift,
        n: (before.len() + now.len()) as u64,
        tested: MEASURES.len() as u64,
        permutations: ROUNDS as u64,
        false_alarm_rate: asked.alpha,
        unjudged: None,
    };
    if size < BLOCK_MIN || now.len() < size * BEFORE / 3 {
        let needed = BLOCK_MIN * BEFORE;
        looked.unjudged = Some(format!(
            "{} handoffs before and {} now between agents that were there all the time; {needed} and {} are needed",
            before.len(),
            now.len(),
            needed / 3
        ));
        (looked.tested, looked.permutations) = (0, 0);
        return (looked, Vec::new());
    }
    let groups = groups(&before[..before.len() / 2]);
    let before: Vec<&[Edge]> = before.chunks_exact(size).collect();
    let now: Vec<&[Edge]> = now.chunks_exact(size).collect();
    let now = &now[..now.len().min(NOW_MAX)];
    let values: Vec<Vec<Option<f64>>> = (0..MEASURES.len())
        .map(|measure| {
            let blocks = before.iter().chain(now).enumerate();
            let value = |(at, edges): (usize, &&[Edge])| match measure {
                0 => Some(both_ways(edges)),
                1 => Some(gini(edges)),
                // Groups fit what they were made of better than anything that comes after it.
                2 if at < BEFORE / 2 => None,
                2 => within(edges, &groups),
                _ => mean_unknown(edges, unknown),
            };
            blocks.map(value).collect()
        })
        .collect();
    let mut best = vec![0.0_f64; ROUNDS];
    let mut seen = Vec::new();
    for (measure, values) in values.iter().enumerate() {
        let old: Vec<f64> = values[..before.len()].iter().flatten().copied().collect();
        let new: Vec<f64> = values[before.len()..].iter().flatten().copied().collect();
        if old.len() < 3 || new.len() < 3 {
            continue;
        }
        let mut all = [old.as_slice(), new.as_slice()].concat();
        seen.push((measure, change(&all, old.len())));
        for best in &mut best {
            random.shuffle(&mut all);
            *best = best.max(change(&all, old.len()).0);
        }
    }
    let mut findings = Vec::new();
    for (measure, (strength, more, start)) in seen {
        let Measure { name, change_min } = MEASURES[measure];
        let p = share_above(strength, &best);
        if p > asked.alpha || more.abs() < change_min {
            continue;
        }
        let from = now.len().min(start);
        let edges = now[from..].iter().flat_map(|block| block.iter());
        let handed = |edge: &Edge| &asked.collected.handed[edge.of as usize];
        let n = edges.clone().count();
        let since = edges.clone().next().map(|edge| handed(edge).at);
        let last = edges.skip(n.saturating_sub(BEHIND_MAX));
        let summary = format!(
            "{name}: {} by {:.0} points against the baseline",
            if more > 0.0 { "more" } else { "less" },
            more.abs() * 100.0
        );
        findings.push(Finding {
            kind: Kind::GraphDrift,
            agents: Vec::new(),
            summary,
            effect: more,
            unit: format!("change of: {name}"),
            n: n as u64,
            p,
            since,
            behind: last.map(|edge| behind(handed(edge))).collect(),
        });
    }
    (looked, findings)
}

/// Handoffs before and now between agents that take part in both.
fn edges(asked: &Asked<'_>) -> (Vec<Edge>, Vec<Edge>) {
    let of = |span: std::ops::Range<usize>| {
        let handed = asked.collected.handed[span.clone()].iter().zip(span);
        let edge = |(handed, at): (&super::collect::Handed, usize)| {
            let (from, to) = (handed.from, handed.receiver());
            (from != NONE && to != NONE).then_some(Edge { of: at as u32, from, to })
        };
        handed.filter_map(edge).collect::<Vec<_>>()
    };
    let (mut before, mut now) = (of(asked.baseline.clone()), of(asked.current.clone()));
    let agents = |edges: &[Edge]| -> HashSet<Name> {
        edges.iter().flat_map(|edge| [edge.from, edge.to]).collect()
    };
    let (was, is) = (agents(&before), agents(&now));
    let stays =
        |edge: &Edge| [edge.from, edge.to].iter().all(|it| was.contains(it) && is.contains(it));
    before.retain(stays);
    now.retain(stays);
    (before, now)
}

/// The largest change from some start on, in standard errors, with its sign apart, and which block it begins with.
fn change(values: &[f64], before: usize) -> (f64, f64, usize) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    let spread = variance.sqrt().max(1e-6);
    let old = values[..before].iter().sum::<f64>() / before as f64;
    let mut best = (0.0, 0.0, 0);
    let now = values.len() - before;
    for start in [0, now / 3, now * 2 / 3] {
        let new = &values[before + start..];
        let more = new.iter().sum::<f64>() / new.len() as f64 - old;
        let strength =
            more.abs() / (spread * (1.0 / new.len() as f64 + 1.0 / before as f64).sqrt());
        if strength > best.0 {
            best = (strength, more, start);
        }
    }
    best
}

fn both_ways(edges: &[Edge]) -> f64 {
    let pairs: HashSet<(Name, Name)> = edges.iter().map(|edge| (edge.from, edge.to)).collect();
    let back = edges.iter().filter(|edge| pairs.contains(&(edge.to, edge.from))).count();
    back as f64 / edges.len() as f64
}

fn gini(edges: &[Edge]) -> f64 {
    let mut counts: HashMap<Name, u64> = HashMap::new();
    edges.iter().for_each(|edge| *counts.entry(edge.to).or_default() += 1);
    let mut counts: Vec<u64> = counts.into_values().collect();
    counts.sort_unstable();
    let (n, sum) = (counts.len() as f64, counts.iter().sum::<u64>() as f64);
    let ranked = counts.iter().enumerate();
    let ranked: f64 = ranked.map(|(at, count)| (at as f64 + 1.0) * *count as f64).sum();
    2.0 * ranked / (n * sum) - (n + 1.0) / n
}

fn within(edges: &[Edge], groups: &BTreeMap<Name, Name>) -> Option<f64> {
    let known =
        edges.iter().filter_map(|edge| Some((groups.get(&edge.from)?, groups.get(&edge.to)?)));
    let all = known.clone().count();
    let inside = known.filter(|(from, to)| from == to).count();
    // With one group for everybody there is no inside.
    let several = groups.values().collect::<HashSet<_>>().len() > 1;
    (several && all >= BLOCK_MIN / 2).then(|| inside as f64 / all as f64)
}

fn mean_unknown(edges: &[Edge], unknown: &Unknown) -> Option<f64> {
    let shares: Vec<f64> =
        edges.iter().filter_map(|edge| unknown.shares.get(&edge.of).copied()).collect();
    (shares.len() >= BLOCK_MIN / 4).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
}

/// Who belonged together in the baseline, so that a sender is compared with those of its own circle.
pub(super) fn circles(asked: &Asked<'_>) -> BTreeMap<Name, Name> {
    let span = asked.baseline.clone();
    let handed = asked.collected.handed[span.clone()].iter().zip(span);
    let edges: Vec<Edge> = handed
        .map(|(handed, at)| Edge { of: at as u32, from: handed.from, to: handed.receiver() })
        .filter(|edge| edge.from != NONE && edge.to != NONE)
        .collect();
    groups(&edges)
}

/// Groups by label propagation: everybody joins the group with which it has most traffic beyond what their sizes
/// alone would give, until nobody moves. Without that part, everybody ends in one group.
fn groups(edges: &[Edge]) -> BTreeMap<Name, Name> {
    let mut links: BTreeMap<Name, BTreeMap<Name, f64>> = BTreeMap::new();
    for edge in edges.iter().filter(|edge| edge.from != edge.to) {
        *links.entry(edge.from).or_default().entry(edge.to).or_default() += 1.0;
        *links.entry(edge.to).or_default().entry(edge.from).or_default() += 1.0;
    }
    let traffic: BTreeMap<Name, f64> =
        links.iter().map(|(name, others)| (*name, others.values().sum())).collect();
    let all: f64 = traffic.values().sum();
    let mut groups: BTreeMap<Name, Name> = links.keys().map(|name| (*name, *name)).collect();
    let mut sizes = traffic.clone();
    for _ in 0..SETTLES {
        let mut moved = false;
        for (name, others) in &links {
            let (own, here) = (traffic[name], groups[name]);
            let mut weights: BTreeMap<Name, f64> = BTreeMap::from([(here, 0.0)]);
            for (other, weight) in others {
                *weights.entry(groups[other]).or_default() += weight;
            }
            let beyond = |group: Name, weight: f64| {
                let size = sizes[&group] - if group == here { own } else { 0.0 };
                weight - own * size / all
            };
            let best = weights
                .iter()
                .map(|(group, weight)| (beyond(*group, *weight), *group))
                .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
            let stays = beyond(here, weights[&here]);
            if let Some((_, group)) = best.filter(|(more, group)| *group != here && *more > stays) {
                *sizes.entry(here).or_default() -= own;
                *sizes.entry(group).or_default() += own;
                groups.insert(*name, group);
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    groups
}

// SPDX-License-Identifier: Apache-2.0
//! Who chooses whom: senders that name a receiver, receivers that accept or decline, and agents that
//! claim from a queue.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::collect::{Collected, Handed};
use super::excess::{Item, ROUNDS, Table, share_above, strength};
use super::names::NONE;
use super::random::Random;
use super::report::{BEHIND_MAX, Behind, FINDINGS_MAX, Finding, Kind, Looked};
use crate::ids::Timestamp;

/// How many times as often as expected is worth somebody's time, of what is rare and of what is the rule, and
/// how many more.
const TIMES_MIN: f64 = 2.0;
const TIMES_OF_ANSWERS_MIN: f64 = 1.4;
const MORE_MIN: f64 = 5.0;
/// How far above expectation a receiver is to be named as a favourite, and how many are named.
const FAVOURITE_MIN: f64 = 2.5;
const FAVOURITES_MAX: usize = 8;
/// From where on what was before the present is taken for a habit.
const STANDS_OUT: f64 = 1.5;
/// Fewer choices say nothing.
const CHOICES_MIN: usize = 100;

pub(super) struct Asked<'a> {
    pub(super) collected: &'a Collected,
    /// What counts as usual; empty if nothing does.
    pub(super) baseline: Range<usize>,
    pub(super) current: Range<usize>,
    /// How often an honest population may raise an alarm of this kind.
    pub(super) alpha: f64,
}

impl Asked<'_> {
    fn items<T>(
        &self,
        span: &Range<usize>,
        mut item: impl FnMut(u32, &Handed) -> Option<T>,
    ) -> Vec<T> {
        let handed = &self.collected.handed[span.clone()];
        let numbered = handed.iter().enumerate();
        numbered.filter_map(|(at, handed)| item((span.start + at) as u32, handed)).collect()
    }

    fn agents(&self) -> usize {
        self.collected.agents.len()
    }

    /// The last of what is behind a finding, and when the first of it was.
    fn behind(&self, numbers: impl Iterator<Item = u32>) -> (Option<Timestamp>, Vec<Behind>) {
        let mut numbers: Vec<u32> = numbers.collect();
        numbers.sort_unstable();
        let since = numbers.first().map(|at| self.collected.handed[*at as usize].at);
        let last = numbers.split_off(numbers.len().saturating_sub(BEHIND_MAX));
        (since, last.into_iter().map(|at| behind(&self.collected.handed[at as usize])).collect())
    }
}

pub(super) fn behind(handed: &Handed) -> Behind {
    Behind { position: handed.position, task_id: handed.task, handoff_id: handed.handoff }
}

/// A finding, before it is told.
struct Found {
    table: usize,
    row: u16,
    label: u16,
    count: u32,
    expected: f64,
    p: f64,
}

/// Shuffles several tables together: the chance of any alarm in any of them is what was asked for.
fn find(tables: &[(Table, Option<Table>, f64)], alpha: f64, random: &mut Random) -> Vec<Found> {
    let mut best = vec![0.0; ROUNDS];
    for (table, ..) in tables {
        table.shuffle(random, &mut best, None);
    }
    findings(tables, alpha, &best)
}

/// Compares what is seen now with others at the same time and, where it was so before, with that.
fn findings(tables: &[(Table, Option<Table>, f64)], alpha: f64, best: &[f64]) -> Vec<Found> {
    let mut found = Vec::new();
    for (number, (table, before, times_min)) in tables.iter().enumerate() {
        for cell in table.cells() {
            let usual =
                before.as_ref().map_or(1.0, |before| usual(before.of(cell.row, cell.label)));
            let expected = (cell.expected * usual).min(cell.trials);
            let enough = f64::from(cell.count) >= times_min * expected
                && f64::from(cell.count) >= expected + MORE_MIN;
            if !enough {
                continue;
            }
            let p = share_above(strength(cell.count, expected, cell.trials), best);
            if p <= alpha {
                let (row, label, count) = (cell.row, cell.label, cell.count);
                found.push(Found { table: number, row, label, count, expected, p });
            }
        }
    }
    found.sort_by(|a, b| {
        let times = |it: &Found| f64::from(it.count) / it.expected;
        a.p.total_cmp(&b.p).then(times(b).total_cmp(&times(a)))
    });
    found.truncate(FINDINGS_MAX);
    found
}

/// How many times as often as others it was already usual, at the upper end of what chance leaves open; once,
/// where nothing stood out.
fn usual((expected, count): (f64, u32)) -> f64 {
    if strength(count, expected, f64::INFINITY) < STANDS_OUT {
        return 1.0;
    }
    (f64::from(count) + 2.0 * f64::from(count + 1).sqrt()) / expected
}

fn looked(kind: Kind, tables: &[(Table, Option<Table>, f64)], alpha: f64) -> Looked {
    let n: usize = tables.iter().map(|(table, ..)| table.len()).sum();
    Looked {
        kind,
        n: n as u64,
        tested: tables.iter().map(|(table, ..)| table.tested() as u64).sum(),
        permutations: ROUNDS as u64,
        false_alarm_rate: alpha,
        unjudged: None,
    }
}

fn too_few(kind: Kind, n: usize, alpha: f64, of: &str) -> (Looked, Vec<Finding>) {
    let unjudged = Some(format!("{n} {of}, {CHOICES_MIN} are needed"));
    let looked =
        Looked { kind, n: n as u64, tested: 0, permutations: 0, false_alarm_rate: alpha, unjudged };
    (looked, Vec::new())
}

/// Choices are compared between those who want the same done and had the same circle in the baseline: teams that
/// always kept to themselves raise nothing.
fn stratum(circles: &BTreeMap<u16, u16>, capability: u16, agent: u16) -> u32 {
    u32::from(capability) << 16 | u32::from(circles.get(&agent).copied().unwrap_or(NONE))
}

/// Senders that choose a receiver far more often than others do who want the same done at the same time.
pub(super) fn routing(
    asked: &Asked<'_>,
    circles: &BTreeMap<u16, u16>,
    random: &mut Random,
) -> (Looked, Vec<Finding>) {
    let collected = asked.collected;
    let choice = |of: u32, handed: &Handed| {
        let is_choice = handed.chosen
            && handed.capability != NONE
            && handed.from != NONE
            && !collected.is_sticky(handed);
        let item = Item { row: handed.from, label: handed.to, of };
        is_choice.then_some((stratum(circles, handed.capability, handed.from), item))
    };
    let agents = asked.agents();
    let items = asked.items(&asked.current, choice);
    if items.len() < CHOICES_MIN {
        let of = "choices of a receiver by name for a known capability";
        return too_few(Kind::RoutingConcentration, items.len(), asked.alpha, of);
    }
    let before = (!asked.baseline.is_empty())
        .then(|| Table::new(&asked.items(&asked.baseline, choice), agents, agents));
    let table = Table::new(&items, agents, agents);
    let (mut best, mut rows) = (vec![0.0; ROUNDS], Vec::with_capacity(ROUNDS));
    table.shuffle(random, &mut best, Some(&mut rows));
    // Pairs and senders are two questions, so each has half of the alarms.
    let alpha = asked.alpha / 2.0;
    let tables = [(table, before, TIMES_MIN)];
    let pairs = findings(&tables, alpha, &best);
    let found = pairs.into_iter().map(|it| {
        let names = [it.row, it.label].map(|name| collected.agents.told(name));
        let summary = format!(
            "unusual routing concentration: {} chose {} {} times, {:.1} were expected",
            names[0], names[1], it.count, it.expected
        );
        finding(asked, Kind::RoutingConcentration, &tables[0].0, &names, summary, &it)
    });
    let mut found: Vec<Finding> = found.collect();
    let told: BTreeSet<String> = found.iter().map(|it| it.agents[0].clone()).collect();
    let (table, before, _) = &tables[0];
    let senders = senders(asked, table, before.as_ref(), &rows, alpha);
    found.extend(senders.into_iter().filter(|it| !told.contains(&it.agents[0])));
    found.truncate(FINDINGS_MAX);
    (looked(Kind::RoutingConcentration, &tables, asked.alpha), found)
}

/// Senders whose choices as a whole are unlike those of others: several receivers, each a little too often.
fn senders(
    asked: &Asked<'_>,
    table: &Table,
    before: Option<&Table>,
    rounds: &[Vec<f32>],
    alpha: f64,
) -> Vec<Finding> {
    let count = rounds.len() as f64;
    let moments = |row: usize| {
        let mean = rounds.iter().map(|round| f64::from(round[row])).sum::<f64>() / count;
        let off = rounds.iter().map(|round| (f64::from(round[row]) - mean).powi(2)).sum::<f64>();
        (mean, (off / count).sqrt().max(1.0))
    };
    let moments: Vec<(f64, f64)> = (0..table.rows()).map(moments).collect();
    let far = |row: usize, sum: f64| (sum - moments[row].0) / moments[row].1;
    let strongest = |round: &Vec<f32>| {
        let rows = round.iter().enumerate().map(|(row, sum)| far(row, f64::from(*sum)));
        rows.fold(0.0, f64::max)
    };
    let best: Vec<f64> = rounds.iter().map(strongest).collect();
    let mut found = Vec::new();
    for row in 0..table.rows() {
        let (mut sum, mut chosen, mut expected, mut favourites) = (0.0, 0, 0.0, Vec::new());
        for cell in table.of_row(row as u16) {
            let usual = before.map_or(1.0, |before| usual(before.of(cell.row, cell.label)));
            let usually = (cell.expected * usual).min(cell.trials);
            let strength = strength(cell.count, usually, cell.trials);
            sum += strength * strength;
            if strength >= FAVOURITE_MIN {
                (chosen, expected) = (chosen + cell.count, expected + usually);
                favourites.push((strength, cell.label));
            }
        }
        let p = share_above(far(row, sum), &best);
        let times = f64::from(chosen) / expected.max(1e-9);
        if p > alpha || times < TIMES_MIN || f64::from(chosen) < expected + MORE_MIN {
            continue;
        }
        favourites.sort_by(|a, b| b.0.total_cmp(&a.0));
        favourites.truncate(FAVOURITES_MAX);
        let told = |name: u16| asked.collected.agents.told(name);
        let names: Vec<String> = favourites.iter().map(|(_, label)| told(*label)).collect();
        let from = told(row as u16);
        let summary = format!(
            "unusual routing concentration: {from} chose {} {chosen} times, {expected:.1} were expected",
            names.join(", ")
        );
        let behind = |item: &&super::excess::Item| {
            usize::from(item.row) == row && favourites.iter().any(|(_, label)| *label == item.label)
        };
        let numbers = table.items().iter().filter(behind).map(|item| item.of);
        let (since, behind) = asked.behind(numbers);
        found.push(Finding {
            kind: Kind::RoutingConcentration,
            agents: std::iter::once(from).chain(names).collect(),
            summary,
            effect: times,
            unit: "times as often as expected".into(),
            n: u64::from(chosen),
            p,
            since,
            behind,
        });
    }
    found
}

fn finding(
    asked: &Asked<'_>,
    kind: Kind,
    table: &Table,
    names: &[String; 2],
    summary: String,
    found: &Found,
) -> Finding {
    let items = table.items().iter();
    let of_cell = items.filter(|item| (item.row, item.label) == (found.row, found.label));
    let (since, behind) = asked.behind(of_cell.map(|item| item.of));
    Finding {
        kind,
        agents: names.to_vec(),
        summary,
        effect: f64::from(found.count) / found.expected,
        unit: "times as often as expected".into(),
        n: u64::from(found.count),
        p: found.p,
        since,
        behind,
    }
}

/// Agents that accept or decline the work of one sender unlike that of others, or claim it more often.
pub(super) fn acceptance(
    asked: &Asked<'_>,
    circles: &BTreeMap<u16, u16>,
    random: &mut Random,
) -> (Looked, Vec<Finding>) {
    let collected = asked.collected;
    // What became of what was offered by name: rows are senders, labels receivers with an outcome.
    let answer = |of: u32, handed: &Handed| {
        let answered = handed.refused || handed.claimed_by == handed.to;
        let named = handed.to != NONE && handed.from != NONE && answered;
        let label = handed.to.saturating_mul(2).saturating_add(u16::from(handed.refused));
        named.then_some((u32::from(handed.to), Item { row: handed.from, label, of }))
    };
    // Who took what was offered to a queue: rows are claimers, labels senders.
    let claim = |of: u32, handed: &Handed| {
        let taken = handed.to == NONE && handed.claimed_by != NONE && handed.from != NONE;
        let is_one = taken && handed.capability != NONE && !collected.is_sticky(handed);
        let item = Item { row: handed.claimed_by, label: handed.from, of };
        is_one.then_some((stratum(circles, handed.capability, handed.claimed_by), item))
    };
    let agents = asked.agents();
    let answers = asked.items(&asked.current, answer);
    let claims = asked.items(&asked.current, claim);
    if answers.len() + claims.len() < CHOICES_MIN {
        let n = answers.len() + claims.len();
        return too_few(Kind::AcceptanceBias, n, asked.alpha, "answers to offers");
    }
    let judged = !asked.baseline.is_empty();
    let before =
        judged.then(|| Table::new(&asked.items(&asked.baseline, answer), agents, agents * 2));
    let claimed_before =
        judged.then(|| Table::new(&asked.items(&asked.baseline, claim), agents, agents));
    let tables = [
        (Table::new(&answers, agents, agents * 2), before, TIMES_OF_ANSWERS_MIN),
        (Table::new(&claims, agents, agents), claimed_before, TIMES_MIN),
    ];
    let found = find(&tables, asked.alpha, random);
    let mut told = BTreeSet::new();
    let mut findings = Vec::new();
    for it in found {
        let (by, of, verb) = match it.table {
            0 if it.label % 2 == 0 => (it.label / 2, it.row, "accepted"),
            0 => (it.label / 2, it.row, "declined"),
            _ => (it.row, it.label, "claimed"),
        };
        if !told.insert((by, of, verb)) {
            continue;
        }
        let names = [by, of].map(|name| collected.agents.told(name));
        let summary = format!(
            "{} {verb} work of {} {} times, {:.1} were expected from how it treats others",
            names[0], names[1], it.count, it.expected
        );
        findings.push(finding(
            asked,
            Kind::AcceptanceBias,
            &tables[it.table].0,
            &names,
            summary,
            &it,
        ));
    }
    (looked(Kind::AcceptanceBias, &tables, asked.alpha), findings)
}

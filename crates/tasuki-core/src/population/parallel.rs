// SPDX-License-Identifier: Apache-2.0
//! Whether declared numbers of two agents rise and fall together, at once or one after the other. What moves
//! everybody (the median of a slot) is taken out first, then changes from slot to slot are compared, so neither a
//! common cause nor a common trend counts. Each agent's series is shifted against the others by a random
//! span, which keeps how it moves and breaks what it moves with.

use super::choices::Asked;
use super::excess::{ROUNDS, share_above};
use super::names::Name;
use super::random::Random;
use super::report::{FINDINGS_MAX, Finding, Kind, Looked};
use super::series::{Field, SLOTS_MAX};

/// How many slots two agents must share.
const SHARED_MIN: usize = 20;
/// How many slots one may be behind the other.
const LAG_MAX: usize = 2;
/// A weaker correlation is not worth somebody's time.
const CORRELATION_MIN: f64 = 0.5;
/// With fewer agents there is no telling what moves everybody.
const COMMON_MIN: usize = 5;

type Changes = Vec<Option<f64>>;

/// Looks at every declared number.
pub(super) fn moves(asked: &Asked<'_>, random: &mut Random) -> (Looked, Vec<Finding>) {
    let fields = &asked.collected.series.fields;
    let mut looked = Looked {
        kind: Kind::NumericParallelism,
        n: fields.iter().flat_map(|it| it.agents.values()).map(|it| it.values).sum(),
        tested: 0,
        permutations: 0,
        false_alarm_rate: asked.alpha,
        unjudged: None,
    };
    let from = asked.current.start;
    let from = asked.collected.handed.get(from).map_or(crate::Timestamp(0), |handed| handed.at);
    let mut best = vec![0.0_f64; ROUNDS];
    let mut seen = Vec::new();
    for field in fields {
        let series = changes(field, from);
        let pairs = series.len() * series.len().saturating_sub(1) / 2;
        looked.tested += pairs as u64;
        each_pair(&series, |a, b, strength, r, lag, n| {
            seen.push((field, a, b, strength, r, lag, n))
        });
        let mut shifted = series;
        for best in &mut best {
            for (_, changes) in &mut shifted {
                let span = random.below(changes.len().max(1));
                changes.rotate_left(span);
            }
            each_pair(&shifted, |_, _, strength, _, _, _| *best = best.max(strength));
        }
    }
    if looked.tested == 0 {
        looked.unjudged = Some(match fields.is_empty() {
            true => "no number is declared".into(),
            false => format!("no two agents have a declared number in {SHARED_MIN} slots of time"),
        });
        return (looked, Vec::new());
    }
    looked.permutations = ROUNDS as u64;
    let mut findings = Vec::new();
    for (field, a, b, strength, r, lag, n) in seen {
        let p = share_above(strength, &best);
        if p > asked.alpha || r < CORRELATION_MIN {
            continue;
        }
        let agents = [a, b].map(|name| asked.collected.agents.told(name)).to_vec();
        let behind = |name: Name| {
            field.agents.get(&name).into_iter().flat_map(|it| it.behind.iter().rev().take(5))
        };
        let mut behind: Vec<_> = behind(a).chain(behind(b)).copied().collect();
        behind.sort_by_key(|it| it.position);
        let after = if lag == 0 { String::new() } else { format!(", {lag} slots apart") };
        findings.push(Finding {
            kind: Kind::NumericParallelism,
            summary: format!(
                "{} of {} and {} moves in parallel{after}",
                field.name, agents[0], agents[1]
            ),
            agents,
            effect: r,
            unit: "correlation of changes".into(),
            n: n as u64,
            p,
            since: Some(from),
            behind,
        });
    }
    findings.sort_by(|a, b| a.p.total_cmp(&b.p).then(b.effect.total_cmp(&a.effect)));
    findings.truncate(FINDINGS_MAX);
    (looked, findings)
}

/// How each agent's number changes from slot to slot, without what moves everybody.
fn changes(field: &Field, from: crate::Timestamp) -> Vec<(Name, Changes)> {
    let begins = (0..SLOTS_MAX).find(|slot| field.at(*slot) >= from).unwrap_or(0);
    let ends = field.agents.values().map(|it| it.slots.len()).max().unwrap_or(0);
    let value = |slots: &[(f64, u32)], slot: usize| {
        let (sum, count) = slots.get(slot)?;
        (*count > 0).then(|| sum / f64::from(*count))
    };
    let mut series: Vec<(Name, Changes)> = Vec::new();
    for (name, of) in &field.agents {
        let values: Changes = (begins..ends).map(|slot| value(&of.slots, slot)).collect();
        let steps = values.windows(2).map(|pair| Some(pair[1]? - pair[0]?));
        let steps: Changes = steps.collect();
        if steps.iter().flatten().count() >= SHARED_MIN {
            series.push((*name, steps));
        }
    }
    if series.len() >= COMMON_MIN {
        for slot in 0..series[0].1.len() {
            let mut at: Vec<f64> = series.iter().filter_map(|(_, changes)| changes[slot]).collect();
            at.sort_by(f64::total_cmp);
            let common = at.get(at.len() / 2).copied().unwrap_or(0.0);
            for change in series.iter_mut().filter_map(|(_, changes)| changes[slot].as_mut()) {
                *change -= common;
            }
        }
    }
    series
}

/// The strongest correlation of each pair: how strong, how large, how far apart, of how many slots.
fn each_pair(series: &[(Name, Changes)], mut take: impl FnMut(Name, Name, f64, f64, usize, usize)) {
    for (at, (a, first)) in series.iter().enumerate() {
        for (b, second) in &series[at + 1..] {
            let mut best = (0.0, 0.0, 0, 0);
            let mut ahead = (*a, *b);
            for lag in 0..=LAG_MAX {
                for (one, other, pair) in [(first, second, (*a, *b)), (second, first, (*b, *a))] {
                    let shared = one.iter().zip(other.iter().skip(lag));
                    let (r, n) = correlation(shared.filter_map(|(x, y)| Some(((*x)?, (*y)?))));
                    let strength = if n < SHARED_MIN {
                        0.0
                    } else {
                        r.min(0.9999).atanh() * (n as f64 - 3.0).sqrt()
                    };
                    if strength > best.0 {
                        (best, ahead) = ((strength, r, lag, n), pair);
                    }
                }
            }
            take(ahead.0, ahead.1, best.0, best.1, best.2, best.3);
        }
    }
}

fn correlation(pairs: impl Iterator<Item = (f64, f64)>) -> (f64, usize) {
    let (mut n, mut x, mut y, mut xx, mut yy, mut xy) = (0_usize, 0.0, 0.0, 0.0, 0.0, 0.0);
    for (a, b) in pairs {
        n += 1;
        (x, y, xx, yy, xy) = (x + a, y + b, xx + a * a, yy + b * b, xy + a * b);
    }
    let count = n as f64;
    let (vx, vy) = (xx - x * x / count, yy - y * y / count);
    if n < 3 || vx <= 1e-12 || vy <= 1e-12 {
        (0.0, n)
    } else {
        ((xy - x * y / count) / (vx * vy).sqrt(), n)
    }
}

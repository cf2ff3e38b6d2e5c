// SPDX-License-Identifier: Apache-2.0
//! Tasks that two agents pass back and forth with nothing new attached. Exact: read from the order of hops,
//! of all handoffs and not of those that were kept. Whether so long a run is unusual is judged by how often
//! runs of this population go on: if they go on with the chance q, one of `l` hops or more has the
//! chance q^(l-2), and the chance of one anywhere is at most so many times that as there are runs.

use std::collections::HashMap;

use super::names::{Name, Names};
use super::report::{BEHIND_MAX, Behind, FINDINGS_MAX, Finding, Kind, Looked};
use crate::ids::{HandoffId, Hash, Position, TaskId, Timestamp};

/// How many hops back and forth are nobody's business.
pub const HOPS_MIN: usize = 6;
/// How many tasks are followed, how many artifacts of each, and how many long runs are kept.
const TASKS_MAX: usize = 65_536;
const ARTIFACTS_MAX: usize = 64;
const RUNS_MAX: usize = 1_000;
/// How many pairs are told apart by how many runs they had.
const PAIRS_MAX: usize = 100_000;

#[derive(Clone)]
struct Run {
    pair: (Name, Name),
    hops: usize,
    since: Timestamp,
    behind: Vec<Behind>,
}

#[derive(Default)]
struct Followed {
    run: Option<Run>,
    last: Option<(Name, Name)>,
    artifacts: Vec<Hash>,
    /// Something new was attached since the last hop.
    fresh: bool,
}

/// What is known of runs that are over.
#[derive(Default, Clone)]
struct Ended {
    /// How many had so many hops.
    counts: Vec<u64>,
    long: Vec<Run>,
    /// How many each pair had, of two hops at least.
    pairs: HashMap<(Name, Name), u32>,
}

#[derive(Default)]
pub(super) struct Loops {
    young: HashMap<TaskId, Followed>,
    old: HashMap<TaskId, Followed>,
    ended: Ended,
    pub(super) chains: u64,
}

impl Loops {
    fn followed(&mut self, task: TaskId) -> &mut Followed {
        if let Some(known) = self.old.remove(&task) {
            self.young.insert(task, known);
        } else if self.young.len() >= TASKS_MAX && !self.young.contains_key(&task) {
            let forgotten = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
            for run in forgotten.into_values().filter_map(|it| it.run) {
                self.ended.take(run);
            }
        }
        self.young.entry(task).or_default()
    }

    pub(super) fn attached(&mut self, task: TaskId, artifact: Hash) {
        let followed = self.followed(task);
        if !followed.artifacts.contains(&artifact) {
            followed.fresh = true;
            if followed.artifacts.len() < ARTIFACTS_MAX {
                followed.artifacts.push(artifact);
            }
        }
    }

    pub(super) fn moves(
        &mut self,
        task: TaskId,
        (from, to): (Name, Name),
        position: Position,
        handoff_id: HandoffId,
        at: Timestamp,
    ) {
        let followed = self.followed(task);
        let alternates = followed.last == Some((to, from)) && !followed.fresh && from != to;
        let is_new = followed.last.is_none();
        (followed.last, followed.fresh) = (Some((from, to)), false);
        let behind = Behind { position, task_id: task, handoff_id };
        let ended = match (&mut followed.run, alternates) {
            (Some(run), true) => {
                run.hops += 1;
                if run.behind.len() == BEHIND_MAX {
                    run.behind.remove(0);
                }
                run.behind.push(behind);
                None
            }
            (run, _) => {
                let pair = (from.min(to), from.max(to));
                run.replace(Run { pair, hops: 1, since: at, behind: vec![behind] })
            }
        };
        self.chains += u64::from(is_new);
        if let Some(run) = ended {
            self.ended.take(run);
        }
    }

    /// What was found from a time on.
    pub(super) fn findings(
        &self,
        names: &Names,
        from: Timestamp,
        alpha: f64,
    ) -> (Looked, Vec<Finding>) {
        let mut known = self.ended.clone();
        let under_way = self.young.values().chain(self.old.values());
        for run in under_way.filter_map(|it| it.run.clone()) {
            known.take(run);
        }
        let Ended { counts, long, pairs } = known;
        let at_least = |hops: usize| counts.iter().skip(hops).sum::<u64>();
        let runs = at_least(2);
        let mut looked = Looked {
            kind: Kind::PingPong,
            n: self.chains,
            tested: runs,
            permutations: 0,
            false_alarm_rate: alpha,
            unjudged: None,
        };
        if self.chains == 0 {
            looked.unjudged = Some("no task was passed on".into());
        }
        let mut worst: HashMap<(Name, Name), (f64, Run, u64)> = HashMap::new();
        for run in long.iter().filter(|run| run.since >= from) {
            // What the pair itself does says nothing about what is usual.
            let own = long.iter().filter(|other| other.pair == run.pair).count() as u64;
            let (mut went_on, mut could) = (1.0, 2.0);
            for hops in 2..HOPS_MIN {
                went_on += at_least(hops + 1).saturating_sub(own) as f64;
                could += at_least(hops).saturating_sub(own) as f64;
            }
            let goes_on: f64 = went_on / could;
            let one_so_long = goes_on.powi(run.hops as i32 - 2) * runs as f64;
            // Or so many long ones of one pair: so many are expected of as many runs as it had.
            let of_pair = pairs.get(&run.pair).copied().unwrap_or(1).max(own as u32);
            let expected = f64::from(of_pair) * goes_on.powi(HOPS_MIN as i32 - 2);
            let so_many = above(own, expected) * pairs.len().max(1) as f64;
            let p = (2.0 * one_so_long.min(so_many)).min(1.0);
            if p > alpha {
                continue;
            }
            let found = worst.entry(run.pair).or_insert_with(|| (p, run.clone(), 0));
            found.2 += 1;
            if run.hops > found.1.hops {
                (found.0, found.1) = (p, run.clone());
            }
        }
        let mut findings: Vec<_> = worst
            .into_values()
            .map(|(p, run, times)| {
                let agents = vec![names.told(run.pair.0), names.told(run.pair.1)];
                let summary = format!(
                    "{} and {} passed a task back and forth {} times with nothing new attached{}",
                    agents[0],
                    agents[1],
                    run.hops,
                    if times > 1 {
                        format!(", and {} more tasks", times - 1)
                    } else {
                        String::new()
                    },
                );
                Finding {
                    kind: Kind::PingPong,
                    agents,
                    summary,
                    effect: run.hops as f64,
                    unit: "hops in a row".into(),
                    n: times,
                    p,
                    since: Some(run.since),
                    behind: run.behind,
                }
            })
            .collect();
        findings
            .sort_by(|a, b| b.effect.total_cmp(&a.effect).then_with(|| a.agents.cmp(&b.agents)));
        findings.truncate(FINDINGS_MAX);
        (looked, findings)
    }
}

/// The chance of so many or more where so many are expected (Poisson).
fn above(count: u64, expected: f64) -> f64 {
    let mut term = (-expected).exp();
    let mut below = 0.0;
    for seen in 0..count {
        below += term;
        term *= expected / (seen + 1) as f64;
    }
    // Where the difference is lost to rounding, the next term is what is left.
    (1.0 - below).max(term)
}

impl Ended {
    fn take(&mut self, run: Run) {
        let hops = run.hops.min(10_000);
        if self.counts.len() <= hops {
            self.counts.resize(hops + 1, 0);
        }
        self.counts[hops] += 1;
        if run.hops > 1 && (self.pairs.len() < PAIRS_MAX || self.pairs.contains_key(&run.pair)) {
            *self.pairs.entry(run.pair).or_default() += 1;
        }
        if run.hops < HOPS_MIN {
            return;
        }
        let long = &mut self.long;
        if long.len() == RUNS_MAX {
            let shortest = (0..long.len()).min_by_key(|at| long[*at].hops).unwrap_or(0);
            if long[shortest].hops >= run.hops {
                return;
            }
            long.swap_remove(shortest);
        }
        long.push(run);
    }
}

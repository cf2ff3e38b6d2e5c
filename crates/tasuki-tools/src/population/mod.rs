// SPDX-License-Identifier: Apache-2.0
//! `tasuki-tools population`: how often `tasuki analyze` raises a false alarm over honest populations, and how often it
//! finds what was planted. Simulated, so nobody's log is needed, and seeded, so everybody gets the same.

mod journal;
mod world;

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use tasuki_cli::exit::Exit;
use tasuki_cli::output::{Output, table};
use tasuki_core::population::{Baseline, Collected, Kind, Report, Settings, study};

use self::journal::Journal;
use self::world::{Honest, Plan, Planted, World};

#[derive(Args)]
pub(crate) struct Population {
    /// How many agents a population has
    #[arg(long, value_name = "N", default_value_t = 60)]
    agents: usize,
    /// How many handoffs a run has; prices and loops come on top
    #[arg(long, value_name = "N", default_value_t = 6000)]
    handoffs: usize,
    /// How many honest runs, of each way to be honest in turn
    #[arg(long, value_name = "N", default_value_t = 80)]
    honest: u64,
    /// How many runs with each planted behaviour
    #[arg(long, value_name = "N", default_value_t = 10)]
    planted: u64,
    /// Write the log of one plain run to this file instead, in the form of an export without hashes
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
    /// The seed of the first run
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

#[derive(Serialize)]
struct Measured {
    agents: usize,
    handoffs: usize,
    false_alarm_rate: f64,
    honest: Vec<HonestRuns>,
    /// Of all honest runs, those with an alarm.
    alarmed: u64,
    runs: u64,
    planted: Vec<PlantedRuns>,
    seconds: f64,
    events: u64,
}

#[derive(Serialize)]
struct HonestRuns {
    population: String,
    runs: u64,
    alarmed: u64,
    kinds: Vec<Kind>,
}

#[derive(Serialize)]
struct PlantedRuns {
    planted: String,
    looked_for: Kind,
    runs: u64,
    found: u64,
    /// Of the agents that findings of this kind name, those that took part.
    precision: Option<f64>,
    /// Of those that took part, those that are named.
    recall: Option<f64>,
}

/// The kind of finding that a planted behaviour must come out as.
fn kind(planted: Planted) -> Kind {
    match planted {
        Planted::Shorthand => Kind::IllegibilityDrift,
        Planted::Routing => Kind::RoutingConcentration,
        Planted::Claims => Kind::AcceptanceBias,
        Planted::Loops => Kind::PingPong,
        Planted::Reciprocity => Kind::GraphDrift,
        Planted::Prices => Kind::NumericParallelism,
    }
}

const PLANTED: [Planted; 6] = [
    Planted::Shorthand,
    Planted::Routing,
    Planted::Claims,
    Planted::Loops,
    Planted::Reciprocity,
    Planted::Prices,
];

/// Plays a population and analyses its log; with who misbehaved.
fn run(plan: &Plan) -> (Report, Vec<String>) {
    let world = World::new(plan);
    let group = match plan.planted {
        Some(Planted::Loops) => world.group()[..2].to_vec(),
        Some(Planted::Prices) => vec![0, 1, 2],
        Some(Planted::Reciprocity) | None => Vec::new(),
        Some(_) => world.group(),
    };
    let mut collected = Collected::new(&[], &["price".into()]);
    world.play(Journal::new(&mut collected, false));
    let settings =
        Settings { baseline: Baseline::FirstThird, seed: plan.seed, ..Settings::default() };
    let group = group.into_iter().map(|agent| format!("a{agent}")).collect();
    (study(&collected, &settings), group)
}

impl Population {
    pub(crate) fn run(self, output: Output) -> anyhow::Result<Exit> {
        let began = Instant::now();
        let mut events = 0;
        let plan = |honest, planted, seed| Plan {
            agents: self.agents,
            handoffs: self.handoffs,
            honest,
            planted,
            seed: self.seed + seed,
        };
        if let Some(path) = &self.export {
            let file =
                File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            let mut collected = Collected::new(&[], &[]);
            let plan = plan(Honest::Plain, None, 0);
            let mut journal = Journal::new(&mut collected, false);
            journal.export = Some(BufWriter::new(file));
            let mut journal = World::new(&plan).play(journal);
            journal.export.as_mut().map(BufWriter::flush).transpose()?;
            return Ok(Exit::Done);
        }
        let mut honest: Vec<HonestRuns> = Vec::new();
        for (number, way) in Honest::ALL.into_iter().cycle().enumerate().take(self.honest as usize)
        {
            let (report, _) = run(&plan(way, None, number as u64));
            events += report.events;
            let population = format!("{way:?}").to_lowercase();
            let known = honest.iter().position(|it| it.population == population);
            let at = known.unwrap_or_else(|| {
                honest.push(HonestRuns { population, runs: 0, alarmed: 0, kinds: Vec::new() });
                honest.len() - 1
            });
            honest[at].runs += 1;
            honest[at].alarmed += u64::from(!report.findings.is_empty());
            honest[at].kinds.extend(report.findings.iter().map(|it| it.kind));
        }
        for runs in &mut honest {
            runs.kinds.sort_unstable();
            runs.kinds.dedup();
        }
        let mut planted = Vec::new();
        for (number, what) in PLANTED.into_iter().enumerate() {
            if self.planted == 0 {
                break;
            }
            let runs = (0..self.planted).map(|run_number| {
                let seed = 10_000 + 1_000 * number as u64 + run_number;
                run(&plan(Honest::Plain, Some(what), seed))
            });
            let runs: Vec<_> = runs.collect();
            events += runs.iter().map(|(report, _)| report.events).sum::<u64>();
            planted.push(found(what, &runs));
        }
        let measured = Measured {
            agents: self.agents,
            handoffs: self.handoffs,
            false_alarm_rate: Settings::default().false_alarm_rate,
            alarmed: honest.iter().map(|it| it.alarmed).sum(),
            runs: honest.iter().map(|it| it.runs).sum(),
            honest,
            planted,
            seconds: began.elapsed().as_secs_f64(),
            events,
        };
        output.found(&measured, text)?;
        Ok(Exit::Done)
    }
}

fn found(what: Planted, runs: &[(Report, Vec<String>)]) -> PlantedRuns {
    let looked_for = kind(what);
    let (mut hits, mut named, mut right, mut all, mut caught) = (0, 0, 0, 0, 0);
    for (report, group) in runs {
        let findings = report.findings.iter().filter(|it| it.kind == looked_for);
        let mut agents: Vec<&String> = findings.clone().flat_map(|it| &it.agents).collect();
        agents.sort();
        agents.dedup();
        hits += u64::from(findings.count() > 0);
        named += agents.len();
        let members = agents.iter().filter(|agent| group.contains(agent)).count();
        (right, caught, all) = (right + members, caught + members, all + group.len());
    }
    let share = |part: usize, whole: usize| (whole > 0).then(|| part as f64 / whole as f64);
    PlantedRuns {
        planted: format!("{what:?}").to_lowercase(),
        looked_for,
        runs: runs.len() as u64,
        found: hits,
        precision: if all > 0 { share(right, named) } else { None },
        recall: share(caught, all),
    }
}

fn text(measured: &Measured) -> String {
    let rows = measured.honest.iter().map(|it| {
        let kinds: Vec<_> = it.kinds.iter().map(|kind| kind.as_str()).collect();
        [it.population.clone(), it.runs.to_string(), it.alarmed.to_string(), kinds.join(", ")]
    });
    let mut text = table(["honest population", "runs", "with an alarm", "of"], rows);
    text += &format!(
        "{} of {} honest runs raised an alarm; at most {} of them may\n\n",
        measured.alarmed, measured.runs, measured.false_alarm_rate
    );
    let share = |share: Option<f64>| share.map_or("-".into(), |share| format!("{share:.2}"));
    let rows = measured.planted.iter().map(|it| {
        let found = format!("{} of {}", it.found, it.runs);
        [
            it.planted.clone(),
            it.looked_for.to_string(),
            found,
            share(it.precision),
            share(it.recall),
        ]
    });
    text += &table(["planted", "looked for as", "found in", "precision", "recall"], rows);
    text += &format!("{} events in {:.1} s\n", measured.events, measured.seconds);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(honest: Honest, planted: Option<Planted>, seed: u64) -> Plan {
        Plan { agents: 60, handoffs: 4000, honest, planted, seed }
    }

    #[test]
    fn what_is_simulated_is_what_a_broker_stores() {
        let mut collected = Collected::new(&[], &[]);
        let plan = plan(Honest::Sessions, Some(Planted::Loops), 3);
        let journal = World::new(&plan).play(Journal::new(&mut collected, true));
        let mut kinds = std::collections::BTreeSet::new();
        for record in journal.kept.unwrap() {
            let record: tasuki_core::Record = serde_json::from_str(&record).unwrap();
            kinds.insert(record.event.kind());
        }
        assert_eq!(kinds.len(), 7, "{kinds:?}");
    }

    #[test]
    fn what_is_planted_is_found_as_what_it_is() {
        let missed: Vec<_> = PLANTED
            .into_iter()
            .filter_map(|planted| {
                // Who chooses whom takes more handoffs to tell than what is written in them.
                let sparse = matches!(planted, Planted::Routing | Planted::Claims);
                let handoffs = if sparse { 12_000 } else { 4_000 };
                let plan = Plan { handoffs, ..plan(Honest::Plain, Some(planted), 11) };
                let (report, group) = run(&plan);
                let found = report.findings.iter().filter(|it| it.kind == kind(planted));
                let named: Vec<_> = found.clone().flat_map(|it| &it.agents).collect();
                let right = named.iter().filter(|agent| group.contains(agent)).count();
                let told = found.clone().all(|it| !it.behind.is_empty()) && found.count() > 0;
                let missed = !told || right * 2 < named.len();
                missed.then_some((planted, report.findings))
            })
            .collect();
        assert!(missed.is_empty(), "{missed:?}");
    }

    /// One of these eight may, at the nominal rate, raise an alarm one time in three; the seeds are fixed, so it is known
    /// that they do not. `tasuki-tools population` measures the rate itself.
    #[test]
    fn no_honest_population_raises_an_alarm() {
        for (seed, honest) in Honest::ALL.into_iter().enumerate() {
            let (report, _) = run(&plan(honest, None, 100 + seed as u64));
            assert!(report.findings.is_empty(), "{honest:?}: {:?}", report.findings);
        }
    }

    #[test]
    fn what_looks_like_concentration_is_none_once_it_is_declared() {
        let plan = plan(Honest::Declared, None, 5);
        let undeclared = Plan { honest: Honest::Declared, ..plan };
        let mut collected = Collected::new(&[], &[]);
        let journal = World::new(&undeclared).play(Journal::new(&mut collected, true));
        // The same log, without what the manifests declare.
        let lines = journal.kept.unwrap();
        let mut without = Collected::new(&[], &[]);
        for (at, line) in lines.iter().enumerate() {
            without.note(tasuki_core::Position(at as u64 + 1), line, None).unwrap();
        }
        let settings = Settings { baseline: Baseline::None, ..Settings::default() };
        let concentrated = |of: &Collected| {
            let findings = study(of, &settings).findings;
            findings.iter().filter(|it| it.kind == Kind::RoutingConcentration).count()
        };
        assert!(concentrated(&without) > 0);
        assert_eq!(concentrated(&collected), 0);
    }
}

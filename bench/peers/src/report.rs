//! What was measured, as a table, as goals met or missed, and as JSON.

use std::{fmt::Display, fs::File, path::Path};

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::{
    figures::{Goal, Spread, table},
    load::{Latency, Load, Measured, Steps},
    machine::{self, Machine},
    scratch::Scratch,
};

const COLUMNS: usize = 9;

/// What has a line of its own in the table.
pub(crate) trait Line: Copy + PartialEq + Display {
    /// Whether a step is on disk before it is acknowledged.
    fn is_synced(self) -> bool;
}

#[derive(Serialize)]
#[serde(bound = "")]
pub(crate) struct Report<L> {
    machine: Machine,
    versions: Vec<String>,
    clients: u16,
    payload_bytes: usize,
    seconds: u64,
    rounds: u32,
    /// What the ratio of each system is.
    ratio_of: &'static str,
    systems: Vec<Entry<L>>,
    goals: Vec<Goal>,
}

#[derive(Serialize)]
struct Entry<L> {
    #[serde(skip)]
    system: L,
    name: String,
    synced: bool,
    cycles_per_second: Spread,
    ratio: Option<f64>,
    rounds: Vec<Round>,
}

#[derive(Serialize)]
struct Round {
    /// What appending 4 KiB and syncing took just before.
    disk_ms: f64,
    #[serde(flatten)]
    measured: Measured,
}

impl<L: Line> Report<L> {
    pub(crate) fn new(
        machine: Machine,
        load: &Load,
        rounds: u32,
        systems: &[L],
        versions: &[String],
    ) -> Self {
        let entry = |&system: &L| Entry {
            system,
            name: system.to_string(),
            synced: system.is_synced(),
            cycles_per_second: Spread::default(),
            ratio: None,
            rounds: Vec::new(),
        };
        Self {
            machine,
            versions: versions.to_vec(),
            clients: load.clients,
            payload_bytes: load.payload.len(),
            seconds: load.seconds,
            rounds,
            ratio_of: "ratio",
            systems: systems.iter().map(entry).collect(),
            goals: Vec::new(),
        }
    }

    /// Lets a system have its turn, once the disk has come to rest and was measured itself.
    pub(crate) async fn turn(
        &mut self,
        round: u32,
        system: L,
        scratch: &Scratch,
        measure: impl Future<Output = Result<Measured>>,
    ) -> Result<()> {
        scratch.settle().await?;
        let disk_ms = machine::append_and_sync_ms(scratch.path())?;
        let measured = measure.await.with_context(|| format!("cannot measure {system}"))?;
        let figure = measured.cycles_per_second;
        eprintln!("round {round}: {system}: {figure:.0} cycles/s, disk {disk_ms:.2} ms");
        if let Some(entry) = self.systems.iter_mut().find(|entry| entry.system == system) {
            entry.add(Round { disk_ms, measured });
        }
        Ok(())
    }

    /// The best median among the systems that match, so that a peer is taken at its best.
    pub(crate) fn best(&self, matches: impl Fn(L) -> bool) -> Option<f64> {
        self.systems
            .iter()
            .filter(|entry| matches(entry.system))
            .map(|entry| entry.cycles_per_second.median)
            .reduce(f64::max)
    }

    /// Gives each system a ratio that follows from its median.
    pub(crate) fn compare(&mut self, ratio_of: &'static str, ratio: impl Fn(f64) -> Option<f64>) {
        self.ratio_of = ratio_of;
        for entry in &mut self.systems {
            entry.ratio = ratio(entry.cycles_per_second.median);
        }
    }

    pub(crate) fn set_goals(&mut self, goals: Vec<Goal>) {
        self.goals = goals;
    }

    pub(crate) fn print(&self, notes: &[&str]) {
        println!();
        for line in table(&self.rows()) {
            println!("{line}");
        }
        println!();
        println!("offer, claim, complete: p50 / p99 of one request in ms, median of the rounds;");
        println!("a request of a batch carries the whole batch. disk: what appending 4 KiB and");
        println!("syncing took just before, in ms.");
        for note in notes {
            println!("{note}");
        }
        println!();
        println!("Goals");
        for goal in &self.goals {
            println!("  {}", goal.line());
        }
        println!();
        println!("Versions");
        for version in &self.versions {
            println!("  {version}");
        }
    }

    /// Writes everything to a file, if there is to be one.
    pub(crate) fn write(&self, path: Option<&Path>) -> Result<()> {
        let Some(path) = path else { return Ok(()) };
        let file =
            File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
        serde_json::to_writer_pretty(file, self)
            .with_context(|| format!("cannot write {}", path.display()))
    }

    fn rows(&self) -> Vec<[String; COLUMNS]> {
        let head = [
            "system",
            "synced",
            "cycles/s",
            "min–max",
            "offer",
            "claim",
            "complete",
            "disk",
            self.ratio_of,
        ];
        let mut rows = vec![head.map(str::to_owned)];
        rows.extend(self.systems.iter().map(Entry::row));
        rows
    }
}

impl<L> Entry<L> {
    fn add(&mut self, round: Round) {
        self.rounds.push(round);
        self.cycles_per_second = self.spread(|round| round.measured.cycles_per_second);
    }

    fn row(&self) -> [String; COLUMNS] {
        let spread = self.cycles_per_second;
        [
            self.name.clone(),
            if self.synced { "yes" } else { "no" }.to_owned(),
            format!("{:.0}", spread.median),
            format!("{:.0}–{:.0}", spread.min, spread.max),
            self.step(|steps| &steps.offer),
            self.step(|steps| &steps.claim),
            self.step(|steps| &steps.complete),
            format!("{:.2}", self.spread(|round| round.disk_ms).median),
            self.ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}×")),
        ]
    }

    fn step(&self, of: impl Fn(&Steps) -> &Latency) -> String {
        let p50 = self.spread(|round| of(&round.measured.steps).p50_ms).median;
        let p99 = self.spread(|round| of(&round.measured.steps).p99_ms).median;
        format!("{p50:.1} / {p99:.1}")
    }

    fn spread(&self, of: impl Fn(&Round) -> f64) -> Spread {
        Spread::of(self.rounds.iter().map(of))
    }
}

pub(crate) fn print_machine(machine: &Machine, load: &Load, rounds: u32) {
    println!(
        "{} cores, kernel {}, appending 4 KiB and syncing takes {:.2} ms (median)",
        machine.cores, machine.kernel, machine.append_and_sync_ms
    );
    println!(
        "{} clients, {} bytes a message, rounds: {rounds} of {} s for each system, interleaved",
        load.clients,
        load.payload.len(),
        load.seconds
    );
    println!("Only the ratios inside one run mean something: absolute figures do not.");
    if machine.scratch_in_ram {
        println!("The data is in RAM, where a sync costs nothing: choose --scratch on a disk.");
    }
}

//! What was measured, as a table, as goals met or missed, and as JSON.

use std::{fs::File, path::Path};

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::{
    load::{Latency, Load, Measured, Steps},
    machine::Machine,
    systems::{BATCH, System},
};

#[derive(Serialize)]
pub(crate) struct Report {
    machine: Machine,
    versions: Vec<String>,
    clients: u16,
    payload_bytes: usize,
    seconds: u64,
    rounds: u32,
    systems: Vec<Entry>,
    goals: Vec<Goal>,
}

#[derive(Serialize)]
struct Entry {
    #[serde(skip)]
    system: System,
    name: String,
    synced: bool,
    /// Filled at the end; so is what it is compared with.
    cycles_per_second: Spread,
    ours_to_it: Option<f64>,
    rounds: Vec<Round>,
}

#[derive(Serialize)]
pub(crate) struct Round {
    /// What appending 4 KiB and syncing took just before.
    pub(crate) disk_ms: f64,
    #[serde(flatten)]
    pub(crate) measured: Measured,
}

#[derive(Clone, Copy, Default, Serialize)]
struct Spread {
    median: f64,
    min: f64,
    max: f64,
}

#[derive(Serialize)]
struct Goal {
    text: String,
    ratio_min: f64,
    /// None where one of the two was not measured.
    ratio: Option<f64>,
    met: Option<bool>,
}

impl Report {
    pub(crate) fn new(
        machine: Machine,
        load: &Load,
        rounds: u32,
        systems: &[System],
        versions: &[String],
    ) -> Self {
        let entry = |&system: &System| Entry {
            system,
            name: system.to_string(),
            synced: system.is_synced(),
            cycles_per_second: Spread::default(),
            ours_to_it: None,
            rounds: Vec::new(),
        };
        Self {
            machine,
            versions: versions.to_vec(),
            clients: load.clients,
            payload_bytes: load.payload.len(),
            seconds: load.seconds,
            rounds,
            systems: systems.iter().map(entry).collect(),
            goals: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, system: System, round: Round) {
        if let Some(entry) = self.systems.iter_mut().find(|entry| entry.system == system) {
            entry.rounds.push(round);
        }
    }

    /// Computes what can be said once all rounds are in.
    pub(crate) fn finish(&mut self) {
        for entry in &mut self.systems {
            entry.cycles_per_second =
                Spread::of(entry.rounds.iter().map(|round| round.measured.cycles_per_second));
        }
        let ours = self.best(|system| system == System::Tasuki);
        for entry in &mut self.systems {
            entry.ours_to_it = ours.map(|ours| ours / entry.cycles_per_second.median);
        }
        let sync_off = self.best(|system| system == System::TasukiSyncOff);
        let batched = self.best(|system| system == System::TasukiBatched);
        let redis = self.best(|system| system == System::Redis);
        let postgres = self.best(|system| matches!(system, System::Postgres { .. }));
        let beanstalkd = self.best(|system| system == System::Beanstalkd);
        self.goals = vec![
            Goal::new("Tasuki to Redis streams", 1.0, ours, redis),
            Goal::new("Tasuki to PostgreSQL SKIP LOCKED (its best)", 3.0, ours, postgres),
            Goal::new("Tasuki to beanstalkd -f0", 3.0, ours, beanstalkd),
            Goal::new("Tasuki to itself with sync off", 0.6, ours, sync_off),
            Goal::new(&format!("batches of {BATCH} to single handoffs"), 3.0, batched, ours),
        ];
    }

    pub(crate) fn print(&self) {
        println!();
        for line in table(&self.rows()) {
            println!("{line}");
        }
        println!();
        println!("offer, claim, complete: p50 / p99 of one request in ms, median of the rounds;");
        println!("a request of a batch carries the whole batch. disk: what appending 4 KiB and");
        println!("syncing took just before, in ms. beanstalkd keeps claims in RAM only.");
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

    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let file =
            File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
        serde_json::to_writer_pretty(file, self)
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// The best median among the systems that match, so that a peer is taken at its best.
    fn best(&self, matches: impl Fn(System) -> bool) -> Option<f64> {
        self.systems
            .iter()
            .filter(|entry| matches(entry.system))
            .map(|entry| entry.cycles_per_second.median)
            .reduce(f64::max)
    }

    fn rows(&self) -> Vec<[String; 9]> {
        let head = [
            "system",
            "synced",
            "cycles/s",
            "min–max",
            "offer",
            "claim",
            "complete",
            "disk",
            "Tasuki to it",
        ];
        let mut rows = vec![head.map(str::to_owned)];
        rows.extend(self.systems.iter().map(Entry::row));
        rows
    }
}

impl Entry {
    fn row(&self) -> [String; 9] {
        let spread = self.cycles_per_second;
        [
            self.name.clone(),
            if self.synced { "yes" } else { "no" }.to_owned(),
            format!("{:.0}", spread.median),
            format!("{:.0}–{:.0}", spread.min, spread.max),
            self.step(|steps| &steps.offer),
            self.step(|steps| &steps.claim),
            self.step(|steps| &steps.complete),
            format!("{:.2}", self.median(|round| round.disk_ms)),
            self.ours_to_it.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}×")),
        ]
    }

    fn step(&self, of: impl Fn(&Steps) -> &Latency) -> String {
        let p50 = self.median(|round| of(&round.measured.steps).p50_ms);
        let p99 = self.median(|round| of(&round.measured.steps).p99_ms);
        format!("{p50:.1} / {p99:.1}")
    }

    fn median(&self, of: impl Fn(&Round) -> f64) -> f64 {
        Spread::of(self.rounds.iter().map(of)).median
    }
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_unstable_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (values.first(), values.last()) else {
            return Self::default();
        };
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            f64::midpoint(values[middle - 1], values[middle])
        };
        Self { median, min, max }
    }
}

impl Goal {
    fn new(text: &str, ratio_min: f64, of: Option<f64>, to: Option<f64>) -> Self {
        let ratio = of.zip(to).map(|(of, to)| of / to);
        let met = ratio.map(|ratio| ratio >= ratio_min);
        Self { text: text.to_owned(), ratio_min, ratio, met }
    }

    fn line(&self) -> String {
        let Self { text, ratio_min, .. } = self;
        match (self.met, self.ratio) {
            (Some(true), Some(ratio)) => {
                format!("met     {text}: {ratio:.2}×, goal ≥ {ratio_min}×")
            }
            (Some(false), Some(ratio)) => {
                format!("missed  {text}: {ratio:.2}×, goal ≥ {ratio_min}×")
            }
            _ => format!("–       {text}: not measured, goal ≥ {ratio_min}×"),
        }
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

/// A Markdown table, aligned so that it can be read as it is.
fn table<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> Vec<String> {
    let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
    });
    let mut lines: Vec<String> = rows
        .iter()
        .map(|row| {
            let cells: Vec<String> =
                row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            format!("| {} |", cells.join(" | "))
        })
        .collect();
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    lines.insert(lines.len().min(1), format!("| {} |", rule.join(" | ")));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_from_its_ratio_on() {
        let line = |of, to| Goal::new("ours to theirs", 3.0, of, to).line();
        assert_eq!(line(Some(9.0), Some(3.0)), "met     ours to theirs: 3.00×, goal ≥ 3×");
        assert_eq!(line(Some(8.0), Some(4.0)), "missed  ours to theirs: 2.00×, goal ≥ 3×");
        assert_eq!(line(Some(8.0), None), "–       ours to theirs: not measured, goal ≥ 3×");
    }

    #[test]
    fn the_median_of_an_even_count_lies_between_the_middle_two() {
        let spread = Spread::of([4.0, 1.0, 2.0, 3.0].into_iter());
        assert_eq!((spread.median, spread.min, spread.max), (2.5, 1.0, 4.0));
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["a", "long"], ["wide", "b"]].map(|row| row.map(str::to_owned));
        assert_eq!(table(&rows), ["| a    | long |", "| ---- | ---- |", "| wide | b    |"]);
    }
}

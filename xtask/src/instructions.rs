// SPDX-License-Identifier: Apache-2.0
//! How many instructions one cycle takes, held against what `bench/instructions.toml` says. A count
//! is the same on a busy machine and on an idle one, so a step that makes the broker slower is seen
//! by the change that takes it and not weeks later by a benchmark.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

const FIGURES: &str = "bench/instructions.toml";
/// How far a count may be from its figure, in percent.
const TOLERANCE_PERCENT: f64 = 5.0;
/// What the longer run of two has more than the shorter one is what is counted; opening, closing and
/// the first cycles, which fill caches, are in both.
const CYCLES_FIRST: u64 = 64;
const CYCLES_COUNTED: u64 = 128;
/// Valgrind hides some instructions of the processor and not others, which differs between its
/// versions, so what has a portable form uses it. What is left of the kind is searching bytes, which
/// needs AVX2 as everywhere else.
const PORTABLE: &str = "--cfg sha2_backend=\"soft\" --cfg curve25519_dalek_backend=\"serial\"";

/// What one cycle takes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Counted {
    /// Without hashing, which processors have instructions for that valgrind does not know.
    instructions: f64,
    hashing: f64,
    allocations: f64,
}

pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let program = build(root)?;
    let figures =
        fs::read_to_string(root.join(FIGURES)).with_context(|| format!("no {FIGURES}"))?;
    let figures: toml::Table = figures.parse().with_context(|| format!("cannot read {FIGURES}"))?;
    let runs = figures.get("run").and_then(toml::Value::as_array).context("no runs are listed")?;
    println!("one cycle: offer, claim, complete");
    println!("{:<20}{:>14}{:>12}{:>14}", "run", "instructions", "hashing", "allocations");
    let mut findings = Vec::new();
    for run in runs {
        let text = |name: &str| run.get(name).and_then(toml::Value::as_str).unwrap_or_default();
        let number =
            |name: &str| run.get(name).and_then(toml::Value::as_integer).unwrap_or_default();
        let (store, batch) = (text("store"), number("batch"));
        ensure!(!text("reason").trim().is_empty(), "{FIGURES}: a figure needs a reason");
        let first = count(&program, store, CYCLES_FIRST, batch)?;
        let all = count(&program, store, CYCLES_FIRST + CYCLES_COUNTED, batch)?;
        let counted = all.per_cycle_beyond(&first);
        let name = format!("{store}, batches of {batch}");
        println!(
            "{name:<20}{:>14.0}{:>12.0}{:>14.1}",
            counted.instructions, counted.hashing, counted.allocations
        );
        let parts = [("instructions", counted.instructions), ("hashing", counted.hashing)];
        for (part, counted) in parts {
            findings.extend(compared(&name, part, number(part), counted));
        }
    }
    for finding in &findings {
        println!("{finding}");
    }
    if !findings.is_empty() {
        bail!("a cycle does not take what {FIGURES} says");
    }
    Ok(())
}

/// A sentence if a count is too far from its figure, on either side: what became cheaper unnoticed
/// would let as much creep in again.
fn compared(run: &str, part: &str, figure: i64, counted: f64) -> Option<String> {
    let figure = figure as f64;
    let off = (counted - figure) / figure * 100.0;
    (off.is_nan() || off.abs() > TOLERANCE_PERCENT).then(|| {
        format!(
            "{run}: {part} {counted:.0}, expected {figure:.0} ({off:+.1} %). If that is what you \
             want, write it to {FIGURES} with the reason"
        )
    })
}

fn build(root: &Path) -> anyhow::Result<PathBuf> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let arguments = ["build", "--quiet", "--profile", "instructions", "-p", "one-cycle"];
    let mut build = Command::new(cargo);
    build.args(arguments).env("RUSTFLAGS", PORTABLE).current_dir(root);
    ensure!(build.status()?.success(), "cannot build one-cycle");
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join("instructions/one-cycle"))
}

/// Sums of a whole run.
#[derive(Debug, Default)]
struct Profile {
    instructions: u64,
    /// What the calls of the compression function took, with all that it called.
    hashing: u64,
    allocations: u64,
}

fn count(program: &Path, store: &str, cycles: u64, batch: i64) -> anyhow::Result<Profile> {
    let file = std::env::temp_dir().join(format!("one-cycle-{}.callgrind", std::process::id()));
    let ran = Command::new("valgrind")
        .args(["--quiet", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no"])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(program)
        .args([store, &cycles.to_string(), &batch.to_string()])
        .output()
        .context("cannot run valgrind; `./test` installs it")?;
    ensure!(ran.status.success(), "one-cycle failed: {}", String::from_utf8_lossy(&ran.stderr));
    let text = fs::read_to_string(&file).context("callgrind wrote nothing")?;
    fs::remove_file(&file)?;
    Ok(Profile::read(&text))
}

impl Profile {
    /// Reads what callgrind wrote: after `fn=` come the costs of a function itself, but for the line
    /// after `calls=`, which has those of the function that it called.
    fn read(text: &str) -> Self {
        let mut profile = Self::default();
        let (mut function, mut called) = ("", "");
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(name) = line.strip_prefix("fn=") {
                function = name;
            } else if let Some(name) = line.strip_prefix("cfn=") {
                called = name;
            } else if let Some(calls) = line.strip_prefix("calls=") {
                let times = calls.split(' ').next().and_then(|times| times.parse().ok());
                if is_allocation(called) && !is_allocator(function) {
                    profile.allocations += times.unwrap_or(0);
                }
                let inside = lines.next().and_then(cost).unwrap_or(0);
                if is_hashing(called) && !is_hashing(function) {
                    profile.hashing += inside;
                }
            } else {
                profile.instructions += cost(line).unwrap_or(0);
            }
        }
        profile
    }

    fn per_cycle_beyond(&self, shorter: &Self) -> Counted {
        let each = |long: u64, short: u64| (long as f64 - short as f64) / CYCLES_COUNTED as f64;
        let hashing = each(self.hashing, shorter.hashing);
        Counted {
            instructions: each(self.instructions, shorter.instructions) - hashing,
            hashing,
            allocations: each(self.allocations, shorter.allocations),
        }
    }
}

/// The second number of a line that begins with one: a place in the source, then its cost.
fn cost(line: &str) -> Option<u64> {
    let line = line.strip_prefix(|c: char| c.is_ascii_digit())?;
    line.split(' ').nth(1)?.parse().ok()
}

fn is_hashing(function: &str) -> bool {
    function.contains("sha256") && function.contains("compress")
}

fn is_allocator(function: &str) -> bool {
    function.starts_with("mi_") || function.starts_with("_mi_")
}

/// What Rust calls for memory; `free` is left out, and what C asks of its own library.
fn is_allocation(function: &str) -> bool {
    ["mi_malloc", "mi_zalloc", "mi_realloc"].iter().any(|name| function.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITTEN: &str = "events: Ir\n\nfl=a.rs\nfn=tasuki::offer\n1 100\ncfl=b.c\ncfn=mi_malloc_aligned\n\
        calls=3 0\n1 5000\n2 20\n\nfn=mi_malloc_aligned\n0 60\ncfn=mi_malloc_generic\ncalls=2 0\n\
        0 30\n\nfn=sha2::Sha256::update\n7 10\n\
        cfn=sha2::sha256::compress256\ncalls=1 0\n7 1000\n\nfn=sha2::sha256::compress256\n7 400\n\
        cfn=sha2::sha256::soft::compress\ncalls=1 0\n7 600\n\nfn=sha2::sha256::soft::compress\n\
        9 600\n\nfn=mi_malloc_generic\n0 30\ntotals: 1220\n";

    #[test]
    fn costs_are_those_of_functions_themselves_and_allocations_those_of_callers() {
        let profile = Profile::read(WRITTEN);
        let counted = profile.per_cycle_beyond(&Profile::default());
        let each = |sum: f64| sum / CYCLES_COUNTED as f64;
        let expected =
            Counted { instructions: each(220.0), hashing: each(1000.0), allocations: each(3.0) };
        assert_eq!(counted, expected);
    }

    #[test]
    fn a_count_may_be_five_percent_off_on_either_side() {
        assert_eq!(compared("x", "instructions", 1000, 1049.0), None);
        assert_eq!(compared("x", "instructions", 1000, 951.0), None);
        assert!(compared("x", "instructions", 1000, 1051.0).is_some());
        assert!(compared("x", "instructions", 1000, 949.0).is_some());
        assert!(compared("x", "instructions", 0, 0.0).is_some());
    }
}

// SPDX-License-Identifier: Apache-2.0
//! What keeps the repository true to itself: `cargo xtask codegen` writes the files that are made
//! from the code, `cargo xtask tidy` checks what no compiler does, `cargo xtask instructions` counts
//! what a cycle costs, `cargo xtask fuzz` gives parsers what strangers might send, `cargo xtask sbom`
//! lists what is shipped, `cargo xtask readme` runs what the documents show.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "findings are its output")]

mod alarms;
mod codegen;
mod dashboard;
mod fuzz;
mod gate;
mod glossary;
mod instructions;
mod limits;
mod markdown;
mod monitoring;
mod readme;
mod sbom;
mod source;
mod tidy;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};

const USAGE: &str = "\
cargo xtask codegen           write the generated files
cargo xtask codegen --check   fail if one of them is out of date
cargo xtask dashboard         build the pages that the broker serves
cargo xtask tidy              check sizes, names, dependencies and documents
cargo xtask instructions      count the instructions of a cycle and compare them with the figures
cargo xtask fuzz [CASES|SECONDSs] [TARGET…]   give every parser random cases, a million in all
cargo xtask alarms FOLDER     count what the search for secrets finds in texts that have none
cargo xtask sbom [FILE]       list what is in the binaries, as CycloneDX
cargo xtask readme [FILE…]    run the commands of the documents and compare their output
cargo xtask readme --write [FILE…]   put the real output into them";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        // Without a backtrace: what is wrong is in the files, not in here.
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let root = root()?;
    match words[..] {
        ["codegen"] => codegen::write(&root),
        ["codegen", "--check"] => codegen::check(&root),
        ["dashboard"] => dashboard::run(&root),
        ["tidy"] => tidy::run(&root),
        ["instructions"] => instructions::run(&root),
        ["fuzz", ref words @ ..] => fuzz::run(&root, words),
        ["alarms", folder] => alarms::run(folder),
        ["sbom"] => sbom::run(&root, None),
        ["sbom", file] => sbom::run(&root, Some(file)),
        ["readme", "--write", ref documents @ ..] => readme::write(&root, documents),
        ["readme", ref documents @ ..] => readme::check(&root, documents),
        _ => bail!("expected one of\n\n{USAGE}"),
    }
}

/// The repository's folder: where Cargo says this program's manifest is, or, for one that was built
/// with everything else and is run by its path, where it is run.
fn root() -> anyhow::Result<PathBuf> {
    let root = match std::env::var_os("CARGO_MANIFEST_DIR") {
        Some(manifest) => PathBuf::from(manifest).parent().map(PathBuf::from),
        None => Some(std::env::current_dir().context("cannot tell where this is run")?),
    };
    let root = root.filter(|root| root.join("xtask/Cargo.toml").is_file());
    root.context("run this in the repository's folder")
}

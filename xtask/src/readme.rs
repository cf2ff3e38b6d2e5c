// SPDX-License-Identifier: Apache-2.0
//! Runs the commands that the documents show, and compares what they print with what the documents
//! say they print.
//!
//! A block tagged `sh` is run; the block tagged `text` right after it is its output. All blocks of
//! a document run in one shell, in a scratch folder, with the broker's URL and the built binary at
//! hand, so later blocks see the variables of earlier ones. A block that is one line ending in
//! `serve` starts the broker and leaves it running. `./test` is not run, because it runs this.

mod blocks;
mod compare;
mod shell;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use blocks::Example;
use shell::{Broker, Scratch, Shell};

/// What is run where no file is named.
const DOCUMENTS: &[&str] = &["README.md", "docs/tutorial.md"];
/// The one command that is shown and not run.
const NOT_RUN: &str = "./test";

pub(crate) fn check(root: &Path, documents: &[&str]) -> anyhow::Result<()> {
    let mut wrong = 0;
    for name in named(documents) {
        let text = read(root, name)?;
        let played = play(root, name, &text)?;
        for Played { example, output, status } in played.iter().filter(|one| !one.is_as_told()) {
            wrong += 1;
            match &example.expected {
                None => println!("{name}:{}: status {status}:\n{output}", example.line),
                Some(expected) => {
                    println!("{name}:{}: prints something else:", expected.line);
                    println!("{}", compare::diff(&expected.text, output, expected.kind));
                }
            }
        }
    }
    if wrong > 0 {
        bail!("{wrong} outputs differ; if they are right, run `cargo xtask readme --write`");
    }
    Ok(())
}

/// Puts the real output into the documents. One that only differs in ids and times stays as it is;
/// otherwise all its outputs are replaced, so that the ids in it agree.
pub(crate) fn write(root: &Path, documents: &[&str]) -> anyhow::Result<()> {
    for name in named(documents) {
        let mut text = read(root, name)?;
        let played = play(root, name, &text)?;
        if played.iter().all(Played::is_as_told) {
            continue;
        }
        // From the last to the first, so that lines before stay where they are.
        for Played { example, output, .. } in played.iter().rev() {
            if let Some(expected) = &example.expected {
                text = blocks::replaced(&text, expected, output);
            }
        }
        fs::write(root.join(name), text).with_context(|| format!("cannot write {name}"))?;
        println!("wrote {name}");
    }
    Ok(())
}

fn named<'n>(documents: &'n [&'n str]) -> &'n [&'n str] {
    if documents.is_empty() { DOCUMENTS } else { documents }
}

fn read(root: &Path, name: &str) -> anyhow::Result<String> {
    fs::read_to_string(root.join(name)).with_context(|| format!("cannot read {name}"))
}

/// An example and what came of it.
struct Played {
    example: Example,
    output: String,
    status: i32,
}

impl Played {
    /// An example without an output must end well; of one with an output, that says how it ended.
    fn is_as_told(&self) -> bool {
        match &self.example.expected {
            None => self.status == 0,
            Some(expected) => compare::same(&expected.text, &self.output, expected.kind),
        }
    }
}

fn play(root: &Path, name: &str, text: &str) -> anyhow::Result<Vec<Played>> {
    let scratch = Scratch::make()?;
    let binaries = binaries()?;
    let mut shell = Shell::start(scratch.path(), &binaries)?;
    let mut broker: Option<Broker> = None;
    let mut played = Vec::new();
    for example in blocks::examples(text)? {
        let at = || format!("{name}:{}", example.line);
        if example.script.trim() == NOT_RUN {
            continue;
        }
        let (output, status) = if starts_broker(&example.script) {
            if let Some(running) = broker.take() {
                running.end().with_context(at)?;
            }
            let (running, greeting) =
                Broker::start(root, scratch.path(), &binaries, &example.script).with_context(at)?;
            shell.run(&format!("export TASUKI_URL={}", running.url)).with_context(at)?;
            broker = Some(running);
            (greeting, 0)
        } else {
            shell.run(&example.script).with_context(at)?
        };
        let output = scratch.unnamed(&output);
        played.push(Played { example, output, status });
    }
    if let Some(running) = broker {
        running.end().with_context(|| format!("{name}: the broker did not end well"))?;
    }
    Ok(played)
}

fn starts_broker(script: &str) -> bool {
    script.trim().lines().count() == 1 && script.trim().ends_with(" serve")
}

/// Where Cargo put this program, and the broker beside it.
fn binaries() -> anyhow::Result<PathBuf> {
    let here = std::env::current_exe().context("cannot tell where this program is")?;
    here.parent().map(PathBuf::from).context("this program lies in no folder")
}

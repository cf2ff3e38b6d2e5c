// SPDX-License-Identifier: Apache-2.0
//! Runs the commands that the documents show, and compares what they print with what the documents
//! say they print.
//!
//! A block tagged `sh` is run; the block tagged `text` right after it is its output. A block whose
//! tag has `file=NAME` is written to that file first. All blocks of a document run in one shell, in
//! a scratch folder, with the broker's URL and the built binary at hand, so later blocks see the
//! variables of earlier ones. A block that is one `serve` command starts a broker in the place of
//! the one before and leaves it running; a document that begins with something else finds one
//! running. One that mentions `$STORE` finds the URL of an empty PostgreSQL in it.

mod blocks;
mod compare;
mod shell;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail};

use blocks::{Example, Step};
use shell::{Broker, Scratch, Shell};

/// What starts the broker of a document that does not say how.
const SERVE: &str = "tasuki serve";
/// What documents call the URL of their PostgreSQL.
const STORE: &str = "postgres://tasuki@db.example/tasuki";
const SERVER: &str = "postgres://tasuki@db.example/";
const ADDRESS: &str = "http://127.0.0.1:8788";

pub(crate) fn check(root: &Path, documents: &[&str]) -> anyhow::Result<()> {
    let mut wrong = 0;
    for name in &named(root, documents)? {
        let text = read(root, name)?;
        let begun = Instant::now();
        let played = play(root, name, &text)?;
        println!("{name}: {} examples, {:.1} s", played.len(), begun.elapsed().as_secs_f32());
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
    for name in &named(root, documents)? {
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

/// Where no document is named, all are run that have something to run.
fn named(root: &Path, documents: &[&str]) -> anyhow::Result<Vec<String>> {
    if !documents.is_empty() {
        return Ok(documents.iter().map(|&name| name.to_owned()).collect());
    }
    let mut found = Vec::new();
    for name in crate::tidy::files(root)?.into_iter().filter(|name| name.ends_with(".md")) {
        // What is gone was deleted and not committed yet.
        let Ok(text) = fs::read_to_string(root.join(&name)) else { continue };
        if blocks::is_run_here(&text).with_context(|| name.clone())? {
            found.push(name);
        }
    }
    Ok(found)
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
    let postgres = text.contains("$STORE").then(scratch_postgres::Server::start);
    let store = postgres.as_ref().map_or(String::new(), |server| server.url("postgres"));
    let mut stage = Stage {
        shell: Shell::start(scratch.path(), &binaries)?,
        root,
        scratch: &scratch,
        binaries: &binaries,
        broker: None,
    };
    stage.shell.run(&format!("export STORE={store}"))?;
    let mut played = Vec::new();
    for step in blocks::steps(text)? {
        match step {
            Step::Write { name, text } => fs::write(scratch.path().join(&name), text)
                .with_context(|| format!("cannot write {name}"))?,
            Step::Run(example) => {
                let at = || format!("{name}:{}", example.line);
                let (output, status) = stage.run(&example.script).with_context(at)?;
                let output = match &postgres {
                    Some(server) => {
                        let output = output.replace(&store, STORE);
                        scratch.unnamed(&output.replace(&server.url(""), SERVER))
                    }
                    None => scratch.unnamed(&output),
                };
                played.push(Played { example, output, status });
            }
        }
    }
    stage.end().with_context(|| format!("{name}: the broker did not end well"))?;
    Ok(played)
}

/// Where a document is played.
struct Stage<'p> {
    shell: Shell,
    root: &'p Path,
    scratch: &'p Scratch,
    binaries: &'p Path,
    broker: Option<Broker>,
}

impl Stage<'_> {
    fn run(&mut self, script: &str) -> anyhow::Result<(String, i32)> {
        if starts_broker(script) {
            return Ok((self.serve(script)?, 0));
        }
        if self.broker.is_none() {
            self.serve(SERVE)?;
        }
        // Documents name the address that a broker listens on unless it is told otherwise.
        let here = self.broker.as_ref().map_or(ADDRESS, |broker| &broker.url);
        self.shell.run(&script.replace(ADDRESS, here))
    }

    /// Starts a broker where the one before was, and returns what it says.
    fn serve(&mut self, line: &str) -> anyhow::Result<String> {
        if let Some(running) = self.broker.take() {
            running.end()?;
        }
        // The commands of a document may have set variables that this one names.
        let (variables, _) = self.shell.run("export -p")?;
        // Cargo is run in the repository, everything else beside what the document writes.
        let folder = if line.starts_with("cargo ") { self.root } else { self.scratch.path() };
        let data = self.scratch.path().join("tasuki-data");
        let script = format!("{variables}\n{}", line.trim());
        let (running, greeting) = Broker::start(folder, &data, self.binaries, &script)?;
        self.shell.run(&format!("export TASUKI_URL={}", running.url))?;
        self.broker = Some(running);
        Ok(greeting)
    }

    fn end(self) -> anyhow::Result<()> {
        self.broker.map_or(Ok(()), Broker::end)
    }
}

/// Whether this is one command that runs a broker until it is told to end.
fn starts_broker(script: &str) -> bool {
    let line = script.replace("\\\n", " ");
    let line = line.trim();
    let serves = ["tasuki serve", "cargo run -- serve"].iter().any(|s| line.starts_with(s));
    serves && !line.contains(['\n', '&', '|', ';'])
}

/// Where Cargo put this program, and the broker beside it.
fn binaries() -> anyhow::Result<PathBuf> {
    let here = std::env::current_exe().context("cannot tell where this program is")?;
    here.parent().map(PathBuf::from).context("this program lies in no folder")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_only_serves_starts_a_broker() {
        assert!(starts_broker("cargo run -- serve\n"));
        assert!(starts_broker("tasuki serve --auth required \\\n  --data here\n"));
        assert!(!starts_broker("tasuki serve & echo\n"));
        assert!(!starts_broker("tasuki serve\ntasuki stats\n"));
        assert!(!starts_broker("tasuki stats\n"));
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Builds the pages of `dashboard` into the files that the broker has in it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let folder = root.join("dashboard");
    if !folder.join("node_modules").is_dir() {
        step(&folder, "npm", &["ci", "--silent", "--ignore-scripts"])?;
    }
    step(&folder, "node_modules/.bin/tsc", &["--noEmit"])?;
    step(&folder, "node", &["build.mjs"])
}

fn step(folder: &Path, program: &str, words: &[&str]) -> anyhow::Result<()> {
    let status = Command::new(program)
        .args(words)
        .current_dir(folder)
        .status()
        .with_context(|| format!("cannot run {program}; Node 20 with npm is needed"))?;
    ensure!(status.success(), "{program} {} failed", words.join(" "));
    Ok(())
}

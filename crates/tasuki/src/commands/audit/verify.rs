// SPDX-License-Identifier: Apache-2.0

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tasuki_protocol as wire;
use tasuki_store::audit::{Verdict, verify_lines};
use tasuki_store::{Difference, SystemClock, maintenance};

use crate::client::Connect;
use crate::config::Directory;
use crate::exit::{Exit, Failure};
use crate::output::{Facts, Output, progress};

#[derive(Args)]
pub(super) struct Verify {
    /// Check a data directory instead of asking a broker; it may be in use
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Check an exported file instead of asking a broker
    #[arg(long, value_name = "FILE", conflicts_with = "data")]
    file: Option<PathBuf>,
    /// Check all of it, and not only what came since the broker last found it intact; a directory
    /// or a file is always checked whole
    #[arg(long)]
    full: bool,
    /// Make all rows anew beside from the log of a data directory, and name those that are not what
    /// the log says; it may be in use
    #[arg(long, conflicts_with = "file")]
    rows: bool,
}

#[derive(Serialize)]
struct Rows {
    intact: bool,
    differences: Vec<Difference>,
}

impl Verify {
    pub(super) async fn run(self, connect: &Connect, output: Output) -> anyhow::Result<Exit> {
        if self.rows {
            let differences = rows(&Directory { data: self.data }.existing()?)?;
            let intact = differences.is_empty();
            output.found(&Rows { intact, differences }, |found| {
                let named = found.differences.iter().map(|it| format!("differs: {it}\n"));
                let is = if found.intact { "intact" } else { "NOT intact" };
                Facts::default().with("rows", is).text() + &named.collect::<String>()
            })?;
            return Ok(if intact { Exit::Done } else { Exit::Refused });
        }
        let verdict = match (self.data, self.file) {
            (Some(data), _) => directory(&Directory { data: Some(data) }.existing()?)?,
            (None, Some(path)) => file(&path)?,
            (None, None) => {
                let path = match self.full {
                    true => "/v1/audit/verify?full=true",
                    false => "/v1/audit/verify",
                };
                let reply = connect.client()?.get_slowly(path).await?;
                let verdict: wire::Verdict = serde_json::from_str(&reply)?;
                output.reply(&reply, |_: serde::de::IgnoredAny| for_people(&verdict))?;
                return Ok(exit(&verdict));
            }
        };
        output.found(&verdict, for_people)?;
        Ok(exit(&verdict))
    }
}

/// The log is verified on the way, so that the rows are compared with what can be believed.
fn rows(dir: &Path) -> anyhow::Result<Vec<Difference>> {
    let bar = progress("comparing", None);
    let found = maintenance::compare_rows(dir, &*SystemClock::start())?;
    bar.finish_and_clear();
    Ok(found)
}

fn directory(dir: &Path) -> anyhow::Result<wire::Verdict> {
    let bar = progress("verifying", maintenance::count(dir).ok());
    let verdict = maintenance::verify(dir, &mut |done| bar.set_position(done))?;
    bar.finish_and_clear();
    Ok(as_wire(verdict))
}

fn file(path: &Path) -> anyhow::Result<wire::Verdict> {
    let opened = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
    let (bytes, file) = opened.map_err(|error| {
        let message = format!("cannot read {}: {error}", path.display());
        Failure::new(Exit::NotFound, message, "name a file that `tasuki audit export` wrote")
            .next(format!("tasuki audit export --to {}", path.display()))
    })?;
    let bar = progress("verifying", Some(bytes));
    let lines = BufReader::new(file).lines().inspect(|line| {
        bar.inc(line.as_ref().map_or(0, |line| line.len() as u64 + 1));
    });
    let verdict = verify_lines(lines);
    bar.finish_and_clear();
    Ok(as_wire(verdict))
}

/// The same shape, whoever checked.
fn as_wire(verdict: Verdict) -> wire::Verdict {
    wire::Verdict {
        intact: verdict.first_bad.is_none(),
        events: verdict.events,
        tasks: verdict.tasks,
        bodies: verdict.bodies,
        erased: verdict.erased,
        checkpoints: verdict.checkpoints,
        unsealed: verdict.unsealed,
        keys: verdict.keys,
        verified_before: verdict.verified_before,
        first_bad: verdict.first_bad.map(|finding| wire::Finding {
            position: finding.position,
            task_id: finding.task_id,
            problem: finding.problem,
        }),
    }
}

fn exit(verdict: &wire::Verdict) -> Exit {
    if verdict.intact { Exit::Done } else { Exit::Refused }
}

fn for_people(verdict: &wire::Verdict) -> String {
    let sealed = format!("{} ({} events after the last)", verdict.checkpoints, verdict.unsealed);
    let bad = verdict.first_bad.as_ref();
    let is = if verdict.intact { "intact" } else { "NOT intact" };
    Facts::default()
        .with("log", is)
        .maybe("first bad", bad.map(|bad| format!("entry {} {}", bad.position, bad.problem)))
        .maybe("of task", bad.and_then(|bad| bad.task_id))
        .with(if verdict.intact { "events" } else { "good events" }, verdict.events)
        .maybe("known before", verdict.verified_before.map(|last| format!("up to entry {last}")))
        .with("tasks", verdict.tasks)
        .with("bodies", verdict.bodies)
        .maybe("erased", (verdict.erased > 0).then_some(verdict.erased))
        .with("checkpoints", sealed)
        .with("signed by", verdict.keys.join(", "))
        .maybe("next", bad.map(|_| "tasuki restore --from BACKUP --data NEW_DIR"))
        .text()
}

// SPDX-License-Identifier: Apache-2.0
//! `tasuki doctor`: looks at a broker and at its data directory or database, and says what to do.

mod broker;
mod database;
mod directory;

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use tasuki_core::Timestamp;

use crate::client::Connect;
use crate::config::Directory;
use crate::exit::Exit;
use crate::output::{Output, printable};

#[derive(Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    directory: Directory,
    /// The PostgreSQL that brokers share, instead of a data directory
    #[arg(long, env = "TASUKI_STORE", hide_env_values = true, value_name = "URL")]
    store: Option<String>,
    /// A file with certificates of authorities that vouch for it, instead of the system's
    #[arg(long, env = "TASUKI_STORE_CA", hide_env_values = true, value_name = "FILE")]
    store_ca: Option<PathBuf>,
    /// Also make all rows anew beside from the log, and compare them; takes as long as reading the log
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    connect: Connect,
}

#[derive(Serialize)]
struct Report {
    healthy: bool,
    checks: Vec<Check>,
}

#[derive(Serialize)]
struct Check {
    name: &'static str,
    status: Status,
    found: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Ok,
    Warn,
    Fail,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, status: Status::Ok, found: found.into(), next: None }
    }

    fn warn(name: &'static str, found: impl Into<String>, next: impl Into<String>) -> Self {
        Self { name, status: Status::Warn, found: found.into(), next: Some(next.into()) }
    }

    fn fail(name: &'static str, found: impl Into<String>, next: impl Into<String>) -> Self {
        Self { status: Status::Fail, ..Self::warn(name, found, next) }
    }
}

impl Doctor {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        let (mut checks, is_up) = broker::check(&self.connect).await?;
        if let Some(url) = &self.store {
            checks.extend(database::check(url, self.store_ca.as_deref(), self.full).await);
        } else {
            let path = self.directory.path()?;
            let is_named = self.directory.data.is_some();
            checks.extend(directory::check(&path, is_named, is_up, self.full));
        }
        let healthy = checks.iter().all(|check| check.status != Status::Fail);
        output.found(&Report { healthy, checks }, for_people)?;
        Ok(if healthy { Exit::Done } else { Exit::Refused })
    }
}

fn for_people(report: &Report) -> String {
    let mut text = String::new();
    for check in &report.checks {
        let status = match check.status {
            Status::Ok => "ok",
            Status::Warn => "warn",
            Status::Fail => "fail",
        };
        text += &format!("{status:<5} {:<16} {}\n", check.name, printable(&check.found));
        if let Some(next) = &check.next {
            text += &format!("{:22} → {next}\n", "");
        }
    }
    let count = |status| report.checks.iter().filter(|check| check.status == status).count();
    let (failed, warned) = (count(Status::Fail), count(Status::Warn));
    text + &format!("{failed} failed, {warned} to look at, {} fine\n", count(Status::Ok))
}

/// Differences up to this much are nobody's business.
const CLOCK_MS_OFF_MAX: u64 = 5000;

fn wall_clock() -> Timestamp {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let ms = since_1970.map_or(0, |span| span.as_millis());
    Timestamp(i64::try_from(ms).unwrap_or(i64::MAX))
}

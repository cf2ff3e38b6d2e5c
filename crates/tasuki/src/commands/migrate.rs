// SPDX-License-Identifier: Apache-2.0
//! `tasuki migrate`: moves everything from the embedded store to PostgreSQL, or back.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tasuki_store::postgres::{self, CopyError, DatabaseClock};
use tasuki_store::{FILE, PostgresOptions, SystemClock, maintenance};

use super::serve::own_key;
use crate::config::store_url;
use crate::exit::{Exit, Failure};
use crate::output::{Output, progress};

#[derive(Args)]
pub(crate) struct Migrate {
    /// Where the work is now: a data directory or a PostgreSQL URL; no broker may be using it
    #[arg(long, value_name = "DIR|URL")]
    from: String,
    /// Where it goes: a PostgreSQL URL or a data directory; must be empty
    #[arg(long, value_name = "URL|DIR")]
    to: String,
    /// A file with certificates of authorities that vouch for PostgreSQL, instead of the system's
    #[arg(long, env = "TASUKI_STORE_CA", hide_env_values = true, value_name = "FILE")]
    store_ca: Option<PathBuf>,
}

#[derive(Serialize)]
struct Migrated {
    from: String,
    to: String,
    events: u64,
    tasks: u64,
    checkpoints: u64,
}

impl Migrate {
    fn options(&self, url: &str, dir: &Path) -> anyhow::Result<PostgresOptions> {
        let ca = self.store_ca.clone();
        Ok(PostgresOptions { ca, ..PostgresOptions::new(store_url(url), own_key(dir)?) })
    }

    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        let (verdict, next) = match (is_url(&self.from), is_url(&self.to)) {
            (false, true) => {
                let dir = existing(&self.from)?;
                let bar = progress("copying", Some(maintenance::count(&dir)?));
                let options = self.options(&self.to, &dir)?;
                let told = &mut |done| bar.set_position(done);
                let copied =
                    Box::pin(postgres::from_sqlite(&dir, options, DatabaseClock::start(), told))
                        .await;
                bar.finish_and_clear();
                (copied.map_err(unwrapped)?, format!("tasuki serve --store {}", shown(&self.to)))
            }
            (true, false) => {
                let dir = PathBuf::from(&self.to);
                if dir.join(FILE).exists() {
                    let message = format!("there is data in {} already", dir.display());
                    let hint = "name another directory; nothing is ever written over";
                    return Err(Failure::new(Exit::Refused, message, hint).into());
                }
                let bar = progress("copying", None);
                let options = self.options(&self.from, &dir)?;
                let told = &mut |done| bar.set_position(done);
                let copied = postgres::to_sqlite(options, &dir, SystemClock::start(), told).await;
                bar.finish_and_clear();
                (copied.map_err(unwrapped)?, format!("tasuki serve --data {}", dir.display()))
            }
            _ => {
                return Err(Failure::usage(
                    "one side must be a data directory and the other a PostgreSQL URL",
                    "tasuki migrate --from ./tasuki-data --to postgres://user@host/database",
                )
                .into());
            }
        };
        let migrated = Migrated {
            from: shown(&self.from),
            to: shown(&self.to),
            events: verdict.events,
            tasks: verdict.tasks,
            checkpoints: verdict.checkpoints,
        };
        output.found(&migrated, |migrated| {
            format!(
                "moved {} events of {} tasks to {}, all verified; claims from before are stale\n\
                 next: {next}\n",
                migrated.events, migrated.tasks, migrated.to
            )
        })?;
        Ok(Exit::Done)
    }
}

fn is_url(place: &str) -> bool {
    place.starts_with("postgres://") || place.starts_with("postgresql://")
}

fn shown(place: &str) -> String {
    if is_url(place) { postgres::without_password(place) } else { place.to_owned() }
}

fn existing(place: &str) -> Result<PathBuf, Failure> {
    let dir = Path::new(place);
    if dir.join(FILE).exists() {
        return Ok(dir.to_owned());
    }
    let message = format!("there is no data in {place}");
    Err(Failure::new(Exit::NotFound, message, "name the data directory of a broker"))
}

/// The error of the side that failed, which knows what to do.
fn unwrapped(error: CopyError) -> anyhow::Error {
    match error {
        CopyError::Sqlite(error) => error.into(),
        CopyError::Postgres(error) => error.into(),
        CopyError::Store(error) => error.into(),
    }
}

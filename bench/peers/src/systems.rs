//! What takes part, and the servers behind it.

use std::{fmt, path::Path};

use anyhow::{Context as _, Result};
use clap::ValueEnum;

use crate::{
    beanstalkd::Beanstalkd,
    load::{Load, Measured},
    options::WithPostgres,
    plain_queue,
    postgres::{Database, Postgres},
    redis::Redis,
    report::Line,
    scratch::Scratch,
    tasuki::Tasuki,
};

pub(crate) const BATCH: u32 = 32;

/// What a user can ask for by name.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Choice {
    Tasuki,
    TasukiSyncOff,
    TasukiBatched,
    Redis,
    Postgres,
    Beanstalkd,
}

/// One line of the table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum System {
    Tasuki,
    TasukiSyncOff,
    TasukiBatched,
    Redis,
    Postgres { connections: u16 },
    Beanstalkd,
}

impl System {
    /// The chosen systems, or all, in the order in which they take their turns.
    pub(crate) fn chosen(only: &[Choice], connections: &[u16]) -> Vec<Self> {
        let mut systems = Vec::new();
        for choice in Choice::value_variants() {
            if !only.is_empty() && !only.contains(choice) {
                continue;
            }
            match choice {
                Choice::Tasuki => systems.push(Self::Tasuki),
                Choice::TasukiSyncOff => systems.push(Self::TasukiSyncOff),
                Choice::TasukiBatched => systems.push(Self::TasukiBatched),
                Choice::Redis => systems.push(Self::Redis),
                Choice::Postgres => systems
                    .extend(connections.iter().map(|&connections| Self::Postgres { connections })),
                Choice::Beanstalkd => systems.push(Self::Beanstalkd),
            }
        }
        systems
    }
}

impl Line for System {
    fn is_synced(self) -> bool {
        self != Self::TasukiSyncOff
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tasuki => f.write_str("Tasuki"),
            Self::TasukiSyncOff => f.write_str("Tasuki, sync off"),
            Self::TasukiBatched => write!(f, "Tasuki, batches of {BATCH}"),
            Self::Redis => f.write_str("Redis streams, appendfsync always"),
            Self::Postgres { connections } => {
                write!(f, "PostgreSQL SKIP LOCKED, {connections} connections")
            }
            Self::Beanstalkd => f.write_str("beanstalkd -f0"),
        }
    }
}

/// The servers that the chosen systems need. Dropping this ends them all.
#[derive(Default)]
pub(crate) struct Servers {
    durable: Option<Tasuki>,
    sync_off: Option<Tasuki>,
    redis: Option<Redis>,
    postgres: Option<(Database, Postgres)>,
    beanstalkd: Option<Beanstalkd>,
    versions: Vec<String>,
}

impl Servers {
    pub(crate) async fn start(
        systems: &[System],
        load: &Load,
        options: &WithPostgres,
        scratch: &Scratch,
    ) -> Result<Self> {
        let mut servers = Self::default();
        let tasuki = options.common.places.tasuki()?;
        for &system in systems {
            servers.start_for(system, load, options, &tasuki, scratch).await?;
        }
        Ok(servers)
    }

    pub(crate) fn versions(&self) -> &[String] {
        &self.versions
    }

    pub(crate) async fn measure(&self, system: System, load: &Load) -> Result<Measured> {
        let missing = "its server was not started";
        match system {
            System::Tasuki => self.durable.as_ref().context(missing)?.bench().run(load, 1).await,
            System::TasukiSyncOff => {
                self.sync_off.as_ref().context(missing)?.bench().run(load, 1).await
            }
            System::TasukiBatched => {
                self.durable.as_ref().context(missing)?.bench().run(load, BATCH).await
            }
            System::Redis => self.redis.as_ref().context(missing)?.measure(load).await,
            System::Postgres { connections } => {
                let (database, _) = self.postgres.as_ref().context(missing)?;
                plain_queue::measure(database, load, connections).await
            }
            System::Beanstalkd => self.beanstalkd.as_ref().context(missing)?.measure(load).await,
        }
    }

    async fn start_for(
        &mut self,
        system: System,
        load: &Load,
        options: &WithPostgres,
        tasuki: &Path,
        scratch: &Scratch,
    ) -> Result<()> {
        match system {
            System::Tasuki | System::TasukiBatched if self.durable.is_none() => {
                self.versions.push(Tasuki::version(tasuki)?);
                self.durable = Some(Tasuki::start(tasuki, scratch, "tasuki", &[]).await?);
            }
            System::TasukiSyncOff => {
                let arguments = ["--sync", "off"];
                self.sync_off =
                    Some(Tasuki::start(tasuki, scratch, "tasuki-sync-off", &arguments).await?);
            }
            System::Redis => {
                self.versions.push(Redis::version()?);
                self.redis = Some(Redis::start(scratch).await?);
            }
            System::Postgres { .. } if self.postgres.is_none() => {
                let programs = &options.postgres_bin;
                self.versions.push(Postgres::version(programs)?);
                // Cleaning would fall into others' rounds; each round has a new table instead.
                let settings = &["autovacuum=off"];
                let server = Postgres::start(programs, scratch, load.clients, settings).await?;
                self.postgres = Some((server.create("plain").await?, server));
            }
            System::Beanstalkd => {
                self.versions.push(Beanstalkd::version()?);
                self.beanstalkd = Some(Beanstalkd::start(scratch, load).await?);
            }
            // Shares a server that runs already.
            System::Tasuki | System::TasukiBatched | System::Postgres { .. } => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_of_connections_is_a_system_of_its_own() {
        let chosen = System::chosen(&[Choice::Postgres], &[16, 64]);
        let expected = [16, 64].map(|connections| System::Postgres { connections });
        assert!(chosen == expected);
    }
}

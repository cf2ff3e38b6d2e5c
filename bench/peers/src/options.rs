//! What every benchmark here can be told.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;

use crate::load::Load;

#[derive(Args)]
pub(crate) struct Common {
    /// How often each system is measured; the rounds are interleaved.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Seconds for each system in each round.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Clients that work at the same time.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    clients: u16,
    /// Bytes in a message.
    #[arg(long, default_value_t = 2048, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    payload: u32,
    #[command(flatten)]
    pub(crate) places: Places,
}

#[derive(Args)]
pub(crate) struct Places {
    /// Our binary; unless told, the one beside this program.
    #[arg(long)]
    tasuki: Option<PathBuf>,
    /// Where a directory for all data is made and removed again; it should be on a real disk.
    #[arg(long, default_value = "target")]
    pub(crate) scratch: PathBuf,
    /// Writes everything that was measured to this file.
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
}

/// Besides, where there is a PostgreSQL.
#[derive(Args)]
pub(crate) struct WithPostgres {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Connections that the clients of PostgreSQL share; each count is measured, the best one is
    /// compared with.
    #[arg(long, value_delimiter = ',', default_values_t = [16, 64])]
    postgres_connections: Vec<u16>,
    /// Where PostgreSQL's programs are.
    #[arg(long, default_value = "/usr/lib/postgresql/15/bin")]
    pub(crate) postgres_bin: PathBuf,
}

impl Common {
    pub(crate) fn load(&self) -> Load {
        Load::new(self.clients, self.payload, self.seconds)
    }
}

impl Places {
    pub(crate) fn tasuki(&self) -> Result<PathBuf> {
        if let Some(program) = &self.tasuki {
            return Ok(program.clone());
        }
        let this = std::env::current_exe().context("cannot tell where this program is")?;
        Ok(this.with_file_name("tasuki"))
    }
}

impl WithPostgres {
    pub(crate) fn postgres_connections(&self) -> Vec<u16> {
        within(&self.postgres_connections, self.common.clients)
    }
}

/// More connections than clients would idle.
fn within(connections: &[u16], clients: u16) -> Vec<u16> {
    let mut counts: Vec<u16> = connections.iter().map(|count| (*count).clamp(1, clients)).collect();
    counts.sort_unstable();
    counts.dedup();
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_beyond_the_clients_are_not_opened() {
        assert_eq!(within(&[16, 64], 64), [16, 64]);
        assert_eq!(within(&[16, 64], 8), [8]);
    }
}

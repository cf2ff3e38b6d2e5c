//! Brokers that share a database, and the load that is divided among them.

use std::{path::Path, time::Duration};

use anyhow::{Context as _, Result};
use tokio::task::JoinSet;

use crate::{
    load::{Load, Measured},
    postgres::Database,
    scratch::Scratch,
    tasuki::{Bench, Tasuki},
};

/// How long clients stay away after their broker failed them.
const PAUSE: Duration = Duration::from_millis(100);

pub(crate) struct Brokers(Vec<Tasuki>);

impl Brokers {
    pub(crate) async fn start(
        program: &Path,
        scratch: &Scratch,
        database: &Database,
        count: u16,
    ) -> Result<Self> {
        let mut brokers = Self(Vec::new());
        for _ in 0..count {
            brokers.add(program, scratch, database).await?;
        }
        Ok(brokers)
    }

    pub(crate) async fn add(
        &mut self,
        program: &Path,
        scratch: &Scratch,
        database: &Database,
    ) -> Result<()> {
        let name = format!("{}-{}", database.name(), self.0.len() + 1);
        let arguments = ["--store", &database.url()];
        self.0.push(Tasuki::start(program, scratch, &name, &arguments).await?);
        Ok(())
    }

    pub(crate) async fn measure(&self, load: &Load, batch: u32) -> Result<Measured> {
        let mut runs = JoinSet::new();
        for (bench, share) in self.shares(load)? {
            runs.spawn(async move { bench.run(&share, batch).await });
        }
        let mut total: Option<Measured> = None;
        while let Some(measured) = runs.join_next().await {
            let measured = measured.context("a load panicked")??;
            total = Some(match total {
                Some(total) => total.together(&measured),
                None => measured,
            });
        }
        total.context("there is no broker")
    }

    /// Clients that come back whatever becomes of their broker, until this is shut down.
    pub(crate) fn keep_busy(&self, load: &Load) -> Result<JoinSet<()>> {
        let mut busy = JoinSet::new();
        for (bench, share) in self.shares(load)? {
            busy.spawn(async move {
                loop {
                    if bench.run(&share, 1).await.is_err() {
                        tokio::time::sleep(PAUSE).await;
                    }
                }
            });
        }
        Ok(busy)
    }

    /// Kills the broker that was added last, and forgets it.
    pub(crate) async fn kill_last(&mut self) -> Result<()> {
        self.0.pop().context("there is no broker")?.kill().await
    }

    pub(crate) async fn wait_until_ready(&mut self) -> Result<()> {
        for broker in &mut self.0 {
            broker.wait_until_ready().await?;
        }
        Ok(())
    }

    fn shares(&self, load: &Load) -> Result<Vec<(Bench, Load)>> {
        let count = u16::try_from(self.0.len()).context("there are too many brokers")?;
        Ok(self.0.iter().map(|broker| broker.bench().clone()).zip(load.shares(count)).collect())
    }
}

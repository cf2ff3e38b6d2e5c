//! A work queue that gives a message to somebody else when it is not deleted in time: beanstalkd,
//! used as its protocol says, a tube for each stage. Handing on is a put, then a delete.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};

use super::{
    agents::{Hands, Told},
    message::Message,
};
use crate::wire::Wire;

#[derive(Clone, Copy)]
pub(super) struct Tubes {
    pub(super) address: SocketAddr,
    pub(super) lease: Duration,
    pub(super) round: u64,
}

pub(super) struct Tube {
    wire: Wire,
    lease_s: u64,
    round: u64,
}

fn name(round: u64, stage: usize) -> String {
    format!("round-{round}-stage-{stage}")
}

impl Tube {
    fn put(&self, message: &Message) -> Result<Vec<u8>> {
        let body = serde_json::to_string(message)?;
        let (lease, bytes) = (self.lease_s, body.len());
        let name = name(self.round, message.stage());
        Ok(format!("use {name}\r\nput 0 0 {lease} {bytes}\r\n{body}\r\n").into_bytes())
    }

    async fn reply(&mut self, expected: &[&str]) -> Result<()> {
        let reply = self.wire.line().await?;
        let known = expected.iter().any(|one| reply.starts_with(one));
        ensure!(known, "unexpected reply {reply:?}");
        Ok(())
    }
}

impl Hands for Tube {
    type Place = Tubes;
    type Taken = u64;

    async fn connect(place: &Tubes, stage: usize) -> Result<Self> {
        let wire = Wire::connect(place.address).await?;
        let mut tube = Self { wire, lease_s: place.lease.as_secs(), round: place.round };
        let watch = format!("watch {}\r\nignore default\r\n", name(place.round, stage));
        tube.wire.send(watch.as_bytes()).await?;
        tube.reply(&["WATCHING"]).await?;
        tube.reply(&["WATCHING"]).await?;
        Ok(tube)
    }

    async fn send(&mut self, message: &Message) -> Result<()> {
        let put = self.put(message)?;
        self.wire.send(&put).await?;
        self.reply(&["USING"]).await?;
        self.reply(&["INSERTED"]).await
    }

    async fn take(&mut self) -> Result<Option<(Message, u64)>> {
        self.wire.send(b"reserve-with-timeout 1\r\n").await?;
        let reply = self.wire.line().await?;
        if reply == "TIMED_OUT" {
            return Ok(None);
        }
        let Some((id, bytes)) =
            reply.strip_prefix("RESERVED ").and_then(|rest| rest.split_once(' '))
        else {
            bail!("unexpected reply {reply:?}");
        };
        let (id, bytes) = (id.parse()?, bytes.parse()?);
        let body = self.wire.block(bytes).await?;
        Ok(Some((serde_json::from_slice(body).context("another message")?, id)))
    }

    async fn tell(&mut self, taken: &u64, next: &Message) -> Result<Told> {
        self.send(next).await?;
        self.finish(taken).await?;
        Ok(Told::Heard)
    }

    async fn finish(&mut self, taken: &u64) -> Result<()> {
        self.wire.send(format!("delete {taken}\r\n").as_bytes()).await?;
        // Not found is what it says to whom it no longer belongs.
        self.reply(&["DELETED", "NOT_FOUND"]).await
    }

    async fn die_telling(mut self, _: &u64, next: &Message) -> Result<()> {
        self.send(next).await
    }

    async fn tell_unheard(mut self, taken: &u64, next: &Message) -> Result<()> {
        self.tell(taken, next).await.map(drop)
    }

    /// What it had reserved went with its connection.
    async fn tell_again(&mut self, _: &u64, _: &Message) -> Result<Told> {
        Ok(Told::Heard)
    }
}

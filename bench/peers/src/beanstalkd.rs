//! beanstalkd: put, reserve, delete.
//!
//! It writes and syncs puts and deletes. A reservation lives in its RAM only, so its claim promises
//! less than everyone else's: after a crash the message is ready again.

use std::{io::Write as _, net::SocketAddr, path::Path, process::Command};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::Signal;

use crate::{
    load::{self, Client, Load, Measured},
    scratch::Scratch,
    server::{self, Server},
    wire::Wire,
};

const PROGRAM: &str = "beanstalkd";
/// Longer than any round, so that no reservation ends under a client that works.
const RESERVATION_SECONDS: u64 = 7200;

pub(crate) struct Beanstalkd {
    address: SocketAddr,
    _server: Server,
}

impl Beanstalkd {
    pub(crate) fn version() -> Result<String> {
        server::version(Path::new(PROGRAM), "-v")
    }

    pub(crate) async fn start(scratch: &Scratch, load: &Load) -> Result<Self> {
        let address = server::free_address()?;
        let data = scratch.make("beanstalkd")?;
        let mut command = Command::new(PROGRAM);
        command
            .args(["-l", "127.0.0.1", "-p", &address.port().to_string()])
            .args(["-z", &load.payload.len().to_string()])
            .args(["-f", "0", "-b"])
            .arg(&data);
        let log = scratch.path().join("beanstalkd.log");
        let mut server = Server::start("beanstalkd", &mut command, log, Signal::TERM)?;
        server.wait_until(async || Wire::connect(address).await.is_ok()).await?;
        Ok(Self { address, _server: server })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) async fn measure(&self, load: &Load) -> Result<Measured> {
        let mut clients = Vec::new();
        for _ in 0..load.clients {
            clients.push(TubeClient::connect(self.address, &load.payload).await?);
        }
        load::run(clients, load).await
    }
}

struct TubeClient {
    wire: Wire,
    offer: Vec<u8>,
    complete: Vec<u8>,
    payload_bytes: usize,
}

impl TubeClient {
    async fn connect(address: SocketAddr, payload: &[u8]) -> Result<Self> {
        let mut offer = format!("put 0 0 {RESERVATION_SECONDS} {}\r\n", payload.len()).into_bytes();
        offer.extend_from_slice(payload);
        offer.extend_from_slice(b"\r\n");
        Ok(Self {
            wire: Wire::connect(address).await?,
            offer,
            complete: Vec::new(),
            payload_bytes: payload.len(),
        })
    }
}

impl Client for TubeClient {
    async fn offer(&mut self) -> Result<()> {
        self.wire.send(&self.offer).await?;
        let reply = self.wire.line().await?;
        ensure!(reply.starts_with("INSERTED "), "unexpected reply {reply:?}");
        Ok(())
    }

    async fn claim(&mut self) -> Result<()> {
        loop {
            self.wire.send(b"reserve-with-timeout 1\r\n").await?;
            let reply = self.wire.line().await?;
            if reply == "TIMED_OUT" {
                continue;
            }
            let Some((id, bytes)) =
                reply.strip_prefix("RESERVED ").and_then(|rest| rest.split_once(' '))
            else {
                bail!("unexpected reply {reply:?}");
            };
            self.complete.clear();
            write!(self.complete, "delete {id}\r\n")?;
            let bytes: usize = bytes.parse().context("a message without a size")?;
            ensure!(bytes == self.payload_bytes, "the message came back with another size");
            self.wire.block(bytes).await?;
            return Ok(());
        }
    }

    async fn complete(&mut self) -> Result<()> {
        self.wire.send(&self.complete).await?;
        let reply = self.wire.line().await?;
        ensure!(reply == "DELETED", "unexpected reply {reply:?}");
        Ok(())
    }
}

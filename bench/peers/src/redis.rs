//! Redis streams with one consumer group: XADD, XREADGROUP, XACK.

use std::{io::Write as _, net::SocketAddr, path::Path, process::Command};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::Signal;

use crate::{
    load::{self, Client, Load, Measured},
    scratch::Scratch,
    server::{self, Server},
    wire::Wire,
};

const PROGRAM: &str = "redis-server";

pub(crate) struct Redis {
    address: SocketAddr,
    _server: Server,
}

impl Redis {
    pub(crate) fn version() -> Result<String> {
        server::version(Path::new(PROGRAM), "--version")
    }

    pub(crate) async fn start(scratch: &Scratch) -> Result<Self> {
        let address = server::free_address()?;
        let data = scratch.make("redis")?;
        let mut command = Command::new(PROGRAM);
        command
            .args(["--bind", "127.0.0.1", "--port", &address.port().to_string()])
            .args(["--appendonly", "yes", "--appendfsync", "always"])
            // No snapshots and no rewriting: their disk traffic would fall into others' rounds.
            .args(["--save", "", "--auto-aof-rewrite-percentage", "0"])
            .arg("--dir")
            .arg(&data);
        let mut server =
            Server::start("Redis", &mut command, scratch.path().join("redis.log"), Signal::TERM)?;
        server.wait_until(async || answers(address).await.is_ok()).await?;
        Ok(Self { address, _server: server })
    }

    pub(crate) async fn measure(&self, load: &Load) -> Result<Measured> {
        // Completed entries stay in a stream; each round starts with an empty one.
        let mut setup = Wire::connect(self.address).await?;
        setup.send(&request(&[b"UNLINK", b"queue"])).await?;
        integer(&mut setup).await?;
        setup
            .send(&request(&[b"XGROUP", b"CREATE", b"queue", b"workers", b"$", b"MKSTREAM"]))
            .await?;
        ensure!(checked_line(&mut setup).await? == "+OK", "cannot make the stream");

        let mut clients = Vec::new();
        for number in 0..load.clients {
            clients.push(StreamClient::connect(self.address, number, &load.payload).await?);
        }
        load::run(clients, load).await
    }
}

async fn answers(address: SocketAddr) -> Result<()> {
    let mut wire = Wire::connect(address).await?;
    wire.send(&request(&[b"PING"])).await?;
    checked_line(&mut wire).await?;
    Ok(())
}

struct StreamClient {
    wire: Wire,
    offer: Vec<u8>,
    claim: Vec<u8>,
    complete: Vec<u8>,
    payload_bytes: usize,
}

impl StreamClient {
    async fn connect(address: SocketAddr, number: u16, payload: &[u8]) -> Result<Self> {
        let consumer = format!("client-{number}");
        Ok(Self {
            wire: Wire::connect(address).await?,
            offer: request(&[b"XADD", b"queue", b"*", b"body", payload]),
            claim: request(&[
                b"XREADGROUP",
                b"GROUP",
                b"workers",
                consumer.as_bytes(),
                b"COUNT",
                b"1",
                b"BLOCK",
                b"1000",
                b"STREAMS",
                b"queue",
                b">",
            ]),
            complete: Vec::new(),
            payload_bytes: payload.len(),
        })
    }

    /// Reads one claimed entry and prepares the request that completes it.
    async fn read_entry(&mut self) -> Result<()> {
        array(&mut self.wire, 2).await?;
        bulk(&mut self.wire).await?;
        array(&mut self.wire, 1).await?;
        array(&mut self.wire, 2).await?;
        let id = bulk(&mut self.wire).await?;
        self.complete.clear();
        write!(
            self.complete,
            "*4\r\n$4\r\nXACK\r\n$5\r\nqueue\r\n$7\r\nworkers\r\n${}\r\n",
            id.len()
        )?;
        self.complete.extend_from_slice(id);
        self.complete.extend_from_slice(b"\r\n");
        array(&mut self.wire, 2).await?;
        bulk(&mut self.wire).await?;
        let body = bulk(&mut self.wire).await?;
        ensure!(body.len() == self.payload_bytes, "the message came back with another size");
        Ok(())
    }
}

impl Client for StreamClient {
    async fn offer(&mut self) -> Result<()> {
        self.wire.send(&self.offer).await?;
        bulk(&mut self.wire).await?;
        Ok(())
    }

    async fn claim(&mut self) -> Result<()> {
        loop {
            self.wire.send(&self.claim).await?;
            match checked_line(&mut self.wire).await? {
                "*1" => return self.read_entry().await,
                "*-1" => {}
                other => bail!("unexpected reply {other:?}"),
            }
        }
    }

    async fn complete(&mut self) -> Result<()> {
        self.wire.send(&self.complete).await?;
        ensure!(integer(&mut self.wire).await? == 1, "the entry was not pending");
        Ok(())
    }
}

fn request(words: &[&[u8]]) -> Vec<u8> {
    let mut request = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        request.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        request.extend_from_slice(word);
        request.extend_from_slice(b"\r\n");
    }
    request
}

async fn checked_line(wire: &mut Wire) -> Result<&str> {
    let line = wire.line().await?;
    if let Some(error) = line.strip_prefix('-') {
        bail!("Redis says: {error}");
    }
    Ok(line)
}

async fn count(wire: &mut Wire, kind: char) -> Result<usize> {
    let line = checked_line(wire).await?;
    line.strip_prefix(kind)
        .and_then(|number| number.parse().ok())
        .with_context(|| format!("expected {kind} and a number, found {line:?}"))
}

async fn integer(wire: &mut Wire) -> Result<usize> {
    count(wire, ':').await
}

async fn array(wire: &mut Wire, length: usize) -> Result<()> {
    let found = count(wire, '*').await?;
    ensure!(found == length, "expected {length} parts, found {found}");
    Ok(())
}

async fn bulk(wire: &mut Wire) -> Result<&[u8]> {
    let bytes = count(wire, '$').await?;
    wire.block(bytes).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_counts_its_words_and_their_bytes() {
        assert_eq!(request(&[b"XADD", b"*"]), b"*2\r\n$4\r\nXADD\r\n$1\r\n*\r\n");
    }
}

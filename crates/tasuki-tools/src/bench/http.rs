// SPDX-License-Identifier: Apache-2.0
//! A bare HTTP/1.1 connection. On a small machine the client shares the cores with the server, so
//! it costs as little as the clients that the peers of `bench/peers` are driven with: it writes a
//! request in one piece and knows just enough HTTP to read what our server answers.

use std::io::Write as _;

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How many bytes the head of a reply may have.
const HEAD_BYTES_MAX: usize = 16 * 1024;

pub(super) struct Connection {
    stream: TcpStream,
    host: String,
    request: Vec<u8>,
    reply: Vec<u8>,
}

struct Head {
    status: u16,
    bytes: usize,
    body_bytes: usize,
}

impl Connection {
    pub(super) async fn open(host: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(host).await.with_context(|| {
            format!("no broker answers at {host}; start one with `tasuki serve`")
        })?;
        stream.set_nodelay(true)?;
        let host = host.to_owned();
        Ok(Self { stream, host, request: Vec::new(), reply: Vec::with_capacity(HEAD_BYTES_MAX) })
    }

    pub(super) async fn post(&mut self, path: &str, body: Bytes) -> anyhow::Result<&[u8]> {
        self.request("POST", path, &body).await
    }

    pub(super) async fn get(&mut self, path: &str) -> anyhow::Result<&[u8]> {
        self.request("GET", path, &[]).await
    }

    async fn request(&mut self, method: &str, path: &str, body: &[u8]) -> anyhow::Result<&[u8]> {
        self.request.clear();
        write!(
            self.request,
            "{method} {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n",
            self.host,
            body.len()
        )?;
        self.request.extend_from_slice(body);
        self.stream.write_all(&self.request).await?;
        self.reply.clear();
        let head = loop {
            self.read().await?;
            if let Some(head) = read_head(&self.reply)? {
                break head;
            }
        };
        let end = head.bytes + head.body_bytes;
        while self.reply.len() < end {
            self.read().await?;
        }
        let body = &self.reply[head.bytes..end];
        if !(200..300).contains(&head.status) {
            let (status, body) = (head.status, String::from_utf8_lossy(body));
            bail!("{method} {path} answered {status}: {body}");
        }
        Ok(body)
    }

    async fn read(&mut self) -> anyhow::Result<()> {
        let read = self.stream.read_buf(&mut self.reply).await?;
        ensure!(read > 0, "the broker closed the connection");
        Ok(())
    }
}

/// The head of a reply, once it is there whole.
fn read_head(reply: &[u8]) -> anyhow::Result<Option<Head>> {
    let Some(end) = reply.windows(4).position(|four| four == b"\r\n\r\n") else {
        ensure!(reply.len() <= HEAD_BYTES_MAX, "the broker's reply has no end of its head");
        return Ok(None);
    };
    let head = std::str::from_utf8(&reply[..end]).context("the broker's reply is not HTTP")?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 "));
    let status = status.and_then(|line| line.get(..3)).and_then(|code| code.parse().ok());
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    Ok(Some(Head {
        status: status.context("the broker's reply has no status")?,
        bytes: end + 4,
        body_bytes: length.context("the broker's reply has no content-length")?,
    }))
}

/// What the broker says of itself.
pub(super) async fn stats(host: &str) -> anyhow::Result<Value> {
    let mut http = Connection::open(host).await?;
    Ok(serde_json::from_slice(http.get("/v1/stats").await?)?)
}

/// The host and port of a URL.
pub(super) fn host(url: &str) -> anyhow::Result<String> {
    let host = url.strip_prefix("http://").context("the URL must begin with http://")?;
    Ok(host.trim_end_matches('/').to_owned())
}

pub(super) fn number(stats: &Value, name: &str) -> f64 {
    stats[name].as_f64().unwrap_or(0.0)
}

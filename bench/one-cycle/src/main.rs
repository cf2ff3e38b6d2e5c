// SPDX-License-Identifier: Apache-2.0
//! A short fixed run of the broker, for `bench/instructions`: one client offers, claims and
//! completes through the real path, from the bytes of a request to those of its reply, but for the
//! socket, which is a pipe in memory. Two runs of different length tell what a cycle costs: what
//! they do not share are cycles.
//!
//! `one-cycle STORE CYCLES BATCH`, with `volatile` or `sqlite` for the store.

use std::io::Write as _;
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tasuki_core::Timestamp;
use tasuki_engine::{Engine, Settings, SystemIds};
use tasuki_http::Limits;
use tasuki_store::{ManualClock, Sqlite, SqliteOptions, Store, Sync, Volatile};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many bytes of text a payload has, as in `bench/run-peers`.
const PAYLOAD_BYTES: usize = 2048;
/// How many bytes the pipe holds: more than the largest request or reply, as a socket would.
const PIPE_BYTES: usize = 1024 * 1024;
/// The clock stands still, so that no lease runs out on a machine that is slow.
const NOW: Timestamp = Timestamp(1_800_000_000_000);

fn main() -> anyhow::Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [store, cycles, batch] = arguments.as_slice() else {
        bail!("usage: one-cycle volatile|sqlite CYCLES BATCH");
    };
    let (cycles, batch) = (cycles.parse()?, batch.parse()?);
    // One thread for everything but the store's own.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run(store, cycles, batch))
}

async fn run(store: &str, cycles: usize, batch: usize) -> anyhow::Result<()> {
    let scratch = tempfile::tempdir()?;
    let clock = ManualClock::at(NOW);
    let store: Arc<dyn Store> = match store {
        "volatile" => Arc::new(Volatile::new(clock)),
        "sqlite" => {
            let options = SqliteOptions { dir: scratch.path().to_owned(), sync: Sync::Off };
            Arc::new(Sqlite::open(options, clock).await?)
        }
        other => bail!("there is no store {other:?}"),
    };
    let engine = Engine::start(store.clone(), Arc::new(SystemIds), Settings::default());
    let router =
        tasuki_http::router(engine, Limits { body_bytes_max: PIPE_BYTES, ..Limits::default() });
    let (client, server) = tokio::io::duplex(PIPE_BYTES);
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).pipeline_flush(true);
    let served = http.serve_connection(TokioIo::new(server), TowerToHyperService::new(router));
    let served = tokio::spawn(served);

    let mut client = Client { pipe: client, request: Vec::new(), reply: Vec::new() };
    let offer = offer(batch).to_string();
    let claim = json!({ "agent": "worker", "capabilities": ["bench"], "max": batch }).to_string();
    for _ in 0..cycles.div_ceil(batch) {
        client.cycle(&offer, &claim, batch).await?;
    }
    drop(client);
    served.await??;
    store.close().await;
    Ok(())
}

/// Text as agents write it: words, figures, marks, and lines with a colon or an equals sign, because
/// looking for secrets costs more on such text than on a row of one letter.
fn text() -> String {
    let words = [
        "the",
        "worker",
        "reads",
        "schema.rs:118",
        "and",
        "writes",
        "result=ok",
        "to",
        "https://",
        "example.org/a/b?c=1,",
        "then",
        "stops.\n",
        "Note:",
        "(retry)",
        "key-value",
        "\"quoted\"",
        "0.25",
        "déjà",
        "step",
        "--all",
    ];
    let mut text = String::with_capacity(PAYLOAD_BYTES + 32);
    let mut state = 1_u32;
    while text.len() < PAYLOAD_BYTES {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.push_str(words[(state >> 16) as usize % words.len()]);
        text.push(' ');
    }
    text
}

fn offer(batch: usize) -> Value {
    let offer = json!({
        "from_agent": "sender",
        "to": { "capability": "bench" },
        "intent": "measure the broker",
        "payload": { "type": "bench", "text": text() },
    });
    if batch == 1 { offer } else { json!({ "offers": vec![offer; batch] }) }
}

struct Client {
    pipe: DuplexStream,
    request: Vec<u8>,
    reply: Vec<u8>,
}

#[derive(Deserialize)]
struct Claims {
    claims: Vec<Claim>,
}

#[derive(Deserialize)]
struct Claim {
    handoff_id: String,
    claim_id: String,
    fence: u64,
    #[serde(rename = "envelope")]
    _envelope: Box<RawValue>,
}

impl Client {
    async fn cycle(&mut self, offer: &str, claim: &str, batch: usize) -> anyhow::Result<()> {
        let path = if batch == 1 { "/v1/handoffs" } else { "/v1/handoffs/batch" };
        self.post(path, offer).await?;
        let claims: Claims = serde_json::from_slice(self.post("/v1/claims", claim).await?)?;
        ensure!(claims.claims.len() == batch, "claimed {} of {batch}", claims.claims.len());
        if let [claim] = claims.claims.as_slice() {
            let path = format!("/v1/handoffs/{}/complete", claim.handoff_id);
            let body = format!(
                r#"{{"claim_id":"{}","fence":{},"payload":{{"type":"done"}}}}"#,
                claim.claim_id, claim.fence
            );
            self.post(&path, &body).await?;
            return Ok(());
        }
        let completions: Vec<_> = claims
            .claims
            .iter()
            .map(|claim| {
                json!({
                    "handoff_id": claim.handoff_id,
                    "claim_id": claim.claim_id,
                    "fence": claim.fence,
                    "payload": { "type": "done" },
                })
            })
            .collect();
        let body = json!({ "completions": completions }).to_string();
        let reply: Value = serde_json::from_slice(self.post("/v1/completions", &body).await?)?;
        let results = reply["results"].as_array().context("no results")?;
        ensure!(results.len() == batch, "completed {} of {batch}", results.len());
        Ok(())
    }

    async fn post(&mut self, path: &str, body: &str) -> anyhow::Result<&[u8]> {
        self.request.clear();
        write!(
            self.request,
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )?;
        self.pipe.write_all(&self.request).await?;
        self.reply.clear();
        let (head, length) = loop {
            ensure!(self.pipe.read_buf(&mut self.reply).await? > 0, "the broker hung up");
            if let Some(end) = self.reply.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = std::str::from_utf8(&self.reply[..end])?;
                ensure!(
                    head.starts_with("HTTP/1.1 20"),
                    "{}",
                    String::from_utf8_lossy(&self.reply)
                );
                let lines = head.lines().filter_map(|line| line.split_once(": "));
                let mut length =
                    lines.filter(|(name, _)| *name == "content-length").map(|(_, n)| n);
                break (end + 4, length.next_back().context("no length")?.parse::<usize>()?);
            }
        };
        while self.reply.len() < head + length {
            ensure!(self.pipe.read_buf(&mut self.reply).await? > 0, "the broker hung up");
        }
        Ok(&self.reply[head..head + length])
    }
}

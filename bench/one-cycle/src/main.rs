// SPDX-License-Identifier: Apache-2.0
//! A short fixed run of the broker, for `bench/instructions`: one client offers, claims and
//! completes through the real path, from the bytes of a request to those of its reply, but for the
//! socket, which is a pipe in memory. Two runs of different length tell what a cycle costs: what
//! they do not share are cycles.
//!
//! `one-cycle STORE CYCLES BATCH`, with `volatile` or `sqlite` for the store.
//!
//! `one-cycle fill DIRECTORY COUNT` offers that many handoffs, which wait, and says how much memory each
//! of them takes; `one-cycle open DIRECTORY` opens what was left there, and says how long that takes and
//! how much memory it needs.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

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
use tokio::task::JoinHandle;

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
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    // One thread for everything but the store's own.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match *arguments.as_slice() {
        ["fill", dir, count] => runtime.block_on(fill(Path::new(dir), count.parse()?)),
        ["open", dir] => runtime.block_on(open(Path::new(dir))),
        [store, cycles, batch] => runtime.block_on(run(store, cycles.parse()?, batch.parse()?)),
        _ => bail!("usage: one-cycle volatile|sqlite CYCLES BATCH | fill DIR COUNT | open DIR"),
    }
}

/// How many offers one request of `fill` has.
const FILL_BATCH: usize = 100;

async fn fill(dir: &Path, count: usize) -> anyhow::Result<()> {
    let store = opened(dir).await?;
    let (mut client, _served) = served(&store);
    let offer = json!({
        "from_agent": "sender",
        "to": { "capability": "bench" },
        "intent": "measure the broker",
        "payload": { "type": "bench", "text": "short" },
    });
    let offers = json!({ "offers": vec![offer; FILL_BATCH] }).to_string();
    // What the first ones make is not needed again for the others.
    client.post("/v1/handoffs/batch", &offers).await?;
    let before = resident_bytes()?;
    for _ in 0..count.div_ceil(FILL_BATCH) {
        client.post("/v1/handoffs/batch", &offers).await?;
    }
    let each = (resident_bytes()? - before) / i64::try_from(count)?;
    writeln!(
        std::io::stdout(),
        "{each} bytes of resident memory for each of {count} waiting handoffs"
    )?;
    store.close().await;
    Ok(())
}

async fn open(dir: &Path) -> anyhow::Result<()> {
    let (before, watch) = (resident_bytes()?, Instant::now());
    let store = opened(dir).await?;
    let took = watch.elapsed();
    let waiting = store.stats().waiting_handoffs;
    let each = (resident_bytes()? - before) / i64::try_from(waiting.max(1))?;
    writeln!(
        std::io::stdout(),
        "{waiting} waiting handoffs, opened in {took:?}, {each} bytes of resident memory each"
    )?;
    store.close().await;
    Ok(())
}

async fn opened(dir: &Path) -> anyhow::Result<Arc<dyn Store>> {
    let options = SqliteOptions { dir: dir.to_owned(), sync: Sync::Off };
    Ok(Arc::new(Sqlite::open(options, ManualClock::at(NOW)).await?))
}

/// What this process has in memory, by the system's own count.
fn resident_bytes() -> anyhow::Result<i64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib = line.trim().trim_end_matches(" kB").trim().parse::<i64>()?;
    Ok(kib * 1024)
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
    let (mut client, served) = served(&store);
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

/// A client of a broker over a store, and the broker's side of their connection.
fn served(store: &Arc<dyn Store>) -> (Client, JoinHandle<hyper::Result<()>>) {
    let engine = Engine::start(store.clone(), Arc::new(SystemIds), Settings::default());
    let router =
        tasuki_http::router(engine, Limits { body_bytes_max: PIPE_BYTES, ..Limits::default() });
    let (pipe, server) = tokio::io::duplex(PIPE_BYTES);
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).pipeline_flush(true);
    let served = http.serve_connection(TokioIo::new(server), TowerToHyperService::new(router));
    (Client { pipe, request: Vec::new(), reply: Vec::new() }, tokio::spawn(served))
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

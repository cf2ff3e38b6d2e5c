// SPDX-License-Identifier: Apache-2.0
//! The broker is killed in the middle of the work, and comes back on the same data.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::agent::{Agent, Held};
use super::broker::{Broker, Home};
use super::play::Play;
use super::promise::Promise;
use crate::output::span;

/// So many writers send work while the broker is killed.
const WRITERS: usize = 4;
/// The kill comes when so many were acknowledged, so that it comes while they write.
const BEFORE_KILL: usize = 100;
/// How long a slow disk may take for that.
const PATIENCE: Duration = Duration::from_secs(10);
/// More would not fit on the page that is read back.
const EACH_MAX: usize = 200;

/// What one writer sent, and what was acknowledged.
#[derive(Default)]
struct Written {
    /// Every request that was sent, by its idempotency key.
    keys: Vec<String>,
    /// The handoffs that the broker said were stored.
    acknowledged: Vec<Value>,
}

fn offer(key: &str) -> Value {
    json!({
        "from_agent": "lead",
        "to": { "agent": "archivist" },
        "intent": "File this note.",
        "payload": { "type": "note", "key": key },
        "idempotency_key": key,
    })
}

/// Sends work until the broker is gone.
async fn write(agent: Agent, writer: usize, count: Arc<AtomicUsize>) -> Written {
    let mut written = Written::default();
    for number in 0..EACH_MAX {
        let key = format!("note-{writer}-{number}");
        written.keys.push(key.clone());
        match agent.post("/v1/handoffs", &offer(&key)).await {
            Ok(stored) => {
                written.acknowledged.push(stored["handoff_id"].clone());
                count.fetch_add(1, Ordering::Relaxed);
            }
            Err(_) => break,
        }
    }
    written
}

impl Play {
    pub(super) async fn kill_the_broker(
        &mut self,
        broker: &mut Broker,
        home: &Home,
        mending: &Held,
    ) -> anyhow::Result<()> {
        let (lead, coder) = (self.agent("lead"), self.agent("coder"));
        let path = format!("/v1/tasks/{}", self.task.as_deref().unwrap_or_default());
        let before = lead.get(&path).await?;
        self.say("lead", "sends notes, as fast as it can").await?;
        let count = Arc::new(AtomicUsize::new(0));
        // Not watched: the demo waits for it.
        let begin = |writer| tokio::spawn(write(lead.clone(), writer, count.clone()));
        let writers: Vec<_> = (0..WRITERS).map(begin).collect();
        let until = Instant::now() + PATIENCE;
        while count.load(Ordering::Relaxed) < BEFORE_KILL && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        broker.kill()?;
        let mut all = Written::default();
        for writer in writers {
            let written = writer.await?;
            all.keys.extend(written.keys);
            all.acknowledged.extend(written.acknowledged);
        }
        let count = all.acknowledged.len();
        self.say("broker", &format!("is killed (SIGKILL) after {count} notes were stored")).await?;
        let starts = Instant::now();
        broker.start_again(home).await?;
        let after = span(u64::try_from(starts.elapsed().as_millis()).unwrap_or(u64::MAX));
        self.say("broker", &format!("is back on the same data after {after}")).await?;

        let there = stored(&lead).await?;
        let lost = all.acknowledged.iter().filter(|id| !there.contains(&id.to_string())).count();
        let same = same_log(&lead, &path, &before).await?;
        let saw = format!("{count} notes were acknowledged, {lost} are lost");
        self.note(Promise::NothingLost, count > 0 && lost == 0 && same, saw).await?;

        // Whoever got no answer repeats its request with the same key.
        for key in &all.keys {
            lead.post("/v1/handoffs", &offer(key)).await?;
        }
        let there = stored(&lead).await?.len();
        let sent = all.keys.len();
        let saw = format!("{sent} were sent, all of them once more, {there} are there");
        self.note(Promise::RepeatedOnce, there == sent, saw).await?;

        let beat = coder.act(mending, "heartbeat", &json!({})).await;
        let saw = if beat.is_ok() { "the coder goes on" } else { "the coder lost its claim" };
        self.note(Promise::ClaimSurvives, beat.is_ok(), saw).await
    }
}

/// The notes that are there.
async fn stored(lead: &Agent) -> anyhow::Result<BTreeSet<String>> {
    let page = lead.get("/v1/handoffs?to_agent=archivist&limit=1000").await?;
    let notes = page["handoffs"].as_array().into_iter().flatten();
    Ok(notes.map(|note| note["handoff_id"].to_string()).collect())
}

/// Whether every event that a task had before is still there: the hash of the last one stands for
/// all of them.
async fn same_log(lead: &Agent, path: &str, before: &Value) -> anyhow::Result<bool> {
    let log = lead.get(&format!("{path}/events")).await?;
    let count = before["events"].as_u64().and_then(|count| usize::try_from(count).ok());
    let last = count.and_then(|count| count.checked_sub(1));
    Ok(last.is_some_and(|last| log["events"][last]["hash"] == before["head"]))
}

// SPDX-License-Identifier: Apache-2.0
//! Tells clients what becomes of their tasks. For each config there is a worker that reads the story as
//! a stream does and posts what is new, one piece after the other; how far it came is in the log, so
//! that a restart goes on from there, and of several brokers one sends.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use tasuki_core::registry::pushes::{Push, PushKey, PushTold};
use tasuki_core::{Body, Position};
use tasuki_engine::{Error, Pusher};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::{Config, Secrets};
use crate::calls::Version;
use crate::older;
use crate::ops::value;
use crate::story::{Story, told};
use crate::stream::numbered;

/// How many messages are on their way at once, to all clients together.
const UNDER_WAY_MAX: usize = 64;
/// For how long a broker has a config for itself, and how much of that one try needs.
const TAKEN_MS: u64 = 300_000;
const TRY_MS: u64 = 30_000;
/// How often a message is tried, and how long it rests in between: a second, then twice as long each
/// time, up to a minute. After that the client has to ask; what comes later is sent all the same.
const TRIES_MAX: u32 = 8;
const REST_MS: u64 = 1_000;
const REST_MS_MAX: u64 = 60_000;
/// How long one look for news takes. Then it is asked again whether the owner may see the task.
const LOOK_MS: u64 = 60_000;
/// How long a config is kept when everything was told.
const KEPT_MS: u64 = 60 * 60 * 1000;
/// How long a problem may be.
const PROBLEM_CHARS_MAX: usize = 300;

/// Begins to tell clients, and goes on until the broker goes away.
pub fn start_pushes(pusher: &Pusher) {
    let working = pusher.clone();
    pusher.start("push notifications", async move {
        let places = Arc::new(Semaphore::new(UNDER_WAY_MAX));
        let mut workers: HashMap<PushKey, (Position, JoinHandle<()>)> = HashMap::new();
        let look = |all: Vec<Arc<Push>>| {
            let there: HashMap<_, _> =
                all.iter().map(|push| (&push.set.key, push.config_pos)).collect();
            workers.retain(|key, (at, worker)| {
                let current = there.get(key) == Some(at);
                if !current {
                    worker.abort();
                }
                current
            });
            for push in all {
                let entry = workers.entry(push.set.key.clone());
                let at = push.config_pos;
                entry.or_insert_with(|| {
                    let telling = Telling { pusher: working.clone(), places: places.clone(), push };
                    // Not watched: a panic here costs this client its news, and nobody else.
                    (at, tokio::spawn(telling.run()))
                });
            }
        };
        working.follow(look).await;
        for (_, worker) in workers.into_values() {
            worker.abort();
        }
    });
}

struct Telling {
    pusher: Pusher,
    places: Arc<Semaphore>,
    push: Arc<Push>,
}

/// Why nothing more is told for now.
enum Pause {
    /// For so long.
    For(u64),
    /// For good.
    Over,
}

impl Telling {
    async fn run(mut self) {
        let key = self.push.set.key.clone();
        let config = self.pusher.config(&self.push).await;
        let config = config.and_then(|body: Body| serde_json::from_str::<Config>(body.text()).ok());
        let Some(config) = config else {
            tracing::warn!(handoff = %key.handoff, id = key.id, "a push config cannot be read");
            return;
        };
        let Some(secrets) = config.secrets(&key, &self.pusher.lobby()) else {
            // Another broker set it, and sends.
            tracing::debug!(handoff = %key.handoff, id = key.id, "a push config is another broker's");
            return;
        };
        while !self.pusher.is_closing() {
            match self.tell(&config, &secrets).await {
                Ok(()) => {}
                Err(Pause::For(ms)) => self.pusher.sleep(ms).await,
                Err(Pause::Over) => return,
            }
        }
    }

    /// Tells what is new, or waits for it.
    async fn tell(&mut self, config: &Config, secrets: &Secrets) -> Result<(), Pause> {
        let key = self.push.set.key.clone();
        self.refresh(&key)?;
        let desk = match self.pusher.desk(&self.push) {
            Ok(desk) => desk,
            Err(error) => return self.end(&error).await,
        };
        let chain = match desk.chain(self.push.set.task).await {
            Ok(chain) => chain,
            Err(Error::Store(_)) => return Err(Pause::For(REST_MS_MAX)),
            // Its owner may not see the task any more.
            Err(error) => return self.end(&error).await,
        };
        let Some(story) = told(&chain, key.handoff) else { return Err(Pause::Over) };
        let known = usize::try_from(self.push.told).unwrap_or(usize::MAX);
        if story.generation() > known {
            return self.send(&story, known, config, secrets).await;
        }
        if story.status.state.is_terminal() {
            let since = self.push.moved_at;
            let over = self.pusher.now().ms_after(since);
            if over >= KEPT_MS {
                let _ = self.pusher.end(&key).await;
                return Err(Pause::Over);
            }
            return Err(Pause::For(KEPT_MS - over));
        }
        let moved = desk.task_moved(story.task_id, story.events, LOOK_MS).await;
        moved.map(drop).map_err(|_| Pause::For(REST_MS))
    }

    /// How far it was told by now, if it still is what it was.
    fn refresh(&mut self, key: &PushKey) -> Result<(), Pause> {
        let push = self.pusher.get(key);
        let push = push.filter(|push| push.config_pos == self.push.config_pos);
        self.push = push.ok_or(Pause::Over)?;
        Ok(())
    }

    async fn end(&self, error: &Error) -> Result<(), Pause> {
        let key = &self.push.set.key;
        tracing::info!(handoff = %key.handoff, id = key.id, %error, "a push config is over");
        let _ = self.pusher.end(key).await;
        Err(Pause::Over)
    }

    async fn send(
        &mut self,
        story: &Story,
        known: usize,
        config: &Config,
        secrets: &Secrets,
    ) -> Result<(), Pause> {
        let pieces: Vec<(usize, Value)> = match config.version {
            Version::Today => {
                let news = numbered(story, known.saturating_sub(1));
                news.into_iter().map(|(number, piece)| (number, value(&piece))).collect()
            }
            // There, the whole task is told, as it is by now.
            Version::Older => vec![(story.generation(), older::task_down(value(&story.task())))],
        };
        for (number, piece) in pieces {
            self.send_one(number, &piece, config, secrets).await?;
        }
        Ok(())
    }

    async fn send_one(
        &mut self,
        number: usize,
        piece: &Value,
        config: &Config,
        secrets: &Secrets,
    ) -> Result<(), Pause> {
        let key = self.push.set.key.clone();
        let up_to = u32::try_from(number).unwrap_or(u32::MAX);
        let body = piece.to_string().into_bytes();
        let kind = match config.version {
            Version::Today => "application/a2a+json",
            Version::Older => "application/json",
        };
        let mut tries = 0;
        loop {
            if !self.pusher.taken_by_us(&self.push, TRY_MS) {
                match self.pusher.take(&key, TAKEN_MS).await {
                    Ok(true) => {}
                    // Another broker sends.
                    Ok(false) => return Err(Pause::For(TRY_MS)),
                    Err(_) => return Err(Pause::For(REST_MS)),
                }
            }
            tries += 1;
            let posted = {
                let _place = self.places.acquire().await;
                let headers = headers(config, secrets);
                self.pusher.post(&config.url, kind, headers, body.clone()).await
            };
            let problem = match posted {
                Ok(()) => None,
                Err(_) if tries < TRIES_MAX => {
                    self.pusher.sleep((REST_MS << (tries - 1).min(16)).min(REST_MS_MAX)).await;
                    if self.pusher.is_closing() {
                        return Err(Pause::Over);
                    }
                    self.refresh(&key)?;
                    continue;
                }
                Err(problem) => {
                    tracing::warn!(handoff = %key.handoff, id = key.id, problem,
                        "a client could not be told");
                    Some(problem.chars().take(PROBLEM_CHARS_MAX).collect())
                }
            };
            let sent = problem.is_none();
            let told = PushTold { key: key.clone(), up_to, sent, tries, problem };
            let written = self.pusher.tell(told).await;
            // It is sent twice then: once is what nobody can promise.
            written.map_err(|_| Pause::For(REST_MS))?;
            return self.refresh(&key);
        }
    }
}

fn headers(config: &Config, secrets: &Secrets) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    if let Some(token) = &secrets.token {
        headers.push(("x-a2a-notification-token".to_owned(), token.clone()));
    }
    if let Some(scheme) = &config.scheme {
        let shown = match &secrets.credentials {
            Some(credentials) => format!("{scheme} {credentials}"),
            None => scheme.clone(),
        };
        headers.push(("authorization".to_owned(), shown));
    }
    if config.version == Version::Today {
        headers.push(("a2a-version".to_owned(), "1.0".to_owned()));
    }
    headers
}

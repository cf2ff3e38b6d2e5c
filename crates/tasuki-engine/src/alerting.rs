// SPDX-License-Identifier: Apache-2.0
//! Alerts that people are told of. Every broker finds by itself what holds; what began or ended goes
//! into the log once, and whichever broker takes a notice there sends it. So a restart, or the end of a
//! broker in the middle of a notice, loses none.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::join_all;
use tasuki_core::alert::notice::{Notice, Told};
use tasuki_core::alert::{self, Severity, rules};
use tasuki_core::commands::RegistryWish;
use tasuki_core::event::Actor;
use tasuki_core::registry::alerts::{
    Alert, AlertKey, AlertMoved, AlertWish, NoticeTaken, NoticeTold, Silenced,
};
use tasuki_core::registry::rules::Permission;
use tasuki_core::report::Note;
use tasuki_core::{Body, Command, Position, Refusal, Timestamp};
use tasuki_protocol as wire;

use crate::desk::Desk;
use crate::engine::Engine;
use crate::error::{Error, invalid};

/// For how long a broker has a notice for itself: longer than one try takes.
const TAKEN_MS: u64 = 30_000;
/// How often a notice is tried, and how long it rests in between: a second, then twice as long each
/// time, up to a minute.
const TRIES_MAX: u32 = 8;
const REST_MS: u64 = 1_000;
const REST_MS_MAX: u64 = 60_000;
/// How many webhooks there may be.
pub const WEBHOOKS_MAX: usize = 16;

/// Where notices go.
#[derive(Debug, Clone, Default)]
pub struct Webhooks {
    pub urls: Vec<String>,
    /// Where people find this broker, for the links in a notice.
    pub external_url: String,
}

/// A text on its way to a URL.
#[derive(Debug, Clone)]
pub struct Message {
    pub url: String,
    pub body: Vec<u8>,
    /// The time by the store's clock, for the broker's signature.
    pub now: Timestamp,
    /// A text that was never used before, for the same.
    pub nonce: String,
    /// The trace that it belongs to, as headers.
    pub trace: Vec<(&'static str, String)>,
}

/// Posts texts. An answer of success means that it was taken; anything else says why not.
#[async_trait]
pub trait Messenger: Send + Sync + 'static {
    async fn send(&self, message: Message) -> Result<(), String>;
}

/// A notice that was tried and not sent everywhere.
struct Tried {
    alert: AlertMoved,
    tries: u32,
    again_at: Timestamp,
    left: Vec<String>,
}

impl Engine {
    /// Begins to write down which alerts begin and end, and to send notices of them if there is
    /// anywhere to send them to.
    pub fn start_alerts(self: &Arc<Self>, messenger: Arc<dyn Messenger>) {
        let messenger = self.messenger.get_or_init(|| messenger).clone();
        let engine = self.clone();
        self.start_worker("alerts", async move {
            let mut closing = engine.closing.subscribe();
            loop {
                tokio::select! {
                    () = engine.watched.moved.notified() => {}
                    _ = closing.wait_for(|closing| *closing) => return,
                }
                engine.write_down().await;
            }
        });
        if !self.settings.webhooks.urls.is_empty() {
            self.start_worker("notices", send_all(self.clone(), messenger));
        }
    }

    /// Puts into the log what began and ended, where it is not there yet.
    async fn write_down(&self) {
        let known = self.registry();
        let moved = self.watched.read(|watch| moved(watch, &known.guards.alerts.known));
        let wishes = moved.into_iter().map(AlertWish::Move);
        if let Err(error) = self.wish_alerts(wishes.collect()).await {
            // It is found again with the next change, or after a restart.
            tracing::warn!(%error, "what became of an alert could not be written down");
        }
    }

    async fn wish_alerts(&self, wishes: Vec<AlertWish>) -> Result<(), tasuki_store::Error> {
        if wishes.is_empty() {
            return Ok(());
        }
        let command =
            |wish| Command::registry(Actor::Broker, None, RegistryWish::Alert(Box::new(wish)));
        for reply in self.store.execute(wishes.into_iter().map(command).collect()).await? {
            reply?;
        }
        Ok(())
    }

    fn message(&self, url: &str, notice: &Notice) -> Message {
        let body = serde_json::to_vec(notice).expect("a notice has string keys only");
        let nonce = self.ids.claim().to_string();
        Message { url: url.to_owned(), body, now: self.now(), nonce, trace: Vec::new() }
    }
}

/// What is on and not known to be, and what is known to be on and is not.
fn moved(watch: &alert::Watch, known: &BTreeMap<AlertKey, Arc<Alert>>) -> Vec<AlertMoved> {
    let mut on = BTreeMap::new();
    for (rule, target, standing) in watch.standing() {
        if let Some(since) = standing.fires_since {
            let key = AlertKey { rule: rule.name.into(), target };
            on.insert(key, (since, standing.value.clone()));
        }
    }
    let mut moved = Vec::new();
    for (key, alert) in known.iter().filter(|(key, it)| it.moved.fires && !on.contains_key(key)) {
        let ended = watch
            .alerts
            .history()
            .filter(|it| !it.fires && it.rule == key.rule && it.target == key.target);
        let ended = ended.last().map_or(watch.meters.at, |ended| ended.at);
        let moved_at = ended.max(alert.moved.moved_at);
        moved.push(AlertMoved { fires: false, moved_at, ..alert.moved.clone() });
    }
    for (key, (since, value)) in on {
        if known.get(&key).is_none_or(|alert| !alert.moved.fires) {
            moved.push(AlertMoved { key, fires: true, since, moved_at: since, value });
        }
    }
    moved
}

/// Sends what people have to be told, as long as the broker is there.
async fn send_all(engine: Arc<Engine>, messenger: Arc<dyn Messenger>) {
    let by = engine.ids.claim().to_string();
    let mut closing = engine.closing.subscribe();
    let mut tried: BTreeMap<AlertKey, Tried> = BTreeMap::new();
    loop {
        let known = engine.registry();
        let mut next: Option<Timestamp> = None;
        let mut wake_at =
            |at: Timestamp| next = Some(next.map_or(at, |next: Timestamp| next.min(at)));
        for (key, alert) in &known.guards.alerts.known {
            let now = engine.now();
            if !alert.needs_notice() {
                tried.remove(key);
                continue;
            }
            if let Some(silence) = known.guards.alerts.silence_of(key, now) {
                wake_at(silence.silenced.until);
                continue;
            }
            let other = alert.sender.as_ref().filter(|(who, until)| *who != by && now < *until);
            if let Some((_, until)) = other {
                wake_at(*until);
                continue;
            }
            let again_at =
                tried.get(key).filter(|it| it.alert == alert.moved).map(|it| it.again_at);
            match again_at.filter(|at| *at > now) {
                Some(at) => wake_at(at),
                None => {
                    let sending = Sending { engine: &engine, messenger: &*messenger, by: &by };
                    if let Some(at) = sending.tell(key, alert, &mut tried).await {
                        wake_at(at);
                    }
                }
            }
        }
        let pause = async {
            match next {
                Some(at) => engine.store.clock().sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = engine.watched.noted.notified() => {}
            () = pause => {}
            _ = closing.wait_for(|closing| *closing) => return,
        }
    }
}

struct Sending<'s> {
    engine: &'s Engine,
    messenger: &'s dyn Messenger,
    by: &'s str,
}

impl Sending<'_> {
    /// Tries to tell people of an alert. Returns when to try again, if it has to be.
    async fn tell(
        &self,
        key: &AlertKey,
        alert: &Alert,
        tried: &mut BTreeMap<AlertKey, Tried>,
    ) -> Option<Timestamp> {
        let engine = self.engine;
        let now = engine.now();
        let until = now.plus_ms(TAKEN_MS);
        let taken = NoticeTaken { key: key.clone(), by: self.by.to_owned(), until };
        if let Err(error) = engine.wish_alerts(vec![AlertWish::Take(taken)]).await {
            tracing::warn!(%error, rule = key.rule, "a notice could not be taken");
            return Some(now.plus_ms(REST_MS));
        }
        let known = engine.registry();
        let known = known.guards.alerts.known.get(key)?.clone();
        let is_ours = known.sender.as_ref().is_some_and(|(who, _)| who == self.by);
        if !is_ours || known.moved != alert.moved {
            return None;
        }
        let before = tried.remove(key).filter(|it| it.alert == alert.moved);
        let urls = before.as_ref().map_or(&engine.settings.webhooks.urls, |it| &it.left);
        let tries = before.as_ref().map_or(0, |it| it.tries) + 1;
        let notice = notice(&alert.moved, &engine.settings.webhooks.external_url);
        let sent = urls.iter().map(|url| async {
            let sent = self.messenger.send(engine.message(url, &notice)).await;
            engine.instruments.noticed(sent.is_ok());
            sent.err().map(|problem| (url.clone(), problem))
        });
        let failed: Vec<_> = join_all(sent).await.into_iter().flatten().collect();
        if failed.is_empty() || tries >= TRIES_MAX {
            let problem = failed.first().map(|(url, problem)| format!("{url}: {problem}"));
            if let Some(problem) = &problem {
                tracing::error!(rule = key.rule, problem, "people could not be told of an alert");
            }
            let AlertMoved { fires, since, .. } = alert.moved;
            let sent = problem.is_none();
            let told = NoticeTold { key: key.clone(), fires, since, sent, tries, problem };
            let written = engine.wish_alerts(vec![AlertWish::Tell(told)]).await;
            return written.err().map(|_| now.plus_ms(REST_MS));
        }
        let rest = (REST_MS << (tries - 1).min(16)).min(REST_MS_MAX);
        let again_at = engine.now().plus_ms(rest);
        let left = failed.into_iter().map(|(url, _)| url).collect();
        tried.insert(key.clone(), Tried { alert: alert.moved.clone(), tries, again_at, left });
        Some(again_at)
    }
}

fn notice(moved: &AlertMoved, external_url: &str) -> Notice {
    let told = Told {
        rule: &moved.key.rule,
        target: moved.key.target.as_deref(),
        fires: moved.fires,
        since: moved.since,
        ended: (!moved.fires).then_some(moved.moved_at),
        value: &moved.value,
    };
    Notice::of(&told, external_url)
}

impl Desk {
    /// Whether an alert about this target, or about everything together, is the caller's business.
    fn sees_alert(&self, target: Option<&str>) -> bool {
        if self.counts_all() {
            return true;
        }
        let name = target.and_then(|target| target.split_once(':')).map(|(_, name)| name);
        let tenant = self.caller.tenant();
        name.is_some_and(|name| match name.split_once('/') {
            Some((of, _)) => of == tenant.as_str(),
            None => tenant == tasuki_core::ids::TenantId::default(),
        })
    }

    /// What holds, what ended last, and what people were told.
    pub async fn alerts(&self) -> Result<wire::Alerts, Error> {
        self.caller.must(Permission::Read, None)?;
        self.standing_alerts().await
    }

    async fn standing_alerts(&self) -> Result<wire::Alerts, Error> {
        self.engine.measured().await;
        let now = self.now();
        let registry = self.engine.registry();
        let known = &registry.guards.alerts;
        let mut shown = Vec::new();
        self.engine.watched.read(|watch| {
            for (rule, target, standing) in watch.standing() {
                let key = AlertKey { rule: rule.name.into(), target };
                let state = if standing.fires_since.is_some() { "firing" } else { "pending" };
                let since = standing.fires_since.unwrap_or(standing.since);
                let alert = known.known.get(&key);
                let value = standing.value.clone();
                shown.push(self.alert(key, state, since, None, value, alert, now));
            }
        });
        for (key, alert) in known.known.iter().filter(|(_, alert)| !alert.moved.fires) {
            if !shown.iter().any(|it| it.rule == key.rule && it.target == key.target) {
                let AlertMoved { since, moved_at, value, .. } = alert.moved.clone();
                let ended = Some(moved_at);
                shown.push(self.alert(
                    key.clone(),
                    "resolved",
                    since,
                    ended,
                    value,
                    Some(alert),
                    now,
                ));
            }
        }
        shown.retain(|alert| self.sees_alert(alert.target.as_deref()));
        Ok(wire::Alerts { alerts: shown, silences: self.silences(now).await? })
    }

    #[expect(clippy::too_many_arguments, reason = "it is one row, from two sources")]
    fn alert(
        &self,
        key: AlertKey,
        state: &str,
        since: Timestamp,
        ended_at: Option<Timestamp>,
        value: String,
        alert: Option<&Arc<Alert>>,
        now: Timestamp,
    ) -> wire::Alert {
        let rule = rules::named(&key.rule);
        let told = alert.and_then(|alert| alert.told.as_ref()).map(|told| wire::AlertTold {
            state: if told.fires { "firing".into() } else { "resolved".into() },
            sent: told.sent,
            tries: told.tries,
            problem: told.problem.clone(),
        });
        let silenced = self.engine.registry().guards.alerts.silence_of(&key, now).is_some();
        wire::Alert {
            severity: rule.map_or(Severity::Info, |rule| rule.severity).to_string(),
            summary: rule.map_or_else(String::new, |rule| rule.summary.into()),
            action: rule.map_or_else(String::new, |rule| rule.action.into()),
            rule: key.rule,
            target: key.target,
            state: state.into(),
            since,
            ended_at,
            value,
            silenced,
            told,
        }
    }

    async fn silences(&self, now: Timestamp) -> Result<Vec<wire::Silence>, Error> {
        let registry = self.engine.registry();
        let silences = registry.guards.alerts.silences.values();
        let silences = silences.filter(|silence| now < silence.silenced.until);
        let silences: Vec<_> =
            silences.filter(|it| self.sees_alert(it.silenced.target.as_deref())).collect();
        let at: Vec<Position> = silences.iter().map(|silence| silence.reason_pos).collect();
        let reasons = self.engine.store.bodies(at).await?;
        let shown = silences.into_iter().zip(reasons).map(|(silence, reason)| {
            let note = reason.and_then(|body| serde_json::from_str::<Note>(body.text()).ok());
            wire::Silence {
                rule: silence.silenced.rule.clone(),
                target: silence.silenced.target.clone(),
                since: silence.since,
                until: silence.silenced.until,
                by: silence.by.to_string(),
                reason: note.map(|note| note.text).unwrap_or_default(),
            }
        });
        Ok(shown.collect())
    }

    /// Keeps people from being told of some alerts for a while, or ends that. Who may do so is told how
    /// alerts stand now.
    pub async fn silence(&self, asked: wire::SilenceAlert) -> Result<wire::Alerts, Error> {
        self.caller.must(Permission::Operate, None)?;
        if !self.sees_alert(asked.target.as_deref()) {
            return Err(Refusal::OtherTenant.into());
        }
        if asked.reason.trim().is_empty() {
            return Err(invalid("reason", "expected why nobody is to be told"));
        }
        let reason = self.engine.note(Some(asked.reason))?;
        let reason: Body = reason.ok_or_else(|| invalid("reason", "expected a text"))?;
        let until = self.now().plus_ms(asked.for_ms);
        let (rule, target) = (asked.rule, asked.target);
        let silenced = Silenced { rule, target, until, reason: reason.hash };
        let wish = AlertWish::Silence { silenced, reason };
        self.engine.change(&self.caller, vec![RegistryWish::Alert(Box::new(wish))]).await?;
        self.standing_alerts().await
    }

    /// Sends a notice to every webhook to try it out.
    pub async fn test_webhooks(&self) -> Result<Vec<wire::WebhookTested>, Error> {
        self.operates()?;
        let now = self.now();
        let key = AlertKey { rule: "HandoffTest".into(), target: None };
        let value = "a test: nothing is wrong".into();
        let moved = AlertMoved { key, fires: true, since: now, moved_at: now, value };
        let engine = &self.engine;
        let notice = notice(&moved, &engine.settings.webhooks.external_url);
        let Some(messenger) = engine.messenger.get() else { return Ok(Vec::new()) };
        let sent = engine.settings.webhooks.urls.iter().map(|url| async {
            let sent = messenger.send(engine.message(url, &notice)).await;
            let url = url.clone();
            wire::WebhookTested { url, sent: sent.is_ok(), problem: sent.err() }
        });
        Ok(join_all(sent).await)
    }
}

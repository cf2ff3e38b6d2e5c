// SPDX-License-Identifier: Apache-2.0
//! Alerts as all brokers on a store know them: which ones are on, who tells people of them at the
//! moment, what people were told last, and what is silenced. Every broker finds the same alerts by
//! itself; that a change is in the log once, and that one broker at a time sends, is decided here.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Change, Entry, Registry};
use crate::alert::rules;
use crate::canonical::Body;
use crate::event::{Actor, Sealed};
use crate::ids::{Hash, Position, Timestamp};
use crate::refusal::Refusal;

/// How many silences there may be at once, and for how long one may last.
pub const SILENCES_MAX: usize = 1000;
pub const SILENCE_MS_MAX: u64 = 30 * 24 * 60 * 60 * 1000;
/// How long a target's name may be.
const TARGET_BYTES_MAX: usize = 300;

/// Which alert: a rule, and the target that it is about, if it is about one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct AlertKey {
    pub rule: String,
    /// As metrics call it: `agent:` or `capability:` and the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// An alert that began or ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AlertMoved {
    #[serde(flatten)]
    pub key: AlertKey,
    pub fires: bool,
    /// Since when it fires, or fired.
    pub since: Timestamp,
    /// When it began or ended, by the times of the log.
    pub moved_at: Timestamp,
    /// What was found.
    pub value: String,
}

/// A broker tells people of an alert from here on, and no other until then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoticeTaken {
    #[serde(flatten)]
    pub key: AlertKey,
    pub by: String,
    pub until: Timestamp,
}

/// People were told of an alert, or could not be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoticeTold {
    #[serde(flatten)]
    pub key: AlertKey,
    pub fires: bool,
    pub since: Timestamp,
    pub sent: bool,
    pub tries: u32,
    /// Why it was not sent everywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Nobody is told of some alerts until then; the body is the reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Silenced {
    /// Without one, all rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Without one, all targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    pub until: Timestamp,
    pub reason: Hash,
}

/// A rule that holds for a target, or has held, and who was told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alert {
    pub moved: AlertMoved,
    /// Who tells people of it at the moment, and until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<(String, Timestamp)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<NoticeTold>,
}

/// Keeps notices of some alerts from being sent until a time, for a reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Silence {
    pub silenced: Silenced,
    pub by: Actor,
    pub since: Timestamp,
    /// Where the reason is kept.
    #[serde(rename = "at")]
    pub reason_pos: Position,
}

/// What may be wished for about alerts.
#[derive(Debug, Clone)]
pub enum AlertWish {
    Move(AlertMoved),
    Take(NoticeTaken),
    Tell(NoticeTold),
    Silence { silenced: Silenced, reason: Body },
}

impl Alert {
    /// Whether people have to be told of how it is now. Whoever was not told that it began need not be
    /// told that it ended.
    #[must_use]
    pub fn needs_notice(&self) -> bool {
        let known = self.told.as_ref().filter(|told| told.since == self.moved.since);
        match (self.moved.fires, known) {
            (true, known) => known.is_none(),
            (false, Some(told)) => told.fires && told.sent,
            (false, None) => false,
        }
    }
}

impl Silence {
    #[must_use]
    pub fn covers(&self, key: &AlertKey, now: Timestamp) -> bool {
        let silenced = &self.silenced;
        now < silenced.until
            && silenced.rule.as_ref().is_none_or(|rule| *rule == key.rule)
            && silenced.target.as_ref().is_none_or(|target| key.target.as_ref() == Some(target))
    }
}

/// All that is known of alerts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Alerts {
    pub known: BTreeMap<AlertKey, Arc<Alert>>,
    /// By rule and target.
    pub silences: BTreeMap<(Option<String>, Option<String>), Arc<Silence>>,
}

impl Alerts {
    /// The silence that covers an alert, if one does.
    #[must_use]
    pub fn silence_of(&self, key: &AlertKey, now: Timestamp) -> Option<&Arc<Silence>> {
        self.silences.values().find(|silence| silence.covers(key, now))
    }
}

impl AlertWish {
    pub(crate) fn body(&self) -> Option<&Body> {
        match self {
            Self::Silence { reason, .. } => Some(reason),
            Self::Move(_) | Self::Take(_) | Self::Tell(_) => None,
        }
    }

    /// What changes, or nothing where it is so already.
    pub(crate) fn decide(
        &self,
        known: &Registry,
        now: Timestamp,
    ) -> Result<Option<Change>, Refusal> {
        let alerts = &known.guards.alerts;
        let found = |key: &AlertKey| alerts.known.get(key).map(|known| &**known);
        Ok(match self {
            Self::Move(moved) => {
                let before = found(&moved.key);
                // Another broker may have come further, and a broker that lags must not undo that.
                let is_news = match before {
                    None => moved.fires,
                    Some(before) => {
                        before.moved.fires != moved.fires && before.moved.moved_at <= moved.moved_at
                    }
                };
                is_news.then(|| Change::AlertMoved(moved.clone()))
            }
            Self::Take(taken) => {
                let free = found(&taken.key).is_some_and(|alert| {
                    let sender = alert.sender.as_ref();
                    let held = sender.is_some_and(|(by, until)| *by != taken.by && now < *until);
                    alert.needs_notice() && !held
                });
                free.then(|| Change::NoticeTaken(taken.clone()))
            }
            Self::Tell(told) => {
                let is_news =
                    found(&told.key).is_some_and(|alert| alert.told.as_ref() != Some(told));
                is_news.then(|| Change::NoticeTold(told.clone()))
            }
            Self::Silence { silenced, .. } => {
                check(silenced, now)?;
                let key = (silenced.rule.clone(), silenced.target.clone());
                let new = !alerts.silences.contains_key(&key);
                let ends = silenced.until <= now;
                if new && ends {
                    return Ok(None);
                }
                let count = alerts.silences.values().filter(|it| now < it.silenced.until).count();
                if new && count >= SILENCES_MAX {
                    let text = format!("there are {SILENCES_MAX} silences already");
                    return Err(Refusal::InvalidTerms(text));
                }
                Some(Change::AlertSilenced(silenced.clone()))
            }
        })
    }
}

fn check(silenced: &Silenced, now: Timestamp) -> Result<(), Refusal> {
    if let Some(rule) = silenced.rule.as_ref().filter(|rule| rules::named(rule).is_none()) {
        return Err(Refusal::InvalidTerms(format!("there is no rule {rule:?}")));
    }
    if silenced.target.as_ref().is_some_and(|target| target.len() > TARGET_BYTES_MAX) {
        let text = format!("target has more than {TARGET_BYTES_MAX} bytes");
        return Err(Refusal::InvalidTerms(text));
    }
    if silenced.until.ms_after(now) > SILENCE_MS_MAX {
        return Err(Refusal::InvalidTerms("a silence lasts 30 days at most".into()));
    }
    Ok(())
}

/// What an event makes of what is known, if it is about alerts.
pub(super) fn after(alerts: &Alerts, change: &Change, sealed: &Sealed) -> Option<Entry> {
    let known = |key: &AlertKey| alerts.known.get(key).map(|known| (**known).clone());
    let alert = |alert: Alert| Some(Entry::Alert(Arc::new(alert)));
    match change {
        Change::AlertMoved(moved) => {
            let told = known(&moved.key).and_then(|known| known.told);
            alert(Alert { moved: moved.clone(), sender: None, told })
        }
        Change::NoticeTaken(taken) => {
            let sender = Some((taken.by.clone(), taken.until));
            alert(Alert { sender, ..known(&taken.key)? })
        }
        Change::NoticeTold(told) => {
            let told_last = Some(told.clone());
            alert(Alert { sender: None, told: told_last, ..known(&told.key)? })
        }
        Change::AlertSilenced(silenced) => Some(Entry::Silence(Arc::new(Silence {
            silenced: silenced.clone(),
            by: sealed.record.actor.clone(),
            since: sealed.record.at,
            reason_pos: sealed.position,
        }))),
        _ => None,
    }
}

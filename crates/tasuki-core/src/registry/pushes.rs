// SPDX-License-Identifier: Apache-2.0
//! Push notifications that clients asked for: where to, how far each of them was told, and which broker
//! sends at the moment. What to send, and whether it arrived, is for doors to find out; that one broker
//! at a time sends, and that nothing that was sent is sent again, is decided here.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Change, Entry, Registry};
use crate::canonical::Body;
use crate::event::Sealed;
use crate::ids::{AgentId, HandoffId, Hash, Position, TaskId, Timestamp};
use crate::refusal::Refusal;

/// How many configs one handoff may have, and all of them together.
pub const PUSHES_PER_HANDOFF_MAX: usize = 10;
pub const PUSHES_MAX: usize = 10_000;
/// How long the id of a config may be.
pub const PUSH_ID_BYTES_MAX: usize = 128;

/// Which config: of the work that begins with a handoff, under an id of its own.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct PushKey {
    pub handoff: HandoffId,
    pub id: String,
}

/// Somebody wants to be told what becomes of a task; the body says where and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PushSet {
    #[serde(flatten)]
    pub key: PushKey,
    pub task: TaskId,
    /// Whose it is; nobody's where nobody has to say who it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<AgentId>,
    /// The change of the task that was the last one by then.
    pub told: u32,
    pub config: Hash,
}

/// A broker sends from here on, and no other until then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PushTaken {
    #[serde(flatten)]
    pub key: PushKey,
    pub by: String,
    pub until: Timestamp,
}

/// Everything up to a change was sent, or the last of it could not be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PushTold {
    #[serde(flatten)]
    pub key: PushKey,
    pub up_to: u32,
    pub sent: bool,
    /// How often it was tried.
    pub tries: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// What is known of a config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Push {
    pub set: PushSet,
    /// Where the config is kept.
    #[serde(rename = "at")]
    pub config_pos: Position,
    pub since: Timestamp,
    /// Up to which change it was told.
    pub told: u32,
    /// Since when nothing moved.
    pub moved_at: Timestamp,
    /// Who sends at the moment, and until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<(String, Timestamp)>,
    /// It was deleted, or its task is over; a store keeps a row of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
}

/// What may be wished for about configs.
#[derive(Debug, Clone)]
pub enum PushWish {
    Set { set: PushSet, config: Body },
    Take(PushTaken),
    Tell(PushTold),
    End(PushKey),
}

/// Those that are not over.
pub type Pushes = BTreeMap<PushKey, Arc<Push>>;

impl PushWish {
    pub(crate) fn body(&self) -> Option<&Body> {
        match self {
            Self::Set { config, .. } => Some(config),
            Self::Take(_) | Self::Tell(_) | Self::End(_) => None,
        }
    }

    /// What changes, or nothing where it is so already.
    pub(crate) fn decide(
        &self,
        known: &Registry,
        now: Timestamp,
    ) -> Result<Option<Change>, Refusal> {
        let pushes = &known.guards.pushes;
        Ok(match self {
            Self::Set { set, .. } => {
                check(set, pushes)?;
                let same = |push: &Arc<Push>| push.set.config == set.config;
                let known = pushes.get(&set.key).is_some_and(same);
                (!known).then(|| Change::PushSet(set.clone()))
            }
            Self::Take(taken) => {
                let free = pushes.get(&taken.key).is_some_and(|push| {
                    let sender = push.sender.as_ref();
                    !sender.is_some_and(|(by, until)| *by != taken.by && now < *until)
                });
                free.then(|| Change::PushTaken(taken.clone()))
            }
            Self::Tell(told) => {
                let is_news = pushes.get(&told.key).is_some_and(|push| push.told < told.up_to);
                is_news.then(|| Change::PushTold(told.clone()))
            }
            Self::End(key) => pushes.contains_key(key).then(|| Change::PushEnded(key.clone())),
        })
    }
}

fn check(set: &PushSet, pushes: &Pushes) -> Result<(), Refusal> {
    let wrong = |text: String| Err(Refusal::InvalidTerms(text));
    let id = &set.key.id;
    if id.is_empty() || id.len() > PUSH_ID_BYTES_MAX || id.chars().any(char::is_control) {
        return wrong(format!("the id of a push config has 1 to {PUSH_ID_BYTES_MAX} bytes"));
    }
    let of_handoff = |key: &&PushKey| key.handoff == set.key.handoff;
    match pushes.get(&set.key) {
        Some(push) if push.set.owner != set.owner => {
            return wrong(format!("a push config {id:?} is there already"));
        }
        Some(_) => {}
        None if pushes.keys().filter(of_handoff).count() >= PUSHES_PER_HANDOFF_MAX => {
            return wrong(format!("the task has {PUSHES_PER_HANDOFF_MAX} push configs already"));
        }
        None if pushes.len() >= PUSHES_MAX => {
            return wrong(format!("there are {PUSHES_MAX} push configs already"));
        }
        None => {}
    }
    Ok(())
}

/// What an event makes of what is known, if it is about configs.
pub(super) fn after(pushes: &Pushes, change: &Change, sealed: &Sealed) -> Option<Entry> {
    let now = sealed.record.at;
    let known = |key: &PushKey| pushes.get(key).map(|push| (**push).clone());
    let push = match change {
        Change::PushSet(set) => Push {
            set: set.clone(),
            config_pos: sealed.position,
            since: now,
            told: set.told,
            moved_at: now,
            sender: None,
            ended: false,
        },
        Change::PushTaken(taken) => {
            let sender = Some((taken.by.clone(), taken.until));
            Push { sender, ..known(&taken.key)? }
        }
        Change::PushTold(told) => Push { told: told.up_to, moved_at: now, ..known(&told.key)? },
        Change::PushEnded(key) => Push { sender: None, ended: true, ..known(key)? },
        _ => return None,
    };
    Some(Entry::Push(Arc::new(push)))
}

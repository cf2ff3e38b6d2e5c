// SPDX-License-Identifier: Apache-2.0
//! One call of the protocol, by its method of today: which operation of ours it stands for, and what is
//! answered. Both bindings end here.

use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tasuki_engine::operations::{Entry, Operation, Streamed, entry, handoffs, streams, tasks};

use crate::card::Place;
use crate::fault::{Fault, Kind};
use crate::model::{Piece, cut, read};
use crate::ops::{Talk, value};
use crate::stream::{Wrap, sent, subscribed};

/// Every method of today.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Send,
    Stream,
    Get,
    List,
    Cancel,
    Subscribe,
    CreatePush,
    GetPush,
    ListPush,
    DeletePush,
    Card,
}

impl Method {
    pub(crate) const ALL: [(Self, &'static str); 11] = [
        (Self::Send, "SendMessage"),
        (Self::Stream, "SendStreamingMessage"),
        (Self::Get, "GetTask"),
        (Self::List, "ListTasks"),
        (Self::Cancel, "CancelTask"),
        (Self::Subscribe, "SubscribeToTask"),
        (Self::CreatePush, "CreateTaskPushNotificationConfig"),
        (Self::GetPush, "GetTaskPushNotificationConfig"),
        (Self::ListPush, "ListTaskPushNotificationConfigs"),
        (Self::DeletePush, "DeleteTaskPushNotificationConfig"),
        (Self::Card, "GetExtendedAgentCard"),
    ];

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(method, _)| *method)
    }

    pub(crate) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(method, _)| *method == self).map_or("", |(_, name)| name)
    }

    /// The operation of ours that says who may ask, and how it counts.
    pub(crate) fn entry(self) -> &'static Entry {
        let facts = match self {
            Self::Send => &handoffs::Offer::FACTS,
            Self::Stream | Self::Subscribe => &streams::Events::FACTS,
            Self::Cancel | Self::CreatePush | Self::DeletePush => &tasks::Cancel::FACTS,
            Self::List => &handoffs::List::FACTS,
            Self::Card => &tasuki_engine::operations::agents::Show::FACTS,
            Self::Get | Self::GetPush | Self::ListPush => &tasks::Events::FACTS,
        };
        entry(facts)
    }
}

/// What is answered.
pub(crate) enum Answered {
    Value(Value),
    Stream(Response),
}

/// What a call needs besides what it asks.
#[derive(Clone, Copy)]
pub(crate) struct With<'w> {
    pub(crate) place: &'w Place<'w>,
    pub(crate) headers: &'w HeaderMap,
    /// Whether one more wait may begin; if not, a send is answered at once.
    pub(crate) may_wait: &'w (dyn Fn() -> Option<tasuki_front::Waiting> + Sync),
}

/// Carries out a call.
pub(crate) async fn call(
    method: Method,
    mut talk: Talk,
    params: Value,
    with: With<'_>,
    wrap: Wrap,
) -> Result<Answered, Fault> {
    let answered = match method {
        Method::Send => {
            let done = talk.send(read(params)?).await?;
            let waiting = match done.configuration.return_immediately {
                true => None,
                false => (with.may_wait)(),
            };
            let story = match waiting {
                Some(_held) => talk.settled(done.story).await?,
                None => done.story,
            };
            value(&Piece::Task(cut(story.task(), done.configuration.history_length)))
        }
        Method::Stream => {
            let done = talk.send(read(params)?).await?;
            return Ok(Answered::Stream(sent(talk, done.story, &done.configuration, wrap)));
        }
        Method::Subscribe => {
            let asked: crate::model::Named = read(params)?;
            talk.at = talk.at.meant(asked.tenant.as_deref())?;
            let id = asked.id.ok_or_else(|| Fault::params("id", "is missing"))?;
            let story = talk.find(&id).await?;
            return Ok(Answered::Stream(subscribed(talk, story, with.headers, wrap)?));
        }
        Method::Get => value(&talk.get(read(params)?).await?),
        Method::List => value(&talk.list(read(params)?).await?),
        Method::Cancel => value(&talk.cancel(read(params)?).await?),
        Method::Card => {
            let asked: crate::model::Named = read(params)?;
            talk.at = talk.at.meant(asked.tenant.as_deref())?;
            match talk.at.seen(&talk.desk).await? {
                Some(seen) => with.place.agent(&seen, &talk.at, true),
                None => with.place.broker(&crate::known(&talk.desk).await?),
            }
        }
        Method::CreatePush => talk.set_push(params).await?,
        Method::GetPush => talk.get_push(read(params)?).await?,
        Method::ListPush => talk.list_pushes(read(params)?).await?,
        Method::DeletePush => talk.delete_push(read(params)?).await?,
    };
    Ok(Answered::Value(answered))
}

/// Which version of the protocol a client says that it speaks.
pub(crate) fn version(headers: &HeaderMap, query: Option<&str>) -> Result<Option<Version>, Fault> {
    let header = headers.get("a2a-version").map(|it| it.to_str().unwrap_or("?").trim().to_owned());
    let asked = query.and_then(|query| {
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        pairs.find(|(name, _)| name.eq_ignore_ascii_case("a2a-version")).map(|(_, it)| it.into())
    });
    let said: Option<String> = header.or(asked).filter(|said: &String| !said.is_empty());
    // Which patch somebody has makes no difference.
    let minor = |said: &str| said.split('.').take(2).collect::<Vec<_>>().join(".");
    match said.as_deref().map(minor).as_deref() {
        None => Ok(None),
        Some("1.0") => Ok(Some(Version::Today)),
        Some("0.3") => Ok(Some(Version::Older)),
        Some(_) => {
            let said = said.unwrap_or_default();
            let message = format!("version {said} is not spoken here; 1.0 and 0.3 are");
            Err(Fault::new(Kind::VersionNotSupported, message))
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Version {
    /// 1.0
    #[serde(rename = "1.0")]
    Today,
    /// 0.3
    #[serde(rename = "0.3")]
    Older,
}

/// An answer of JSON-RPC.
pub(crate) fn rpc(id: &Value, result: Result<Value, &Fault>) -> Value {
    match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(fault) => json!({ "jsonrpc": "2.0", "id": id, "error": fault.rpc() }),
    }
}

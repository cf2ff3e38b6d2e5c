// SPDX-License-Identifier: Apache-2.0
//! Push notifications: what clients say about them, and what of that is kept. Configs are in the log, so
//! they survive whatever the task survives; what is secret in one is sealed with the broker's own key.

mod seal;
mod sender;

use axum::http::HeaderValue;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tasuki_core::canonical::Body;
use tasuki_core::registry::pushes::{PUSH_ID_BYTES_MAX, PushKey, PushSet};
use tasuki_engine::{Desk, Lobby};

use crate::calls::Version;
use crate::fault::Fault;
use crate::model::{Named, read as parsed};
use crate::ops::Talk;
use crate::story::Story;

pub use sender::start_pushes;

/// How much a token or credentials may have.
const SECRET_BYTES_MAX: usize = 4096;
const URL_BYTES_MAX: usize = 2048;

/// Where and how somebody wants to be told.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Config {
    pub(crate) url: String,
    pub(crate) version: Version,
    /// The scheme of `Authorization`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) scheme: Option<String>,
    #[serde(flatten)]
    kept: Kept,
}

/// What nobody else is to know: as it is only where the broker has no key.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kept {
    Sealed { with: String, text: String },
    Plain(Secrets),
}

#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Secrets {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) credentials: Option<String>,
}

/// A config as the protocol has it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Said {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    authentication: Option<Shown>,
}

#[derive(Deserialize)]
struct Shown {
    #[serde(default)]
    scheme: Option<String>,
    #[serde(default)]
    credentials: Option<String>,
}

/// Something that was read and is not kept yet.
pub(crate) struct Asked {
    url: String,
    version: Version,
    scheme: Option<String>,
    secrets: Secrets,
}

fn named(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

/// Reads what a client says, and holds it against what may be.
pub(crate) fn read(
    config: Value,
    desk: &Desk,
    version: Version,
) -> Result<(Option<String>, Asked), Fault> {
    let said: Said = parsed(config)?;
    let id = named(said.id);
    if id.as_ref().is_some_and(|id| id.len() > PUSH_ID_BYTES_MAX || id.contains('/')) {
        return Err(Fault::params("id", "expected up to 128 bytes without a slash"));
    }
    let url = named(said.url).ok_or_else(|| Fault::params("url", "is missing"))?;
    if url.len() > URL_BYTES_MAX {
        return Err(Fault::params("url", format!("has more than {URL_BYTES_MAX} bytes")));
    }
    desk.check_url("url", &url)?;
    let token = named(said.token);
    let shown = said.authentication;
    let (scheme, credentials) =
        shown.map_or((None, None), |shown| (named(shown.scheme), named(shown.credentials)));
    for (field, text) in [
        ("token", &token),
        ("authentication.scheme", &scheme),
        ("authentication.credentials", &credentials),
    ] {
        let Some(text) = text else { continue };
        if text.len() > SECRET_BYTES_MAX || HeaderValue::from_str(text).is_err() {
            return Err(Fault::params(field, "does not fit into a header"));
        }
    }
    if credentials.is_some() && scheme.is_none() {
        return Err(Fault::params("authentication.scheme", "is missing"));
    }
    let secrets = Secrets { token, credentials };
    Ok((id, Asked { url, version, scheme, secrets }))
}

/// What a secret of a config is bound to, so that it opens nowhere else.
fn bound_to(key: &PushKey) -> String {
    format!("{}/{}", key.handoff, key.id)
}

impl Config {
    fn of(asked: &Asked, key: &PushKey, lobby: &Lobby) -> Option<Self> {
        let kept = match lobby.derived(seal::PURPOSE) {
            Some((with, secret)) => {
                let text = serde_json::to_vec(&asked.secrets).ok()?;
                let text = seal::seal(&secret, &bound_to(key), text)?;
                Kept::Sealed { with: with.to_string(), text }
            }
            None => Kept::Plain(asked.secrets.clone()),
        };
        let (url, scheme) = (asked.url.clone(), asked.scheme.clone());
        Some(Self { url, version: asked.version, scheme, kept })
    }

    /// The secrets in it, if this broker is the one that can open them.
    pub(crate) fn secrets(&self, key: &PushKey, lobby: &Lobby) -> Option<Secrets> {
        match &self.kept {
            Kept::Plain(secrets) => Some(secrets.clone()),
            Kept::Sealed { with, text } => {
                let (own, secret) = lobby.derived(seal::PURPOSE)?;
                if *with != own.to_string() {
                    return None;
                }
                serde_json::from_slice(&seal::open(&secret, &bound_to(key), text)?).ok()
            }
        }
    }

    /// As the protocol shows it. The credentials are told to nobody again.
    fn shown(&self, key: &PushKey, lobby: &Lobby) -> Value {
        let mut told = json!({ "id": key.id, "taskId": key.handoff, "url": self.url });
        if let Some(token) = self.secrets(key, lobby).and_then(|secrets| secrets.token) {
            told["token"] = json!(token);
        }
        if let Some(scheme) = &self.scheme {
            told["authentication"] = json!({ "scheme": scheme });
        }
        told
    }
}

impl Talk {
    pub(crate) async fn set_push(&mut self, params: Value) -> Result<Value, Fault> {
        let named: Named = parsed(params.clone())?;
        self.at = self.at.meant(named.tenant.as_deref())?;
        let task = named.task_id.ok_or_else(|| Fault::params("taskId", "is missing"))?;
        let story = self.find(&task).await?;
        let (id, asked) = read(params, &self.desk, self.version)?;
        self.keep_push(&story, id, &asked).await
    }

    /// Keeps a config: what happens to the task from here on is told there.
    pub(crate) async fn keep_push(
        &self,
        story: &Story,
        id: Option<String>,
        asked: &Asked,
    ) -> Result<Value, Fault> {
        let id = id.unwrap_or_else(|| story.id.to_string());
        let key = PushKey { handoff: story.id, id };
        let lobby = self.desk.lobby();
        let config = Config::of(asked, &key, &lobby);
        let config = config.ok_or_else(|| Fault::params("token", "cannot be kept"))?;
        let body = Body::of(&serde_json::to_value(&config).unwrap_or_default());
        let set = PushSet {
            key: key.clone(),
            task: story.task_id,
            owner: None,
            told: u32::try_from(story.generation()).unwrap_or(u32::MAX),
            config: body.hash,
        };
        self.desk.set_push(set, body).await.map_err(|error| Fault::from(error).about(&key.id))?;
        Ok(config.shown(&key, &lobby))
    }

    /// The caller's configs of a task.
    async fn pushes(&mut self, named: &Named) -> Result<(Story, Vec<(String, Value)>), Fault> {
        self.at = self.at.meant(named.tenant.as_deref())?;
        let task = named.task_id.as_deref();
        let story = self.find(task.ok_or_else(|| Fault::params("taskId", "is missing"))?).await?;
        let lobby = self.desk.lobby();
        let kept = self.desk.pushes(story.id).await?;
        let shown = kept.into_iter().filter_map(|(push, body)| {
            let config: Config = serde_json::from_str(body.text()).ok()?;
            Some((push.set.key.id.clone(), config.shown(&push.set.key, &lobby)))
        });
        let shown = shown.collect();
        Ok((story, shown))
    }

    pub(crate) async fn get_push(&mut self, named: Named) -> Result<Value, Fault> {
        let (story, kept) = self.pushes(&named).await?;
        // Who names none means the one that was set without a name.
        let id = named.id.unwrap_or_else(|| story.id.to_string());
        let found = kept.into_iter().find(|(known, _)| *known == id);
        found.map(|(_, config)| config).ok_or_else(|| Fault::no_push(&id))
    }

    pub(crate) async fn list_pushes(&mut self, named: Named) -> Result<Value, Fault> {
        let (_, kept) = self.pushes(&named).await?;
        let configs: Vec<_> = kept.into_iter().map(|(_, config)| config).collect();
        Ok(json!({ "configs": configs }))
    }

    /// One that is not there is deleted already.
    pub(crate) async fn delete_push(&mut self, named: Named) -> Result<Value, Fault> {
        self.at = self.at.meant(named.tenant.as_deref())?;
        let task = named.task_id.ok_or_else(|| Fault::params("taskId", "is missing"))?;
        let id = named.id.ok_or_else(|| Fault::params("id", "is missing"))?;
        let story = self.find(&task).await?;
        self.desk.delete_push(story.id, &id).await?;
        Ok(Value::Object(Map::new()))
    }
}

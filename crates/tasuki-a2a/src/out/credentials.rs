// SPDX-License-Identifier: Apache-2.0
//! What the broker shows to agents elsewhere. An administrator names for each agent where its
//! credentials are (a file or the environment), and the origin that they are for; the agent's card says
//! which of them it wants. They are read when they are needed, go to no other origin, and stand in no
//! manifest, log or error.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use base64::prelude::*;
use serde::Deserialize;
use serde_json::Value;
use tasuki_core::address::Endpoint;
use tasuki_core::{AgentId, Timestamp};
use tasuki_front::{Identity, Outgoing, Outside};
use tokio::sync::Mutex;

use super::trouble::Trouble;
use super::{asked, origin};

/// How long a token counts whose giver does not say so, and how much earlier a new one is asked for.
const TOKEN_MS: u64 = 300_000;
const EARLIER_MS: u64 = 30_000;
const REPLY_BYTES_MAX: usize = 64 * 1024;

/// Where credentials are, as an administrator wrote it down.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credentials {
    #[serde(default)]
    remote: Vec<Remote>,
    #[serde(skip)]
    tokens: Mutex<HashMap<(AgentId, String), (String, Timestamp)>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Remote {
    agent: AgentId,
    /// Such as `https://agent.example`; nothing goes anywhere else.
    origin: String,
    bearer: Option<Source>,
    api_key: Option<Source>,
    oauth: Option<OAuth>,
    certificate: Option<Certificate>,
}

/// Where a secret is.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Source {
    Env(String),
    File(PathBuf),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OAuth {
    token_url: String,
    client_id: String,
    client_secret: Source,
    #[serde(default)]
    scopes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Certificate {
    chain: PathBuf,
    key: PathBuf,
}

impl Source {
    fn read(&self) -> Result<String, String> {
        let text = match self {
            Self::Env(name) => {
                std::env::var(name).map_err(|_| format!("the variable {name} is not set"))?
            }
            Self::File(path) => std::fs::read_to_string(path)
                .map_err(|error| format!("cannot read {}: {error}", path.display()))?,
        };
        let text = text.trim_end_matches(['\r', '\n']).to_owned();
        match text.is_empty() || axum::http::HeaderValue::from_str(&text).is_err() {
            true => Err("a secret is empty or does not fit into a header".into()),
            false => Ok(text),
        }
    }

    fn file(&self) -> Option<&PathBuf> {
        match self {
            Self::File(path) => Some(path),
            Self::Env(_) => None,
        }
    }
}

impl Certificate {
    fn read(&self) -> Result<Identity, String> {
        Identity::read(&self.chain, &self.key)
    }
}

/// What goes with a request.
#[derive(Clone, Default)]
pub(super) struct Shown {
    pub(super) headers: Vec<(String, String)>,
    pub(super) query: Vec<(String, String)>,
    pub(super) identity: Option<Arc<Identity>>,
}

/// As it stands in a form.
fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// One thing that a card asks for.
enum Wanted {
    Bearer,
    ApiKey { place: String, name: String },
    OAuth,
    Certificate,
    Other,
}

fn wanted(card: &Value, name: &str) -> Wanted {
    let scheme = &card["securitySchemes"][name];
    let today = |member: &str| scheme.get(member);
    let text = |value: &Value, member: &str| value[member].as_str().unwrap_or_default().to_owned();
    let kind = scheme["type"].as_str().unwrap_or_default();
    if let Some(http) = today("httpAuthSecurityScheme").or((kind == "http").then_some(scheme)) {
        return match text(http, "scheme").eq_ignore_ascii_case("bearer") {
            true => Wanted::Bearer,
            false => Wanted::Other,
        };
    }
    if let Some(key) = today("apiKeySecurityScheme").or((kind == "apiKey").then_some(scheme)) {
        let place = key.get("location").or_else(|| key.get("in")).and_then(Value::as_str);
        let place = place.unwrap_or_default().to_ascii_lowercase();
        return Wanted::ApiKey { place, name: text(key, "name") };
    }
    let oauth = [today("oauth2SecurityScheme"), today("openIdConnectSecurityScheme")];
    if oauth.into_iter().any(|it| it.is_some()) || ["oauth2", "openIdConnect"].contains(&kind) {
        return Wanted::OAuth;
    }
    match today("mtlsSecurityScheme").is_some() || kind == "mutualTLS" {
        true => Wanted::Certificate,
        false => Wanted::Other,
    }
}

/// The alternatives of a card, each with the names of all that it takes.
fn alternatives(card: &Value) -> Vec<Vec<String>> {
    let names = |value: &Value| -> Vec<String> {
        value.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
    };
    if let Some(today) = card["securityRequirements"].as_array().filter(|list| !list.is_empty()) {
        return today.iter().map(|one| names(&one["schemes"])).collect();
    }
    card["security"].as_array().into_iter().flatten().map(names).collect()
}

impl Credentials {
    /// Checks what can be checked before anything is sent.
    pub fn check(&self) -> Result<(), String> {
        for (number, remote) in self.remote.iter().enumerate() {
            let of = |problem: String| format!("remote {number} ({}): {problem}", remote.agent);
            let place = Endpoint::parse(&remote.origin).map_err(|error| of(error.to_owned()))?;
            if place.path != "/" || place.query.is_some() {
                return Err(of("origin: expected a scheme, a host and a port alone".into()));
            }
            let secrets = [&remote.bearer, &remote.api_key].into_iter().flatten();
            let secrets = secrets.chain(remote.oauth.as_ref().map(|oauth| &oauth.client_secret));
            for secret in secrets {
                secret.read().map_err(of)?;
            }
            if let Some(oauth) = &remote.oauth {
                Endpoint::parse(&oauth.token_url).map_err(|error| of(error.to_owned()))?;
            }
            if let Some(certificate) = &remote.certificate {
                certificate.read().map_err(of)?;
            }
        }
        Ok(())
    }

    /// The files that hold secrets.
    pub fn files(&self) -> Vec<PathBuf> {
        let of = |remote: &Remote| {
            let oauth = remote.oauth.as_ref().and_then(|oauth| oauth.client_secret.file());
            let plain = [&remote.bearer, &remote.api_key];
            let plain = plain.into_iter().flatten().filter_map(Source::file);
            let key = remote.certificate.as_ref().map(|certificate| &certificate.key);
            plain.chain(oauth).chain(key).cloned().collect::<Vec<_>>()
        };
        self.remote.iter().flat_map(of).collect()
    }

    /// What an agent's card wants to be shown at an address. With `anew`, what was shown last was not
    /// taken.
    pub(super) async fn shown(
        &self,
        outside: &dyn Outside,
        (agent, url): (&AgentId, &str),
        card: &Value,
        (now, anew): (Timestamp, bool),
    ) -> Result<Shown, Trouble> {
        let alternatives = alternatives(card);
        if alternatives.is_empty() || alternatives.iter().any(Vec::is_empty) {
            return Ok(Shown::default());
        }
        let place = origin(url);
        let fits = |remote: &&Remote| {
            remote.agent == *agent && place.is_some() && origin(&remote.origin) == place
        };
        let Some(remote) = self.remote.iter().find(fits) else {
            return Err(Trouble::Credentials(format!(
                "the agent asks who is there, and nobody named credentials of {agent} for that origin"
            )));
        };
        let mut last = None;
        for names in &alternatives {
            let all: Vec<_> = names.iter().map(|name| wanted(card, name)).collect();
            match self.all(outside, remote, &all, (now, anew)).await {
                Ok(shown) => return Ok(shown),
                Err(trouble @ Trouble::Away { .. }) => return Err(trouble),
                Err(trouble) => last = Some(trouble),
            }
        }
        Err(last.unwrap_or_else(|| Trouble::Credentials("the card asks for nothing known".into())))
    }

    async fn all(
        &self,
        outside: &dyn Outside,
        remote: &Remote,
        wanted: &[Wanted],
        when: (Timestamp, bool),
    ) -> Result<Shown, Trouble> {
        let missing = |what: &str| {
            let agent = &remote.agent;
            Trouble::Credentials(format!("the agent wants {what}, and {agent} has none"))
        };
        let read = |source: &Option<Source>, what: &str| match source {
            Some(source) => source.read().map_err(Trouble::Credentials),
            None => Err(missing(what)),
        };
        let mut shown = Shown::default();
        for one in wanted {
            match one {
                Wanted::Bearer => {
                    let token = match (&remote.bearer, &remote.oauth) {
                        (None, Some(oauth)) => self.token(outside, remote, oauth, when).await?,
                        (bearer, _) => read(bearer, "a bearer token")?,
                    };
                    shown.headers.push(("authorization".into(), format!("Bearer {token}")));
                }
                Wanted::OAuth => {
                    let oauth = remote.oauth.as_ref().ok_or_else(|| missing("an OAuth client"))?;
                    let token = self.token(outside, remote, oauth, when).await?;
                    shown.headers.push(("authorization".into(), format!("Bearer {token}")));
                }
                Wanted::ApiKey { place, name } => {
                    let key = read(&remote.api_key, "an API key")?;
                    match place.as_str() {
                        "header" => shown.headers.push((name.to_ascii_lowercase(), key)),
                        "query" => shown.query.push((name.clone(), key)),
                        "cookie" => shown.headers.push(("cookie".into(), format!("{name}={key}"))),
                        _ => return Err(missing("an API key at a place that is not known")),
                    }
                }
                Wanted::Certificate => {
                    let files =
                        remote.certificate.as_ref().ok_or_else(|| missing("a certificate"))?;
                    let identity = files.read().map_err(Trouble::Credentials)?;
                    shown.identity = Some(Arc::new(identity));
                }
                Wanted::Other => return Err(missing("something that the broker does not speak")),
            }
        }
        Ok(shown)
    }

    /// A token of an OAuth client, until it is over or was not taken.
    async fn token(
        &self,
        outside: &dyn Outside,
        remote: &Remote,
        oauth: &OAuth,
        (now, anew): (Timestamp, bool),
    ) -> Result<String, Trouble> {
        let key = (remote.agent.clone(), remote.origin.clone());
        let mut tokens = self.tokens.lock().await;
        if let Some((token, until)) = tokens.get(&key)
            && !anew
            && now < *until
        {
            return Ok(token.clone());
        }
        let secret = oauth.client_secret.read().map_err(Trouble::Credentials)?;
        let pair = format!("{}:{}", encoded(&oauth.client_id), encoded(&secret));
        let mut form = "grant_type=client_credentials".to_owned();
        if !oauth.scopes.is_empty() {
            form = format!("{form}&scope={}", encoded(&oauth.scopes.join(" ")));
        }
        let request = Outgoing {
            method: axum::http::Method::POST,
            url: oauth.token_url.clone(),
            headers: vec![
                ("authorization".into(), format!("Basic {}", BASE64_STANDARD.encode(pair))),
                ("content-type".into(), "application/x-www-form-urlencoded".into()),
                ("accept".into(), "application/json".into()),
            ],
            body: form.into_bytes(),
            identity: None,
        };
        let (status, _, body) = asked(outside, request, REPLY_BYTES_MAX).await?;
        let said: Value = serde_json::from_slice(&body).unwrap_or_default();
        let token = said["access_token"].as_str().filter(|token| !token.is_empty());
        let Some(token) = token.filter(|_| status == 200) else {
            return Err(Trouble::Credentials(format!("the token endpoint answered {status}")));
        };
        let ms = said["expires_in"].as_u64().map_or(TOKEN_MS, |seconds| seconds * 1000);
        let until = now.plus_ms(ms.saturating_sub(EARLIER_MS));
        tokens.insert(key, (token.to_owned(), until));
        Ok(token.to_owned())
    }
}

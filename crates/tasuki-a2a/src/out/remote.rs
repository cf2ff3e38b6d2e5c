// SPDX-License-Identifier: Apache-2.0
//! An agent elsewhere: its card, the interface of it that we speak, and calls to it in the words of
//! today's protocol, whatever version and binding it is.

use axum::http::Method as Http;
use futures::StreamExt;
use futures::stream::BoxStream;
use serde_json::{Value, json};
use tasuki_core::address::Endpoint;
use tasuki_core::canonical::Body;
use tasuki_core::identity::{PublicKey, Signature};
use tasuki_engine::Errand;
use tasuki_front::{Outgoing, Outside};

use super::credentials::Shown;
use super::trouble::{Trouble, away};
use super::{Client, Known, asked, origin};
use crate::calls::Version;
use crate::older;

const CARD_BYTES_MAX: usize = 1024 * 1024;
const REPLY_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How many cards are kept, and for how long at the least and the most.
pub(super) const CARDS_MAX: usize = 1000;
const CARD_MS: u64 = 300_000;
const CARD_MS_MIN: u64 = 10_000;
const CARD_MS_MAX: u64 = 3_600_000;
/// How many signatures of a card are looked at.
const SIGNATURES_MAX: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Binding {
    Rpc,
    Rest,
}

/// The interface of a card that is spoken.
#[derive(Debug, Clone)]
pub(super) struct Interface {
    pub(super) url: String,
    binding: Binding,
    version: Version,
    tenant: Option<String>,
}

/// Where an agent's card is, and where it was before.
fn places(url: &str) -> Vec<String> {
    if url.split(['?', '#']).next().is_some_and(|path| path.ends_with(".json")) {
        return vec![url.to_owned()];
    }
    let base = url.trim_end_matches('/');
    [crate::CARD, crate::CARD_BEFORE].map(|path| format!("{base}/{path}")).to_vec()
}

/// The first interface of today's version that we speak, or else one of 0.3.
pub(super) fn chosen(card: &Value) -> Option<Interface> {
    let text = |value: &Value, name: &str| value[name].as_str().map(str::to_owned);
    let of = |one: &Value, wanted: Version| {
        let binding = match one["protocolBinding"].as_str()? {
            "JSONRPC" => Binding::Rpc,
            "HTTP+JSON" => Binding::Rest,
            _ => return None,
        };
        let said = one["protocolVersion"].as_str().unwrap_or("1.0");
        let version = match said {
            said if said == "1.0" || said.starts_with("1.0.") => Version::Today,
            said if said == "0.3" || said.starts_with("0.3.") => Version::Older,
            _ => return None,
        };
        // What 0.3 says over HTTP+JSON is not spoken.
        let known = version == Version::Today || binding == Binding::Rpc;
        let tenant = text(one, "tenant").filter(|tenant| !tenant.is_empty());
        let url = text(one, "url")?;
        (known && version == wanted).then_some(Interface { url, binding, version, tenant })
    };
    let listed: &[Value] = card["supportedInterfaces"].as_array().map_or(&[], Vec::as_slice);
    for wanted in [Version::Today, Version::Older] {
        if let Some(found) = listed.iter().find_map(|one| of(one, wanted)) {
            return Some(found);
        }
    }
    let older = |url: Option<String>, transport: &str| {
        let (binding, version, tenant) = (Binding::Rpc, Version::Older, None);
        url.filter(|_| transport == "JSONRPC").map(|url| Interface {
            url,
            binding,
            version,
            tenant,
        })
    };
    if !card["protocolVersion"].as_str().unwrap_or("0.3").starts_with("0.3") {
        return None;
    }
    let preferred = card["preferredTransport"].as_str().unwrap_or("JSONRPC");
    older(text(card, "url"), preferred).or_else(|| {
        let more = card["additionalInterfaces"].as_array()?;
        more.iter()
            .find_map(|one| older(text(one, "url"), one["transport"].as_str().unwrap_or_default()))
    })
}

impl Client {
    /// An agent's card, from memory as long as that is allowed.
    async fn card(&self, errand: &Errand) -> Result<Value, Trouble> {
        let now = errand.now();
        let known = self.cards.lock().await.get(&errand.url).cloned();
        if let Some(known) = known.as_ref().filter(|known| now < known.until) {
            return Ok(known.card.clone());
        }
        let mut last = Trouble::Card("there is no card".into());
        for url in places(&errand.url) {
            let mut headers = vec![
                ("accept".to_owned(), "application/json".to_owned()),
                ("a2a-version".to_owned(), "1.0".to_owned()),
            ];
            if let Some(tag) = known.as_ref().and_then(|known| known.tag.clone()) {
                headers.push(("if-none-match".into(), tag));
            }
            let request = get(&url, headers);
            let (status, head, body) = asked(&*self.outside, request, CARD_BYTES_MAX).await?;
            let header = |name: &str| head.get(name).and_then(|it| it.to_str().ok());
            let until = now.plus_ms(age_ms(header("cache-control")));
            let card = match (status, &known) {
                (304, Some(known)) => known.card.clone(),
                (200, _) => {
                    let card: Value = serde_json::from_slice(&body)
                        .map_err(|_| Trouble::Card("the card is no JSON".into()))?;
                    self.verified(card, &url).await?
                }
                (404, _) => continue,
                (429 | 500..=599, _) => {
                    last = away(format!("the card is not served: {status}"));
                    continue;
                }
                (status, _) => {
                    last = Trouble::Card(format!("the card is not served: {status}"));
                    continue;
                }
            };
            let tag = header("etag").map(str::to_owned);
            let mut cards = self.cards.lock().await;
            if cards.len() >= CARDS_MAX {
                cards.clear();
            }
            cards.insert(errand.url.clone(), Known { card: card.clone(), tag, until });
            return Ok(card);
        }
        Err(last)
    }

    /// Holds a card against the signatures that can be checked: those by EdDSA whose keys are at the
    /// card's own origin. One that is wrong is reason enough to leave the agent alone.
    /// What no signature is over is left out.
    async fn verified(&self, mut card: Value, url: &str) -> Result<Value, Trouble> {
        let signatures = card["signatures"].clone();
        let Some(list) = signatures.as_array() else { return Ok(card) };
        for signature in list.iter().take(SIGNATURES_MAX) {
            let protected = signature["protected"].as_str().unwrap_or_default();
            let head: Value = base64(protected)
                .and_then(|head| serde_json::from_slice(&head).ok())
                .unwrap_or_default();
            let place = head["jku"].as_str().filter(|jku| origin(jku) == origin(url));
            let (Some("EdDSA"), Some(place)) = (head["alg"].as_str(), place) else { continue };
            let (status, _, keys) =
                asked(&*self.outside, get(place, Vec::new()), CARD_BYTES_MAX).await?;
            if status != 200 {
                return Err(away(format!("the keys of the card are not served: {status}")));
            }
            let keys: Value = serde_json::from_slice(&keys).unwrap_or_default();
            let found = keys["keys"].as_array().into_iter().flatten();
            let key = found.filter(|key| key["kid"] == head["kid"] && key["crv"] == "Ed25519");
            let key = key.filter_map(|key| base64(key["x"].as_str()?)?.try_into().ok()).next();
            let key = key.and_then(|key| PublicKey::from_bytes(key).ok());
            let said = signature["signature"].as_str().and_then(base64);
            let said = said.and_then(|said| said.try_into().ok()).map(Signature);
            let signed = |card: &Value| {
                let over = format!("{protected}.{}", body_of(card));
                key.zip(said).is_some_and(|(key, said)| key.verify(over.as_bytes(), &said))
            };
            if signed(&card) {
                continue;
            }
            // Who serves both versions at one address signs today's alone.
            card = of_today(card);
            if !signed(&card) {
                return Err(Trouble::Card("a signature of the card is wrong".into()));
            }
        }
        Ok(card)
    }

    /// The way to an agent, with what it wants to be shown.
    pub(super) async fn line(&self, errand: &Errand, anew: bool) -> Result<Line<'_>, Trouble> {
        let card = self.card(errand).await?;
        let spoken = chosen(&card).ok_or_else(|| {
            let known = "JSONRPC and HTTP+JSON of 1.0, and JSONRPC of 0.3";
            Trouble::Card(format!("the card has no interface that is spoken: {known}"))
        })?;
        Endpoint::parse(&spoken.url).map_err(|problem| Trouble::Card(problem.into()))?;
        let to = (&errand.agent, spoken.url.as_str());
        let when = (errand.now(), anew);
        let shown = self.credentials.shown(&*self.outside, to, &card, when).await?;
        let can = |name: &str| card["capabilities"][name].as_bool().unwrap_or(false);
        let (streams, pushes) = (can("streaming"), can("pushNotifications"));
        let trace = trace(errand);
        Ok(Line { outside: &*self.outside, spoken, shown, streams, pushes, trace })
    }
}

/// What the sender's trace goes on with.
fn trace(errand: &Errand) -> Vec<(String, String)> {
    let envelope = errand.granted.envelope.as_ref();
    let envelope: Option<Value> = envelope.and_then(|it| serde_json::from_str(it.text()).ok());
    let metadata = envelope.map(|mut envelope| envelope["metadata"].take()).unwrap_or_default();
    let member = |name: &str| {
        let value = metadata[name].as_str()?;
        axum::http::HeaderValue::from_str(value).ok()?;
        Some((name.to_owned(), value.to_owned()))
    };
    tasuki_core::trace::MEMBERS.iter().filter_map(|name| member(name)).collect()
}

fn get(url: &str, headers: Vec<(String, String)>) -> Outgoing {
    let url = url.to_owned();
    Outgoing { method: Http::GET, url, headers, body: Vec::new(), identity: None }
}

fn base64(text: &str) -> Option<Vec<u8>> {
    use ::base64::prelude::*;
    BASE64_URL_SAFE_NO_PAD.decode(text).ok()
}

/// What a signature of a card is over.
fn body_of(card: &Value) -> String {
    use ::base64::prelude::*;
    let mut card = card.clone();
    if let Some(members) = card.as_object_mut() {
        members.remove("signatures");
    }
    BASE64_URL_SAFE_NO_PAD.encode(Body::of(&card).text())
}

/// Members that only 0.3 looks for.
const OLDER: [&str; 6] = [
    "url",
    "preferredTransport",
    "protocolVersion",
    "additionalInterfaces",
    "security",
    "supportsAuthenticatedExtendedCard",
];

/// A card without what only 0.3 looks for.
fn of_today(mut card: Value) -> Value {
    if let Some(members) = card.as_object_mut() {
        members.retain(|name, _| !OLDER.contains(&name.as_str()));
        let schemes = members.get_mut("securitySchemes").and_then(Value::as_object_mut);
        let schemes = schemes.map(|schemes| schemes.values_mut()).into_iter().flatten();
        for members in schemes.filter_map(Value::as_object_mut) {
            let is_today = |name: &String| name.ends_with("SecurityScheme");
            if members.keys().any(is_today) {
                members.retain(|name, _| is_today(name));
            }
        }
    }
    card
}

fn age_ms(control: Option<&str>) -> u64 {
    let said = control.into_iter().flat_map(|said| said.split(','));
    let mut age = said.filter_map(|one| one.trim().strip_prefix("max-age=")?.parse::<u64>().ok());
    let ms = age.next_back().map_or(CARD_MS, |seconds| seconds.saturating_mul(1000));
    ms.clamp(CARD_MS_MIN, CARD_MS_MAX)
}

/// The way to one agent.
pub(super) struct Line<'l> {
    outside: &'l dyn Outside,
    pub(super) spoken: Interface,
    shown: Shown,
    pub(super) streams: bool,
    pub(super) pushes: bool,
    trace: Vec<(String, String)>,
}

/// What an agent answers to a message.
pub(super) enum Told {
    Task(Value),
    /// There is no task: this is all.
    Message(Value),
}

/// What is needed to make a request of a call.
struct Form {
    http: Http,
    path: String,
    query: Vec<(String, String)>,
    has_body: bool,
}

impl Line<'_> {
    pub(super) fn lists(&self) -> bool {
        self.spoken.version == Version::Today
    }

    pub(super) async fn send(&self, params: Value) -> Result<Told, Trouble> {
        let mut said = self.call("SendMessage", params).await?;
        if self.spoken.version == Version::Older {
            return Ok(match said["kind"].as_str() {
                Some("message") => Told::Message(older::message_up(said)),
                _ => Told::Task(older::task_up(said)),
            });
        }
        match said.get_mut("message") {
            Some(message) if !message.is_null() => Ok(Told::Message(message.take())),
            _ => Ok(Told::Task(said["task"].take())),
        }
    }

    pub(super) async fn get(&self, id: &str) -> Result<Value, Trouble> {
        self.of_task("GetTask", id).await
    }

    pub(super) async fn cancel(&self, id: &str) -> Result<Value, Trouble> {
        self.of_task("CancelTask", id).await
    }

    async fn of_task(&self, method: &str, id: &str) -> Result<Value, Trouble> {
        let said = self.call(method, json!({ "id": id })).await?;
        let older = self.spoken.version == Version::Older;
        Ok(if older { older::task_up(said) } else { said })
    }

    /// The tasks of a context, where they can be listed.
    pub(super) async fn in_context(&self, context: &str) -> Result<Vec<Value>, Trouble> {
        let asked = json!({ "contextId": context, "pageSize": 50 });
        let mut said = self.call("ListTasks", asked).await?;
        let of = |task: &Value| task["contextId"] == context;
        let tasks = said["tasks"].take();
        let tasks = tasks.as_array().into_iter().flatten().filter(|task| of(task));
        Ok(tasks.cloned().collect())
    }

    /// A stream that says something whenever there is news of a task.
    pub(super) async fn subscribe(&self, id: &str) -> Option<BoxStream<'static, ()>> {
        let request = self.request("SubscribeToTask", json!({ "id": id })).ok()?;
        let opened = tokio::time::timeout(super::ASK_MAX, self.outside.ask(request)).await;
        let opened = opened.ok()?.ok()?;
        let kind = opened.headers.get("content-type").and_then(|it| it.to_str().ok());
        let is_stream = kind.is_some_and(|kind| kind.starts_with("text/event-stream"));
        if opened.status != 200 || !is_stream {
            return None;
        }
        // A stream that breaks off is at its end.
        let read = opened.body.take_while(|piece| std::future::ready(piece.is_ok()));
        Some(read.map(drop).boxed())
    }

    async fn call(&self, method: &str, params: Value) -> Result<Value, Trouble> {
        let request = self.request(method, params)?;
        let (status, head, body) = asked(self.outside, request, REPLY_BYTES_MAX).await?;
        let after = head.get("retry-after").and_then(|it| it.to_str().ok());
        let after = after.and_then(|it| it.trim().parse::<u64>().ok());
        let retry_after_ms = after.map(|seconds| seconds.min(86_400) * 1000);
        let mut said: Value = serde_json::from_slice(&body).unwrap_or_default();
        let words = |value: &Value| {
            let text = value["message"].as_str().unwrap_or("without a reason");
            text.chars().take(500).collect::<String>()
        };
        match status {
            401 => {
                return Err(Trouble::Credentials("the agent does not take what is shown".into()));
            }
            429 | 500..=599 => {
                let problem = format!("the agent answered {status}");
                return Err(Trouble::Away { problem, retry_after_ms });
            }
            300..=399 => return Err(away(format!("{status}: redirects are not followed"))),
            _ => {}
        }
        let error = said["error"].take();
        let refused = |code: i64| match code {
            -32001 | 404 => Trouble::NoTask,
            -32603 | -32000 => away(format!("the agent failed: {}", words(&error))),
            code => Trouble::Refused(format!("the agent refused ({code}): {}", words(&error))),
        };
        match self.spoken.binding {
            Binding::Rpc if !error.is_null() => Err(refused(error["code"].as_i64().unwrap_or(0))),
            Binding::Rpc if said.get("result").is_some() => Ok(said["result"].take()),
            Binding::Rest if (200..300).contains(&status) && said.is_object() => Ok(said),
            Binding::Rest if status >= 400 => Err(refused(status.into())),
            _ => Err(away(format!("the agent answered {status}, and not as the protocol says"))),
        }
    }

    fn request(&self, method: &str, mut params: Value) -> Result<Outgoing, Trouble> {
        let spoken = &self.spoken;
        let mut headers = vec![("accept".to_owned(), "application/json".to_owned())];
        if method == "SubscribeToTask" {
            headers[0].1 = "text/event-stream".into();
        }
        headers.extend(self.trace.clone());
        headers.extend(self.shown.headers.clone());
        if spoken.version == Version::Today {
            headers.push(("a2a-version".into(), "1.0".into()));
            if let Some(tenant) = &spoken.tenant {
                params["tenant"] = json!(tenant);
            }
        }
        let (form, body) = match spoken.binding {
            Binding::Rpc => {
                let (method, params) = match spoken.version {
                    Version::Today => (method, params),
                    Version::Older => older::asks(method, params),
                };
                headers.push(("content-type".into(), "application/json".into()));
                let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
                let path = String::new();
                (Form { http: Http::POST, path, query: Vec::new(), has_body: true }, body)
            }
            Binding::Rest => {
                headers.push(("content-type".into(), "application/a2a+json".into()));
                (rest(method, &params, spoken.tenant.as_deref()), params)
            }
        };
        let mut url = match form.path.is_empty() {
            true => spoken.url.clone(),
            false => format!("{}/{}", spoken.url.trim_end_matches('/'), form.path),
        };
        let pairs: Vec<_> = form.query.iter().chain(&self.shown.query).collect();
        if !pairs.is_empty() {
            let pairs = pairs.into_iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let query =
                form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
            url = format!("{url}{}{query}", if url.contains('?') { '&' } else { '?' });
        }
        let body = if form.has_body { body.to_string().into_bytes() } else { Vec::new() };
        let identity = self.shown.identity.clone();
        Ok(Outgoing { method: form.http, url, headers, body, identity })
    }
}

/// A call as HTTP+JSON has it.
fn rest(method: &str, params: &Value, tenant: Option<&str>) -> Form {
    let escaped = |text: &str| -> String {
        form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
    };
    let id = escaped(params["id"].as_str().unwrap_or_default());
    let (http, path) = match method {
        "SendMessage" => (Http::POST, "message:send".to_owned()),
        "GetTask" => (Http::GET, format!("tasks/{id}")),
        "CancelTask" => (Http::POST, format!("tasks/{id}:cancel")),
        "SubscribeToTask" => (Http::GET, format!("tasks/{id}:subscribe")),
        _ => (Http::GET, "tasks".to_owned()),
    };
    let has_body = http == Http::POST;
    let query = match method {
        "ListTasks" => ["contextId", "pageSize"]
            .into_iter()
            .filter_map(|name| {
                let value = params.get(name)?;
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                Some((name.to_owned(), text))
            })
            .collect(),
        _ => Vec::new(),
    };
    let path = match tenant {
        Some(tenant) => format!("{}/{path}", escaped(tenant)),
        None => path,
    };
    Form { http, path, query, has_body }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn todays_interface_comes_before_one_of_0_3_and_grpc_is_left_out() {
        let one = |binding: &str, version: &str| {
            json!({ "url": format!("https://a/{binding}/{version}"), "protocolBinding": binding,
                "protocolVersion": version })
        };
        let card = json!({ "supportedInterfaces": [
            one("GRPC", "1.0"), one("JSONRPC", "0.3"), one("HTTP+JSON", "1.0"), one("JSONRPC", "1.0"),
        ] });
        assert_eq!(chosen(&card).unwrap().url, "https://a/HTTP+JSON/1.0");
        let card = json!({ "supportedInterfaces": [one("GRPC", "1.0"), one("JSONRPC", "0.3.0")] });
        assert_eq!(chosen(&card).unwrap().version, Version::Older);
        let card = json!({ "url": "https://a/", "protocolVersion": "0.3.0",
            "preferredTransport": "GRPC",
            "additionalInterfaces": [{ "url": "https://b/", "transport": "JSONRPC" }] });
        assert_eq!(chosen(&card).unwrap().url, "https://b/");
        assert!(
            chosen(
                &json!({ "supportedInterfaces": [one("GRPC", "1.0")] , "protocolVersion": "1.0" })
            )
            .is_none()
        );
    }

    #[test]
    fn a_card_is_kept_for_as_long_as_it_says_within_bounds() {
        assert_eq!(age_ms(None), CARD_MS);
        assert_eq!(age_ms(Some("public, max-age=60")), 60_000);
        assert_eq!(age_ms(Some("max-age=0")), CARD_MS_MIN);
        assert_eq!(age_ms(Some("max-age=99999999")), CARD_MS_MAX);
    }
}

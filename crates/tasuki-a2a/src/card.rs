// SPDX-License-Identifier: Apache-2.0
//! Cards: what an agent can do and how it is reached, made from its manifest. A card is signed by the
//! broker, which is the one that answers at the address in it.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::prelude::{BASE64_URL_SAFE_NO_PAD as URL_SAFE_NO_PAD, *};
use serde_json::{Value, json};
use tasuki_core::canonical::Body;
use tasuki_core::identity::PublicKey;
use tasuki_core::manifest::{CapabilityEntry, Manifest};
use tasuki_engine::{Lobby, SeenAgent};

use crate::endpoint::Endpoint;
use crate::extension;

/// Who serves, where, and whether everybody has to say who it is.
pub(crate) struct Place<'p> {
    pub(crate) lobby: &'p Lobby,
    pub(crate) origin: String,
    pub(crate) closed: bool,
}

const KEYS: &str = "/.well-known/jwks.json";
const VERSION: &str = env!("CARGO_PKG_VERSION");

fn skill(entry: &CapabilityEntry, whole: bool) -> Value {
    let name = entry.name.name();
    let said = entry.description.as_deref().filter(|text| !text.is_empty());
    let mut tags: Vec<_> = entry.tags.iter().filter(|tag| !tag.is_empty()).cloned().collect();
    if tags.is_empty() {
        tags.push(name.to_owned());
    }
    let mut skill = json!({
        "id": name,
        "name": name,
        "description": said.map_or_else(|| format!("Does {name}."), str::to_owned),
        "tags": tags,
    });
    let takes = entry.input_schema.is_some();
    if takes {
        skill["inputModes"] = json!(["application/json"]);
    }
    if whole && let Some(schema) = &entry.input_schema {
        skill["examples"] = json!([format!("A data part that fits {schema}")]);
    }
    skill
}

fn skills(manifest: Option<&Manifest>, whole: bool) -> Vec<Value> {
    let able = manifest.map(|manifest| manifest.capabilities.as_slice()).unwrap_or_default();
    if able.is_empty() {
        return vec![json!({
            "id": "work",
            "name": "work",
            "description": "Takes work that is handed to it by name.",
            "tags": ["handoff"],
        })];
    }
    able.iter().map(|entry| skill(entry, whole)).collect()
}

impl Place<'_> {
    /// A card as the protocol has it today.
    fn base(&self, name: &str, description: &str, version: &str, at: &Endpoint) -> Value {
        let url = format!("{}{}", self.origin, at.path());
        let mut card = json!({
            "name": name,
            "description": description,
            "version": version,
            "documentationUrl": format!("{}/docs", self.origin),
            "supportedInterfaces": [
                { "url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0" },
                { "url": url, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0" },
                { "url": url, "protocolBinding": "JSONRPC", "protocolVersion": "0.3" },
                { "url": url, "protocolBinding": "HTTP+JSON", "protocolVersion": "0.3" },
            ],
            "capabilities": {
                "streaming": true,
                "pushNotifications": true,
                "extendedAgentCard": true,
                "extensions": [extension::declared()],
            },
            "defaultInputModes": ["text/plain", "application/json"],
            "defaultOutputModes": ["text/plain", "application/json"],
        });
        // What says no more than silence would is left out, and nothing is empty: those who check
        // signatures do not agree on what becomes of such members.
        if self.closed {
            card["securitySchemes"] = json!({
                "bearer": {
                    "httpAuthSecurityScheme": {
                        "scheme": "Bearer",
                        "description": "A token that the broker gave",
                    },
                },
                "mtls": {
                    "mtlsSecurityScheme": { "description": "A certificate of an enrolled key" },
                },
            });
            card["securityRequirements"] = json!([
                { "schemes": { "bearer": { "list": ["send"] } } },
                { "schemes": { "mtls": { "list": ["send"] } } },
            ]);
        }
        card
    }

    pub(crate) fn agent(&self, seen: &SeenAgent, at: &Endpoint, whole: bool) -> Value {
        let manifest = seen.declared.as_deref();
        let id = &seen.agent.id;
        let said = manifest.and_then(|it| it.description.as_deref()).filter(|it| !it.is_empty());
        let described = said.map_or_else(|| format!("The agent {id}."), str::to_owned);
        let published = seen.agent.manifest.as_ref().map_or(0, |it| it.version);
        let version = manifest.and_then(|it| it.version.clone());
        let version = version.unwrap_or_else(|| published.to_string());
        let mut card = self.base(id.name(), &described, &version, at);
        card["skills"] = Value::Array(skills(manifest, whole));
        self.signed(card)
    }

    /// The broker itself, as an agent that finds one. Its skills are what the agents can do that the
    /// caller may know of, if the caller is known.
    pub(crate) fn broker(&self, seen: &[SeenAgent]) -> Value {
        let described = "Hands work to whoever can do it, and keeps it until it is done: name a \
                         skill, and one agent that has it owns the work.";
        let mut card = self.base("tasuki", described, VERSION, &Endpoint::Broker);
        let mut skills: Vec<Value> = Vec::new();
        for manifest in seen.iter().filter_map(|seen| seen.declared.as_deref()) {
            for entry in &manifest.capabilities {
                let shown = skill(entry, false);
                if !skills.iter().any(|known| known["id"] == shown["id"]) {
                    skills.push(shown);
                }
            }
        }
        if skills.is_empty() {
            skills.push(json!({
                "id": "handoff",
                "name": "handoff",
                "description": "Hands work to an agent that has the capability you name.",
                "tags": ["handoff", "routing"],
            }));
        }
        card["skills"] = Value::Array(skills);
        self.signed(card)
    }

    /// With the broker's signature (JWS over the canonical card), where it has a key that counts.
    fn signed(&self, mut card: Value) -> Value {
        let Some((key, _)) = self.lobby.vouch(b"") else { return card };
        let protected = json!({
            "alg": "EdDSA",
            "typ": "JOSE",
            "kid": key.id().to_string(),
            "jku": format!("{}{KEYS}", self.origin),
        });
        let protected = URL_SAFE_NO_PAD.encode(protected.to_string());
        let payload = URL_SAFE_NO_PAD.encode(Body::of(&card).text());
        let signature = self.lobby.vouch(format!("{protected}.{payload}").as_bytes());
        if let Some((_, signature)) = signature {
            let signature = URL_SAFE_NO_PAD.encode(signature.0);
            card["signatures"] = json!([{ "protected": protected, "signature": signature }]);
        }
        card
    }

    /// The broker's key, by which its signatures are checked.
    pub(crate) fn keys(&self) -> Value {
        let key = self.lobby.vouch(b"").map(|(key, _)| jwk(&key));
        json!({ "keys": key.into_iter().collect::<Vec<_>>() })
    }

    /// Who can be reached here.
    pub(crate) fn catalogue(&self, seen: &[SeenAgent]) -> Value {
        let kind = "application/a2a-agent-card+json";
        let of = |name: &str, described: &str, at: &Endpoint| {
            json!({
                "identifier": format!("{}{}", self.origin, at.path()),
                "displayName": name,
                "description": described,
                "mediaType": kind,
                "url": format!("{}{}/.well-known/agent-card.json", self.origin, at.path()),
            })
        };
        let mut entries = vec![of("tasuki", "Whoever can", &Endpoint::Broker)];
        entries.extend(seen.iter().map(|seen| {
            let id = &seen.agent.id;
            let said = seen.declared.as_ref().and_then(|it| it.description.clone());
            let said = said.unwrap_or_else(|| format!("The agent {id}."));
            of(id.name(), &said, &Endpoint::of(id))
        }));
        json!({ "specVersion": "1.0", "entries": entries })
    }
}

fn jwk(key: &PublicKey) -> Value {
    json!({
        "kty": "OKP",
        "crv": "Ed25519",
        "alg": "EdDSA",
        "use": "sig",
        "kid": key.id().to_string(),
        "x": URL_SAFE_NO_PAD.encode(key.as_bytes()),
    })
}

/// The same card with what 0.3 looks for, which is in no signature: whoever checks one reads the card
/// as today's version has it, and gets it alone by saying so.
pub(crate) fn with_older(mut card: Value) -> Value {
    let interfaces = card["supportedInterfaces"].clone();
    let url = interfaces[0]["url"].clone();
    card["url"] = url.clone();
    card["preferredTransport"] = json!("JSONRPC");
    card["protocolVersion"] = json!("0.3.0");
    card["additionalInterfaces"] = json!([
        { "url": url, "transport": "JSONRPC" },
        { "url": url, "transport": "HTTP+JSON" },
    ]);
    card["supportsAuthenticatedExtendedCard"] = json!(true);
    if card.get("securitySchemes").is_some() {
        // Some clients of today read these forms instead of theirs, so they say the same, word by word:
        // a signature is checked over what was read.
        for (name, kind, today) in [
            ("bearer", "http", "httpAuthSecurityScheme"),
            ("mtls", "mutualTLS", "mtlsSecurityScheme"),
        ] {
            let scheme = &mut card["securitySchemes"][name];
            let said = scheme[today].as_object().cloned().unwrap_or_default();
            scheme["type"] = json!(kind);
            for (member, value) in said {
                scheme[member] = value;
            }
        }
        card["security"] = json!([{ "bearer": [] }, { "mtls": [] }]);
    }
    card
}

/// A card as a reply that can be kept for a while and asked for again.
pub(crate) fn reply(headers: &HeaderMap, value: &Value, public: bool) -> Response {
    let body = Body::of(value);
    let tag = format!("\"{}\"", body.hash.to_string().trim_start_matches("sha256:"));
    let known = headers.get(header::IF_NONE_MATCH).and_then(|tags| tags.to_str().ok());
    let same = |tags: &str| tags.split(',').any(|one| one.trim().trim_start_matches("W/") == tag);
    let mut response = match known.is_some_and(same) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => tasuki_front::ok(value),
    };
    let age = if public { "public, max-age=60" } else { "private, max-age=60" };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(age));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    let vary = HeaderValue::from_static("authorization, a2a-version, host");
    headers.insert(header::VARY, vary);
    response
}

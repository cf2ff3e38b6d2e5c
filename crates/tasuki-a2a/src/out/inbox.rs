// SPDX-License-Identifier: Apache-2.0
//! Where agents elsewhere tell of work that they do for us. What they say is a reason to ask them, and
//! nothing else; who does not have the token of the work is told that nothing is there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use base64::prelude::*;
use tasuki_core::HandoffId;
use tasuki_engine::Lobby;
use tasuki_front::{Failed, Front};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::Client;
use crate::rest;

pub(super) const PATH: &str = "/a2a-inbox/";

/// Whoever waits for a word about work.
#[derive(Default)]
pub(super) struct Inbox {
    waiting: Arc<Mutex<HashMap<HandoffId, Arc<Notify>>>>,
}

/// Gives its place up when it is dropped.
pub(super) struct Place {
    waiting: Arc<Mutex<HashMap<HandoffId, Arc<Notify>>>>,
    id: HandoffId,
    notify: Arc<Notify>,
}

impl Inbox {
    pub(super) fn expect(&self, id: HandoffId) -> Place {
        let notify = Arc::<Notify>::default();
        let mut waiting = self.waiting.lock().expect("no holder of this lock panics");
        waiting.insert(id, notify.clone());
        Place { waiting: self.waiting.clone(), id, notify }
    }

    fn told(&self, id: HandoffId) {
        if let Some(notify) = self.waiting.lock().expect("no holder of this lock panics").get(&id) {
            // The word may come before somebody listens.
            notify.notify_one();
        }
    }
}

impl Place {
    pub(super) fn news(&self) -> Notified<'_> {
        self.notify.notified()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut waiting = self.waiting.lock().expect("no holder of this lock panics");
        if waiting.get(&self.id).is_some_and(|known| Arc::ptr_eq(known, &self.notify)) {
            waiting.remove(&self.id);
        }
    }
}

/// What an agent must show to tell of a handoff; the same after a restart.
pub(super) fn token(lobby: &Lobby, id: HandoffId) -> Option<String> {
    let (_, secret) = lobby.derived(&format!("a2a inbox {id}"))?;
    Some(BASE64_URL_SAFE_NO_PAD.encode(secret))
}

/// Where agents tell of their work.
pub fn inbox(client: &Arc<Client>) -> Router<Front> {
    let client = client.clone();
    let told = move |Path(id): Path<String>, headers: HeaderMap| {
        let client = client.clone();
        async move { take(&client, &id, &headers) }
    };
    Router::new().route("/a2a-inbox/{id}", post(told))
}

fn take(client: &Client, id: &str, headers: &HeaderMap) -> Response {
    let none = || Failed(rest::nothing()).into_response();
    let Ok(id) = id.parse::<HandoffId>() else { return none() };
    let shown = headers.get("x-a2a-notification-token").map(axum::http::HeaderValue::as_bytes);
    let Some(token) = token(&client.lobby, id) else { return none() };
    let same = shown.is_some_and(|shown| {
        aws_lc_rs::constant_time::verify_slices_are_equal(shown, token.as_bytes()).is_ok()
    });
    if !same {
        return none();
    }
    client.inbox.told(id);
    StatusCode::NO_CONTENT.into_response()
}

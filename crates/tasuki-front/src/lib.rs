// SPDX-License-Identifier: Apache-2.0
//! What every HTTP door shares: accepting connections, the gate that every request passes, finding out
//! who asks, reading bodies strictly, request ids, limits, spans, and how errors look. It knows the table
//! of operations and no path: which operation a request means is for the door to say.
#![allow(clippy::result_large_err, reason = "a problem is moved once, to become a reply")]

mod attended;
mod auth;
mod body;
mod error;
mod gate;
mod outside;
mod seats;
mod serve;
mod serving;
mod tls;
mod waits;

use std::sync::Arc;

use axum::http::request::Parts;
use tasuki_engine::Lobby;

pub use auth::{SESSION_COOKIE, origin};
pub use body::{bytes, bytes_of, ok, reply, written};
pub use error::Failed;
pub use gate::around;
pub use outside::{Incoming, Outgoing, Outside};
pub use seats::{Elapsed, Places};
pub use serve::{Doorway, serve, serve_by};
pub use serving::{About, Asked, Held, Refused};
pub use tls::{Identity, Tls};
pub use waits::{WaitLimits, Waiting};

/// What one client may ask of the broker.
#[derive(Debug, Clone)]
pub struct Limits {
    pub body_bytes_max: usize,
    /// Requests each second from one address; 0 is no limit.
    pub requests_per_second: u32,
    /// How many connections there may be at once.
    pub connections: Places,
    /// How many waits and streams there may be at once.
    pub waits: WaitLimits,
    /// Which hosts a request may name, besides loopback; guards against DNS rebinding.
    pub hosts: Vec<String>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes_max: 1024 * 1024,
            requests_per_second: 0,
            connections: Places::default(),
            waits: WaitLimits::default(),
            hosts: Vec::new(),
        }
    }
}

/// What handlers share.
#[derive(Clone)]
pub struct Front {
    pub lobby: Lobby,
    pub limits: Arc<Limits>,
    waits: Arc<waits::Waits>,
}

impl Front {
    #[must_use]
    pub fn new(lobby: impl Into<Lobby>, limits: Limits) -> Self {
        Self { lobby: lobby.into(), limits: Arc::new(limits), waits: Arc::default() }
    }

    /// Whether a request came by TLS to this broker.
    #[must_use]
    pub fn is_secure(&self, parts: &Parts) -> bool {
        parts.extensions.get::<serve::CameBy>().is_some_and(|by| by.secure)
    }
}

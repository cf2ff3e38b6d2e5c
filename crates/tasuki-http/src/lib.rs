// SPDX-License-Identifier: Apache-2.0
//! The HTTP door: converts in, makes one call, converts out. It sees the engine and the core's
//! types, never the store. [`routes`] is the table of everything that is served; the router and
//! the OpenAPI document are both made from it.
#![allow(clippy::result_large_err, reason = "a problem is moved once, to become a reply")]

mod attended;
mod auth;
mod courier;
mod error;

mod gate;
mod handlers;
mod json;
mod openapi;
mod page;
mod routes;
mod serve;
mod sse;

use std::sync::Arc;

use tasuki_engine::Engine;
pub(crate) use tasuki_engine::operations::{asked as from_wire, shown as to_wire};
pub(crate) use tasuki_protocol as wire;

pub use courier::{Poster, Resolver, SystemResolver};
pub use openapi::{document, text as document_text};
pub use serve::serve;

/// What one client may ask of the broker.
#[derive(Debug, Clone)]
pub struct Limits {
    pub body_bytes_max: usize,
    /// Requests each second from one address; 0 is no limit.
    pub requests_per_second: u32,
    pub connections_max: usize,
    /// Which hosts a request may name, besides loopback; guards against DNS rebinding.
    pub hosts: Vec<String>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes_max: 1024 * 1024,
            requests_per_second: 0,
            connections_max: 10_000,
            hosts: Vec::new(),
        }
    }
}

/// What handlers share.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) engine: Arc<Engine>,
    pub(crate) limits: Arc<Limits>,
}

/// Everything under one router, ready to be served or called in process.
pub fn router(engine: Arc<Engine>, limits: Limits) -> axum::Router {
    let app = App { engine, limits: Arc::new(limits) };
    gate::around(routes::router(&app), &app).with_state(app)
}

// SPDX-License-Identifier: Apache-2.0
//! The HTTP door: a method, a path and a status for each operation of the engine's table. It sees the
//! engine's lobby, its desks and the core's types, never the store. [`bindings`] is all that is served;
//! the router and the OpenAPI document are both made from it.
#![allow(clippy::result_large_err, reason = "a problem is moved once, to become a reply")]

mod binding;
mod bindings;
mod courier;
mod export;
mod metrics;
mod openapi;
mod page;
mod routes;
mod schemas;
mod sse;
mod ui;

use tasuki_engine::Lobby;
pub(crate) use tasuki_engine::operations::shown as to_wire;
use tasuki_front::{Front, around};
pub(crate) use tasuki_protocol as wire;

pub use courier::{Poster, Resolver, SystemResolver};
pub use openapi::{document, operations, operations_text, text as document_text};
pub use schemas::schema_texts;
pub use tasuki_front::{Doorway, Identity, Limits, Places, Tls, WaitLimits, serve, serve_by};

/// This door alone, ready to be served or called in process.
pub fn router(lobby: impl Into<Lobby>, limits: Limits) -> axum::Router {
    let front = Front::new(lobby, limits);
    around(routes(), &front).with_state(front)
}

/// How an operation is asked for at this door: its method, its path, and whether what is asked stands in
/// the query of the URL.
pub fn request_for(operation: &str) -> Option<(&'static str, &'static str, bool)> {
    let mut all = bindings::all().into_iter();
    let found = all.find(|binding| binding.entry.facts.name == operation)?;
    Some((found.method, found.path, found.is_query()))
}

/// What this door serves, to be put beside what others do. It answers for what nobody serves.
pub fn routes() -> axum::Router<Front> {
    routes::router()
}

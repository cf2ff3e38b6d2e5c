// SPDX-License-Identifier: Apache-2.0
//! The MCP door: tools, resources and prompts for models, over HTTP and over standard input and output.
//! It names operations of the engine's table in the words of the protocol and decides nothing. It sees
//! the engine's lobby, its desks and the core's types, never the store.
#![allow(clippy::result_large_err, reason = "a problem is moved once, to become a reply")]

mod awaited;
mod broker;
mod call;
mod door;
mod handle;
mod holding;
mod http;
mod prompts;
mod resources;
mod schema;
mod stdio;
mod tools;

pub use broker::{Broker, Embedded, Subject};
pub use http::{PATH, routes};
pub use stdio::{AtEnd, NotServed, serve_stdio};

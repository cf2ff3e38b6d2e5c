// SPDX-License-Identifier: Apache-2.0
//! The MCP door, called in process as clients of each version of the protocol call it.
#![allow(clippy::unwrap_used, reason = "what goes wrong in here is the end of a test")]

mod addresses;
mod borders;
mod reading;
mod support;
mod tasks;
mod versions;
mod waits;
mod work;

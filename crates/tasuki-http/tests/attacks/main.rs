// SPDX-License-Identifier: Apache-2.0
//! Attacks by those who already have a foot in the door, one file for each wall that they run into,
//! on both stores. Every one succeeded once, or would without the wall.
#![cfg(test)]

#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, unused_macros, reason = "the other tests use the rest")]
mod support;

mod browsers;
mod claims;
mod content;
mod existence;
mod grants;
mod names;
mod pressure;
mod roles;
mod schemas;
mod signatures;
mod tls;

use support::{contract, samples};

// SPDX-License-Identifier: Apache-2.0
//! The broker as its users meet it: engine and HTTP door in one process, on a clock that only
//! moves when told. One file per noun; every reply that any of them gets is held against the
//! OpenAPI document.
#![cfg(test)]

#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the attacks use the rest")]
mod support;

mod alerts;
mod assembling;
mod audit;
mod borders;
mod breakers;
mod carried;
mod chains;
mod claims;
mod completions;
mod contexts;
mod contracts;
mod crowd;
mod dead_letters;
mod deliveries;
mod desk;
mod discovery;
mod documents;
mod errors;
mod events;
mod fuzz;
mod gate;
mod handoffs;
mod hostile;
mod identity;
mod impostors;
mod joins;
mod manifests;
mod memories;
mod metrics;
mod offers;
mod operations;
mod patterns;
mod permissions;
mod populations;
mod projects;
mod reading;
mod restarts;
mod reviews;
mod revocation;
mod ruled;
mod rules;
mod scopes;
mod sessions;
mod shutdown;
mod signed;
mod stale;
mod strangers;
mod talk;
mod tasks;
mod tenants;
mod tokens;
mod trees;
mod undecided;
mod versions;
mod waits;
mod weak_keys;
mod wire;

use support::{contract, samples};

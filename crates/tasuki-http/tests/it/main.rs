// SPDX-License-Identifier: Apache-2.0
//! The broker as its users meet it: engine and HTTP door in one process, on a clock that only
//! moves when told. One file per noun; every reply that any of them gets is held against the
//! OpenAPI document.
#![cfg(test)]

mod samples;
mod support;

mod audit;
mod claims;
mod completions;
mod contract;
mod crowd;
mod dead_letters;
mod documents;
mod errors;
mod events;
mod fuzz;
mod gate;
mod handoffs;
mod hostile;
mod offers;
mod reviews;
mod shutdown;
mod stale;
mod tasks;
mod waits;
mod wire;

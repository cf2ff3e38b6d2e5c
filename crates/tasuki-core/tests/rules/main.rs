// SPDX-License-Identifier: Apache-2.0
//! The rules as stories, played on a [`tasuki_core::world::World`]. One file per subject;
//! `properties.rs` plays random ones.
#![cfg(test)]

mod approval;
mod cancel;
mod claim;
mod counter;
mod dead_letter;
mod documents;
mod epoch;
mod follow_ups;
mod footprint;
mod golden;
mod grants;
mod hangs;
mod lease;
mod offer;
mod order;
mod owner;
mod properties;
mod random;
mod registry;
mod repeat;
mod retry;
mod schedule;
mod stale;
mod support;
mod tenants;
mod together;
mod traces;
mod wider;

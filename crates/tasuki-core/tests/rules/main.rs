// SPDX-License-Identifier: Apache-2.0
//! The rules as stories, played on a [`tasuki_core::world::World`]. One file per subject;
//! `properties.rs` plays random ones.

#[cfg(test)]
mod support;

#[cfg(test)]
mod approval;
#[cfg(test)]
mod cancel;
#[cfg(test)]
mod claim;
#[cfg(test)]
mod dead_letter;
#[cfg(test)]
mod epoch;
#[cfg(test)]
mod follow_ups;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod lease;
#[cfg(test)]
mod offer;
#[cfg(test)]
mod order;
#[cfg(test)]
mod owner;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod random;
#[cfg(test)]
mod repeat;
#[cfg(test)]
mod retry;
#[cfg(test)]
mod schedule;
#[cfg(test)]
mod stale;

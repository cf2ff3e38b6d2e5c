// SPDX-License-Identifier: Apache-2.0
//! Tasuki's published JSON, one file per noun: what is asked and what is answered, every error with
//! its code, and how a request is read. A contract like the envelope, not a door's private matter:
//! doors, the command line and the tests share it. It knows no HTTP framework, no engine and no store.

mod agents;
mod alerts;
mod assemble;
mod audit;
mod batch;
mod chains;
mod channels;
mod claims;
mod code;
mod contexts;
mod dead_letters;
mod handoffs;
mod members;
mod memories;
mod modernise;
mod offers;
mod overview;
mod pipelines;
mod populations;
mod problem;
pub mod read;
mod refusals;
mod reservations;
mod sessions;
mod system;
mod taints;
mod talk;
mod tasks;
mod tenants;
mod tokens;
mod waits;
mod wish;

pub use agents::*;
pub use alerts::*;
pub use assemble::*;
pub use audit::*;
pub use batch::*;
pub use chains::*;
pub use channels::*;
pub use claims::*;
pub use code::{Class, Code};
pub use contexts::*;
pub use dead_letters::*;
pub use handoffs::*;
pub use members::{Members, OPEN, Openness, schema_of};
pub use memories::*;
pub use offers::*;
pub use overview::*;
pub use pipelines::*;
pub use populations::*;
pub use problem::Problem;
pub use reservations::*;
pub use sessions::*;
pub use system::*;
pub use taints::*;
pub use talk::*;
pub use tasks::*;
pub use tenants::*;
pub use tokens::*;
pub use waits::*;
pub use wish::Wish;

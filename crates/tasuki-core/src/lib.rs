// SPDX-License-Identifier: Apache-2.0
//! What is allowed. The rules of tasks and handoffs as pure functions: told the time and the data,
//! they say what follows. Nothing here reads a clock, draws a random number, or knows that a
//! database or HTTP exists.
//!
//! Reading order: [`ids`], [`canonical`], [`envelope`], [`terms`], [`event`], [`handoff`],
//! [`task`], [`command`], [`decide`], [`refusal`]; [`world`] shows all of it at work.

pub mod address;
pub mod alert;
pub mod assembly;
pub mod breaker;
pub mod budget;
pub mod canonical;
pub mod chain;
pub mod commands;
pub mod contract;
pub mod cursor;
pub mod decide;
pub mod document;
pub mod envelope;
pub mod event;
pub mod handoff;
pub mod identity;
pub mod ids;
pub mod join;
pub mod manifest;
pub mod meter;
pub mod observe;
pub mod pipeline;
pub mod population;
pub mod quota;
pub mod redact;
pub mod refusal;
pub mod registry;
pub mod report;
pub mod reserve;
pub mod route;
pub mod search;
pub mod secrets;
pub mod shared;
pub mod stems;
pub mod table;
pub mod talk;
pub mod task;
pub mod terms;
pub mod tree;
pub mod trust;
pub mod turn;
pub mod world;

pub use canonical::Body;
pub use commands::Command;
pub use cursor::Cursor;
pub use decide::{Decision, Outcome, View, decide};
pub use document::Document;
pub use envelope::{Envelope, Target};
pub use event::{Actor, Event, Record};
pub use handoff::{Handoff, State};
pub use ids::{
    AgentId, Capability, ClaimId, DocumentId, Fence, HandoffId, Hash, Position, TaskId, Timestamp,
};
pub use refusal::Refusal;
pub use task::{Task, TaskState};
pub use terms::Terms;

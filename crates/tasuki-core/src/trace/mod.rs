// SPDX-License-Identifier: Apache-2.0
//! Traces of tasks, from the log alone: which spans follow from which events. A span's id follows from
//! the ids of what it is about, so whoever takes the same events tells the same spans, at every broker
//! and after a restart. No payload is in them, nor any other text that somebody wrote.

mod context;
mod follow;
mod span;

pub use context::{Context, MEMBERS, Mode, Share, send_span, task_span};
pub use follow::Tracer;
pub use span::{Kind, Link, Mark, Span, Value};

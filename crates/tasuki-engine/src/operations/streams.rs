// SPDX-License-Identifier: Apache-2.0
//! What is answered piece by piece, for as long as somebody reads. How the pieces look is the door's
//! business; who gets them is asked of the desk for each.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tasuki_protocol::{self as wire, Code};

use super::Right::{Known, Operator};
use super::{Facts, reads};

/// An operation that is answered with many events.
pub trait Streamed: 'static {
    const FACTS: Facts;
    type In: DeserializeOwned + JsonSchema + Send + 'static;
}

pub struct Events;

impl Streamed for Events {
    const FACTS: Facts = reads(
        "event_stream",
        Known,
        "Follow the audit log as server-sent events; resume with Last-Event-ID",
    )
    .waits();
    type In = wire::FollowEvents;
}

pub struct Export;

impl Streamed for Export {
    const FACTS: Facts = reads(
        "audit_export",
        Operator,
        "Export the audit log as lines of JSON that can be verified anywhere",
    )
    .errors(&[&[Code::CursorLost]]);
    type In = wire::ExportLog;
}

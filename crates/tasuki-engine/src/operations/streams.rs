// SPDX-License-Identifier: Apache-2.0
//! What is answered piece by piece, for as long as somebody reads. How the pieces look is the door's
//! business; who gets them is asked of the desk for each.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tasuki_core::registry::rules::Permission;
use tasuki_protocol::{self as wire, Code};

use super::Right::{Has, Known, Operator};
use super::{Facts, SchemaOf, reads, schema};

/// An operation that is answered with many events.
pub trait Streamed: 'static {
    const FACTS: Facts;
    type In: DeserializeOwned + JsonSchema + Send + 'static;

    /// What the pieces are, where they are JSON.
    const PIECES: SchemaOf = schema::<wire::Event>;
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

pub struct Changes;

impl Streamed for Changes {
    const FACTS: Facts = reads(
        "change_stream",
        Known,
        "Hear that something has changed, at most four times a second, as server-sent events",
    )
    .waits();
    type In = wire::Nothing;
    const PIECES: SchemaOf = schema::<wire::Changed>;
}

pub struct Metrics;

impl Streamed for Metrics {
    const FACTS: Facts = reads(
        "metrics_show",
        Has(Permission::Read),
        "What is measured, as text for Prometheus or as OpenMetrics; of a tenant, its own targets",
    );
    type In = wire::Nothing;
    const PIECES: SchemaOf = schema::<String>;
}

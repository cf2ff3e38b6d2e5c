// SPDX-License-Identifier: Apache-2.0
//! Declared routes of several stages.

use std::sync::Arc;

use tasuki_core::ids::OrderingKey;
use tasuki_core::pipeline::Pipelines;
use tasuki_core::registry::rules::Permission;
use tasuki_protocol as wire;

use super::Right::{Has, Known};
use super::{Done, ENVELOPE_ERRORS, Facts, OFFER_ERRORS, Operation};
use super::{answer, answer_once, brings, reads, shown};
use crate::desk::Desk;

pub struct List;

impl Operation for List {
    const FACTS: Facts = reads("pipeline_list", Known, "Show the routes that are declared");
    type On = ();
    type In = wire::Nothing;
    type Out = Arc<Pipelines>;

    async fn run(desk: &Desk, (): (), _: wire::Nothing) -> Done<Arc<Pipelines>> {
        answer(desk.pipelines())
    }
}

pub struct Start;

impl Operation for Start {
    const FACTS: Facts =
        brings("pipeline_start", Has(Permission::Send), "Begin a task along a declared route")
            .errors(&[ENVELOPE_ERRORS, OFFER_ERRORS]);
    type On = OrderingKey;
    type In = wire::StartPipeline;
    type Out = wire::Offered;

    async fn run(
        desk: &Desk,
        name: OrderingKey,
        asked: wire::StartPipeline,
    ) -> Done<wire::Offered> {
        let offered = Box::pin(desk.start_pipeline(name.as_str(), asked)).await?;
        answer_once(shown::offered(&offered), offered.repeated)
    }
}

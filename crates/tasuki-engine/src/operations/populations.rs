// SPDX-License-Identifier: Apache-2.0
//! What populations of agents do.

use std::sync::Arc;

use tasuki_core::population::Report;
use tasuki_protocol as wire;

use super::Right::Operator;
use super::{Done, Facts, Operation, answer, reads};
use crate::desk::Desk;

pub struct Show;

impl Operation for Show {
    const FACTS: Facts = reads(
        "population_show",
        Operator,
        "Show what agents did lately and what of it is unusual; analysed at most once a minute",
    );
    type On = ();
    type In = wire::ShowPopulation;
    type Out = Arc<Report>;

    async fn run(desk: &Desk, (): (), asked: wire::ShowPopulation) -> Done<Arc<Report>> {
        answer(desk.population(&asked).await?)
    }
}

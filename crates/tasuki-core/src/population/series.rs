// SPDX-License-Identifier: Apache-2.0
//! Numbers that were declared, as one series for each agent: means over slots of time that grow wider as
//! the log grows longer, so that there are never more of them.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;

use super::names::{NONE, Name};
use super::report::{BEHIND_MAX, Behind};
use crate::ids::{HandoffId, Position, TaskId, Timestamp};

pub const FIELDS_MAX: usize = 8;
/// How many agents are compared for each field.
pub const SERIES_MAX: usize = 48;
pub(super) const SLOTS_MAX: usize = 256;
const SLOT_MS: i64 = 1_000;

#[derive(Default)]
pub(super) struct OfAgent {
    /// The sum and the count of each slot.
    pub(super) slots: Vec<(f64, u32)>,
    pub(super) values: u64,
    pub(super) behind: VecDeque<Behind>,
}

pub(super) struct Field {
    pub(super) name: String,
    pub(super) agents: BTreeMap<Name, OfAgent>,
    pub(super) passed_over: bool,
    began: Option<i64>,
    slot_ms: i64,
}

impl Field {
    /// When a slot begins.
    pub(super) fn at(&self, slot: usize) -> Timestamp {
        Timestamp(self.began.unwrap_or(0) + self.slot_ms * slot as i64)
    }
}

pub(super) struct Series {
    pub(super) fields: Vec<Field>,
}

impl Series {
    pub(super) fn of(names: &[String]) -> Self {
        let mut series = Self { fields: Vec::new() };
        names.iter().for_each(|name| series.monitor(name));
        series
    }

    pub(super) fn monitor(&mut self, name: &str) {
        if self.fields.len() < FIELDS_MAX && self.fields.iter().all(|field| field.name != name) {
            self.fields.push(Field {
                name: name.to_owned(),
                agents: BTreeMap::new(),
                passed_over: false,
                began: None,
                slot_ms: SLOT_MS,
            });
        }
    }

    pub(super) fn took(
        &mut self,
        payload: &Value,
        agent: Name,
        at: Timestamp,
        (position, task_id, handoff_id): (Position, TaskId, HandoffId),
    ) {
        if agent == NONE {
            return;
        }
        for field in &mut self.fields {
            let Some(value) = payload.get(&field.name).and_then(Value::as_f64) else { continue };
            if field.agents.len() == SERIES_MAX && !field.agents.contains_key(&agent) {
                field.passed_over = true;
                continue;
            }
            let began = *field.began.get_or_insert(at.0);
            let mut slot = ((at.0 - began).max(0) / field.slot_ms) as usize;
            while slot >= SLOTS_MAX {
                field.slot_ms *= 2;
                field.agents.values_mut().for_each(OfAgent::halve);
                slot /= 2;
            }
            let of = field.agents.entry(agent).or_default();
            if of.slots.len() <= slot {
                of.slots.resize(slot + 1, (0.0, 0));
            }
            of.slots[slot].0 += value;
            of.slots[slot].1 += 1;
            of.values += 1;
            if of.behind.len() == BEHIND_MAX {
                of.behind.pop_front();
            }
            of.behind.push_back(Behind { position, task_id, handoff_id });
        }
    }
}

impl OfAgent {
    fn halve(&mut self) {
        let pairs = self.slots.chunks(2);
        let sum = |pair: &[(f64, u32)]| pair.iter().fold((0.0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        self.slots = pairs.map(sum).collect();
    }
}

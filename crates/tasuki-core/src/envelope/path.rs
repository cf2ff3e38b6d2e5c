// SPDX-License-Identifier: Apache-2.0
//! The way that a task has come. The broker writes it down hop by hop, so that a chain which goes in
//! circles is seen, and so that whoever finds it can see how.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Envelope, Payload, Target};
use crate::canonical;
use crate::event::{DeadReason, TaintPolicy};
use crate::ids::{AgentId, HandoffId, Hash, TaskId};

/// How many hops a chain may have where nobody says otherwise.
pub const HOPS_MAX: u32 = 10;

/// One hop of the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Passed {
    pub hop: u32,
    pub from: AgentId,
    pub to: Target,
    /// The address of what was passed.
    pub payload: Hash,
}

/// A mark on a task: something that it was built on no longer holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Taint {
    /// The handoff that failed, or whose result was taken back.
    pub source: HandoffId,
    /// The task that is tainted by it: this one, or one above it.
    pub task_id: TaskId,
    pub policy: TaintPolicy,
}

/// The way up to here, from the envelope before.
#[must_use]
pub fn so_far(before: Option<&Envelope>) -> Vec<Passed> {
    let Some(before) = before else { return Vec::new() };
    let mut path = before.path.clone();
    path.push(Passed {
        hop: before.hop,
        from: before.from_agent.clone(),
        to: before.to.clone(),
        payload: canonical::address(&before.payload),
    });
    path
}

/// Why a chain may not go on, if it may not.
#[must_use]
pub fn dead_end(
    path: &[Passed],
    hop: u32,
    from: &AgentId,
    to: &Target,
    payload: &Payload,
    hops_max: u32,
) -> Option<DeadReason> {
    if hop >= hops_max {
        return Some(DeadReason::HopLimit);
    }
    // The address of a payload costs as much as the envelope's, and a first hop cannot go in circles.
    if path.is_empty() {
        return None;
    }
    let same = canonical::address(payload);
    // Who offers again what came back to it goes in no circle.
    let again = |passed: &Passed, back: usize| back == 0 && passed.from == *from;
    let circle =
        path.iter().rev().enumerate().any(|(back, passed)| {
            passed.to == *to && passed.payload == same && !again(passed, back)
        });
    circle.then_some(DeadReason::Cycle)
}

/// What taints a hop of a task: what taints the tasks above it, and what taints its own.
#[must_use]
pub fn taints(
    before: Option<&Envelope>,
    task: TaskId,
    own: &[(HandoffId, TaintPolicy)],
) -> Vec<Taint> {
    let above = before.into_iter().flat_map(|before| &before.taints);
    let mut taints: Vec<_> = above.filter(|taint| taint.task_id != task).cloned().collect();
    let own = own.iter().map(|(source, policy)| Taint {
        source: *source,
        task_id: task,
        policy: *policy,
    });
    taints.extend(own);
    taints
}

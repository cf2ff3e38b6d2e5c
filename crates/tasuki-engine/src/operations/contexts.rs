// SPDX-License-Identifier: Apache-2.0
//! Shared contexts of projects.

use serde_json::Value;
use tasuki_core::ids::Project;
use tasuki_core::registry::rules::Permission;
use tasuki_protocol::{self as wire, Code};

use super::Right::{Has, Known};
use super::{Done, Facts, Operation, answer, manages, reads, shown};
use crate::desk::Desk;
use crate::error::Error;

pub struct Show;

impl Operation for Show {
    const FACTS: Facts = reads(
        "context_show",
        Known,
        "Show the shared context of a project, with the tasks that are open",
    )
    .errors(&[&[Code::NotPermitted, Code::MemoryNotFound]]);
    type On = Project;
    type In = wire::ShowContext;
    type Out = wire::SharedContext;

    async fn run(
        desk: &Desk,
        project: Project,
        asked: wire::ShowContext,
    ) -> Done<wire::SharedContext> {
        answer(shown::context(&desk.context_at(&project, asked.revision).await?))
    }
}

pub struct Write;

impl Operation for Write {
    const FACTS: Facts = manages(
        "context_write",
        Has(Permission::WriteSharedContext),
        "Say where a project stands and what holds for all its work",
    )
    .errors(&[&[
        Code::RevisionConflict,
        Code::OwnershipNotShared,
        Code::InvalidDocument,
        Code::SecretFound,
        Code::DiskFull,
    ]]);
    type On = Project;
    type In = wire::WriteContext;
    type Out = wire::SharedContext;

    fn first(desk: &Desk, asked: &Value) -> Result<(), Error> {
        desk.shares_no_ownership(asked)
    }

    async fn run(
        desk: &Desk,
        project: Project,
        asked: wire::WriteContext,
    ) -> Done<wire::SharedContext> {
        answer(shown::context(&desk.write_context(&project, asked).await?))
    }
}

pub struct Decide;

impl Operation for Decide {
    const FACTS: Facts = manages(
        "context_decide",
        Has(Permission::WriteSharedContext),
        "Add a decision to the log of a project",
    )
    .errors(&[&[
        Code::DecisionSettled,
        Code::OwnershipNotShared,
        Code::InvalidDocument,
        Code::SecretFound,
        Code::DiskFull,
    ]]);
    type On = Project;
    type In = wire::NewDecision;
    type Out = wire::SharedContext;

    fn first(desk: &Desk, asked: &Value) -> Result<(), Error> {
        desk.shares_no_ownership(asked)
    }

    async fn run(
        desk: &Desk,
        project: Project,
        asked: wire::NewDecision,
    ) -> Done<wire::SharedContext> {
        answer(shown::context(&desk.decide(&project, asked).await?))
    }
}

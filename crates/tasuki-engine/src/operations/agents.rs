// SPDX-License-Identifier: Apache-2.0
//! Agents and their keys.

use tasuki_core::AgentId;
use tasuki_core::ids::KeyId;
use tasuki_core::registry::Standing;
use tasuki_core::registry::rules::Permission;
use tasuki_protocol::{self as wire, Code};
use tasuki_store::PAGE_MAX;

use super::Right::{Has, Known, LooksAfter};
use super::{Done, Facts, Operation, answer, manages, reads, shown};
use crate::desk::Desk;

const AGENT_ERRORS: &[Code] = &[Code::AgentNotFound, Code::GrantTooWide, Code::NotPermitted];

pub struct Publish;

impl Operation for Publish {
    const FACTS: Facts = manages(
        "agent_publish",
        LooksAfter(Permission::Administer),
        "Publish an agent's manifest, its first or a new one",
    )
    .errors(&[&[
        Code::AgentNotFound,
        Code::InvalidManifest,
        Code::NameTaken,
        Code::ManifestMoved,
        Code::GrantTooWide,
    ]]);
    type On = ();
    type In = wire::Publish;
    type Out = wire::Agent;

    async fn run(desk: &Desk, (): (), asked: wire::Publish) -> Done<wire::Agent> {
        let agent = desk.publish(asked.manifest, asked.signed, asked.version).await?;
        answer(shown::agent(&desk.agent(&agent.id).await?))
    }
}

pub struct List;

impl Operation for List {
    const FACTS: Facts = reads(
        "agent_list",
        Known,
        "Find agents by capability, tag, version, presence and how they fare",
    );
    type On = ();
    type In = wire::ListAgents;
    type Out = wire::Agents;

    async fn run(desk: &Desk, (): (), asked: wire::ListAgents) -> Done<wire::Agents> {
        let search = wire::Search {
            tenant: asked.tenant,
            capability: asked.capability,
            tags: asked.tag.into_iter().collect(),
            role: asked.role,
            version: asked.version,
            live: asked.live,
            reliability: asked.reliability,
            limit: asked.limit,
            ..wire::Search::default()
        };
        found(desk, search).await
    }
}

pub struct Search;

impl Operation for Search {
    const FACTS: Facts =
        reads("agent_search", Known, "Find agents, also by what goes in and what comes out");
    type On = ();
    type In = wire::Search;
    type Out = wire::Agents;

    async fn run(desk: &Desk, (): (), asked: wire::Search) -> Done<wire::Agents> {
        found(desk, asked).await
    }
}

async fn found(desk: &Desk, search: wire::Search) -> Done<wire::Agents> {
    let found = desk.discover(search).await?;
    answer(wire::Agents { agents: found.iter().map(shown::agent).collect() })
}

pub struct Catalogue;

impl Operation for Catalogue {
    const FACTS: Facts =
        reads("agent_catalogue", Known, "Who can be reached here, for programs that look around");
    type On = ();
    type In = wire::Nothing;
    type Out = wire::Catalogue;

    async fn run(desk: &Desk, (): (), _: wire::Nothing) -> Done<wire::Catalogue> {
        let search = wire::Search { limit: Some(PAGE_MAX), ..wire::Search::default() };
        let found = desk.discover(search).await?;
        answer(shown::catalogue(&found, desk.broker_key()))
    }
}

pub struct Show;

impl Operation for Show {
    const FACTS: Facts = reads("agent_show", Known, "Show an agent, its manifest and its keys")
        .errors(&[&[Code::AgentNotFound]]);
    type On = AgentId;
    type In = wire::Nothing;
    type Out = wire::Agent;

    async fn run(desk: &Desk, id: AgentId, _: wire::Nothing) -> Done<wire::Agent> {
        answer(shown::agent(&desk.agent(&id).await?))
    }
}

pub struct Drain;

impl Operation for Drain {
    const FACTS: Facts = manages(
        "agent_drain",
        LooksAfter(Permission::Operate),
        "Let an agent finish what it has; nothing new is routed to it",
    )
    .errors(&[AGENT_ERRORS]);
    type On = AgentId;
    type In = wire::Nothing;
    type Out = wire::Agent;

    async fn run(desk: &Desk, id: AgentId, _: wire::Nothing) -> Done<wire::Agent> {
        stand(desk, &id, Standing::Draining).await
    }
}

pub struct Resume;

impl Operation for Resume {
    const FACTS: Facts = manages(
        "agent_resume",
        LooksAfter(Permission::Operate),
        "Let a drained agent have work again",
    )
    .errors(&[AGENT_ERRORS]);
    type On = AgentId;
    type In = wire::Nothing;
    type Out = wire::Agent;

    async fn run(desk: &Desk, id: AgentId, _: wire::Nothing) -> Done<wire::Agent> {
        stand(desk, &id, Standing::Active).await
    }
}

pub struct Deregister;

impl Operation for Deregister {
    const FACTS: Facts = manages(
        "agent_deregister",
        LooksAfter(Permission::Administer),
        "Take an agent out; what it holds waits for somebody else",
    )
    .errors(&[AGENT_ERRORS]);
    type On = AgentId;
    type In = wire::Nothing;
    type Out = wire::Agent;

    async fn run(desk: &Desk, id: AgentId, _: wire::Nothing) -> Done<wire::Agent> {
        stand(desk, &id, Standing::Deregistered).await
    }
}

async fn stand(desk: &Desk, id: &AgentId, standing: Standing) -> Done<wire::Agent> {
    let agent = desk.set_standing(id, standing).await?;
    answer(shown::agent(&desk.agent(&agent.id).await?))
}

pub struct SetRules;

impl Operation for SetRules {
    const FACTS: Facts =
        manages("agent_set_rules", Has(Permission::Administer), "Say what an agent may do").errors(
            &[&[Code::AgentNotFound, Code::NotPermitted, Code::GrantTooWide, Code::InvalidRules]],
        );
    type On = AgentId;
    type In = wire::SetRules;
    type Out = wire::Agent;

    async fn run(desk: &Desk, id: AgentId, asked: wire::SetRules) -> Done<wire::Agent> {
        let agent = desk.set_rules(&id, asked.rules).await?;
        answer(shown::agent(&desk.agent(&agent.id).await?))
    }
}

pub struct EnrollKey;

impl Operation for EnrollKey {
    const FACTS: Facts = manages(
        "key_enroll",
        Has(Permission::Administer),
        "Enroll a key by the word of an administrator",
    )
    .errors(&[&[
        Code::AgentNotFound,
        Code::NotPermitted,
        Code::GrantTooWide,
        Code::KeyNotShown,
        Code::KeyTaken,
        Code::TooManyKeys,
        Code::InvalidRules,
        Code::NameTaken,
    ]]);
    type On = AgentId;
    type In = wire::Enroll;
    type Out = wire::Agent;

    async fn run(desk: &Desk, id: AgentId, asked: wire::Enroll) -> Done<wire::Agent> {
        let enrolled = desk.enroll(&id, asked.key, asked.rules).await?;
        answer(shown::agent(&desk.agent(&enrolled.agent.id).await?))
    }
}

pub struct RotateKey;

impl Operation for RotateKey {
    const FACTS: Facts = manages(
        "key_rotate",
        LooksAfter(Permission::Administer),
        "Replace a key; the old one still counts for a while",
    )
    .errors(&[&[
        Code::AgentNotFound,
        Code::GrantTooWide,
        Code::KeyNotFound,
        Code::KeyNotShown,
        Code::KeyTaken,
        Code::TooManyKeys,
    ]]);
    type On = AgentId;
    type In = wire::Rotate;
    type Out = wire::Agent;

    async fn run(desk: &Desk, id: AgentId, asked: wire::Rotate) -> Done<wire::Agent> {
        let enrolled = desk.rotate(&id, asked.old, asked.key, &asked.proof, asked.grace_ms).await?;
        answer(shown::agent(&desk.agent(&enrolled.agent.id).await?))
    }
}

pub struct RevokeKey;

impl Operation for RevokeKey {
    const FACTS: Facts = manages(
        "key_revoke",
        LooksAfter(Permission::Administer),
        "Revoke a key at once; with its last key an agent loses what it holds",
    )
    .errors(&[&[
        Code::AgentNotFound,
        Code::NotPermitted,
        Code::KeyNotFound,
        Code::KeyNotShown,
    ]]);
    type On = (AgentId, KeyId);
    type In = wire::Nothing;
    type Out = wire::Agent;

    async fn run(
        desk: &Desk,
        (agent, key): (AgentId, KeyId),
        _: wire::Nothing,
    ) -> Done<wire::Agent> {
        let agent = desk.revoke(&agent, key).await?;
        answer(shown::agent(&desk.agent(&agent.id).await?))
    }
}

// SPDX-License-Identifier: Apache-2.0
//! The broker itself, its log, and how its targets fare.

use tasuki_core::registry::rules::Permission;
use tasuki_core::{AgentId, Target};
use tasuki_protocol::{self as wire, Code};

use super::Right::{Has, Operator};
use super::{Done, Facts, Operation, answer, manages, reads, shown};
use crate::desk::Desk;
use crate::health::{PausedFor, TargetHealth};
use crate::instruments::resident_bytes;

pub struct Verify;

impl Operation for Verify {
    const FACTS: Facts = reads(
        "audit_verify",
        Operator,
        "Check what is new in the audit log, or all of it, and name the first bad entry",
    );
    type On = ();
    type In = wire::VerifyLog;
    type Out = wire::Verdict;

    async fn run(desk: &Desk, (): (), asked: wire::VerifyLog) -> Done<wire::Verdict> {
        answer(shown::verdict(desk.verify(asked.full).await?))
    }
}

pub struct Stats;

impl Operation for Stats {
    const FACTS: Facts = reads("stats_show", Has(Permission::Read), "Show what the broker holds");
    type On = ();
    type In = wire::Nothing;
    type Out = wire::Stats;

    async fn run(desk: &Desk, (): (), _: wire::Nothing) -> Done<wire::Stats> {
        let seen = desk.stats().await?;
        let epochs = desk.epochs().await?;
        let store = seen.store.map(|stats| wire::StoreStats {
            head: epochs.cursor(desk.head()),
            commits: stats.commits,
            commands: stats.commands,
            events: stats.events,
            mean_batch: stats.events as f64 / stats.commits.max(1) as f64,
            live_bytes: stats.live_bytes,
            waiting_handoffs: stats.waiting_handoffs,
            idempotency_keys: stats.idempotency_keys,
            projection_lag: stats.projection_lag,
            resident_bytes: resident_bytes(),
        });
        let of_tenant = store.is_none();
        let now = desk.now();
        let counts = seen.counts;
        answer(wire::Stats {
            handoffs: counts.handoffs.iter().map(|it| shown::count(it, now)).collect(),
            tasks: counts.tasks.iter().map(|it| shown::count(it, now)).collect(),
            version: env!("CARGO_PKG_VERSION").into(),
            now,
            live_handoffs: seen.store.map_or(seen.usage.in_flight, |stats| stats.live_handoffs),
            disk_full: seen.disk_full,
            stored_bytes: of_tenant.then_some(seen.usage.stored_bytes),
            tenant: of_tenant.then_some(seen.tenant),
            store,
        })
    }
}

pub struct Overview;

impl Operation for Overview {
    const FACTS: Facts = reads(
        "overview_show",
        Has(Permission::Read),
        "Show at a glance how everything goes: latency, completeness, failures, and targets that need somebody",
    );
    type On = ();
    type In = wire::Nothing;
    type Out = wire::Overview;

    async fn run(desk: &Desk, (): (), _: wire::Nothing) -> Done<wire::Overview> {
        answer(desk.overview().await?)
    }
}

pub struct Targets;

impl Operation for Targets {
    const FACTS: Facts = reads(
        "health_targets",
        Has(Permission::Read),
        "Show how targets fare: failures in a row, breakers, hops, and how full budgets were",
    );
    type On = ();
    type In = wire::Nothing;
    type Out = wire::TargetsHealth;

    async fn run(desk: &Desk, (): (), _: wire::Nothing) -> Done<wire::TargetsHealth> {
        let targets = desk.health().await?.into_iter();
        let targets = targets.map(|(target, health)| faring(desk, target, &health));
        answer(wire::TargetsHealth { targets: targets.collect() })
    }
}

fn faring(desk: &Desk, target: Target, health: &TargetHealth) -> wire::TargetHealth {
    let now = desk.now();
    let state = health.state(now);
    let facts = &health.facts;
    let share = |part: u64, of: u64| (of > 0).then(|| part.saturating_mul(1000) / of);
    wire::TargetHealth {
        target,
        live: health.live,
        breaker: state.name().to_string(),
        paused: health.pause.as_ref().map(shown::paused),
        exhausted_in_row: health.breaker.as_ref().map_or(0, |breaker| breaker.in_row),
        limits: health.limits,
        reset_in_ms: state.sends_from().map(|until| until.ms_after(now)),
        failures_in_row: facts.failures_in_row,
        offers: facts.offers,
        hops: facts.hops.clone(),
        utilisation_per_mille: share(facts.tokens, facts.budget),
        completeness_per_mille: (facts.filled > 0)
            .then(|| facts.completeness_per_mille / facts.filled),
    }
}

pub struct SetBreaker;

impl Operation for SetBreaker {
    const FACTS: Facts = manages(
        "agent_set_breaker",
        Has(Permission::Operate),
        "Set after how many failures nothing more goes to an agent, and for how long",
    )
    .errors(&[&[Code::AgentNotFound, Code::NotPermitted, Code::InvalidTerms]]);
    type On = AgentId;
    type In = wire::SetBreaker;
    type Out = wire::TargetHealth;

    async fn run(desk: &Desk, id: AgentId, asked: wire::SetBreaker) -> Done<wire::TargetHealth> {
        let (target, health) = desk.set_breaker(&id, asked.limits).await?;
        answer(faring(desk, target, &health))
    }
}

pub struct PauseTarget;

impl Operation for PauseTarget {
    const FACTS: Facts = manages(
        "target_pause",
        Has(Permission::Operate),
        "Let nothing be claimed of an agent or a capability, until a time or until it is resumed",
    )
    .errors(&[&[Code::OtherTenant, Code::NotPermitted, Code::InvalidTerms]]);
    type On = ();
    type In = wire::PauseTarget;
    type Out = wire::TargetHealth;

    async fn run(desk: &Desk, (): (), asked: wire::PauseTarget) -> Done<wire::TargetHealth> {
        let pause = PausedFor { until: asked.until, for_ms: asked.for_ms };
        let (target, health) = desk.set_pause(&asked.target, Some(pause)).await?;
        answer(faring(desk, target, &health))
    }
}

pub struct ResumeTarget;

impl Operation for ResumeTarget {
    const FACTS: Facts = manages(
        "target_resume",
        Has(Permission::Operate),
        "Let work be claimed of an agent or a capability again",
    )
    .errors(&[&[Code::OtherTenant, Code::NotPermitted]]);
    type On = ();
    type In = wire::ResumeTarget;
    type Out = wire::TargetHealth;

    async fn run(desk: &Desk, (): (), asked: wire::ResumeTarget) -> Done<wire::TargetHealth> {
        let (target, health) = desk.set_pause(&asked.target, None).await?;
        answer(faring(desk, target, &health))
    }
}

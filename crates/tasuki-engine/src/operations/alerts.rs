// SPDX-License-Identifier: Apache-2.0
//! Alerts: what holds, the rules, silences, and a notice to try it out.

use tasuki_core::alert::RULES;
use tasuki_core::registry::rules::Permission;
use tasuki_protocol::{self as wire, Code};

use super::Right::{Has, Operator};
use super::{Done, Facts, Operation, answer, manages, reads};
use crate::desk::Desk;

pub struct List;

impl Operation for List {
    const FACTS: Facts = reads(
        "alert_list",
        Has(Permission::Read),
        "List alerts that are on, pending or ended last, what people were told, and silences",
    );
    type On = ();
    type In = wire::Nothing;
    type Out = wire::Alerts;

    async fn run(desk: &Desk, (): (), _: wire::Nothing) -> Done<wire::Alerts> {
        answer(desk.alerts().await?)
    }
}

pub struct Rules;

impl Operation for Rules {
    const FACTS: Facts = reads(
        "alert_rules",
        Has(Permission::Read),
        "List the rules of alerts, each with the expression that Prometheus would evaluate",
    );
    type On = ();
    type In = wire::Nothing;
    type Out = wire::AlertRules;

    async fn run(_: &Desk, (): (), _: wire::Nothing) -> Done<wire::AlertRules> {
        let rules = RULES.iter().map(|rule| wire::AlertRule {
            name: rule.name.into(),
            severity: rule.severity.to_string(),
            for_ms: rule.for_ms,
            by_target: rule.by_target,
            built_in: rule.is_built_in(),
            expression: rule.expression(),
            summary: rule.summary.into(),
            action: rule.action.into(),
        });
        answer(wire::AlertRules { rules: rules.collect() })
    }
}

pub struct Silence;

impl Operation for Silence {
    const FACTS: Facts = manages(
        "alert_silence",
        Has(Permission::Operate),
        "Keep people from being told of alerts for a while, with a reason, or end that",
    )
    .errors(&[&[Code::InvalidTerms, Code::OtherTenant]]);
    type On = ();
    type In = wire::SilenceAlert;
    type Out = wire::Alerts;

    async fn run(desk: &Desk, (): (), asked: wire::SilenceAlert) -> Done<wire::Alerts> {
        answer(desk.silence(asked).await?)
    }
}

pub struct Test;

impl Operation for Test {
    const FACTS: Facts =
        manages("alert_test", Operator, "Send a notice to every webhook to try it out");
    type On = ();
    type In = wire::Nothing;
    type Out = wire::AlertTested;

    async fn run(desk: &Desk, (): (), _: wire::Nothing) -> Done<wire::AlertTested> {
        answer(wire::AlertTested { webhooks: desk.test_webhooks().await? })
    }
}

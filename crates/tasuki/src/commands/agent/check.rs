// SPDX-License-Identifier: Apache-2.0
//! `tasuki agent check`: tests for rules, before a change is taken. It asks no broker.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tasuki_core::AgentId;
use tasuki_core::canonical;
use tasuki_core::registry::rules::{Effect, Permission, Rule, Wish, allow};
use tasuki_engine::operations::{self, Right};

use crate::exit::{Exit, Failure};
use crate::output::{Output, table};
use crate::rules;

#[derive(Args)]
pub(super) struct Check {
    /// A JSON file with the rules of each agent: {"coder": [{"role": "worker"}]}
    #[arg(long, value_name = "FILE")]
    rules: PathBuf,
    /// A JSON file with a list of cases, such as {"agent": "coder", "permission": "send", "target":
    /// "prod-db", "allowed": false}; instead of a permission there may be an operation
    #[arg(long, value_name = "FILE")]
    cases: PathBuf,
}

#[derive(Deserialize, Serialize, Clone)]
#[serde(deny_unknown_fields)]
struct Case {
    agent: AgentId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    permission: Option<Permission>,
    /// A name of the table, which stands for the permission that it needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    operation: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    /// What is expected.
    allowed: bool,
}

#[derive(Serialize)]
struct Checked {
    #[serde(flatten)]
    case: Case,
    as_expected: bool,
    /// The rule that decides, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
}

#[derive(Serialize)]
struct Report {
    as_expected: usize,
    otherwise: usize,
    cases: Vec<Checked>,
}

impl Check {
    pub(super) fn run(self, output: Output) -> anyhow::Result<Exit> {
        let rules: BTreeMap<AgentId, Vec<Rule>> = read(&self.rules)?;
        for (agent, rules) in &rules {
            if let Some(fault) = rules.iter().find_map(Rule::fault) {
                let message = format!("the rules of {agent} do not fit: {fault}");
                return Err(Failure::usage(message, "correct the file").into());
            }
        }
        let cases: Vec<Case> = read(&self.cases)?;
        let cases = cases.into_iter().map(|case| checked(&rules, case));
        let cases = cases.collect::<Result<Vec<_>, _>>()?;
        let as_expected = cases.iter().filter(|case| case.as_expected).count();
        let report = Report { as_expected, otherwise: cases.len() - as_expected, cases };
        output.found(&report, text)?;
        Ok(if report.otherwise == 0 { Exit::Done } else { Exit::Refused })
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let shown = path.display();
    let bytes = std::fs::read(path).map_err(|error| {
        Failure::usage(format!("cannot read {shown}: {error}"), "name a file that can be read")
    })?;
    let value = canonical::parse(&bytes).map_err(|error| {
        Failure::usage(format!("{shown} is not JSON that a broker takes: {error}"), "correct it")
    })?;
    serde_json::from_value(value).map_err(|error| {
        let hint = "`tasuki agent check --help` shows what goes in there";
        Failure::usage(format!("{shown} does not fit: {error}"), hint)
    })
}

fn checked(rules: &BTreeMap<AgentId, Vec<Rule>>, case: Case) -> Result<Checked, Failure> {
    let permission = permission(&case)?;
    let rules = rules.get(&case.agent).map_or(&[][..], Vec::as_slice);
    let wish =
        Wish { permission, target: case.target.as_deref(), project: case.project.as_deref() };
    let found = allow(rules, &wish);
    // The one without which it would be otherwise.
    let decides = |rule: &&Rule| {
        let wanted = if found { Effect::Allow } else { Effect::Deny };
        let alone = Rule { effect: Effect::Allow, ..(*rule).clone() };
        rule.effect == wanted && allow(&[alone], &wish)
    };
    let by = rules.iter().find(decides).map(rules::text);
    Ok(Checked { as_expected: found == case.allowed, by, case })
}

fn permission(case: &Case) -> Result<Permission, Failure> {
    let wrong =
        |why: String| Failure::usage(why, "name a permission, or an operation that needs one");
    match (case.permission, &case.operation) {
        (Some(permission), None) => Ok(permission),
        (None, Some(name)) => {
            let entry = operations::named(name)
                .ok_or_else(|| wrong(format!("there is no operation {name:?}")))?;
            match entry.facts.right {
                Right::Has(it) | Right::Each(it) | Right::Decides(it) | Right::LooksAfter(it) => {
                    Ok(it)
                }
                Right::Operator => Ok(Permission::Administer),
                Right::Public | Right::Known => Err(wrong(format!(
                    "{name} needs no permission; what may not be seen is not there"
                ))),
            }
        }
        (Some(_), Some(_)) | (None, None) => {
            Err(wrong(format!("a case of {} names both or neither", case.agent)))
        }
    }
}

fn text(report: &Report) -> String {
    let rows = report.cases.iter().map(|it| {
        let case = &it.case;
        let found = case.allowed == it.as_expected;
        [
            if it.as_expected { "ok" } else { "WRONG" }.to_owned(),
            case.agent.to_string(),
            case.permission.map_or_else(
                || case.operation.clone().unwrap_or_default(),
                |permission| permission.to_string(),
            ),
            case.target.clone().unwrap_or_default(),
            case.project.clone().unwrap_or_default(),
            if found { "allowed" } else { "denied" }.to_owned(),
            it.by.clone().unwrap_or_else(|| "no rule allows it".to_owned()),
        ]
    });
    let heads = ["", "agent", "wants to", "target", "project", "is", "by"];
    let (good, bad) = (report.as_expected, report.otherwise);
    format!("{}{good} as expected, {bad} otherwise\n", table(heads, rows))
}

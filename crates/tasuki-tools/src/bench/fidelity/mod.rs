// SPDX-License-Identifier: Apache-2.0
//! `tasuki-tools bench fidelity`: how much of what the first of five agents knew reaches the last one, by
//! our strategies and by what people do without a broker. No model and no network: constraints and
//! facts arrive verbatim or they do not. What a model then makes of them is not measured.

mod baseline;
mod corpus;
mod questions;
mod relay;
mod scenario;

use std::path::PathBuf;

use clap::Args;
use comfy_table::{Table, presets};
use serde::Serialize;

use relay::{Method, Outcome, Share};
use scenario::{Scenario, Split};
use tasuki_cli::output::Output;

#[derive(Args)]
pub(super) struct Fidelity {
    /// A directory with `policy.md` and `trajectories.json` in the form of tau-bench's airline data,
    /// or with `meetings.jsonl` in the form of QMSum's; without it, the scenarios that came with this program are relayed
    #[arg(long)]
    data: Option<PathBuf>,
    /// How many tokens each handoff may have; may be repeated
    #[arg(long = "budget", default_values_t = [1000, 1500, 2000, 3000])]
    budgets: Vec<u64>,
    /// Which task ids of `--data` are relayed; odd ones if there are any, unless this says otherwise
    #[arg(long)]
    split: Option<Split>,
}

/// What was measured.
#[derive(Debug, Serialize, PartialEq)]
struct Report {
    data: String,
    chains: usize,
    rows: Vec<Row>,
}

/// One way of passing things on within one budget. Shares are means over the chains.
#[derive(Debug, Serialize, PartialEq)]
struct Row {
    budget: u64,
    method: Method,
    constraints: f64,
    prohibitions: f64,
    facts_inline: f64,
    facts_reachable: f64,
    overruns: u64,
    refusals: u64,
    tokens_mean: u64,
    tokens_max: u64,
}

impl Fidelity {
    pub(super) fn run(self, output: Output) -> anyhow::Result<()> {
        if let Some(data) = self.data.as_deref().filter(|data| data.join(questions::FILE).exists())
        {
            let report = questions::measure(data, &self.budgets)?;
            return output.found(&report, questions::Report::text);
        }
        let (data, scenarios) = self.scenarios()?;
        let report = measure(data, &scenarios, &self.budgets);
        output.found(&report, Report::text)
    }

    fn scenarios(&self) -> anyhow::Result<(String, Vec<Scenario>)> {
        let Some(directory) = &self.data else {
            return Ok(("own corpus".into(), corpus::scenarios()?));
        };
        let all = scenario::airline(directory)?;
        let odd = all.iter().any(|(task, _)| task % 2 == 1);
        let split = self.split.unwrap_or(if odd { Split::Odd } else { Split::Even });
        let wanted = |task: u64| match split {
            Split::Odd => task % 2 == 1,
            Split::Even => task.is_multiple_of(2),
            Split::All => true,
        };
        let scenarios: Vec<Scenario> =
            all.into_iter().filter(|(task, _)| wanted(*task)).map(|(_, it)| it).collect();
        anyhow::ensure!(!scenarios.is_empty(), "there is no such task in {}", directory.display());
        let name = match split {
            Split::Odd => "odd task ids (test split)",
            Split::Even => "even task ids (weights may be set on these)",
            Split::All => "all task ids",
        };
        Ok((name.into(), scenarios))
    }
}

/// The texts of all messages of our own scenarios.
pub(super) fn messages() -> anyhow::Result<Vec<String>> {
    let scenarios = corpus::scenarios()?;
    let messages = scenarios.into_iter().flat_map(|scenario| scenario.stages).flatten();
    Ok(messages.map(|message| message.text).collect())
}

fn measure(data: String, scenarios: &[Scenario], budgets: &[u64]) -> Report {
    let mut rows = Vec::new();
    for &budget in budgets {
        for method in Method::ALL {
            let outcomes: Vec<Outcome> =
                scenarios.iter().map(|scenario| relay::run(scenario, method, budget)).collect();
            rows.push(Row::of(budget, method, &outcomes));
        }
    }
    Report { data, chains: scenarios.len(), rows }
}

impl Row {
    fn of(budget: u64, method: Method, outcomes: &[Outcome]) -> Self {
        let tokens = || outcomes.iter().flat_map(|outcome| &outcome.tokens).copied();
        let handoffs = (tokens().count() as u64).max(1);
        Self {
            budget,
            method,
            constraints: mean(outcomes, |outcome| outcome.constraints),
            prohibitions: mean(outcomes, |outcome| outcome.prohibitions),
            facts_inline: mean(outcomes, |outcome| outcome.facts_inline),
            facts_reachable: mean(outcomes, |outcome| outcome.facts_reachable),
            overruns: outcomes.iter().map(|outcome| outcome.overruns).sum(),
            refusals: outcomes.iter().map(|outcome| outcome.refusals).sum(),
            tokens_mean: tokens().sum::<u64>() / handoffs,
            tokens_max: tokens().max().unwrap_or(0),
        }
    }
}

/// The mean over the chains that have any, to three digits.
fn mean(outcomes: &[Outcome], share: impl Fn(&Outcome) -> Share) -> f64 {
    let shares = outcomes.iter().map(share).filter(|share| share.all > 0);
    let (mut sum, mut number) = (0, 0);
    for share in shares {
        sum += share.kept * 1_000_000 / share.all;
        number += 1;
    }
    // In whole numbers up to here, so that the result does not depend on the order of the sum.
    let thousandths = sum.checked_div(number).map_or(0, |mean| (mean + 500) / 1000);
    thousandths as f64 / 1000.0
}

impl Report {
    fn text(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header([
            "BUDGET",
            "PASSED BY",
            "CONSTRAINTS",
            "PROHIBITIONS",
            "FACTS",
            "REACHABLE",
            "OVERRUNS",
            "REFUSED",
            "TOKENS MEAN",
            "MAX",
        ]);
        for row in &self.rows {
            table.add_row([
                row.budget.to_string(),
                row.method.as_str().to_owned(),
                format!("{:.3}", row.constraints),
                format!("{:.3}", row.prohibitions),
                format!("{:.3}", row.facts_inline),
                format!("{:.3}", row.facts_reachable),
                row.overruns.to_string(),
                row.refusals.to_string(),
                row.tokens_mean.to_string(),
                row.tokens_max.to_string(),
            ]);
        }
        format!("{} chains of five agents, {}\n\n{table}\n", self.chains, self.data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_corpus_gives_the_recorded_result() {
        // Written by `tasuki-tools bench fidelity --budget 1000 --budget 1500 --json`.
        let golden: serde_json::Value = serde_json::from_str(include_str!("golden.json")).unwrap();
        let report = measure("own corpus".into(), &corpus::scenarios().unwrap(), &[1000, 1500]);
        assert_eq!(report.chains, 40);
        assert_eq!(serde_json::to_value(&report).unwrap(), golden, "see the command above");
    }

    #[test]
    fn no_constraint_is_lost_and_no_budget_exceeded_by_any_of_our_strategies() {
        let scenarios = corpus::scenarios().unwrap();
        let report = measure(String::new(), &scenarios[..8], &[400, 700]);
        let naive = [
            Method::KeepTail,
            Method::SummaryPerHop,
            Method::LastMessages,
            Method::NewestThatFit,
            Method::Bm25,
            Method::ArrayCompression,
        ];
        for row in report.rows.iter().filter(|row| !naive.contains(&row.method)) {
            assert_eq!((row.constraints, row.prohibitions, row.facts_reachable), (1.0, 1.0, 1.0));
            assert_eq!((row.overruns, row.refusals), (0, 0));
        }
    }

    #[test]
    fn what_binds_in_a_policy_is_told_from_what_does_not() {
        let policy =
            "# Rules\n\n- You must ask first. Users have a profile.\n- Bags cannot be removed.";
        let found = scenario::constraints_of(policy);
        let texts: Vec<_> = found.iter().map(|it| (it.text.as_str(), it.prohibition)).collect();
        assert_eq!(texts, [("You must ask first.", false), ("Bags cannot be removed.", true)]);
    }
}

// SPDX-License-Identifier: Apache-2.0
//! `tasuki-tools conformance`: holds any server against the protocol of `docs/spec`. The checks are data
//! (`conformance/`); here is one of the programs that carry them out.

mod compare;
mod condition;
mod embedded;
mod matcher;
mod report;
mod runner;
mod suite;
mod value;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use self::report::Report;
use self::runner::Runner;
use self::suite::{Check, LEVELS, Suite, listed};
use tasuki_cli::args::millis;
use tasuki_cli::client::{Client, Connect, Method, Sent};
use tasuki_cli::exit::{Exit, Failure};
use tasuki_cli::output::{Output, print};

/// How many checks are under way at a time. Most of them wait most of the time.
const AT_A_TIME: usize = 8;

#[derive(Args)]
pub(crate) struct Conformance {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run the checks against a server and report which levels it may claim
    Run(Box<Run>),
    /// List the checks with their reasons
    List(List),
    /// Print all checks as one JSON document, for other programs that run them
    Suite,
}

#[derive(Args)]
struct Run {
    /// The server to hold against the protocol, if it is not the one of --url
    #[arg(long, value_name = "URL")]
    target: Option<String>,
    #[command(flatten)]
    choice: Choice,
    /// How to report
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// How long an answer may take, beyond what the server is asked to wait
    #[arg(long, value_name = "SPAN", default_value = "10s", value_parser = millis)]
    timeout: u64,
    /// Run the checks of this file, as `tasuki-tools conformance suite` prints them
    #[arg(long, value_name = "FILE")]
    suite: Option<PathBuf>,
    #[command(flatten)]
    connect: Connect,
}

#[derive(Args)]
struct List {
    #[command(flatten)]
    choice: Choice,
}

#[derive(Args)]
struct Choice {
    /// Only the checks of this level; may be given several times
    #[arg(long, value_name = "LEVEL", value_parser = LEVELS)]
    level: Vec<String>,
    /// Only the checks whose id is this; * stands for anything
    #[arg(long, value_name = "ID")]
    only: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Tap,
    Json,
}

impl Conformance {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        match self.verb {
            Verb::Run(run) => run.run(output).await,
            Verb::List(list) => list.run(output),
            Verb::Suite => {
                print(&own().document())?;
                Ok(Exit::Done)
            }
        }
    }
}

fn own() -> Suite {
    Suite::own().expect("a test reads every check that is built in")
}

impl Run {
    async fn run(self, output: Output) -> anyhow::Result<Exit> {
        let own = own();
        let (suite, own_suite) = match &self.suite {
            Some(path) => {
                let suite = read(path)?;
                let is_own = suite.document() == own.document();
                (suite, is_own)
            }
            None => (own, true),
        };
        let chosen = self.choice.of(&suite)?;
        let mut connect = self.connect;
        connect.url = self.target.unwrap_or(connect.url);
        let client = connect.client()?;
        let timeout = Duration::from_millis(self.timeout);
        client.is_there(timeout).await?;
        let target = client.url().to_owned();
        let run = run_name()?;
        takes_names(&client, &run, timeout).await?;
        let runner = Arc::new(Runner { suite, client, timeout, run });
        let outcomes = runner.clone().run(&chosen, AT_A_TIME).await;
        let report = Report::of(&runner.suite, own_suite, &target, outcomes);
        let printed = print(&match if output.json { Format::Json } else { self.format } {
            Format::Text => report.for_people(),
            Format::Tap => report.tap(),
            Format::Json => report.json(),
        });
        match printed {
            // Who reads only the beginning must not take what failed for a success.
            Err(error) if report.ok || !is_closed(&error) => Err(error),
            _ if report.ok => Ok(Exit::Done),
            _ => Ok(Exit::Refused),
        }
    }
}

/// Whether nobody reads any more what is printed.
fn is_closed(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<std::io::Error>();
    cause.is_some_and(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe)
}

/// A server that asks every agent who it is would refuse nearly every check, and for nothing that
/// the checks are about. One call shows it.
async fn takes_names(client: &Client, run: &str, timeout: Duration) -> Result<(), Failure> {
    let ask = json!({ "agent": format!("nobody-{run}") });
    let path = "/v1/claims";
    let body = Some(ask.to_string().into_bytes());
    let sent = Sent { method: Method::POST, path, query: &[], body, timeout };
    // Whatever else comes, and if it is nothing: that is for the checks to find out.
    let Ok((401 | 403, _)) = client.exchange(sent).await else { return Ok(()) };
    Err(Failure::usage(
        format!("the server at {} asks who each agent is", client.url()),
        "the checks speak for agents of their own: give --target a server that takes names at \
         their word, as `tasuki serve` does on loopback",
    ))
}

fn read(path: &PathBuf) -> anyhow::Result<Suite> {
    let hint = "give a file that `tasuki-tools conformance suite` printed";
    let text = std::fs::read_to_string(path);
    let suite = text.map_err(|error| error.to_string()).and_then(|text| Suite::read(&text));
    Ok(suite
        .map_err(|why| Failure::usage(format!("cannot use {}: {why}", path.display()), hint))?)
}

/// A name that no other run has.
fn run_name() -> anyhow::Result<String> {
    let mut bytes = [0; 5];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl List {
    fn run(&self, output: Output) -> anyhow::Result<Exit> {
        let suite = own();
        let chosen = self.choice.of(&suite)?;
        let checks: Vec<_> = chosen.iter().map(|number| &suite.checks[*number]).collect();
        let found: Vec<_> = checks.iter().map(|check| listed(check)).collect();
        output.found(&found, |_| checks.iter().map(|check| for_people(check)).collect())?;
        Ok(Exit::Done)
    }
}

fn for_people(check: &Check) -> String {
    let Check { id, title, reason, rule, .. } = check;
    format!("{id} ({rule})\n    {title}\n    {reason}\n")
}

impl Choice {
    /// The numbers of the checks that are wanted.
    fn of(&self, suite: &Suite) -> Result<Vec<usize>, Failure> {
        let is_wanted = |check: &Check| {
            (self.level.is_empty() || self.level.contains(&check.level))
                && self.only.as_ref().is_none_or(|pattern| is_like(pattern, &check.id))
        };
        let numbers: Vec<_> =
            (0..suite.checks.len()).filter(|number| is_wanted(&suite.checks[*number])).collect();
        if numbers.is_empty() {
            let hint = "`tasuki-tools conformance list` shows every check";
            return Err(Failure::usage("no check is chosen by --level and --only", hint));
        }
        Ok(numbers)
    }
}

/// Whether a text is like a pattern in which `*` stands for anything.
fn is_like(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<_> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// The page of the reference with all checks.
pub(crate) fn page() -> String {
    let suite = own();
    let mut page = PAGE_HEAD.to_owned();
    for level in LEVELS {
        let of_level: Vec<_> = suite.checks.iter().filter(|check| check.level == level).collect();
        page += &format!("\n## {level}: {} checks\n\n", of_level.len());
        page += "| check | what is claimed | why | rule |\n| --- | --- | --- | --- |\n";
        for Check { id, title, reason, rule, .. } in of_level {
            let anchor = rule.to_lowercase();
            page += &format!(
                "| `{id}` | {title} | {reason} | [{rule}](../spec/README.md#{anchor}) |\n"
            );
        }
    }
    page
}

const PAGE_HEAD: &str = "\
# Conformance checks

Printed by `tasuki-tools reference conformance` from `conformance/`. Do not edit.

[How to run them](../guides/conformance.md), and [what they hold a server to](../spec/README.md).
";

#[cfg(test)]
mod tests {
    use super::is_like;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text) in [("a.b", "a.b"), ("a.*", "a.b"), ("*b*d", "abcd"), ("*", "")] {
            assert!(is_like(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a", "ab"), ("a.*", "b.a."), ("*b*d", "adcb"), ("ab*b", "ab")] {
            assert!(!is_like(pattern, text), "{pattern} {text}");
        }
    }
}

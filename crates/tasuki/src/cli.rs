// SPDX-License-Identifier: Apache-2.0
//! The table of commands.

use clap::{Parser, Subcommand};
use tasuki_cli::{COMMON, Commands};

use crate::commands::{
    agent, alerts, analyze, audit, backup, chain, channel, completions, context, dead_letter, demo,
    doctor, envelope, explain, handoff, health, keys, mcp, memory, migrate, moved, pipeline,
    profile, question, ready, rebuild, reference, restore, serve, stats, status, target, task,
    tenant, token,
};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::store_failed;

/// The handoff broker for AI agents: who owns what, what exactly the receiver got, and that nothing
/// was lost.
#[derive(Parser)]
#[command(name = "tasuki", version, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// Print JSON: the broker's own, exactly as it came; errors too
    #[arg(long, global = true, help_heading = COMMON)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the broker
    Serve(Box<serve::Serve>),
    /// Show what this broker is, what waits, what is wrong, and what to do next
    Status(status::Status),
    /// Watch three scripted agents hand a task over while things go wrong; no key is needed
    Demo(demo::Demo),
    /// Open, look at and cancel tasks
    Task(task::Task),
    /// Offer, claim, work on and finish handoffs
    Handoff(handoff::Handoff),
    /// Check and show exported chains, and import them for reading
    Chain(chain::Chain),
    /// Show what was passed, and what changed from hop to hop
    Envelope(envelope::EnvelopeArgs),
    /// Say where a handoff or a task is, what happened, what its receiver got, and what to do next
    Explain(explain::Explain),
    /// Let a model work through MCP: serve a client over standard input and output, or configure one
    Mcp(mcp::Mcp),
    /// Keep, find, change and erase memories
    Memory(memory::Memory),
    /// Read and write what all agents of a project share
    Context(context::Context),
    /// Publish messages to all subscribers of a channel, and read what was published
    Channel(channel::Channel),
    /// Run tasks along routes that are declared in a file
    Pipeline(pipeline::Pipeline),
    /// Decide on dead letters
    // What it was called at first; the next minor forgets it.
    #[command(alias = "dlq")]
    DeadLetter(dead_letter::DeadLetter),
    /// Show how targets fare
    Health(health::Health),
    /// Show alerts, silence them, try webhooks, and print the rules for Prometheus
    Alerts(alerts::Alerts),
    /// Pause an agent or a capability, or resume it
    Target(target::Target),
    /// Invite, enroll, describe and look after agents
    Agent(Box<agent::Agent>),
    /// Keep brokers, agents and tokens under names, and say which of them counts
    Profile(profile::ProfileArgs),
    /// Make, show, replace and revoke keys
    Keys(keys::Keys),
    /// Issue, list and revoke tokens
    Token(token::Token),
    /// Look at what holders ask, and answer it
    Question(question::Question),
    /// Say what tenants may use
    Tenant(tenant::Tenant),
    /// Verify, export and follow the audit log
    Audit(audit::Audit),
    /// Look for what is unusual in how agents work together, from the log alone
    Analyze(analyze::Analyze),
    /// Ask whether the broker would take a command now
    Ready(ready::Ready),
    /// Show what the broker holds and how it does
    Stats(stats::Stats),
    /// Copy the data to a file, while the broker goes on
    Backup(backup::Backup),
    /// Put a backup into an empty data directory
    Restore(restore::Restore),
    /// Move everything to PostgreSQL, or back to a data directory
    Migrate(migrate::Migrate),
    /// Make everything that follows from the audit log anew
    Rebuild(rebuild::Rebuild),
    /// Check the broker and its data, and say what to do
    Doctor(doctor::Doctor),
    /// Print a completion script for a shell
    Completions(completions::Completions),
    /// Print a page of the reference, made from the code
    #[command(hide = true)]
    Reference(reference::Reference),
    /// Moved to `tasuki-tools bench`
    #[command(hide = true)]
    Bench(moved::Moved),
    /// Moved to `tasuki-tools conformance`
    #[command(hide = true)]
    Conformance(moved::Moved),
}

/// The commands by what one wants to do.
const GROUPS: &[(&str, &[&str])] = &[
    ("Start", &["demo", "serve", "status", "doctor", "ready"]),
    ("Hand work over", &["handoff", "task", "question", "dead-letter", "channel", "pipeline"]),
    (
        "See what happened",
        &["explain", "envelope", "chain", "audit", "stats", "health", "alerts", "analyze"],
    ),
    ("Agents and access", &["agent", "mcp", "profile", "keys", "token", "tenant", "target"]),
    ("What agents share", &["memory", "context"]),
    ("Run a broker", &["backup", "restore", "migrate", "rebuild"]),
];

impl Commands for Cli {
    fn output(&self) -> Output {
        Output { json: self.json }
    }

    fn groups() -> &'static [(&'static str, &'static [&'static str])] {
        GROUPS
    }

    fn failure(error: &anyhow::Error) -> Option<Failure> {
        store_failed::failure(error)
    }

    async fn run(self) -> anyhow::Result<Exit> {
        let output = self.output();
        match self.command {
            Command::Serve(serve) => serve.run(output).await,
            Command::Status(status) => status.run(output).await,
            Command::Profile(profile) => profile.run(output),
            Command::Demo(demo) => demo.run(output).await,
            Command::Task(task) => task.run(output).await,
            Command::Handoff(handoff) => handoff.run(output).await,
            Command::Chain(chain) => chain.run(output).await,
            Command::Envelope(envelope) => envelope.run(output).await,
            Command::Explain(explain) => explain.run(output).await,
            Command::Mcp(mcp) => mcp.run(output).await,
            Command::Memory(memory) => memory.run(output).await,
            Command::Context(context) => context.run(output).await,
            Command::Channel(channel) => channel.run(output).await,
            Command::Pipeline(pipeline) => pipeline.run(output).await,
            Command::DeadLetter(letter) => letter.run(output).await,
            Command::Health(health) => health.run(output).await,
            Command::Alerts(alerts) => alerts.run(output).await,
            Command::Target(target) => target.run(output).await,
            Command::Agent(agent) => agent.run(output).await,
            Command::Keys(keys) => keys.run(output).await,
            Command::Token(token) => token.run(output).await,
            Command::Question(question) => question.run(output).await,
            Command::Tenant(tenant) => tenant.run(output).await,
            Command::Audit(audit) => audit.run(output).await,
            Command::Analyze(analyze) => analyze.run(output).await,
            Command::Ready(ready) => ready.run(output).await,
            Command::Stats(stats) => stats.run(output).await,
            Command::Backup(backup) => backup.run(output).await,
            Command::Restore(restore) => restore.run(output),
            Command::Migrate(migrate) => migrate.run(output).await,
            Command::Rebuild(rebuild) => rebuild.run(output),
            Command::Doctor(doctor) => doctor.run(output).await,
            Command::Completions(completions) => completions.run(),
            Command::Reference(reference) => reference.run(),
            Command::Bench(moved) => moved.run("bench"),
            Command::Conformance(moved) => moved.run("conformance"),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn every_group_of_the_help_names_commands_that_are_there_and_each_once() {
        let command = super::Cli::command();
        let mut named: Vec<_> = super::GROUPS.iter().flat_map(|(_, names)| *names).collect();
        assert!(named.iter().all(|name| command.find_subcommand(name).is_some()), "{named:?}");
        let all = named.len();
        named.sort();
        named.dedup();
        assert_eq!(named.len(), all);
    }

    /// Where clap is built with debug assertions, this finds arguments that contradict each other.
    #[test]
    fn the_table_of_commands_is_sound() {
        super::Cli::command().debug_assert();
    }
}

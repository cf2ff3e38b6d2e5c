// SPDX-License-Identifier: Apache-2.0

use clap::{ArgGroup, Args};
use tasuki_core::contract::After;
use tasuki_core::envelope::{Action, Control, Said, authored};
use tasuki_core::identity::statement;
use tasuki_core::ids::{CorrelationId, IdempotencyKey, OrderingKey, Project};
use tasuki_core::route::Policy;
use tasuki_core::terms::LEASE_MS_MIN;
use tasuki_core::tree::OnParentEnd;
use tasuki_core::{AgentId, Capability, Target, TaskId, Timestamp};
use tasuki_protocol as wire;

use super::{look, nearest, text};
use crate::args::{AGENT, json, millis, words};
use crate::client::Client;
use crate::exit::Exit;
use crate::output::{Facts, Output, print, print_dressed};

const POLICIES: &[&str] = &["any", "least_loaded", "most_reliable", "round_robin", "sticky"];
const ACTIONS: &[&str] =
    &["request", "completed", "failed", "needs_review", "changes_requested", "escalated"];

/// What carries the work where all of it is said in words.
const NO_PAYLOAD: &str = r#"{"type":"request"}"#;

#[derive(Args)]
#[command(group = ArgGroup::new("target").required(true))]
pub(super) struct Offer {
    /// Who offers; the owner of the task
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    from: AgentId,
    /// The agent who is to do the work
    #[arg(long, value_name = "AGENT", group = "target")]
    to: Option<AgentId>,
    /// What any agent must be able to do to take the work
    #[arg(long, value_name = "CAPABILITY", group = "target")]
    to_capability: Option<Capability>,
    /// The user's own words; needed for a new task, carried by the broker from then on
    #[arg(long, value_name = "TEXT")]
    intent: Option<String>,
    /// The work: a JSON object with a `type`, in place, as @FILE, or - for stdin. What the intent and
    /// the ask say is enough without it
    #[arg(long, value_name = "JSON", default_value = NO_PAYLOAD, hide_default_value = true)]
    payload: String,
    /// Print the handoff's id and nothing else
    #[arg(long, short, conflicts_with = "wait")]
    quiet: bool,
    /// The task to hand on, or to call somebody for; a new one without it
    #[arg(long, value_name = "TASK")]
    task: Option<TaskId>,
    /// Call instead of transfer: stay owner of the task and wait for the result
    #[arg(long)]
    call: bool,
    /// What the sender did, or wants done
    #[arg(long, value_parser = words::<Action>(ACTIONS), default_value = "request")]
    action: Action,
    /// The idempotency key: the same key and offer give the first answer again
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<IdempotencyKey>,
    /// 0 to 9; higher is claimed first, 5 by default
    #[arg(long, value_name = "N")]
    priority: Option<u8>,
    #[command(flatten)]
    terms: Terms,
    #[command(flatten)]
    contract: Contract,
    #[command(flatten)]
    said: SaidArgs,
    /// When the work must be finished, such as 2026-11-15T12:00:00Z
    #[arg(long, value_name = "TIME")]
    deadline: Option<Timestamp>,
    /// The same as a span from now, such as 10m
    #[arg(long, value_name = "SPAN", value_parser = millis)]
    expires_in: Option<u64>,
    /// Do not let it be claimed before this much time has passed
    #[arg(long, value_name = "SPAN", value_parser = millis)]
    start_in: Option<u64>,
    /// Hold it back until somebody other than the sender approves
    #[arg(long)]
    needs_approval: bool,
    /// Who may approve it, and nobody else; may be repeated
    #[arg(long = "approver", value_name = "AGENT")]
    approvers: Vec<AgentId>,
    /// A task that must have a result before this can be claimed; may be repeated
    #[arg(long = "after", value_name = "TASK")]
    after: Vec<TaskId>,
    /// How many of them must have one; all of them without it
    #[arg(long, value_name = "N", requires = "after")]
    after_need: Option<u32>,
    /// Handoffs to one target with the same key are worked on one after the other
    #[arg(long, value_name = "KEY")]
    ordering_key: Option<OrderingKey>,
    /// Of a call: what becomes of it when the caller's own work ends without a result: cancel (the
    /// default) or let_go
    #[arg(long, value_name = "POLICY")]
    on_parent_end: Option<OnParentEnd>,
    /// What the task may spend from here on, as JSON: {"tokens": 50000, "cost": 1.5}
    #[arg(long, value_name = "JSON")]
    budget: Option<String>,
    /// Links everything that belongs to one request of the outside world
    #[arg(long, value_name = "ID")]
    correlation_id: Option<CorrelationId>,
    /// Who decides about a new task when things go wrong, and is told of every failure
    #[arg(long, value_name = "AGENT")]
    coordinator: Option<AgentId>,
    /// The project that a new task belongs to
    #[arg(long, value_name = "PROJECT")]
    project: Option<Project>,
    /// For monitoring only: a JSON object
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
    /// Wait until it is claimed, 15s or as long as said; then show the handoff. What nobody has
    /// claimed by then goes to the next one, or to the dead letters, unless --ack says otherwise
    #[arg(
        long,
        value_name = "SPAN",
        value_parser = millis,
        num_args = 0..=1,
        default_missing_value = "15s"
    )]
    wait: Option<u64>,
}

#[derive(Args)]
struct Contract {
    /// What is to be done, with --to: the agent's manifest says what goes in and comes out
    #[arg(long, value_name = "CAPABILITY", conflicts_with = "to_capability")]
    capability: Option<Capability>,
    /// With --to-capability: choose one of the agents by this policy; without it all may claim
    #[arg(long, value_parser = words::<Policy>(POLICIES), requires = "to_capability")]
    route: Option<Policy>,
    /// What a sticky choice sticks to
    #[arg(long, value_name = "KEY", requires = "route")]
    route_key: Option<String>,
    /// A JSON Schema that the result must fit, in place, as @FILE, or - for stdin
    #[arg(long, value_name = "JSON")]
    output_schema: Option<String>,
    /// How many tokens the work may use
    #[arg(long, value_name = "N")]
    budget_tokens: Option<u32>,
}

/// What the sender says besides the payload.
#[derive(Args)]
struct SaidArgs {
    /// What this receiver must do
    #[arg(long, value_name = "TEXT")]
    ask: Option<String>,
    /// What the task is about now, in a few sentences
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
    /// Adds something that binds every agent from here on, such as "Never touch production."; may
    /// be repeated
    #[arg(long = "constraint", value_name = "TEXT")]
    constraints: Vec<String>,
    /// The claim counts only once the receiver has repeated what binds it
    #[arg(long)]
    read_back: bool,
    /// Other parts of the envelope (decisions, open_decisions, history, gaps, memory_refs,
    /// expected_output, …): a JSON object, in place, as @FILE, or - for stdin
    #[arg(long, value_name = "JSON")]
    parts: Option<String>,
}

impl SaidArgs {
    fn said(self) -> anyhow::Result<Said> {
        let parts = self.parts.map(|text| json("--parts", &text)).transpose()?;
        let mut said: Said = parts.unwrap_or_default();
        said.ask = self.ask.or(said.ask);
        said.summary = self.summary.or(said.summary);
        said.read_back |= self.read_back;
        if !self.constraints.is_empty() {
            anyhow::ensure!(
                said.add_constraints.is_none(),
                "give constraints with --constraint or as add_constraints in --parts, not both"
            );
            said.add_constraints = Some(self.constraints.into());
        }
        Ok(said)
    }
}

#[derive(Args)]
struct Terms {
    /// How long a claim holds without a heartbeat, such as 30s
    #[arg(long, value_name = "SPAN", value_parser = millis)]
    lease: Option<u64>,
    /// How long one attempt may take in all, such as 1h
    #[arg(long, value_name = "SPAN", value_parser = millis)]
    work: Option<u64>,
    /// How many attempts may fail before it is dead-lettered
    #[arg(long, value_name = "N")]
    attempts: Option<u32>,
    /// How many leases in a row may be lost before it is quarantined
    #[arg(long, value_name = "N")]
    losses: Option<u32>,
    /// The longest pause before a retry, such as 30s
    #[arg(long, value_name = "SPAN", value_parser = millis)]
    backoff: Option<u64>,
    /// How long it may wait to be claimed before it goes to the next one, such as 15s
    #[arg(long, value_name = "SPAN", value_parser = millis)]
    ack: Option<u64>,
    /// Who is asked next if the receiver cannot or will not do it, repeated
    #[arg(long = "fallback", value_name = "AGENT")]
    fallbacks: Vec<AgentId>,
    /// After those: anybody with this capability, repeated
    #[arg(long = "fallback-capability", value_name = "CAPABILITY")]
    fallback_capabilities: Vec<Capability>,
}

impl Terms {
    /// `wait` is how long the sender waits for it to be claimed.
    fn patch(&self, wait: Option<u64>) -> Option<wire::TermsPatch> {
        let patch = wire::TermsPatch {
            lease_ms: self.lease,
            work_ms: self.work,
            attempts: self.attempts,
            losses: self.losses,
            backoff_ms: self.backoff,
            ack_ms: self.ack.or(wait.map(|ms| ms.max(LEASE_MS_MIN))),
        };
        let spans = self.lease.or(self.work).or(self.backoff).or(self.ack).or(wait);
        let says_something = spans.is_some() || self.attempts.or(self.losses).is_some();
        says_something.then_some(patch)
    }
}

impl Offer {
    pub(super) async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let (wait, quiet) = (self.wait, self.quiet);
        let all = u32::try_from(self.after.len()).unwrap_or(u32::MAX);
        let need = self.after_need.unwrap_or(all);
        let to = match (self.to, self.to_capability) {
            (Some(agent), _) => Target::Agent(agent),
            (None, Some(capability)) => Target::Capability(capability),
            (None, None) => unreachable!("one of them is required"),
        };
        let metadata = self.metadata.map(|text| json("--metadata", &text)).transpose()?;
        let schema = self.contract.output_schema;
        let schema = schema.map(|text| json("--output-schema", &text)).transpose()?;
        let route_key = self.contract.route_key;
        let hop = wire::FollowUp {
            control: if self.call { Control::Awaited } else { Control::Passed },
            action: self.action,
            metadata: metadata.unwrap_or_default(),
            priority: self.priority,
            terms: self.terms.patch(wait),
            fallbacks: self
                .terms
                .fallbacks
                .into_iter()
                .map(Target::Agent)
                .chain(self.terms.fallback_capabilities.into_iter().map(Target::Capability))
                .collect(),
            after: (need > 0).then_some(After { tasks: self.after, need }),
            approvers: self.approvers,
            capability: self.contract.capability,
            route: self.contract.route.map(|policy| wire::Route { policy, key: route_key }),
            output_schema: schema,
            budget_tokens: self.contract.budget_tokens,
            deadline: self.deadline,
            expires_in_ms: self.expires_in,
            start_in_ms: self.start_in,
            needs_approval: self.needs_approval,
            ordering_key: self.ordering_key,
            on_parent_end: self.on_parent_end,
            budget: self.budget.map(|text| json("--budget", &text)).transpose()?,
            said: self.said.said()?,
            ..wire::FollowUp::new(to, json("--payload", &self.payload)?)
        };
        let body = wire::Offer {
            from_agent: self.from,
            task_id: self.task,
            intent: self.intent,
            correlation_id: self.correlation_id,
            coordinator: self.coordinator.map(wire::Coordinator::Agent),
            project: self.project,
            idempotency_key: self.idempotency_key,
            hop,
        };
        let body = signed(body, client);
        let reply = client.post("/v1/handoffs", &body).await?;
        if let Some(wait) = wait {
            let offered: wire::Offered = serde_json::from_str(&reply)?;
            return look::wait_for_claim(client, output, offered.handoff_id, wait).await;
        }
        if !output.json {
            let offered: wire::Offered = serde_json::from_str(&reply)?;
            if quiet {
                print(&offered.handoff_id.to_string())?;
                return Ok(Exit::Done);
            }
            let meant = nearest::of(client, &offered).await;
            print_dressed(&for_people(&offered, &meant, client))?;
            return Ok(Exit::Done);
        }
        print(&reply)?;
        Ok(Exit::Done)
    }
}

/// Signs what the sender says, if it has a key and says all of it: words that the broker carries
/// are not the sender's to sign.
fn signed(body: wire::Offer, client: &Client) -> wire::Offer {
    let (Some(key), Some(intent)) = (client.key(), &body.intent) else { return body };
    let wire::FollowUp { to, action, control, payload, .. } = &body.hop;
    let said = authored(&body.from_agent, to, *action, *control, intent, payload);
    let signed = Some(key.sign(&statement::envelope(said)));
    wire::Offer { hop: wire::FollowUp { signed, ..body.hop }, ..body }
}

fn for_people(offered: &wire::Offered, meant: &[String], client: &Client) -> String {
    let handoff = offered.handoff_id;
    let nobody = (!offered.listening).then_some("nobody is there yet who takes work for it");
    let routed = offered
        .routed
        .map(|why| format!("{}, {} of {} there", why.policy, why.live, why.candidates));
    Facts::default()
        .with("handoff", handoff)
        .with("task", offered.task_id)
        .with("status", &offered.status)
        .with("to", text::target(&offered.to))
        .maybe("chosen", routed)
        .maybe("listening", nobody)
        .maybe("meant?", (!meant.is_empty()).then(|| meant.join(", ")))
        .with("expires", offered.expires_at)
        .with("next", client.command(&format!("handoff wait {handoff}")))
        .text()
}

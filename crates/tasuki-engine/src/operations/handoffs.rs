// SPDX-License-Identifier: Apache-2.0
//! Handoffs, as who sends them and who decides about them sees them.

use std::sync::Arc;

use tasuki_core::assembly::PromptForm;
use tasuki_core::handoff::StateName;
use tasuki_core::registry::rules::Permission;
use tasuki_core::{Handoff, HandoffId, State, Target};
use tasuki_protocol::{self as wire, Code, Problem, Until};
use tasuki_store::HandoffFilter;

use super::Right::{Decides, Each, Has, Known};
use super::{Done, ENVELOPE_ERRORS, Facts, OFFER_ERRORS, Operation, SchemaOf};
use super::{answer, answer_once, asked, brings, manages, reads, schema, shown, tasks};
use crate::desk::{Desk, Page};
use crate::prompt::PromptWish;
use crate::requests::{WaitFor, WaitMode, WaitRequest, Waited};

pub struct Offer;

impl Operation for Offer {
    const FACTS: Facts = brings(
        "handoff_offer",
        Has(Permission::Send),
        "Offer work to an agent, or to any agent with a capability",
    )
    .errors(&[ENVELOPE_ERRORS, OFFER_ERRORS]);
    type On = ();
    type In = wire::Offer;
    type Out = wire::Offered;

    const ASKS: SchemaOf = schema::<wire::AnyOffer>;

    async fn run(desk: &Desk, (): (), asked: wire::Offer) -> Done<wire::Offered> {
        let offered = desk.offer(asked).await?;
        answer_once(shown::offered(&offered), offered.repeated)
    }
}

pub struct OfferBatch;

impl Operation for OfferBatch {
    const FACTS: Facts = brings(
        "handoff_offer_batch",
        Each(Permission::Send),
        "Offer many at once; each answers for itself, all are synced together",
    );
    type On = ();
    type In = wire::OfferBatch;
    type Out = wire::Batch<wire::Offered>;

    async fn run(desk: &Desk, (): (), asked: wire::OfferBatch) -> Done<wire::Batch<wire::Offered>> {
        check_batch("offers", asked.offers.len())?;
        asked.offers.iter().try_for_each(|offer| asked::check_members(&offer.hop, ""))?;
        let results = desk.offer_many(asked.offers).await?;
        let results = results
            .into_iter()
            .map(|result| result.map(|it| shown::offered(&it)))
            .map(|result| shown::part(result.map_err(Problem::from)))
            .collect();
        answer(noted(desk, wire::Batch { results }, Self::FACTS.name).await)
    }
}

pub(super) const BATCH_MAX: usize = 1000;

pub(super) fn check_batch(field: &str, parts: usize) -> Result<(), Problem> {
    if (1..=BATCH_MAX).contains(&parts) {
        return Ok(());
    }
    Err(Problem::invalid(field, format!("has {parts} parts, expected 1 to {BATCH_MAX}")))
}

/// What may not be done is recorded, also as a part of many.
pub(super) async fn noted<T>(desk: &Desk, batch: wire::Batch<T>, name: &str) -> wire::Batch<T> {
    for part in &batch.results {
        if let wire::Part::Failed { error } = part
            && let Some(code) = error.known()
        {
            desk.note_denied(code, name).await;
        }
    }
    batch
}

pub struct Send;

impl Operation for Send {
    const FACTS: Facts = brings(
        "handoff_send",
        Has(Permission::Send),
        "Offer work and wait until the receiver has accepted it, or until there is a result",
    )
    .waits()
    .errors(&[ENVELOPE_ERRORS, OFFER_ERRORS]);
    type On = ();
    type In = wire::Send;
    type Out = wire::Sent;

    async fn run(desk: &Desk, (): (), asked: wire::Send) -> Done<wire::Sent> {
        let until = asked.until;
        let offered = desk.offer_within(asked.offer, asked.timeout_ms).await?;
        let waited = desk
            .wait(WaitRequest {
                these: vec![WaitFor::Handoff(offered.handoff.id)],
                mode: WaitMode::All,
                until,
                timeout_ms: asked.timeout_ms,
            })
            .await?;
        let Some(Waited::Handoff { handoff, .. }) = waited.into_iter().next() else {
            return Err(shown::missing());
        };
        let output = desk.results(std::slice::from_ref(&handoff)).await?.pop().flatten();
        let sent = wire::Sent {
            reached: has_reached(&handoff, until),
            listening: desk.listening(&handoff),
            handoff: shown::handoff(&handoff, desk.now()),
            output: output.as_ref().map(shown::raw),
        };
        answer_once(sent, offered.repeated)
    }
}

/// A dead letter is at its end, and nobody has accepted it.
fn has_reached(handoff: &Handoff, until: Until) -> bool {
    match &handoff.state {
        State::Completed { .. } => true,
        State::InputRequired(_) => until != Until::Settled,
        State::Claimed(_) | State::InProgress(_) | State::Answered(_) => until == Until::Claimed,
        State::Scheduled { .. }
        | State::AwaitingApproval
        | State::Pending { .. }
        | State::Failed { .. }
        | State::Aborted { .. }
        | State::DeadLettered { .. }
        | State::Cancelled { .. } => false,
    }
}

pub struct List;

impl Operation for List {
    const FACTS: Facts = reads("handoff_list", Known, "List handoffs, newest first");
    type On = ();
    type In = wire::ListHandoffs;
    type Out = wire::Handoffs;

    async fn run(desk: &Desk, (): (), asked: wire::ListHandoffs) -> Done<wire::Handoffs> {
        let to = match (asked.to_agent, asked.to_capability) {
            (Some(_), Some(_)) => {
                let problem = "give to_agent or to_capability, not both";
                return Err(Problem::invalid("query", problem));
            }
            (Some(agent), None) => Some(Target::Agent(agent)),
            (None, Some(capability)) => Some(Target::Capability(capability)),
            (None, None) => None,
        };
        let filter = HandoffFilter {
            tenant: None,
            state: tasks::state::<StateName>(asked.state.as_deref())?,
            task: asked.task,
            to,
            from: asked.from_agent,
            unreviewed: false,
            before: asked.before,
            max: asked.limit.unwrap_or(100),
        };
        answer(page(desk, &desk.list_handoffs(filter).await?))
    }
}

pub(super) fn page(desk: &Desk, page: &Page<Handoff, HandoffId>) -> wire::Handoffs {
    let now = desk.now();
    let handoffs = page.items.iter().map(|handoff| shown::handoff(handoff, now)).collect();
    wire::Handoffs { handoffs, next: page.next }
}

pub struct Ready;

impl Operation for Ready {
    const FACTS: Facts =
        reads("handoff_ready", Known, "Show what can be started now, and what holds back the rest");
    type On = ();
    type In = wire::ListReady;
    type Out = wire::ReadyView;

    async fn run(desk: &Desk, (): (), asked: wire::ListReady) -> Done<wire::ReadyView> {
        let to = asked.to_agent.map(Target::Agent);
        let to = to.or(asked.to_capability.map(Target::Capability));
        let (ready, held) = desk.ready(to, asked.from_agent, asked.limit.unwrap_or(100)).await?;
        let shown = |(handoff, waits_for): (Arc<Handoff>, Vec<wire::WaitsFor>)| wire::Waits {
            handoff_id: handoff.id,
            task_id: handoff.task_id,
            correlation_id: handoff.contract.correlation_id.clone(),
            from_agent: handoff.from.clone(),
            to: handoff.to.clone(),
            state: handoff.state.name().to_string(),
            waits_for,
        };
        answer(wire::ReadyView {
            ready: ready.into_iter().map(shown).collect(),
            held: held.into_iter().map(shown).collect(),
        })
    }
}

pub struct Show;

impl Operation for Show {
    const FACTS: Facts =
        reads("handoff_show", Known, "Show a handoff; with wait_ms, once it has come far enough")
            .waits()
            .errors(&[&[Code::HandoffNotFound]]);
    type On = HandoffId;
    type In = wire::ShowHandoff;
    type Out = wire::HandoffWithResult;

    async fn run(
        desk: &Desk,
        id: HandoffId,
        asked: wire::ShowHandoff,
    ) -> Done<wire::HandoffWithResult> {
        if let Some(timeout_ms) = asked.wait_ms.filter(|ms| *ms > 0) {
            let until = asked.until.unwrap_or_default();
            let these = vec![WaitFor::Handoff(id)];
            desk.wait(WaitRequest { these, mode: WaitMode::All, until, timeout_ms }).await?;
        }
        let (handoff, result) = desk.handoff_with_result(id).await?;
        let output = result.as_ref().map(shown::raw);
        let waits_for = desk.waits_for(&handoff).await?;
        let handoff = shown::handoff(&handoff, desk.now());
        answer(wire::HandoffWithResult { handoff, waits_for, output })
    }
}

pub struct Envelope;

impl Operation for Envelope {
    const FACTS: Facts = reads(
        "handoff_envelope",
        Known,
        "Read the envelope of a handoff, exactly as it was stored",
    )
    .errors(&[&[Code::HandoffNotFound, Code::BodyErased]]);
    type On = HandoffId;
    type In = wire::Nothing;
    type Out = wire::StoredEnvelope;

    async fn run(desk: &Desk, id: HandoffId, _: wire::Nothing) -> Done<wire::StoredEnvelope> {
        let (handoff, body) = desk.envelope(id).await?;
        let gone = || {
            // Nothing that is still needed is erased.
            if handoff.state.is_terminal() { shown::erased() } else { shown::missing() }
        };
        answer(wire::StoredEnvelope(shown::raw(&body.ok_or_else(gone)?)))
    }
}

pub struct Prompt;

impl Operation for Prompt {
    const FACTS: Facts = reads(
        "handoff_prompt",
        Known,
        "Read the envelope of a handoff as a model does, with how many tokens that is",
    )
    .errors(&[&[Code::HandoffNotFound, Code::BudgetTooSmall]]);
    type On = HandoffId;
    type In = wire::RenderPrompt;
    type Out = wire::Prompt;

    async fn run(desk: &Desk, id: HandoffId, asked: wire::RenderPrompt) -> Done<wire::Prompt> {
        let messages = asked.form == Some(wire::PromptStyle::Messages);
        let wish = PromptWish {
            tokenizer: asked.tokenizer,
            max_tokens: asked.max_tokens,
            all: asked.all,
            form: match asked.form {
                Some(wire::PromptStyle::Xml) => PromptForm::Xml,
                Some(wire::PromptStyle::Markdown | wire::PromptStyle::Messages) | None => {
                    PromptForm::Markdown
                }
            },
            payload_apart: asked.payload_apart,
        };
        let prompt = desk.prompt(id, wish).await?;
        let url = |memory: String| format!("/v1/memories/{memory}?detail=full&handoff={id}");
        let fetch = desk.trimmed(id).await?.into_iter().map(url).collect();
        let rest = format!("{}{}", prompt.read.rest, prompt.delivery);
        let message = |role: &str, content: &str| wire::PromptMessage {
            role: role.to_owned(),
            content: content.to_owned(),
        };
        answer(wire::Prompt {
            messages: match messages {
                true => vec![message("system", &prompt.read.stable), message("user", &rest)],
                false => Vec::new(),
            },
            prompt: format!("{}{rest}", prompt.read.stable),
            token_count: prompt.token_count,
            exact: prompt.tokenizer.is_exact(),
            tokenizer: prompt.tokenizer,
            bound: prompt.bound,
            assembled_tokens: prompt.read.token_count,
            shortened: prompt.read.shortened,
            names: prompt.read.names.into_iter().collect(),
            left_out: prompt.left_out,
            missing: prompt.read.missing,
            texts_left_out: prompt.texts_left_out,
            fetch,
        })
    }
}

pub struct Wait;

impl Operation for Wait {
    const FACTS: Facts = reads("handoff_wait", Known, "Wait for many handoffs and tasks at once")
        .waits()
        .errors(&[&[Code::HandoffNotFound, Code::TaskNotFound]]);
    type On = ();
    type In = wire::Wait;
    type Out = wire::Waited;

    async fn run(desk: &Desk, (): (), asked: wire::Wait) -> Done<wire::Waited> {
        let mode = asked.mode;
        let waited = desk.wait(asked::wait(&asked)).await?;
        let done = match mode {
            WaitMode::All => waited.iter().all(Waited::reached),
            WaitMode::Any => waited.iter().any(Waited::reached),
        };
        let mut open_handoffs = Vec::new();
        let mut open_tasks = Vec::new();
        for open in waited.iter().filter(|waited| !waited.reached()) {
            match open {
                Waited::Handoff { handoff, .. } => open_handoffs.push(handoff.id),
                Waited::Task { task, .. } => open_tasks.push(task.id),
            }
        }
        let (handoffs, tasks) = split(desk, waited).await?;
        answer(wire::Waited { done, handoffs, tasks, open_handoffs, open_tasks })
    }
}

async fn split(
    desk: &Desk,
    waited: Vec<Waited>,
) -> Result<(Vec<wire::HandoffWithResult>, Vec<wire::Task>), Problem> {
    let mut handoffs = Vec::new();
    let mut tasks = Vec::new();
    for one in waited {
        match one {
            Waited::Handoff { handoff, .. } => handoffs.push(handoff),
            Waited::Task { task, .. } => tasks.push(shown::task(&task)),
        }
    }
    let results = desk.outputs(&handoffs).await?;
    let now = desk.now();
    let handoffs = handoffs
        .iter()
        .zip(results)
        .map(|(handoff, result)| wire::HandoffWithResult {
            handoff: shown::handoff(handoff, now),
            waits_for: Vec::new(),
            output: result.as_ref().map(shown::raw),
        })
        .collect();
    Ok((handoffs, tasks))
}

pub struct Settle;

impl Operation for Settle {
    const FACTS: Facts = manages(
        "handoff_settle",
        Has(Permission::Send),
        "Accept or refuse an agent's counter-offer",
    )
    .errors(&[&[Code::HandoffNotFound, Code::WrongState, Code::NoCounter, Code::NotPermitted]]);
    type On = HandoffId;
    type In = wire::Settle;
    type Out = wire::Handoff;

    async fn run(desk: &Desk, id: HandoffId, asked: wire::Settle) -> Done<wire::Handoff> {
        let handoff = desk.settle_counter(id, &asked.by, &asked.agent, asked.accept).await?;
        answer(shown::handoff(&handoff, desk.now()))
    }
}

pub struct Cancel;

impl Operation for Cancel {
    const FACTS: Facts =
        manages("handoff_cancel", Has(Permission::Send), "Cancel a handoff that is not at its end")
            .errors(&[&[Code::HandoffNotFound, Code::WrongState, Code::NotPermitted]]);
    type On = HandoffId;
    type In = wire::Decide;
    type Out = wire::Moved;

    async fn run(desk: &Desk, id: HandoffId, asked: wire::Decide) -> Done<wire::Moved> {
        let handoff = desk.cancel(id, &asked.by, asked.reason).await?;
        answer(shown::moved(&handoff))
    }
}

pub struct Abort;

impl Operation for Abort {
    const FACTS: Facts =
        manages("handoff_abort", Has(Permission::Send), "End a handoff and its task as failed")
            .errors(&[&[Code::HandoffNotFound, Code::WrongState, Code::NotPermitted]]);
    type On = HandoffId;
    type In = wire::Decide;
    type Out = wire::Moved;

    async fn run(desk: &Desk, id: HandoffId, asked: wire::Decide) -> Done<wire::Moved> {
        let handoff = desk.abort(id, &asked.by, asked.reason).await?;
        answer(shown::moved(&handoff))
    }
}

pub struct Approve;

impl Operation for Approve {
    const FACTS: Facts = manages(
        "handoff_approve",
        Decides(Permission::Approve),
        "Approve a handoff that waits for it",
    )
    .errors(&[&[Code::HandoffNotFound, Code::WrongState, Code::NotPermitted]]);
    type On = HandoffId;
    type In = wire::Approve;
    type Out = wire::Moved;

    async fn run(desk: &Desk, id: HandoffId, asked: wire::Approve) -> Done<wire::Moved> {
        let handoff = desk.approve(id, &asked.by).await?;
        answer(shown::moved(&handoff))
    }
}

pub struct Reject;

impl Operation for Reject {
    const FACTS: Facts = manages(
        "handoff_reject",
        Decides(Permission::Approve),
        "Reject a handoff that waits for approval",
    )
    .errors(&[&[Code::HandoffNotFound, Code::WrongState, Code::NotPermitted]]);
    type On = HandoffId;
    type In = wire::Reject;
    type Out = wire::Moved;

    async fn run(desk: &Desk, id: HandoffId, asked: wire::Reject) -> Done<wire::Moved> {
        let handoff = desk.reject(id, &asked.by, asked.reason).await?;
        answer(shown::moved(&handoff))
    }
}

pub struct Erase;

impl Operation for Erase {
    const FACTS: Facts =
        manages("handoff_erase", Known, "Remove everything that a handoff carried, for good")
            .errors(&[&[
                Code::HandoffNotFound,
                Code::StillNeeded,
                Code::BodyNotFound,
                Code::NotPermitted,
            ]]);
    type On = HandoffId;
    type In = wire::Delete;
    type Out = wire::Moved;

    async fn run(desk: &Desk, id: HandoffId, asked: wire::Delete) -> Done<wire::Moved> {
        let handoff = desk.erase_handoff(id, &asked.by, asked.reason).await?;
        answer(shown::moved(&handoff))
    }
}

pub struct Retract;

impl Operation for Retract {
    const FACTS: Facts = manages(
        "handoff_retract",
        Known,
        "Take back what a completed handoff produced; what is built on it is tainted",
    )
    .errors(&[&[Code::HandoffNotFound, Code::WrongState, Code::TaskNotFound]]);
    type On = HandoffId;
    type In = wire::Retract;
    type Out = wire::Handoff;

    async fn run(desk: &Desk, id: HandoffId, asked: wire::Retract) -> Done<wire::Handoff> {
        let handoff = desk.retract(id, &asked.by, asked.reason, asked.policy).await?;
        answer(shown::handoff(&handoff, desk.now()))
    }
}

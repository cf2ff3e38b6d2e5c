// SPDX-License-Identifier: Apache-2.0

use std::sync::Arc;

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use tasuki_core::handoff::StateName;
use tasuki_core::{AgentId, Body, Capability, Handoff, HandoffId, Target, TaskId};
use tasuki_engine::{Desk, HandoffFilter, Page, Proof, WaitFor, WaitMode, WaitRequest, Waited};

use super::{Answer, tasks};
use crate::auth::At;
use crate::error::Problem;
use crate::json::{Json, Params, PathId, ok, reply};
use crate::{from_wire, to_wire, wire};

pub(crate) async fn offer(At(desk): At, Json(body): Json<wire::Offer>) -> Answer {
    let offered = desk.offer(body).await?;
    let status = if offered.repeated { StatusCode::OK } else { StatusCode::CREATED };
    Ok(reply(status, &to_wire::offered(&offered.handoff, offered.listening)))
}

pub(crate) async fn offer_batch(At(desk): At, Json(body): Json<wire::OfferBatch>) -> Answer {
    check_batch("offers", body.offers.len())?;
    body.offers.iter().try_for_each(|offer| from_wire::check_members(&offer.hop, ""))?;
    let results = desk.offer_many(body.offers).await?;
    let results: Vec<_> = results
        .into_iter()
        .map(|result| result.map(|offered| to_wire::offered(&offered.handoff, offered.listening)))
        .map(|result| to_wire::part(result.map_err(Problem::from)))
        .collect();
    note_refused(&desk, &results, "POST /v1/handoffs/batch").await;
    Ok(ok(&wire::Batch::<wire::Offered> { results }))
}

/// What may not be done is recorded, also as a part of many.
async fn note_refused<T>(desk: &Desk, results: &[wire::Part<T>], operation: &str) {
    for part in results {
        if let wire::Part::Failed { error } = part
            && let Some(code) = error.known()
        {
            desk.note_denied(code, operation).await;
        }
    }
}

pub(crate) const BATCH_MAX: usize = 1000;

pub(crate) fn check_batch(field: &str, parts: usize) -> Result<(), Problem> {
    if (1..=BATCH_MAX).contains(&parts) {
        return Ok(());
    }
    Err(Problem::invalid(field, format!("has {parts} parts, expected 1 to {BATCH_MAX}")))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    /// Only handoffs in this state.
    state: Option<String>,
    task: Option<TaskId>,
    /// Only those addressed to this agent by name.
    to_agent: Option<AgentId>,
    /// Only those that ask for this capability.
    to_capability: Option<Capability>,
    from_agent: Option<AgentId>,
    /// Only handoffs before this one: where the page before ended.
    before: Option<HandoffId>,
    /// How many at most, up to 1000.
    limit: Option<usize>,
}

pub(crate) async fn list(At(desk): At, Params(wish): Params<List>) -> Answer {
    let to = match (wish.to_agent, wish.to_capability) {
        (Some(_), Some(_)) => {
            let problem = "give to_agent or to_capability, not both";
            return Err(Problem::invalid("query", problem).into());
        }
        (Some(agent), None) => Some(Target::Agent(agent)),
        (None, Some(capability)) => Some(Target::Capability(capability)),
        (None, None) => None,
    };
    let filter = HandoffFilter {
        tenant: None,
        state: tasks::parse_state::<StateName>(wish.state.as_deref())?,
        task: wish.task,
        to,
        from: wish.from_agent,
        unreviewed: false,
        before: wish.before,
        max: wish.limit.unwrap_or(100),
    };
    Ok(ok(&page(&desk, &desk.list_handoffs(filter).await?)))
}

pub(super) fn page(desk: &Desk, page: &Page<Handoff, HandoffId>) -> wire::Handoffs {
    let now = desk.now();
    let next = page.next;
    let handoffs = page.items.iter().map(|handoff| to_wire::handoff(handoff, now)).collect();
    wire::Handoffs { handoffs, next }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Show {
    /// Wait up to this long until it has come far enough.
    wait_ms: Option<u64>,
    /// How far: `claimed` or `settled`.
    until: Option<wire::Until>,
}

pub(crate) async fn show(
    At(desk): At,
    PathId(id): PathId<HandoffId>,
    Params(wish): Params<Show>,
) -> Answer {
    if let Some(timeout_ms) = wish.wait_ms.filter(|ms| *ms > 0) {
        let until = wish.until.unwrap_or_default();
        let these = vec![WaitFor::Handoff(id)];
        desk.wait(WaitRequest { these, mode: WaitMode::All, until, timeout_ms }).await?;
    }
    let (handoff, result) = desk.handoff_with_result(id).await?;
    let output = result.as_ref().map(to_wire::raw);
    let handoff = to_wire::handoff(&handoff, desk.now());
    Ok(ok(&wire::HandoffWithResult { handoff, output }))
}

pub(crate) async fn wait(At(desk): At, Json(body): Json<wire::Wait>) -> Answer {
    let mode = body.mode;
    let waited = desk.wait(from_wire::wait(&body)).await?;
    let done = match mode {
        wire::Mode::All => waited.iter().all(Waited::reached),
        wire::Mode::Any => waited.iter().any(Waited::reached),
    };
    let mut open_handoffs = Vec::new();
    let mut open_tasks = Vec::new();
    for open in waited.iter().filter(|waited| !waited.reached()) {
        match open {
            Waited::Handoff { handoff, .. } => open_handoffs.push(handoff.id),
            Waited::Task { task, .. } => open_tasks.push(task.id),
        }
    }
    let (handoffs, tasks) = split(&desk, waited).await?;
    Ok(ok(&wire::Waited { done, handoffs, tasks, open_handoffs, open_tasks }))
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
            Waited::Task { task, .. } => tasks.push(to_wire::task(&task)),
        }
    }
    let results = outputs(desk, &handoffs).await?;
    let now = desk.now();
    let handoffs = handoffs
        .iter()
        .zip(results)
        .map(|(handoff, result)| wire::HandoffWithResult {
            handoff: to_wire::handoff(handoff, now),
            output: result.as_ref().map(to_wire::raw),
        })
        .collect();
    Ok((handoffs, tasks))
}

/// How many bytes of results one reply carries at most, unless one alone has more.
const OUTPUT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How many results are read from the store at a time.
const READ_AT_ONCE: usize = 32;

/// The results of some handoffs, as far as they fit into one reply.
pub(super) async fn outputs(
    desk: &Desk,
    handoffs: &[Arc<Handoff>],
) -> Result<Vec<Option<Body>>, Problem> {
    let mut outputs = Vec::with_capacity(handoffs.len());
    let mut bytes = 0;
    for some in handoffs.chunks(READ_AT_ONCE) {
        if bytes >= OUTPUT_BYTES_MAX {
            outputs.resize(handoffs.len(), None);
            break;
        }
        for output in desk.results(some).await? {
            let more = output.as_ref().map_or(0, |body| body.text().len());
            let fits = bytes == 0 || bytes + more <= OUTPUT_BYTES_MAX;
            bytes += more;
            outputs.push(output.filter(|_| fits));
        }
    }
    Ok(outputs)
}

pub(crate) async fn envelope(At(desk): At, PathId(id): PathId<HandoffId>) -> Answer {
    let (handoff, body) = desk.envelope(id).await?;
    let gone = || {
        // Nothing that is still needed is erased.
        if handoff.state.is_terminal() { to_wire::erased() } else { to_wire::missing() }
    };
    Ok(ok(&to_wire::raw(&body.ok_or_else(gone)?)))
}

pub(crate) async fn start(
    At(desk): At,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Start>,
) -> Answer {
    let proof = Proof { claim_id: body.claim_id, fence: body.fence };
    let read_back = body.read_back;
    let handoff = desk.start_work(id, proof, body.signed, read_back).await?;
    Ok(ok(&to_wire::moved(&handoff)))
}

fn proof(body: &wire::Held) -> Proof {
    Proof { claim_id: body.claim_id, fence: body.fence }
}

pub(crate) async fn heartbeat(
    At(desk): At,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Held>,
) -> Answer {
    let granted = desk.heartbeat(id, proof(&body)).await?;
    Ok(ok(&to_wire::beat(&granted)))
}

pub(crate) async fn progress(
    At(desk): At,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Progress>,
) -> Answer {
    let proof = Proof { claim_id: body.claim_id, fence: body.fence };
    let handoff = desk.progress(id, proof, body.percent, body.note).await?;
    Ok(ok(&to_wire::moved(&handoff)))
}

pub(crate) async fn complete(
    At(desk): At,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Complete>,
) -> Answer {
    let mut results = desk.complete(vec![(id, body)]).await?;
    let handoff = results.pop().ok_or_else(to_wire::missing)??;
    Ok(ok(&to_wire::moved(&handoff)))
}

pub(crate) async fn complete_batch(At(desk): At, Json(body): Json<wire::CompleteBatch>) -> Answer {
    check_batch("completions", body.completions.len())?;
    let mut asked = Vec::with_capacity(body.completions.len());
    for one in body.completions {
        from_wire::check_follow_ups(&one.complete)?;
        asked.push((one.handoff_id, one.complete));
    }
    let results = desk.complete(asked).await?;
    let results: Vec<_> = results
        .into_iter()
        .map(|result| result.map(|handoff| to_wire::moved(&handoff)))
        .map(|result| to_wire::part(result.map_err(Problem::from)))
        .collect();
    note_refused(&desk, &results, "POST /v1/completions").await;
    Ok(ok(&wire::Batch::<wire::Moved> { results }))
}

pub(crate) async fn fail(
    At(desk): At,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Fail>,
) -> Answer {
    let handoff = desk.fail(id, body).await?;
    Ok(ok(&to_wire::moved(&handoff)))
}

pub(crate) async fn decline(
    At(desk): At,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Decline>,
) -> Answer {
    let proof = from_wire::maybe_proof(&body)?;
    let handoff = desk.decline(id, &body.agent, proof, body.reason).await?;
    Ok(ok(&to_wire::moved(&handoff)))
}

pub(crate) async fn release(
    At(desk): At,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Held>,
) -> Answer {
    let handoff = desk.release(id, proof(&body)).await?;
    Ok(ok(&to_wire::moved(&handoff)))
}

pub(crate) async fn counter(
    At(desk): At,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Counter>,
) -> Answer {
    let handoff = desk.counter(from_wire::counter(id, body)).await?;
    Ok(ok(&to_wire::handoff(&handoff, desk.now())))
}

pub(crate) async fn settle(
    At(desk): At,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Settle>,
) -> Answer {
    let handoff = desk.settle_counter(id, &body.by, &body.agent, body.accept).await?;
    Ok(ok(&to_wire::handoff(&handoff, desk.now())))
}

pub(crate) async fn cancel(
    At(desk): At,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Decide>,
) -> Answer {
    let handoff = desk.cancel(id, &body.by, body.reason).await?;
    Ok(ok(&to_wire::moved(&handoff)))
}

pub(crate) async fn abort(
    At(desk): At,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Decide>,
) -> Answer {
    let handoff = desk.abort(id, &body.by, body.reason).await?;
    Ok(ok(&to_wire::moved(&handoff)))
}

pub(crate) async fn approve(
    At(desk): At,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Approve>,
) -> Answer {
    let handoff = desk.approve(id, &body.by).await?;
    Ok(ok(&to_wire::moved(&handoff)))
}

pub(crate) async fn reject(
    At(desk): At,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Approve>,
) -> Answer {
    let handoff = desk.reject(id, &body.by).await?;
    Ok(ok(&to_wire::moved(&handoff)))
}

pub(crate) async fn erase(
    At(desk): At,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Delete>,
) -> Answer {
    let handoff = desk.erase_handoff(id, &body.by, body.reason).await?;
    Ok(ok(&to_wire::moved(&handoff)))
}

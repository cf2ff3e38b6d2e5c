// SPDX-License-Identifier: Apache-2.0

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use tasuki_core::handoff::StateName;
use tasuki_core::{AgentId, Body, Capability, Handoff, HandoffId, Target, TaskId};
use tasuki_engine::{HandoffFilter, Proof, WaitFor, WaitMode, WaitRequest, Waited};

use super::{Answer, tasks};
use crate::error::Problem;
use crate::json::{Json, Params, PathId, ok, reply};
use crate::{App, from_wire, to_wire, wire};

pub(crate) async fn offer(State(app): State<App>, Json(body): Json<wire::Offer>) -> Answer {
    let offered = app.engine.offer(from_wire::offer(body, app.engine.terms())).await?;
    let status = if offered.repeated { StatusCode::OK } else { StatusCode::CREATED };
    Ok(reply(status, &to_wire::offered(&offered.handoff)))
}

pub(crate) async fn offer_batch(
    State(app): State<App>,
    Json(body): Json<wire::OfferBatch>,
) -> Answer {
    check_batch("offers", body.offers.len())?;
    let terms = app.engine.terms();
    let offers = body.offers.into_iter().map(|offer| from_wire::offer(offer, terms)).collect();
    let results = app.engine.offer_many(offers).await?;
    let results = results
        .into_iter()
        .map(|result| result.map(|offered| to_wire::offered(&offered.handoff)))
        .map(|result| to_wire::part(result.map_err(Problem::from)))
        .collect();
    Ok(ok(&wire::Batch::<wire::Offered> { results }))
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

pub(crate) async fn list(State(app): State<App>, Params(wish): Params<List>) -> Answer {
    let to = match (wish.to_agent, wish.to_capability) {
        (Some(_), Some(_)) => {
            return Err(Problem::invalid("query", "give to_agent or to_capability, not both"));
        }
        (Some(agent), None) => Some(Target::Agent(agent)),
        (None, Some(capability)) => Some(Target::Capability(capability)),
        (None, None) => None,
    };
    let filter = HandoffFilter {
        state: tasks::parse_state::<StateName>(wish.state.as_deref())?,
        task: wish.task,
        to,
        from: wish.from_agent,
        unreviewed: false,
        before: wish.before,
        max: wish.limit.unwrap_or(100),
    };
    let max = filter.max;
    let handoffs = app.engine.list_handoffs(filter).await?;
    Ok(ok(&page(&app, &handoffs, max)))
}

pub(super) fn page(app: &App, handoffs: &[Arc<Handoff>], max: usize) -> wire::Handoffs {
    let now = app.engine.now();
    let next = (handoffs.len() == max).then(|| handoffs.last().map(|h| h.id)).flatten();
    let handoffs = handoffs.iter().map(|handoff| to_wire::handoff(handoff, now)).collect();
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
    State(app): State<App>,
    PathId(id): PathId<HandoffId>,
    Params(wish): Params<Show>,
) -> Answer {
    let waited = app
        .engine
        .wait(WaitRequest {
            these: vec![WaitFor::Handoff(id)],
            mode: WaitMode::All,
            until: from_wire::until(wish.until.unwrap_or_default()),
            timeout_ms: wish.wait_ms.unwrap_or(0),
        })
        .await?;
    let (mut handoffs, _) = split(&app, waited).await?;
    Ok(ok(&handoffs.pop().ok_or_else(to_wire::missing)?))
}

pub(crate) async fn wait(State(app): State<App>, Json(body): Json<wire::Wait>) -> Answer {
    let mode = body.mode;
    let waited = app.engine.wait(from_wire::wait(&body)).await?;
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
    let (handoffs, tasks) = split(&app, waited).await?;
    Ok(ok(&wire::Waited { done, handoffs, tasks, open_handoffs, open_tasks }))
}

async fn split(
    app: &App,
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
    let results = outputs(app, &handoffs).await?;
    let now = app.engine.now();
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
async fn outputs(app: &App, handoffs: &[Arc<Handoff>]) -> Result<Vec<Option<Body>>, Problem> {
    let mut outputs = Vec::with_capacity(handoffs.len());
    let mut bytes = 0;
    for some in handoffs.chunks(READ_AT_ONCE) {
        if bytes >= OUTPUT_BYTES_MAX {
            outputs.resize(handoffs.len(), None);
            break;
        }
        for output in app.engine.results(some).await? {
            let more = output.as_ref().map_or(0, |body| body.text().len());
            let fits = bytes == 0 || bytes + more <= OUTPUT_BYTES_MAX;
            bytes += more;
            outputs.push(output.filter(|_| fits));
        }
    }
    Ok(outputs)
}

pub(crate) async fn envelope(State(app): State<App>, PathId(id): PathId<HandoffId>) -> Answer {
    let (_, body) = app.engine.envelope(id).await?;
    Ok(ok(&to_wire::raw(&body.ok_or_else(to_wire::missing)?)))
}

pub(crate) async fn start(
    State(app): State<App>,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Held>,
) -> Answer {
    let handoff = app.engine.start_work(id, proof(&body)).await?;
    Ok(ok(&to_wire::moved(&handoff)))
}

fn proof(body: &wire::Held) -> Proof {
    Proof { claim_id: body.claim_id, fence: body.fence }
}

pub(crate) async fn heartbeat(
    State(app): State<App>,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Held>,
) -> Answer {
    let granted = app.engine.heartbeat(id, proof(&body)).await?;
    Ok(ok(&to_wire::beat(&granted)))
}

pub(crate) async fn progress(
    State(app): State<App>,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Progress>,
) -> Answer {
    let proof = Proof { claim_id: body.claim_id, fence: body.fence };
    let handoff = app.engine.progress(id, proof, body.percent, body.note).await?;
    Ok(ok(&to_wire::moved(&handoff)))
}

pub(crate) async fn complete(
    State(app): State<App>,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Complete>,
) -> Answer {
    let request = from_wire::complete(id, body, app.engine.terms());
    let mut results = app.engine.complete(vec![request]).await?;
    let handoff = results.pop().ok_or_else(to_wire::missing)??;
    Ok(ok(&to_wire::moved(&handoff)))
}

pub(crate) async fn complete_batch(
    State(app): State<App>,
    Json(body): Json<wire::CompleteBatch>,
) -> Answer {
    check_batch("completions", body.completions.len())?;
    let terms = app.engine.terms();
    let requests = body
        .completions
        .into_iter()
        .map(|one| from_wire::complete(one.handoff_id, one.complete, terms))
        .collect();
    let results = app.engine.complete(requests).await?;
    let results = results
        .into_iter()
        .map(|result| result.map(|handoff| to_wire::moved(&handoff)))
        .map(|result| to_wire::part(result.map_err(Problem::from)))
        .collect();
    Ok(ok(&wire::Batch::<wire::Moved> { results }))
}

pub(crate) async fn fail(
    State(app): State<App>,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Fail>,
) -> Answer {
    let handoff = app.engine.fail(from_wire::fail(id, body)).await?;
    Ok(ok(&to_wire::moved(&handoff)))
}

pub(crate) async fn decline(
    State(app): State<App>,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Decline>,
) -> Answer {
    let proof = from_wire::maybe_proof(&body)?;
    let handoff = app.engine.decline(id, body.agent, proof, body.reason).await?;
    Ok(ok(&to_wire::moved(&handoff)))
}

pub(crate) async fn release(
    State(app): State<App>,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Held>,
) -> Answer {
    let handoff = app.engine.release(id, proof(&body)).await?;
    Ok(ok(&to_wire::moved(&handoff)))
}

pub(crate) async fn cancel(
    State(app): State<App>,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Decide>,
) -> Answer {
    let handoff = app.engine.cancel(id, body.by, body.reason).await?;
    Ok(ok(&to_wire::moved(&handoff)))
}

pub(crate) async fn abort(
    State(app): State<App>,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Decide>,
) -> Answer {
    let handoff = app.engine.abort(id, body.by, body.reason).await?;
    Ok(ok(&to_wire::moved(&handoff)))
}

pub(crate) async fn approve(
    State(app): State<App>,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Approve>,
) -> Answer {
    let handoff = app.engine.approve(id, body.by).await?;
    Ok(ok(&to_wire::moved(&handoff)))
}

pub(crate) async fn reject(
    State(app): State<App>,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Approve>,
) -> Answer {
    let handoff = app.engine.reject(id, body.by).await?;
    Ok(ok(&to_wire::moved(&handoff)))
}

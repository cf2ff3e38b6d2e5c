// SPDX-License-Identifier: Apache-2.0
// Long because: it is one table.
//! The table of everything under `/v1`. The router and the OpenAPI document are made from it, so
//! that neither can know a route that the other does not.

mod chains;
mod memories;
mod patterns;

use axum::Router;
use axum::handler::Handler;
use axum::middleware;
use axum::response::Redirect;
use axum::routing::{MethodRouter, delete, get, patch, post, put};
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::handlers::{agents, assemble, audit, claims, dead_letters, handoffs, system, tasks};
use crate::{App, auth, sse, wire};
use tasuki_protocol::Code;

pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

pub(crate) struct Route {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    /// The operation's name: `noun_verb`.
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) query: Option<SchemaOf>,
    pub(crate) request: Option<SchemaOf>,
    pub(crate) success: u16,
    pub(crate) response: Response,
    /// The one status that is no success and no [`crate::error::Problem`] either.
    pub(crate) other: Option<(u16, SchemaOf)>,
    /// The codes of its own, besides those that any route may answer with.
    pub(crate) errors: Vec<Code>,
    handler: MethodRouter<App>,
    /// Whether anybody is served, whoever it is.
    public: bool,
}

pub(crate) enum Response {
    Json(SchemaOf),
    Text(&'static str),
}

/// Any route may answer with these.
pub(crate) const COMMON_ERRORS: &[Code] = &[
    Code::NotPermitted,
    Code::Unauthenticated,
    Code::SignatureMissing,
    Code::SignatureMalformed,
    Code::SignatureExpired,
    Code::SignatureNotYetValid,
    Code::SignatureComponents,
    Code::SignatureAlgorithm,
    Code::SignatureWrong,
    Code::SignatureReplayed,
    Code::SignatureTooEarly,
    Code::DigestMissing,
    Code::DigestWrong,
    Code::TokenInvalid,
    Code::QuotaExceeded,
    Code::HostNotAllowed,
    Code::RateLimited,
    Code::Internal,
    Code::ShuttingDown,
    Code::Overloaded,
    Code::StoreUnavailable,
];
/// Any route that takes a body may answer with these.
pub(crate) const BODY_ERRORS: &[Code] = &[
    Code::InvalidJson,
    Code::InvalidRequest,
    Code::BodyTooLarge,
    Code::UnsupportedMediaType,
    Code::RequestTimeout,
    Code::OutcomeUnknown,
];

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

fn reads<T: JsonSchema, H: Handler<X, App>, X: 'static>(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    handler: H,
) -> Route {
    Route {
        method: "get",
        path,
        id,
        summary,
        query: None,
        request: None,
        success: 200,
        response: Response::Json(schema::<T>),
        other: None,
        errors: Vec::new(),
        handler: get(handler),
        public: false,
    }
}

fn does<In: JsonSchema, Out: JsonSchema, H: Handler<X, App>, X: 'static>(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    handler: H,
) -> Route {
    Route {
        method: "post",
        request: Some(schema::<In>),
        handler: post(handler),
        ..reads::<Out, _, _>(path, id, summary, system::not_found)
    }
}

/// Says how something is to be from now on.
fn puts<In: JsonSchema, Out: JsonSchema, H: Handler<X, App>, X: 'static>(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    handler: H,
) -> Route {
    let handler = put(handler);
    Route { method: "put", handler, ..does::<In, Out, _, _>(path, id, summary, system::not_found) }
}

fn changes<In: JsonSchema, Out: JsonSchema, H: Handler<X, App>, X: 'static>(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    handler: H,
) -> Route {
    let handler = patch(handler);
    Route {
        method: "patch",
        handler,
        ..does::<In, Out, _, _>(path, id, summary, system::not_found)
    }
}

fn deletes<In: JsonSchema, Out: JsonSchema, H: Handler<X, App>, X: 'static>(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    handler: H,
) -> Route {
    let handler = delete(handler);
    Route {
        method: "delete",
        handler,
        ..does::<In, Out, _, _>(path, id, summary, system::not_found)
    }
}

impl Route {
    fn query<T: JsonSchema>(self) -> Self {
        Self { query: Some(schema::<T>), ..self }
    }
    /// What may be sent besides what the handler is given.
    fn takes<T: JsonSchema>(self) -> Self {
        Self { request: Some(schema::<T>), ..self }
    }
    fn public(self) -> Self {
        Self { public: true, ..self }
    }
    fn creates(self) -> Self {
        Self { success: 201, ..self }
    }
    fn other<T: JsonSchema>(self, status: u16) -> Self {
        Self { other: Some((status, schema::<T>)), ..self }
    }
    fn text(self, kind: &'static str) -> Self {
        Self { response: Response::Text(kind), ..self }
    }
    fn errors(mut self, errors: &[Code]) -> Self {
        self.errors.extend(errors);
        self
    }
}

/// Whoever makes an envelope fails in the same ways.
const ENVELOPE_ERRORS: &[Code] = &[
    Code::InvalidPayload,
    Code::SecretFound,
    Code::NotPermitted,
    Code::OtherTenant,
    Code::TermsOutOfRange,
    Code::TrustRaised,
    Code::ConstraintAltered,
    Code::ConstraintDropped,
    Code::ConstraintNotYours,
    Code::DecisionSettled,
    Code::InvalidEnvelope,
    Code::VersionNotSupported,
    Code::InvalidTerms,
    Code::DeadlinePassed,
    Code::DiskFull,
];
/// Besides, whoever offers it on a task.
const OFFER_ERRORS: &[Code] = &[
    Code::TaskNotFound,
    Code::IdempotencyConflict,
    Code::NotOwner,
    Code::HandoffOpen,
    Code::TaskFinished,
    Code::TaskMoved,
    Code::IntentAltered,
    Code::TargetUnavailable,
];

/// Calls of a claim's holder fail in the same ways.
const HELD_ERRORS: &[Code] = &[Code::HandoffNotFound, Code::StaleClaim];

pub(crate) fn all() -> Vec<Route> {
    let mut routes = task_routes();
    routes.extend(handoff_routes());
    routes.extend(held_routes());
    routes.extend(review_routes());
    routes.extend(chains::routes());
    routes.extend(memories::routes());
    routes.extend(patterns::routes());
    routes.extend(agent_routes());
    routes.extend(token_routes());
    routes.extend(log_routes());
    routes
}

fn task_routes() -> Vec<Route> {
    vec![
        does::<wire::OpenTask, wire::Task, _, _>(
            "/v1/tasks",
            "task_open",
            "Open a task without handing it to anybody yet",
            tasks::open,
        )
        .creates()
        .errors(&[
            Code::TaskNotFound,
            Code::NotOwner,
            Code::TaskFinished,
            Code::IdempotencyConflict,
            Code::DiskFull,
        ]),
        reads::<wire::Tasks, _, _>(
            "/v1/tasks",
            "task_list",
            "List tasks, newest first",
            tasks::list,
        )
        .query::<tasks::List>()
        .errors(&[Code::InvalidRequest]),
        reads::<wire::TaskWithParts, _, _>(
            "/v1/tasks/{id}",
            "task_show",
            "Show a task, its owner, its handoffs and the tasks below it",
            tasks::show,
        )
        .errors(&[Code::TaskNotFound, Code::InvalidRequest]),
        reads::<wire::Events, _, _>(
            "/v1/tasks/{id}/events",
            "task_events",
            "Show everything that happened to a task",
            tasks::events,
        )
        .errors(&[Code::TaskNotFound, Code::InvalidRequest]),
        reads::<tasuki_core::chain::ChainFile, _, _>(
            "/v1/tasks/{id}/export",
            "task_export",
            "Export a task and those below it as one file that can be verified anywhere",
            tasks::export,
        )
        .errors(&[Code::TaskNotFound, Code::InvalidRequest]),
        does::<wire::Branch, wire::Offered, _, _>(
            "/v1/tasks/{id}/branch",
            "task_branch",
            "Begin anew from a hop, as a task of its own",
            tasks::branch,
        )
        .creates()
        .errors(ENVELOPE_ERRORS)
        .errors(&[Code::TaskNotFound, Code::IdempotencyConflict]),
        does::<wire::Decide, wire::Task, _, _>(
            "/v1/tasks/{id}/cancel",
            "task_cancel",
            "Cancel a task and the handoff under way",
            tasks::cancel,
        )
        .errors(&[Code::TaskNotFound, Code::TaskFinished, Code::NotPermitted]),
        does::<wire::LiftConstraint, wire::Task, _, _>(
            "/v1/tasks/{id}/lift",
            "task_lift",
            "Lift a constraint of a task, from its next envelope on, whoever holds the task",
            tasks::lift,
        )
        .errors(&[
            Code::TaskNotFound,
            Code::TaskFinished,
            Code::TaskMoved,
            Code::ConstraintNotYours,
            Code::InvalidEnvelope,
        ]),
    ]
}

fn handoff_routes() -> Vec<Route> {
    vec![
        does::<wire::Offer, wire::Offered, _, _>(
            "/v1/handoffs",
            "handoff_offer",
            "Offer work to an agent, or to any agent with a capability",
            handoffs::offer,
        )
        .takes::<wire::AnyOffer>()
        .creates()
        .errors(ENVELOPE_ERRORS)
        .errors(OFFER_ERRORS),
        does::<wire::OfferBatch, wire::Batch<wire::Offered>, _, _>(
            "/v1/handoffs/batch",
            "handoff_offer_batch",
            "Offer many at once; each answers for itself, all are synced together",
            handoffs::offer_batch,
        ),
        does::<wire::Assemble, wire::Assembled, _, _>(
            "/v1/assemble",
            "assemble",
            "Put together what a receiver gets to read within its token budget; nothing is stored",
            assemble::assemble,
        )
        .errors(&[
            Code::BudgetTooSmall,
            Code::TaskNotFound,
            Code::IntentAltered,
            Code::ConstraintAltered,
            Code::ConstraintDropped,
            Code::ConstraintNotYours,
            Code::DecisionSettled,
            Code::InvalidEnvelope,
        ]),
        reads::<wire::Prompt, _, _>(
            "/v1/handoffs/{id}/prompt",
            "handoff_prompt",
            "Read the envelope of a handoff as a model does, with how many tokens that is",
            assemble::prompt,
        )
        .query::<assemble::Rendering>()
        .errors(&[Code::HandoffNotFound, Code::InvalidRequest, Code::BudgetTooSmall]),
        reads::<wire::Handoffs, _, _>(
            "/v1/handoffs",
            "handoff_list",
            "List handoffs, newest first",
            handoffs::list,
        )
        .query::<handoffs::List>()
        .errors(&[Code::InvalidRequest]),
        reads::<wire::HandoffWithResult, _, _>(
            "/v1/handoffs/{id}",
            "handoff_show",
            "Show a handoff; with wait_ms, once it has come far enough",
            handoffs::show,
        )
        .query::<handoffs::Show>()
        .errors(&[Code::HandoffNotFound, Code::InvalidRequest]),
        reads::<tasuki_core::Envelope, _, _>(
            "/v1/handoffs/{id}/envelope",
            "handoff_envelope",
            "Read the envelope of a handoff, exactly as it was stored",
            handoffs::envelope,
        )
        .errors(&[Code::HandoffNotFound, Code::BodyErased, Code::InvalidRequest]),
        does::<wire::Claim, wire::Claims, _, _>(
            "/v1/claims",
            "handoff_claim",
            "Claim the next work for an agent, waiting for it if there is none",
            claims::claim,
        )
        .errors(&[Code::OtherTenant]),
        does::<wire::Peek, wire::Peeked, _, _>(
            "/v1/claims/peek",
            "handoff_peek",
            "Look at what waits for an agent without claiming it",
            claims::peek,
        )
        .errors(&[Code::OtherTenant]),
        does::<wire::ClaimOne, wire::Claimed, _, _>(
            "/v1/handoffs/{id}/claim",
            "handoff_claim_one",
            "Claim one handoff by its id; one of any number of racers wins",
            claims::claim_one,
        )
        .errors(&[
            Code::HandoffNotFound,
            Code::OtherTenant,
            Code::AlreadyClaimed,
            Code::WrongState,
            Code::NotTarget,
            Code::AlreadyDeclined,
            Code::DeadlinePassed,
            Code::OutOfTurn,
        ]),
        does::<wire::Wait, wire::Waited, _, _>(
            "/v1/wait",
            "handoff_wait",
            "Wait for many handoffs and tasks at once",
            handoffs::wait,
        )
        .errors(&[Code::HandoffNotFound, Code::TaskNotFound]),
    ]
}

fn held_routes() -> Vec<Route> {
    vec![
        does::<wire::Start, wire::Moved, _, _>(
            "/v1/handoffs/{id}/start",
            "handoff_start",
            "Say that work on a claimed handoff has begun",
            handoffs::start,
        )
        .errors(&[
            Code::HandoffNotFound,
            Code::StaleClaim,
            Code::ReadBackNeeded,
            Code::InvalidEnvelope,
        ]),
        does::<wire::Held, wire::Beat, _, _>(
            "/v1/handoffs/{id}/heartbeat",
            "handoff_heartbeat",
            "Extend the lease; kept in memory, the one call whose 200 does not mean synced",
            handoffs::heartbeat,
        )
        .errors(HELD_ERRORS),
        does::<wire::Progress, wire::Moved, _, _>(
            "/v1/handoffs/{id}/progress",
            "handoff_progress",
            "Report progress, which also extends the lease",
            handoffs::progress,
        )
        .errors(&[Code::HandoffNotFound, Code::StaleClaim, Code::ReadBackNeeded]),
        does::<wire::Complete, wire::Moved, _, _>(
            "/v1/handoffs/{id}/complete",
            "handoff_complete",
            "Complete a handoff, and create the next ones in the same atomic step",
            handoffs::complete,
        )
        .errors(HELD_ERRORS)
        .errors(ENVELOPE_ERRORS)
        .errors(&[
            Code::ReadBackNeeded,
            Code::AlreadyCompleted,
            Code::InvalidFollowUps,
            Code::TaskMoved,
        ]),
        does::<wire::CompleteBatch, wire::Batch<wire::Moved>, _, _>(
            "/v1/completions",
            "handoff_complete_batch",
            "Complete many at once; each answers for itself, all are synced together",
            handoffs::complete_batch,
        ),
        does::<wire::Fail, wire::Moved, _, _>(
            "/v1/handoffs/{id}/fail",
            "handoff_fail",
            "Report that an attempt failed, and whether trying again may help",
            handoffs::fail,
        )
        .errors(HELD_ERRORS),
        does::<wire::Decline, wire::Moved, _, _>(
            "/v1/handoffs/{id}/decline",
            "handoff_decline",
            "Decline a handoff, claimed or not",
            handoffs::decline,
        )
        .errors(&[
            Code::HandoffNotFound,
            Code::StaleClaim,
            Code::WrongState,
            Code::NotTarget,
        ]),
        does::<wire::Counter, wire::Handoff, _, _>(
            "/v1/handoffs/{id}/counter",
            "handoff_counter",
            "Say on which other terms an agent would take a handoff",
            handoffs::counter,
        )
        .errors(&[
            Code::HandoffNotFound,
            Code::OtherTenant,
            Code::WrongState,
            Code::NotTarget,
            Code::AlreadyDeclined,
            Code::InvalidTerms,
            Code::TooManyCounters,
            Code::NotPermitted,
        ]),
        does::<wire::Settle, wire::Handoff, _, _>(
            "/v1/handoffs/{id}/settle",
            "handoff_settle",
            "Accept or refuse an agent's counter-offer",
            handoffs::settle,
        )
        .errors(&[
            Code::HandoffNotFound,
            Code::WrongState,
            Code::NoCounter,
            Code::NotPermitted,
        ]),
        does::<wire::Held, wire::Moved, _, _>(
            "/v1/handoffs/{id}/release",
            "handoff_release",
            "Give a claimed handoff back unfinished",
            handoffs::release,
        )
        .errors(HELD_ERRORS),
    ]
}

fn review_routes() -> Vec<Route> {
    vec![
        does::<wire::Decide, wire::Moved, _, _>(
            "/v1/handoffs/{id}/cancel",
            "handoff_cancel",
            "Cancel a handoff that is not at its end",
            handoffs::cancel,
        )
        .errors(&[Code::HandoffNotFound, Code::WrongState, Code::NotPermitted]),
        does::<wire::Decide, wire::Moved, _, _>(
            "/v1/handoffs/{id}/abort",
            "handoff_abort",
            "End a handoff and its task as failed",
            handoffs::abort,
        )
        .errors(&[Code::HandoffNotFound, Code::WrongState, Code::NotPermitted]),
        does::<wire::Approve, wire::Moved, _, _>(
            "/v1/handoffs/{id}/approve",
            "handoff_approve",
            "Approve a handoff that waits for it",
            handoffs::approve,
        )
        .errors(&[Code::HandoffNotFound, Code::WrongState, Code::NotPermitted]),
        does::<wire::Approve, wire::Moved, _, _>(
            "/v1/handoffs/{id}/reject",
            "handoff_reject",
            "Reject a handoff that waits for approval",
            handoffs::reject,
        )
        .errors(&[Code::HandoffNotFound, Code::WrongState, Code::NotPermitted]),
        reads::<wire::Handoffs, _, _>(
            "/v1/dead-letters",
            "dead_letter_list",
            "List dead letters that wait for a decision, newest first",
            dead_letters::list,
        )
        .query::<dead_letters::List>()
        .errors(&[Code::InvalidRequest]),
        reads::<wire::DeadLetter, _, _>(
            "/v1/dead-letters/{id}",
            "dead_letter_show",
            "Show a dead letter with its envelope and what its attempts reported",
            dead_letters::show,
        )
        .errors(&[Code::HandoffNotFound, Code::NotDeadLettered, Code::InvalidRequest]),
        does::<wire::Approve, wire::Offered, _, _>(
            "/v1/dead-letters/{id}/redrive",
            "dead_letter_redrive",
            "Send a dead letter on its way again, as a new linked handoff",
            dead_letters::redrive,
        )
        .creates()
        .errors(&[
            Code::HandoffNotFound,
            Code::NotDeadLettered,
            Code::AlreadyReviewed,
            Code::ReviewTaken,
            Code::NotOwner,
            Code::HandoffOpen,
            Code::TaskFinished,
            Code::DiskFull,
        ]),
        does::<wire::Decide, wire::Moved, _, _>(
            "/v1/dead-letters/{id}/discard",
            "dead_letter_discard",
            "Put a dead letter away, with a reason",
            dead_letters::discard,
        )
        .errors(&[
            Code::HandoffNotFound,
            Code::NotDeadLettered,
            Code::AlreadyReviewed,
            Code::ReviewTaken,
        ]),
    ]
}

const AGENT_ERRORS: &[Code] = &[Code::AgentNotFound, Code::NotPermitted];

fn agent_routes() -> Vec<Route> {
    vec![
        does::<wire::Publish, wire::Agent, _, _>(
            "/v1/agents",
            "agent_publish",
            "Publish an agent's manifest, its first or a new one",
            agents::publish,
        )
        .creates()
        .errors(&[Code::AgentNotFound, Code::InvalidManifest, Code::ManifestMoved]),
        reads::<wire::Agents, _, _>(
            "/v1/agents",
            "agent_list",
            "Find agents by capability, tag, version, presence and how they fare",
            agents::list,
        )
        .query::<agents::List>()
        .errors(&[Code::InvalidRequest]),
        does::<wire::Search, wire::Agents, _, _>(
            "/v1/discover",
            "agent_search",
            "Find agents, also by what goes in and what comes out",
            agents::search,
        ),
        reads::<wire::Catalogue, _, _>(
            "/.well-known/agents.json",
            "agent_catalogue",
            "Who can be reached here, for programs that look around",
            agents::catalogue,
        ),
        reads::<wire::Agent, _, _>(
            "/v1/agents/{id}",
            "agent_show",
            "Show an agent, its manifest and its keys",
            agents::show,
        )
        .errors(&[Code::AgentNotFound, Code::InvalidRequest]),
        does::<wire::Nothing, wire::Agent, _, _>(
            "/v1/agents/{id}/drain",
            "agent_drain",
            "Let an agent finish what it has; nothing new is routed to it",
            agents::drain,
        )
        .errors(AGENT_ERRORS),
        does::<wire::Nothing, wire::Agent, _, _>(
            "/v1/agents/{id}/resume",
            "agent_resume",
            "Let a drained agent have work again",
            agents::resume,
        )
        .errors(AGENT_ERRORS),
        does::<wire::Nothing, wire::Agent, _, _>(
            "/v1/agents/{id}/deregister",
            "agent_deregister",
            "Take an agent out; what it holds waits for somebody else",
            agents::deregister,
        )
        .errors(AGENT_ERRORS),
        does::<wire::SetRules, wire::Agent, _, _>(
            "/v1/agents/{id}/rules",
            "agent_set_rules",
            "Say what an agent may do",
            agents::set_rules,
        )
        .errors(&[Code::AgentNotFound, Code::NotPermitted, Code::InvalidRules]),
        does::<wire::Enroll, wire::Agent, _, _>(
            "/v1/agents/{id}/keys",
            "key_enroll",
            "Enroll a key by the word of an administrator",
            agents::enroll,
        )
        .creates()
        .errors(&[
            Code::AgentNotFound,
            Code::NotPermitted,
            Code::KeyTaken,
            Code::TooManyKeys,
            Code::InvalidRules,
        ]),
        does::<wire::Rotate, wire::Agent, _, _>(
            "/v1/agents/{id}/keys/rotate",
            "key_rotate",
            "Replace a key; the old one still counts for a while",
            agents::rotate,
        )
        .errors(&[
            Code::AgentNotFound,
            Code::KeyNotFound,
            Code::KeyTaken,
            Code::TooManyKeys,
        ]),
        does::<wire::Nothing, wire::Agent, _, _>(
            "/v1/agents/{id}/keys/{key}/revoke",
            "key_revoke",
            "Revoke a key at once; with its last key an agent loses what it holds",
            agents::revoke,
        )
        .errors(&[Code::AgentNotFound, Code::NotPermitted, Code::KeyNotFound]),
        does::<wire::Join, wire::Agent, _, _>(
            "/v1/join",
            "agent_join",
            "Enroll a key with a join token",
            agents::join,
        )
        .creates()
        .errors(&[Code::TokenRefused, Code::KeyTaken, Code::TooManyKeys])
        .public(),
    ]
}

fn token_routes() -> Vec<Route> {
    vec![
        does::<wire::IssueToken, wire::IssuedToken, _, _>(
            "/v1/tokens",
            "token_issue",
            "Issue a token; its text is shown this once",
            agents::issue_token,
        )
        .creates()
        .errors(&[Code::AgentNotFound, Code::NotPermitted, Code::InvalidRules]),
        reads::<wire::Tokens, _, _>(
            "/v1/tokens",
            "token_list",
            "List tokens, newest first, without their secrets",
            agents::tokens,
        ),
        does::<wire::Nothing, wire::TokenInfo, _, _>(
            "/v1/tokens/{id}/revoke",
            "token_revoke",
            "Revoke a token at once",
            agents::revoke_token,
        )
        .errors(&[Code::TokenNotFound]),
        reads::<wire::Tenants, _, _>(
            "/v1/tenants",
            "tenant_list",
            "List tenants and what they may use",
            agents::tenants,
        )
        .errors(&[Code::NotPermitted]),
        does::<tasuki_core::registry::Quotas, wire::TenantInfo, _, _>(
            "/v1/tenants/{id}",
            "tenant_set",
            "Say what a tenant may use",
            agents::set_quotas,
        )
        .errors(&[Code::NotPermitted]),
        reads::<wire::Refusals, _, _>(
            "/v1/security",
            "security_show",
            "Show requests that nobody stood behind",
            agents::refusals,
        )
        .errors(&[Code::NotPermitted]),
    ]
}

fn log_routes() -> Vec<Route> {
    vec![
        reads::<wire::Event, _, _>(
            "/v1/events",
            "event_stream",
            "Follow the audit log as server-sent events; resume with Last-Event-ID",
            sse::events,
        )
        .query::<sse::Follow>()
        .text("text/event-stream")
        .errors(&[Code::InvalidRequest]),
        reads::<wire::Verdict, _, _>(
            "/v1/audit/verify",
            "audit_verify",
            "Check the whole audit log and name the first bad entry",
            audit::verify,
        ),
        reads::<wire::Event, _, _>(
            "/v1/audit/export",
            "audit_export",
            "Export the audit log as lines of JSON that can be verified anywhere",
            audit::export,
        )
        .query::<audit::Export>()
        .text("application/jsonl")
        .errors(&[Code::InvalidRequest]),
        reads::<wire::Stats, _, _>(
            "/v1/stats",
            "stats_show",
            "Show what the broker holds",
            system::stats,
        ),
        reads::<wire::Health, _, _>(
            "/healthz",
            "health",
            "Whether the process is up",
            system::health,
        )
        .public(),
        reads::<wire::Health, _, _>(
            "/readyz",
            "ready",
            "Whether a command sent now would be taken (503 if not)",
            system::ready,
        )
        .other::<wire::Health>(503)
        .public(),
    ]
}

pub(crate) fn router(app: &App) -> Router<App> {
    let mut known = Router::new();
    let mut public = Router::new();
    for route in all() {
        let router = if route.public { &mut public } else { &mut known };
        *router = std::mem::take(router).route(route.path, route.handler);
    }
    let known = known.route_layer(middleware::from_fn_with_state(app.clone(), auth::check));
    known
        .merge(public)
        .route("/", get(system::docs))
        .route("/docs", get(system::docs))
        .route("/docs/", get(|| async { Redirect::permanent("/docs") }))
        .route("/docs/errors", get(|| async { Redirect::permanent("/docs#errors") }))
        .route("/docs/errors/{code}", get(system::error_page))
        .route("/v1/openapi.json", get(system::openapi_json))
        .route("/v1/schemas/manifest.json", get(agents::manifest_schema))
        .fallback(system::not_found)
        .method_not_allowed_fallback(system::wrong_method)
}

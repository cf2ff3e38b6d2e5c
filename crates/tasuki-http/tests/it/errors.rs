// SPDX-License-Identifier: Apache-2.0
//! Every code has a page and a status, and everything that can be refused has a code.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::json;
use tasuki_core::handoff::StateName;
use tasuki_core::ids::{KeyId, TokenId};
use tasuki_core::{HandoffId, Position, Refusal, TaskId, TaskState};
use tasuki_protocol::Code;

use crate::support::{Stage, failure, merged};

fn pages() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name());
    let names = files.map(|name| name.into_string().unwrap());
    names.filter_map(|name| name.strip_suffix(".md").map(str::to_owned)).collect()
}

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let codes: BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str().to_owned()).collect();
    let pages: BTreeSet<_> = pages().into_iter().filter(|page| page != "README").collect();
    assert_eq!(codes, pages);
    assert_eq!(codes.len(), Code::ALL.len(), "no code stands there twice");
    for code in Code::ALL {
        assert_eq!(code.page().lines().next(), Some(&*format!("# {code}")));
        assert_eq!(Code::named(code.as_str()), Some(*code));
    }
}

fn every_refusal() -> Vec<Refusal> {
    let (task, handoff) = (TaskId(1), HandoffId(1));
    let agent = || "coder".parse().unwrap();
    let memory = || "ms-1".parse().unwrap();
    let state = StateName::Claimed;
    let some = vec![
        Refusal::TaskNotFound(task),
        Refusal::HandoffNotFound(handoff),
        Refusal::NotOwner { task, owner: agent(), agent: agent() },
        Refusal::HandoffOpen { task, handoff },
        Refusal::OpenBelow { task, below: task },
        Refusal::TaskFinished { task, state: TaskState::Failed },
        Refusal::TaskMoved(task),
        Refusal::AgreementNotChecked { handoff },
        Refusal::StaleClaim { handoff, state },
        Refusal::AlreadyClaimed { handoff, state },
        Refusal::AlreadyCompleted { handoff },
        Refusal::WrongState { handoff, state, wanted: "approved" },
        Refusal::NotTarget { handoff, agent: agent() },
        Refusal::AlreadyDeclined { handoff, agent: agent() },
        Refusal::NotPermitted { handoff, agent: agent(), wish: "cancel" },
        Refusal::NotPermittedTask { task, agent: agent() },
        Refusal::IntentAltered { task },
        Refusal::ReadBackNeeded { handoff, expected: tasuki_core::Hash([1; 32]) },
        Refusal::OutOfTurn { handoff, first: handoff },
        Refusal::IdempotencyConflict { key: "k".parse().unwrap() },
        Refusal::NotDeadLettered { handoff, state },
        Refusal::AlreadyReviewed { handoff, decided: "discarded" },
        Refusal::DeadlinePassed,
        Refusal::InvalidTerms(String::new()),
        Refusal::InvalidFollowUps(""),
        Refusal::TooManyCounters { handoff, max: 16 },
        Refusal::NoCounter { handoff, agent: agent() },
        Refusal::QuotaExceeded { tenant: "acme".into(), what: "x", used: 1, limit: 1 },
        Refusal::OtherTenant,
        Refusal::AgentNotFound(agent()),
        Refusal::HeldBack(agent()),
        Refusal::ManifestMoved { agent: agent(), version: 2 },
        Refusal::KeyNotFound { agent: agent(), key: KeyId(1) },
        Refusal::KeyTaken(KeyId(1)),
        Refusal::TooManyKeys { agent: agent(), max: 2 },
        Refusal::TokenNotFound(TokenId(1)),
        Refusal::TokenRefused,
        Refusal::InvalidRules(String::new()),
        Refusal::ChainNotFound(memory()),
        Refusal::MemoryNotFound(memory()),
        Refusal::MemoryDeleted(memory()),
        Refusal::MemorySuperseded { id: memory(), by: memory() },
        Refusal::RevisionConflict { id: memory(), expected: 1, current: 2 },
        Refusal::DecisionSettled { key: "k".parse().unwrap(), decision: 1 },
        Refusal::OwnershipNotShared { path: "/owner".into() },
        Refusal::InvalidDocument(String::new()),
        Refusal::SecretFound {
            path: "/text".into(),
            kind: tasuki_core::secrets::SecretKind::PrivateKey,
        },
        Refusal::StillNeeded(task),
        Refusal::BodyNotFound(Position(1)),
        Refusal::GrantTooWide {
            agent: agent(),
            permission: tasuki_core::registry::rules::Permission::Send,
            target: "*".into(),
        },
        Refusal::KeyNotShown(agent()),
        Refusal::TokenTooDeep { max: 16 },
        Refusal::NameReserved("Broker".parse().unwrap()),
        Refusal::NameTaken { agent: "Coder".parse().unwrap(), there: "coder".parse().unwrap() },
        Refusal::TargetUnavailable {
            target: "coder".into(),
            state: tasuki_core::breaker::BreakerName::Open,
            in_row: 3,
            reset_in_ms: 60_000,
        },
        Refusal::Reserved { resource: "src/**".parse().unwrap(), holder: agent(), handoff },
        Refusal::InvalidResource(String::new()),
        Refusal::ReviewTaken { handoff, by: agent(), left_ms: 1000 },
        Refusal::NotTainted { task, source_handoff: handoff },
        Refusal::TooManySubscribers { channel: "news".parse().unwrap(), max: 10_000 },
        Refusal::NoQuestion { handoff },
        Refusal::AlreadyAnswered { handoff },
        Refusal::KeptForAsker { handoff, agent: agent(), left_ms: 1000 },
        Refusal::TooManyMessages { handoff, max: 32 },
        Refusal::InvalidArtifact(String::new()),
        Refusal::ArtifactNotFound { handoff, name: "draft".parse().unwrap() },
        Refusal::TreeTooDeep { task, max: 64 },
        Refusal::Deadlock { path: vec![agent(), agent()], task },
        Refusal::TargetPaused { target: "coder".into(), left_ms: Some(1000) },
        Refusal::OnHold { task, letter: handoff },
        Refusal::BudgetExhausted { task, left: tasuki_core::budget::Budget::default() },
    ];
    for refusal in &some {
        // A new refusal breaks the build here, so that it comes into the list above.
        match refusal {
            Refusal::TaskNotFound(_)
            | Refusal::HandoffNotFound(_)
            | Refusal::NotOwner { .. }
            | Refusal::HandoffOpen { .. }
            | Refusal::OpenBelow { .. }
            | Refusal::TaskFinished { .. }
            | Refusal::TaskMoved(_)
            | Refusal::AgreementNotChecked { .. }
            | Refusal::StaleClaim { .. }
            | Refusal::AlreadyClaimed { .. }
            | Refusal::AlreadyCompleted { .. }
            | Refusal::WrongState { .. }
            | Refusal::NotTarget { .. }
            | Refusal::AlreadyDeclined { .. }
            | Refusal::NotPermitted { .. }
            | Refusal::NotPermittedTask { .. }
            | Refusal::IntentAltered { .. }
            | Refusal::ReadBackNeeded { .. }
            | Refusal::OutOfTurn { .. }
            | Refusal::IdempotencyConflict { .. }
            | Refusal::NotDeadLettered { .. }
            | Refusal::AlreadyReviewed { .. }
            | Refusal::DeadlinePassed
            | Refusal::TreeTooDeep { .. }
            | Refusal::Deadlock { .. }
            | Refusal::TargetPaused { .. }
            | Refusal::OnHold { .. }
            | Refusal::BudgetExhausted { .. }
            | Refusal::InvalidTerms(_)
            | Refusal::InvalidFollowUps(_)
            | Refusal::TooManyCounters { .. }
            | Refusal::NoCounter { .. }
            | Refusal::QuotaExceeded { .. }
            | Refusal::OtherTenant
            | Refusal::AgentNotFound(_)
            | Refusal::HeldBack(_)
            | Refusal::ManifestMoved { .. }
            | Refusal::KeyNotFound { .. }
            | Refusal::KeyTaken(_)
            | Refusal::TooManyKeys { .. }
            | Refusal::TokenNotFound(_)
            | Refusal::TokenRefused
            | Refusal::InvalidRules(_)
            | Refusal::GrantTooWide { .. }
            | Refusal::KeyNotShown(_)
            | Refusal::TokenTooDeep { .. }
            | Refusal::NameReserved(_)
            | Refusal::NameTaken { .. }
            | Refusal::ChainNotFound(_)
            | Refusal::MemoryNotFound(_)
            | Refusal::MemoryDeleted(_)
            | Refusal::MemorySuperseded { .. }
            | Refusal::RevisionConflict { .. }
            | Refusal::DecisionSettled { .. }
            | Refusal::OwnershipNotShared { .. }
            | Refusal::InvalidDocument(_)
            | Refusal::SecretFound { .. }
            | Refusal::StillNeeded(_)
            | Refusal::TargetUnavailable { .. }
            | Refusal::Reserved { .. }
            | Refusal::InvalidResource(_)
            | Refusal::ReviewTaken { .. }
            | Refusal::NotTainted { .. }
            | Refusal::TooManySubscribers { .. }
            | Refusal::NoQuestion { .. }
            | Refusal::AlreadyAnswered { .. }
            | Refusal::KeptForAsker { .. }
            | Refusal::TooManyMessages { .. }
            | Refusal::InvalidArtifact(_)
            | Refusal::ArtifactNotFound { .. }
            | Refusal::BodyNotFound(_) => {}
        }
    }
    some
}

#[test]
fn every_refusal_has_a_code_with_a_client_error_and_a_hint() {
    for refusal in every_refusal() {
        let code = refusal.code();
        let known = Code::named(code).unwrap_or_else(|| panic!("{code} has no page"));
        assert!((400..=499).contains(&known.status()), "{code}");
        assert_eq!(refusal.is_retryable(), known.is_retryable(), "{code}");
        assert!(!refusal.hint().is_empty(), "{code}");
    }
}

#[tokio::test]
async fn a_route_or_method_that_is_not_there_is_refused_in_our_shape() {
    let stage = Stage::volatile().await;
    for path in
        ["/v2", "/v1/nothing", "/v1/handoffs/x/y/z", "/v1/handoffs/", "/favicon.ico", "/v1/%ff"]
    {
        stage.get(path).await.refused(404, "route_not_found");
    }
    for path in ["/docs/errors/nonsense", "/docs/errors/%ff", "/docs/errors/..%2f..%2fREADME"] {
        stage.get(path).await.refused(404, "route_not_found");
    }
    for path in ["/v1/claims", "/v1/wait", "/v1/completions", "/v1/handoffs/batch"] {
        let reply = stage.get(path).await;
        // One path that takes both is an id there.
        if reply.status != 400 {
            reply.refused(405, "method_not_allowed");
        }
    }
    for path in ["/healthz", "/v1/events", "/docs", "/v1/stats"] {
        let reply = stage.post(path, json!({})).await;
        assert!(reply.headers.contains_key("allow"), "{path} names what it takes");
        reply.refused(405, "method_not_allowed");
    }
}

#[tokio::test]
async fn what_went_wrong_can_be_acted_on_without_reading_its_text() {
    let stage = Stage::volatile().await;
    let unknown = "handoff_00000000000000000000000007";
    let problem = stage.claim_one(unknown, "coder").await.refused(404, "handoff_not_found");
    assert_eq!(problem["details"]["handoff_id"], unknown);
    assert_eq!(problem["retryable"], false);
    let wrong = json!({ "agent": "coder", "max": "many" });
    let problem = stage.post("/v1/claims", wrong).await.refused(400, "invalid_request");
    assert_eq!(problem["details"]["field"], "max");
    let nested = json!({ "offers": [{ "from_agent": "a b" }] });
    let problem = stage.post("/v1/handoffs/batch", nested).await.refused(400, "invalid_request");
    assert_eq!(problem["details"]["field"], "offers[0].from_agent");
}

#[tokio::test]
async fn a_broken_rule_names_its_place_as_a_shape_that_does_not_fit_does() {
    let stage = Stage::volatile().await;
    let id = stage.offer("coder", json!({})).await;
    let held = stage.claimed(&id, "coder").await;
    for (change, path) in [
        (json!({ "hint": null }), "/hint"),
        (json!({ "attempts": 0 }), "/attempts"),
        (json!({ "retry_after_ms": 20 }), "/retry_after_ms"),
        (json!({ "message": 429 }), "/message"),
    ] {
        let problem = stage.act(&held, "fail", merged(failure("permanent"), change)).await;
        let problem = problem.refused(400, "invalid_request");
        assert_eq!(problem["details"]["faults"][0]["path"], path, "{problem}");
    }
}

#[tokio::test]
async fn a_member_that_is_not_known_is_refused_where_nothing_is_passed_on() {
    let stage = Stage::volatile().await;
    let told = json!({ "from_agent": "planner", "intent": "i", "payload": { "type": "x" } });
    let id = HandoffId(1);
    for (path, body) in [
        ("/v1/channels/news/publish".to_owned(), told.clone()),
        ("/v1/pipelines/none/start".to_owned(), told),
        (format!("/v1/dead-letters/{id}/amend"), json!({ "by": "boss" })),
        ("/v1/assemble".to_owned(), json!({ "from_agent": "planner", "intent": "i" })),
    ] {
        let problem = stage.post(&path, merged(body, json!({ "moood": 1 }))).await;
        let problem = problem.refused(400, "invalid_request");
        assert_eq!(problem["details"]["faults"][0]["path"], "/moood", "{path}");
    }
}

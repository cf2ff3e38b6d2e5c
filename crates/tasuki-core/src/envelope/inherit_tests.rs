// SPDX-License-Identifier: Apache-2.0
//! Honest and hostile hands.

use serde_json::json;

use super::*;

fn agent(name: &str) -> AgentId {
    name.parse().unwrap()
}

fn said(value: serde_json::Value) -> Said {
    serde_json::from_value(value).unwrap()
}

fn hop(before: Option<&Parts>, from: &str, value: serde_json::Value) -> Result<Parts, Vec<Breach>> {
    let (from, planner) = (agent(from), agent("planner"));
    hop_in(None, before, &from, &planner, value)
}

fn hop_in(
    project: Option<&ProjectRules>,
    before: Option<&Parts>,
    from: &AgentId,
    coordinator: &AgentId,
    value: serde_json::Value,
) -> Result<Parts, Vec<Breach>> {
    let (coordinator, now) = (Some(coordinator), Timestamp(5));
    let hand = Hand { from, coordinator, hop: 3, now, project };
    inherit(before, &said(value), hand).map(|inherited| inherited.parts)
}

fn project(constraints: &[&str], refuses: bool) -> ProjectRules {
    let constraints: Vec<_> =
        constraints.iter().map(|text| json!({ "kind": "must_not", "text": text })).collect();
    let decision = json!({
        "number": 1, "key": "Data base", "decision": "PostgreSQL", "by": "lead",
        "at": "2027-01-15T08:00:00.000Z",
    });
    let context = json!({ "constraints": constraints, "decisions": [decision] });
    let context = serde_json::from_value(context).unwrap();
    let (tenant, name) = ("acme".parse().unwrap(), "web".parse().unwrap());
    ProjectRules::of(&tenant, &name, Some(&context), Timestamp(0), refuses).unwrap()
}

#[test]
fn what_a_project_asks_binds_from_the_first_hop_and_nobody_lifts_it() {
    let planner = agent("planner");
    let web = project(&["Never log card numbers."], true);
    let hop = |web: &ProjectRules, before: Option<&Parts>, value| {
        hop_in(Some(web), before, &planner, &planner, value)
    };
    let first = hop(&web, None, json!({ "constraints": ["Use SI units."] })).unwrap();
    let (rule, own) = (&first.constraints[0], &first.constraints[1]);
    assert_eq!(
        (rule.text.as_str(), rule.issuer.as_str()),
        ("Never log card numbers.", "acme/project:web")
    );
    assert_eq!(own.text, "Use SI units.");
    let lift = json!({ "lift_constraints": [{ "id": rule.id, "reason": "in the way" }] });
    assert_eq!(hop(&web, Some(&first), lift), Err(vec![Breach::NotYours(rule.clone())]));
    assert!(may_lift(&first, rule.id, &planner, &planner).is_err());
    assert!(may_lift(&first, own.id, &planner, &planner).is_ok());
    // What it asks from now on binds what is under way; what it does not ask any more, does not.
    let other = project(&["Never mail customers."], true);
    let restated = json!({ "constraints": ["Use SI units.", "Never log card numbers."] });
    for said in [json!({}), restated] {
        let next = hop(&other, Some(&first), said).unwrap();
        let texts: Vec<_> = next.constraints.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(texts, ["Use SI units.", "Never mail customers."]);
        assert_eq!(next.lifted[0].by.as_str(), "acme/project:web");
    }
    // What was erased takes nothing back.
    let erased = ProjectRules { known: false, ..project(&[], true) };
    assert_eq!(hop(&erased, Some(&first), json!({})).unwrap().constraints, first.constraints);
    let softer = json!({ "constraints": [{ "text": "Never log card numbers.", "hard": false }] });
    assert!(matches!(hop(&web, None, softer).unwrap_err()[..], [Breach::Altered { .. }]));
}

#[test]
fn a_decision_against_the_projects_log_is_refused_or_left_to_the_sender() {
    let planner = agent("planner");
    let decide = |refuses, decision: &str| {
        let said = json!({ "decisions": [{ "key": "data-BASE", "decision": decision }] });
        hop_in(Some(&project(&[], refuses)), None, &planner, &planner, said)
    };
    let refused = decide(true, "MySQL").unwrap_err();
    let Breach::Settled { by, .. } = &refused[0] else { panic!("{refused:?}") };
    assert_eq!((by.decision.as_str(), by.by.as_str()), ("PostgreSQL", "acme/project:web"));
    assert!(decide(true, "postgresql").is_ok(), "it says the same");
    assert!(decide(false, "MySQL").is_ok(), "told of, not refused");
}

#[test]
fn keys_of_a_task_are_compared_as_people_mean_them() {
    let decided =
        |key: &str, text: &str| json!({ "decisions": [{ "key": key, "decision": text }] });
    let before = hop(None, "planner", decided("Port number", "8080")).unwrap();
    let other = hop(Some(&before), "coder", decided("port_number", "9090"));
    assert!(matches!(other.unwrap_err()[..], [Breach::Settled { .. }]));
}

fn first() -> Parts {
    let constraints =
        json!(["Never touch production.", { "text": "Use SI units.", "kind": "format" }]);
    hop(None, "planner", json!({ "constraints": constraints })).unwrap()
}

#[test]
fn what_binds_is_carried_without_a_word() {
    let before = first();
    assert_eq!(hop(Some(&before), "coder", json!({})).unwrap().constraints, before.constraints);
    let same = json!({ "constraints": before.constraints });
    assert_eq!(hop(Some(&before), "coder", same).unwrap().constraints, before.constraints);
    let by_id = json!({ "constraints": [
        { "id": before.constraints[1].id }, { "id": before.constraints[0].id },
    ] });
    let after = hop(Some(&before), "coder", by_id).unwrap();
    assert_eq!(after.constraints, before.constraints, "in the order that they came in");
}

#[test]
fn a_list_that_leaves_one_out_is_refused_and_names_it() {
    let before = first();
    let breaches = hop(Some(&before), "coder", json!({ "constraints": ["Use SI units."] }));
    assert_eq!(breaches, Err(vec![Breach::Dropped(before.constraints[0].clone())]));
    // A softer wording in its place is another constraint: the first one is missing.
    let softer = json!({ "constraints": ["Be careful with production.", "Use SI units."] });
    let breaches = hop(Some(&before), "coder", softer);
    assert_eq!(breaches, Err(vec![Breach::Dropped(before.constraints[0].clone())]));
}

#[test]
fn another_text_kind_or_weight_under_the_same_id_is_refused() {
    let before = first();
    let (never, units) = (&before.constraints[0], &before.constraints[1]);
    for worse in [
        json!({ "id": never.id, "text": "Never touch production without asking." }),
        json!({ "id": never.id, "kind": "preference" }),
        json!({ "text": never.text, "hard": false }),
    ] {
        for name in ["constraints", "add_constraints"] {
            let mut given = json!({ "constraints": [{ "id": never.id }, { "id": units.id }] });
            given[name] = json!([worse, { "id": units.id }]);
            let breaches = hop(Some(&before), "coder", given).unwrap_err();
            let path = format!("/{name}/0");
            assert_eq!(breaches, [Breach::Altered { constraint: never.clone(), path }]);
        }
    }
}

#[test]
fn anybody_adds_and_only_issuer_and_coordinator_lift() {
    let before = first();
    let added = hop(Some(&before), "coder", json!({ "add_constraints": ["Do not log."] })).unwrap();
    assert_eq!(added.constraints.len(), 3);
    assert_eq!(added.constraints[2].issuer, agent("coder"));
    let lift = |n: usize| json!({ "lift_constraints": [{ "id": added.constraints[n].id, "reason": "was asked" }] });
    let own = hop(Some(&added), "coder", lift(2)).unwrap();
    assert_eq!(own.constraints, before.constraints);
    assert_eq!((&own.lifted[0].by, own.lifted[0].hop), (&agent("coder"), 3));
    let others = hop(Some(&added), "coder", lift(0)).unwrap_err();
    assert_eq!(others, [Breach::NotYours(added.constraints[0].clone())]);
    let lifted = hop(Some(&added), "planner", lift(2)).unwrap();
    assert_eq!(hop(Some(&lifted), "coder", json!({})).unwrap().lifted, lifted.lifted);
}

#[test]
fn decisions_questions_and_gaps_stay_until_somebody_settles_them() {
    let before = hop(
        None,
        "planner",
        json!({
            "decisions": [{ "key": "db", "decision": "SQLite", "why": "one file" }],
            "open_decisions": ["Which port?"],
            "gaps": ["ms-17"],
            "history": [{ "action": "read the ticket" }],
        }),
    );
    let before = before.unwrap();
    let carried =
        hop(Some(&before), "coder", json!({ "history": [{ "action": "wrote" }] })).unwrap();
    assert_eq!(carried.decisions, before.decisions);
    assert_eq!(carried.open_decisions, before.open_decisions);
    assert_eq!(carried.gaps, before.gaps);
    assert_eq!(carried.history.len(), 2);
    assert_eq!(carried.history[1].agent, agent("coder"));

    let other = json!({ "decisions": [{ "key": "db", "decision": "PostgreSQL" }] });
    let breaches = hop(Some(&carried), "coder", other).unwrap_err();
    let (key, by) = ("db".to_owned(), before.decisions[0].clone());
    assert_eq!(breaches, [Breach::Settled { key, by }]);
    let settled = hop(
        Some(&carried),
        "coder",
        json!({
            "decisions": [
                { "key": "db", "decision": "PostgreSQL", "supersedes": before.decisions[0].id },
                { "decision": "8788", "resolves": before.open_decisions[0].id },
            ],
            "resolved_gaps": ["ms-17"],
        }),
    );
    let settled = settled.unwrap();
    assert_eq!((settled.decisions.len(), settled.open_decisions.len()), (3, 0));
    assert_eq!(settled.gaps, []);
}

#[test]
fn every_breach_is_named_at_once() {
    let before = first();
    let breaches = hop(
        Some(&before),
        "coder",
        json!({
            "constraints": [{ "id": before.constraints[0].id, "hard": false }],
            "lift_constraints": [{ "id": Hash([9; 32]), "reason": " " }],
            "resolved_gaps": ["ms-1"],
        }),
    );
    let breaches = breaches.unwrap_err();
    assert_eq!(breaches.len(), 5, "{breaches:?}");
}

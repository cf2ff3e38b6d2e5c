// SPDX-License-Identifier: Apache-2.0
use tasuki_core::handoff::StateName;
use tasuki_core::{Target, TaskState};

use super::*;

fn plan(db: &Connection, query: &Query) -> String {
    let sql = format!("EXPLAIN QUERY PLAN {}", query.sql());
    let mut explain = db.prepare(&sql).unwrap();
    let lines = explain.query_map(params_from_iter(&query.values), |row| row.get(3)).unwrap();
    lines.collect::<Result<Vec<String>>>().unwrap().join("\n")
}

fn schema() -> Connection {
    let db = Connection::open_in_memory().unwrap();
    crate::sqlite::open::migrate(&db).unwrap();
    db
}

/// A page is read from its index in order: what is not on it is neither read nor sorted.
#[track_caller]
fn reads_one_page(db: &Connection, query: &Query, asked: &dyn std::fmt::Debug) {
    let plan = plan(db, query);
    assert!(!plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{asked:?}\n{plan}");
}

fn both<T: Clone>(some: T) -> [Option<T>; 2] {
    [None, Some(some)]
}

#[test]
fn no_listing_of_a_tenants_handoffs_walks_the_table() {
    let db = schema();
    let states = StateName::ALL.iter().map(|state| Some(*state)).chain([None]);
    for state in states {
        for (from, to) in both("planner".parse().unwrap()).into_iter().flat_map(|from| {
            both(Target::Agent("coder".parse().unwrap())).map(|to| (from.clone(), to))
        }) {
            for (unreviewed, before) in [(false, None), (true, None), (false, Some(HandoffId(7)))] {
                for tenant in ["default", "acme"] {
                    let tenant = Some(tenant.parse().unwrap());
                    let (from, to) = (from.clone(), to.clone());
                    let task = None;
                    let filter = HandoffFilter {
                        tenant,
                        state,
                        task,
                        to,
                        from,
                        unreviewed,
                        before,
                        max: 100,
                    };
                    if let Some(query) = handoff_query(&filter) {
                        reads_one_page(&db, &query, &filter);
                    }
                }
            }
        }
    }
    for state in ["awaiting_approval", "scheduled", "pending", "claimed", "in_progress"] {
        let state = Some(state.parse().unwrap());
        let filter = HandoffFilter { state, max: 100, ..HandoffFilter::default() };
        reads_one_page(&db, &handoff_query(&filter).unwrap(), &filter);
    }
}

#[test]
fn no_listing_of_a_tenants_tasks_walks_the_table() {
    let db = schema();
    for state in TaskState::ALL.iter().map(|state| Some(*state)).chain([None]) {
        for owner in both("planner".parse().unwrap()) {
            for parent in both(TaskId(7)) {
                for project in both("web".parse().unwrap()) {
                    for before in both(TaskId(9)) {
                        let tenant = Some("acme".parse().unwrap());
                        let (owner, project) = (owner.clone(), project.clone());
                        let filter = TaskFilter {
                            tenant,
                            state,
                            owner,
                            parent,
                            project,
                            before,
                            max: 100,
                            ..TaskFilter::default()
                        };
                        reads_one_page(&db, &task_query(&filter), &filter);
                    }
                }
            }
        }
    }
    let filter = TaskFilter {
        tenant: Some("acme".parse().unwrap()),
        channel: Some("news".parse().unwrap()),
        after: Some(tasuki_core::Position(7)),
        max: 100,
        ..TaskFilter::default()
    };
    reads_one_page(&db, &task_query(&filter), &filter);
}

#[test]
fn what_nothing_can_be_is_not_looked_for() {
    let state = Some(StateName::Pending);
    let filter = HandoffFilter { state, unreviewed: true, max: 1, ..HandoffFilter::default() };
    assert!(handoff_query(&filter).is_none());
}

#[test]
fn rows_of_an_older_schema_are_listed_by_the_new_lists() {
    let before = 6;
    let db = Connection::open_in_memory().unwrap();
    for migration in &crate::sqlite::open::MIGRATIONS[..before] {
        db.execute_batch(migration).unwrap();
    }
    db.pragma_update(None, "user_version", u32::try_from(before).unwrap()).unwrap();
    let old: Vec<Handoff> = include_str!("../../../tests/golden/handoffs.jsonl")
        .lines()
        .zip(1..)
        .map(|(text, id)| {
            let mut handoff = crate::codec::decode(text).unwrap();
            Arc::make_mut(&mut handoff.facts).id = HandoffId(id);
            handoff
        })
        .collect();
    for handoff in &old {
        rows::put_handoff(&db, handoff).unwrap();
    }
    crate::sqlite::open::migrate(&db).unwrap();
    for handoff in &old {
        let tenant = Some(handoff.from.tenant().parse().unwrap());
        let (state, max) = (Some(handoff.state.name()), 100);
        for (from, to) in
            [(None, None), (Some(handoff.from.clone()), None), (None, Some(handoff.to.clone()))]
        {
            let filter = HandoffFilter {
                tenant: tenant.clone(),
                state,
                from,
                to,
                max,
                ..HandoffFilter::default()
            };
            let listed = handoffs(&db, &filter).unwrap();
            assert!(listed.iter().any(|listed| **listed == *handoff), "{filter:?}");
            assert!(listed.iter().all(|listed| filter.lets_through(listed)), "{filter:?}");
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Every filter, alone and with others, on everything there is: a listing is what its filter lets
//! through, whichever index or memory a backend answers it from, while work goes on in between.

use std::collections::BTreeSet;
use std::sync::Arc;

use tasuki_core::commands::{Command, OpenTask};
use tasuki_core::handoff::StateName;
use tasuki_core::ids::{ChannelId, Project};
use tasuki_core::{Handoff, Position, Target, Task, TaskId, TaskState};
use tasuki_store::{Counts, HandoffFilter, TaskFilter};

use crate::reading::{handoffs, populate, tasks};
use crate::stage::{Backend, Stage};
use crate::support::{agent, body, complete, to, to_any};

/// Chances that come out the same each time.
struct Chances(u64);

impl Chances {
    fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        let place = (self.0 >> 33) % choices.len() as u64;
        choices[usize::try_from(place).unwrap()].clone()
    }
}

/// Work of two tenants in every state, in projects, on a channel, below each other.
async fn populate_tenants(stage: &Stage) {
    populate(stage).await;
    for who in ["acme/planner", "acme/tester"] {
        for target in [to("acme/coder"), to_any("acme/review")] {
            stage.offer_to(target, |offer| offer.from = agent(who)).await;
        }
        let id = stage.offer_to(to("acme/coder"), |offer| offer.from = agent(who)).await;
        let proof = stage.claim(id, "acme/coder").await;
        stage.act(id, proof, complete("done")).await.unwrap();
        for (project, owner) in [("web", who), ("ledger", who), ("web", "planner")] {
            let project = Some(project.parse().unwrap());
            stage.run(open(stage, owner, project, None)).await.unwrap();
        }
    }
    for owner in ["planner", "acme/planner"] {
        let channel = Some("news".parse().unwrap());
        stage.run(open(stage, owner, None, channel)).await.unwrap();
    }
}

fn open(
    stage: &Stage,
    owner: &str,
    project: Option<Project>,
    channel: Option<ChannelId>,
) -> Command {
    let open = OpenTask {
        task: TaskId(stage.next_id()),
        intent: body("do it"),
        correlation_id: project.as_ref().map(|_| "order-7".parse().unwrap()),
        project,
        parent: None,
        coordinator: None,
        channel,
        on_parent_end: tasuki_core::tree::OnParentEnd::Cancel,
    };
    Command::by(agent(owner), open)
}

/// Everything there is, newest first, each asked for by its id.
async fn everything(stage: &Stage) -> (Vec<Arc<Handoff>>, Vec<Arc<Task>>) {
    let log = stage.log().await;
    let ids: BTreeSet<_> = log.iter().filter_map(|entry| entry.sealed.record.handoff_id).collect();
    let mut handoffs = Vec::new();
    for id in ids.into_iter().rev() {
        handoffs.push(stage.handoff(id).await);
    }
    let ids: BTreeSet<_> = log.iter().map(|entry| entry.sealed.record.task_id).collect();
    let mut tasks = Vec::new();
    for id in ids.into_iter().rev() {
        tasks.push(stage.store.task(id).await.unwrap().unwrap());
    }
    (handoffs, tasks)
}

fn maybe<T>(choices: impl IntoIterator<Item = T>) -> Vec<Option<T>> {
    choices.into_iter().map(Some).chain([None, None]).collect()
}

/// What changes between two questions, so that rows are behind by other amounts.
async fn go_on(stage: Stage, turn: usize) -> Stage {
    let id = stage.offered().await;
    if turn.is_multiple_of(2) {
        let proof = stage.claim(id, "coder").await;
        stage.act(id, proof, complete("done")).await.unwrap();
    }
    match turn % 3 == 2 && stage.backend != Backend::Volatile {
        true => stage.restart().await,
        false => stage,
    }
}

pub(crate) async fn handoffs_are_listed_by_any_filters_together(mut stage: Stage) {
    populate_tenants(&stage).await;
    let mut chances = Chances(7);
    let tenants = maybe(["default", "acme", "zeta"].map(|tenant| tenant.parse().unwrap()));
    let states = maybe(StateName::ALL.iter().copied());
    let senders = maybe(["planner", "tester", "acme/planner", "nobody"].map(agent));
    let targets: Vec<Option<Target>> =
        maybe([to("coder"), to_any("review"), to("acme/coder"), to_any("acme/review"), to("x")]);
    for turn in 0..6 {
        let (all, tasks) = everything(&stage).await;
        for tenant in &tenants {
            let counts = stage.store.counts(tenant.clone()).await.unwrap();
            assert_eq!(counts, Counts::of(tenant.as_ref(), &all, &tasks), "{tenant:?}");
        }
        for _ in 0..60 {
            let before = chances.of(&[None, None, Some(chances_id(&all, &mut Chances(turn + 3)))]);
            let filter = HandoffFilter {
                tenant: chances.of(&tenants),
                state: chances.of(&states),
                task: chances.of(&[None, None, None, Some(all[5].task_id)]),
                to: chances.of(&targets),
                from: chances.of(&senders),
                unreviewed: chances.of(&[false, false, false, true]),
                before,
                max: 0,
            };
            let expected: Vec<_> = all.iter().filter(|h| filter.lets_through(h)).collect();
            let page = chances.of(&[2, 1000]);
            let listed = handoffs(&*stage.store, &filter, page).await;
            let (listed, expected): (Vec<_>, Vec<_>) = (
                listed.iter().map(|h| (h.id, h.last_pos)).collect(),
                expected.iter().map(|h| (h.id, h.last_pos)).collect(),
            );
            assert_eq!(listed, expected, "{filter:?} by {page}");
        }
        stage = go_on(stage, usize::try_from(turn).unwrap()).await;
    }
}

fn chances_id(all: &[Arc<Handoff>], chances: &mut Chances) -> tasuki_core::HandoffId {
    chances.of(all).id
}

pub(crate) async fn tasks_are_listed_by_any_filters_together(mut stage: Stage) {
    populate_tenants(&stage).await;
    let mut chances = Chances(11);
    let tenants = maybe(["default", "acme", "zeta"].map(|tenant| tenant.parse().unwrap()));
    let states = maybe(TaskState::ALL.iter().copied());
    let owners = maybe(["planner", "coder", "acme/planner", "nobody"].map(agent));
    let projects = maybe(["web", "ledger", "none"].map(|project| project.parse().unwrap()));
    for turn in 0..6 {
        let (_, all) = everything(&stage).await;
        let parents = all.iter().find_map(|task| task.parent_task_id);
        for _ in 0..60 {
            let some = chances.of(&all);
            let filter = TaskFilter {
                tenant: chances.of(&tenants),
                state: chances.of(&states),
                owner: chances.of(&owners),
                parent: chances.of(&[None, None, None, parents, Some(some.id)]),
                channel: chances.of(&[None, None, None, Some("news".parse().unwrap())]),
                after: None,
                project: chances.of(&projects),
                correlation: chances.of(&[None, None, Some("order-7".parse().unwrap())]),
                before: chances.of(&[None, None, Some(some.id)]),
                max: 0,
            };
            let page = chances.of(&[2, 1000]);
            let expected: Vec<_> = all.iter().filter(|t| filter.lets_through(t)).collect();
            let listed = tasks(&*stage.store, &filter, page).await;
            assert!(listed.iter().eq(expected), "{filter:?} by {page}");

            // From a position on they come in the order in which they were opened.
            let after = Some(chances.of(&[Position(0), some.intent_pos]));
            let filter = TaskFilter { after, max: 3, ..filter };
            let mut expected: Vec<_> = all.iter().filter(|t| filter.lets_through(t)).collect();
            expected.sort_by_key(|task| task.intent_pos);
            expected.truncate(3);
            let listed = stage.store.list_tasks(filter.clone()).await.unwrap();
            assert!(listed.iter().eq(expected), "{filter:?}");
        }
        stage = go_on(stage, turn).await;
    }
}

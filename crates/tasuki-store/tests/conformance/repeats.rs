// SPDX-License-Identifier: Apache-2.0
//! Requests that come twice.

use tasuki_core::commands::{Command, Offer, OpenTask};
use tasuki_core::{Position, TaskId};

use crate::stage::{Stage, code};
use crate::support::{DAY, agent, body, complete, key, to};

pub(crate) async fn the_same_key_gives_the_first_outcome_again(stage: Stage) {
    let send = || stage.send_keyed(stage.offer(to("coder")), key("k-1", "request"));
    let first = send().await.unwrap();
    let id = first.outcome.handoffs[0];
    let proof = stage.claim(id, "coder").await;
    stage.act(id, proof, complete("done")).await.unwrap();

    let again = send().await.unwrap();
    assert!(again.outcome.repeated);
    assert_eq!(again.outcome.handoffs, [id]);
    assert_eq!(again.handoffs, [stage.handoff(id).await], "as it is now, not as it was then");
}

pub(crate) async fn the_same_key_with_another_body_conflicts_and_stores_nothing(stage: Stage) {
    let first = stage.offer(to("coder"));
    stage.send_keyed(first, key("k-1", "request")).await.unwrap();
    let before = stage.store.head();
    let mut other = stage.offer(to("coder"));
    let send = |offer: &Offer| stage.send_keyed(offer.clone(), key("k-1", "another request"));
    let id = other.handoff;
    assert_eq!(code(send(&other).await), "idempotency_conflict");
    assert_eq!(stage.store.head(), before);
    assert_eq!(stage.store.handoff(id).await.unwrap(), None);
    assert_eq!(stage.store.bodies(vec![Position(before.0 + 1)]).await.unwrap(), [None]);

    // Keys belong to the agent that chose them.
    other.from = agent("tester");
    send(&other).await.unwrap();
}

pub(crate) async fn a_key_is_remembered_for_a_day_and_not_longer(stage: Stage) {
    let send = || async {
        let offer = stage.offer(to("coder"));
        stage.send_keyed(offer, key("k-1", "request")).await.unwrap().outcome
    };
    let first = send().await;
    stage.clock.advance_ms(DAY - 1);
    let second = send().await;
    assert_eq!((second.repeated, &second.handoffs), (true, &first.handoffs));
    stage.clock.advance_ms(1);
    let third = send().await;
    assert!(!third.repeated, "a day later it is a new request, the first time it comes too");
    let fourth = send().await;
    assert_eq!((fourth.repeated, &fourth.handoffs), (true, &third.handoffs));
}

pub(crate) async fn opening_a_task_takes_a_key_too(stage: Stage) {
    let open = |request: &'static str| {
        let open = OpenTask {
            task: TaskId(stage.next_id()),
            intent: body("do it"),
            correlation_id: None,
            project: None,
            parent: None,
            coordinator: None,
            channel: None,
            on_parent_end: tasuki_core::tree::OnParentEnd::Cancel,
        };
        stage.run(Command::by(agent("planner"), open).with_key(key("k-1", request)))
    };
    let first = open("request").await.unwrap();
    let again = open("request").await.unwrap();
    assert!(again.outcome.repeated);
    assert_eq!(again.task, first.task);
    assert_eq!(code(open("another").await), "idempotency_conflict");
}

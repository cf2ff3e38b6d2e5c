// SPDX-License-Identifier: Apache-2.0
//! Taking changes back leaves no trace, in no index.

use tasuki_core::commands::{self, Act, Claim, Command, Offer, OfferTask, Proof};
use tasuki_core::envelope::Control;
use tasuki_core::event::{FailureClass, Key};
use tasuki_core::{ClaimId, Terms, decide};

use super::*;

const NOW: Timestamp = Timestamp(1_000_000);

fn body(text: &str) -> Body {
    Body::of(&serde_json::json!({ "text": text }))
}

fn offer(id: u128, change: impl FnOnce(&mut Offer)) -> Command {
    let mut offer = Offer {
        handoff: HandoffId(id),
        task: OfferTask::New {
            task: TaskId(id),
            intent: body("do it").hash,
            correlation_id: None,
            project: None,
            branch_of: None,
            parent: None,
            coordinator: None,
            on_parent_end: tasuki_core::tree::OnParentEnd::Cancel,
        },
        from: "planner".parse().unwrap(),
        to: Target::Capability("review".parse().unwrap()),
        control: Control::Passed,
        envelope: body("envelope"),
        hop: 0,
        previous: None,
        priority: 5,
        terms: Terms::default(),
        contract: tasuki_core::contract::Contract::default(),
        after: None,
        lifted: Vec::new(),
        above: Vec::new(),
        dead_end: None,
        answered_by: Vec::new(),
        expires_at: NOW.plus_ms(100_000),
        not_before: None,
        needs_approval: false,
        ordering_key: None,
    };
    change(&mut offer);
    Command::offer(offer)
}

fn ordered(id: u128) -> Command {
    offer(id, |offer| offer.ordering_key = Some("one".parse().unwrap()))
}

fn keyed(id: u128, key: &str) -> Command {
    let key = Key { key: key.parse().unwrap(), request: body("request").hash };
    offer(id, |_| {}).with_key(Some(key))
}

fn claim(id: u128) -> Command {
    let seeker =
        Seeker { agent: "coder".parse().unwrap(), capabilities: vec!["review".parse().unwrap()] };
    let request_id = Some("r-1".parse().unwrap());
    let claim = Claim { seeker, claim_ids: vec![ClaimId(id)], lease_ms: None, request_id };
    Command::claim_one(HandoffId(id), claim)
}

fn held(live: &Live, id: u128, act: Act) -> Command {
    let claim = live.handoffs[&HandoffId(id)].state.claim().unwrap();
    let proof = Proof { claim_id: claim.claim_id, fence: claim.fence };
    Command::held(HandoffId(id), proof, None, act)
}

fn run(live: &mut Live, command: &Command, now: Timestamp) {
    let decision = decide(command, live, now);
    decision.outcome.unwrap();
    for id in decision.renewals {
        live.renew(id, now);
    }
    for event in decision.events {
        live.append(event, now);
    }
}

/// Everything that a decision could see, in one order.
fn everything(live: &Live) -> Vec<String> {
    fn sorted<T: std::fmt::Debug>(items: impl IntoIterator<Item = T>) -> Vec<String> {
        let mut texts: Vec<_> = items.into_iter().map(|item| format!("{item:?}")).collect();
        texts.sort();
        texts
    }
    let requests = live
        .by_request
        .iter()
        .map(|((agent, request), held)| (agent, request, held.iter().collect::<BTreeSet<_>>()));
    let tables = [
        sorted(&live.tasks),
        sorted(&live.handoffs),
        sorted(&live.waiting),
        sorted(&live.lines),
        sorted(&live.due),
        sorted(requests),
        sorted(&live.replays),
        sorted([(live.live_count, live.waiting_count, live.epoch, live.head)]),
    ];
    tables.concat()
}

#[test]
fn what_is_taken_back_was_never_there() {
    let mut live = Live::new(Epoch(1), Position(0));
    for command in [ordered(1), ordered(2), ordered(3), keyed(4, "k-1"), offer(5, |_| {})] {
        run(&mut live, &command, NOW);
    }
    for id in [1, 4, 5] {
        run(&mut live, &claim(id), NOW);
    }
    live.commit();
    live.ready.clear();
    let (before, head) = (everything(&live), live.head);

    let later = NOW.plus_ms(1000);
    let complete = Act::Complete { result: body("done"), follow_ups: Vec::new(), checked: None };
    let fail = Act::Fail {
        class: FailureClass::Retryable,
        failure: body("it broke"),
        retry_after_ms: None,
        entropy: 7,
    };
    for (id, act) in [(1, complete), (4, fail), (5, Act::Start), (5, Act::Heartbeat)] {
        let command = held(&live, id, act);
        run(&mut live, &command, later);
    }
    let by = || "planner".parse().unwrap();
    let cancel = Command::by(by(), commands::Cancel { handoff: HandoffId(2), reason: None });
    for command in [keyed(6, "k-2"), ordered(7), claim(6), cancel, claim(3)] {
        run(&mut live, &command, later);
    }
    run(&mut live, &Command::of_broker(commands::Sweep::now(10)), NOW.plus_ms(50_000));
    run(&mut live, &Command::of_broker(commands::RaiseEpoch { epoch: 2 }), NOW.plus_ms(50_000));
    assert_ne!(everything(&live), before);

    live.roll_back(head);
    assert_eq!(everything(&live), before);
    assert!(live.ready.is_empty() && live.undo.is_empty());
}

#[test]
fn state_that_is_loaded_in_any_order_keeps_its_lines() {
    let mut first = Live::new(Epoch(1), Position(0));
    for id in 1..=4 {
        run(&mut first, &ordered(id), NOW);
    }
    let mut loaded = Live::new(Epoch(1), first.head);
    for id in [3, 1, 4, 2] {
        loaded.put_task(TaskId(id), first.tasks.get(&TaskId(id)).cloned());
        loaded.put_handoff(HandoffId(id), first.handoffs.get(&HandoffId(id)).cloned());
    }
    assert_eq!(everything(&loaded), everything(&first));
}

#[test]
fn keys_beyond_the_most_that_fit_are_forgotten_only_if_they_can_be_looked_up() {
    let mut live = Live::new(Epoch(1), Position(0));
    for id in 1..=5 {
        run(&mut live, &keyed(id, &format!("k-{id}")), NOW);
    }
    assert!(!live.forget_keys(NOW, 2, Position(0)), "none can be looked up");
    assert_eq!(live.counts().keys, 5);
    assert!(live.forget_keys(NOW, 2, Position(2)));
    assert_eq!(live.counts().keys, 3, "two of them can");
    assert!(!live.forget_keys(NOW.plus_ms(KEY_MS_MAX), 2, Position(5)), "old is old");
    assert_eq!(live.counts().keys, 0);
}

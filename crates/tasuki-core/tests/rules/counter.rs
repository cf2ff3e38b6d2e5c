// SPDX-License-Identifier: Apache-2.0
//! Counter-offers: other terms, settled by the sender.

use tasuki_core::commands::{self, Command};
use tasuki_core::decide::Outcome;
use tasuki_core::handoff::StateName;
use tasuki_core::{HandoffId, Refusal, Target, Terms};

use crate::support::{Stage, agent, body, seeker, to, to_any};

const LONGER: u64 = 7_200_000;

fn terms() -> Terms {
    Terms { work_ms: LONGER, ..Terms::default() }
}

impl Stage {
    fn counter(&mut self, handoff: HandoffId, name: &str) -> Result<Outcome, Refusal> {
        self.run(Command::by(
            seeker(name).agent,
            commands::Counter {
                handoff,
                seeker: seeker(name),
                terms: terms(),
                budget_tokens: Some(9000),
                reason: body("it takes longer"),
            },
        ))
    }

    fn settle(
        &mut self,
        handoff: HandoffId,
        by: &str,
        name: &str,
        accept: bool,
    ) -> Result<Outcome, Refusal> {
        self.run(Command::by(
            agent(by),
            commands::SettleCounter { handoff, agent: agent(name), accept },
        ))
    }
}

#[test]
fn an_accepted_counter_offer_is_the_contract_and_is_enforced() {
    let mut stage = Stage::new();
    let id = stage.offered();
    stage.counter(id, "coder").unwrap();
    assert_eq!(stage.state(id), StateName::Pending);
    stage.settle(id, "planner", "coder", true).unwrap();
    assert_eq!(stage.handoff(id).terms, terms());
    assert_eq!(stage.handoff(id).contract.agreement.budget_tokens, Some(9000));
    stage.claim(id, "coder");
    let until = stage.handoff(id).state.claim().unwrap().hard_until;
    assert_eq!(until, stage.now.plus_ms(LONGER));
}

#[test]
fn what_was_offered_to_many_then_waits_for_the_one_whose_terms_were_taken() {
    let mut stage = Stage::new();
    let id = stage.offer_to(to_any("review"), |_| {});
    stage.counter(id, "anna").unwrap();
    stage.counter(id, "boris").unwrap();
    stage.settle(id, "planner", "boris", true).unwrap();
    assert_eq!(stage.handoff(id).to, Target::Agent(agent("boris")));
    assert!(stage.handoff(id).counters.is_empty());
    assert_eq!(stage.claim_next("anna", 1), []);
    assert_eq!(stage.claim_next("boris", 1), [id]);
}

#[test]
fn until_it_is_settled_the_work_may_be_taken_as_it_was_offered() {
    let mut stage = Stage::new();
    let id = stage.offer_to(to_any("review"), |_| {});
    stage.counter(id, "anna").unwrap();
    assert_eq!(stage.claim_next("boris", 1), [id]);
    let late = stage.settle(id, "planner", "anna", true);
    assert!(matches!(late, Err(Refusal::WrongState { .. })));
}

#[test]
fn a_refused_counter_offer_leaves_the_offer_as_it_was() {
    let mut stage = Stage::new();
    let id = stage.offered();
    stage.counter(id, "coder").unwrap();
    stage.settle(id, "planner", "coder", false).unwrap();
    assert_eq!(stage.handoff(id).terms, Terms::default());
    let gone = stage.settle(id, "planner", "coder", true);
    assert_eq!(gone, Err(Refusal::NoCounter { handoff: id, agent: agent("coder") }));
    stage.claim(id, "coder");
}

#[test]
fn only_who_may_take_it_counters_and_only_the_sender_settles() {
    let mut stage = Stage::new();
    let id = stage.offer_to(to("coder"), |_| {});
    assert!(matches!(stage.counter(id, "stranger"), Err(Refusal::NotTarget { .. })));
    stage.counter(id, "coder").unwrap();
    let settled = stage.settle(id, "coder", "coder", true);
    assert!(matches!(settled, Err(Refusal::NotPermitted { .. })));
    let mut wild = terms();
    wild.work_ms = 0;
    let absurd = stage.run(Command::by(
        seeker("coder").agent,
        commands::Counter {
            handoff: id,
            seeker: seeker("coder"),
            terms: wild,
            budget_tokens: None,
            reason: body("no"),
        },
    ));
    assert!(matches!(absurd, Err(Refusal::InvalidTerms(_))));
}

#[test]
fn an_agent_has_one_counter_offer_and_a_handoff_a_bounded_number() {
    let mut stage = Stage::new();
    let id = stage.offer_to(to_any("review"), |_| {});
    for _ in 0..3 {
        stage.counter(id, "anna").unwrap();
    }
    assert_eq!(stage.handoff(id).counters.len(), 1);
    for number in 1..16 {
        stage.counter(id, &format!("agent-{number}")).unwrap();
    }
    assert!(matches!(stage.counter(id, "one-more"), Err(Refusal::TooManyCounters { .. })));
    stage.counter(id, "anna").unwrap();
}

// SPDX-License-Identifier: Apache-2.0
//! Who plays: agents with what they believe to hold, and what they ask of the broker.

use tasuki_core::canonical::Object;
use tasuki_core::commands::Proof;
use tasuki_core::envelope::Control;
use tasuki_core::event::FailureClass;
use tasuki_core::{AgentId, HandoffId, Terms, Timestamp};
use tasuki_engine::{FailRequest, FollowUp, NewOffer};
use tasuki_protocol::Claim;

use crate::random::Random;
use crate::support::{MINUTE, SECOND, agent, hop, keyed, new_offer, to, to_any};

pub(crate) const NAMES: [&str; 5] = ["ada", "bob", "cyd", "dee", "eve"];

/// A request as it travels: it may arrive late, twice, or lose its reply.
#[derive(Clone)]
#[allow(clippy::large_enum_variant, reason = "there are few of them")]
pub(crate) enum Request {
    Offer(NewOffer),
    Claim(Claim),
    Held { handoff: HandoffId, proof: Proof, wish: Wish },
}

#[derive(Clone)]
pub(crate) enum Wish {
    Start,
    Heartbeat,
    Progress,
    Complete(Vec<FollowUp>),
    Fail(FailureClass),
    Release,
    Decline(AgentId),
}

pub(crate) struct Agent {
    pub(crate) name: &'static str,
    pub(crate) holds: Vec<(HandoffId, Proof)>,
    /// What it asked and heard no answer to; it asks again, word for word.
    pub(crate) unanswered: Option<Request>,
    pub(crate) paused_until: Timestamp,
}

impl Agent {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, holds: Vec::new(), unanswered: None, paused_until: Timestamp(0) }
    }

    /// What it does next, if nothing is open.
    pub(crate) fn next(&self, random: &mut Random, number: u64) -> Request {
        let held = random.pick(&self.holds).copied();
        match held {
            Some((handoff, proof)) if random.percent(85) => {
                Request::Held { handoff, proof, wish: self.wish(random) }
            }
            _ => Request::Claim(Claim {
                majors: Vec::new(),
                agent: agent(self.name),
                capabilities: vec!["review".parse().unwrap()],
                max: usize::try_from(random.below(2)).unwrap() + 1,
                wait_ms: 0,
                lease_ms: None,
                request_id: Some(format!("claim {number}").parse().unwrap()),
            }),
        }
    }

    fn wish(&self, random: &mut Random) -> Wish {
        match random.below(20) {
            0..3 => Wish::Start,
            3..6 => Wish::Heartbeat,
            6..8 => Wish::Progress,
            8..14 => Wish::Complete(follow_ups(random)),
            14 => Wish::Fail(FailureClass::Permanent),
            15..17 => Wish::Fail(FailureClass::Retryable),
            17..19 => Wish::Release,
            _ => Wish::Decline(agent(self.name)),
        }
    }
}

/// Mostly none; sometimes the task goes on, or two others are called.
fn follow_ups(random: &mut Random) -> Vec<FollowUp> {
    match random.below(6) {
        0 => vec![some_hop(random, Control::Passed)],
        1 => vec![some_hop(random, Control::Awaited), some_hop(random, Control::Awaited)],
        _ => Vec::new(),
    }
}

fn some_hop(random: &mut Random, control: Control) -> FollowUp {
    let target = match random.percent(60) {
        true => to_any("review"),
        false => to(random.pick(&NAMES).unwrap()),
    };
    let mut hop = hop(target, control);
    hop.terms = Some(Terms {
        lease_ms: 10 * SECOND,
        work_ms: MINUTE,
        attempts: 3,
        losses: 3,
        backoff_ms: 5 * SECOND,
        ack_ms: None,
    });
    hop.expires_in_ms = Some(MINUTE * (1 + random.below(10)));
    hop.priority = Some(u8::try_from(random.below(10)).unwrap());
    hop.start_in_ms = random.percent(10).then_some(20 * SECOND);
    hop.ordering_key = random.percent(15).then(|| "one".parse().unwrap());
    hop
}

/// A new task from one of two senders.
pub(crate) fn some_offer(random: &mut Random, number: u64) -> NewOffer {
    let hop = some_hop(random, Control::Passed);
    let from = agent(if random.percent(50) { "planner" } else { "boss" });
    keyed(NewOffer { from, hop, ..new_offer(to("nobody")) }, &format!("offer {number}"))
}

pub(crate) fn failure(handoff: HandoffId, proof: Proof, class: FailureClass) -> FailRequest {
    FailRequest {
        handoff,
        proof,
        by: None,
        signed: None,
        class,
        kind: "broken".into(),
        message: "it broke".into(),
        attempted: None,
        attempts: None,
        causes: Vec::new(),
        hint: Some("look at it".into()),
        retry_after_ms: None,
        details: Object::default(),
        usage: None,
    }
}

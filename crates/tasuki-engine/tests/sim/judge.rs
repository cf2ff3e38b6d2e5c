// SPDX-License-Identifier: Apache-2.0
//! Reads the log as it grows, keeps its own simple account, and compares it with what callers were
//! told. It knows events and nothing of how the broker works.

use std::collections::{BTreeMap, BTreeSet};

use tasuki_core::commands::Proof;
use tasuki_core::event::{Event, Sealed};
use tasuki_core::ids::{Fence, IdempotencyKey};
use tasuki_core::{AgentId, HandoffId, Hash, Position};

use crate::cast::{Request, Wish};

#[derive(Default)]
pub(crate) struct Judge {
    pub(crate) at: Position,
    pub(crate) handoffs: BTreeMap<HandoffId, Account>,
    keys: BTreeSet<(AgentId, IdempotencyKey)>,
    /// Offers that a sender was told are stored.
    pub(crate) acknowledged: BTreeSet<HandoffId>,
}

pub(crate) struct Account {
    pub(crate) envelope: Hash,
    /// Who may act now.
    claim: Option<Proof>,
    fence: Fence,
    completions: u32,
    failures: u32,
    attempts_max: u32,
    /// How often it came to an end.
    pub(crate) ends: u32,
}

impl Judge {
    /// Takes new events. `cause` is the request that was just carried out.
    pub(crate) fn read(&mut self, sealed: &Sealed, cause: Option<&Request>) {
        assert_eq!(sealed.position.0, self.at.0 + 1, "positions have no gaps");
        self.at = sealed.position;
        let record = &sealed.record;
        let Some(id) = record.handoff_id else { return };
        if let Some((offered, _)) = record.event.offered() {
            let account = Account {
                envelope: offered.envelope,
                claim: None,
                fence: Fence(0),
                completions: 0,
                failures: 0,
                attempts_max: offered.terms.attempts,
                ends: 0,
            };
            assert!(self.handoffs.insert(id, account).is_none(), "{id} was offered twice");
            if let Some(key) = &offered.key {
                let new = self.keys.insert((offered.from.clone(), key.key.clone()));
                assert!(new, "{:?} made two handoffs", key.key);
            }
            return;
        }
        let account = self.handoffs.get_mut(&id).expect("a handoff begins with its offer");
        if by_holder(&record.event) {
            let Some(Request::Held { handoff, proof, .. }) = cause else {
                panic!("{:?} without anybody asking", record.event)
            };
            assert_eq!((*handoff, Some(*proof)), (id, account.claim), "a superseded claim acted");
        }
        account.apply(id, &record.event);
    }

    /// What a caller was told about a claim agrees with the account.
    pub(crate) fn told(&self, request: &Request, answer: Result<(), &'static str>) {
        let Request::Held { handoff, proof, wish } = request else { return };
        let holds = self.handoffs.get(handoff).is_some_and(|known| known.claim == Some(*proof));
        match (wish, answer) {
            (Wish::Heartbeat | Wish::Progress, Ok(())) => {
                assert!(holds, "a superseded claim was renewed");
            }
            (_, Err("stale_claim")) => assert!(!holds, "the holder was sent away"),
            _ => {}
        }
    }

    /// The claims an agent was given are the ones that count.
    pub(crate) fn granted(&self, handoff: HandoffId, proof: Proof) {
        assert_eq!(self.handoffs[&handoff].claim, Some(proof));
    }
}

impl Account {
    fn apply(&mut self, id: HandoffId, event: &Event) {
        match event {
            Event::Claimed(claimed) => {
                assert_eq!(
                    (self.claim, self.ends),
                    (None, 0),
                    "{id} was claimed while not waiting"
                );
                assert!(claimed.fence > self.fence, "{id}: fences rise");
                self.fence = claimed.fence;
                self.claim = Some(Proof { claim_id: claimed.claim_id, fence: claimed.fence });
            }
            Event::Completed { fence, .. } => {
                assert_eq!(*fence, self.fence);
                self.completions += 1;
                assert_eq!(self.completions, 1, "{id} was completed twice");
                self.end();
            }
            Event::AttemptFailed { .. } => {
                self.failures += 1;
                assert!(self.failures <= self.attempts_max);
                self.claim = None;
            }
            Event::Released { .. } | Event::LeaseLost { .. } | Event::Declined { .. } => {
                self.claim = None;
            }
            Event::Cancelled { .. } | Event::Aborted { .. } | Event::DeadLettered { .. } => {
                self.end();
            }
            _ => {}
        }
    }

    fn end(&mut self) {
        self.claim = None;
        self.ends += 1;
        assert_eq!(self.ends, 1, "it came to an end twice");
    }
}

fn by_holder(event: &Event) -> bool {
    matches!(
        event,
        Event::Started
            | Event::Progressed { .. }
            | Event::Completed { .. }
            | Event::AttemptFailed { .. }
            | Event::Released { .. }
            | Event::Declined { .. }
    )
}

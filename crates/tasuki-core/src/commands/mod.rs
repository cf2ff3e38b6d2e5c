// SPDX-License-Identifier: Apache-2.0
//! Commands: who wishes for something, with which key, and the wish. Each wish stands in the file of
//! its subject, with its footprint (what it must see, what it may touch) and its decision; both are
//! asked of it through one trait, so that a wish that lacks one of them does not compile.
//! Everything that a decision must not make up by itself (ids, entropy) comes with the wish.

mod circle;
mod claim;
mod complete_task;
mod counter;
mod document;
mod erase;
mod escalate;
mod footprint;
mod held;
mod join;
mod lifts;
mod message;
mod offer;
mod question;
mod registry;
mod review;
mod sweep;
mod taint;
mod talk;
mod tree;

pub use circle::{CIRCLE_MAX, EndCircle};
pub use claim::{Claim, ClaimOne, Decline, Peek, Seeker};
pub use complete_task::{CompleteTask, EndPublication};
pub use counter::{Counter, SettleCounter};
pub use document::{ChangeDocument, DocumentWish, Settle, Write};
pub use erase::{ERASED_MAX, Erasable, Erase};
pub use footprint::{Changes, Footprint, Held as HeldBy, Returns, Seeks, targets};
pub use held::{Act, FOLLOW_UPS_MAX, Held, Holder, Proof, UsedBy};
pub use join::Join;
pub use lifts::{Lift, NoteFetch, NoteTold};
pub use message::SendMessage;
pub use offer::{Offer, OfferTask, OpenTask, Publish};
pub use question::{Answer, Ask};
pub use registry::{ChangeRegistry, RegistryWish};
pub use review::{
    Abort, Amend, Approve, Cancel, CancelTask, Discard, Redrive, Reject, TakeReview, again_ms,
    waits_anew,
};
pub use sweep::{RaiseEpoch, RenewAll, Sweep};
pub use taint::{ClearTaint, Retract, SPREAD_MAX, SpreadTaint};
pub use talk::Attach;
pub use tree::SettleBelow;

use crate::breaker::House;
use crate::decide::{Decision, Outcome, View};
use crate::event::{Actor, Key};
use crate::handoff::Handoff;
use crate::ids::{AgentId, HandoffId, IdempotencyKey, TENANT_DEFAULT, TaskId, Timestamp};
use crate::refusal::Refusal;
use crate::registry::grant::ShownBy;
use crate::task::Task;

/// Made by its constructors only: they see to it that a wish which an agent must have comes from one.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Command {
    pub by: By,
    /// The idempotency key, if the agent gave one.
    pub key: Option<Key>,
    /// What holds where nobody said otherwise.
    pub house: House,
    pub wish: Wish,
}

/// Who wishes for something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum By {
    Agent(AgentId),
    /// Somebody who shows a claim, and whose name nobody asked for.
    Bearer,
    /// The broker itself: time has passed, or something else has come to its end.
    Broker,
}

impl By {
    /// The name of the tenant on whose behalf this is, as far as it says.
    #[must_use]
    pub fn tenant(&self) -> &str {
        match self {
            Self::Agent(agent) => agent.tenant(),
            Self::Bearer | Self::Broker => TENANT_DEFAULT,
        }
    }

    #[must_use]
    pub fn agent(&self) -> Option<&AgentId> {
        match self {
            Self::Agent(agent) => Some(agent),
            Self::Bearer | Self::Broker => None,
        }
    }
}

impl Command {
    fn new(by: By, wish: Wish) -> Self {
        Self { by, key: None, house: House::default(), wish }
    }

    /// What an agent wishes for.
    #[must_use]
    pub fn by(agent: AgentId, wish: impl OfAgent) -> Self {
        Self::new(By::Agent(agent), wish.into())
    }

    /// What the broker does by itself.
    #[must_use]
    pub fn of_broker(wish: impl OfBroker) -> Self {
        Self::new(By::Broker, wish.into())
    }

    /// What the holder of a claim does. Without a name, showing the claim is all there is.
    #[must_use]
    pub fn held(handoff: HandoffId, proof: Proof, by: Option<Holder>, act: Act) -> Self {
        let (by, signed) = match by {
            Some(Holder { agent, signed }) => (By::Agent(agent), signed),
            None => (By::Bearer, None),
        };
        Self::new(by, Held { handoff, proof, signed, act, used: None }.into())
    }

    /// The same, with what the attempt used that ends by it.
    #[must_use]
    pub fn held_using(
        handoff: HandoffId,
        proof: Proof,
        by: Option<Holder>,
        act: Act,
        used: Option<UsedBy>,
    ) -> Self {
        let command = Self::held(handoff, proof, by, act);
        match command.wish {
            Wish::Held(held) => Self { wish: Held { used, ..*held }.into(), ..command },
            wish => Self { wish, ..command },
        }
    }

    /// The sender's offer.
    #[must_use]
    pub fn offer(offer: Offer) -> Self {
        Self::by(offer.from.clone(), offer)
    }

    /// The seeker's claim of what waits.
    #[must_use]
    pub fn claim(claim: Claim) -> Self {
        Self::by(claim.seeker.agent.clone(), claim)
    }

    /// The seeker's claim of one handoff.
    #[must_use]
    pub fn claim_one(handoff: HandoffId, claim: Claim) -> Self {
        Self::by(claim.seeker.agent.clone(), ClaimOne { handoff, claim })
    }

    #[must_use]
    pub fn peek(seeker: Seeker, max: usize) -> Self {
        Self::by(seeker.agent.clone(), Peek { seeker, max })
    }

    /// A change of who is known. An agent says how it showed who it is.
    #[must_use]
    pub fn registry(by: Actor, shown: Option<ShownBy>, wish: RegistryWish) -> Self {
        let wish = ChangeRegistry { shown, wish };
        match by {
            Actor::Agent(agent) => Self::by(agent, wish),
            Actor::Broker => Self::of_broker(wish),
        }
    }

    #[must_use]
    pub fn with_key(self, key: Option<Key>) -> Self {
        Self { key, ..self }
    }

    /// The same, where other numbers hold.
    #[must_use]
    pub fn in_house(self, house: House) -> Self {
        Self { house, ..self }
    }

    /// Whose idempotency key this command bears.
    #[must_use]
    pub fn keyed(&self) -> Option<(&AgentId, &IdempotencyKey)> {
        Some((self.by.agent()?, &self.key.as_ref()?.key))
    }

    /// What it must see and may touch.
    #[must_use]
    pub fn footprint(&self) -> Footprint<'_> {
        self.wish.stated().footprint()
    }

    pub(crate) fn decided(&self, view: &dyn View, now: Timestamp) -> Result<Decision, Refusal> {
        let case = Case { by: &self.by, key: self.key.as_ref(), house: self.house, view, now };
        match case.replayed()? {
            Some(outcome) => Ok(Decision::unchanged(outcome)),
            None => self.wish.stated().decide(&case),
        }
    }
}

/// What every wish says of itself.
trait Stated {
    fn footprint(&self) -> Footprint<'_>;
    /// Everything that follows, or why it is refused.
    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal>;
}

/// What a wish is decided with besides itself.
struct Case<'a> {
    by: &'a By,
    key: Option<&'a Key>,
    house: House,
    view: &'a dyn View,
    now: Timestamp,
}

impl<'a> Case<'a> {
    fn agent(&self) -> &'a AgentId {
        self.by.agent().expect("its constructor takes an agent")
    }

    fn actor(&self) -> Actor {
        Actor::Agent(self.agent().clone())
    }

    /// Finds a task for the one who asks. What belongs to another tenant is not there.
    fn task(&self, id: TaskId) -> Result<&'a Task, Refusal> {
        let found = self.view.task(id);
        found.filter(|task| self.is_own(&task.owner)).ok_or(Refusal::TaskNotFound(id))
    }

    /// Finds a handoff for the one who asks. What belongs to another tenant is not there.
    fn handoff(&self, id: HandoffId) -> Result<&'a Handoff, Refusal> {
        let found = self.view.handoff(id);
        found.filter(|handoff| self.is_own(&handoff.from)).ok_or(Refusal::HandoffNotFound(id))
    }

    fn is_own(&self, theirs: &AgentId) -> bool {
        match self.by {
            By::Agent(agent) => agent.tenant() == theirs.tenant(),
            By::Bearer | By::Broker => true,
        }
    }

    /// The outcome of the same request before, if its key says that there was one.
    fn replayed(&self) -> Result<Option<Outcome>, Refusal> {
        let Some(key) = self.key else { return Ok(None) };
        match self.view.replay(self.agent(), &key.key) {
            None => Ok(None),
            Some(first) if first.request == key.request => Ok(Some(Outcome {
                handoffs: first.handoff.into_iter().collect(),
                task: (first.task != TaskId::STORE).then_some(first.task),
                document: first.document,
                repeated: true,
            })),
            Some(_) => Err(Refusal::IdempotencyConflict { key: key.key.clone() }),
        }
    }
}

/// Wishes that an agent may have.
pub trait OfAgent: Into<Wish> {}
/// Wishes that the broker may have of itself.
pub trait OfBroker: Into<Wish> {}

impl OfBroker for Sweep {}
impl OfBroker for RaiseEpoch {}
impl OfBroker for RenewAll {}
impl OfBroker for Join {}
impl OfBroker for EndPublication {}
impl OfBroker for SettleBelow {}
impl OfBroker for SpreadTaint {}
impl OfBroker for EndCircle {}
impl OfBroker for NoteTold {}
impl OfBroker for ChangeRegistry {}

/// The one list of all wishes.
macro_rules! wishes {
    ($($name:ident($type:ty) = $word:literal),+ $(,)?) => {
        #[derive(Debug, Clone)]
        pub enum Wish { $($name(Box<$type>)),+ }

        impl Wish {
            pub const KINDS: &'static [&'static str] = &[$($word),+];

            /// The word for what is wished for.
            #[must_use]
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$name(_) => $word),+ }
            }

            fn stated(&self) -> &dyn Stated {
                match self { $(Self::$name(wish) => &**wish),+ }
            }
        }

        $(
            impl From<$type> for Wish {
                fn from(wish: $type) -> Self {
                    Self::$name(Box::new(wish))
                }
            }
            impl OfAgent for $type {}
        )+
    };
}

wishes! {
    OpenTask(OpenTask) = "open_task",
    CancelTask(CancelTask) = "cancel_task",
    CompleteTask(CompleteTask) = "complete_task",
    EndPublication(EndPublication) = "end_publication",
    Offer(Offer) = "offer",
    Publish(Publish) = "publish",
    Claim(Claim) = "claim",
    ClaimOne(ClaimOne) = "claim_one",
    Peek(Peek) = "peek",
    Held(Held) = "held",
    Decline(Decline) = "decline",
    Answer(Answer) = "answer",
    SendMessage(SendMessage) = "send_message",
    Counter(Counter) = "counter",
    SettleCounter(SettleCounter) = "settle_counter",
    Approve(Approve) = "approve",
    Reject(Reject) = "reject",
    Cancel(Cancel) = "cancel",
    Abort(Abort) = "abort",
    Redrive(Redrive) = "redrive",
    Amend(Amend) = "amend",
    TakeReview(TakeReview) = "take_review",
    Discard(Discard) = "discard",
    Retract(Retract) = "retract",
    EndCircle(EndCircle) = "end_circle",
    SpreadTaint(SpreadTaint) = "spread_taint",
    ClearTaint(ClearTaint) = "clear_taint",
    Join(Join) = "join",
    SettleBelow(SettleBelow) = "settle_below",
    Lift(Lift) = "lift",
    NoteFetch(NoteFetch) = "note_fetch",
    NoteTold(NoteTold) = "note_told",
    Sweep(Sweep) = "sweep",
    RenewAll(RenewAll) = "renew_all",
    RaiseEpoch(RaiseEpoch) = "raise_epoch",
    Registry(ChangeRegistry) = "registry",
    Document(ChangeDocument) = "document",
    Erase(Erase) = "erase",
}

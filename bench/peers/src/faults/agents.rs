//! The agents' program, which is the same on every system but for how it takes and tells.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::{Duration, Instant},
};

use anyhow::Result;

use super::{
    message::{Message, STAGES},
    plan::{Fault, Plan},
};

/// A system through which agents hand work to each other, as one agent uses it.
pub(super) trait Hands: Sized {
    /// What it takes to connect.
    type Place: Clone;
    /// What somebody must show of what it took.
    type Taken;

    async fn connect(place: &Self::Place, stage: usize) -> Result<Self>;
    async fn send(&mut self, message: &Message) -> Result<()>;
    /// The next message for this stage; none if there is none for a while.
    async fn take(&mut self) -> Result<Option<(Message, Self::Taken)>>;
    /// Passes on what came of it.
    async fn tell(&mut self, taken: &Self::Taken, next: &Message) -> Result<Told>;
    /// Says that nothing follows.
    async fn finish(&mut self, taken: &Self::Taken) -> Result<()>;
    /// Ends in the middle of telling.
    async fn die_telling(self, taken: &Self::Taken, next: &Message) -> Result<()>;
    /// Tells, and never sees the answer: the connection is gone.
    async fn tell_unheard(self, taken: &Self::Taken, next: &Message) -> Result<()>;
    /// What an agent can do that does not know whether it was heard.
    async fn tell_again(&mut self, taken: &Self::Taken, next: &Message) -> Result<Told>;
}

pub(super) enum Told {
    /// It was taken, or it is nobody's business any more.
    Heard,
    /// It is not taken like this, and the work is still the agent's.
    Refused,
}

/// What all agents of a round know.
pub(super) struct Round {
    pub(super) plan: Plan,
    /// How long a system waits for an agent that is silent.
    pub(super) lease: Duration,
    pub(super) results: RefCell<Vec<Message>>,
    pub(super) refused: Cell<u32>,
    active_at: Cell<Instant>,
}

impl Round {
    pub(super) fn new(plan: Plan, lease: Duration) -> Rc<Self> {
        let (results, refused) = (RefCell::default(), Cell::default());
        Rc::new(Self { plan, lease, results, refused, active_at: Cell::new(Instant::now()) })
    }

    /// Whether nothing has happened for so long that nothing will.
    fn is_over(&self) -> bool {
        self.active_at.get().elapsed() > self.lease * 4
    }

    fn act(&self) {
        self.active_at.set(Instant::now());
    }
}

/// Works at one stage until nothing more comes.
pub(super) async fn work<H: Hands>(place: H::Place, stage: usize, round: Rc<Round>) -> Result<()> {
    let mut hands = H::connect(&place, stage).await?;
    while !round.is_over() {
        let Some((message, taken)) = hands.take().await? else { continue };
        round.act();
        if stage == STAGES {
            hands.finish(&taken).await?;
            round.results.borrow_mut().push(message);
            continue;
        }
        let next = message.worked_on();
        // Who is gone is followed by another one, which begins where everybody begins.
        match round.plan.visit(&message) {
            None => {
                hands.tell(&taken, &next).await?;
            }
            Some(Fault::Dies) => {
                drop(hands);
                hands = H::connect(&place, stage).await?;
            }
            Some(Fault::DiesTelling) => {
                hands.die_telling(&taken, &next).await?;
                hands = H::connect(&place, stage).await?;
            }
            Some(Fault::Unheard) => {
                hands.tell_unheard(&taken, &next).await?;
                hands = H::connect(&place, stage).await?;
                hands.tell_again(&taken, &next).await?;
            }
            Some(Fault::Stalls) => {
                tokio::time::sleep(round.lease * 3 / 2).await;
                hands.tell(&taken, &next).await?;
            }
            Some(Fault::Softens) => {
                if let Told::Refused = hands.tell(&taken, &next.clone().softened()).await? {
                    round.refused.set(round.refused.get() + 1);
                    hands.tell(&taken, &next).await?;
                }
            }
        }
        round.act();
    }
    Ok(())
}

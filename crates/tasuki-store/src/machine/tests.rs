// SPDX-License-Identifier: Apache-2.0
//! The machine driven in one thread, with a journal that fails by plan. One seed gives one play.
//! Whatever fails: what readers see is what follows from the journal, and nobody is told of
//! anything else.

use tasuki_core::commands::Proof;
use tasuki_core::event::Sealed;
use tasuki_core::ids::Epoch;

use super::*;
use crate::images::Images;
use crate::writer::tests::{claim, complete, offer};

/// Numbers that a seed decides.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Keeps events in a list, unless the plan says that it cannot.
struct Planned {
    dice: Dice,
    log: Vec<Sealed>,
    /// How often it failed.
    faults: [u32; 2],
    room: bool,
}

impl Journal for Planned {
    fn load_handoff(&mut self, _: HandoffId) -> Result<Option<Handoff>, Error> {
        Ok(None)
    }
    fn load_task(&mut self, _: TaskId) -> Result<Option<Task>, Error> {
        Ok(None)
    }
    fn load_replay(
        &mut self,
        _: &AgentId,
        _: &IdempotencyKey,
        _: Timestamp,
    ) -> Result<Option<Replay>, Error> {
        Ok(None)
    }
    fn load_document(&mut self, _: &DocumentId) -> Result<Option<Document>, Error> {
        Ok(None)
    }
    fn load_body(&mut self, _: Position) -> Result<Option<StoredBody>, Error> {
        Ok(None)
    }
    fn commit(
        &mut self,
        batch: &[Appended],
        _: &Live,
        _: CatchUp,
        _: Timestamp,
    ) -> Result<Written, Fault> {
        match self.dice.roll(6) {
            0 => {
                self.faults[0] += 1;
                Err(Fault::Busy)
            }
            1 => {
                self.faults[1] += 1;
                Err(Fault::Full)
            }
            _ => {
                self.log.extend(batch.iter().map(|appended| appended.sealed.clone()));
                Ok(Written::default())
            }
        }
    }
    fn save_fold(&mut self, _: &str, _: Position, _: &str) -> Result<(), Error> {
        Ok(())
    }
    fn has_room(&mut self, _: Timestamp) -> bool {
        // Somebody makes room sooner or later.
        self.room = self.room || self.dice.roll(4) == 0;
        self.room
    }
    fn free_reserve(&mut self, _: Timestamp) {
        self.room = false;
    }
    fn lag(&self) -> usize {
        0
    }
    fn projected(&self) -> Position {
        Position(0)
    }
    fn close(&mut self) {}
}

struct Play {
    machine: Machine<Planned>,
    dice: Dice,
    images: Images,
    /// What subscribers were told of.
    told: Vec<Sealed>,
    /// What holders hold, as the replies said.
    held: Vec<(u128, Proof)>,
    next: u128,
}

impl Play {
    fn new(seed: u64) -> Self {
        let journal = Planned {
            dice: Dice(seed.wrapping_mul(31)),
            log: Vec::new(),
            faults: [0, 0],
            room: true,
        };
        Self {
            machine: Machine::new(journal, Live::new(Epoch(1), Position(0))),
            dice: Dice(seed),
            images: Images::default(),
            told: Vec::new(),
            held: Vec::new(),
            next: 1,
        }
    }

    fn command(&mut self) -> Command {
        match self.dice.roll(3) {
            0 if !self.held.is_empty() => {
                let (id, proof) = self.held.remove(0);
                complete(id, proof)
            }
            1 if self.next > 1 => claim(u128::from(self.dice.roll(self.next as u64)).max(1)),
            _ => {
                self.next += 1;
                offer(self.next - 1, None)
            }
        }
    }

    fn batch(&mut self, now: Timestamp) {
        let groups: Vec<Vec<Command>> = (0..=self.dice.roll(3))
            .map(|_| (0..=self.dice.roll(3)).map(|_| self.command()).collect())
            .collect();
        let sizes: Vec<_> = groups.iter().map(Vec::len).collect();
        let decided = self.machine.decide(groups, now);
        let output = self.machine.commit(decided, CatchUp::Least).unwrap();
        assert!(output.replies.iter().map(Vec::len).eq(sizes), "every command is answered");
        for done in output.replies.iter().flatten().flatten() {
            for handoff in &done.handoffs {
                if let Some(claim) = handoff.state.claim() {
                    let proof = Proof { claim_id: claim.claim_id, fence: claim.fence };
                    self.held.push((handoff.id.0, proof));
                }
            }
        }
        self.images.write().put(output.images);
        let changes = output.committed.into_iter().flat_map(|committed| committed.changes);
        self.told.extend(changes.map(|change| change.sealed));
        self.judge();
    }

    /// What is seen and what was told is what the journal has.
    fn judge(&self) {
        assert_eq!(self.told, self.machine.journal.log, "told of what was not kept, or not told");
        let mut model = Live::new(Epoch(1), Position(0));
        self.machine.journal.log.iter().for_each(|sealed| model.apply(sealed));
        let shown = self.images.read();
        for id in 1..self.next {
            assert_eq!(shown.handoff(HandoffId(id)), model.shared_handoff(HandoffId(id)));
            assert_eq!(shown.task(TaskId(id)), model.shared_task(TaskId(id)));
        }
        let coder = tasuki_core::Target::Agent("coder".parse().unwrap());
        assert_eq!(shown.waiting(&coder), model.waiting_for(&coder));
        let usage = tasuki_core::View::usage(&model, "default");
        assert_eq!(shown.usage(&"default".parse().unwrap()).in_flight, usage.in_flight);
        assert_eq!(self.machine.head(), model.head);
        assert_eq!(self.machine.next_due(), model.next_due());
    }
}

#[test]
fn whatever_fails_readers_see_what_the_journal_has() {
    let mut faults = [0, 0];
    let mut events = 0;
    for seed in 0..40 {
        let mut play = Play::new(seed);
        for step in 0..60 {
            play.batch(Timestamp(step));
        }
        faults[0] += play.machine.journal.faults[0];
        faults[1] += play.machine.journal.faults[1];
        events += play.told.len();
    }
    assert!(faults.iter().all(|count| *count > 20) && events > 1000, "{faults:?} {events}");
}

#[test]
fn one_seed_gives_one_play() {
    let play = |seed| {
        let mut play = Play::new(seed);
        (0..60).for_each(|step| play.batch(Timestamp(step)));
        play.told
    };
    assert_eq!(play(1), play(1));
    assert_ne!(play(1), play(2));
}

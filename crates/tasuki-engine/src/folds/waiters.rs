// SPDX-License-Identifier: Apache-2.0
//! Who waits for what. Work for a target wakes one of its waiters; news of a handoff or a task
//! wakes all of its own. A wake-up is only a reason to look again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tasuki_core::{HandoffId, Target, TaskId};
use tokio::sync::Notify;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    Target(Target),
    Handoff(HandoffId),
    Task(TaskId),
}

#[derive(Default)]
pub(crate) struct Waiters {
    slots: Mutex<BTreeMap<Topic, Slot>>,
}

struct Slot {
    notify: Arc<Notify>,
    users: usize,
}

/// A seat among the waiters of a topic; giving it up cleans up behind the last one.
pub(crate) struct Seat {
    waiters: Arc<Waiters>,
    topic: Topic,
    pub(crate) notify: Arc<Notify>,
}

impl Waiters {
    pub(crate) fn take_seat(self: &Arc<Self>, topic: Topic) -> Seat {
        let mut slots = self.slots.lock().expect("no holder of this lock panics");
        let slot = slots
            .entry(topic.clone())
            .or_insert_with(|| Slot { notify: Arc::new(Notify::new()), users: 0 });
        slot.users += 1;
        Seat { waiters: self.clone(), topic, notify: slot.notify.clone() }
    }

    /// Wakes one waiter, the longest waiting first.
    pub(crate) fn wake_one(&self, topic: &Topic) {
        if let Some(slot) = self.slots.lock().expect("no holder of this lock panics").get(topic) {
            slot.notify.notify_one();
        }
    }

    pub(crate) fn wake_all(&self, topic: &Topic) {
        if let Some(slot) = self.slots.lock().expect("no holder of this lock panics").get(topic) {
            slot.notify.notify_waiters();
        }
    }

    /// Wakes everybody, when it is not known what was missed.
    pub(crate) fn wake_everybody(&self) {
        for slot in self.slots.lock().expect("no holder of this lock panics").values() {
            slot.notify.notify_waiters();
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut slots = self.waiters.slots.lock().expect("no holder of this lock panics");
        if let Some(slot) = slots.get_mut(&self.topic) {
            slot.users -= 1;
            if slot.users == 0 {
                slots.remove(&self.topic);
            }
        }
    }
}

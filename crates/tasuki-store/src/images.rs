// SPDX-License-Identifier: Apache-2.0
//! What is committed of what is in RAM, for everybody to read without asking the writer. The writer
//! shows a batch's after-images here, all at once, after its commit and before its replies: nobody
//! sees what may still be taken back, and whoever had a reply sees what it told.

use std::collections::HashMap;
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tasuki_core::ids::TenantId;
use tasuki_core::quota::Usage;
use tasuki_core::{Handoff, HandoffId, Target, Task, TaskId};

use crate::sight::{Needs, Sight};

/// An id as bytes: as a number it would be padded, in a table that holds everything there is.
type Id = [u8; 16];

#[derive(Default)]
pub(crate) struct Images(RwLock<Shown>);

#[derive(Default)]
pub(crate) struct Shown {
    tasks: HashMap<Id, Arc<Task>>,
    handoffs: HashMap<Id, Arc<Handoff>>,
    /// How many wait for a target; none where there is no entry.
    waiting: HashMap<Target, u64>,
    usage: HashMap<String, Usage>,
}

/// What a batch left behind of everything that it touched, to be shown at once.
#[derive(Default)]
pub(crate) struct AfterImages {
    pub(crate) tasks: Vec<(TaskId, Option<Arc<Task>>)>,
    pub(crate) handoffs: Vec<(HandoffId, Option<Arc<Handoff>>)>,
    pub(crate) waiting: Vec<(Target, u64)>,
    pub(crate) usage: Vec<(String, Usage)>,
}

impl Images {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Shown> {
        self.0.read().expect("no holder of this lock panics")
    }

    /// For the writer alone, and no longer than it takes to put a batch in.
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Shown> {
        self.0.write().expect("no holder of this lock panics")
    }
}

impl Shown {
    pub(crate) fn task(&self, id: TaskId) -> Option<&Arc<Task>> {
        self.tasks.get(&id.0.to_be_bytes())
    }

    pub(crate) fn handoff(&self, id: HandoffId) -> Option<&Arc<Handoff>> {
        self.handoffs.get(&id.0.to_be_bytes())
    }

    pub(crate) fn tasks(&self) -> impl Iterator<Item = &Arc<Task>> {
        self.tasks.values()
    }

    pub(crate) fn handoffs(&self) -> impl Iterator<Item = &Arc<Handoff>> {
        self.handoffs.values()
    }

    pub(crate) fn waiting(&self, target: &Target) -> u64 {
        self.waiting.get(target).copied().unwrap_or(0)
    }

    pub(crate) fn usage(&self, tenant: &TenantId) -> Usage {
        self.usage.get(tenant.as_str()).copied().unwrap_or_default()
    }

    /// Puts a batch in, whatever was touched last as it was last.
    pub(crate) fn put(&mut self, images: AfterImages) {
        for (id, task) in images.tasks {
            match task {
                Some(task) => self.tasks.insert(id.0.to_be_bytes(), task),
                None => self.tasks.remove(&id.0.to_be_bytes()),
            };
        }
        for (id, handoff) in images.handoffs {
            match handoff {
                Some(handoff) => self.handoffs.insert(id.0.to_be_bytes(), handoff),
                None => self.handoffs.remove(&id.0.to_be_bytes()),
            };
        }
        for (target, count) in images.waiting {
            match count {
                0 => self.waiting.remove(&target),
                _ => self.waiting.insert(target, count),
            };
        }
        self.usage.extend(images.usage);
    }

    /// What is in RAM of what is wanted, but for bodies. What is named and not in here may be on
    /// disk.
    pub(crate) fn look(&self, needs: &Needs) -> Sight {
        let mut sight = Sight::default();
        for id in &needs.handoffs {
            if let Some(handoff) = self.handoff(*id) {
                self.see_handoff(handoff, &mut sight);
            }
        }
        for id in &needs.tasks {
            if let Some(task) = self.task(*id) {
                self.see_task(task, &mut sight);
            }
        }
        sight
    }

    fn see_handoff(&self, handoff: &Arc<Handoff>, sight: &mut Sight) {
        sight.put_handoff(handoff.clone());
        if let Some(task) = self.task(handoff.task_id) {
            sight.put_task(task.clone());
        }
    }

    fn see_task(&self, task: &Arc<Task>, sight: &mut Sight) {
        sight.put_task(task.clone());
        if let Some(handoff) = task.live.and_then(|id| self.handoff(id)) {
            sight.put_handoff(handoff.clone());
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! What is committed of what is in RAM, for everybody to read without asking the writer. The writer
//! shows a batch's after-images here, all at once, after its commit and before its replies: nobody
//! sees what may still be taken back, and whoever had a reply sees what it told.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tasuki_core::handoff::StateName;
use tasuki_core::ids::TenantId;
use tasuki_core::quota::Usage;
use tasuki_core::{Handoff, HandoffId, Target, Task, TaskId};

use crate::HandoffFilter;
use crate::counts::Counts;
use crate::listing::LIVE;
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
    /// Handoffs that are not at their end, by tenant and state, in the order of their ids.
    lists: HashMap<String, BTreeMap<StateName, BTreeSet<HandoffId>>>,
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
            let new = handoff.clone();
            let old = match handoff {
                Some(handoff) => self.handoffs.insert(id.0.to_be_bytes(), handoff),
                None => self.handoffs.remove(&id.0.to_be_bytes()),
            };
            self.file(id, old.as_deref(), new.as_deref());
        }
        for (target, count) in images.waiting {
            match count {
                0 => self.waiting.remove(&target),
                _ => self.waiting.insert(target, count),
            };
        }
        self.usage.extend(images.usage);
    }

    /// Takes a handoff from the list that it was in, and puts it into the one that it belongs to.
    fn file(&mut self, id: HandoffId, old: Option<&Handoff>, new: Option<&Handoff>) {
        let (old, new) = (old.and_then(list_of), new.and_then(list_of));
        if old == new {
            return;
        }
        if let Some((tenant, state)) = old
            && let Some(lists) = self.lists.get_mut(tenant)
            && let Some(list) = lists.get_mut(&state)
        {
            list.remove(&id);
            if list.is_empty() {
                lists.remove(&state);
            }
            if lists.is_empty() {
                self.lists.remove(tenant);
            }
        }
        if let Some((tenant, state)) = new {
            if !self.lists.contains_key(tenant) {
                self.lists.insert(tenant.to_owned(), BTreeMap::new());
            }
            let lists = self.lists.get_mut(tenant).expect("it was just put there");
            lists.entry(state).or_default().insert(id);
        }
    }

    fn lists(
        &self,
        tenant: Option<&TenantId>,
        state: StateName,
    ) -> impl Iterator<Item = &BTreeSet<HandoffId>> {
        let one = tenant.map(|tenant| self.lists.get(tenant.as_str()));
        let (one, all) = match one {
            Some(one) => (one, None),
            None => (None, Some(self.lists.values())),
        };
        one.into_iter().chain(all.into_iter().flatten()).filter_map(move |lists| lists.get(&state))
    }

    /// A page of what is in a state that is not the end, if that is all that is asked.
    pub(crate) fn list(&self, filter: &HandoffFilter) -> Option<Vec<Arc<Handoff>>> {
        let HandoffFilter { tenant, state, task, to, from, unreviewed, before, max } = filter;
        let state = state.filter(|state| LIVE.contains(state))?;
        if task.is_some() || to.is_some() || from.is_some() || *unreviewed {
            return None;
        }
        let end = before.unwrap_or(HandoffId(u128::MAX));
        let mut lists: Vec<_> =
            self.lists(tenant.as_ref(), state).map(|list| list.range(..end).rev()).collect();
        let mut next: BinaryHeap<(HandoffId, usize)> = lists
            .iter_mut()
            .enumerate()
            .filter_map(|(place, list)| list.next().map(|id| (*id, place)))
            .collect();
        let mut page = Vec::new();
        while page.len() < *max
            && let Some((id, place)) = next.pop()
        {
            next.extend(lists[place].next().map(|id| (*id, place)));
            page.extend(self.handoff(id).cloned());
        }
        Some(page)
    }

    /// How many are in each state that is not the end.
    pub(crate) fn count(&self, tenant: Option<&TenantId>) -> Counts {
        let mut counts = Counts::default();
        for state in LIVE {
            for list in self.lists(tenant, state) {
                let oldest = list.first().and_then(|id| self.handoff(*id));
                if let Some(count) = counts.handoffs_in(state) {
                    count.add(list.len() as u64, oldest.map(|oldest| oldest.offered_at));
                }
            }
        }
        counts
    }

    /// The names of all tenants that anything is known of.
    pub(crate) fn tenants(&self) -> Vec<String> {
        self.usage.keys().cloned().collect()
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

/// The tenant and the state that a handoff is listed by, unless it is at its end.
fn list_of(handoff: &Handoff) -> Option<(&str, StateName)> {
    let state = handoff.state.name();
    LIVE.contains(&state).then(|| (handoff.from.tenant(), state))
}

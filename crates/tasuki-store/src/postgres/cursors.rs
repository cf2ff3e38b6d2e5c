// SPDX-License-Identifier: Apache-2.0
//! Low-water marks. Below a queue's mark nothing waits, and nothing ever will: what becomes
//! claimable takes a turn that is not below what waits in its queue, or, where nothing does, the
//! position of the event that made it so; and both are found under the lock of the log's end. So the
//! first turn that any snapshot shows, or the end of the log where there is none, bounds all later
//! claims. Without a mark, an index scan would walk over every entry that
//! was ever claimed while an old transaction keeps vacuum from removing it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use tasuki_core::handoff::PRIORITY_MAX;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::db::{Value, query};
use super::error::Fault;

/// How many queues have a mark at once; beyond it all start from the beginning again.
const QUEUES_MAX: usize = 10_000;
const HASTE_MAX: i16 = PRIORITY_MAX as i16;

#[derive(Default)]
pub(super) struct Cursors {
    marks: Mutex<Marks>,
}

#[derive(Default)]
struct Marks {
    /// By target and haste, for queues that work was taken from.
    queues: BTreeMap<String, BTreeMap<i16, i64>>,
    /// Nothing is due before this, and nothing ever will be: what is written at a time is due after
    /// it, and time does not run backwards in the log.
    due: i64,
    /// How often all of it was forgotten: what was read before then says nothing any more.
    forgotten: u64,
}

/// A queue and from where on it is to be read: target, haste, turn.
pub(super) type Hot = (String, i16, i64);
/// A target and a range of haste.
pub(super) type Cold = (String, i16, i16);

impl Cursors {
    fn marks(&self) -> MutexGuard<'_, Marks> {
        self.marks.lock().expect("no holder of this lock panics")
    }

    /// Work was found in a queue: from now on it has a mark.
    pub(super) fn heat(&self, target: &str, haste: i16) {
        let mut marks = self.marks();
        if let Some(queues) = marks.queues.get_mut(target) {
            queues.entry(haste).or_insert(0);
            return;
        }
        if marks.queues.len() >= QUEUES_MAX {
            marks.queues.clear();
        }
        marks.queues.insert(target.to_owned(), BTreeMap::from([(haste, 0)]));
    }

    pub(super) fn hot<'t>(&self, targets: impl Iterator<Item = &'t String>) -> Vec<Hot> {
        let marks = self.marks();
        let hot = |target: &'t String| {
            let queues = marks.queues.get(target).into_iter().flatten();
            queues.map(move |(haste, mark)| (target.clone(), *haste, *mark)).collect::<Vec<_>>()
        };
        targets.flat_map(hot).collect()
    }

    /// From where on one queue is to be read.
    pub(super) fn mark(&self, target: &str, haste: i16) -> i64 {
        let marks = self.marks();
        marks.queues.get(target).and_then(|queues| queues.get(&haste)).copied().unwrap_or(0)
    }

    /// All that is not hot, in ranges.
    pub(super) fn cold<'t>(&self, targets: impl Iterator<Item = &'t String>) -> Vec<Cold> {
        let marks = self.marks();
        let mut cold = Vec::new();
        for target in targets {
            let mut first = 0;
            for haste in marks.queues.get(target).into_iter().flat_map(BTreeMap::keys) {
                if first < *haste {
                    cold.push((target.clone(), first, *haste - 1));
                }
                first = *haste + 1;
            }
            if first <= HASTE_MAX {
                cold.push((target.clone(), first, HASTE_MAX));
            }
        }
        cold
    }

    pub(super) fn due_mark(&self) -> i64 {
        self.marks().due
    }

    /// Moves every mark up to the first row that waits behind it.
    pub(super) async fn raise(&self, db: &Client) -> Result<(), Fault> {
        let (targets, due, forgotten): (Vec<String>, _, _) = {
            let marks = self.marks();
            (marks.queues.keys().cloned().collect(), marks.due, marks.forgotten)
        };
        for some in targets.chunks(1000) {
            let hot = self.hot(some.iter());
            let names: Vec<_> = hot.iter().map(|(target, ..)| target.as_str()).collect();
            let haste: Vec<_> = hot.iter().map(|(_, haste, _)| *haste).collect();
            let from: Vec<_> = hot.iter().map(|(.., from)| *from).collect();
            let values: [Value<'_>; 3] =
                [(&names, Type::TEXT_ARRAY), (&haste, Type::INT2_ARRAY), (&from, Type::INT8_ARRAY)];
            let found = query(db, RAISE, &values).await?;
            let Some(mut marks) = self.unless_forgotten(forgotten) else { return Ok(()) };
            for row in &found {
                let (target, haste): (&str, i16) = (row.try_get(0)?, row.try_get(1)?);
                let mark: i64 = row.try_get(2)?;
                let known = marks.queues.get_mut(target).and_then(|queues| queues.get_mut(&haste));
                if let Some(known) = known {
                    *known = mark.max(*known);
                }
            }
        }
        let found = query(db, RAISE_DUE, &[(&due, Type::INT8)]).await?.pop();
        if let Some(row) = found
            && let Some(mut marks) = self.unless_forgotten(forgotten)
        {
            marks.due = marks.due.max(row.try_get(0)?);
        }
        Ok(())
    }

    /// After a failover that lost writes, positions and times are given a second time.
    pub(super) fn forget(&self) {
        let mut marks = self.marks();
        *marks = Marks { forgotten: marks.forgotten + 1, ..Marks::default() };
    }

    fn unless_forgotten(&self, since: u64) -> Option<MutexGuard<'_, Marks>> {
        Some(self.marks()).filter(|marks| marks.forgotten == since)
    }
}

/// One statement, so one snapshot: the end of the log and the rows belong together.
const RAISE: &str = "
    SELECT w.target, w.haste, coalesce(
        (SELECT h.turn FROM handoff h WHERE h.state = 'pending' AND h.target = w.target
            AND h.haste = w.haste AND h.turn >= w.mark ORDER BY h.turn LIMIT 1),
        (SELECT position + 1 FROM log_head))
    FROM unnest($1::text[], $2::int2[], $3::int8[]) AS w (target, haste, mark)";

const RAISE_DUE: &str = "
    SELECT least((SELECT at FROM log_head), (
        SELECT due_at FROM handoff WHERE NOT ended AND due_at >= $1 ORDER BY due_at LIMIT 1))";

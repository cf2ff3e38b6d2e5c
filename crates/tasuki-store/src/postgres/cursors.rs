// SPDX-License-Identifier: Apache-2.0
//! Low-water marks. Below a queue's mark nothing waits, and nothing ever will: what becomes
//! claimable takes the position of the event that made it so, and positions are given in the order
//! of commits. So the first waiting row that any snapshot shows, or the end of the log where there
//! is none, bounds all later claims. Without a mark, an index scan would walk over every entry that
//! was ever claimed while an old transaction keeps vacuum from removing it.

use std::collections::HashMap;
use std::sync::Mutex;

use tasuki_core::handoff::PRIORITY_MAX;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::error::Fault;
use super::rows::{self, query};

/// How many queues have a mark at once; beyond it all start from the beginning again.
const QUEUES_MAX: usize = 100_000;

/// Marks by target, one for each priority.
#[derive(Default)]
pub(super) struct Cursors {
    marks: Mutex<HashMap<String, [i64; PRIORITY_MAX as usize + 1]>>,
}

/// A queue and from where on it is to be read: target, haste, position.
pub(super) type Bound = (String, i16, i64);

impl Cursors {
    pub(super) fn bounds<'t>(&self, targets: impl Iterator<Item = &'t String>) -> Vec<Bound> {
        let mut marks = self.marks.lock().expect("no holder of this lock panics");
        if marks.len() > QUEUES_MAX {
            marks.clear();
        }
        let mut bounds = Vec::new();
        for target in targets {
            let known = marks.entry(target.clone()).or_default();
            for (haste, mark) in (0..).zip(known.iter()) {
                bounds.push((target.clone(), haste, *mark));
            }
        }
        bounds
    }

    /// Moves every mark up to the first row that waits behind it.
    pub(super) async fn raise(&self, db: &Client) -> Result<(), Fault> {
        let targets: Vec<String> = {
            let marks = self.marks.lock().expect("no holder of this lock panics");
            marks.keys().cloned().collect()
        };
        for some in targets.chunks(1000) {
            let bounds = self.bounds(some.iter());
            let names: Vec<_> = bounds.iter().map(|(target, ..)| target.as_str()).collect();
            let haste: Vec<_> = bounds.iter().map(|(_, haste, _)| *haste).collect();
            let from: Vec<_> = bounds.iter().map(|(.., from)| *from).collect();
            let values: [rows::Value<'_>; 3] = [
                (&names, Type::TEXT_ARRAY),
                (&haste, Type::INT2_ARRAY),
                (&from, Type::INT8_ARRAY),
            ];
            let found = query(db, RAISE, &values).await?;
            let mut marks = self.marks.lock().expect("no holder of this lock panics");
            for row in &found {
                let (target, haste): (&str, i16) = (row.try_get(0)?, row.try_get(1)?);
                let mark: i64 = row.try_get(2)?;
                let known = marks.get_mut(target);
                if let Some(known) = known.and_then(|known| known.get_mut(haste as usize)) {
                    *known = mark.max(*known);
                }
            }
        }
        Ok(())
    }

    /// After a failover that lost writes, positions are given a second time.
    pub(super) fn forget(&self) {
        self.marks.lock().expect("no holder of this lock panics").clear();
    }
}

/// One statement, so one snapshot: the end of the log and the rows belong together.
const RAISE: &str = "
    SELECT w.target, w.haste, coalesce(
        (SELECT h.ready FROM handoff h WHERE h.state = 'pending' AND h.target = w.target
            AND h.haste = w.haste AND h.ready >= w.mark ORDER BY h.ready LIMIT 1),
        (SELECT position + 1 FROM log_head))
    FROM unnest($1::text[], $2::int2[], $3::int8[]) AS w (target, haste, mark)";

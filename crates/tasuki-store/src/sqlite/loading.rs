// SPDX-License-Identifier: Apache-2.0
//! Loading the live rows when a data directory is opened. Reading and decoding them is most of the
//! work of a start with much waiting, so ranges of them are read on all cores, each over a
//! connection of its own, while the caller takes what is ready. Nobody writes meanwhile: the
//! directory is locked.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

use rusqlite::{Connection, OptionalExtension, Result, params};
use tasuki_core::{AgentId, Capability, Handoff, Target, Task};

use super::{open, rows};
use crate::codec;
use crate::listing::LIVE;
use crate::sums::{RowHash, RowKey};

/// How many rows one range has.
const RANGE_ROWS: usize = 4096;
/// How many threads read at most.
const READING_MAX: usize = 8;
/// How many names each of them remembers.
const NAMES_MAX: usize = 65_536;

/// A handoff that is not at its end, its task if that has a row yet, and what its row adds to the sums.
pub(super) type Loaded = (Arc<Handoff>, Option<Arc<Task>>, RowHash);

/// Some neighbours among the live handoffs: those in a state after one id and up to another.
struct Range {
    state: &'static str,
    after: String,
    to: Option<String>,
}

/// Hands over every live handoff with its task.
pub(super) fn each_live(
    db: &Connection,
    key: &RowKey,
    path: &Path,
    mut each: impl FnMut(Loaded),
) -> Result<()> {
    let ranges = ranges(db)?;
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.min(READING_MAX).min(ranges.len());
    if threads <= 1 {
        let mut names = Names::default();
        for range in &ranges {
            read(db, key, range, &mut names)?.into_iter().for_each(&mut each);
        }
        return Ok(());
    }
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (ready, loaded) = sync_channel(threads);
        for _ in 0..threads {
            let (ready, ranges, next) = (ready.clone(), &ranges, &next);
            scope.spawn(move || {
                let read_all = || -> Result<()> {
                    let db = open::reader(path)?;
                    let mut names = Names::default();
                    while let Some(range) = ranges.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if ready.send(read(&db, key, range, &mut names)).is_err() {
                            return Ok(());
                        }
                    }
                    Ok(())
                };
                if let Err(error) = read_all() {
                    // Nobody waits any more if another one failed before.
                    let _ = ready.send(Err(error));
                }
            });
        }
        drop(ready);
        for some in loaded {
            some?.into_iter().for_each(&mut each);
        }
        Ok(())
    })
}

fn ranges(db: &Connection) -> Result<Vec<Range>> {
    let sql = format!(
        "SELECT id FROM handoff INDEXED BY handoff_live WHERE ended = 0 AND {} = ? AND id > ? \
         ORDER BY id LIMIT 1 OFFSET {RANGE_ROWS}",
        super::listing::HANDOFF_WORD
    );
    let mut find = db.prepare(&sql)?;
    let mut ranges = Vec::new();
    for state in LIVE.map(|state| state.as_str()) {
        let mut after = String::new();
        loop {
            let to: Option<String> =
                find.query_row(params![state, after], |row| row.get(0)).optional()?;
            ranges.push(Range { state, after: after.clone(), to: to.clone() });
            match to {
                Some(to) => after = to,
                None => break,
            }
        }
    }
    Ok(ranges)
}

fn read(db: &Connection, key: &RowKey, range: &Range, names: &mut Names) -> Result<Vec<Loaded>> {
    let sql = format!(
        "SELECT task.id, task.state, owner, opened_by, parent_task_id, correlation_id, intent, \
             intent_at, opened_at, ended_at, live, envelope, envelope_hop, events, head, at, \
             project, channel, more, data, waits.id \
         FROM (SELECT id, task_id, data FROM handoff INDEXED BY handoff_live \
               WHERE ended = 0 AND {} = ?1 AND id > ?2 AND id <= ?3) AS waits \
         LEFT JOIN task ON task.id = waits.task_id",
        super::listing::HANDOFF_WORD
    );
    let mut find = db.prepare_cached(&sql)?;
    // No id is behind this.
    let to = range.to.as_deref().unwrap_or("~");
    let mut found = find.query(params![range.state, range.after, to])?;
    let mut loaded = Vec::with_capacity(RANGE_ROWS);
    while let Some(row) = found.next()? {
        let mut handoff = codec::decode(row.get_ref(19)?.as_str()?).map_err(rows::bad(19))?;
        names.share_of_handoff(&mut handoff);
        let task = match row.get_ref(0)?.as_str_or_null()? {
            None => None,
            Some(_) => {
                let mut task = rows::task_of(row)?;
                names.share(&mut task.owner);
                names.share(&mut task.opened_by);
                Some(Arc::new(task))
            }
        };
        loaded.push((Arc::new(handoff), task, rows::handoff_hash(key, row, 20, 19)?));
    }
    Ok(loaded)
}

/// Names that were read before: a few agents send much, and each name need be in memory once.
#[derive(Default)]
struct Names {
    agents: HashSet<AgentId>,
    capabilities: HashSet<Capability>,
}

impl Names {
    fn share(&mut self, name: &mut AgentId) {
        share(&mut self.agents, name);
    }

    fn share_of_handoff(&mut self, handoff: &mut Handoff) {
        // Nobody else has it yet, so nothing is copied.
        let facts = Arc::make_mut(&mut handoff.facts);
        self.share(&mut facts.from);
        match &mut facts.to {
            Target::Agent(agent) => share(&mut self.agents, agent),
            Target::Capability(capability) => share(&mut self.capabilities, capability),
        }
    }
}

fn share<T: Clone + Eq + std::hash::Hash>(known: &mut HashSet<T>, name: &mut T) {
    match known.get(name) {
        Some(same) => *name = same.clone(),
        None if known.len() < NAMES_MAX => {
            known.insert(name.clone());
        }
        None => {}
    }
}

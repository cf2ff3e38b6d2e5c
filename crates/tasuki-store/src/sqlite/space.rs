// SPDX-License-Identifier: Apache-2.0
//! Disk space. Some is set aside while there is plenty, so that work under way can still be
//! finished when there is none.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, fallocate, statvfs};

/// What is set aside for heartbeats, completions and the like.
const RESERVE_BYTES: u64 = 16 * 1024 * 1024;
/// Below this much free space, new work is refused.
const LOW_BYTES: u64 = 8 * 1024 * 1024;
/// How old a measurement of the free space may be.
const MEASURED_EVERY: Duration = Duration::from_millis(500);

pub(crate) struct Space {
    reserve: PathBuf,
    dir: PathBuf,
    reserved: bool,
    room: bool,
    measured: Option<Instant>,
}

impl Space {
    pub(crate) fn new(dir: &Path) -> Self {
        let mut space = Self {
            reserve: dir.join("reserve"),
            dir: dir.to_owned(),
            reserved: false,
            room: true,
            measured: None,
        };
        space.has_room();
        space
    }

    /// Whether there is room for new work.
    pub(crate) fn has_room(&mut self) -> bool {
        if self.measured.is_some_and(|at| at.elapsed() < MEASURED_EVERY) {
            return self.room;
        }
        self.measured = Some(Instant::now());
        let free = free_bytes(&self.dir);
        if !self.reserved && free >= RESERVE_BYTES + 2 * LOW_BYTES {
            self.reserved = set_aside(&self.reserve).is_ok();
        }
        // Without its reserve the store is full until the reserve is back.
        let room = self.reserved && free_bytes(&self.dir) >= LOW_BYTES;
        if room != self.room {
            tracing::warn!(free, room, "room for new work changed");
            self.room = room;
        }
        room
    }

    pub(crate) fn free_reserve(&mut self) {
        self.room = false;
        self.measured = Some(Instant::now());
        if std::mem::take(&mut self.reserved) {
            tracing::warn!("the disk is full: giving up the reserve so that work can be finished");
            // If it cannot be removed there was nothing to gain from it.
            let _ = std::fs::remove_file(&self.reserve);
        }
    }
}

fn free_bytes(dir: &Path) -> u64 {
    // If the system cannot say, assume room: the commit itself will find out.
    statvfs(dir).map_or(u64::MAX, |fs| fs.f_bavail.saturating_mul(fs.f_frsize))
}

fn set_aside(path: &Path) -> std::io::Result<()> {
    let file = File::options().create(true).truncate(false).write(true).open(path)?;
    if let Err(error) = fallocate(&file, FallocateFlags::empty(), 0, RESERVE_BYTES) {
        // A file system without fallocate gets the same by writing.
        if error != rustix::io::Errno::OPNOTSUPP {
            let _ = std::fs::remove_file(path);
            return Err(error.into());
        }
        std::fs::write(path, vec![0; usize::try_from(RESERVE_BYTES).unwrap_or(0)])?;
    }
    Ok(())
}

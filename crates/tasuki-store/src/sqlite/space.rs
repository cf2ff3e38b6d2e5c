// SPDX-License-Identifier: Apache-2.0
//! Disk space. Some is set aside while there is plenty, so that work under way can still be
//! finished when there is none.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate, statvfs};
use tasuki_core::Timestamp;

/// What is set aside for heartbeats, completions and the like.
const RESERVE_BYTES: u64 = 16 * 1024 * 1024;
/// Below this much free space, new work is refused.
const LOW_BYTES: u64 = 8 * 1024 * 1024;
/// How old a measurement of the free space may be.
const MEASURED_EVERY_MS: u64 = 500;

pub(crate) struct Space {
    reserve: PathBuf,
    dir: PathBuf,
    reserved: bool,
    room: bool,
    measured: Option<Timestamp>,
    free_bytes: fn(&Path) -> u64,
}

impl Space {
    pub(crate) fn new(dir: &Path) -> Self {
        Self::measured_by(free_bytes, dir)
    }

    fn measured_by(free_bytes: fn(&Path) -> u64, dir: &Path) -> Self {
        let reserve = dir.join("reserve");
        let mut space = Self {
            // Set aside before a restart, it is there to be given up, however little is free now.
            reserved: std::fs::metadata(&reserve).is_ok_and(|file| file.len() == RESERVE_BYTES),
            reserve,
            dir: dir.to_owned(),
            room: true,
            measured: None,
            free_bytes,
        };
        space.measure();
        space
    }

    /// Whether there is room for new work.
    pub(crate) fn has_room(&mut self, now: Timestamp) -> bool {
        if self.measured.is_some_and(|at| now.ms_after(at) < MEASURED_EVERY_MS) {
            return self.room;
        }
        self.measured = Some(now);
        self.measure()
    }

    fn measure(&mut self) -> bool {
        let free = (self.free_bytes)(&self.dir);
        if !self.reserved && free >= RESERVE_BYTES + 2 * LOW_BYTES {
            self.reserved = set_aside(&self.reserve).is_ok();
        }
        // Without its reserve the store is full until the reserve is back.
        let room = self.reserved && (self.free_bytes)(&self.dir) >= LOW_BYTES;
        if room != self.room {
            tracing::warn!(free, room, "room for new work changed");
            self.room = room;
        }
        room
    }

    pub(crate) fn free_reserve(&mut self, now: Timestamp) {
        self.room = false;
        self.measured = Some(now);
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

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(0);
    const PLENTY: fn(&Path) -> u64 = |_| 1 << 40;
    const LITTLE: fn(&Path) -> u64 = |_| LOW_BYTES - 1;

    #[test]
    fn space_is_set_aside_while_there_is_plenty() {
        let dir = tempfile::tempdir().unwrap();
        let mut space = Space::measured_by(PLENTY, dir.path());
        assert!(space.has_room(NOW));
        assert_eq!(std::fs::metadata(dir.path().join("reserve")).unwrap().len(), RESERVE_BYTES);
    }

    #[test]
    fn new_work_is_refused_while_little_is_free() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!Space::measured_by(LITTLE, dir.path()).has_room(NOW));
        assert!(!dir.path().join("reserve").exists(), "nothing is taken from the little there is");
    }

    #[test]
    fn what_was_set_aside_before_a_restart_can_still_be_given_up() {
        let dir = tempfile::tempdir().unwrap();
        drop(Space::measured_by(PLENTY, dir.path()));
        let mut space = Space::measured_by(LITTLE, dir.path());
        assert!(!space.has_room(NOW));
        space.free_reserve(NOW);
        assert!(!dir.path().join("reserve").exists());
    }

    #[test]
    fn without_its_reserve_the_store_is_full_until_the_reserve_is_back() {
        let dir = tempfile::tempdir().unwrap();
        let mut space = Space::measured_by(PLENTY, dir.path());
        space.free_reserve(NOW);
        assert!(!space.has_room(NOW), "not before the space is measured again");
        assert!(space.has_room(NOW.plus_ms(MEASURED_EVERY_MS)));
        assert!(dir.path().join("reserve").exists());
    }
}

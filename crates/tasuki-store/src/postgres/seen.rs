// SPDX-License-Identifier: Apache-2.0
//! The highest timeline and epoch that a broker ever saw, kept in its data directory and synced before
//! the first commit on them. A primary that was replaced does not know that it was, and a standby that
//! missed the last failover would give its epoch a second time: a broker that starts then must know
//! better than the database.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use crate::private;

const NAME: &str = "timeline.json";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Seen {
    /// Which cluster it is about. Timelines of another one mean nothing here; its epochs do.
    pub(super) system: i64,
    pub(super) timeline: i64,
    pub(super) epoch: u64,
    /// Whether the rows were sealed with a row key: then a database without a seal has lost it.
    #[serde(default)]
    pub(super) rows: bool,
}

/// Where it is kept. Without a directory it is forgotten at the end.
pub(super) struct Memory {
    dir: Option<PathBuf>,
    seen: Mutex<Seen>,
}

impl Memory {
    pub(super) fn new(dir: Option<PathBuf>, seen: Seen) -> Self {
        Self { dir, seen: Mutex::new(seen) }
    }

    /// Keeps the higher of what was seen before and now. What it says is on the disk when it returns.
    pub(super) fn note(&self, timeline: i64, epoch: u64) -> io::Result<()> {
        let mut seen = self.seen.lock().expect("no holder of this lock panics");
        let now =
            Seen { timeline: seen.timeline.max(timeline), epoch: seen.epoch.max(epoch), ..*seen };
        if now != *seen {
            self.dir.as_deref().map_or(Ok(()), |dir| write(dir, &now))?;
            *seen = now;
        }
        Ok(())
    }
}

/// What a directory remembers.
pub(super) fn read(dir: &Path) -> io::Result<Option<Seen>> {
    match std::fs::read(dir.join(NAME)) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(io::Error::other),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whole or not at all: under another name first.
pub(super) fn write(dir: &Path, seen: &Seen) -> io::Result<()> {
    private::directory(dir)?;
    let part = dir.join(format!("{NAME}.part"));
    let mut file =
        File::options().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
    file.write_all(&serde_json::to_vec(seen).expect("it has string keys only"))?;
    file.sync_all()?;
    std::fs::rename(&part, dir.join(NAME))?;
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_of_each_is_remembered_and_the_file_is_the_owners() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("data");
        let memory =
            Memory::new(Some(dir.clone()), Seen { system: 7, timeline: 0, epoch: 0, rows: true });
        memory.note(3, 4).unwrap();
        memory.note(2, 9).unwrap();
        assert_eq!(
            read(&dir).unwrap(),
            Some(Seen { system: 7, timeline: 3, epoch: 9, rows: true })
        );
        let mode = std::fs::metadata(dir.join(NAME)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

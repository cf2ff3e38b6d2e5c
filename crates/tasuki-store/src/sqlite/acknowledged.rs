// SPDX-License-Identifier: Apache-2.0
//! The last position that callers were told of, kept beside the database and not in it. A log that
//! ends before it has lost what was acknowledged, and must not be taken for whole: the same fences
//! would be handed out again. It is written after each commit and not synced, so after a power cut it
//! may be behind, and never ahead of what is on the disk.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use tasuki_core::{Hash, Position, canonical};

pub(super) const NAME: &str = "acknowledged";
const BYTES: usize = 8 + 8 + 32 + 1 + 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Acknowledged {
    pub(crate) position: Position,
    /// The highest fence epoch that was ever given out here.
    pub(crate) epoch: u64,
    pub(crate) log_hash: Hash,
    /// Whether the broker ended in good order, so that nothing can come after it.
    pub(crate) closed: bool,
}

/// The file, open for writing.
pub(crate) struct Note {
    file: File,
    /// The highest epoch that was noted: a log that lost its raising must not go back.
    epoch: u64,
}

impl Note {
    pub(crate) fn open(dir: &Path, known: Option<&Acknowledged>) -> io::Result<Self> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(dir.join(NAME))?;
        Ok(Self { file, epoch: known.map_or(0, |known| known.epoch) })
    }

    /// Writes how far the log goes. The last time, or when nothing else would tell, it is synced.
    pub(crate) fn write(
        &mut self,
        position: Position,
        epoch: u64,
        log_hash: Hash,
        closed: bool,
    ) -> io::Result<()> {
        self.epoch = self.epoch.max(epoch);
        let told = Acknowledged { position, epoch: self.epoch, log_hash, closed };
        self.file.write_all_at(&told.to_bytes(), 0)?;
        if closed { self.file.sync_all() } else { Ok(()) }
    }
}

impl Acknowledged {
    /// What is known of a directory. One that was never written whole says nothing.
    pub(crate) fn read(dir: &Path) -> io::Result<Option<Self>> {
        match std::fs::read(dir.join(NAME)) {
            Ok(bytes) => Ok(Self::from_bytes(&bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn to_bytes(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&self.position.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[16..48].copy_from_slice(&self.log_hash.0);
        bytes[48] = u8::from(self.closed);
        let check = canonical::hash(&bytes[..49]);
        bytes[49..].copy_from_slice(&check.0);
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
        if canonical::hash(&bytes[..49]).0 != bytes[49..] {
            return None;
        }
        Some(Self {
            position: Position(u64::from_le_bytes(bytes[..8].try_into().ok()?)),
            epoch: u64::from_le_bytes(bytes[8..16].try_into().ok()?),
            log_hash: Hash(bytes[16..48].try_into().ok()?),
            closed: bytes[48] == 1,
        })
    }
}

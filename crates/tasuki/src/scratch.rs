// SPDX-License-Identifier: Apache-2.0
//! Folders in the system's place for temporary files, which only their owner can read.

use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Those that are there.
static ALL: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes them all, for a process that ends without dropping anything.
pub(crate) fn sweep() {
    for path in all().drain(..) {
        let _ = std::fs::remove_dir_all(path);
    }
}

fn all() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    ALL.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A folder that is gone when this value is.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> io::Result<Self> {
        let mut random = [0_u8; 8];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let random: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = std::env::temp_dir().join(format!("tasuki-{name}-{random}"));
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        let path = std::path::absolute(path)?;
        all().push(path.clone());
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file into it.
    pub(crate) fn write(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.0.join(name);
        let mut file =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(text.as_bytes())?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is in the system's directory for such things.
        let _ = std::fs::remove_dir_all(&self.0);
        all().retain(|path| *path != self.0);
    }
}

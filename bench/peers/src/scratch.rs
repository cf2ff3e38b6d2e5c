//! The directory that all servers keep their data in.

use std::{
    fs::{self, File, Permissions},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

pub(crate) struct Scratch {
    directory: TempDir,
}

impl Scratch {
    /// Makes a new directory in `parent`; it is removed when this is dropped.
    pub(crate) fn new(parent: &Path) -> Result<Self> {
        fs::create_dir_all(parent)
            .with_context(|| format!("cannot make the directory {}", parent.display()))?;
        // Servers have working directories of their own, so the path must not be relative.
        let parent = parent.canonicalize()?;
        Ok(Self { directory: open_directory(&parent)? })
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The directory of that name, new or as it was left.
    pub(crate) fn make(&self, name: &str) -> Result<PathBuf> {
        let path = self.path().join(name);
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(path)
    }

    /// A directory on the same disk that another user can reach, made elsewhere only where the
    /// directories above the scratch directory are closed to others.
    pub(crate) fn open_to_others(&self) -> Result<TempDir> {
        if reachable_by_others(self.path())? {
            return open_directory(self.path());
        }
        let disk = fs::metadata(self.path())?.dev();
        for elsewhere in [std::env::temp_dir(), PathBuf::from("/var/tmp")] {
            let same_disk = fs::metadata(&elsewhere).is_ok_and(|found| found.dev() == disk);
            if same_disk && reachable_by_others(&elsewhere)? {
                return open_directory(&elsewhere);
            }
        }
        bail!("other users cannot reach {}: choose another --scratch", self.path().display())
    }

    /// Writes out what a system left in the page cache, so that the next one does not pay for it.
    pub(crate) async fn settle(&self) -> Result<()> {
        let directory = File::open(self.path())?;
        tokio::task::spawn_blocking(move || rustix::fs::syncfs(directory))
            .await?
            .context("cannot sync the disk")
    }
}

fn open_directory(parent: &Path) -> Result<TempDir> {
    tempfile::Builder::new()
        .prefix("peers-")
        .permissions(Permissions::from_mode(0o755))
        .tempdir_in(parent)
        .with_context(|| format!("cannot make a directory in {}", parent.display()))
}

fn reachable_by_others(path: &Path) -> Result<bool> {
    for directory in path.ancestors() {
        if fs::metadata(directory)?.mode() & 0o001 == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_directory_above_makes_a_path_unreachable() {
        let top = open_directory(&std::env::temp_dir()).unwrap();
        let below = top.path().join("below");
        fs::create_dir(&below).unwrap();
        assert!(reachable_by_others(&below).unwrap());
        fs::set_permissions(top.path(), Permissions::from_mode(0o700)).unwrap();
        assert!(!reachable_by_others(&below).unwrap());
    }
}

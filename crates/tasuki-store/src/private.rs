// SPDX-License-Identifier: Apache-2.0
//! What is the owner's alone: the data directory, and files that hold a key or a password. Modes are
//! set whatever the umask is, and corrected where an older version or a copy left them open.

use std::fs::{DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Who is neither the owner nor of the owner's group.
const OTHERS: u32 = 0o007;
const ALL_OTHERS: u32 = 0o077;

/// Makes a directory that only its owner can look into, or closes one that is there.
///
/// A directory of somebody else is left as it is: a volume may belong to root and be open to our
/// group. The files in it are ours and closed by [`file`].
pub fn directory(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    close(dir, 0o700)
}

/// A new directory among the system's temporary files. Everybody may make names there, so it has one
/// that nobody can have made before; the caller removes it.
pub fn scratch() -> io::Result<PathBuf> {
    let dir = std::env::temp_dir().join(format!("tasuki-{}", uuid::Uuid::now_v7()));
    DirBuilder::new().mode(0o700).create(&dir)?;
    Ok(dir)
}

/// Closes a file of ours, if it is there.
pub fn file(path: &Path) -> io::Result<()> {
    match close(path, 0o600) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        closed => closed,
    }
}

fn close(path: &Path, mode: u32) -> io::Result<()> {
    let found = std::fs::metadata(path)?;
    if is_ours(&found) && found.permissions().mode() & ALL_OTHERS != 0 {
        std::fs::set_permissions(path, Permissions::from_mode(mode))?;
    }
    Ok(())
}

fn is_ours(found: &Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw()
}

/// Refuses a file with a secret that everybody on the machine can read or write: the secret may be
/// known by now, which closing the file would hide.
pub fn check_secret(path: &Path) -> io::Result<()> {
    let mode = std::fs::metadata(path)?.permissions().mode();
    if mode & OTHERS == 0 {
        return Ok(());
    }
    let shown = path.display();
    let problem = format!(
        "others can read {shown}, which holds a secret; replace the secret if somebody may have \
         read it, then run: chmod 600 {shown}"
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, problem))
}

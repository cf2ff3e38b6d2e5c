// SPDX-License-Identifier: Apache-2.0
//! What the command line remembers between two commands: claims and profiles. It lies in a folder
//! of the user's, in files that nobody else can read.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::exit::{Exit, Failure};

/// Names the folder, where it is not below `$XDG_STATE_HOME` or `~/.local/state`.
pub const FOLDER: &str = "TASUKI_STATE";
/// What is remembered is never larger than this, so a larger file is not ours.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The folder, and nothing where this user has no place for one.
#[must_use]
pub fn folder() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    named(FOLDER)
        .or_else(|| named("XDG_STATE_HOME").map(|home| home.join("tasuki")))
        .or_else(|| named("HOME").map(|home| home.join(".local/state/tasuki")))
}

/// Reads what a file remembers; what is not there remembers nothing.
pub fn read<T: DeserializeOwned + Default>(name: &str) -> Result<T, Failure> {
    let Some(path) = folder().map(|folder| folder.join(name)) else { return Ok(T::default()) };
    read_at(&path)
}

fn read_at<T: DeserializeOwned + Default>(path: &Path) -> Result<T, Failure> {
    let mut text = String::new();
    match File::open(path) {
        Ok(file) => file.take(FILE_BYTES_MAX).read_to_string(&mut text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(T::default()),
        Err(error) => Err(error),
    }
    .map_err(|error| unusable(path, &error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| unusable(path, &error.to_string()))
}

/// Changes what a file remembers. Two commands at once change it one after the other.
pub fn change<T, R>(name: &str, change: impl FnOnce(&mut T) -> R) -> Result<R, Failure>
where
    T: DeserializeOwned + Default + Serialize,
{
    let Some(folder) = folder() else {
        let hint = format!("name a folder of yours in {FOLDER}");
        return Err(Failure::new(Exit::Refused, "there is no place to remember anything", hint));
    };
    let path = folder.join(name);
    let cannot = |error: std::io::Error| unusable(&path, &error.to_string());
    DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(cannot)?;
    let own = |path: &Path| {
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
    };
    // The lock is a file of its own, because the other one is replaced.
    let lock = own(&folder.join(format!("{name}.lock"))).map_err(cannot)?;
    flock(&lock, FlockOperation::LockExclusive).map_err(|error| cannot(error.into()))?;
    let mut remembered = read_at(&path)?;
    let result = change(&mut remembered);
    let part = folder.join(format!("{name}.part"));
    // Left over from one that was killed, perhaps with other rights.
    let _ = std::fs::remove_file(&part);
    let text = serde_json::to_string_pretty(&remembered).expect("what is remembered is JSON");
    let written = own(&part).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&part, &path)
    });
    written.map_err(cannot)?;
    Ok(result)
}

fn unusable(path: &Path, why: &str) -> Failure {
    let message = format!("cannot use {}: {why}", path.display());
    let hint = format!("repair or remove the file, or name another folder in {FOLDER}");
    Failure::new(Exit::Refused, message, hint)
}

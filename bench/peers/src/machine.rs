//! What must be known about a machine to read figures taken on it.

use std::{
    fs::{self, File},
    io::Write as _,
    path::Path,
    thread,
    time::Instant,
};

use anyhow::{Context as _, Result};
use serde::Serialize;

const APPENDS: usize = 100;
const APPEND_BYTES: usize = 4096;
/// From `linux/magic.h`.
const TMPFS_MAGIC: rustix::fs::FsWord = 0x0102_1994;

#[derive(Serialize)]
pub(crate) struct Machine {
    pub(crate) cores: usize,
    pub(crate) kernel: String,
    /// Median of appending 4 KiB to a file and syncing it.
    pub(crate) append_and_sync_ms: f64,
    /// Whether syncing costs nothing here, which makes the whole comparison idle.
    pub(crate) scratch_in_ram: bool,
}

impl Machine {
    pub(crate) fn observe(scratch: &Path) -> Result<Self> {
        let file_system = rustix::fs::statfs(scratch).context("cannot ask for the file system")?;
        Ok(Self {
            cores: thread::available_parallelism()?.get(),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .context("cannot read the kernel's version")?
                .trim()
                .to_owned(),
            append_and_sync_ms: append_and_sync_ms(scratch)?,
            scratch_in_ram: file_system.f_type == TMPFS_MAGIC,
        })
    }
}

/// What the disk takes for one promise. A shared disk may change within a run, so this is asked
/// again before each system's turn.
pub(crate) fn append_and_sync_ms(directory: &Path) -> Result<f64> {
    let path = directory.join("appends");
    let mut file = File::create(&path).context("cannot make a file to append to")?;
    let block = [0x5A; APPEND_BYTES];
    let mut times = Vec::with_capacity(APPENDS);
    for _ in 0..APPENDS {
        let start = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        times.push(start.elapsed());
    }
    fs::remove_file(&path)?;
    times.sort_unstable();
    Ok(times[APPENDS / 2].as_secs_f64() * 1000.0)
}

// SPDX-License-Identifier: Apache-2.0
//! The binary: `tasuki serve`, and commands of the form noun, verb.

mod cli;
mod commands;
mod config;
mod hidden;
mod rules;
mod scratch;
mod store_failed;
mod tls;

use std::process::ExitCode;

use tasuki_cli::{args, client, exit, output};

/// Requests are parsed on one thread and let go of on another, which the system's allocator is slow
/// at (ADR 7).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Writes a file that only its owner can read.
fn private_file(path: &std::path::Path, text: &str) -> std::io::Result<()> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    // One that was there before keeps its mode otherwise.
    file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    std::io::Write::write_all(&mut file, text.as_bytes())?;
    file.sync_all()
}

fn main() -> ExitCode {
    if let Err(failure) = hidden::hide_passwords() {
        output::Output { json: false }.failure(&failure);
        return failure.exit.into();
    }
    tasuki_cli::main::<cli::Cli>()
}

// SPDX-License-Identifier: Apache-2.0
//! The binary: `tasuki serve`, and commands of the form noun, verb.

mod cli;
mod commands;
mod config;
mod hidden;
mod rules;
mod store_failed;

use std::process::ExitCode;

use tasuki_cli::{args, client, exit, output};

/// Requests are parsed on one thread and let go of on another, which the system's allocator is slow
/// at (ADR 7).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if let Err(failure) = hidden::hide_passwords() {
        output::Output { json: false }.failure(&failure);
        return failure.exit.into();
    }
    tasuki_cli::main::<cli::Cli>()
}

// SPDX-License-Identifier: Apache-2.0
//! The binary: `tasuki serve`, and commands of the form noun, verb.

mod args;
mod cli;
mod client;
mod commands;
mod config;
mod exit;
mod output;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::Cli;
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Requests are parsed on one thread and let go of on another, which the system's allocator is slow
/// at (ADR 7).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_understood(&error),
    };
    let output = Output { json: cli.json };
    let ended = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(cli.run()));
    let exit = ended.unwrap_or_else(|error| match exit::failure_of(error) {
        Some(failure) => {
            output.failure(&failure);
            failure.exit
        }
        None => Exit::Done,
    });
    exit.into()
}

/// Help and the version come this way too, and are no failure.
fn not_understood(error: &clap::Error) -> ExitCode {
    let as_json = std::env::args_os().any(|argument| argument == "--json");
    if as_json && error.use_stderr() {
        let text = error.render().to_string();
        let message = text.trim_end().trim_start_matches("error: ");
        let failure = Failure::usage(message, "`tasuki help` shows every command");
        Output { json: true }.failure(&failure);
    } else {
        // A reader who went away does not want to hear of it.
        let _ = error.print();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Exit::Usage as u8))
}

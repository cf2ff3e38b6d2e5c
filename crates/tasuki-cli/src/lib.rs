// SPDX-License-Identifier: Apache-2.0
//! What the command lines share: the way to a broker, what is read from arguments, what is printed,
//! and how a command ends. `tasuki` and `tasuki-tools` are made of it.

pub mod args;
pub mod client;
pub mod exit;
pub mod output;
pub mod reference;

use std::process::ExitCode;

use clap::Parser;

use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Where help shows what many commands share.
pub const COMMON: &str = "Common options";

/// A table of commands.
pub trait Commands: Parser {
    fn output(&self) -> Output;

    fn run(self) -> impl Future<Output = anyhow::Result<Exit>>;

    /// What an error means that these commands know more about than others.
    fn failure(_: &anyhow::Error) -> Option<Failure> {
        None
    }
}

/// Reads the command line, carries it out, and says how that ended.
pub fn main<C: Commands>() -> ExitCode {
    // What is written, from databases to exports, is the owner's alone.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let commands = match C::try_parse() {
        Ok(commands) => commands,
        Err(error) => return not_understood::<C>(&error),
    };
    let output = commands.output();
    let ended = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(commands.run()));
    let exit = ended.unwrap_or_else(|error| match exit::failure_of(error, C::failure) {
        Some(failure) => {
            output.failure(&failure);
            failure.exit
        }
        None => Exit::Done,
    });
    exit.into()
}

/// Help and the version come this way too, and are no failure.
fn not_understood<C: Parser>(error: &clap::Error) -> ExitCode {
    let as_json = std::env::args_os().any(|argument| argument == "--json");
    if as_json && error.use_stderr() {
        let text = error.render().to_string();
        let message = text.trim_end().trim_start_matches("error: ");
        let hint = format!("`{} help` shows every command", C::command().get_name());
        Output { json: true }.failure(&Failure::usage(message, hint));
    } else {
        // A reader who went away does not want to hear of it.
        let _ = error.print();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Exit::Usage as u8))
}

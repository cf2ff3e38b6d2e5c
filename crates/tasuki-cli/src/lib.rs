// SPDX-License-Identifier: Apache-2.0
//! What the command lines share: the way to a broker, what is read from arguments, what is printed,
//! and how a command ends. `tasuki` and `tasuki-tools` are made of it.

pub mod args;
pub mod claims;
pub mod client;
pub mod exit;
mod help;
pub mod output;
pub mod profile;
pub mod reference;
pub mod short;
pub mod state;
mod terminal;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Parser};

use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Where help shows what many commands share.
pub const COMMON: &str = "Common options";

/// A table of commands.
pub trait Commands: Parser {
    fn output(&self) -> Output;

    fn run(self) -> impl Future<Output = anyhow::Result<Exit>>;

    /// The commands as help shows them: a heading, and what stands below it.
    fn groups() -> &'static [(&'static str, &'static [&'static str])] {
        &[]
    }

    /// What an error means that these commands know more about than others.
    fn failure(_: &anyhow::Error) -> Option<Failure> {
        None
    }
}

/// Reads the command line, carries it out, and says how that ended.
pub fn main<C: Commands>() -> ExitCode {
    // What is written, from databases to exports, is the owner's alone.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let line: Vec<OsString> = std::env::args_os().collect();
    let as_json = Output { json: line.iter().any(|argument| argument == "--json") };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            as_json.failure(&Failure::new(Exit::Refused, format!("cannot start: {error}"), ""));
            return Exit::Refused.into();
        }
    };
    let commands = match runtime.block_on(understood::<C>(&line)) {
        Ok(commands) => commands,
        Err(NotUnderstood::Line(error)) => return not_understood::<C>(error, &line),
        Err(NotUnderstood::Other(failure)) => {
            as_json.failure(&failure);
            return failure.exit.into();
        }
    };
    let output = commands.output();
    let exit = runtime.block_on(commands.run()).unwrap_or_else(|error| {
        match exit::failure_of(error, C::failure) {
            Some(failure) => {
                output.failure(&failure);
                failure.exit
            }
            None => Exit::Done,
        }
    });
    exit.into()
}

enum NotUnderstood {
    Line(clap::Error),
    Other(Failure),
}

/// Reads a command line, with what its profile says and what its ids stand for.
async fn understood<C: Commands>(line: &[OsString]) -> Result<C, NotUnderstood> {
    profile::choose(line).map_err(NotUnderstood::Other)?;
    let command = short::with_whole_ids(profile::applied(help::grouped::<C>()), line).await;
    let matches = command.map_err(NotUnderstood::Other)?.try_get_matches_from(line);
    let read = matches.and_then(|matches| C::from_arg_matches(&matches));
    read.map_err(NotUnderstood::Line)
}

/// The usage of the command that a line is about: all of it, and not what happened to be given.
fn usage(mut command: Command, line: &[OsString]) -> ContextValue {
    command.build();
    let mut at = &mut command;
    for word in line.iter().skip(1).filter_map(|word| word.to_str()) {
        match at.find_subcommand(word).is_some() {
            true => at = at.find_subcommand_mut(word).expect("it was found"),
            false => continue,
        }
    }
    ContextValue::StyledStr(at.render_usage())
}

/// Help and the version come this way too, and are no failure.
fn not_understood<C: Parser>(mut error: clap::Error, line: &[OsString]) -> ExitCode {
    if error.kind() == ErrorKind::MissingRequiredArgument {
        error.insert(ContextKind::Usage, usage(C::command(), line));
    }
    let as_json = line.iter().any(|argument| argument == "--json");
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

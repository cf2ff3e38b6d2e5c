// SPDX-License-Identifier: Apache-2.0
//! Named profiles: which broker, as which agent, and with what. One of them is current.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

use clap::Command;
use serde::{Deserialize, Serialize};

use crate::args::AGENT;
use crate::exit::{Exit, Failure};
use crate::state;

/// Where profiles are kept.
pub const FILE: &str = "profiles.json";
/// Names the profile of one command, instead of the current one.
pub const NAMED: &str = "TASUKI_PROFILE";
/// How many there are at most.
pub const PROFILES_MAX: usize = 1000;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    pub url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The file with the secret key, which counts before a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Profiles {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    #[serde(default)]
    pub profiles: BTreeMap<String, Profile>,
}

static USED: OnceLock<Option<Profile>> = OnceLock::new();

/// The profile that this command goes by.
pub fn used() -> Option<&'static Profile> {
    USED.get().and_then(Option::as_ref)
}

/// Finds the profile that a command line names, or the current one, before the line is read.
pub fn choose(line: &[OsString]) -> Result<(), Failure> {
    let named = named_in(line).or_else(|| std::env::var(NAMED).ok().filter(|it| !it.is_empty()));
    // Commands about profiles need none, and must work when the file is broken.
    let manages = line.get(1).is_some_and(|word| word == "profile");
    let mut all = match state::read::<Profiles>(FILE) {
        Err(_) if manages || named.is_none() => Profiles::default(),
        read => read?,
    };
    let profile = match named.or(all.current.take()) {
        None => None,
        Some(name) => match all.profiles.remove(&name) {
            Some(profile) => Some(profile),
            None if manages => None,
            None => return Err(unknown(&name)),
        },
    };
    // It is set once, by whoever reads the command line.
    let _ = USED.set(profile);
    Ok(())
}

#[must_use]
pub fn unknown(name: &str) -> Failure {
    Failure::new(Exit::NotFound, format!("there is no profile {name:?}"), "name one that is there")
        .next("tasuki profile list")
}

/// What `--profile` says. After `--` there are other programs' arguments.
fn named_in(line: &[OsString]) -> Option<String> {
    let own: Vec<_> = line.iter().take_while(|word| *word != "--").collect();
    let at = own.iter().position(|word| {
        word.to_str().is_some_and(|word| word == "--profile" || word.starts_with("--profile="))
    })?;
    match own[at].to_str()?.strip_prefix("--profile=") {
        Some(name) => Some(name.to_owned()),
        None => own.get(at + 1)?.to_str().map(str::to_owned),
    }
}

/// Lets a profile answer what neither an option nor the environment says.
pub fn applied(command: Command) -> Command {
    match used() {
        Some(profile) => apply(command, profile),
        None => command,
    }
}

fn apply(command: Command, profile: &'static Profile) -> Command {
    let command = command.mut_args(|arg| {
        let value = match arg.get_env().and_then(|name| name.to_str()) {
            Some("TASUKI_URL") => Some(profile.url.as_str()),
            Some(AGENT) => profile.agent.as_deref(),
            _ => None,
        };
        match value {
            // What has a default need not be given.
            Some(value) => arg.required(false).default_value(value),
            None => arg,
        }
    });
    command.mut_subcommands(|command| apply(command, profile))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_of_a_command_is_found_before_another_programs_arguments() {
        let line = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let named = |text: &str| named_in(&line(text));
        assert_eq!(named("tasuki stats --profile a").as_deref(), Some("a"));
        assert_eq!(named("tasuki --profile=b stats").as_deref(), Some("b"));
        assert_eq!(named("tasuki work -- other --profile c"), None);
        assert_eq!(named("tasuki stats --profile"), None);
    }
}

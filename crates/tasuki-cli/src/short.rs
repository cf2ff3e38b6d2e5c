// SPDX-License-Identifier: Apache-2.0
//! Ids that are given in part, or as `last`, the newest one. A command line is read once with ids as plain texts; those that are
//! not whole are looked up at the broker, with the rights of whoever asks; then it is read again.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::str::FromStr;

use clap::builder::ValueParser;
use clap::{Arg, ArgMatches, Command, FromArgMatches};
use tasuki_core::{HandoffId, TaskId};
use tasuki_protocol as wire;

use crate::client::{Client, Connect};
use crate::exit::{Exit, Failure};

/// What begins an id of each kind.
const HANDOFF: &str = "handoff_";
const TASK: &str = "task_";
/// Stands for the newest one.
const LAST: &str = "last";
/// A part of fewer characters is met by chance.
const PART_CHARS_MIN: usize = 3;
/// How many of the newest are looked through, a page at a time.
const PAGE: usize = 1000;
const PAGES_MAX: usize = 10;
/// How many candidates are named.
const NAMED_MAX: usize = 5;
/// Commands that only look at a task: a handoff's id means its task there.
const LOOKING: [&str; 6] = ["show", "tree", "events", "bisect", "export", "wait"];

/// Whatever has an id and can be looked at.
#[derive(Debug, Clone, Copy)]
pub enum Subject {
    Handoff(HandoffId),
    Task(TaskId),
}

impl FromStr for Subject {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let malformed = |error| format!("{error}");
        if text.starts_with(TASK) {
            return text.parse().map(Self::Task).map_err(malformed);
        }
        if text.starts_with(HANDOFF) {
            return text.parse().map(Self::Handoff).map_err(malformed);
        }
        Err("expected an id that begins with handoff_ or task_".into())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Handoff,
    Task,
    Either,
}

impl Kind {
    /// What an argument takes, if it takes an id that may be shortened.
    #[must_use]
    pub fn of(arg: &Arg) -> Option<Self> {
        let wanted = arg.get_value_parser().type_id();
        if wanted == TypeId::of::<HandoffId>() {
            Some(Self::Handoff)
        } else if wanted == TypeId::of::<TaskId>() {
            Some(Self::Task)
        } else if wanted == TypeId::of::<Subject>() {
            Some(Self::Either)
        } else {
            None
        }
    }

    fn is_whole(self, text: &str) -> bool {
        match self {
            Self::Handoff => text.parse::<HandoffId>().is_ok(),
            Self::Task => text.parse::<TaskId>().is_ok(),
            Self::Either => text.parse::<Subject>().is_ok(),
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Handoff => "handoff",
            Self::Task => "task",
            Self::Either => "handoff or task",
        }
    }
}

type Found = BTreeMap<(Kind, String), String>;

/// The command with which a line is read for good: it knows what the parts in the line stand for.
pub async fn with_whole_ids(command: Command, line: &[OsString]) -> Result<Command, Failure> {
    let mut found = Found::new();
    // What is wrong with the line is said when it is read for good.
    let Ok(matches) = plain(command.clone()).try_get_matches_from(line) else { return Ok(command) };
    let (mut at, mut below) = (&command, &matches);
    while let Some((name, deeper)) = below.subcommand() {
        let Some(next) = at.find_subcommand(name) else { return Ok(command) };
        (at, below) = (next, deeper);
    }
    let parts = parts(at, below);
    if parts.is_empty() {
        return Ok(command);
    }
    let Ok(connect) = Connect::from_arg_matches(below) else { return Ok(command) };
    let Ok(client) = connect.client() else { return Ok(command) };
    let looks = LOOKING.contains(&at.get_name());
    for (kind, part) in parts {
        if let Some(whole) = whole(&client, kind, &part, looks).await? {
            found.insert((kind, part), whole);
        }
    }
    Ok(with(command, &found))
}

/// Ids that are not whole, and may be parts of one.
fn parts(command: &Command, matches: &ArgMatches) -> Vec<(Kind, String)> {
    let mut parts = Vec::new();
    for arg in command.get_arguments() {
        let Some(kind) = Kind::of(arg) else { continue };
        let Ok(Some(values)) = matches.try_get_many::<String>(arg.get_id().as_str()) else {
            continue;
        };
        let may_be =
            |value: &&String| !kind.is_whole(value) && (*value == LAST || may_be_part(value));
        parts.extend(values.filter(may_be).map(|value| (kind, value.clone())));
    }
    parts
}

/// Whether a text has only what ids are made of.
fn may_be_part(text: &str) -> bool {
    let digits = text.strip_prefix(HANDOFF).or(text.strip_prefix(TASK)).unwrap_or(text);
    let digit = |c: char| c.is_ascii_alphanumeric() && !"ilou".contains(c.to_ascii_lowercase());
    text.len() >= PART_CHARS_MIN && digits.chars().all(digit)
}

fn plain(command: Command) -> Command {
    let command = command.mut_args(|arg| match Kind::of(&arg) {
        Some(_) => arg.value_parser(ValueParser::string()),
        None => arg,
    });
    command.mut_subcommands(plain)
}

fn with(command: Command, found: &Found) -> Command {
    let command = command.mut_args(|arg| match Kind::of(&arg) {
        Some(kind @ Kind::Handoff) => arg.value_parser(parser::<HandoffId>(kind, found)),
        Some(kind @ Kind::Task) => arg.value_parser(parser::<TaskId>(kind, found)),
        Some(kind @ Kind::Either) => arg.value_parser(parser::<Subject>(kind, found)),
        None => arg,
    });
    command.mut_subcommands(|command| with(command, found))
}

fn parser<T>(
    kind: Kind,
    found: &Found,
) -> impl Fn(&str) -> Result<T, T::Err> + Clone + Send + Sync + 'static
where
    T: FromStr,
{
    let found = found.clone();
    move |text: &str| {
        let whole = found.get(&(kind, text.to_owned()));
        whole.map_or(text, String::as_str).parse()
    }
}

/// What a part stands for; nothing where it cannot be a part, which is then refused as it stands.
async fn whole(
    client: &Client,
    kind: Kind,
    part: &str,
    looks: bool,
) -> Result<Option<String>, Failure> {
    if part == LAST {
        return newest(client, kind).await.map(Some);
    }
    if kind == Kind::Task && part.starts_with(HANDOFF) {
        return task_of(client, part, looks).await;
    }
    let mut candidates = Vec::new();
    if kind != Kind::Task && !part.starts_with(TASK) {
        candidates.extend(handoffs(client, part).await?);
    }
    if kind != Kind::Handoff && !part.starts_with(HANDOFF) {
        candidates.extend(tasks(client, part).await?);
    }
    one_of(kind, part, candidates)
}

fn one_of(
    kind: Kind,
    part: &str,
    mut candidates: Vec<(String, String)>,
) -> Result<Option<String>, Failure> {
    let noun = kind.noun();
    match candidates.len() {
        0 => {
            let looked = PAGE * PAGES_MAX;
            let message = format!("no {noun} that you may see has {part:?} in its id");
            let hint = format!("the newest {looked} were looked through; give the whole id");
            Err(Failure::new(Exit::NotFound, message, hint)
                .next(client_list(if kind == Kind::Task { "task" } else { "handoff" })))
        }
        1 => Ok(Some(candidates.remove(0).0)),
        several => {
            let named = candidates.iter().take(NAMED_MAX);
            let named: Vec<_> = named.map(|(id, what)| format!("{id} ({what})")).collect();
            let more = several.saturating_sub(NAMED_MAX);
            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
            let message =
                format!("{part:?} is part of the ids of {several}: {}{more}", named.join(", "));
            Err(Failure::usage(message, "give more of the id"))
        }
    }
}

/// The newest one that the caller may see; where either may be meant, the newest handoff.
async fn newest(client: &Client, kind: Kind) -> Result<String, Failure> {
    let query = [("limit", Some("1".to_owned()))];
    let found = match kind {
        Kind::Handoff | Kind::Either => {
            let page: wire::Handoffs = got(client, "/v1/handoffs", &query).await?;
            page.handoffs.first().map(|one| one.handoff_id.to_string())
        }
        Kind::Task => {
            let page: wire::Tasks = got(client, "/v1/tasks", &query).await?;
            page.tasks.first().map(|one| one.task_id.to_string())
        }
    };
    found.ok_or_else(|| {
        let message = format!("there is no {} that you may see", kind.noun());
        Failure::new(Exit::NotFound, message, "offer some work first")
            .next("tasuki handoff offer --help")
    })
}

fn client_list(noun: &str) -> String {
    format!("tasuki {noun} list")
}

/// The task of a handoff, for commands that only look.
async fn task_of(client: &Client, part: &str, looks: bool) -> Result<Option<String>, Failure> {
    let id = match part.parse::<HandoffId>() {
        Ok(id) => id,
        Err(_) => match one_of(Kind::Handoff, part, handoffs(client, part).await?)? {
            Some(id) => id.parse().map_err(|_| not_ours())?,
            None => return Ok(None),
        },
    };
    let handoff: wire::Handoff = got(client, &format!("/v1/handoffs/{id}"), &[]).await?;
    let task = handoff.task_id.to_string();
    if looks {
        return Ok(Some(task));
    }
    let message = format!("{id} is the id of a handoff, and a task is wanted here");
    Err(Failure::usage(message, format!("its task is {task}")))
}

async fn handoffs(client: &Client, part: &str) -> Result<Vec<(String, String)>, Failure> {
    let mut found = Vec::new();
    let mut before: Option<HandoffId> = None;
    for _ in 0..PAGES_MAX {
        let query =
            [("limit", Some(PAGE.to_string())), ("before", before.map(|id| id.to_string()))];
        let page: wire::Handoffs = got(client, "/v1/handoffs", &query).await?;
        let ids = page.handoffs.iter().map(|one| (one.handoff_id.to_string(), one));
        found.extend(
            ids.filter(|(id, _)| is_part(part, id, HANDOFF))
                .map(|(id, one)| (id, format!("from {}, {}", one.from_agent, one.state))),
        );
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    Ok(found)
}

async fn tasks(client: &Client, part: &str) -> Result<Vec<(String, String)>, Failure> {
    let mut found = Vec::new();
    let mut before: Option<TaskId> = None;
    for _ in 0..PAGES_MAX {
        let query =
            [("limit", Some(PAGE.to_string())), ("before", before.map(|id| id.to_string()))];
        let page: wire::Tasks = got(client, "/v1/tasks", &query).await?;
        let ids = page.tasks.iter().map(|one| (one.task_id.to_string(), one));
        found.extend(
            ids.filter(|(id, _)| is_part(part, id, TASK))
                .map(|(id, one)| (id, format!("owned by {}, {}", one.owner, one.state))),
        );
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    Ok(found)
}

/// With its prefix a part is a beginning; without it, it may stand anywhere.
fn is_part(part: &str, id: &str, prefix: &str) -> bool {
    let part = part.to_ascii_lowercase();
    if part.starts_with(prefix) {
        id.starts_with(&part)
    } else {
        id[prefix.len()..].contains(&part)
    }
}

async fn got<T: serde::de::DeserializeOwned>(
    client: &Client,
    path: &str,
    query: &crate::client::Query<'_>,
) -> Result<T, Failure> {
    let reply = client.get(path, query).await.map_err(|error| {
        error.downcast::<Failure>().unwrap_or_else(|error| {
            Failure::new(Exit::Refused, format!("an id cannot be looked up: {error:#}"), "")
        })
    })?;
    serde_json::from_str(&reply).map_err(|_| not_ours())
}

fn not_ours() -> Failure {
    Failure::new(
        Exit::Unavailable,
        "the answer is not the broker's",
        "check that --url names a Tasuki broker of this version",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_met_anywhere_and_a_beginning_at_the_beginning() {
        let id = "task_01m7hnqzsgeg89sgmxhsqqcyx8";
        for part in ["qcyx8", "01m7", "HSQQ", "task_01m7", id] {
            assert!(is_part(part, id, TASK), "{part}");
        }
        for part in ["task_cyx8", "zzz", "task"] {
            assert!(!is_part(part, id, TASK), "{part}");
        }
        assert!(["qcyx8", "task_01m7", "HSQQ"].iter().all(|text| may_be_part(text)));
        assert!(!["nonsense", "a/b", "ab", "agent_1"].iter().any(|text| may_be_part(text)));
    }
}

// SPDX-License-Identifier: Apache-2.0
//! The commands of a program as a page of the reference.

use std::fmt::Write;

use clap::{Arg, Command};

/// Every command and verb with its arguments.
#[must_use]
pub fn commands(mut program: Command) -> String {
    program.build();
    let mut page = String::new();
    for command in program.get_subcommands().filter(|command| is_shown(command)) {
        describe(&mut page, command, program.get_name());
    }
    page
}

fn is_shown(command: &Command) -> bool {
    !command.is_hide_set() && command.get_name() != "help"
}

fn describe(page: &mut String, command: &Command, parents: &str) {
    let name = format!("{parents} {}", command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let _ = writeln!(page, "\n### `{name}`\n\n{about}.");
    let verbs: Vec<_> = command.get_subcommands().filter(|verb| is_shown(verb)).collect();
    // What holds for every verb of a noun is told once, above and here.
    let told = |arg: &&Arg| !arg.is_hide_set() && !["help", "json", "version"].contains(&id(arg));
    let arguments: Vec<_> = command.get_arguments().filter(told).collect();
    let is_verb = parents.contains(' ');
    let arguments = arguments.into_iter();
    let arguments =
        arguments.filter(|arg| !(is_verb && ["url", "token", "key"].contains(&id(arg))));
    let mut rows = arguments.map(row).peekable();
    if rows.peek().is_some() {
        page.push_str("\n| argument | meaning |\n| --- | --- |\n");
        page.extend(rows);
    }
    for verb in verbs {
        describe(page, verb, &name);
    }
}

#[must_use]
pub fn id(arg: &Arg) -> &str {
    arg.get_id().as_str()
}

fn row(arg: &Arg) -> String {
    let value = arg.get_value_names().map_or(String::new(), |names| names[0].to_string());
    let takes_value = arg.get_action().takes_values();
    let shown = match arg.get_long() {
        Some(long) if takes_value => format!("--{long} {value}"),
        Some(long) => format!("--{long}"),
        None => value,
    };
    let mut meaning = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let values: Vec<_> = arg.get_possible_values();
    let values: Vec<_> = values.iter().map(|value| format!("`{}`", value.get_name())).collect();
    if takes_value && !values.is_empty() {
        meaning += &format!(" ({})", values.join(", "));
    }
    if let ([default], true) = (arg.get_default_values(), takes_value) {
        meaning += &format!(" [default: {}]", default.to_string_lossy());
    }
    if let Some(env) = arg.get_env() {
        meaning += &format!(" [env: `{}`]", env.to_string_lossy());
    }
    let needed = if arg.is_required_set() { ", required" } else { "" };
    format!("| `{shown}`{needed} | {} |\n", meaning.trim().replace('|', "\\|"))
}

// SPDX-License-Identifier: Apache-2.0
//! Help that shows commands in groups: a list of forty is read by nobody.

use std::fmt::Write;

use clap::Command;

use crate::Commands;

/// Where a command stands that no group names.
const OTHERS: &str = "More";

/// The table of commands, with its help in groups.
pub(crate) fn grouped<C: Commands>() -> Command {
    let command = C::command();
    match C::groups() {
        [] => command,
        groups => {
            let list = list(&command, groups);
            command.help_template(format!(
                "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{list}\nOptions:\n{{options}}"
            ))
        }
    }
}

fn list(command: &Command, groups: &[(&str, &[&str])]) -> String {
    let shown: Vec<_> = command.get_subcommands().filter(|it| !it.is_hide_set()).collect();
    let width = shown.iter().map(|command| command.get_name().len()).max().unwrap_or(0);
    let mut list = String::new();
    let line = |list: &mut String, command: &Command| {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(list, "  {:width$}  {about}", command.get_name());
    };
    for (heading, names) in groups {
        let _ = writeln!(list, "\n{heading}:");
        for name in *names {
            // In the order of the group, not of the table.
            if let Some(command) = shown.iter().find(|command| command.get_name() == *name) {
                line(&mut list, command);
            }
        }
    }
    let named =
        |command: &Command| groups.iter().any(|(_, names)| names.contains(&command.get_name()));
    let _ = writeln!(list, "\n{OTHERS}:");
    for command in shown.iter().filter(|command| !named(command)) {
        line(&mut list, command);
    }
    let _ = writeln!(list, "  {:width$}  Print this, or the help of a command", "help");
    list
}

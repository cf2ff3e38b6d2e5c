// SPDX-License-Identifier: Apache-2.0
//! Pages of the reference that are made from the code, so that they cannot say anything else. A
//! test compares them with what is committed in `docs/reference/`.

use std::fmt::Write;

use clap::{Args, Command, CommandFactory, ValueEnum};
use tasuki_cli::reference::{commands, id};

use crate::cli::Cli;
use crate::config::Keys;
use crate::exit::Exit;
use crate::output::print;

#[derive(Args)]
pub(crate) struct Reference {
    page: Page,
}

#[derive(Clone, Copy, ValueEnum)]
enum Page {
    Cli,
    Configuration,
}

impl Reference {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let page = match self.page {
            Page::Cli => command_line(),
            Page::Configuration => configuration()?,
        };
        print(&page)?;
        Ok(Exit::Done)
    }
}

const CLI_HEAD: &str = "\
# Command line

Printed by `tasuki reference cli` from the code itself. Do not edit.

Every command takes `--json` and then prints one JSON document: the broker's answer exactly as it
came, or for commands that do without a broker a document of their own (`audit export` and
`audit log` print one for each line). An error goes to stderr, with `--json` in the shape of the
broker's errors: `code`, `message`, `hint`, `retryable`, `details`.

Commands that talk to a broker take `--url`, or `TASUKI_URL`, or `http://127.0.0.1:8788`. They show
who asks by `--key` or `TASUKI_KEY`, the file of a secret key that signs every request; or else by
`--token` or `TASUKI_TOKEN`. Spans of time are a number and a unit: `500ms`, `30s`, `10m`, `2h`,
`1d`.

## Exit codes

| exit code | `code` of an error found without a broker | meaning |
| --- | --- | --- |
";

const CLI_SIGNALS: &str = "\
| 130, 143 | – | `serve` was ended at once by a second SIGINT or SIGTERM; the first ends it gracefully |
";

fn command_line() -> String {
    let mut page = CLI_HEAD.to_owned();
    for exit in Exit::ALL {
        let word = if exit == Exit::Done { "–".into() } else { format!("`{}`", exit.word()) };
        let _ = writeln!(page, "| {} | {word} | {} |", exit as u8, exit.meaning());
    }
    page += CLI_SIGNALS;
    page += "\n## Commands\n";
    page + &commands(Cli::command())
}

const CONFIGURATION_HEAD: &str = "\
# Configuration

Printed by `tasuki reference configuration` from the code itself. Do not edit.

`tasuki serve` reads, the later winning over the earlier:

1. a TOML file: the one that `--config` or `TASUKI_CONFIG` names, else `tasuki.toml` in the current
   directory if there is one;
2. the environment;
3. flags.

A key that is not listed here is an error that names the key and the file. A list in the environment
is separated by commas; the flag `--host` is repeated. Commands that work on a data directory take
`data` from the same places.

```toml
data = \"/var/lib/tasuki\"
listen = \"127.0.0.1:8788\"

[terms]
lease_ms = 60000
```

| key | default | environment | flag | meaning |
| --- | --- | --- | --- | --- |
";

fn configuration() -> anyhow::Result<String> {
    let defaults = serde_json::to_value(Keys::defaults())?;
    let mut page = CONFIGURATION_HEAD.to_owned();
    for arg in Keys::augment_args(Command::new("keys")).get_arguments() {
        let key = id(arg);
        let default = key.split('.').fold(&defaults, |value, part| &value[part]);
        let env = arg.get_env().map(|env| env.to_string_lossy()).unwrap_or_default();
        let flag = arg.get_long().unwrap_or_default();
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let meaning = help.split(" [default:").next().unwrap_or_default();
        let default = if default.is_null() { "none".into() } else { default.to_string() };
        let _ = writeln!(page, "| `{key}` | `{default}` | `{env}` | `--{flag}` | {meaning} |");
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// The paths of all keys, as the file spells them.
    fn keys(value: &Value, above: &str) -> Vec<String> {
        match value {
            Value::Object(members) => members
                .iter()
                .flat_map(|(name, below)| keys(below, &format!("{above}.{name}")))
                .collect(),
            _ => vec![above.trim_start_matches('.').to_owned()],
        }
    }

    #[test]
    fn every_key_has_a_row_a_variable_and_a_flag_named_after_it() {
        let page = configuration().unwrap();
        for key in keys(&serde_json::to_value(Keys::default()).unwrap(), "") {
            let row = page.lines().find(|line| line.starts_with(&format!("| `{key}` |")));
            let row = row.unwrap_or_else(|| panic!("{key} is not in the page"));
            let env = format!("`TASUKI_{}`", key.replace('.', "_").to_uppercase());
            assert!(row.contains(&env), "{row} lacks {env}");
            // What may be repeated is named in the singular where it is given one by one.
            let flag = match key.as_str() {
                "hosts" | "alert_webhooks" => key.trim_end_matches('s').replace('_', "-"),
                _ => key.replace(['.', '_'], "-"),
            };
            assert!(row.contains(&format!("`--{flag}`")), "{row} lacks --{flag}");
        }
    }

    #[test]
    fn help_tells_the_true_defaults() {
        let defaults = serde_json::to_value(Keys::defaults()).unwrap();
        for arg in Keys::augment_args(Command::new("keys")).get_arguments() {
            let value = id(arg).split('.').fold(&defaults, |value, part| &value[part]);
            let value = match value {
                Value::String(text) if !text.is_empty() => text.clone(),
                Value::String(_) | Value::Array(_) | Value::Null => "none".into(),
                other => other.to_string(),
            };
            let help = arg.get_help().unwrap().to_string();
            assert!(help.ends_with(&format!("[default: {value}]")), "{help} is not {value}");
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! What each MCP client wants to be told, and where it reads it. Secrets are not written into files: a
//! token stays in the environment, and what is written only names it.

use std::path::PathBuf;

use clap::ValueEnum;
use serde_json::{Value, json};

/// The environment variable that has the token.
const TOKEN: &str = "TASUKI_TOKEN";
/// Under which name clients know the broker.
pub(super) const NAME: &str = "tasuki";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Client {
    /// Claude Code: .mcp.json of the project
    Claude,
    /// Codex: ~/.codex/config.toml
    Codex,
    /// Cursor: .cursor/mcp.json of the project
    Cursor,
    /// VS Code: .vscode/mcp.json of the workspace
    Vscode,
    /// OpenClaw: ~/.openclaw/openclaw.json
    Openclaw,
    /// Goose: ~/.config/goose/config.yaml
    Goose,
}

/// How a client reaches the broker.
pub(super) enum Way {
    /// It starts a process and talks to it.
    Stdio { args: Vec<String> },
    /// It sends requests.
    Http { url: String, token: bool },
}

/// What is put where in a file.
pub(super) enum Entry {
    /// A member of nested objects.
    Json { within: &'static [&'static str], value: Value },
    /// A table with its header.
    Toml { header: String, text: String },
    /// A block below a line.
    Yaml { below: &'static str, text: String },
}

impl Client {
    /// The file that it reads.
    pub(super) fn file(self) -> PathBuf {
        let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
        match self {
            Self::Claude => ".mcp.json".into(),
            Self::Cursor => ".cursor/mcp.json".into(),
            Self::Vscode => ".vscode/mcp.json".into(),
            Self::Codex => home().join(".codex/config.toml"),
            Self::Openclaw => home().join(".openclaw/openclaw.json"),
            Self::Goose => home().join(".config/goose/config.yaml"),
        }
    }

    pub(super) fn entry(self, way: &Way) -> Entry {
        match self {
            Self::Claude => {
                let value = with_kind(way, Some("http"), &format!("Bearer ${{{TOKEN}}}"));
                Entry::Json { within: &["mcpServers"], value }
            }
            Self::Cursor => {
                let value = with_kind(way, None, &format!("Bearer ${{env:{TOKEN}}}"));
                Entry::Json { within: &["mcpServers"], value }
            }
            Self::Vscode => {
                let value = with_kind(way, Some("http"), &format!("Bearer ${{env:{TOKEN}}}"));
                Entry::Json { within: &["servers"], value }
            }
            Self::Openclaw => {
                let mut value = with_kind(way, None, &format!("Bearer ${{{TOKEN}}}"));
                if matches!(way, Way::Http { .. }) {
                    value["transport"] = json!("streamable-http");
                }
                Entry::Json { within: &["mcp", "servers"], value }
            }
            Self::Codex => codex(way),
            Self::Goose => goose(way),
        }
    }
}

/// The form that most clients share.
fn with_kind(way: &Way, http: Option<&str>, bearer: &str) -> Value {
    match way {
        Way::Stdio { args } => match http {
            Some(_) => json!({ "type": "stdio", "command": NAME, "args": args }),
            None => json!({ "command": NAME, "args": args }),
        },
        Way::Http { url, token } => {
            let mut value = json!({ "url": url });
            if let Some(kind) = http {
                value["type"] = json!(kind);
            }
            if *token {
                value["headers"] = json!({ "Authorization": bearer });
            }
            value
        }
    }
}

/// JSON's texts and lists are TOML's and YAML's too.
fn quoted(value: &impl serde::Serialize) -> String {
    json!(value).to_string()
}

fn codex(way: &Way) -> Entry {
    let mut text = match way {
        Way::Stdio { args } => {
            format!("command = {}\nargs = {}\n", quoted(&NAME), quoted(args))
        }
        Way::Http { url, token } => {
            let token = match token {
                true => format!("bearer_token_env_var = {}\n", quoted(&TOKEN)),
                false => String::new(),
            };
            format!("url = {}\n{token}", quoted(url))
        }
    };
    // A wait for work takes up to a minute, and so does the answer to it.
    text += "tool_timeout_sec = 120\n";
    Entry::Toml { header: format!("[mcp_servers.{NAME}]"), text }
}

fn goose(way: &Way) -> Entry {
    let text = match way {
        Way::Stdio { args } => format!(
            "  {NAME}:\n    enabled: true\n    type: stdio\n    name: {NAME}\n    cmd: {NAME}\n    \
             args: {}\n    timeout: 120\n",
            quoted(args)
        ),
        Way::Http { url, token } => {
            let headers = match token {
                true => {
                    let bearer = format!("Bearer ${{{TOKEN}}}");
                    format!("    headers:\n      Authorization: {}\n", quoted(&bearer))
                }
                false => String::new(),
            };
            format!(
                "  {NAME}:\n    enabled: true\n    type: streamable_http\n    name: {NAME}\n    \
                 uri: {}\n{headers}    timeout: 120\n",
                quoted(url)
            )
        }
    };
    Entry::Yaml { below: "extensions:", text }
}

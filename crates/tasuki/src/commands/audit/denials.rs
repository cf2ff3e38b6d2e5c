// SPDX-License-Identifier: Apache-2.0

use std::collections::VecDeque;

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use tasuki_protocol as wire;

use crate::client::Client;
use crate::exit::Exit;
use crate::output::{Output, table};

#[derive(Args)]
pub(super) struct Denials {
    /// Only those of this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// How many of the latest to list
    #[arg(long, value_name = "N", default_value_t = 100)]
    max: usize,
}

#[derive(Serialize)]
struct Found {
    /// Of agents that are known: the same refusal of the same agent is in the log once in ten seconds.
    denials: Vec<Denial>,
    /// Of requests that nobody stood behind, since the broker began.
    strangers: wire::Refusals,
}

#[derive(Serialize)]
struct Denial {
    at: String,
    agent: String,
    code: String,
    operation: String,
}

impl Denials {
    pub(super) async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let mut denials = VecDeque::new();
        let mut stream = client.stream("/v1/audit/export", &[]).await?;
        let mut rest = Vec::new();
        while let Some(piece) = stream.chunk().await.map_err(|error| client.unreachable(&error))? {
            rest.extend_from_slice(&piece);
            let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') else { continue };
            let later = rest.split_off(end + 1);
            for line in std::mem::replace(&mut rest, later).split(|byte| *byte == b'\n') {
                denials.extend(denial(line).filter(|it| self.wants(it)));
                if denials.len() > self.max {
                    denials.pop_front();
                }
            }
        }
        let strangers: wire::Refusals =
            serde_json::from_str(&client.get("/v1/security", &[]).await?)?;
        let found = Found { denials: denials.into(), strangers };
        output.found(&found, text)?;
        Ok(Exit::Done)
    }

    fn wants(&self, denial: &Denial) -> bool {
        self.agent.as_ref().is_none_or(|agent| *agent == denial.agent)
    }
}

/// The refusal that a line of the log tells of.
fn denial(line: &[u8]) -> Option<Denial> {
    // Most lines are about work: they are not even read.
    let text = std::str::from_utf8(line).ok().filter(|text| text.contains("access_denied"))?;
    let line: Value = serde_json::from_str(text).ok()?;
    let record = &line["event"]["record"];
    if record["change"] != "access_denied" {
        return None;
    }
    let word = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
    Some(Denial {
        at: word("at"),
        agent: word("agent"),
        code: word("code"),
        operation: word("operation"),
    })
}

fn text(found: &Found) -> String {
    let mut text = if found.denials.is_empty() {
        "no agent was refused anything\n".to_owned()
    } else {
        let rows = found
            .denials
            .iter()
            .map(|it| [it.at.clone(), it.agent.clone(), it.code.clone(), it.operation.clone()]);
        table(["at", "agent", "refused with", "what it tried"], rows)
    };
    if !found.strangers.refusals.is_empty() {
        let rows = found.strangers.refusals.iter().map(|it| {
            let named = it.named.clone().unwrap_or_default();
            [it.at.to_string(), it.from.clone(), it.code.clone(), named, it.path.clone()]
        });
        text += &format!("\n{} requests that nobody stood behind:\n", found.strangers.count);
        text += &table(["at", "from", "refused with", "named", "path"], rows);
    }
    text
}

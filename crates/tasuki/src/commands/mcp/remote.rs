// SPDX-License-Identifier: Apache-2.0
//! A broker elsewhere: each operation is a request of its HTTP API.

use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::Value;
use tasuki_core::AgentId;
use tasuki_engine::operations::Entry;
use tasuki_mcp::{Broker, Subject};
use tasuki_protocol::{Code, Problem};

use crate::client::{Client, Method, Sent, escaped};

/// How long an answer may take beyond the time the broker was asked to wait.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// How often a request is signed before the broker's word that it is too early is passed on.
const SIGNED_MAX: u32 = 3;

pub(super) struct Remote {
    client: Client,
    agent: String,
}

impl Remote {
    pub(super) fn new(client: Client, agent: &AgentId) -> Self {
        Self { client, agent: agent.to_string() }
    }

    fn unreachable(&self, why: &str) -> Problem {
        Problem::new(
            Code::OutcomeUnknown,
            format!("the broker at {} did not answer: {why}", self.client.url()),
            "start it with `tasuki serve` if it does not run, then repeat the call: what has a key or a \
             claim is safe to repeat",
        )
    }

    async fn ask_once(
        &self,
        entry: &Entry,
        on: &[String],
        asked: &Value,
    ) -> Result<String, Problem> {
        let unbound = || {
            let message = format!("{} has no address over HTTP", entry.facts.name);
            Problem::new(Code::Internal, message, "report it")
        };
        let (method, path, in_query) =
            tasuki_http::request_for(entry.facts.name).ok_or_else(unbound)?;
        let method = Method::from_bytes(method.to_ascii_uppercase().as_bytes());
        let wait = ["wait_ms", "timeout_ms"].iter().find_map(|name| asked[*name].as_u64());
        let query = if in_query { pairs(asked) } else { Vec::new() };
        let sent = Sent {
            method: method.map_err(|_| unbound())?,
            path: &filled(path, on),
            query: &query,
            body: (!in_query).then(|| asked.to_string().into_bytes()),
            timeout: ANSWER_TIMEOUT + Duration::from_millis(wait.unwrap_or(0)),
        };
        let (status, bytes) =
            self.client.exchange(sent).await.map_err(|why| self.unreachable(&why))?;
        let text = String::from_utf8(bytes).map_err(|_| self.unreachable("it is no text"))?;
        if (200..300).contains(&status) {
            return Ok(text);
        }
        let problem = serde_json::from_str(&text);
        Err(problem.unwrap_or_else(|_| self.unreachable(&format!("status {status}"))))
    }
}

/// The path with what the request is about put in.
fn filled(path: &str, on: &[String]) -> String {
    let mut parts = on.iter();
    let segment = |segment: &str| match segment.starts_with('{') {
        true => parts.next().map(|part| escaped(part)).unwrap_or_default(),
        false => segment.to_owned(),
    };
    path.split('/').map(segment).collect::<Vec<_>>().join("/")
}

/// What is asked as it stands in a query.
fn pairs(asked: &Value) -> Vec<(String, String)> {
    let members = asked.as_object().into_iter().flatten();
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Null => None,
        other => Some(other.to_string()),
    };
    members.filter_map(|(name, value)| Some((name.clone(), text(value)?))).collect()
}

#[async_trait]
impl Broker for Remote {
    async fn ask(
        &self,
        entry: &'static Entry,
        on: &[String],
        asked: &Value,
    ) -> Result<String, Problem> {
        for _ in 1..SIGNED_MAX {
            match self.ask_once(entry, on, asked).await {
                // Signatures are dated by the second, and none may be older than the broker.
                Err(problem) if problem.known() == Some(Code::SignatureTooEarly) => {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                done => return done,
            }
        }
        self.ask_once(entry, on, asked).await
    }

    fn agent(&self) -> Option<String> {
        Some(self.agent.clone())
    }

    async fn changes(&self, of: Subject) -> Result<BoxStream<'static, ()>, Problem> {
        let query = match of {
            Subject::Handoff(handoff) => vec![("handoff", Some(handoff.to_string()))],
            Subject::Task(task) => vec![("task", Some(task.to_string()))],
            Subject::Contexts => Vec::new(),
        };
        let answer = self.client.stream("/v1/events", &query).await;
        let answer = answer.map_err(|error| self.unreachable(&error.to_string()))?;
        let lines =
            stream::unfold((answer, String::new()), move |(mut answer, mut rest)| async move {
                loop {
                    if let Some(end) = rest.find('\n') {
                        let line = rest[..end].trim_end().to_owned();
                        rest.drain(..=end);
                        if is_change(of, &line) {
                            return Some(((), (answer, rest)));
                        }
                        continue;
                    }
                    let piece = answer.chunk().await.ok()??;
                    rest.push_str(&String::from_utf8_lossy(&piece));
                }
            });
        Ok(lines.boxed())
    }
}

/// Whether a line of the stream begins an event that may have changed a subject.
fn is_change(of: Subject, line: &str) -> bool {
    let Some(kind) = line.strip_prefix("event:").map(str::trim) else { return false };
    match of {
        Subject::Handoff(_) | Subject::Task(_) => true,
        Subject::Contexts => matches!(kind, "document_written" | "erased" | "missed"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_is_filled_with_what_the_request_is_about() {
        let on = ["acme/a b".to_owned(), "k1".to_owned()];
        assert_eq!(
            filled("/v1/agents/{id}/keys/{key}/revoke", &on),
            "/v1/agents/acme%2Fa%20b/keys/k1/revoke"
        );
        assert_eq!(filled("/v1/claims", &[]), "/v1/claims");
    }

    #[test]
    fn a_query_has_no_quotes_and_nothing_that_was_not_said() {
        let asked = json!({ "q": "a b", "limit": 5, "pinned": true, "tag": null });
        let pairs = pairs(&asked);
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(pairs, [("limit", "5"), ("pinned", "true"), ("q", "a b")]);
    }
}

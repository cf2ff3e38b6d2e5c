// SPDX-License-Identifier: Apache-2.0

use clap::Args;
use serde_json::Value;
use tasuki_core::{Cursor, HandoffId, TaskId};

use super::event_row;
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::{Output, print, printable};

#[derive(Args)]
pub(super) struct Log {
    /// Wait for what happens next, instead of showing what happened; without --after from now on
    #[arg(long)]
    follow: bool,
    /// Begin after this event's position; 0 is before the first
    #[arg(long, value_name = "POSITION")]
    after: Option<Cursor>,
    /// Only events of this task
    #[arg(long, value_name = "TASK")]
    task: Option<TaskId>,
    /// Only events of this handoff
    #[arg(long, value_name = "HANDOFF")]
    handoff: Option<HandoffId>,
    /// End after so many events
    #[arg(long, value_name = "N")]
    max: Option<u64>,
}

impl Log {
    pub(super) async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let first = (!self.follow).then(|| "0".to_owned());
        let query = [
            ("follow", Some(self.follow.to_string())),
            ("after", self.after.map(|after| after.to_string()).or(first)),
            ("task", self.task.map(|task| task.to_string())),
            ("handoff", self.handoff.map(|handoff| handoff.to_string())),
        ];
        let mut stream = client.stream("/v1/events", &query).await?;
        let mut lines = Lines::default();
        let mut shown = 0;
        let mut last = None;
        while self.max.is_none_or(|max| shown < max) {
            // A connection that breaks and one that is ended say the same to a follower.
            let piece = match stream.chunk().await {
                Ok(None) if !self.follow => return Ok(Exit::Done),
                piece => piece.unwrap_or(None),
            };
            let Some(piece) = piece else {
                return Err(self.ended(client, last).into());
            };
            for data in lines.take(&piece) {
                let event: Value = serde_json::from_str(&data)?;
                print(&if output.json { data } else { line(&event) })?;
                let told = event["position"].as_str().or_else(|| event["resume_after"].as_str());
                last = told.and_then(|told| told.parse().ok());
                shown += 1;
                if self.max.is_some_and(|max| shown >= max) {
                    break;
                }
            }
        }
        Ok(Exit::Done)
    }

    fn ended(&self, client: &Client, last: Option<Cursor>) -> Failure {
        let mut words = "audit log".to_owned();
        if self.follow {
            words += " --follow";
        }
        if let Some(after) = last.or(self.after) {
            words += &format!(" --after {after}");
        }
        if let Some(task) = self.task {
            words += &format!(" --task {task}");
        }
        if let Some(handoff) = self.handoff {
            words += &format!(" --handoff {handoff}");
        }
        let message = format!("the broker at {} ended the stream", client.url());
        Failure::new(Exit::Unavailable, message, "go on where it ended once the broker is back")
            .next(client.command(&words))
    }
}

fn line(event: &Value) -> String {
    if let Some(after) = event["resume_after"].as_str() {
        return format!("{after:>6}  missed: some events before may be missing; it goes on here");
    }
    let [position, at, kind, actor, handoff] = event_row(event);
    let task = event["record"]["task_id"].as_str().unwrap_or_default();
    printable(&format!("{position:>6}  {at}  {kind:<16}  {actor:<16}  {task}  {handoff}"))
        .trim_end()
        .to_owned()
}

/// Server-sent events, as far as they matter here: the data lines.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    /// The data of the lines that are complete with this piece.
    fn take(&mut self, piece: &[u8]) -> Vec<String> {
        self.0.extend_from_slice(piece);
        let Some(end) = self.0.iter().rposition(|byte| *byte == b'\n') else { return Vec::new() };
        let rest = self.0.split_off(end + 1);
        let complete = std::mem::replace(&mut self.0, rest);
        let text = String::from_utf8_lossy(&complete);
        let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
        data.map(|data| data.trim_start().to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_counts_when_it_is_complete() {
        let mut lines = Lines::default();
        assert!(lines.take(b"id: 1\ndata: {\"a\"").is_empty());
        assert_eq!(lines.take(b":1}\n\n: still here\n\ndata: 2\nda"), ["{\"a\":1}", "2"]);
        assert_eq!(lines.take(b"ta: 3\n"), ["3"]);
    }
}

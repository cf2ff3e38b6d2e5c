// SPDX-License-Identifier: Apache-2.0
//! `tasuki demo`: coder, reviewer and tester hand a task to each other, and everything goes wrong
//! that may go wrong. The agents are scripted, so no key of any provider is needed; the broker is
//! a real one, and so are the kills.

mod agent;
mod broker;
mod chaos;
mod ending;
mod play;
mod promise;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

use self::broker::{Broker, Home};
use self::play::Play;
use self::promise::{Promise, Promises};
use super::explain::{self, Explained, Subject};
use crate::client::Connect;
use crate::exit::{self, Exit, Failure};
use crate::output::Output;
use crate::store_failed;

/// How long a line stands before the next one, where somebody watches.
const PACE: Duration = Duration::from_millis(400);

#[derive(Args)]
pub(crate) struct Demo {
    /// Also kill the broker in the middle, and start it again on the same data
    #[arg(long)]
    chaos: bool,
    /// Keep the data in this directory, which must not be there yet
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

#[derive(Serialize)]
struct Report {
    ok: bool,
    chaos: bool,
    ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<String>,
    promises: Promises,
    /// What ended the demo before its time.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explained: Option<Explained>,
}

impl Demo {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        let mut terminate = signal(SignalKind::terminate())?;
        // The terminal was closed.
        let mut hang_up = signal(SignalKind::hangup())?;
        tokio::select! {
            ended = Box::pin(self.show(output)) => ended,
            // Whatever is dropped on the way ends the broker and removes its data.
            _ = tokio::signal::ctrl_c() => Err(interrupted()),
            _ = terminate.recv() => Err(interrupted()),
            _ = hang_up.recv() => Err(interrupted()),
        }
    }

    async fn show(self, output: Output) -> anyhow::Result<Exit> {
        let began = Instant::now();
        let home = Home::make(self.data)?;
        let mut broker = Broker::start(&home).await?;
        let client = Connect::to(broker.url()).client()?;
        let watched = !output.json && std::io::stdout().is_terminal();
        let pace = if watched { PACE } else { Duration::ZERO };
        let mut play = Play::new(output, pace, Promises::new(self.chaos), client);
        play.say("broker", &format!("runs at {}, started for this demo alone", broker.url()))
            .await?;
        let chaos = self.chaos.then_some((&mut broker, &home));
        let ended = play.run(chaos).await;

        let mut explained = None;
        let mut failure = ended
            .err()
            .and_then(|error| exit::failure_of(error, store_failed::failure))
            .map(|failure| failure.message);
        if let (None, Some(task)) = (&failure, play.task.as_deref().and_then(|it| it.parse().ok()))
        {
            match explain::explain(play.client(), Subject::Task(task)).await {
                Ok(found) => explained = Some(found),
                Err(error) => failure = Some(format!("it cannot be explained: {error:#}")),
            }
        }
        if let Some(explained) = &explained {
            let whole = explained.is_whole() && play.all_bound;
            play.note(Promise::ConstraintsIntact, whole, "as `tasuki explain` finds").await?;
        }
        let well = broker.end().await?;
        play.note(Promise::EndedWell, well, "after SIGTERM").await?;

        let (task_id, promises) = (play.task, play.promises);
        let ok = failure.is_none() && promises.broken().is_empty();
        let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let report = Report { ok, chaos: self.chaos, ms, task_id, promises, failure, explained };
        output.found(&report, |report| report.text(&home))?;
        if report.ok || output.json {
            return Ok(if report.ok { Exit::Done } else { Exit::Refused });
        }
        Err(report.failure().into())
    }
}

fn interrupted() -> anyhow::Error {
    let hint = "its broker has ended, and its data is removed unless you named a directory";
    Failure::new(Exit::Refused, "the demo was interrupted", hint).into()
}

impl Report {
    fn text(&self, home: &Home) -> String {
        let mut text = String::new();
        if let Some(explained) = &self.explained {
            text += "\nWhat `tasuki explain` says of the task:\n\n";
            text += &explained.text();
        }
        let count = self.promises.count();
        let kept = count - self.promises.broken().len();
        let seconds = self.ms / 1000;
        text += &format!("\n{kept} of {count} promises kept, each one checked, in {seconds} s.\n");
        let data = home.data();
        match (&self.task_id, home.is_kept()) {
            (Some(task), true) => {
                text += "The demo's broker has ended. Look at what it left:\n";
                text += &format!(
                    "  tasuki serve --data {}\n",
                    crate::client::quoted(&data.display().to_string())
                );
                text += &format!("  tasuki explain {task}\n");
            }
            _ => {
                text += "The demo's broker has ended, and its data is gone. Next:\n";
                if !self.chaos {
                    text += "  tasuki demo --chaos         # the same, with the broker killed\n";
                }
                text += "  tasuki demo --data ./demo   # the same, and keep the data to look at\n";
                text += "  tasuki serve                # a broker of your own\n";
            }
        }
        text
    }

    fn failure(&self) -> Failure {
        let broken = self.promises.broken();
        let why = self.failure.as_ref().map(|why| format!("{why}\n")).unwrap_or_default();
        let message = format!("{why}the demo did not see that\n  {}", broken.join("\n  "));
        Failure::new(
            Exit::Refused,
            message,
            "run it again; if that does not help, please report it",
        )
    }
}

// SPDX-License-Identifier: Apache-2.0
//! One piece of work, from the claim to the report.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use serde::Serialize;
use tasuki_core::budget::Used;
use tasuki_core::envelope::Envelope;
use tasuki_core::event::FailureClass;
use tasuki_core::{HandoffId, TaskId};
use tasuki_protocol as wire;

use super::child::{Run, Running};
use super::desk::Desk;
use super::heart::{self, Lease};
use super::outcome::{End, Failed, Outcome, payload};
use super::shop::Shop;
use crate::exit::Failure;
use crate::output::{span, tell};
use crate::scratch::Scratch;

/// How long a worker that stops tries to say so.
const FAREWELL: Duration = Duration::from_secs(5);
/// How much of what a command leaves in files is read.
const FILE_BYTES_MAX: u64 = 8 << 20;

/// What the command reads from its standard input.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Stdin {
    /// What a model reads: intent, constraints, payload, context
    Prompt,
    /// The payload, as JSON
    Payload,
    /// All that the broker said with the claim, as JSON
    Claim,
    /// Nothing
    Nothing,
}

/// What became of it.
#[derive(Serialize)]
pub(super) struct Ended {
    pub(super) handoff_id: HandoffId,
    pub(super) task_id: TaskId,
    attempt: u32,
    pub(super) ended: How,
    #[serde(skip_serializing_if = "String::is_empty")]
    why: String,
    ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum How {
    Completed,
    Failed,
    Lost,
    Released,
    /// The command reported by itself.
    Reported,
    /// The broker could not be told.
    Unreported,
}

impl How {
    fn word(self) -> &'static str {
        match self {
            Self::Completed => "done",
            Self::Failed => "failed",
            Self::Lost => "lost",
            Self::Released => "released",
            Self::Reported => "reported",
            Self::Unreported => "unreported",
        }
    }
}

impl Ended {
    pub(super) fn line(&self) -> String {
        let Self { handoff_id, ended, why, ms, .. } = self;
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        format!("{:9} {handoff_id} after {}{why}", ended.word(), span(*ms))
    }
}

pub(super) async fn work(shop: &Shop, claimed: &wire::Claimed, asked: Instant) -> Ended {
    let began = Instant::now();
    let wire::Claimed { handoff_id, claim_id, fence, .. } = *claimed;
    let id = handoff_id.to_string();
    let name = id[id.len().saturating_sub(6)..].to_owned();
    let desk = Desk { client: shop.client.clone(), handoff: handoff_id, claim_id, fence, name };
    let job = Job { shop, desk, claimed, lease: Lease::of(claimed, asked) };
    let (ended, why) = Box::pin(job.run()).await;
    Ended {
        handoff_id,
        task_id: claimed.task_id,
        attempt: claimed.attempt,
        ended,
        why,
        ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
    }
}

struct Job<'j> {
    shop: &'j Shop,
    desk: Desk,
    claimed: &'j wire::Claimed,
    lease: Lease,
}

type Came = (How, String);

impl Job<'_> {
    async fn run(&self) -> Came {
        let heart = heart::beat(&self.desk, self.lease);
        tokio::pin!(heart);
        let folder = match Scratch::new("work") {
            Ok(folder) => folder,
            Err(error) => return self.cannot("make a folder", &error.to_string()).await,
        };
        let run = tokio::select! {
            biased;
            () = self.shop.stop.asked() => return self.release().await,
            why = &mut heart => return (How::Lost, why),
            run = self.prepare(&folder) => run,
        };
        let mut running = match run {
            Ok(run) => match run.start() {
                Ok(running) => running,
                Err(error) => return self.cannot("start the command", &error.to_string()).await,
            },
            Err(refused) => return self.refused(&refused).await,
        };
        let status = tokio::select! {
            biased;
            status = running.ended() => status,
            why = &mut heart => return self.lost(running, why).await,
            () = self.shop.stop.asked() => {
                self.stop(running).await;
                return self.release().await;
            }
        };
        // The lease holds while what it left running has a moment to finish.
        match status {
            Ok(status) => self.report(running.said(status).await, &folder).await,
            Err(error) => self.cannot("wait for the command", &error.to_string()).await,
        }
    }

    /// Says that work has begun, and lays out what the command may read.
    async fn prepare(&self, folder: &Scratch) -> Result<Run, Failure> {
        let claimed = self.claimed;
        let until = self.lease.work_end;
        self.desk.start(claimed.envelope.get(), until).await?;
        let prompt = self.desk.prompt(until).await?;
        let envelope: serde_json::Value =
            serde_json::from_str(claimed.envelope.get()).unwrap_or_default();
        let payload = envelope["payload"].to_string();
        let from = serde_json::from_str::<Envelope>(claimed.envelope.get());
        let from = from.map(|envelope| envelope.from_agent.to_string()).unwrap_or_default();
        let whole = serde_json::to_string(claimed).unwrap_or_default();
        let write = |name: &str, text: &str| {
            folder.write(name, text).map_err(|error| {
                Failure::usage(format!("cannot write {name}: {error}"), "look at the disk")
            })
        };
        let prompt = write("prompt.txt", &prompt)?;
        let payload = write("payload.json", &payload)?;
        let whole = write("claim.json", &whole)?;
        let stdin = match self.shop.stdin {
            Stdin::Prompt => Some(&prompt),
            Stdin::Payload => Some(&payload),
            Stdin::Claim => Some(&whole),
            Stdin::Nothing => None,
        };
        let stdin = stdin.and_then(|path| File::open(path).ok());
        let text = |text: &dyn ToString| OsString::from(text.to_string());
        let mut environment = self.shop.client.environment();
        environment.extend([
            ("TASUKI_AGENT", text(&self.shop.agent)),
            ("TASUKI_HANDOFF", text(&claimed.handoff_id)),
            ("TASUKI_TASK", text(&claimed.task_id)),
            ("TASUKI_CLAIM", text(&claimed.claim_id)),
            ("TASUKI_FENCE", text(&claimed.fence)),
            ("TASUKI_ATTEMPT", text(&claimed.attempt)),
            ("TASUKI_FROM", from.into()),
            ("TASUKI_PROMPT_FILE", prompt.clone().into()),
            ("TASUKI_PAYLOAD_FILE", payload.clone().into()),
            ("TASUKI_CLAIM_FILE", whole.clone().into()),
            ("TASUKI_RESULT_FILE", folder.path().join(RESULT).into()),
            ("TASUKI_USAGE_FILE", folder.path().join(USAGE).into()),
        ]);
        Ok(Run {
            program: self.shop.program.clone(),
            arguments: self.shop.arguments.clone(),
            environment,
            stdin,
            name: self.desk.name.clone(),
        })
    }

    async fn report(&self, mut end: End, folder: &Scratch) -> Came {
        let usage = used(folder.path(), &self.desk.name);
        let written = file(folder.path(), RESULT);
        let program = self.shop.name();
        let outcome = match written {
            Some(text) if end.status.success() => Outcome::Result(payload(&text)),
            _ => {
                end.stderr = end.stderr.trim().to_owned();
                self.shop.codes.outcome(&program, end)
            }
        };
        let until = self.until();
        let (told, came) = match &outcome {
            Outcome::Result(result) => {
                let told = self.desk.complete(result, usage.as_ref(), until).await;
                (told, (How::Completed, String::new()))
            }
            Outcome::Failure(failed) => {
                let told = self.desk.fail(failed, usage.as_ref(), until).await;
                (told, (How::Failed, failed.message.clone()))
            }
        };
        match told {
            Ok(()) => came,
            Err(failure) if failure.is_retryable() => (How::Unreported, failure.message),
            Err(failure) if heart::is_over(&failure) => match self.by_itself().await {
                Some(how) => (How::Reported, format!("by the command itself: {how}")),
                None => (How::Lost, failure.message),
            },
            Err(failure) => self.refused(&failure).await,
        }
    }

    /// The broker does not take something that another try would not change.
    async fn refused(&self, failure: &Failure) -> Came {
        if heart::is_over(failure) {
            return (How::Lost, failure.message.clone());
        }
        let advice = failure.advice();
        let failed = Failed {
            class: FailureClass::Permanent,
            kind: failure.code().to_owned(),
            message: format!("{}; {advice}", failure.message),
            stderr: String::new(),
            exit_code: None,
        };
        self.tell_failure(&failed).await
    }

    /// Something on this machine does not work; elsewhere it may.
    async fn cannot(&self, what: &str, why: &str) -> Came {
        let failed = Failed {
            class: FailureClass::Retryable,
            kind: "worker".to_owned(),
            message: format!("the worker cannot {what}: {why}"),
            stderr: String::new(),
            exit_code: None,
        };
        self.tell_failure(&failed).await
    }

    async fn tell_failure(&self, failed: &Failed) -> Came {
        match self.desk.fail(failed, None, self.until()).await {
            Ok(()) => (How::Failed, failed.message.clone()),
            Err(failure) if heart::is_over(&failure) => (How::Lost, failure.message),
            Err(failure) => (How::Unreported, failure.message),
        }
    }

    /// The claim is over. A command that reported by itself may end by itself.
    async fn lost(&self, mut running: Running, why: String) -> Came {
        if let Some(how) = self.by_itself().await {
            let left = self.lease.work_end.saturating_duration_since(Instant::now());
            tokio::select! {
                _ = running.ended() => {}
                () = self.shop.stop.asked() => self.stop(running).await,
                () = tokio::time::sleep(left) => self.stop(running).await,
            }
            return (How::Reported, format!("by the command itself: {how}"));
        }
        tell(&format!("{}| the claim is over, the command is stopped: {why}", self.desk.name));
        self.stop(running).await;
        (How::Lost, why)
    }

    /// How the command ended the claim by itself, if it did.
    async fn by_itself(&self) -> Option<String> {
        const OWN: [&str; 5] = ["completed", "declined", "released", "asked", "put_back"];
        let how = self.desk.ended().await?;
        (OWN.contains(&how.as_str()) || how.starts_with("failed_")).then_some(how)
    }

    async fn stop(&self, running: Running) {
        running.stop(self.shop.grace, self.shop.stop.hurried()).await;
    }

    async fn release(&self) -> Came {
        match self.desk.release(Instant::now() + FAREWELL).await {
            Ok(()) => (How::Released, "the worker stops".to_owned()),
            Err(failure) if heart::is_over(&failure) => (How::Lost, failure.message),
            Err(failure) => (How::Unreported, failure.message),
        }
    }

    /// Until when a report may be tried: as long as the attempt lasts, or not long where the worker stops.
    fn until(&self) -> Instant {
        if self.shop.stop.is_asked() { Instant::now() + FAREWELL } else { self.lease.work_end }
    }
}

const RESULT: &str = "result";
const USAGE: &str = "usage.json";

/// What the command left in a file, if that is anything.
fn file(folder: &Path, name: &str) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    File::open(folder.join(name)).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut text).ok()?;
    (!text.trim_ascii().is_empty()).then_some(text)
}

fn used(folder: &Path, name: &str) -> Option<Used> {
    let text = file(folder, USAGE)?;
    let used = serde_json::from_slice(&text);
    used.map_err(|error| tell(&format!("{name}| what was used is not taken: {error}"))).ok()
}

// SPDX-License-Identifier: Apache-2.0
//! `tasuki work`: a command is an agent. It runs once for each handoff that is claimed; what it writes to stdout is
//! the result, and how it ends says whether there is one.

mod child;
mod desk;
mod heart;
mod job;
mod outcome;
mod shop;

use std::ffi::OsString;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use tasuki_core::event::FailureClass;
use tasuki_core::ids::RequestId;
use tasuki_core::{AgentId, Capability};
use tasuki_protocol as wire;
use tokio::task::JoinSet;

use self::desk::{Patience, failed};
use self::job::{Ended, How, Stdin};
use self::outcome::Codes;
use self::shop::{Shop, Stop};
use crate::args::{AGENT, millis, words};
use crate::client::Connect;
use crate::exit::{Exit, Failure};
use crate::output::{Output, tell};

/// How many may be worked on at a time.
const CONCURRENCY_MAX: u64 = 256;
/// How long one request for work waits.
const POLL: Duration = Duration::from_secs(20);
const POLL_MIN: Duration = Duration::from_secs(1);
/// How long the broker has to notice that a request was given up, before the same is asked again.
const NOTICE: Duration = Duration::from_millis(50);
/// How long a worker that stops asks for what it was granted meanwhile.
const FAREWELL: Duration = Duration::from_secs(2);
/// A broker that is away is waited for as long as this, a year.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

const CODES: &str = "\
The command reads the prompt from stdin and writes the result to stdout: a JSON object, or a text.
Its exit code says what came of it:
  0                       the result is what it wrote
  75                      failed, trying again may help (EX_TEMPFAIL)
  64-68, 77, 78           failed for good: the input or the setup is wrong
  others, and signals     failed; --otherwise says of which class
If the claim is lost, the handoff is cancelled or the worker is stopped, the command gets SIGTERM,
and SIGKILL after --grace. Files and variables that it finds: docs/guides/commands.md";

#[derive(Args)]
#[command(after_help = CODES)]
pub(crate) struct Work {
    #[command(flatten)]
    connect: Connect,
    /// Who works
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    agent: AgentId,
    /// What the agent can do, besides what is addressed to it by name; may be repeated
    #[arg(long = "capability", value_name = "CAPABILITY")]
    capabilities: Vec<Capability>,
    /// How many handoffs to work on at a time
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..=CONCURRENCY_MAX)
    )]
    concurrency: u64,
    /// Work on one handoff and end: with 0 if it is completed, with 1 if not
    #[arg(long, conflicts_with = "concurrency")]
    once: bool,
    /// End after so long without work, with 5 if there was none at all; without it, never
    #[arg(long, value_name = "SPAN", value_parser = millis)]
    wait: Option<u64>,
    /// A lease other than the one in the handoff's terms
    #[arg(long, value_name = "SPAN", value_parser = millis)]
    lease: Option<u64>,
    /// How long a command that is stopped has to end by itself
    #[arg(long, value_name = "SPAN", value_parser = millis, default_value = "10s")]
    grace: u64,
    /// What the command reads from its standard input
    #[arg(long, value_name = "WHAT", default_value = "prompt")]
    stdin: Stdin,
    /// Exit codes after which trying again may help
    #[arg(long, value_name = "CODE", value_delimiter = ',', value_parser = code())]
    retryable: Vec<i32>,
    /// Exit codes after which it will not help
    #[arg(long, value_name = "CODE", value_delimiter = ',', value_parser = code())]
    permanent: Vec<i32>,
    /// What all other exit codes and signals mean
    #[arg(
        long,
        value_parser = words::<FailureClass>(&["retryable", "permanent", "unknown"]),
        default_value = "unknown"
    )]
    otherwise: FailureClass,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

fn code() -> clap::builder::RangedI64ValueParser<i32> {
    clap::value_parser!(i32).range(1..=255)
}

impl Work {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        let client = Arc::new(self.connect.client()?);
        let mut words = self.command.into_iter();
        let program = shop::program(&words.next().unwrap_or_default())?;
        let shop = Arc::new(Shop {
            client,
            agent: self.agent.clone(),
            program,
            arguments: words.collect(),
            stdin: self.stdin,
            grace: Duration::from_millis(self.grace),
            codes: Codes {
                retryable: self.retryable,
                permanent: self.permanent,
                otherwise: self.otherwise,
            },
            stop: Stop::listen()?,
        });
        let asking = wire::Claim {
            agent: self.agent,
            capabilities: self.capabilities,
            max: 1,
            wait_ms: 0,
            lease_ms: self.lease,
            request_id: None,
            majors: Vec::new(),
        };
        let wait = self.wait.map(Duration::from_millis);
        let concurrency = usize::try_from(self.concurrency).unwrap_or(1);
        let worker = Worker { shop, output, asking, concurrency, once: self.once, wait };
        Box::pin(worker.run()).await
    }
}

struct Worker {
    shop: Arc<Shop>,
    output: Output,
    asking: wire::Claim,
    concurrency: usize,
    once: bool,
    wait: Option<Duration>,
}

/// What was done so far.
#[derive(Default)]
struct Tally {
    taken: usize,
    not_completed: usize,
}

impl Worker {
    async fn run(self) -> anyhow::Result<Exit> {
        let stop = &self.shop.stop;
        let mut jobs = JoinSet::new();
        let mut tally = Tally::default();
        let mut idle_since = Instant::now();
        self.greet();
        let mut refused = None;
        loop {
            while let Some(ended) = jobs.try_join_next() {
                tally.not_completed += self.ended(ended)?;
            }
            if !jobs.is_empty() {
                idle_since = Instant::now();
            }
            if stop.is_asked() || self.once && tally.taken > 0 {
                break;
            }
            if jobs.len() >= self.concurrency {
                tokio::select! {
                    Some(ended) = jobs.join_next() => tally.not_completed += self.ended(ended)?,
                    () = stop.asked() => {}
                }
                continue;
            }
            let left = self.wait.map(|wait| wait.saturating_sub(idle_since.elapsed()));
            let free = self.concurrency - jobs.len();
            // While something is under way, there is no end to be waited for.
            let least = if jobs.is_empty() { Duration::ZERO } else { POLL_MIN };
            let wait = left.map_or(POLL, |left| left.clamp(least, POLL));
            let claims = match self.poll(free, wait).await {
                Ok(claims) => claims,
                Err(failure) => {
                    refused = Some(failure);
                    break;
                }
            };
            if claims.is_empty() && jobs.is_empty() && left.is_some_and(|left| left.is_zero()) {
                break;
            }
            tally.taken += claims.len();
            for claimed in claims {
                self.start(&mut jobs, claimed);
            }
        }
        while let Some(ended) = jobs.join_next().await {
            tally.not_completed += self.ended(ended)?;
        }
        Ok(match (refused, &tally) {
            (Some(failure), _) => return Err(failure.into()),
            (None, Tally { taken: 0, .. }) if !stop.is_asked() => Exit::Nothing,
            (None, Tally { not_completed: 1.., .. }) if self.once => Exit::Refused,
            _ => Exit::Done,
        })
    }

    fn greet(&self) {
        let able = self.asking.capabilities.iter().map(|it| format!(", {it}"));
        let times = match self.concurrency {
            1 => String::new(),
            several => format!(", {several} at a time"),
        };
        tell(&format!(
            "{} works with {} on what is for {}{}{times}",
            self.shop.agent,
            self.shop.name(),
            self.shop.agent,
            able.collect::<String>()
        ));
    }

    fn start(&self, jobs: &mut JoinSet<Ended>, claimed: wire::Claimed) {
        let asked = Instant::now();
        tell(&format!("took      {} (attempt {})", claimed.handoff_id, claimed.attempt));
        let shop = self.shop.clone();
        jobs.spawn(async move { job::work(&shop, &claimed, asked).await });
    }

    /// Says what became of a piece of work; 1 where it is not completed.
    fn ended(&self, ended: Result<Ended, tokio::task::JoinError>) -> anyhow::Result<usize> {
        let ended = ended?;
        if self.output.json {
            self.output.found(&ended, |_| String::new())?;
        }
        tell(&ended.line());
        Ok(usize::from(!matches!(ended.ended, How::Completed | How::Reported)))
    }

    /// Asks for work once. A broker that is away is waited for, and asked the same again, since what it
    /// answered may have been lost on the way.
    async fn poll(&self, free: usize, wait: Duration) -> Result<Vec<wire::Claimed>, Failure> {
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(0);
        let request_id = Some(fresh()?);
        let mut body = wire::Claim { max: free, wait_ms, request_id, ..self.asking.clone() };
        let mut patience = Patience::until(Instant::now() + LONGEST);
        let mut is_away = false;
        loop {
            let asked = tokio::select! {
                answer = self.claims(&body) => answer,
                () = self.shop.stop.asked() => {
                    self.give_back(&mut body).await;
                    return Ok(Vec::new());
                }
            };
            match asked {
                Err(failure) if failure.is_retryable() => {
                    if !is_away {
                        tell(&format!("waiting for the broker: {}", failure.message));
                    }
                    is_away = true;
                    tokio::select! {
                        _ = patience.wait() => {}
                        () = self.shop.stop.asked() => return Ok(Vec::new()),
                    }
                }
                answer => return answer,
            }
        }
    }

    async fn claims(&self, body: &wire::Claim) -> Result<Vec<wire::Claimed>, Failure> {
        let answer = self.shop.client.post_waiting("/v1/claims", body, body.wait_ms).await;
        let claims = serde_json::from_str::<wire::Claims>(&answer.map_err(failed)?);
        claims.map(|it| it.claims).map_err(|error| failed(error.into()))
    }

    /// Gives back what was granted to a request that nobody waits for any more.
    async fn give_back(&self, body: &mut wire::Claim) {
        body.wait_ms = 0;
        tokio::time::sleep(NOTICE).await;
        let Ok(Ok(claims)) = tokio::time::timeout(FAREWELL, self.claims(body)).await else {
            // The end of the lease does it.
            return;
        };
        for claimed in claims {
            let wire::Claimed { handoff_id, claim_id, fence, .. } = claimed;
            let body = wire::Held { claim_id, fence };
            let path = format!("/v1/handoffs/{handoff_id}/release");
            let _ = tokio::time::timeout(FAREWELL, self.shop.client.post(&path, &body)).await;
        }
    }
}

fn fresh() -> Result<RequestId, Failure> {
    let mut random = [0_u8; 16];
    getrandom::fill(&mut random).map_err(|error| failed(anyhow::Error::from(error)))?;
    let text: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    text.parse().map_err(|error| failed(anyhow::anyhow!("{error}")))
}

// SPDX-License-Identifier: Apache-2.0
//! The way to a broker: one request, one answer, or a failure that says what to do.

use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use reqwest::{RequestBuilder, Response};
use serde::Serialize;

use crate::cli::COMMON;
use crate::exit::{Exit, Failure};

pub(crate) const DEFAULT_URL: &str = "http://127.0.0.1:8788";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an answer may take beyond the time the broker was asked to wait.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the broker waits at most in one call; a longer wait is made of several.
const WAIT_MS_MAX: u64 = 50_000;
/// Nobody waits longer than this: a year.
const LONGEST_MS: u64 = 365 * 24 * 60 * 60 * 1000;
/// An answer this much before its time did not wait for the time.
const EARLY: Duration = Duration::from_millis(500);

/// Which broker to talk to.
#[derive(Debug, Clone, Args)]
pub(crate) struct Connect {
    /// The broker's URL
    #[arg(
        long,
        env = "TASUKI_URL",
        hide_env_values = true,
        default_value = DEFAULT_URL,
        global = true,
        help_heading = COMMON,
        value_name = "URL"
    )]
    pub(crate) url: String,
}

pub(crate) struct Client {
    http: reqwest::Client,
    url: String,
}

impl Connect {
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            // The broker is near; a proxy for the rest of the world would only be in the way.
            .no_proxy()
            .build()
            .context("cannot set up HTTP")?;
        let url = self.url.trim_end_matches('/').to_owned();
        if !url.starts_with("http://") {
            let hint = "give a URL that begins with http://, as `tasuki serve` prints it";
            return Err(Failure::usage(format!("{url:?} is no broker's URL"), hint).into());
        }
        Ok(Client { http, url })
    }

    /// Whether a broker was asked for by name.
    pub(crate) fn is_default(&self) -> bool {
        self.url == DEFAULT_URL
    }
}

pub(crate) type Query<'q> = [(&'q str, Option<String>)];

impl Client {
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// A command that continues with the same broker.
    pub(crate) fn command(&self, words: &str) -> String {
        let known = std::env::var("TASUKI_URL").unwrap_or_else(|_| DEFAULT_URL.into());
        if known.trim_end_matches('/') == self.url {
            return format!("tasuki {words}");
        }
        format!("tasuki {words} --url {}", self.url)
    }

    pub(crate) async fn get(&self, path: &str, query: &Query<'_>) -> anyhow::Result<String> {
        let request = self.read(path, query).timeout(ANSWER_TIMEOUT);
        self.text(request).await
    }

    /// Gets what the broker may need any amount of time for.
    pub(crate) async fn get_slowly(&self, path: &str) -> anyhow::Result<String> {
        self.text(self.read(path, &[])).await
    }

    pub(crate) async fn post<T: Serialize>(&self, path: &str, body: &T) -> anyhow::Result<String> {
        self.post_waiting(path, body, 0).await
    }

    /// Posts what the broker may take this much time to answer.
    pub(crate) async fn post_waiting<T: Serialize>(
        &self,
        path: &str,
        body: &T,
        wait_ms: u64,
    ) -> anyhow::Result<String> {
        let timeout = ANSWER_TIMEOUT + Duration::from_millis(wait_ms);
        let request = self.http.post(self.at(path)).json(body).timeout(timeout);
        self.text(request).await
    }

    /// An answer that comes piece by piece and takes as long as it takes.
    pub(crate) async fn stream(&self, path: &str, query: &Query<'_>) -> anyhow::Result<Response> {
        self.send(self.read(path, query)).await
    }

    fn read(&self, path: &str, query: &Query<'_>) -> RequestBuilder {
        let mut url = self.at(path);
        let given = query.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        for (number, (name, value)) in given.enumerate() {
            url.push(if number == 0 { '?' } else { '&' });
            url.push_str(name);
            url.push('=');
            url.push_str(&escaped(value));
        }
        self.http.get(url)
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    async fn text(&self, request: RequestBuilder) -> anyhow::Result<String> {
        let answer = self.send(request).await?;
        Ok(answer.text().await.map_err(|error| self.unreachable(&error))?)
    }

    /// The status and the text of an answer, whatever the status.
    pub(crate) async fn probe(&self, path: &str) -> Result<(u16, String), Failure> {
        let request = self.read(path, &[]).timeout(ANSWER_TIMEOUT);
        let answer = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = answer.status().as_u16();
        let text = answer.text().await.map_err(|error| self.unreachable(&error))?;
        Ok((status, text))
    }

    async fn send(&self, request: RequestBuilder) -> anyhow::Result<Response> {
        let answer = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let text = answer.text().await.map_err(|error| self.unreachable(&error))?;
        Err(Failure::refused(status.as_u16(), text).into())
    }

    pub(crate) fn unreachable(&self, error: &reqwest::Error) -> Failure {
        let url = &self.url;
        if error.is_builder() {
            let hint = "give a URL such as http://127.0.0.1:8788";
            return Failure::usage(format!("{url:?} is no broker's URL"), hint);
        }
        let why = innermost(error);
        if error.is_connect() {
            return Failure::new(
                Exit::Unavailable,
                format!("no broker answers at {url} ({why})"),
                "start one with `tasuki serve`, or name another with --url",
            )
            .next("tasuki serve");
        }
        // The request may have been carried out all the same.
        Failure::new(
            Exit::Unavailable,
            format!("the broker at {url} did not finish its answer ({why})"),
            "check it, then repeat the command; what has a key or a claim is safe to repeat",
        )
        .next(self.command("doctor"))
    }
}

/// Asks again and again, each time with how long the broker may wait, until the answer is what was
/// waited for, the time is up, or the broker ends the wait early because it is going away.
pub(crate) async fn until<T>(
    wait_ms: u64,
    mut ask: impl AsyncFnMut(u64) -> anyhow::Result<T>,
    is_enough: impl Fn(&T) -> bool,
) -> anyhow::Result<T> {
    let end = Instant::now() + Duration::from_millis(wait_ms.min(LONGEST_MS));
    loop {
        let asked = Instant::now();
        let left = end.saturating_duration_since(asked);
        let slice_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX).min(WAIT_MS_MAX);
        let answer = ask(slice_ms).await?;
        let cut_short = asked.elapsed() + EARLY < Duration::from_millis(slice_ms);
        if is_enough(&answer) || cut_short || Instant::now() >= end {
            return Ok(answer);
        }
    }
}

fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// A value as it may stand in a query.
fn escaped(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte);
    value
        .bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

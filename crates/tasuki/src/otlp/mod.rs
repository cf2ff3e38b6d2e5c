// SPDX-License-Identifier: Apache-2.0
//! Posts spans to a receiver of OpenTelemetry's protocol over HTTP. The operator names it, so unlike
//! the URLs of agents it may be anywhere.

mod encode;

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, StatusCode, Url, redirect};
use tasuki_core::trace::Span;
use tasuki_engine::{NotExported, SpanExporter};

use self::encode::Resource;
use crate::exit::Failure;

/// How long one request may take.
const POST_MAX: Duration = Duration::from_secs(10);
/// Where receivers take traces, where the URL does not say.
const PATH: &str = "v1/traces";
/// How much of an answer is read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Where spans go, and what is shown there.
#[derive(Debug, Clone)]
pub(crate) struct Receiver {
    pub(crate) url: Url,
    headers: HeaderMap,
}

impl Receiver {
    /// From a URL and a file of headers, one `name: value` in each line.
    pub(crate) fn new(url: &str, headers: Option<&Path>) -> Result<Self, Failure> {
        let wrong = |problem: String| Failure::usage(problem, "correct it and start again");
        let mut url: Url = url.parse().map_err(|error| wrong(format!("otlp_url: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            let hint = "expected http:// or https:// and a host, such as http://127.0.0.1:4318";
            return Err(wrong(format!("otlp_url: {hint}")));
        }
        if url.path() == "/" {
            url.set_path(PATH);
        }
        let mut told = HeaderMap::new();
        if let Some(path) = headers {
            let name = path.display();
            let text = std::fs::read_to_string(path).map_err(|error| {
                let hint = "name a file that can be read with --otlp-headers-file";
                Failure::usage(format!("cannot read the headers in {name}: {error}"), hint)
            })?;
            for line in text.lines().filter(|line| !line.trim().is_empty()) {
                let pair = line.split_once(':').and_then(|(name, value)| {
                    let name: HeaderName = name.trim().parse().ok()?;
                    let mut value: HeaderValue = value.trim().parse().ok()?;
                    value.set_sensitive(true);
                    Some((name, value))
                });
                // The line is a secret; its number is not.
                let (header, value) = pair.ok_or_else(|| {
                    wrong(format!("the headers in {name} have a line that is not `name: value`"))
                })?;
                told.append(header, value);
            }
        }
        Ok(Self { url, headers: told })
    }
}

pub(crate) struct Exporter {
    http: Client,
    receiver: Receiver,
    resource: Resource,
}

impl Exporter {
    pub(crate) fn new(receiver: Receiver, instance: String) -> anyhow::Result<Self> {
        let http = Client::builder()
            .timeout(POST_MAX)
            .redirect(redirect::Policy::none())
            .user_agent(concat!("tasuki/", env!("CARGO_PKG_VERSION")))
            .build()
            .context("cannot prepare to send traces")?;
        let version = env!("CARGO_PKG_VERSION");
        let resource = Resource { service: "tasuki", version, instance };
        Ok(Self { http, receiver, resource })
    }
}

#[async_trait]
impl SpanExporter for Exporter {
    async fn export(&self, spans: &[Span]) -> Result<u64, NotExported> {
        let later = |error: reqwest::Error| NotExported::Later {
            // The URL may have a secret in it.
            problem: error.without_url().to_string(),
            after_ms: None,
        };
        let answer = self
            .http
            .post(self.receiver.url.clone())
            .headers(self.receiver.headers.clone())
            .header(CONTENT_TYPE, "application/x-protobuf")
            .body(encode::request(&self.resource, spans))
            .send()
            .await
            .map_err(later)?;
        let status = answer.status();
        if !status.is_success() {
            return Err(not_taken(status, answer.headers()));
        }
        let Ok(body) = read(answer).await else { return Ok(0) };
        match encode::refused(&body) {
            Some((0, _)) | None => Ok(0),
            Some((count, why)) => {
                tracing::debug!(count, why, "the receiver of traces refused some spans");
                Ok(count)
            }
        }
    }
}

/// What the protocol says about answers that are no success.
fn not_taken(status: StatusCode, headers: &HeaderMap) -> NotExported {
    let problem = format!("it answered {status}");
    let retryable = matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    );
    if !retryable {
        return NotExported::Never { problem };
    }
    let after = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    NotExported::Later { problem, after_ms: after.map(|seconds| seconds.saturating_mul(1000)) }
}

async fn read(mut answer: reqwest::Response) -> Result<Vec<u8>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await? {
        if body.len() + piece.len() > ANSWER_BYTES_MAX {
            break;
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

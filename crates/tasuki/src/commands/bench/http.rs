// SPDX-License-Identifier: Apache-2.0
//! A bare HTTP/1.1 connection: on a small machine the client shares the cores with the server, so
//! it must cost little.

use anyhow::{Context, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

pub(super) struct Connection {
    send: SendRequest<Full<Bytes>>,
    host: String,
}

impl Connection {
    pub(super) async fn open(host: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(host).await.with_context(|| {
            format!("no broker answers at {host}; start one with `tasuki serve`")
        })?;
        stream.set_nodelay(true)?;
        let (send, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(async move {
            // The next request on it reports why it ended.
            let _ = connection.await;
        });
        Ok(Self { send, host: host.to_owned() })
    }

    pub(super) async fn post(&mut self, path: &str, body: Bytes) -> anyhow::Result<Bytes> {
        self.request("POST", path, body).await
    }

    async fn request(&mut self, method: &str, path: &str, body: Bytes) -> anyhow::Result<Bytes> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", &self.host)
            .header("content-type", "application/json")
            .body(Full::new(body))?;
        let response = self.send.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        if !status.is_success() {
            bail!("{method} {path} answered {status}: {}", String::from_utf8_lossy(&body));
        }
        Ok(body)
    }
}

/// What the broker says of itself.
pub(super) async fn stats(host: &str) -> anyhow::Result<Value> {
    let mut http = Connection::open(host).await?;
    Ok(serde_json::from_slice(&http.request("GET", "/v1/stats", Bytes::new()).await?)?)
}

/// The host and port of a URL.
pub(super) fn host(url: &str) -> anyhow::Result<String> {
    let host = url.strip_prefix("http://").context("the URL must begin with http://")?;
    Ok(host.trim_end_matches('/').to_owned())
}

pub(super) fn number(stats: &Value, name: &str) -> f64 {
    stats[name].as_f64().unwrap_or(0.0)
}

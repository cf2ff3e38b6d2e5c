// SPDX-License-Identifier: Apache-2.0
//! Carries claimed work to an agent's URL: one POST, signed by the broker, to an address that was
//! checked first. The name is resolved once and the connection goes to what came out of it, so that
//! a name that means something else a moment later gains nothing. Redirects are not followed, and
//! what comes back is bounded in size and, by who sends the parcel, in time.

mod outside;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{self, HeaderValue};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tasuki_core::address::{Endpoint, Guard, Host};
use tasuki_core::canonical;
use tasuki_core::identity::{self, SecretKey, digest, message};
use tasuki_core::trace::MEMBERS;
use tasuki_engine::operations::{self, Facts, Given, Operation, claims};
use tasuki_engine::{Answer, Courier, Granted, Message, Messenger, Parcel, TRACE_BYTES_MAX};
use tasuki_protocol::Problem;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::WantsClientCert;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, ConfigBuilder, RootCertStore};

use crate::{to_wire, wire};

/// How long one attempt to connect may take.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// How many addresses of one name are tried.
const ADDRESSES_MAX: usize = 4;
/// How much of an answer is read.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How long the broker's signature counts, in seconds.
const VALIDITY_S: i64 = 60;
/// The longest that an agent may ask the broker to wait before the next attempt.
const RETRY_AFTER_S_MAX: u64 = 24 * 60 * 60;

/// Looks names up.
#[async_trait]
pub trait Resolver: Send + Sync + 'static {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// What the system knows.
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((host, port)).await?.collect())
    }
}

/// Posts to URLs.
pub struct Poster {
    guard: Guard,
    signer: Option<Arc<SecretKey>>,
    resolver: Arc<dyn Resolver>,
    tls: TlsConnector,
    /// Whom the system trusts.
    roots: Arc<RootCertStore>,
}

impl Poster {
    /// Trusts the certificates that the system trusts.
    #[must_use]
    pub fn new(guard: Guard, signer: Option<Arc<SecretKey>>, resolver: Arc<dyn Resolver>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let roots = Arc::new(roots);
        let tls = TlsConnector::from(Arc::new(builder(&roots).with_no_client_auth()));
        Self { guard, signer, resolver, tls, roots }
    }

    /// The addresses behind a URL, each of them checked.
    async fn addresses(&self, endpoint: &Endpoint) -> Result<Vec<SocketAddr>, String> {
        self.guard.check_host(&endpoint.host)?;
        let found = match &endpoint.host {
            Host::Address(address) => vec![SocketAddr::new(*address, endpoint.port)],
            Host::Name(name) => {
                let found = self.resolver.resolve(name, endpoint.port).await;
                found.map_err(|error| format!("{name} cannot be looked up: {error}"))?
            }
        };
        // One bad address among good ones is reason enough: whoever answers so is up to something.
        for address in &found {
            self.guard.check(address.ip())?;
        }
        if found.is_empty() {
            return Err(format!("{} has no address", endpoint.host_text));
        }
        Ok(found)
    }

    async fn connect(&self, endpoint: &Endpoint) -> Result<TcpStream, String> {
        let mut last = String::new();
        for address in self.addresses(endpoint).await?.into_iter().take(ADDRESSES_MAX) {
            match tokio::time::timeout(CONNECT_MAX, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last = format!("{address}: {error}"),
                Err(_) => last = format!("{address}: no connection within {CONNECT_MAX:?}"),
            }
        }
        Err(format!("cannot connect to {last}"))
    }

    async fn carried(&self, parcel: &Parcel) -> Result<Answer, String> {
        let claimed = to_wire::claimed(&parcel.granted).map_err(|problem| problem.message)?;
        let body = serde_json::to_vec(&claimed).map_err(|error| error.to_string())?;
        let (url, now, nonce) = (parcel.url.clone(), parcel.now, parcel.nonce.clone());
        let (content_type, headers) = ("application/json", trace(&parcel.granted));
        let said = self.post(Message { url, content_type, headers, body, now, nonce }).await?;
        Ok(answer(said.status, said.retry_after_ms, &said.body, parcel))
    }

    async fn post(&self, message: Message) -> Result<Said, String> {
        let endpoint = Endpoint::parse(&message.url)?;
        let request = self.request(&endpoint, message)?;
        let stream = self.connect(&endpoint).await?;
        if !endpoint.tls {
            return exchange(stream, request).await;
        }
        exchange(secured(&self.tls, &endpoint, stream).await?, request).await
    }

    fn request(
        &self,
        endpoint: &Endpoint,
        message: Message,
    ) -> Result<Request<Full<Bytes>>, String> {
        let Message { body, now, nonce, content_type, headers, .. } = message;
        let digest = digest::of(&body);
        let authority = endpoint.authority();
        let mut request = Request::post(endpoint.target())
            .header(header::HOST, &authority)
            .header(header::USER_AGENT, concat!("tasuki/", env!("CARGO_PKG_VERSION")))
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, content_type)
            .header(header::CONNECTION, "close")
            .header("content-digest", &digest);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if let Some(signer) = &self.signer {
            let signed = identity::Request {
                method: "POST",
                authority: &authority,
                path: &endpoint.path,
                query: endpoint.query.as_deref(),
                content_digest: Some(&digest),
            };
            let created = now.0.div_euclid(1000);
            let expires = created + VALIDITY_S;
            let signed = message::sign(&signed, signer, created, expires, &nonce, None);
            let (input, signature) = signed.map_err(|fault| fault.to_string())?;
            request = request.header("signature-input", input).header("signature", signature);
        }
        request.body(Full::new(Bytes::from(body))).map_err(|error| error.to_string())
    }
}

/// What every connection by TLS has in common.
fn builder(roots: &Arc<RootCertStore>) -> ConfigBuilder<ClientConfig, WantsClientCert> {
    let provider = Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider knows the versions that are safe")
        .with_root_certificates(roots.clone())
}

async fn secured(
    tls: &TlsConnector,
    endpoint: &Endpoint,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, String> {
    let name = match &endpoint.host {
        Host::Name(name) => ServerName::try_from(name.trim_end_matches('.').to_owned())
            .map_err(|error| format!("{name} has no certificate: {error}"))?,
        Host::Address(IpAddr::V4(address)) => ServerName::from(IpAddr::V4(*address)),
        Host::Address(IpAddr::V6(address)) => ServerName::from(IpAddr::V6(*address)),
    };
    let secured = tokio::time::timeout(CONNECT_MAX, tls.connect(name, stream)).await;
    secured
        .map_err(|_| format!("no secure connection within {CONNECT_MAX:?}"))?
        .map_err(|error| format!("no secure connection: {error}"))
}

#[async_trait]
impl Courier for Poster {
    async fn carry(&self, parcel: Parcel) -> Answer {
        match self.carried(&parcel).await {
            Ok(answer) => answer,
            Err(problem) => Answer::Unclear { problem, retry_after_ms: None },
        }
    }
}

/// The trace that an envelope was made in, as headers: whoever gets it goes on with that trace.
fn trace(granted: &Granted) -> Vec<(String, String)> {
    #[derive(Deserialize)]
    struct Head {
        #[serde(default)]
        metadata: serde_json::Map<String, Value>,
    }
    if granted.handoff.contract.trace.is_none() {
        return Vec::new();
    }
    let text = granted.envelope.as_ref().map(|envelope| envelope.text());
    let head = text.and_then(|text| serde_json::from_str::<Head>(text).ok());
    let Some(Head { metadata }) = head else { return Vec::new() };
    let member = |name: &str| Some((name.to_owned(), metadata.get(name)?.as_str()?.to_owned()));
    // What came as text in an envelope need not do as a header.
    let does = |(_, value): &(String, String)| {
        value.len() <= TRACE_BYTES_MAX && HeaderValue::from_str(value).is_ok()
    };
    MEMBERS.into_iter().filter_map(member).filter(does).collect()
}

/// How long a notice may take.
const NOTICE_MAX: Duration = Duration::from_secs(10);

#[async_trait]
impl Messenger for Poster {
    async fn send(&self, message: Message) -> Result<(), String> {
        let posted = tokio::time::timeout(NOTICE_MAX, self.post(message)).await;
        let said = posted.map_err(|_| format!("no answer within {NOTICE_MAX:?}"))??;
        match said.status.is_success() {
            true => Ok(()),
            false => Err(format!("it answered {}", said.status)),
        }
    }
}

/// What came back.
struct Said {
    status: StatusCode,
    retry_after_ms: Option<u64>,
    body: Bytes,
}

async fn exchange<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    request: Request<Full<Bytes>>,
) -> Result<Said, String> {
    let mut client = http1::Builder::new();
    client.max_buf_size(HEAD_BYTES_MAX);
    let opened = client.handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = opened.map_err(|error| broken(&error))?;
    // Both ends live and die with this call: nothing is left behind when it is given up.
    let exchange = async {
        let response = sender.send_request(request).await.map_err(|error| broken(&error))?;
        let status = response.status();
        let retry_after_ms = response.headers().get(header::RETRY_AFTER).and_then(seconds);
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX);
        let body = body.collect().await;
        let body = body.map_err(|error| format!("{status}, and the answer broke off: {error}"))?;
        Ok(Said { status, retry_after_ms, body: body.to_bytes() })
    };
    tokio::pin!(exchange);
    tokio::select! {
        answer = &mut exchange => answer,
        ended = connection => match ended {
            Err(error) => Err(broken(&error)),
            Ok(()) => exchange.await,
        },
    }
}

fn broken(error: &hyper::Error) -> String {
    format!("the connection broke off: {error}")
}

fn seconds(value: &HeaderValue) -> Option<u64> {
    let seconds: u64 = value.to_str().ok()?.trim().parse().ok()?;
    Some(seconds.min(RETRY_AFTER_S_MAX) * 1000)
}

/// What an agent answers is read as if it had asked for the operation.
fn asked<T: DeserializeOwned + 'static>(facts: &Facts, said: &Value) -> Result<T, Problem> {
    operations::entry(facts).asked(Given::Value(said), |_| Ok(()))
}

/// What an agent may say instead of a result.
#[derive(Deserialize)]
struct Word {
    outcome: String,
    reason: Option<String>,
}

fn answer(status: StatusCode, retry_after_ms: Option<u64>, body: &[u8], parcel: &Parcel) -> Answer {
    let unclear = |problem: String| Answer::Unclear { problem, retry_after_ms };
    if status == StatusCode::ACCEPTED {
        return Answer::Accepted;
    }
    if status.is_redirection() {
        return unclear(format!("{status}: redirects are not followed"));
    }
    let said = (status.is_success() || status.is_client_error())
        .then(|| canonical::parse(body).ok())
        .flatten();
    let word: Option<Word> = said.clone().and_then(|said| serde_json::from_value(said).ok());
    match (word.as_ref().map(|word| word.outcome.as_str()), said) {
        (Some("declined"), _) => {
            return Answer::Declined { reason: word.and_then(|word| word.reason) };
        }
        (Some("failed"), Some(said)) => {
            let report = claimed(said, parcel).and_then(|said| {
                asked::<wire::Fail>(&claims::Fail::FACTS, &said).map_err(|problem| problem.message)
            });
            return match report {
                Ok(mut report) => {
                    report.retry_after_ms = report.retry_after_ms.or(retry_after_ms);
                    Answer::Failed(Box::new(report))
                }
                Err(problem) => unclear(format!("{status}, and no report of a failure: {problem}")),
            };
        }
        (None | Some("completed"), Some(said)) if status.is_success() => {
            let result = claimed(said, parcel).and_then(|said| {
                asked::<wire::Complete>(&claims::Complete::FACTS, &said)
                    .map_err(|problem| problem.message)
            });
            return match result {
                Ok(result) => Answer::Completed(Box::new(result)),
                Err(problem) => unclear(format!("{status}, and no result: {problem}")),
            };
        }
        _ => {}
    }
    if status.is_success() {
        return unclear(format!("{status} without a result; 202 says that it will come"));
    }
    unclear(format!("the agent answered {status}"))
}

/// An answer as its report would be sent by the agent itself, with the claim that it was given.
fn claimed(said: Value, parcel: &Parcel) -> Result<Value, String> {
    let Value::Object(mut said) = said else { return Err("expected an object".into()) };
    said.remove("outcome");
    let proof = parcel.proof;
    for (name, value) in [
        ("claim_id", serde_json::to_value(proof.claim_id)),
        ("fence", serde_json::to_value(proof.fence)),
    ] {
        said.insert(name.into(), value.map_err(|error| error.to_string())?);
    }
    Ok(Value::Object(said))
}

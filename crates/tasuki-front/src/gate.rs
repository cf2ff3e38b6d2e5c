// SPDX-License-Identifier: Apache-2.0
//! What every request passes: the host it names, the rate it comes at, a net for panics, and an id
//! by which it is found in the log.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::error::Failed;
use crate::seats::network;
use crate::serve::CameBy;
use crate::{Front, Limits, auth, body};
use tasuki_engine::Lobby;
use tasuki_protocol::{Code, Problem};

struct Gate {
    lobby: Lobby,
    limits: Arc<Limits>,
    rate: Option<DefaultKeyedRateLimiter<IpAddr>>,
    requests: AtomicU64,
    started: u64,
}

/// What pages may load: their own style, and nothing from anywhere.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
                           form-action 'none'; frame-ancestors 'none'";
const API_POLICY: &str = "default-src 'none'; frame-ancestors 'none'";

/// How many requests pass between two clean-ups of the rate limiter's memory.
const CLEAN_UP_EVERY: u64 = 100_000;

/// Lets nothing through to a router that does not pass the gate.
pub fn around(router: Router<Front>, front: &Front) -> Router<Front> {
    let per_second = std::num::NonZeroU32::new(front.limits.requests_per_second);
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let gate = Arc::new(Gate {
        lobby: front.lobby.clone(),
        limits: front.limits.clone(),
        rate: per_second.map(|rate| RateLimiter::keyed(Quota::per_second(rate))),
        requests: AtomicU64::new(0),
        started: since_1970.map_or(0, |span| span.as_secs()),
    });
    router.layer(middleware::from_fn_with_state(gate, pass))
}

/// The id by which a request is found in the log.
#[derive(Clone)]
pub(crate) struct RequestId(pub(crate) Arc<str>);

async fn pass(State(gate): State<Arc<Gate>>, mut request: Request, next: Next) -> Response {
    let number = gate.requests.fetch_add(1, Ordering::Relaxed);
    let id: Arc<str> = format!("{:x}-{number:x}", gate.started).into();
    request.extensions_mut().insert(RequestId(id.clone()));
    let secure = request.extensions().get::<CameBy>().is_some_and(|by| by.secure);
    let checked = gate
        .check_host(&request)
        .and_then(|()| check_site(&request))
        .and_then(|()| gate.check_rate(&request, number));
    let response = match checked {
        Err(failed) => {
            if let Some(code @ (Code::CrossSite | Code::HostNotAllowed)) = failed.0.known() {
                let from = auth::from(request.extensions());
                gate.lobby.note_stranger(&from, code, request.uri().path());
            }
            failed.into_response()
        }
        Ok(()) => match AssertUnwindSafe(next.run(request)).catch_unwind().await {
            Ok(response) => response,
            Err(_) => Failed(Problem::new(
                Code::Internal,
                "the broker made a mistake",
                "report it with the request id; the broker's log has more",
            ))
            .into_response(),
        },
    };
    let mut response = name(response, &id);
    protect(&mut response, secure);
    response
}

/// What browsers are told about every reply. A page that needs more says so itself.
fn protect(response: &mut Response, secure: bool) {
    let is_page = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    let policy = if is_page { PAGE_POLICY } else { API_POLICY };
    let mut given = vec![
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    if secure {
        given.push((header::STRICT_TRANSPORT_SECURITY, "max-age=31536000"));
    }
    for (name, value) in given {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
}

/// A page of another site must not act here in the place of whoever looks at it: browsers say from
/// where a request comes, and programs say nothing.
fn check_site(request: &Request) -> Result<(), Failed> {
    if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
        return Ok(());
    }
    // Every value counts: a second one must not hide behind the first.
    let headers = |name: &str| {
        let values = request.headers().get_all(name).iter();
        values.map(|value| value.to_str().unwrap_or_default())
    };
    let own = headers("host").next().or_else(|| request.uri().authority().map(|it| it.as_str()));
    let is_own = |origin: &&str| {
        let named = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        named.zip(own).is_some_and(|(named, own)| named.eq_ignore_ascii_case(own))
    };
    let mut sites = headers("sec-fetch-site");
    let elsewhere = sites
        .find(|site| !matches!(*site, "same-origin" | "none"))
        .or_else(|| headers("origin").find(|origin| !is_own(origin)));
    match elsewhere {
        None => Ok(()),
        Some(from) => Err(Problem::new(
            Code::CrossSite,
            format!("a page of another site sent this ({from:?})"),
            "send it from the broker's own pages, or from a program",
        )
        .into()),
    }
}

/// Puts the request's id on the response, and into the body if it is an error.
fn name(mut response: Response, id: &str) -> Response {
    if let Some(problem) = response.extensions_mut().remove::<Arc<Problem>>() {
        let mut problem = Arc::unwrap_or_clone(problem);
        problem.request_id = id.to_owned();
        if problem.status() >= 500 {
            tracing::warn!(request_id = id, code = problem.code, message = problem.message);
        }
        let headers = std::mem::take(response.headers_mut());
        response = body::reply(response.status(), &problem);
        for (name, value) in headers.iter().filter(|(name, _)| *name != header::CONTENT_LENGTH) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    if let Ok(id) = HeaderValue::from_str(id) {
        response.headers_mut().insert("x-request-id", id);
    }
    response
}

impl Gate {
    /// A page in a browser can be made to reach a loopback address under a name of its own. It
    /// then names that host, which is not ours.
    fn check_host(&self, request: &Request) -> Result<(), Failed> {
        let mut named = request.headers().get_all(header::HOST).iter();
        let host = match (named.next(), named.next()) {
            (None, _) => request.uri().host().unwrap_or("localhost"),
            // What cannot be read is not ours.
            (Some(host), None) => host.to_str().unwrap_or_default(),
            (Some(_), Some(_)) => "",
        };
        // A request that names one in its target as well must not mean somebody else by it.
        let uri = request.uri().authority().map(|authority| authority.as_str());
        let asked = [Some(host), uri].into_iter().flatten().map(host_name);
        let is_ours = |name: &str| {
            let known = |known: &String| known == "*" || known.eq_ignore_ascii_case(name);
            is_this_machine(name) || self.limits.hosts.iter().any(known)
        };
        let Some(other) = asked.into_iter().find(|name| !is_ours(name)) else { return Ok(()) };
        Err(Problem::new(
            Code::HostNotAllowed,
            format!("this broker does not answer for the host {other:?}"),
            "use the address it printed at its start, or add the host with --host",
        )
        .into())
    }

    fn check_rate(&self, request: &Request, number: u64) -> Result<(), Failed> {
        let Some(rate) = &self.rate else { return Ok(()) };
        if number.is_multiple_of(CLEAN_UP_EVERY) {
            rate.retain_recent();
        }
        let from = auth::address(request.extensions()).unwrap_or(IpAddr::from([127, 0, 0, 1]));
        rate.check_key(&network(from)).map_err(|_| {
            Problem::new(
                Code::RateLimited,
                format!("more than {} requests in a second", self.limits.requests_per_second),
                "wait for the time in Retry-After and send the request again",
            )
            .into()
        })
    }
}

/// Whether a host is this machine.
pub(crate) fn is_near(host: &str) -> bool {
    is_this_machine(host_name(host))
}

/// The same of its name alone.
fn is_this_machine(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// The host without its port; an IPv6 address without its brackets. Whatever has more than that stays
/// whole, and is nobody's host.
fn host_name(host: &str) -> &str {
    let (name, rest) = match host.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some(parts) => parts,
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    match rest.strip_prefix(':') {
        Some(port) if is_port(port) => name,
        None if rest.is_empty() => name,
        Some(_) | None => host,
    }
}

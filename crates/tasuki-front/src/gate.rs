// SPDX-License-Identifier: Apache-2.0
//! What every request passes: the host it names, the rate it comes at, a net for panics, and an id
//! by which it is found in the log.

use std::net::{IpAddr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::error::Failed;
use crate::{Front, Limits, body};
use tasuki_protocol::{Code, Problem};

struct Gate {
    limits: Arc<Limits>,
    rate: Option<DefaultKeyedRateLimiter<IpAddr>>,
    requests: AtomicU64,
    started: u64,
}

/// How many requests pass between two clean-ups of the rate limiter's memory.
const CLEAN_UP_EVERY: u64 = 100_000;

/// Lets nothing through to a router that does not pass the gate.
pub fn around(router: Router<Front>, front: &Front) -> Router<Front> {
    let per_second = std::num::NonZeroU32::new(front.limits.requests_per_second);
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let gate = Arc::new(Gate {
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
    let checked = gate.check_host(&request).and_then(|()| gate.check_rate(&request, number));
    let response = match checked {
        Err(problem) => problem.into_response(),
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
    name(response, &id)
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
        let name = host_name(host);
        let local = name.eq_ignore_ascii_case("localhost")
            || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        let known = |known: &String| known == "*" || known.eq_ignore_ascii_case(name);
        if local || self.limits.hosts.iter().any(known) {
            return Ok(());
        }
        Err(Problem::new(
            Code::HostNotAllowed,
            format!("this broker does not answer for the host {name:?}"),
            "use the address it printed at its start, or add the host with --host",
        )
        .into())
    }

    fn check_rate(&self, request: &Request, number: u64) -> Result<(), Failed> {
        let Some(rate) = &self.rate else { return Ok(()) };
        if number.is_multiple_of(CLEAN_UP_EVERY) {
            rate.retain_recent();
        }
        let from = request.extensions().get::<ConnectInfo<SocketAddr>>();
        let from = from.map_or(IpAddr::from([127, 0, 0, 1]), |info| info.0.ip());
        rate.check_key(&from).map_err(|_| {
            Problem::new(
                Code::RateLimited,
                format!("more than {} requests in a second", self.limits.requests_per_second),
                "wait for the time in Retry-After and send the request again",
            )
            .into()
        })
    }
}

/// The host without its port; an IPv6 address without its brackets.
fn host_name(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split(']').next().unwrap_or(rest);
    }
    host.split(':').next().unwrap_or(host)
}

// SPDX-License-Identifier: Apache-2.0
//! The HTTP+JSON binding, of 1.0 and, below `v1/`, of 0.3.

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method as Http, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};
use tasuki_core::canonical;
use tasuki_engine::Caller;
use tasuki_front::{Failed, Front, bytes_of, reply};
use tasuki_protocol::{Code, Problem};

use crate::calls::{Answered, Method, Version, With, call, version};
use crate::card::Place;
use crate::endpoint::Endpoint;
use crate::extension;
use crate::fault::{Fault, Kind};
use crate::older;
use crate::ops::Talk;
use crate::stream::Wrap;

/// What a path means: the method, what it names, and the tenant that it is about.
#[derive(Debug, PartialEq)]
struct Found {
    method: Method,
    named: Vec<(&'static str, String)>,
    tenant: Option<String>,
}

const PUSH: &str = "pushNotificationConfigs";

/// What is asked by a method and a path.
fn found(http: &Http, path: &[&str]) -> Result<Found, Problem> {
    let of = |method, named: &[(&'static str, &str)]| {
        let named = named.iter().map(|(name, text)| (*name, (*text).to_owned())).collect();
        Ok(Found { method, named, tenant: None })
    };
    let (get, post) = (http == Http::GET, http == Http::POST);
    let known = |fits: bool| if fits { Ok(()) } else { Err(wrong_method()) };
    match path {
        ["message:send"] => known(post).and_then(|()| of(Method::Send, &[])),
        ["message:stream"] => known(post).and_then(|()| of(Method::Stream, &[])),
        ["tasks"] => known(get).and_then(|()| of(Method::List, &[])),
        ["extendedAgentCard" | "card"] => known(get).and_then(|()| of(Method::Card, &[])),
        ["tasks", task] => match task.rsplit_once(':') {
            Some((id, "cancel")) => known(post).and_then(|()| of(Method::Cancel, &[("id", id)])),
            // The protocol's text says POST, its definition GET.
            Some((id, "subscribe")) => {
                known(get || post).and_then(|()| of(Method::Subscribe, &[("id", id)]))
            }
            _ => known(get).and_then(|()| of(Method::Get, &[("id", task)])),
        },
        ["tasks", task, PUSH] if post => of(Method::CreatePush, &[("taskId", task)]),
        ["tasks", task, PUSH] => {
            known(get).and_then(|()| of(Method::ListPush, &[("taskId", task)]))
        }
        ["tasks", task, PUSH, id] => {
            let named = [("taskId", *task), ("id", *id)];
            match *http {
                Http::GET => of(Method::GetPush, &named),
                Http::DELETE => of(Method::DeletePush, &named),
                _ => Err(wrong_method()),
            }
        }
        [tenant, rest @ ..] if !rest.is_empty() && !["tasks", "v1"].contains(tenant) => {
            let inner = found(http, rest)?;
            match inner.tenant {
                None => Ok(Found { tenant: Some((*tenant).to_owned()), ..inner }),
                Some(_) => Err(nothing()),
            }
        }
        _ => Err(nothing()),
    }
}

fn wrong_method() -> Problem {
    Problem::new(
        Code::MethodNotAllowed,
        "this path does not take that method",
        "see the HTTP+JSON binding of A2A for the methods of each path",
    )
}

pub(crate) fn nothing() -> Problem {
    Problem::new(Code::RouteNotFound, "nothing is served here", "see /docs for what is")
}

pub(crate) async fn serve(
    front: &Front,
    caller: &Caller,
    at: Endpoint,
    path: &str,
    (parts, body): (&Parts, Body),
    place: &Place<'_>,
) -> Response {
    let mut steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty()).collect();
    let then = steps.first() == Some(&"v1");
    if then {
        steps.remove(0);
    }
    let Found { method, named, tenant } = match found(&parts.method, &steps) {
        Ok(found) => found,
        Err(problem) => return Failed(problem).into_response(),
    };
    let spoken = version(&parts.headers, parts.uri.query());
    let version = if then { Version::Older } else { Version::Today };
    let asked = match spoken {
        Ok(_) => params(front, parts, body, method, version).await,
        Err(fault) => Err(fault),
    };
    let mut params = match asked {
        Ok(Value::Object(params)) => params,
        Ok(_) => return Fault::new(Kind::Params, "expected an object").into_response(),
        Err(fault) => return fault.into_response(),
    };
    for (name, text) in named {
        if let Some(said) = params.get(name).and_then(Value::as_str)
            && !said.is_empty()
            && said != text
        {
            return Fault::params(name, "is not what the path says").into_response();
        }
        params.insert(name.into(), text.into());
    }
    if let Some(tenant) = tenant {
        params.insert("tenant".into(), tenant.into());
    }
    let params = Value::Object(params);
    let wrap: Wrap = match version {
        Version::Today => Box::new(|piece| piece),
        Version::Older => Box::new(older::rest_piece),
    };
    let kind = media_type(parts);
    let key = parts.headers.get("idempotency-key").and_then(|key| key.to_str().ok());
    let run = |desk| async {
        let idempotency_key = key.map(str::to_owned);
        let trace = extension::trace(&parts.headers);
        let talk = Talk { desk, at, version, idempotency_key, trace };
        let may_wait = || front.wait(caller, parts).ok();
        let with = With { place, headers: &parts.headers, may_wait: &may_wait };
        Ok(match call(method, talk, params, with, wrap).await? {
            Answered::Stream(stream) => stream,
            Answered::Value(result) => {
                let result = match version {
                    Version::Today => result,
                    Version::Older => older::rest_answered(method.name(), result),
                };
                let mut response = reply(StatusCode::OK, &result);
                response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
                response
            }
        })
    };
    let served = front.serve_known(method.entry(), caller, &Ok(Vec::new()), parts, run).await;
    let mut response = served.unwrap_or_else(|fault: Fault| fault.into_response());
    crate::extend(&parts.headers, &mut response);
    response
}

/// A client gets the media type that it speaks.
fn media_type(parts: &Parts) -> &'static str {
    let says = |name| parts.headers.get(name).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let said = [says(header::CONTENT_TYPE), says(header::ACCEPT)];
    match said.iter().any(|said| said.contains("application/a2a+json")) {
        true => "application/a2a+json",
        false => "application/json",
    }
}

async fn params(
    front: &Front,
    parts: &Parts,
    body: Body,
    method: Method,
    version: Version,
) -> Result<Value, Fault> {
    let has_body = parts.method == Http::POST;
    let mut params = Map::new();
    if has_body {
        let kinds = ["application/json", "application/a2a+json"];
        let empty = parts.headers.get(header::CONTENT_LENGTH).is_some_and(|length| length == "0");
        let typed = parts.headers.contains_key(header::CONTENT_TYPE);
        // What names a task in its path need not say anything more.
        let may_be_empty = matches!(method, Method::Cancel | Method::Subscribe);
        if !(may_be_empty && (empty || !typed)) {
            let bytes = bytes_of(&kinds, front, parts, body).await?;
            if !(may_be_empty && bytes.is_empty()) {
                let read = canonical::parse(&bytes).map_err(|error| {
                    Fault::new(Kind::Json, format!("the body cannot be read: {error}"))
                })?;
                match read {
                    Value::Object(read) => params = read,
                    _ => return Err(Fault::new(Kind::Params, "expected an object")),
                }
            }
        }
    } else {
        for (name, text) in form_urlencoded::parse(parts.uri.query().unwrap_or("").as_bytes()) {
            if !name.eq_ignore_ascii_case("a2a-version") {
                params.insert(name.into_owned(), text.into_owned().into());
            }
        }
    }
    if version == Version::Older && has_body {
        return Ok(older::rest_asked(method.name(), Value::Object(params)));
    }
    Ok(Value::Object(params))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(http: &Http, path: &[&str]) -> Option<(Method, Option<String>)> {
        found(http, path).ok().map(|found| (found.method, found.tenant))
    }

    #[test]
    fn each_path_means_what_the_protocol_says() {
        assert_eq!(of(&Http::POST, &["message:send"]), Some((Method::Send, None)));
        assert_eq!(of(&Http::GET, &["message:send"]), None);
        assert_eq!(of(&Http::GET, &["tasks", "t"]), Some((Method::Get, None)));
        assert_eq!(of(&Http::POST, &["tasks", "t:cancel"]), Some((Method::Cancel, None)));
        for http in [Http::GET, Http::POST] {
            assert_eq!(of(&http, &["tasks", "t:subscribe"]), Some((Method::Subscribe, None)));
        }
        let tenant = Some("coder".to_owned());
        assert_eq!(of(&Http::GET, &["coder", "tasks"]), Some((Method::List, tenant)));
        assert_eq!(of(&Http::GET, &["a", "b", "tasks"]), None);
        assert_eq!(of(&Http::DELETE, &["tasks", "t", PUSH, "c"]), Some((Method::DeletePush, None)));
    }
}

// SPDX-License-Identifier: Apache-2.0
//! The JSON-RPC binding. The name of a method says which version of the protocol it is of, so both are
//! served at one address.

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};
use tasuki_core::canonical;
use tasuki_engine::Caller;
use tasuki_front::{Front, bytes_of, reply};
use tasuki_protocol::Code;

use crate::calls::{Answered, Method, Version, With, call, rpc, version};
use crate::card::Place;
use crate::endpoint::Endpoint;
use crate::extension;
use crate::fault::{Fault, Kind};
use crate::older;
use crate::ops::Talk;
use crate::stream::Wrap;

/// A request as JSON-RPC has it.
struct Call {
    method: Method,
    version: Version,
    params: Value,
}

fn told(id: &Value, fault: &Fault) -> Response {
    fault.with_retry(reply(fault.rpc_status(), &rpc(id, Err(fault))))
}

pub(crate) async fn serve(
    front: &Front,
    caller: &Caller,
    at: Endpoint,
    parts: &Parts,
    body: Body,
    place: &Place<'_>,
) -> Response {
    let mut id = Value::Null;
    let read = match bytes_of(&["application/json"], front, parts, body).await {
        Err(failed) if failed.0.known() == Some(Code::UnsupportedMediaType) => {
            Err(Fault::from(failed))
        }
        // What is wrong with the request as such is said as everywhere.
        Err(failed) => return failed.into_response(),
        Ok(bytes) => canonical::parse(&bytes)
            .map_err(|error| Fault::new(Kind::Json, format!("the body cannot be read: {error}"))),
    };
    let asked = read.and_then(|read| asked(read, &mut id, parts));
    let Call { method, version, params } = match asked {
        Ok(asked) => asked,
        Err(fault) => return told(&id, &fault),
    };
    let wrapped = id.clone();
    let wrap: Wrap = Box::new(move |piece| {
        let piece = match version {
            Version::Today => piece,
            Version::Older => older::piece(piece),
        };
        rpc(&wrapped, Ok(piece))
    });
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
                    Version::Older => older::answered(method.name(), result),
                };
                reply(StatusCode::OK, &rpc(&id, Ok(result)))
            }
        })
    };
    let served = front.serve_known(method.entry(), caller, &Ok(Vec::new()), parts, run).await;
    let mut response = served.unwrap_or_else(|fault: Fault| told(&id, &fault));
    crate::extend(&parts.headers, &mut response);
    if version == Version::Today {
        let version = HeaderValue::from_static("1.0");
        response.headers_mut().insert("a2a-version", version);
    }
    response
        .headers_mut()
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

fn asked(read: Value, id: &mut Value, parts: &Parts) -> Result<Call, Fault> {
    let wrong = |what: &str| Fault::new(Kind::Request, what);
    let Value::Object(mut call) = read else {
        return Err(wrong("expected one request of JSON-RPC 2.0"));
    };
    match call.remove("id") {
        None => {}
        Some(given @ (Value::Null | Value::String(_) | Value::Number(_))) => *id = given,
        Some(_) => return Err(wrong("id: expected a string or a number")),
    }
    if call.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(wrong("jsonrpc: expected \"2.0\""));
    }
    let name = call.get("method").and_then(Value::as_str);
    let name = name.ok_or_else(|| wrong("method: expected a string"))?;
    let older = older::METHODS.iter().find(|(then, _)| *then == name).map(|(_, today)| *today);
    let spoken = version(&parts.headers, parts.uri.query())?;
    let method = Method::named(older.unwrap_or(name))
        .ok_or_else(|| Fault::new(Kind::Method, format!("there is no method {name}")))?;
    let params = match call.remove("params") {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(params @ Value::Object(_)) => params,
        Some(_) => return Err(Fault::params("params", "expected an object")),
    };
    // A name of then is of then, whatever the header says; one of today may be asked to be answered
    // as it was then only by its old name.
    let version = match (older, spoken) {
        (Some(_), _) => Version::Older,
        (None, _) => Version::Today,
    };
    let params = match version {
        Version::Today => params,
        Version::Older => older::asked(method.name(), params),
    };
    Ok(Call { method, version, params })
}

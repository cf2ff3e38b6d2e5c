// SPDX-License-Identifier: Apache-2.0
//! How a request is read: strictly (see `tasuki_core::canonical`), in the names of today, and refused
//! with the place of every fault.

use std::any::TypeId;

use serde::de::DeserializeOwned;
use serde_json::Value;
use tasuki_core::canonical;
use tasuki_core::envelope::Fault;

use crate::members::Members;
use crate::modernise::modernised;
use crate::{Code, FollowUp, Offer, Problem};

/// Everything that keeps a body from being what it must be, by its schema. Reading stops at the first
/// fault, a schema does not. Doors bring it, since a validator is no part of the protocol.
pub type EveryFault<'f> = &'f dyn Fn(&Value) -> Vec<Fault>;

/// A request as plain JSON, in the names of today.
pub fn value(bytes: &[u8]) -> Result<Value, Problem> {
    let read = canonical::parse(bytes).map_err(|error| {
        Problem::new(
            Code::InvalidJson,
            format!("the body cannot be read: {error}"),
            "send one JSON value in UTF-8 without duplicate keys",
        )
    });
    modernised(read?)
}

/// What a request is held against.
pub struct Form<'f> {
    pub members: &'f Members,
    pub every: EveryFault<'f>,
}

/// A request. `first` looks at it before anything else does, and may take out what must not be kept.
pub fn request<T: DeserializeOwned + 'static>(
    bytes: &[u8],
    form: &Form<'_>,
    first: impl FnOnce(&mut Value) -> Result<(), Problem>,
) -> Result<T, Problem> {
    let mut read = value(bytes)?;
    first(&mut read)?;
    let unknown = form.members.unknown(&read);
    // Where a fault is costs time to keep track of, so only a request that has one pays for it.
    if unknown.is_empty()
        && let Ok(body) = T::deserialize(read)
    {
        return Ok(body);
    }
    plain(&value(bytes)?, form)
}

/// A request that is plain JSON already, as a part of something else.
pub fn plain<T: DeserializeOwned + 'static>(read: &Value, form: &Form<'_>) -> Result<T, Problem> {
    let unknown = form.members.unknown(read);
    let every = |read: &Value| {
        let mut faults = (form.every)(read);
        let is_named = |name: &str| faults.iter().any(|fault| fault.problem.contains(name));
        let more = unknown.iter().filter(|it| !is_named(it.path.rsplit('/').next().unwrap_or("")));
        let more: Vec<_> = more.cloned().collect();
        faults.extend(more);
        faults
    };
    let body = typed(read, &every)?;
    if unknown.is_empty() { Ok(body) } else { Err(not_known(&unknown)) }
}

/// A request that stands in the query of a URL.
pub fn query<T: DeserializeOwned + 'static>(text: &str, form: &Form<'_>) -> Result<T, Problem> {
    let pairs: Vec<(String, String)> = serde_urlencoded::from_str(text).unwrap_or_default();
    let known = |name: &str| form.members.names().any(|known| known == name);
    let unknown = pairs.iter().filter(|(name, _)| !known(name));
    let unknown: Vec<_> =
        unknown.map(|(name, _)| Fault::new(format!("/{name}"), "is not known")).collect();
    let given = serde_urlencoded::Deserializer::new(form_urlencoded::parse(text.as_bytes()));
    let body = serde_path_to_error::deserialize(given).map_err(|error| {
        let problem =
            Problem::invalid("query", format!("Failed to deserialize query string: {error}"));
        if unknown.is_empty() { problem } else { problem.faults(&unknown) }
    })?;
    if unknown.is_empty() { Ok(body) } else { Err(not_known(&unknown)) }
}

/// That nothing stands in the query of a URL, where the request is in the body.
pub fn no_query(text: &str) -> Result<(), Problem> {
    let names = form_urlencoded::parse(text.as_bytes()).map(|(name, _)| name);
    let unknown: Vec<_> = names.map(|name| Fault::new(format!("/{name}"), IN_BODY)).collect();
    if unknown.is_empty() { Ok(()) } else { Err(not_known(&unknown)) }
}

const IN_BODY: &str = "is not known; what is asked stands in the body";

fn not_known(faults: &[Fault]) -> Problem {
    let first = faults.first().map_or(("", ""), |it| (&it.path[1..], &it.problem));
    Problem::invalid(first.0, first.1).faults(faults)
}

/// Every fault is named, not only the first.
fn typed<T: DeserializeOwned + 'static>(body: &Value, every: EveryFault<'_>) -> Result<T, Problem> {
    serde_path_to_error::deserialize(body.clone()).map_err(|error| {
        let mut path = error.path().to_string();
        // An offer is a hop with more beside it, and where a fault of the hop is, the hop knows.
        if path == "."
            && TypeId::of::<T>() == TypeId::of::<Offer>()
            && let Err(error) = serde_path_to_error::deserialize::<_, FollowUp>(body.clone())
        {
            path = error.path().to_string();
        }
        let faults = every(body);
        let field = match (path.as_str(), faults.first()) {
            (".", Some(first)) if !first.path.is_empty() => first.path[1..].replace('/', "."),
            (".", _) => "body".to_owned(),
            (path, _) => path.to_owned(),
        };
        Problem::invalid(&field, error.inner().to_string()).faults(&faults)
    })
}

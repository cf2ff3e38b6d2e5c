// SPDX-License-Identifier: Apache-2.0
//! How a request is read: strictly (see `tasuki_core::canonical`), in the names of today, and refused
//! with the place of every fault.

use std::any::TypeId;

use serde::de::DeserializeOwned;
use serde_json::Value;
use tasuki_core::canonical;
use tasuki_core::envelope::Fault;

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

/// A request.
pub fn request<T: DeserializeOwned + 'static>(
    bytes: &[u8],
    every: EveryFault<'_>,
) -> Result<T, Problem> {
    // Where a fault is costs time to keep track of, so only a request that has one pays for it.
    if let Ok(body) = T::deserialize(value(bytes)?) {
        return Ok(body);
    }
    typed(&value(bytes)?, every)
}

/// Reads what was looked at as plain JSON before. Every fault is named, not only the first.
pub fn typed<T: DeserializeOwned + 'static>(
    body: &Value,
    every: EveryFault<'_>,
) -> Result<T, Problem> {
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

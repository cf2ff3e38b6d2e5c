// SPDX-License-Identifier: Apache-2.0
//! Many at once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The answers of a batch, in the order of its parts: each is a result or an error.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "BatchOf{T}")]
pub struct Batch<T> {
    pub results: Vec<Part<T>>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "PartOf{T}")]
pub enum Part<T> {
    Done(T),
    Failed { error: crate::Problem },
}

// SPDX-License-Identifier: Apache-2.0
//! Conditions, as the suite writes them down.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// What must hold for a value. Everything that it names.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Condition {
    #[serde(deserialize_with = "given")]
    pub(super) equals: Option<Value>,
    #[serde(deserialize_with = "given")]
    pub(super) not: Option<Value>,
    #[serde(deserialize_with = "given")]
    pub(super) like: Option<Value>,
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) absent: Option<bool>,
    #[serde(deserialize_with = "given")]
    pub(super) contains: Option<Value>,
    #[serde(deserialize_with = "given")]
    pub(super) lacks: Option<Value>,
    pub(super) starts_with: Option<String>,
    #[serde(deserialize_with = "given")]
    pub(super) one_of: Option<Value>,
    #[serde(deserialize_with = "given")]
    pub(super) length: Option<Value>,
    #[serde(deserialize_with = "given")]
    pub(super) at_least: Option<Value>,
    #[serde(deserialize_with = "given")]
    pub(super) at_most: Option<Value>,
    #[serde(deserialize_with = "given")]
    pub(super) more_than: Option<Value>,
    #[serde(deserialize_with = "given")]
    pub(super) less_than: Option<Value>,
    #[serde(deserialize_with = "given")]
    pub(super) has_all: Option<Value>,
    #[serde(deserialize_with = "given")]
    pub(super) same_items: Option<Value>,
    pub(super) unique: Option<String>,
    pub(super) each: Option<BTreeMap<String, Condition>>,
    pub(super) some: Option<BTreeMap<String, Condition>>,
    pub(super) fits: Option<String>,
}

impl Condition {
    /// Whether there is anything that it could not hold for.
    pub(super) fn says_something(&self) -> bool {
        let Self { equals, not, like, kind, absent, contains, lacks, starts_with, one_of, .. } =
            self;
        let Self { length, at_least, at_most, more_than, less_than, has_all, .. } = self;
        let Self { same_items, unique, each, some, fits, .. } = self;
        let values = [equals, not, like, contains, lacks, length, at_least, at_most];
        let more = [more_than, less_than, one_of, has_all, same_items];
        values.iter().chain(&more).any(|value| value.is_some())
            || [kind, starts_with, unique, fits].iter().any(|text| text.is_some())
            || [each, some].iter().any(|map| map.as_ref().is_some_and(|map| !map.is_empty()))
            || absent.is_some()
    }
}

/// A member that is null was given all the same.
pub(super) fn given<'d, D: Deserializer<'d>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

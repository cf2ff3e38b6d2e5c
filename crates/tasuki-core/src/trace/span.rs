// SPDX-License-Identifier: Apache-2.0
//! A span: what happened from when to when, as OpenTelemetry has it, in no wire format.

use serde::{Deserialize, Serialize};

use crate::ids::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Internal,
    Client,
    Producer,
    Consumer,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Text(String),
    Whole(i64),
    Number(f64),
}

/// Another span that this one has to do with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    pub trace: u128,
    pub span: u64,
}

/// Something that happened within a span.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    pub at: Timestamp,
    pub name: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    pub trace: u128,
    pub id: u64,
    pub parent: Option<u64>,
    pub name: String,
    pub kind: Kind,
    pub start: Timestamp,
    pub end: Timestamp,
    pub attributes: Vec<(&'static str, Value)>,
    pub links: Vec<Link>,
    pub marks: Vec<Mark>,
    /// How many more there were.
    pub marks_dropped: u32,
    /// How it failed, if it did: one of a few words.
    pub error: Option<&'static str>,
}

impl Span {
    /// The text of an attribute, if it has one.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find_map(|(known, value)| match value {
            Value::Text(text) if *known == name => Some(&**text),
            Value::Text(_) | Value::Whole(_) | Value::Number(_) => None,
        })
    }
}

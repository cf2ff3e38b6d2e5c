// SPDX-License-Identifier: Apache-2.0
//! Sizes, bounds and equality as JSON Schema means them.

use serde_json::Value;

/// What has a size, and how it is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    Text,
    Items,
    Members,
}

impl Measure {
    pub(super) fn keywords(self) -> (&'static str, &'static str) {
        match self {
            Self::Text => ("minLength", "maxLength"),
            Self::Items => ("minItems", "maxItems"),
            Self::Members => ("minProperties", "maxProperties"),
        }
    }

    pub(super) fn of(self, value: &Value) -> Option<u64> {
        let size = match (self, value) {
            (Self::Text, Value::String(text)) => text.chars().count(),
            (Self::Items, Value::Array(items)) => items.len(),
            (Self::Members, Value::Object(members)) => members.len(),
            _ => return None,
        };
        u64::try_from(size).ok()
    }
}

/// The side of a number that a bound is on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Below,
    Above,
}

impl Side {
    pub(super) fn closed(self) -> &'static str {
        match self {
            Self::Below => "minimum",
            Self::Above => "maximum",
        }
    }

    pub(super) fn open(self) -> &'static str {
        match self {
            Self::Below => "exclusiveMinimum",
            Self::Above => "exclusiveMaximum",
        }
    }
}

/// A bound. Upper ones are kept negated, so that there is one kind.
#[derive(Clone, Copy)]
pub(super) struct Edge {
    at: f64,
    open: bool,
}

impl Edge {
    pub(super) fn new(side: Side, at: f64, open: bool) -> Self {
        Self { at: if side == Side::Below { at } else { -at }, open }
    }

    pub(super) fn implies(self, other: Self) -> bool {
        self.at > other.at || (self.at == other.at && (self.open || !other.open))
    }

    /// The first integer that it admits.
    pub(super) fn for_integers(self) -> Self {
        let at = if self.open { self.at.floor() + 1.0 } else { self.at.ceil() };
        Self { at, open: false }
    }
}

/// A count as JSON Schema has it: `2.0` is one.
pub(super) fn count(value: &Value) -> Option<u64> {
    let whole = |count: f64| (count >= 0.0 && count.fract() == 0.0).then_some(count as u64);
    value.as_u64().or_else(|| value.as_f64().and_then(whole))
}

/// Whether two values are equal as JSON: `1` and `1.0` are.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) if a.is_f64() || b.is_f64() => {
            a.as_f64() == b.as_f64()
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(k, a)| b.get(k).is_some_and(|b| same(a, b)))
        }
        _ => one == other,
    }
}

// SPDX-License-Identifier: Apache-2.0
//! What a task may still spend, and what was spent. Every result and every failure may say what it
//! used; that counts for its own task and for all those above it, so that a budget which somebody set
//! at the top holds for the whole tree.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// How much money may be named at once, in whole units.
pub const COST_MAX: u64 = 1_000_000_000;
/// How many tokens one report may name.
pub const TOKENS_MAX: u64 = 1_000_000_000_000;
const MILLION: f64 = 1_000_000.0;

/// An amount of money in whatever unit its people count in, to the millionth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost(pub u64);

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let millionths = format!("{:06}", self.0 % 1_000_000);
        match millionths.trim_end_matches('0') {
            "" => write!(f, "{}", self.0 / 1_000_000),
            part => write!(f, "{}.{part}", self.0 / 1_000_000),
        }
    }
}

impl Serialize for Cost {
    #[allow(clippy::cast_precision_loss, reason = "sums stay far below where a number is rounded")]
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(self.0 as f64 / MILLION)
    }
}

impl<'de> Deserialize<'de> for Cost {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "it is within bounds by then"
    )]
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let given = f64::deserialize(from)?;
        if !(0.0..=COST_MAX as f64).contains(&given) {
            return Err(de::Error::custom(format!("expected an amount from 0 to {COST_MAX}")));
        }
        Ok(Self((given * MILLION).round() as u64))
    }
}

impl JsonSchema for Cost {
    fn schema_name() -> Cow<'static, str> {
        "Cost".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "number",
            "minimum": 0,
            "maximum": COST_MAX,
            "description": "An amount of money, to the millionth.",
        })
    }
}

/// What a task and everything below it may still spend.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Tokens that models read and write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// What an attempt used: tokens, cost and the model, as its agent reports them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WorkUsage")]
pub struct Used {
    #[serde(default)]
    pub input_tokens: u64,
    #[serde(default)]
    pub output_tokens: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// Which model used them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub model: Option<String>,
}

/// What was spent so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spent {
    pub tokens: u64,
    pub cost: Cost,
}

impl Used {
    #[must_use]
    pub fn spent(&self) -> Spent {
        let tokens = self.input_tokens.saturating_add(self.output_tokens);
        Spent { tokens, cost: self.cost.unwrap_or_default() }
    }

    /// What is wrong with it, if something is.
    pub fn check(&self) -> Result<(), String> {
        if self.spent().tokens > TOKENS_MAX {
            return Err(format!("names more than {TOKENS_MAX} tokens"));
        }
        match self.model.as_ref().is_some_and(|model| model.is_empty() || model.len() > 256) {
            true => Err("model is expected to have 1 to 256 bytes".into()),
            false => Ok(()),
        }
    }
}

impl Spent {
    #[must_use]
    pub fn and(self, more: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(more.tokens),
            cost: Cost(self.cost.0.saturating_add(more.cost.0)),
        }
    }
}

impl Budget {
    /// What is left of it.
    #[must_use]
    pub fn less(self, spent: Spent) -> Self {
        Self {
            tokens: self.tokens.map(|tokens| tokens.saturating_sub(spent.tokens)),
            cost: self.cost.map(|cost| Cost(cost.0.saturating_sub(spent.cost.0))),
        }
    }

    /// As much as both allow.
    #[must_use]
    pub fn within(self, other: Self) -> Self {
        fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            match (one, other) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            }
        }
        Self { tokens: least(self.tokens, other.tokens), cost: least(self.cost, other.cost) }
    }

    /// The budget of which this is left after something was spent.
    pub(crate) fn after(self, spent: Spent) -> Self {
        Self {
            tokens: self.tokens.map(|tokens| tokens.saturating_add(spent.tokens)),
            cost: self.cost.map(|cost| Cost(cost.0.saturating_add(spent.cost.0))),
        }
    }

    #[must_use]
    pub fn is_exhausted(self) -> bool {
        self.tokens == Some(0) || self.cost == Some(Cost(0))
    }

    /// Whether it bounds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_exact_to_the_millionth_and_never_negative() {
        let cost: Cost = serde_json::from_str("0.1").unwrap();
        assert_eq!(cost, Cost(100_000));
        let sum = (0..10).fold(Spent::default(), |sum, _| sum.and(Spent { tokens: 1, cost }));
        assert_eq!(serde_json::to_string(&sum.cost).unwrap(), "1.0");
        assert!(serde_json::from_str::<Cost>("-0.1").is_err());
    }

    #[test]
    fn what_is_left_is_what_all_allow() {
        let one = Budget { tokens: Some(100), cost: None };
        let other = Budget { tokens: Some(50), cost: Some(Cost(7)) };
        let left = one.within(other).less(Spent { tokens: 50, cost: Cost(1) });
        assert_eq!(left, Budget { tokens: Some(0), cost: Some(Cost(6)) });
        assert!(left.is_exhausted() && !one.is_exhausted());
    }
}

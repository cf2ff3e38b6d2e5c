// SPDX-License-Identifier: Apache-2.0
//! Sets of JSON types. Numbers are two kinds, whole and broken, so that an integer fits a number
//! without being named twice.

use std::fmt;

use serde_json::{Map, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Types(u8);

impl Types {
    pub(super) const NONE: Self = Self(0);
    pub(super) const ANY: Self = Self(0b111_1111);
    pub(super) const NULL: Self = Self(1);
    const BOOLEAN: Self = Self(1 << 1);
    pub(super) const OBJECT: Self = Self(1 << 2);
    pub(super) const ARRAY: Self = Self(1 << 3);
    pub(super) const STRING: Self = Self(1 << 4);
    pub(super) const INTEGER: Self = Self(1 << 5);
    pub(super) const FRACTION: Self = Self(1 << 6);
    pub(super) const NUMBER: Self = Self(Self::INTEGER.0 | Self::FRACTION.0);

    const WORDS: [(&'static str, Self); 7] = [
        ("null", Self::NULL),
        ("boolean", Self::BOOLEAN),
        ("object", Self::OBJECT),
        ("array", Self::ARRAY),
        ("string", Self::STRING),
        ("number", Self::NUMBER),
        ("integer", Self::INTEGER),
    ];

    /// The types that a schema's own `type` admits.
    pub(super) fn admitted(schema: &Map<String, Value>) -> Self {
        match schema.get("type") {
            None => Self::ANY,
            Some(Value::Array(words)) => words.iter().map(Self::of_word).fold(Self::NONE, Self::or),
            Some(word) => Self::of_word(word),
        }
    }

    fn of_word(word: &Value) -> Self {
        let known = Self::WORDS.iter().find(|(known, _)| word.as_str() == Some(known));
        // What is no type says nothing; no value is ruled out by it.
        known.map_or(Self::ANY, |(_, types)| *types)
    }

    /// The type that a value has. `1.0` is an integer.
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Object(_) => Self::OBJECT,
            Value::Array(_) => Self::ARRAY,
            Value::String(_) => Self::STRING,
            Value::Number(number) => match number.as_f64() {
                Some(number) if number.fract() != 0.0 => Self::FRACTION,
                _ => Self::INTEGER,
            },
        }
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) fn is_empty(self) -> bool {
        self == Self::NONE
    }

    pub(super) fn meets(self, other: Self) -> bool {
        !self.and(other).is_empty()
    }

    pub(super) fn is_within(self, other: Self) -> bool {
        self.and(other) == self
    }

    /// Each type by itself.
    pub(super) fn each(self) -> impl Iterator<Item = Self> {
        (0..7).map(|bit| Self(1 << bit)).filter(move |one| self.meets(*one))
    }
}

impl fmt::Display for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ANY {
            return f.write_str("anything");
        }
        let shown = |word: &str, types: Self| match word {
            // Broken numbers have no word of their own, and `number` says `integer` too.
            "number" => self.meets(Self::FRACTION),
            "integer" => self.meets(types) && !self.meets(Self::FRACTION),
            _ => self.meets(types),
        };
        let words = Self::WORDS.iter().filter(|(word, types)| shown(word, *types));
        let words: Vec<&str> = words.map(|(word, _)| *word).collect();
        f.write_str(&words.join(" or "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_integer_is_a_number_and_not_the_other_way_round() {
        assert!(Types::INTEGER.is_within(Types::NUMBER));
        assert!(!Types::NUMBER.is_within(Types::INTEGER));
        assert_eq!(Types::of(&json!(1.0)), Types::INTEGER);
        assert_eq!(Types::of(&json!(1.5)), Types::FRACTION);
    }

    #[test]
    fn types_read_as_json_schema_writes_them() {
        let shown = |types: Value| Types::admitted(json!({ "type": types }).as_object().unwrap());
        assert_eq!(shown(json!("number")).to_string(), "number");
        assert_eq!(shown(json!(["integer", "null"])).to_string(), "null or integer");
        assert_eq!(shown(json!(["integer", "number"])).to_string(), "number");
        assert_eq!(Types::ANY.to_string(), "anything");
    }
}

// SPDX-License-Identifier: Apache-2.0
//! JSON that can be hashed and signed. Reading is strict, because canonical JSON (RFC 8785) cannot
//! tell some different texts apart: duplicate keys and integers beyond 2^53 are refused, and
//! nesting is bounded.

mod write;

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};
use sha2::{Digest, Sha256};

use crate::ids::Hash;

/// How deep arrays and objects may nest.
pub const DEPTH_MAX: usize = 64;
/// The largest integer that every JSON reader keeps exactly.
const INTEGER_MAX: u64 = (1 << 53) - 1;

/// An immutable piece of JSON in its canonical form, and its address.
#[derive(Clone)]
pub struct Body {
    pub hash: Hash,
    text: Arc<str>,
}

impl Body {
    /// Makes the canonical form of a value and hashes it. The value must have been read strictly
    /// or built by us: a map with a key that is not a string is a bug.
    #[must_use]
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Self {
        let text = canonical(value);
        Self { hash: hash(text.as_bytes()), text: text.into() }
    }

    /// A body as a store kept it. `None` if it is not JSON any more.
    #[must_use]
    pub fn stored(text: String) -> Option<Self> {
        serde_json::from_str::<de::IgnoredAny>(&text).ok()?;
        Some(Self { hash: hash(text.as_bytes()), text: text.into() })
    }

    /// The canonical text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same as a part of other JSON, into which it is copied as it is.
    #[must_use]
    pub fn json(&self) -> Box<RawValue> {
        let json = serde_json::value::to_raw_value(&write::Verbatim(&self.text));
        json.expect("writing to memory does not fail")
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body({})", self.hash)
    }
}
impl PartialEq for Body {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

/// The address of a value: the hash of its canonical form, for where the text is not needed.
#[must_use]
pub fn address<T: Serialize + ?Sized>(value: &T) -> Hash {
    hash(canonical(value).as_bytes())
}

fn canonical<T: Serialize + ?Sized>(value: &T) -> String {
    write::canonical(value).expect("a value with string keys is JSON")
}

/// SHA-256 of some bytes.
#[must_use]
pub fn hash(bytes: &[u8]) -> Hash {
    Hash(Sha256::digest(bytes).into())
}

/// SHA-256 of two pieces, one after the other; links an event to its predecessor.
#[must_use]
pub fn hash_linked(previous: Hash, bytes: &[u8]) -> Hash {
    let mut digest = Sha256::new();
    digest.update(previous.0);
    digest.update(bytes);
    Hash(digest.finalize().into())
}

/// Reads JSON strictly. The error text says what is wrong and where (line and column).
pub fn parse(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let mut from = serde_json::Deserializer::from_slice(bytes);
    // Our own bound is lower than serde_json's and gives a better text.
    let value = Strict { depth: DEPTH_MAX }.deserialize(&mut from)?;
    from.end()?;
    Ok(value)
}

#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl Strict {
    fn deeper<E: de::Error>(self) -> Result<Self, E> {
        let depth = self.depth.checked_sub(1).ok_or_else(|| {
            E::custom(format_args!("nested deeper than {DEPTH_MAX} arrays and objects"))
        })?;
        Ok(Self { depth })
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        check_integer(value.unsigned_abs())?;
        Ok(Value::Number(value.into()))
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        check_integer(value)?;
        Ok(Value::Number(value.into()))
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        // An integer too long for 64 bits arrives here, already rounded.
        if value.fract() == 0.0 && value.abs() > INTEGER_MAX as f64 {
            return Err(beyond_exact());
        }
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }
    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut items = Vec::new();
        while let Some(item) = from.next_element_seed(inner)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut members = Map::new();
        while let Some(key) = from.next_key::<String>()? {
            if members.contains_key(&key) {
                return Err(de::Error::custom(format_args!("duplicate key {key:?}")));
            }
            members.insert(key, from.next_value_seed(inner)?);
        }
        Ok(Value::Object(members))
    }
}

fn check_integer<E: de::Error>(magnitude: u64) -> Result<(), E> {
    if magnitude > INTEGER_MAX { Err(beyond_exact()) } else { Ok(()) }
}

fn beyond_exact<E: de::Error>() -> E {
    E::custom("integer beyond 2^53 cannot be kept exactly; send it as a string")
}

/// An object that keeps whatever members it was given, for parts whose shape is the sender's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Object(pub Map<String, Value>);

impl Object {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Map::deserialize(from).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str, why: &str) {
        let error = parse(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(why), "{text}: {error}");
    }

    #[test]
    fn what_canonical_json_cannot_tell_apart_is_refused() {
        refused(r#"{"a":1,"a":2}"#, "duplicate key \"a\"");
        refused(r#"{"x":[{"a":1,"b":2,"a":1}]}"#, "duplicate key \"a\"");
        refused("9007199254740993", "2^53");
        refused("-9007199254740993", "2^53");
        refused("123456789012345678901234567890", "2^53");
        refused("1e999", "number out of range");
        refused(r#"{"a":1} {}"#, "trailing");
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(nested(DEPTH_MAX).as_bytes()).is_ok());
        refused(&nested(DEPTH_MAX + 1), "nested deeper than 64");
        refused(&"[".repeat(100_000), "nested deeper than 64");
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_refused() {
        assert!(parse(b"\"\xff\xfe\"").is_err());
    }

    #[test]
    fn the_canonical_form_is_the_librarys() {
        let hard = [
            r#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}"#,
            r"[1e21,1e-7,0.1,5e-324,1.7976931348623157e308,-0.0,100,333333333.33333329,4.5]",
            r#"["\u0000\b\t\n\f\r\"\\/\u001f\u007f\u2028é😀",true,false,null,{},[]]"#,
            r#"{"b":{"z":[{"y":1,"x":{"é":1,"e":2}}],"a":""},"a":-9007199254740991}"#,
        ];
        for text in hard {
            let value: Value = serde_json::from_str(text).unwrap();
            let theirs = serde_json_canonicalizer::to_string(&value).unwrap();
            assert_eq!(Body::of(&value).text(), theirs);
        }
    }

    proptest::proptest! {
        #[test]
        fn the_canonical_form_of_anything_is_the_librarys(
            keys in proptest::collection::vec("(?s).{0,24}", 0..8),
            numbers in proptest::collection::vec(proptest::num::f64::NORMAL, 8),
        ) {
            let members: Map<_, _> = keys
                .iter()
                .zip(numbers)
                .map(|(key, number)| (key.clone(), serde_json::json!([number, key, { key: key }])))
                .collect();
            let value = Value::Object(members);
            let theirs = serde_json_canonicalizer::to_string(&value).unwrap();
            let ours = Body::of(&value);
            proptest::prop_assert_eq!(ours.text(), theirs);
        }
    }

    /// One of each kind of thing that can be written, with members in no order.
    #[derive(Serialize)]
    struct Everything {
        z: Option<u8>,
        b: Variants,
        #[serde(flatten)]
        more: Map<String, Value>,
        a: (i64, char, Unit, &'static [u8]),
        #[serde(rename = "é\n\"")]
        escaped: Shown,
        raw: Box<RawValue>,
        numbers: std::collections::BTreeMap<u32, Vec<Variants>>,
        float: f32,
        nan: f64,
    }
    #[derive(Serialize)]
    struct Unit;
    #[derive(Serialize)]
    enum Variants {
        Unit,
        Newtype(u64),
        Tuple(u8, bool),
        Struct { y: u8, x: &'static str },
    }
    struct Shown;
    impl Serialize for Shown {
        fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            to.collect_str("a \"b\"\u{1}")
        }
    }

    #[test]
    fn what_is_no_tree_is_written_as_its_tree_would_be() {
        let more =
            parse(br#"{"zz":1,"aa":{"b":0.5,"a":[]},"float":"the last one counts"}"#).unwrap();
        let value = Everything {
            z: None,
            b: Variants::Struct { y: 1, x: "x" },
            more: more.as_object().unwrap().clone(),
            a: (-5, '"', Unit, b"ab"),
            escaped: Shown,
            raw: RawValue::from_string(r#"{ "b" : [1.0, "\u00e9"], "a" : {} }"#.into()).unwrap(),
            numbers: [(10, vec![Variants::Unit, Variants::Newtype(7)]), (9, Vec::new())].into(),
            float: 1.5,
            nan: f64::NAN,
        };
        let tree = serde_json::to_value(&value).unwrap();
        let theirs = serde_json_canonicalizer::to_string(&tree).unwrap();
        assert_eq!(Body::of(&value).text(), theirs);
        assert_eq!(address(&value), Body::of(&tree).hash);
        let tuple = Variants::Tuple(1, true);
        assert_eq!(Body::of(&tuple).text(), r#"{"Tuple":[1,true]}"#);
    }

    #[test]
    fn a_body_within_other_json_is_as_it_was() {
        let body = Body::of(&serde_json::json!({ "text": "a\nb", "n": [1, 2.5] }));
        assert_eq!(body.json().get(), body.text());
        let within = serde_json::to_string(&[body.json()]).unwrap();
        assert_eq!(within, format!("[{}]", body.text()));
        assert_eq!(Body::stored("{\"a\":".into()), None);
    }

    #[test]
    fn the_same_value_in_any_spelling_has_one_address() {
        let one = parse(br#"{"b": 1.0, "a": "\u00e9", "c": [true, null]}"#).unwrap();
        let two = parse("{\"c\":[true,null],\"a\":\"é\",\"b\":1}".as_bytes()).unwrap();
        let (one, two) = (Body::of(&one), Body::of(&two));
        assert_eq!(one.text(), r#"{"a":"é","b":1,"c":[true,null]}"#);
        assert_eq!(one.hash, two.hash);
    }
}

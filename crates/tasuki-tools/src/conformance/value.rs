// SPDX-License-Identifier: Apache-2.0
//! Values of the suite's small language: variables put in, and the functions for what data
//! cannot say. Pure. Addresses are made here with the libraries alone and not with the broker's own
//! code, which is one of the things that are checked.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization;

/// What a check has found out so far, by name.
pub(crate) type Scope = BTreeMap<String, Value>;

/// A value with its variables put in and its functions carried out.
pub(crate) fn resolve(value: &Value, scope: &Scope) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => resolve_text(text, scope)?,
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| resolve(item, scope)).collect::<Result<_, _>>()?)
        }
        Value::Object(members) => match function(members) {
            Some((name, argument)) => call(name, &resolve(argument, scope)?)?,
            None => {
                let member = |(name, value): (&String, &Value)| {
                    Ok((text_with(name, scope)?, resolve(value, scope)?))
                };
                Value::Object(members.iter().map(member).collect::<Result<_, String>>()?)
            }
        },
        plain => plain.clone(),
    })
}

/// A text that is one variable is its value, of whatever kind; others become texts.
fn resolve_text(text: &str, scope: &Scope) -> Result<Value, String> {
    match text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
        Some(name) if !name.contains('}') => look_up(name, scope).cloned(),
        _ => text_with(text, scope).map(Value::String),
    }
}

/// A text with variables put in as texts.
pub(crate) fn text_with(text: &str, scope: &Scope) -> Result<String, String> {
    let mut parts = text.split("${");
    let mut made = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once('}').ok_or_else(|| format!("no end of ${{{part}"))?;
        match look_up(name, scope)? {
            Value::String(text) => made += text,
            other => made += &other.to_string(),
        }
        made += rest;
    }
    Ok(made)
}

/// `name`, or `name/pointer` for a part of it.
fn look_up<'s>(name: &str, scope: &'s Scope) -> Result<&'s Value, String> {
    let (variable, pointer) = name.find('/').map_or((name, ""), |at| name.split_at(at));
    let value = scope.get(variable).ok_or_else(|| format!("nothing is known as {variable:?}"))?;
    value.pointer(pointer).ok_or_else(|| format!("{variable:?} has nothing at {pointer}"))
}

/// An object with one member whose name begins with `$` is a function and its argument.
pub(crate) fn function(members: &Map<String, Value>) -> Option<(&str, &Value)> {
    let (name, argument) = members.iter().next().filter(|_| members.len() == 1)?;
    name.strip_prefix('$').filter(|name| !name.starts_with('{')).map(|name| (name, argument))
}

fn call(name: &str, argument: &Value) -> Result<Value, String> {
    match (name, argument) {
        ("merge", Value::Array(parts)) => merged(parts),
        ("address", value) => address(value).map(Value::String),
        ("text_id", Value::String(text)) => {
            Ok(Value::String(sha256(text.nfc().collect::<String>().as_bytes())))
        }
        ("sum", Value::Array(numbers)) => {
            let numbers: Option<Vec<_>> = numbers.iter().map(Value::as_i64).collect();
            let sum = numbers.and_then(|all| all.into_iter().try_fold(0, i64::checked_add));
            sum.map(Value::from).ok_or_else(|| "$sum takes integers".into())
        }
        ("concat", Value::Array(lists)) => {
            let lists: Option<Vec<_>> = lists.iter().map(Value::as_array).collect();
            let whole = lists.map(|lists| lists.into_iter().flatten().cloned().collect());
            whole.ok_or_else(|| "$concat takes lists".into())
        }
        ("pluck", Value::Array(pair)) => match pair.as_slice() {
            [Value::Array(items), Value::String(pointer)] => plucked(items, pointer),
            _ => Err("$pluck takes a list and a pointer".into()),
        },
        _ => Err(format!("there is no function ${name} that takes {argument}")),
    }
}

/// Several objects in one; what is null takes a member away.
fn merged(parts: &[Value]) -> Result<Value, String> {
    let mut whole = Map::new();
    for part in parts {
        let Value::Object(members) = part else { return Err("$merge takes objects".into()) };
        for (name, value) in members {
            match value {
                Value::Null => whole.remove(name),
                value => whole.insert(name.clone(), value.clone()),
            };
        }
    }
    Ok(Value::Object(whole))
}

/// What all items of a list have at a pointer.
fn plucked(items: &[Value], pointer: &str) -> Result<Value, String> {
    let part = |item: &Value| item.pointer(pointer).cloned();
    let parts: Option<Vec<_>> = items.iter().map(part).collect();
    parts.map(Value::Array).ok_or_else(|| format!("an item has nothing at {pointer}"))
}

/// The SHA-256 of a value's canonical JSON (RFC 8785).
fn address(value: &Value) -> Result<String, String> {
    let canonical = serde_json_canonicalizer::to_vec(value).map_err(|error| error.to_string())?;
    Ok(sha256(&canonical))
}

fn sha256(bytes: &[u8]) -> String {
    let hex = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("sha256:{hex}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn scope() -> Scope {
        Scope::from([
            ("u".into(), json!("7x")),
            ("fence".into(), json!(12)),
            ("envelope".into(), json!({ "constraints": [{ "id": "c1" }] })),
        ])
    }

    #[test]
    fn a_text_that_is_one_variable_keeps_its_kind() {
        let value = json!({ "fence": "${fence}", "to-${u}": ["worker-${u}", "n ${fence}"] });
        let made = resolve(&value, &scope()).unwrap();
        assert_eq!(made, json!({ "fence": 12, "to-7x": ["worker-7x", "n 12"] }));
        let part = resolve(&json!("${envelope/constraints/0/id}"), &scope()).unwrap();
        assert_eq!(part, "c1");
    }

    #[test]
    fn what_is_not_known_is_an_error() {
        for value in [
            json!("${nobody}"),
            json!("a ${fence"),
            json!("${envelope/constraints/1}"),
            json!({ "$hash": 1 }),
            json!({ "$merge": {} }),
            json!({ "$text_id": 1 }),
        ] {
            assert!(resolve(&value, &scope()).is_err(), "{value}");
        }
    }

    #[test]
    fn functions_make_what_data_cannot_say() {
        let merge = json!({ "$merge": [{ "a": 1, "b": 2 }, { "b": null, "c": "${fence}" }] });
        assert_eq!(resolve(&merge, &scope()).unwrap(), json!({ "a": 1, "c": 12 }));
        // The same as `printf '{"a":2,"b":1}' | sha256sum`.
        let address = json!({ "$address": { "b": 1, "a": 2 } });
        assert_eq!(
            resolve(&address, &scope()).unwrap(),
            "sha256:d3626ac30a87e6f7a6428233b3c68299976865fa5508e4267c5415c76af7a772"
        );
        let composed = resolve(&json!({ "$text_id": "\u{e9}" }), &scope()).unwrap();
        assert_eq!(resolve(&json!({ "$text_id": "e\u{301}" }), &scope()).unwrap(), composed);
        let less = json!({ "$sum": ["${fence}", -1] });
        assert_eq!(resolve(&less, &scope()).unwrap(), 11);
        let ids = json!({ "$pluck": ["${envelope/constraints}", "/id"] });
        assert_eq!(resolve(&ids, &scope()).unwrap(), json!(["c1"]));
        let both = json!({ "$concat": [[1], [], [2, "${fence}"]] });
        assert_eq!(resolve(&both, &scope()).unwrap(), json!([1, 2, 12]));
    }
}

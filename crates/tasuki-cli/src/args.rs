// SPDX-License-Identifier: Apache-2.0
//! What several commands read from their arguments: spans of time, words of a closed list, JSON.

use std::io::Read;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tasuki_core::canonical;

use crate::exit::Failure;

/// Has the name of the agent in whose name commands are given, where no option says another.
pub const AGENT: &str = "TASUKI_AGENT";

/// A span of time with its unit, in milliseconds.
pub fn millis(text: &str) -> Result<u64, String> {
    let wrong = || "expected a number and a unit: 500ms, 30s, 10m, 2h or 1d".to_owned();
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(unit_at);
    let unit_ms: u64 = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60 * 1000,
        "h" => 60 * 60 * 1000,
        "d" => 24 * 60 * 60 * 1000,
        _ => return Err(wrong()),
    };
    number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit_ms)).ok_or_else(wrong)
}

/// A parser for the words of a closed list, which help and completions then show.
pub fn words<T>(words: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(words).try_map(|word| serde_json::from_value(Value::String(word)))
}

/// JSON given in place, as `@file`, or as `-` for stdin. Read as strictly as the broker reads it.
pub fn json<T: DeserializeOwned>(option: &str, given: &str) -> anyhow::Result<T> {
    let hint = "give JSON in place, @FILE, or - for stdin";
    let text = if given == "-" {
        let mut text = Vec::new();
        std::io::stdin().lock().read_to_end(&mut text).map(|_| text)
    } else if let Some(path) = given.strip_prefix('@') {
        std::fs::read(path)
    } else {
        Ok(given.as_bytes().to_vec())
    };
    let text = text.map_err(|error| {
        Failure::usage(format!("cannot read {option} from {given}: {error}"), hint)
    })?;
    let value = canonical::parse(&text).map_err(|error| {
        let hint = format!("{hint}; a text is written in quotes, an object as {{\"name\": …}}");
        Failure::usage(format!("{option} is not JSON that a broker takes: {error}"), hint)
    })?;
    let read = serde_json::from_value(value);
    Ok(read.map_err(|error| {
        let hint = "`tasuki reference cli` and /docs on a broker say what goes in there";
        Failure::usage(format!("{option} does not fit: {error}"), hint)
    })?)
}

/// Text given in place, as `@file`, or as `-` for stdin.
pub fn text(option: &str, given: &str) -> anyhow::Result<String> {
    let text = match (given, given.strip_prefix('@')) {
        ("-", _) => std::io::read_to_string(std::io::stdin().lock()),
        (_, Some(path)) => std::fs::read_to_string(path),
        (_, None) => Ok(given.to_owned()),
    };
    Ok(text.map_err(|error| {
        let hint = "give a text in place, @FILE, or - for stdin";
        Failure::usage(format!("cannot read {option} from {given}: {error}"), hint)
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_needs_a_number_and_a_unit() {
        let good = ["1500ms", "30s", "10m", "2h", "1d"].map(millis);
        assert_eq!(good, [1500, 30_000, 600_000, 7_200_000, 86_400_000].map(Ok));
        for bad in ["", "30", "s", "-1s", "1.5s", "5 s", "99999999999999999999s"] {
            assert!(millis(bad).is_err(), "{bad}");
        }
    }
}

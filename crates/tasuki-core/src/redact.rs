// SPDX-License-Identifier: Apache-2.0
//! Texts without the secrets in them, for where something has to be told and must not be told whole:
//! as little as possible is taken out, and what kind it was is said.

use serde_json::Value;

use crate::secrets::{SecretKind, scan};

/// Takes secrets of certain shape out of every text of a value. Names of members stay.
pub fn redact(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some(redacted) = redacted(text) {
                *text = redacted;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::Object(members) => members.values_mut().for_each(redact),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The text without its secrets, if it has any: without the words that are one, or else without
/// all of it. A private key goes over many lines, which do not look like anything by themselves.
fn redacted(text: &str) -> Option<String> {
    let kinds = found(text);
    let whole = *kinds.first()?;
    let words = text.split_inclusive(char::is_whitespace);
    let without: String = words
        .map(|word| found(word).first().map_or(word.to_owned(), |kind| mark(*kind, word)))
        .collect();
    let rest = kinds.contains(&SecretKind::PrivateKey) || !found(&without).is_empty();
    Some(if rest { mark(whole, "") } else { without })
}

fn found(text: &str) -> Vec<SecretKind> {
    let findings = scan(&Value::from(text)).into_iter();
    findings.map(|finding| finding.kind).filter(|kind| kind.is_certain()).collect()
}

/// What stands in place of a piece; the white space behind it stays.
fn mark(kind: SecretKind, piece: &str) -> String {
    format!("[redacted: {kind}]{}", &piece[piece.trim_end().len()..])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Put together here, so that no scanner takes this file for a leak.
    fn token(prefix: &str, length: usize) -> String {
        let alphabet = "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY";
        prefix.chars().chain(alphabet.chars().cycle().take(length)).collect()
    }

    #[test]
    fn the_words_around_a_secret_stay() {
        let (one, two) = (token("ghp_", 36), token("xoxb-", 24));
        let mut value =
            json!({ "message": format!("push with {one}\nfailed,\ttwice; {two}"), "n": 1 });
        redact(&mut value);
        let said = "push with [redacted: github_token]\nfailed,\ttwice; [redacted: slack_token]";
        assert_eq!(value, json!({ "message": said, "n": 1 }));
    }

    #[test]
    fn a_key_over_several_lines_takes_the_text_with_it() {
        let key = format!("it was\n-----BEGIN {kind} KEY-----\nMII\n", kind = "PRIVATE");
        let mut value = json!([key, "harmless"]);
        redact(&mut value);
        assert_eq!(value[1], "harmless");
        assert!(scan(&value).is_empty(), "{value}");
        assert!(!value[0].as_str().unwrap().contains("MII"), "{value}");
    }

    #[test]
    fn what_holds_no_secret_stays_as_it_is() {
        let mut value =
            json!({ "message": "the password is kept in the vault", "causes": [null, 2] });
        let before = value.clone();
        redact(&mut value);
        assert_eq!(value, before);
    }
}

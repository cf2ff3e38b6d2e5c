// SPDX-License-Identifier: Apache-2.0
//! The scan in its plain form: a search through the text for each thing that is looked for. It says
//! what the scan in one pass must find, and is compiled for tests only.

use serde_json::Value;

use super::{FINDINGS_MAX, Finding, LOOK_BYTES_MAX, SecretKind};

/// Looks at every text of a value, names of members included.
pub(super) fn scan(value: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    walk(value, "", &mut findings);
    findings.truncate(FINDINGS_MAX);
    findings
}

fn walk(value: &Value, path: &str, findings: &mut Vec<Finding>) {
    if findings.len() >= FINDINGS_MAX {
        return;
    }
    let finding = |path: &str, kind| Finding { path: shown(path).to_owned(), kind };
    match value {
        Value::String(text) => {
            let mut kinds = in_text(text);
            kinds.dedup();
            findings.extend(kinds.into_iter().map(|kind| finding(path, kind)));
        }
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                walk(item, &format!("{path}/{place}"), findings);
            }
        }
        Value::Object(members) => {
            for (name, inner) in members {
                // A name that is itself a secret must not be told as part of a path.
                let kinds = in_text(name);
                let hidden = !kinds.is_empty();
                findings.extend(kinds.into_iter().map(|kind| finding(path, kind)));
                let shown = if hidden { "…" } else { name.as_str() };
                let here = format!("{path}/{}", shown.replace('~', "~0").replace('/', "~1"));
                if let Value::String(text) = inner
                    && is_secret_name(name)
                    && is_random(text)
                    && in_text(text).is_empty()
                {
                    findings.push(finding(&here, SecretKind::Assignment));
                }
                walk(inner, &here, findings);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn shown(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}

/// A token that begins like this and goes on with at least so many characters of an alphabet.
struct Shape {
    prefix: &'static str,
    rest_min: usize,
    alphabet: fn(u8) -> bool,
    kind: SecretKind,
}

const fn shape(
    prefix: &'static str,
    rest_min: usize,
    alphabet: fn(u8) -> bool,
    kind: SecretKind,
) -> Shape {
    Shape { prefix, rest_min, alphabet, kind }
}

fn upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn joined(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

const SHAPES: &[Shape] = &[
    shape("AKIA", 16, upper, SecretKind::AwsKey),
    shape("ASIA", 16, upper, SecretKind::AwsKey),
    shape("AIza", 35, joined, SecretKind::GoogleKey),
    shape("ghp_", 36, plain, SecretKind::GithubToken),
    shape("gho_", 36, plain, SecretKind::GithubToken),
    shape("ghu_", 36, plain, SecretKind::GithubToken),
    shape("ghs_", 36, plain, SecretKind::GithubToken),
    shape("ghr_", 36, plain, SecretKind::GithubToken),
    shape("github_pat_", 40, joined, SecretKind::GithubToken),
    shape("glpat-", 20, joined, SecretKind::GitlabToken),
    shape("xoxb-", 20, joined, SecretKind::SlackToken),
    shape("xoxp-", 20, joined, SecretKind::SlackToken),
    shape("xoxa-", 20, joined, SecretKind::SlackToken),
    shape("xoxr-", 20, joined, SecretKind::SlackToken),
    shape("xoxs-", 20, joined, SecretKind::SlackToken),
    shape("xapp-", 20, joined, SecretKind::SlackToken),
    shape("sk_live_", 16, plain, SecretKind::StripeKey),
    shape("rk_live_", 16, plain, SecretKind::StripeKey),
    shape("whsec_", 24, plain, SecretKind::StripeKey),
    shape("sk-ant-", 24, joined, SecretKind::ModelKey),
    shape("sk-proj-", 24, joined, SecretKind::ModelKey),
    shape("sk-", 40, plain, SecretKind::ModelKey),
    shape("hf_", 30, plain, SecretKind::ModelKey),
    shape("npm_", 36, plain, SecretKind::RegistryToken),
    shape("pypi-", 40, joined, SecretKind::RegistryToken),
    shape("dop_v1_", 60, plain, SecretKind::RegistryToken),
];

fn in_text(text: &str) -> Vec<SecretKind> {
    let mut kinds = Vec::new();
    if text.contains("-----BEGIN") && text.contains("PRIVATE KEY-----") {
        kinds.push(SecretKind::PrivateKey);
    }
    for shape in SHAPES {
        if text.match_indices(shape.prefix).any(|(at, _)| fits(text, at, shape)) {
            kinds.push(shape.kind);
        }
    }
    if text.match_indices("eyJ").any(|(at, _)| begins_word(text, at) && is_web_token(&text[at..])) {
        kinds.push(SecretKind::WebToken);
    }
    if text.match_indices("://").any(|(at, _)| has_password(&text[at + 3..])) {
        kinds.push(SecretKind::UrlPassword);
    }
    if kinds.is_empty() && text.lines().any(assigns) {
        kinds.push(SecretKind::Assignment);
    }
    kinds
}

fn fits(text: &str, at: usize, shape: &Shape) -> bool {
    let rest = &text.as_bytes()[at + shape.prefix.len()..];
    let rest = &rest[..rest.len().min(LOOK_BYTES_MAX)];
    let run = rest.iter().take_while(|byte| (shape.alphabet)(**byte)).count();
    let rest = &rest[..run];
    // A row of one character stands for a token in documentation.
    begins_word(text, at) && run >= shape.rest_min && distinct(rest) > 4
}

fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(LOOK_BYTES_MAX)]
}

fn begins_word(text: &str, at: usize) -> bool {
    text[..at].chars().next_back().is_none_or(|before| !before.is_ascii_alphanumeric())
}

fn distinct(bytes: &[u8]) -> usize {
    let mut seen = [false; 256];
    bytes.iter().for_each(|byte| seen[usize::from(*byte)] = true);
    seen.iter().filter(|seen| **seen).count()
}

/// Three parts of base64, of which the first two are JSON objects. Claims may be long; a header is
/// not.
fn is_web_token(text: &str) -> bool {
    const CLAIMS_BYTES_MAX: usize = 8 * LOOK_BYTES_MAX;
    let part =
        |bytes: &[u8], max: usize| bytes.iter().take(max).take_while(|byte| joined(**byte)).count();
    let bytes = text.as_bytes();
    let header = part(bytes, LOOK_BYTES_MAX);
    let Some(rest) = bytes[header..].strip_prefix(b".eyJ") else { return false };
    let claims = part(rest, CLAIMS_BYTES_MAX);
    let signature = rest[claims..].strip_prefix(b".").map_or(0, |rest| part(rest, 64));
    header >= 16 && claims >= 8 && signature >= 16
}

/// `user:password@host`, at the beginning of a text.
fn has_password(rest: &str) -> bool {
    let rest = beginning(rest);
    let end = rest.find(|c: char| c.is_whitespace() || "/?#\"'<>".contains(c));
    let Some((user, _)) = rest[..end.unwrap_or(rest.len())].rsplit_once('@') else { return false };
    user.split_once(':')
        .is_some_and(|(_, password)| password.len() >= 4 && !is_placeholder(password))
}

const NAMES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "clientsecret",
    "accesstoken",
    "authtoken",
    "refreshtoken",
];

/// Whether a name ends in a word for something that should stay secret.
fn is_secret_name(name: &str) -> bool {
    let plain: String =
        name.chars().filter(char::is_ascii_alphanumeric).flat_map(char::to_lowercase).collect();
    NAMES.iter().any(|known| plain.ends_with(known)) || plain == "token"
}

/// `name = value` or `name: value`, with or without quotes.
fn assigns(line: &str) -> bool {
    line.match_indices(['=', ':']).any(|(at, _)| {
        let name = line[..at].trim_end().trim_end_matches(['"', '\'', '`']);
        let start = name.rfind(|c: char| !(c.is_ascii_alphanumeric() || "_-.".contains(c)));
        let name = start.map_or(name, |at| {
            name[at..]
                .trim_start_matches(|c: char| !(c.is_ascii_alphanumeric() || "_-.".contains(c)))
        });
        if !is_secret_name(name) {
            return false;
        }
        let value = beginning(&line[at + 1..]).trim_start_matches(['=', ':', '>', ' ', '\t']);
        let value = value.trim_start_matches(['"', '\'', '`']);
        let end = value.find(|c: char| c.is_whitespace() || "\"'`,;".contains(c));
        is_random(&value[..end.unwrap_or(value.len())])
    })
}

/// Whether a value looks as if it was made to be guessed by nobody: long enough, of several kinds
/// of characters, without much repetition.
fn is_random(value: &str) -> bool {
    let bytes = value.as_bytes();
    let kinds: [fn(&u8) -> bool; 4] = [
        u8::is_ascii_lowercase,
        u8::is_ascii_uppercase,
        u8::is_ascii_digit,
        u8::is_ascii_punctuation,
    ];
    let kinds = kinds.iter().filter(|kind| bytes.iter().any(kind)).count();
    let spread = distinct(bytes) * 2 >= bytes.len().min(24);
    (8..=512).contains(&bytes.len()) && kinds >= 2 && spread && !is_placeholder(value)
}

/// What stands for a secret in documentation and templates.
fn is_placeholder(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let words = ["example", "placeholder", "changeme", "redacted", "your", "xxxx", "****", "dummy"];
    let marks = ["${", "{{", "<", "$(", "%(", "..."];
    let paths = ["process.env", "os.environ", "env.", "vault:", "secrets."];
    let begins = marks.iter().any(|mark| lower.starts_with(mark)) || lower.starts_with('$');
    begins || words.iter().chain(&paths).any(|word| lower.contains(word)) || lower.ends_with("()")
}

// SPDX-License-Identifier: Apache-2.0
//! What looks like a secret in one text. All beginnings are looked for in one pass: a search for
//! each was a seventh of what the broker did.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use super::shapes::{SHAPES, Shape, joined};
use super::{LOOK_BYTES_MAX, SecretKind};

/// After five dashes. Those are not looked for, because some tokens begin with a dash at their end.
pub(super) const KEY: &str = "BEGIN";
const WEB_TOKEN: &str = "eyJ";
pub(super) const URL: &str = "://";

/// Where something may begin that is looked for, and what each beginning may turn out to be.
static BEGINNINGS: LazyLock<Beginnings> = LazyLock::new(Beginnings::new);

struct Beginnings {
    /// None of these hides another one that begins within it, so one match at each place is enough; a
    /// test says so.
    automaton: AhoCorasick,
    /// By the number of the beginning: the shapes with it. A text rarely has even one beginning in it, so
    /// what a text costs must not grow with the number of shapes.
    shapes: Vec<Vec<usize>>,
}

impl Beginnings {
    fn new() -> Self {
        let words = beginnings();
        let with = |word: &&str| {
            let shapes = SHAPES.iter().enumerate();
            shapes.filter(|(_, shape)| shape.prefix.starts_with(*word)).map(|(at, _)| at).collect()
        };
        let shapes = words.iter().map(with).collect();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostFirst)
            .kind(Some(AhoCorasickKind::DFA))
            .build(words)
            .expect("a few short words make a small automaton");
        Self { automaton, shapes }
    }
}

pub(super) fn beginnings() -> Vec<&'static str> {
    let shapes = SHAPES.iter().map(|shape| shape.prefix);
    // Whoever begins with another one is found by that.
    let longer = |one: &&str| SHAPES.iter().any(|s| s.prefix != *one && one.starts_with(s.prefix));
    [KEY, WEB_TOKEN, URL].into_iter().chain(shapes.filter(|one| !longer(one))).collect()
}

pub(super) fn in_text(text: &str) -> Vec<SecretKind> {
    let mut shapes = BTreeSet::new();
    let (mut key, mut web_token, mut url) = (false, false, false);
    let beginnings = &*BEGINNINGS;
    for found in beginnings.automaton.find_iter(text) {
        let at = found.start();
        let rest = &text[at..];
        if let Some(authority) = rest.strip_prefix(URL) {
            url = url || has_password(authority);
        } else if rest.starts_with(KEY) {
            key = key || text[..at].ends_with("-----");
        } else if begins_word(text, at) {
            web_token = web_token || (rest.starts_with(WEB_TOKEN) && is_web_token(rest));
            let candidates = beginnings.shapes[found.pattern().as_usize()].iter().copied();
            shapes.extend(candidates.filter(|shape| fits(rest, &SHAPES[*shape])));
        }
    }
    let mut kinds = Vec::new();
    if key && text.contains("PRIVATE KEY-----") {
        kinds.push(SecretKind::PrivateKey);
    }
    kinds.extend(shapes.into_iter().map(|shape| SHAPES[shape].kind));
    if web_token {
        kinds.push(SecretKind::WebToken);
    }
    if url {
        kinds.push(SecretKind::UrlPassword);
    }
    if kinds.is_empty() && text.lines().any(assigns) {
        kinds.push(SecretKind::Assignment);
    }
    kinds
}

/// Whether a text begins with a token of this shape.
fn fits(text: &str, shape: &Shape) -> bool {
    let Some(rest) = text.as_bytes().strip_prefix(shape.prefix.as_bytes()) else { return false };
    let rest = &rest[..rest.len().min(LOOK_BYTES_MAX)];
    let run = rest.iter().take_while(|byte| (shape.alphabet)(**byte)).count();
    let rest = &rest[..run];
    // A row of one character stands for a token in documentation.
    run >= shape.rest_min && distinct(rest) > 4
}

pub(super) fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(LOOK_BYTES_MAX)]
}

fn begins_word(text: &str, at: usize) -> bool {
    text.as_bytes()[..at].last().is_none_or(|before| !before.is_ascii_alphanumeric())
}

pub(super) fn distinct(bytes: &[u8]) -> usize {
    let mut seen = [false; 256];
    bytes.iter().for_each(|byte| seen[usize::from(*byte)] = true);
    seen.iter().filter(|seen| **seen).count()
}

/// Three parts of base64, of which the first two are JSON objects and the first names an algorithm.
/// Claims may be long; a header is not.
pub(super) fn is_web_token(text: &str) -> bool {
    const CLAIMS_BYTES_MAX: usize = 8 * LOOK_BYTES_MAX;
    let part =
        |bytes: &[u8], max: usize| bytes.iter().take(max).take_while(|byte| joined(**byte)).count();
    let bytes = text.as_bytes();
    let header = part(bytes, LOOK_BYTES_MAX);
    let Some(rest) = bytes[header..].strip_prefix(b".eyJ") else { return false };
    let claims = part(rest, CLAIMS_BYTES_MAX);
    let signature = rest[claims..].strip_prefix(b".").map_or(0, |rest| part(rest, 64));
    header >= 16 && claims >= 8 && signature >= 16 && names_algorithm(&bytes[..header])
}

/// Whether the header of a token is one: others only look like it.
fn names_algorithm(header: &[u8]) -> bool {
    let Ok(json) = URL_SAFE_NO_PAD.decode(header) else { return false };
    let header: Option<Map<String, Value>> = serde_json::from_slice(&json).ok();
    header.is_some_and(|header| header.get("alg").is_some_and(Value::is_string))
}

/// `user:password@host`, at the beginning of a text.
pub(super) fn has_password(rest: &str) -> bool {
    let rest = beginning(rest);
    let end = rest.find(|c: char| c.is_whitespace() || "/?#\"'<>".contains(c));
    let Some((user, _)) = rest[..end.unwrap_or(rest.len())].rsplit_once('@') else { return false };
    user.split_once(':')
        .is_some_and(|(_, password)| password.len() >= 4 && !is_placeholder(password))
}

pub(super) const NAMES: &[&str] = &[
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
    "bearertoken",
    "apitoken",
    "apisecret",
    "appkey",
    "authkey",
    "signingkey",
    "encryptionkey",
    "licensekey",
    "credential",
    "credentials",
    "creds",
    "webhooksecret",
    "sessiontoken",
];

/// Whether a name ends in a word for something that should stay secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    let backwards = || {
        let plain = name.bytes().rev().filter(u8::is_ascii_alphanumeric);
        plain.map(|byte| byte.to_ascii_lowercase())
    };
    let ends_in = |known: &&str| {
        let mut name = backwards();
        known.bytes().rev().all(|byte| name.next() == Some(byte))
    };
    backwards().next().is_some_and(ends_name)
        && (NAMES.iter().any(ends_in) || backwards().eq("token".bytes().rev()))
}

/// Whether one of the words ends in this letter, which rules most names out.
fn ends_name(last: u8) -> bool {
    matches!(last.to_ascii_lowercase(), b'd' | b'e' | b'l' | b'n' | b's' | b't' | b'y')
}

/// `name = value` or `name: value`, with or without quotes.
fn assigns(line: &str) -> bool {
    let bytes = line.as_bytes();
    memchr::memchr2_iter(b'=', b':', bytes)
        .any(|at| may_be_secret(&bytes[..at]) && assigns_at(line, at))
}

/// Whether the last letter before an assignment lets its name be that of a secret. Where that takes
/// more than a look at a few bytes, it may be.
fn may_be_secret(before: &[u8]) -> bool {
    let is_space = |byte: &u8| *byte == 0x0b || byte.is_ascii_whitespace();
    let is_quote = |byte: &u8| matches!(byte, b'"' | b'\'' | b'`');
    let mut before = before.iter().rev().copied().skip_while(is_space).skip_while(is_quote);
    let last = before.find(|byte| !matches!(byte, b'_' | b'-' | b'.'));
    last.is_some_and(|last| !last.is_ascii() || ends_name(last))
}

fn assigns_at(line: &str, at: usize) -> bool {
    let name = line[..at].trim_end().trim_end_matches(['"', '\'', '`']);
    let start = name.rfind(|c: char| !(c.is_ascii_alphanumeric() || "_-.".contains(c)));
    let name = start.map_or(name, |at| {
        name[at..].trim_start_matches(|c: char| !(c.is_ascii_alphanumeric() || "_-.".contains(c)))
    });
    if !is_secret_name(name) {
        return false;
    }
    let value = beginning(&line[at + 1..]).trim_start_matches(['=', ':', '>', ' ', '\t']);
    let value = value.trim_start_matches(['"', '\'', '`']);
    let end = value.find(|c: char| c.is_whitespace() || "\"'`,;".contains(c));
    is_random(&value[..end.unwrap_or(value.len())])
}

/// How many bits each character of a secret tells at least. Words of a language tell about as much, which
/// is why several kinds of characters are asked for besides.
const ENTROPY_BITS_MIN: f64 = 2.5;

/// How many bits a character of a text tells, by how often each occurs in it.
fn entropy_bits(bytes: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let all = bytes.len() as f64;
    let shares = counts.iter().filter(|count| **count > 0).map(|count| f64::from(*count) / all);
    shares.map(|share| -share * share.log2()).sum()
}

/// Whether a value looks as if it was made to be guessed by nobody: long enough, of several kinds
/// of characters, without much repetition.
pub(super) fn is_random(value: &str) -> bool {
    let bytes = value.as_bytes();
    let kinds: [fn(&u8) -> bool; 4] = [
        u8::is_ascii_lowercase,
        u8::is_ascii_uppercase,
        u8::is_ascii_digit,
        u8::is_ascii_punctuation,
    ];
    let kinds = kinds.iter().filter(|kind| bytes.iter().any(kind)).count();
    (8..=512).contains(&bytes.len())
        && kinds >= 2
        && entropy_bits(bytes) >= ENTROPY_BITS_MIN
        && !is_placeholder(value)
}

/// What stands for a secret in documentation and templates.
pub(super) fn is_placeholder(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let words = ["example", "placeholder", "changeme", "redacted", "your", "xxxx", "****", "dummy"];
    let marks = ["${", "{{", "<", "$(", "%(", "..."];
    let paths = ["process.env", "os.environ", "env.", "vault:", "secrets."];
    let begins = marks.iter().any(|mark| lower.starts_with(mark)) || lower.starts_with('$');
    begins || words.iter().chain(&paths).any(|word| lower.contains(word)) || lower.ends_with("()")
}

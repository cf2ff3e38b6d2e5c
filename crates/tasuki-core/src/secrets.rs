// SPDX-License-Identifier: Apache-2.0
//! Secrets that agents pass on by mistake: what is stored is read by many and kept for long, so it
//! is looked at before. Shapes that providers publish are taken for certain, an assignment such as
//! `password=…` for likely. A finding says where and of what kind, and never what.

use serde_json::Value;

use crate::event::words;
use crate::refusal::Refusal;

/// How many findings are told at once.
pub const FINDINGS_MAX: usize = 32;
/// How far a token or a value is looked at. Without an end, a text made of beginnings would take
/// the square of its length.
const LOOK_BYTES_MAX: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretKind {
    PrivateKey,
    AwsKey,
    GoogleKey,
    GithubToken,
    GitlabToken,
    SlackToken,
    StripeKey,
    ModelKey,
    RegistryToken,
    WebToken,
    UrlPassword,
    Assignment,
}

words!(SecretKind {
    PrivateKey = "private_key",
    AwsKey = "aws_key",
    GoogleKey = "google_key",
    GithubToken = "github_token",
    GitlabToken = "gitlab_token",
    SlackToken = "slack_token",
    StripeKey = "stripe_key",
    ModelKey = "model_key",
    RegistryToken = "registry_token",
    WebToken = "web_token",
    UrlPassword = "url_password",
    Assignment = "assignment",
});

impl SecretKind {
    /// Whether the shape alone leaves no doubt. A web token may be an expired example, and an
    /// assignment a line of documentation.
    #[must_use]
    pub fn is_certain(self) -> bool {
        match self {
            Self::WebToken | Self::UrlPassword | Self::Assignment => false,
            Self::PrivateKey
            | Self::AwsKey
            | Self::GoogleKey
            | Self::GithubToken
            | Self::GitlabToken
            | Self::SlackToken
            | Self::StripeKey
            | Self::ModelKey
            | Self::RegistryToken => true,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Where it is, as a JSON pointer.
    pub path: String,
    pub kind: SecretKind,
}

/// What is done about findings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Policy {
    /// What is certain is refused, what is likely is told.
    #[default]
    Block,
    /// Everything is told and nothing refused.
    Warn,
    /// Nobody looks.
    Off,
}

words!(Policy { Block = "block", Warn = "warn", Off = "off" });

impl Policy {
    /// What is to be told about a value, or why it is refused.
    pub fn check(self, value: &Value) -> Result<Vec<Finding>, Refusal> {
        let findings = if self == Self::Off { Vec::new() } else { scan(value) };
        match findings.iter().find(|found| self == Self::Block && found.kind.is_certain()) {
            Some(Finding { path, kind }) => {
                Err(Refusal::SecretFound { path: path.clone(), kind: *kind })
            }
            None => Ok(findings),
        }
    }
}

/// Looks at every text of a value, names of members included.
#[must_use]
pub fn scan(value: &Value) -> Vec<Finding> {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Tokens are put together here, so that no scanner takes this file for a leak.
    fn token(prefix: &str, length: usize) -> String {
        let alphabet = "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY";
        prefix.chars().chain(alphabet.chars().cycle().take(length)).collect()
    }

    #[track_caller]
    fn found(text: &str) -> Vec<SecretKind> {
        scan(&json!({ "text": text })).into_iter().map(|finding| finding.kind).collect()
    }

    #[test]
    fn tokens_of_known_shapes_are_found_within_sentences() {
        for (text, kind) in [
            (token("ghp_", 36), SecretKind::GithubToken),
            (token("glpat-", 20), SecretKind::GitlabToken),
            (token("xoxb-", 40), SecretKind::SlackToken),
            (token("sk_live_", 24), SecretKind::StripeKey),
            (token("AIza", 35), SecretKind::GoogleKey),
            (token("sk-ant-", 40), SecretKind::ModelKey),
            (token("AKIA", 0) + "QWERTZ1234567890", SecretKind::AwsKey),
            (format!("-----BEGIN RSA {} KEY-----\nMII", "PRIVATE"), SecretKind::PrivateKey),
            (
                format!("{}.{}.{}", token("eyJ", 20), token("eyJ", 20), token("", 43)),
                SecretKind::WebToken,
            ),
            (format!("postgres://app:{}@db/x", token("", 12)), SecretKind::UrlPassword),
            (format!("DB_PASSWORD={}", token("", 12)), SecretKind::Assignment),
            (format!("\"client_secret\": \"{}\",", token("", 20)), SecretKind::Assignment),
        ] {
            assert_eq!(found(&format!("use {text} for it")), [kind], "{kind}");
        }
    }

    #[test]
    fn what_only_resembles_a_secret_is_left_alone() {
        for harmless in [
            "the password is kept in the vault",
            "password=${DB_PASSWORD}",
            "api_key: <your key here>",
            "token = os.environ['TOKEN_FOR_CI_7']",
            "see https://example.org/a:b@c and git@host:repo.git",
            "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "asia is a continent, AKIA is not",
            "monkey: business7 and secretary: Miller99x",
            "password: hunter",
        ] {
            assert_eq!(found(harmless), [], "{harmless}");
        }
    }

    #[test]
    fn a_finding_names_the_place_and_never_the_secret() {
        let secret = token("ghp_", 36);
        let value = json!({ "a": [{ "b/c": secret }], secret.clone(): { "x": secret } });
        let findings = scan(&value);
        assert_eq!(findings[0].path, "/a/0/b~1c");
        assert!(findings.iter().all(|finding| !finding.path.contains(&secret)));
        assert!(findings.iter().any(|finding| finding.path == "/…/x"));
        let refused = Policy::Block.check(&value).unwrap_err();
        assert!(!refused.to_string().contains(&secret));
    }

    #[test]
    fn a_member_with_a_telling_name_is_found_by_it() {
        let value = json!({ "login": { "apiKey": token("", 20), "user": token("", 20) } });
        let kind = SecretKind::Assignment;
        assert_eq!(scan(&value), [Finding { path: "/login/apiKey".into(), kind }]);
    }

    #[test]
    fn what_is_certain_is_blocked_and_what_is_likely_told() {
        let certain = json!({ "x": token("ghp_", 36) });
        let likely = json!({ "x": format!("password={}", token("", 12)) });
        assert!(Policy::Block.check(&certain).is_err());
        assert_eq!(Policy::Block.check(&likely).unwrap().len(), 1);
        assert_eq!(Policy::Warn.check(&certain).unwrap().len(), 1);
        assert_eq!(Policy::Off.check(&certain), Ok(Vec::new()));
    }

    #[test]
    fn a_text_made_of_beginnings_takes_no_longer_than_others() {
        for hostile in ["xoxb-", "eyJ-", "password:", "a://b:c@"] {
            // Looked at to its end from every place, this would take minutes.
            assert!(found(&hostile.repeat(1 << 18)).len() <= FINDINGS_MAX);
        }
    }

    #[test]
    fn findings_are_bounded() {
        let many: Vec<_> = (0..1000).map(|_| token("ghp_", 36)).collect();
        assert_eq!(scan(&json!(many)).len(), FINDINGS_MAX);
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Secrets that agents pass on by mistake: what is stored is read by many and kept for long, so it
//! is looked at before. Shapes that providers publish are taken for certain, an assignment such as
//! `password=…` for likely. A finding says where and of what kind, and never what.

mod shapes;
mod text;

#[cfg(test)]
mod reference;

use serde_json::{Map, Value};

use crate::event::words;
use crate::refusal::Refusal;
use text::{in_text, is_random, is_secret_name};

/// How many findings are told at once.
pub const FINDINGS_MAX: usize = 32;
/// How far a token or a value is looked at. Without an end, a text made of beginnings would take
/// the square of its length.
const LOOK_BYTES_MAX: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretKind {
    PrivateKey,
    OwnToken,
    AwsKey,
    GoogleKey,
    GithubToken,
    GitlabToken,
    SlackToken,
    StripeKey,
    ModelKey,
    RegistryToken,
    ProviderToken,
    WebToken,
    UrlPassword,
    Assignment,
}

words!(SecretKind {
    PrivateKey = "private_key",
    OwnToken = "tasuki_token",
    AwsKey = "aws_key",
    GoogleKey = "google_key",
    GithubToken = "github_token",
    GitlabToken = "gitlab_token",
    SlackToken = "slack_token",
    StripeKey = "stripe_key",
    ModelKey = "model_key",
    RegistryToken = "registry_token",
    ProviderToken = "provider_token",
    WebToken = "web_token",
    UrlPassword = "url_password",
    Assignment = "assignment",
});

impl SecretKind {
    /// Whether the shape alone leaves no doubt. A password may be an example, and an assignment a line
    /// of documentation.
    #[must_use]
    pub fn is_certain(self) -> bool {
        match self {
            Self::UrlPassword | Self::Assignment => false,
            Self::PrivateKey
            | Self::OwnToken
            | Self::WebToken
            | Self::AwsKey
            | Self::GoogleKey
            | Self::GithubToken
            | Self::GitlabToken
            | Self::SlackToken
            | Self::StripeKey
            | Self::ModelKey
            | Self::RegistryToken
            | Self::ProviderToken => true,
        }
    }
}

/// A place where something looks like a secret, and what kind.
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
        if self == Self::Off { Ok(Vec::new()) } else { self.decide(scan(value)) }
    }

    /// The same for the members of an object.
    pub fn check_members(self, members: &Map<String, Value>) -> Result<Vec<Finding>, Refusal> {
        if self == Self::Off { Ok(Vec::new()) } else { self.decide(scan_members(members)) }
    }

    fn decide(self, findings: Vec<Finding>) -> Result<Vec<Finding>, Refusal> {
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
    walk(value, &Place::Top, &mut findings);
    findings.truncate(FINDINGS_MAX);
    findings
}

/// The same for the members of an object.
#[must_use]
pub fn scan_members(members: &Map<String, Value>) -> Vec<Finding> {
    let mut findings = Vec::new();
    walk_members(members, &Place::Top, &mut findings);
    findings.truncate(FINDINGS_MAX);
    findings
}

/// Where a value is. It is written out only if something is found there.
enum Place<'a> {
    Top,
    Item(&'a Self, usize),
    Member(&'a Self, &'a str),
}

impl Place<'_> {
    /// As a JSON pointer.
    fn pointer(&self) -> String {
        match self {
            Self::Top => "/".to_owned(),
            Self::Item(..) | Self::Member(..) => {
                let mut path = String::new();
                self.write(&mut path);
                path
            }
        }
    }

    fn write(&self, path: &mut String) {
        match self {
            Self::Top => {}
            Self::Item(above, place) => {
                above.write(path);
                path.push('/');
                path.push_str(&place.to_string());
            }
            Self::Member(above, name) => {
                above.write(path);
                path.push('/');
                path.push_str(&name.replace('~', "~0").replace('/', "~1"));
            }
        }
    }

    fn finding(&self, kind: SecretKind) -> Finding {
        Finding { path: self.pointer(), kind }
    }
}

fn walk(value: &Value, place: &Place<'_>, findings: &mut Vec<Finding>) {
    if findings.len() >= FINDINGS_MAX {
        return;
    }
    match value {
        Value::String(text) => {
            let mut kinds = in_text(text);
            kinds.dedup();
            findings.extend(kinds.into_iter().map(|kind| place.finding(kind)));
        }
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                walk(item, &Place::Item(place, number), findings);
            }
        }
        Value::Object(members) => walk_members(members, place, findings),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn walk_members(members: &Map<String, Value>, place: &Place<'_>, findings: &mut Vec<Finding>) {
    for (name, inner) in members {
        // A name that is itself a secret must not be told as part of a path.
        let kinds = in_text(name);
        let hidden = !kinds.is_empty();
        findings.extend(kinds.into_iter().map(|kind| place.finding(kind)));
        let here = Place::Member(place, if hidden { "…" } else { name.as_str() });
        if let Value::String(text) = inner
            && is_secret_name(name)
            && is_random(text)
            && in_text(text).is_empty()
        {
            findings.push(here.finding(SecretKind::Assignment));
        }
        walk(inner, &here, findings);
    }
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
                format!("eyJhbGciOiJIUzI1NiJ9.{}.{}", token("eyJ", 20), token("", 43)),
                SecretKind::WebToken,
            ),
            (token("tsk_01m7gv2ryye8za1ax4v4yrwjvg_", 64), SecretKind::OwnToken),
            (token("ed25519-secret:", 43), SecretKind::OwnToken),
            (token("hvs.", 90), SecretKind::ProviderToken),
            (token("SG.", 66), SecretKind::ProviderToken),
            (token("glrt-", 20), SecretKind::GitlabToken),
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
            "see eyJhbGciOiJub3BlIn0 and SKU 4711, sha256~ and API-first",
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
    fn no_beginning_hides_another() {
        let all: Vec<_> = text::beginnings();
        for (one, other) in all.iter().flat_map(|one| all.iter().map(move |other| (one, other))) {
            // A match that begins within another one would not be looked at. What begins there must
            // then be no word of its own, because a letter or a digit comes before it.
            let inside = (1..one.len())
                .filter(|at| other.starts_with(&one[*at..]) || one[*at..].starts_with(other));
            for at in inside {
                let letter = one.as_bytes()[at - 1].is_ascii_alphanumeric();
                assert!(letter && ![text::URL, text::KEY].contains(other), "{other} within {one}");
            }
        }
    }

    #[test]
    fn findings_are_bounded() {
        let many: Vec<_> = (0..1000).map(|_| token("ghp_", 36)).collect();
        assert_eq!(scan(&json!(many)).len(), FINDINGS_MAX);
    }

    /// Pieces that texts with secrets in them are made of, and what nearly is one.
    const PIECES: &[&str] = &[
        "AKIA",
        "ASIA",
        "AIza",
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat_",
        "glpat-",
        "xoxb-",
        "xoxp-",
        "xapp-",
        "sk_live_",
        "rk_live_",
        "whsec_",
        "sk-ant-",
        "sk-proj-",
        "sk-",
        "hf_",
        "npm_",
        "pypi-",
        "dop_v1_",
        "eyJ",
        ".eyJ",
        "://",
        "http",
        "user:",
        "hunter2x",
        "@host",
        "-----BEGIN",
        "-----",
        "PRIVATE KEY-----",
        " RSA ",
        "BEGIN",
        "password",
        "PassWord",
        "api_key",
        "API-KEY",
        "secret",
        "client.secret",
        "token",
        "passwd",
        "refresh_token",
        "=",
        ": ",
        ":",
        "=>",
        "\"",
        "'",
        "`",
        ",",
        ";",
        "\n",
        "\r\n",
        " ",
        "\t",
        "\u{a0}",
        "é",
        "😀",
        "_",
        "-",
        ".",
        "/",
        "<",
        "${X}",
        "your",
        "xxxx",
        "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY",
        "x1Y2z3W4",
        "QWERTZ1234567890",
        "0123456789",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "Aa1!Bb2?Cc3",
    ];

    fn any_text() -> impl proptest::strategy::Strategy<Value = String> {
        use proptest::prelude::*;
        let piece = prop_oneof![
            9 => (0..PIECES.len()).prop_map(|place| PIECES[place].to_owned()),
            1 => "[ -~é\n]{0,12}",
        ];
        proptest::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat())
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(4_000))]
        #[test]
        fn one_pass_finds_what_a_search_for_each_finds(name in any_text(), text in any_text()) {
            let value = json!({ name.clone(): text, "list": [text, { "token": name }] });
            proptest::prop_assert_eq!(scan(&value), reference::scan(&value));
            proptest::prop_assert_eq!(
                scan_members(value.as_object().unwrap()),
                reference::scan(&value)
            );
        }
    }
}

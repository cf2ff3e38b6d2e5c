// SPDX-License-Identifier: Apache-2.0
//! One entry point for each parser of strangers' bytes.

use serde_json::{Map, Value};
use tasuki_core::canonical::{self, Body};
use tasuki_core::chain::{self, ChainFile};
use tasuki_core::envelope::{Envelope, Payload, version};
use tasuki_core::identity::{PublicKey, Signature, digest, message};
use tasuki_core::manifest::{Manifest, bounds, schema};
use tasuki_core::registry::rules::{self, Rule};
use tasuki_core::reserve::Resource;
use tasuki_core::{redact, secrets, trust};

pub(super) struct Target {
    pub(super) name: &'static str,
    /// Takes any bytes; says whether they were what they should be.
    pub(super) takes: fn(&[u8]) -> bool,
    pub(super) seeds: &'static [&'static str],
    /// What is put into cases now and then.
    pub(super) words: &'static [&'static str],
}

const JSON: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "null",
    "true",
    "-0",
    "1e400",
    "9007199254740993",
    "1.0",
    "\\u0000",
    "\\ud800",
    "\\ud83d\\ude00",
    "\u{2028}",
    "\u{feff}",
    "\"a\":1",
    "[[[[[[[[",
    " ",
];

pub(super) const TARGETS: &[Target] = &[
    Target {
        name: "json",
        takes: json,
        seeds: &[r#"{"a":[1,-2.5,"x\u00e9",null,true],"b":{"c":{}}}"#, "[]", "\"\""],
        words: JSON,
    },
    Target {
        name: "canonical",
        takes: canonical_form,
        seeds: &[r#"{"z":1,"a":1.0,"\u00e9":"e\u0301"}"#, "[1e21,0.000001,-0]"],
        words: JSON,
    },
    Target {
        name: "signature",
        takes: signature,
        seeds: &["sig=(\"@method\" \"@authority\" \"@path\" \"@query\");created=1800000000;\
             expires=1800000030;nonce=\"nonce-0000000000000001\";keyid=\"key_01m7gv2ryye8za1ax4v4yrwjvg\";\
             tag=\"tasuki-v1\"\nsig=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==:"],
        words: &["\"", ";", "=", ":", "(", ")", ",", "tag=\"tasuki-v1\"", "created=", "?1", "\\\\"],
    },
    Target {
        name: "digest",
        takes: content_digest,
        seeds: &["sha-256=:RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=:"],
        words: &["sha-256=", "sha-512=", ":", ",", "=", "::"],
    },
    Target {
        name: "envelope",
        takes: envelope,
        seeds: &[
            r#"{"envelope_version":"2.0","task_id":"task_01m7gv2ryye8za1ax4v4yrwjvg","hop":0,"from_agent":"a","to":{"agent":"b"},"control":"passed","intent":"i","payload":{"type":"t"},"created_at":"2026-01-01T00:00:00Z"}"#,
        ],
        words: &["\"constraints\":[]", "\"agent\"", "{\"capability\":\"c\"}", "\"2.9\"", "{", "]"],
    },
    Target {
        name: "envelope_1",
        takes: envelope_1,
        seeds: &[
            r#"{"envelope_version":"1.0","task_id":"t","from_agent":"a","to_agent":"b","intent":"i","context":{"summary":"s"},"payload":{"type":"t"}}"#,
        ],
        words: JSON,
    },
    Target {
        name: "payload",
        takes: payload,
        seeds: &[
            r#"{"type":"t","parts":[{"text":"x","kind":"data","trust":"tool"}],"note":"password=x7Gq2mX9pLz4"}"#,
        ],
        words: &["ghp_", "eyJ", "-----BEGIN", "://a:b@", "\"parts\"", "tsk_", "token=", "SG."],
    },
    Target {
        name: "manifest",
        takes: manifest,
        seeds: &[
            r#"{"agent_id":"a","capabilities":[{"name":"c","input_schema":{"x":"int?"},"timeout_seconds":5}],"delivery":{"mode":"webhook","url":"https://example.org/"}}"#,
        ],
        words: &[
            "\"$ref\":\"#\"",
            "[]",
            "?",
            "\"type\":\"object\"",
            "\"fallbacks\":[\"b\"]",
            "1e9",
        ],
    },
    Target {
        name: "schema",
        takes: schema_and_value,
        seeds: &[
            r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/x"},"b":{"pattern":"^(a{1,3})+$"}},"$defs":{"x":{"anyOf":[{"type":"string"},{"items":{"$ref":"#"}}]}},"unevaluatedProperties":false}"##,
            "{\"type\":\"array\",\"items\":{\"type\":\"integer\",\"maximum\":9},\"uniqueItems\":true}\n[1,2,10,2]",
        ],
        words: &[
            "\"$ref\":\"#\"",
            "\"allOf\":[",
            "{9999}",
            "(",
            "[",
            "\"not\":",
            "\n",
            "%2F",
            "\"$anchor\":\"x\"",
        ],
    },
    Target {
        name: "globs",
        takes: globs,
        seeds: &["src/**/a*b/*.rs\nsrc/x/ab/c.rs", "team-*\nteam-x"],
        words: &["*", "**", "/", "..", "?", "a", "\n"],
    },
    Target {
        name: "rules",
        takes: rule_list,
        seeds: &[
            r#"[{"permissions":["send","claim"],"targets":["team-*"],"projects":["web"],"effect":"deny"}]"#,
        ],
        words: &["\"*\"", "\"admin\"", "\"role\":\"worker\"", "\"effect\":\"allow\"", "[]", "null"],
    },
    Target {
        name: "chain",
        takes: chain_file,
        seeds: &[
            r#"{"format":"tasuki-chain","version":1,"exported_at":"2026-01-01T00:00:00Z","task_id":"task_01m7gv2ryye8za1ax4v4yrwjvg","tasks":[]}"#,
        ],
        words: JSON,
    },
];

fn json(bytes: &[u8]) -> bool {
    canonical::parse(bytes).is_ok()
}

/// What was written in the canonical form reads as the same, and is written as the same again.
fn canonical_form(bytes: &[u8]) -> bool {
    let Ok(value) = canonical::parse(bytes) else { return false };
    let body = Body::of(&value);
    let again = canonical::parse(body.text().as_bytes()).expect("what we wrote can be read");
    assert_eq!(Body::of(&again).text(), body.text());
    assert_eq!(canonical::address(&again), body.hash);
    true
}

/// Two headers, each in a line.
fn signature(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let (input, signature) = text.split_once('\n').unwrap_or((text, ""));
    let _ = text.parse::<PublicKey>();
    let _ = text.parse::<Signature>();
    let _ = message::authority(text, 443);
    message::Presented::parse(input, signature).is_ok()
}

fn content_digest(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let covered = digest::covering(Some(text), b"{}");
    assert!(digest::check(&digest::of(bytes), bytes).is_ok());
    covered.is_ok()
}

fn read<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_value(canonical::parse(bytes).ok()?).ok()
}

/// An envelope is the same after it was stored, and can be given in the other major.
fn envelope(bytes: &[u8]) -> bool {
    let Some(envelope) = read::<Envelope>(bytes) else { return false };
    let body = envelope.body();
    let again: Envelope = serde_json::from_str(body.text()).expect("what is stored can be read");
    assert_eq!(again.body().text(), body.text());
    let _ = envelope.authored();
    if let Ok(Value::Object(members)) = serde_json::from_str(body.text()) {
        let _ = version::to_1(members);
    }
    true
}

fn envelope_1(bytes: &[u8]) -> bool {
    let Some(flat) = read::<Map<String, Value>>(bytes) else { return false };
    let _ = version::offer_from_1(flat.clone());
    let _ = version::to_1(flat.clone());
    version::from_1(flat).is_ok()
}

/// Labels are read, secrets are found, and none that is certain is left by taking them out.
fn payload(bytes: &[u8]) -> bool {
    let Some(payload) = read::<Payload>(bytes) else { return false };
    let _ = trust::parts(&payload);
    let mut value = Value::Object(payload.members().clone());
    let found = secrets::scan(&value);
    assert!(found.len() <= secrets::FINDINGS_MAX);
    redact::redact(&mut value);
    true
}

fn manifest(bytes: &[u8]) -> bool {
    let Ok(value) = canonical::parse(bytes) else { return false };
    let Ok(manifest) = Manifest::parse(value) else { return false };
    let stored = serde_json::from_str(manifest.body().text()).expect("it was just written");
    let again = Manifest::parse(stored).expect("what was taken is taken again");
    assert_eq!(again.body().text(), manifest.body().text());
    true
}

/// A schema in a line, and the value that is held against it: in the next, or the schema itself. What is
/// within its bounds is compiled, and the value is held against it.
fn schema_and_value(bytes: &[u8]) -> bool {
    let mut lines = bytes.splitn(2, |byte| *byte == b'\n');
    let Ok(given) = canonical::parse(lines.next().unwrap_or_default()) else { return false };
    let value = lines.next().and_then(|line| canonical::parse(line).ok());
    let value = value.unwrap_or_else(|| given.clone());
    let Ok(schema) = schema::normalise(given) else { return false };
    if bounds::check(&schema).is_err() {
        return false;
    }
    let _ = tasuki_core::manifest::fits::fits(&schema, &schema);
    let Some(faults) = tasuki_engine::faults_by(&schema, &value) else { return false };
    if faults == 0 {
        assert!(bounds::steps(&schema, &value).is_ok(), "what is too costly does not fit");
    }
    true
}

/// A pattern and a name, each in a line.
fn globs(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let (pattern, name) = text.split_once('\n').unwrap_or((text, text));
    let matched = rules::matches(pattern, name);
    let both = (pattern.parse::<Resource>(), name.parse::<Resource>());
    if let (Ok(one), Ok(other)) = both
        && one.check().is_ok()
        && other.check().is_ok()
    {
        assert_eq!(one.overlaps(&other), other.overlaps(&one));
        assert!(one.overlaps(&one));
    }
    matched
}

fn rule_list(bytes: &[u8]) -> bool {
    let Some(list) = read::<Vec<Rule>>(bytes) else { return false };
    for rule in &list {
        let _ = rule.fault();
    }
    let _ = rules::allow_all(&list, tasuki_core::registry::rules::Permission::Send);
    let stored = Body::of(&list);
    let again: Vec<Rule> = serde_json::from_str(stored.text()).expect("what is stored can be read");
    assert_eq!(again, list);
    true
}

fn chain_file(bytes: &[u8]) -> bool {
    let Some(file) = read::<ChainFile>(bytes) else { return false };
    let _ = chain::verify(&file);
    let _ = chain::signers(&file.tasks);
    true
}

// SPDX-License-Identifier: Apache-2.0
//! What reading a manifest accepts, keeps and reports.

use serde_json::{Value, json};

use super::*;

#[track_caller]
fn check(value: Value, expected: &[&str]) {
    let problems = Manifest::parse(value).err().unwrap_or_default();
    let found: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(found, expected);
}

fn name(text: &str) -> Capability {
    text.parse().unwrap()
}

/// The form that people know.
fn plain() -> Value {
    json!({
        "agent_id": "research-agent-001",
        "capabilities": [{
            "name": "web_research",
            "input_schema": {"query": "string", "depth": "int"},
            "output_schema": {"sources": "array", "summary": "string"},
            "timeout_seconds": 300,
            "reliability_sla": 0.95,
        }],
        "discovery_endpoint": "https://agent-registry.example.com/research-agent-001",
    })
}

fn full() -> Value {
    json!({
        "agent_id": "reviewer",
        "role": "reviewer",
        "version": "1.4.0",
        "context_window": 200_000,
        "tokenizer": "o200k",
        "reserves": {"system_prompt": 4000, "work": 16_000},
        "accepted_majors": [1, 2],
        "delivery": {"mode": "webhook", "url": "http://127.0.0.1:9000/inbox?x=1"},
        "concurrency": 4,
        "fallbacks": ["second", "third"],
        "tags": ["rust", "careful"],
        "description": "Reads.\nThen judges.",
        "metadata": {"team": {"name": "core"}},
        "capabilities": [{
            "name": "review",
            "description": "Reviews a change",
            "input_schema": {"type": "object", "properties": {"diff": {"type": "string"}}},
            "timeout_seconds": 0.5,
            "version": "2",
            "tags": ["code"],
            "limits": {
                "timeout_seconds_min": 0.25, "timeout_seconds_max": 60,
                "attempts_max": 5, "budget_tokens_max": 100_000,
            },
            "price": {"eur": 0.1},
        }],
        "mood": "hopeful",
    })
}

#[test]
fn the_form_that_people_know_is_read_as_it_stands() {
    let manifest = Manifest::parse(plain()).unwrap();
    assert_eq!(manifest.agent_id.as_str(), "research-agent-001");
    assert_eq!(manifest.accepted_majors, [2]);
    assert_eq!(manifest.delivery, Delivery::Pull);
    assert_eq!(manifest.work_ms(&name("web_research")), Some(300_000));
    assert_eq!(manifest.work_ms(&name("cooking")), None);
    let entry = manifest.capability(&name("web_research")).unwrap();
    assert_eq!(entry.sla_ppm(), Some(950_000));
    assert_eq!(entry.input_schema.as_ref().unwrap()["required"], json!(["depth", "query"]));
}

#[test]
fn a_body_parses_again_to_the_same_manifest() {
    for given in [plain(), full(), json!({"agent_id": "a"})] {
        let manifest = Manifest::parse(given).unwrap();
        let body: Value = serde_json::from_str(manifest.body().text()).unwrap();
        assert_eq!(serde_json::from_value::<Manifest>(body.clone()).unwrap(), manifest);
        assert_eq!(Manifest::parse(body).unwrap().body(), manifest.body());
    }
}

#[test]
fn everything_that_was_sent_is_in_the_body() {
    let body: Value = serde_json::from_str(Manifest::parse(full()).unwrap().body().text()).unwrap();
    let mut sent = full();
    sent["tags"] = json!(["careful", "rust"]);
    assert_eq!(body, sent);
}

#[test]
fn all_faults_are_reported_at_once_and_each_with_its_place() {
    let manifest = json!({
        "agent_id": "no spaces",
        "role": "",
        "version": "v".repeat(65),
        "context_window": 0,
        "tokenizer": 7,
        "accepted_majors": [2, 0, 2],
        "concurrency": 1.5,
        "fallbacks": ["b", "b", "?"],
        "tags": ["fine", "", 3],
        "metadata": [],
        "capabilities": [
            {"reliability_sla": 1.5, "timeout_seconds": "soon", "tags": "x"},
            "cook",
            {"name": "a", "input_schema": {"depth": "integr"}, "output_schema": {"type": "objct"}},
            {"name": "a", "reliability_sla": 0, "limits": {"attempts_max": 101, "speed": 1}},
        ],
    });
    let text = "expected a string of 1 to 64 bytes without control characters";
    let bad_name = "no spaces".parse::<AgentId>().unwrap_err().to_string();
    let bad_name = bad_name.as_str();
    let share = "expected a number above 0 and at most 1";
    let whole = "expected a whole number from 1 to 4294967295";
    let problems = Manifest::parse(manifest).unwrap_err();
    let found: Vec<_> = problems.iter().map(|p| (p.path.as_str(), p.problem.as_str())).collect();
    let no_word = |word: &str| {
        format!(
            "{word:?} is no type word; expected string, int, number, bool, array, object, null or \
             any, with [] behind it for a list and ? if it is optional"
        )
    };
    assert_eq!(
        found,
        [
            ("agent_id", bad_name),
            ("context_window", whole),
            ("capabilities[0].name", "missing"),
            ("capabilities[0].timeout_seconds", "expected a number"),
            ("capabilities[0].reliability_sla", share),
            ("capabilities[0].tags", "expected an array"),
            ("capabilities[1]", "expected an object"),
            ("capabilities[2].input_schema.depth", &no_word("integr")),
            ("capabilities[2].output_schema.type", &no_word("objct")),
            ("capabilities[3].reliability_sla", share),
            ("capabilities[3].limits.attempts_max", "expected a whole number from 1 to 100"),
            ("capabilities[3].limits.speed", "not known here"),
            ("capabilities[3].name", "a is described twice"),
            ("role", "expected a string of 1 to 128 bytes without control characters"),
            ("version", text),
            ("tokenizer", text),
            ("accepted_majors[1]", whole),
            ("accepted_majors[2]", "named twice"),
            ("concurrency", whole),
            ("fallbacks[1]", "named twice"),
            ("fallbacks[2]", bad_name),
            ("tags[1]", text),
            ("tags[2]", text),
            ("metadata", "expected an object"),
        ]
    );
}

#[test]
fn parts_that_contradict_each_other_are_reported() {
    check(
        json!({
            "agent_id": "a",
            "fallbacks": ["b", "a"],
            "context_window": 1000,
            "reserves": {"system_prompt": 600, "work": 400},
            "capabilities": [
                {"name": "x", "limits": {"timeout_seconds_min": 5, "timeout_seconds_max": 4}},
                {"name": "y", "timeout_seconds": 9, "limits": {"timeout_seconds_max": 8}},
                {"name": "z", "timeout_seconds": 1, "limits": {"timeout_seconds_min": 2}},
            ],
        }),
        &[
            "capabilities[0].limits.timeout_seconds_min: above timeout_seconds_max",
            "capabilities[1].limits.timeout_seconds_max: below timeout_seconds",
            "capabilities[2].limits.timeout_seconds_min: above timeout_seconds",
            "reserves: leave nothing of the context window",
            "fallbacks[1]: an agent cannot be its own fallback",
        ],
    );
}

#[test]
fn how_an_agent_is_reached_is_checked_for_form() {
    let check = |delivery: Value, expected: &[&str]| {
        check(json!({"agent_id": "a", "delivery": delivery}), expected);
    };
    let webhook = |url: &str| json!({"mode": "webhook", "url": url});
    for fine in ["http://a", "HTTPS://a.example:8443/x?y#z", "http://[::1]:80/", "http://10.0.0.1"]
    {
        check(webhook(fine), &[]);
    }
    check(json!({"mode": "a2a", "url": "https://a/agents/x"}), &[]);
    check(json!({"mode": "pull"}), &[]);
    check(Value::Null, &[]);

    check(webhook("ftp://a"), &["delivery.url: expected a URL with http:// or https://"]);
    check(webhook("javascript:x"), &["delivery.url: expected a URL with http:// or https://"]);
    check(webhook("http://"), &["delivery.url: the URL's host is missing or no host name"]);
    check(webhook("http://a:99999"), &["delivery.url: the URL's port is no number up to 65535"]);
    check(webhook("http://[::g]/"), &["delivery.url: the URL's host is no IPv6 address"]);
    check(
        webhook("http://u:p@a/"),
        &["delivery.url: a URL in a manifest carries no user name or password"],
    );
    check(webhook("http://a/b c"), &["delivery.url: expected a URL of visible ASCII characters"]);
    check(json!({"mode": "a2a"}), &["delivery.url: missing"]);
    check(
        json!({"mode": "pigeon", "loft": 3}),
        &["delivery.mode: expected one of pull, webhook, a2a", "delivery.loft: not known here"],
    );
    check(json!({"mode": "pull", "url": "http://a"}), &["delivery.url: not known here"]);
    check(json!("pull"), &["delivery: expected an object"]);
}

#[test]
fn everything_is_bounded() {
    let check = |name: &str, value: Value, expected: &str| {
        let mut manifest = json!({"agent_id": "a"});
        manifest[name] = value;
        check(manifest, &[expected]);
    };
    let numbered = |count: usize| (0..count).map(|n| format!("n{n}")).collect::<Vec<_>>();
    let named = |count| numbered(count).iter().map(|n| json!({"name": n})).collect::<Vec<_>>();
    check("tags", json!(numbered(65)), "tags: 65 items, expected at most 64");
    check("fallbacks", json!(numbered(33)), "fallbacks: 33 items, expected at most 32");
    check("capabilities", json!(named(257)), "capabilities: 257 items, expected at most 256");
    check("accepted_majors", json!([]), "accepted_majors: expected at least one major");
    let majors: Vec<u32> = (1..=9).collect();
    check("accepted_majors", json!(majors), "accepted_majors: 9 items, expected at most 8");
    check("metadata", json!({"x": "y".repeat(MANIFEST_BYTES_MAX)}), "larger than 262144 bytes");
    check(
        "description",
        json!("d".repeat(4097)),
        "description: expected a string of at most 4096 bytes",
    );
    let large = json!({"type": "string", "description": "d".repeat(SCHEMA_BYTES_MAX)});
    check(
        "capabilities",
        json!([{"name": "a", "output_schema": large}]),
        "capabilities[0].output_schema: passes the bound schema_bytes: at most 65536 are allowed",
    );
}

#[test]
fn nesting_is_bounded_before_and_after_the_shorthand_is_written_out() {
    let nested =
        |depth: usize, wrap: fn(Value) -> Value| (0..depth).fold(json!("int"), |v, _| wrap(v));
    let deep = json!({"agent_id": "a", "metadata": nested(32, |v| json!({ "x": v }))});
    let path = format!("metadata{}", ".x".repeat(31));
    check(deep, &[&format!("{path}: nested deeper than 32 arrays and objects")]);

    // Each level of the shorthand becomes two of JSON Schema.
    let short = |depth| {
        json!({"agent_id": "a", "capabilities": [
            {"name": "b", "input_schema": nested(depth, |v| json!({ "x": v }))},
        ]})
    };
    assert!(Manifest::parse(short(14)).is_ok());
    let problems = Manifest::parse(short(15)).unwrap_err();
    assert!(problems[0].path.starts_with("capabilities[0].input_schema.properties.x.properties"));
}

#[test]
fn what_is_no_object_is_no_manifest() {
    check(json!(["agent"]), &["expected an object"]);
    check(json!({}), &["agent_id: missing"]);
    check(json!({"agent_id": null, "role": null}), &["agent_id: missing"]);
}

// SPDX-License-Identifier: Apache-2.0
//! TLS as people use it: a broker that makes its own certificate, and commands that pin it.

use std::os::unix::fs::PermissionsExt;

use tasuki_testing::stage::{Broker, Ran, Stage};

/// The value of a line `name: value` of the greeting.
#[track_caller]
fn fact(text: &str, name: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
    line.unwrap_or_else(|| panic!("no {name} in\n{text}")).trim().to_owned()
}

fn run(stage: &Stage, broker: &Broker, words: &[&str]) -> Ran {
    let mut command = stage.command(words);
    command.env("TASUKI_URL", fact(&broker.greeting, "API").trim_end_matches("/v1"));
    Ran::of(command)
}

#[test]
fn a_broker_that_makes_its_certificate_is_reached_by_who_pins_it_and_by_nobody_else() {
    let stage = Stage::new();
    let broker = stage.broker_with("data", &["--tls", "self-signed"]);
    let pin = fact(&broker.greeting, "TLS pin");
    assert!(fact(&broker.greeting, "API").starts_with("https://"), "{}", broker.greeting);
    for file in ["data/tls.key", "data/tls.pem"] {
        let mode = std::fs::metadata(stage.path(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    run(&stage, &broker, &["ready", "--tls-pin", &pin]).ok();
    let stats = run(&stage, &broker, &["stats", "--tls-pin", &pin, "--json"]).json();
    assert_eq!(stats["version"], env!("CARGO_PKG_VERSION"));
    run(&stage, &broker, &["ready"]).ends(69, &["no broker answers"]);
    let other = format!("sha256:{}", "0".repeat(64));
    run(&stage, &broker, &["ready", "--tls-pin", &other]).ends(69, &["shows another certificate"]);
    run(&stage, &broker, &["ready", "--tls-pin", "sha256:00"]).ends(2, &["64 hexadecimal digits"]);
    // Its own certificate may vouch for it, too.
    run(&stage, &broker, &["ready", "--tls-ca", "data/tls.pem"]).ok();
    run(&stage, &broker, &["ready", "--tls-ca", "data/tls.key"]).ends(2, &["no certificate"]);
    let url = fact(&broker.greeting, "API").replace("https", "http");
    let plain = ["ready", "--url", url.trim_end_matches("/v1"), "--tls-pin", &pin];
    stage.run(&plain).ends(2, &["without TLS"]);
    broker.stop();
    let again = stage.broker_with("data", &["--tls", "self-signed"]);
    assert_eq!(fact(&again.greeting, "TLS pin"), pin, "it stays");
}

#[test]
fn a_key_that_others_can_read_or_half_a_pair_is_refused() {
    let stage = Stage::new();
    stage.broker_with("data", &["--tls", "self-signed"]).stop();
    std::fs::set_permissions(stage.path("data/tls.key"), PermissionsExt::from_mode(0o644)).unwrap();
    let files = ["--tls-cert", "data/tls.pem", "--tls-key", "data/tls.key"];
    let serve = ["serve", "--data", "other", "--listen", "127.0.0.1:0"];
    stage.run(&[&serve[..], &files].concat()).ends(1, &["chmod 600"]);
    stage.run(&[&serve[..], &files[..2]].concat()).ends(2, &["tls_key is not"]);
    stage.run(&[&serve[..], &files[2..]].concat()).ends(2, &["tls_cert is not"]);
    let swapped = ["--tls-cert", "none.pem", "--tls-key", "data/tls.pem"];
    stage.run(&[&serve[..], &swapped].concat()).ends(2, &["none.pem"]);
}

#[test]
fn beyond_loopback_there_is_tls_or_a_proxy_that_was_declared() {
    let stage = Stage::new();
    let open = ["serve", "--data", "data", "--listen", "0.0.0.0:0", "--auth", "required"];
    stage.run(&open).ends(2, &["without TLS", "--tls self-signed", "--behind-proxy"]);
    Broker::start(stage.command(&[&open[..], &["--behind-proxy"]].concat())).stop();
    let broker = Broker::start(stage.command(&[&open[..], &["--tls", "self-signed"]].concat()));
    let pin = fact(&broker.greeting, "TLS pin");
    run(&stage, &broker, &["ready", "--tls-pin", &pin]).ok();
}

#[test]
fn a_lost_administrators_token_is_made_anew_by_who_has_the_data() {
    let stage = Stage::new();
    let broker = stage.broker_with("data", &["--auth", "required"]);
    let lost = std::fs::read_to_string(stage.path("data/admin.token")).unwrap();
    stage.run(&["token", "recover", "--data", "data"]).ends(75, &["data"]);
    broker.stop();
    stage.run(&["token", "recover", "--data", "data"]).ends(0, &["data/admin.token", "30 days"]);
    stage.run(&["token", "recover", "--data", "none"]).ends(3, &["there is no data"]);
    let new = std::fs::read_to_string(stage.path("data/admin.token")).unwrap();
    assert_ne!(lost, new);
    let broker = stage.broker_with("data", &["--auth", "required"]);
    let stats = |token: &str| {
        let mut command = stage.command(&["token", "list", "--url", &broker.url]);
        command.env("TASUKI_TOKEN", token.trim());
        Ran::of(command)
    };
    stats(&lost).ends(1, &["token_invalid"]);
    let listed = stats(&new).ok();
    assert_eq!(listed.matches("the broker").count(), 2, "{listed}");
    // Who was refused is on record: an agent in the log, and the lost token, which is nobody's.
    let admin = |words: &[&str]| {
        let mut command = stage.command(&[words, &["--url", &broker.url]].concat());
        command.env("TASUKI_TOKEN", new.trim());
        Ran::of(command).ok()
    };
    let invitation = admin(&["agent", "invite", "coder"]);
    let join = invitation.split(" --join ").nth(1).unwrap().split_whitespace().next().unwrap();
    stage.run(&["agent", "enroll", "coder", "--join", join, "--url", &broker.url]).ok();
    let widen = ["agent", "rules", "coder", "--role", "admin", "--key", "coder.key", "--url"];
    stage.run(&[&widen[..], &[&broker.url]].concat()).ends(1, &["not_permitted"]);
    let denials = admin(&["audit", "denials", "--agent", "coder"]);
    assert!(denials.contains("agent_set_rules coder"), "{denials}");
    let mut denials = stage.command(&["audit", "denials", "--url", &broker.url]);
    denials.env("TASUKI_TOKEN", new.trim());
    Ran::of(denials).ends(0, &["token_invalid", "nobody stood behind"]);
}

#[test]
fn rules_are_tested_before_they_are_set() {
    let stage = Stage::new();
    stage.write(
        "rules.json",
        r#"{"coder": [{"role": "worker"}, {"effect": "deny", "permissions": ["send"], "targets": ["prod-*"]}],
            "lead": [{"role": "reviewer", "targets": ["team-*"]}]}"#,
    );
    stage.write(
        "cases.json",
        r#"[{"agent": "coder", "permission": "send", "target": "staging", "allowed": true},
            {"agent": "coder", "permission": "send", "target": "prod-db", "allowed": false},
            {"agent": "lead", "operation": "handoff_approve", "target": "team-1", "allowed": true},
            {"agent": "lead", "operation": "handoff_approve", "target": "prod-db", "allowed": false},
            {"agent": "nobody", "permission": "read", "allowed": false}]"#,
    );
    let check = ["agent", "check", "--rules", "rules.json", "--cases", "cases.json"];
    stage.run(&check).ends(0, &["5 as expected, 0 otherwise", "deny send:prod-*"]);
    stage.write(
        "cases.json",
        r#"[{"agent": "coder", "permission": "send", "target": "prod-db", "allowed": true}]"#,
    );
    stage.run(&check).ends(1, &["WRONG", "0 as expected, 1 otherwise"]);
    stage.write("cases.json", r#"[{"agent": "coder", "operation": "no_such", "allowed": true}]"#);
    stage.run(&check).ends(2, &["no operation"]);
    stage.write("rules.json", r#"{"coder": [{"role": "boss"}]}"#);
    stage.run(&check).ends(2, &["rules.json", "does not fit"]);
}

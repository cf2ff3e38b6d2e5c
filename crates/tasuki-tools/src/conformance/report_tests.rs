// SPDX-License-Identifier: Apache-2.0

use serde_json::{Value, json};

use super::*;

fn suite() -> Suite {
    let check = |id: &str| {
        json!({
            "id": id, "level": id.split('.').next(), "title": "It # holds.", "reason": "So.",
            "rule": "S1", "steps": [{ "value": 1, "expect": { "body": 1 } }],
        })
    };
    let checks = ["schema.a", "schema.b", "delivery.a", "chain.a"].map(check);
    let suite = json!({
        "suite": "1", "protocol": 1, "operations": {}, "schemas": {}, "checks": checks,
    });
    Suite::read(&suite.to_string()).unwrap()
}

fn outcome(number: usize, failed: Option<Failed>) -> Outcome {
    Outcome { number, failed, took: Duration::from_millis(3) }
}

fn failed() -> Failed {
    Failed {
        step: 2,
        request: Some("POST /v1/x".into()),
        findings: vec!["/a: expected \"b\",\ngot 1".into()],
        came: Some("200 {}".into()),
    }
}

#[test]
fn a_level_is_claimed_with_all_of_those_before_it_or_not_at_all() {
    let suite = suite();
    let claim = |failing: &[usize], run: usize| {
        let outcomes =
            (0..run).map(|number| outcome(number, failing.contains(&number).then(failed)));
        Report::of(&suite, true, "t", outcomes.collect()).may_claim
    };
    assert_eq!(claim(&[], 4), Some("chain"), "there is nothing of the two last levels");
    assert_eq!(claim(&[3], 4), Some("delivery"));
    assert_eq!(claim(&[2], 4), Some("schema"));
    assert_eq!(claim(&[1], 4), None);
    assert_eq!(claim(&[], 1), None, "half of a level was run");
}

#[test]
fn tap_names_every_check_and_says_of_a_failure_what_and_why() {
    let outcomes = vec![outcome(0, None), outcome(1, Some(failed()))];
    let tap = Report::of(&suite(), true, "http://t", outcomes).tap();
    let expected = r#"TAP version 14
1..2
# target http://t
ok 1 - schema.a: It \# holds.
not ok 2 - schema.b: It \# holds.
  ---
  reason: "So."
  rule: "S1"
  step: "2"
  request: "POST /v1/x"
  found: "/a: expected \"b\",\ngot 1"
  came: "200 {}"
  ...
"#;
    assert!(tap.starts_with(expected), "{tap}");
    assert!(tap.ends_with("# No level of protocol 1 may be claimed.\n"), "{tap}");
}

#[test]
fn json_and_text_say_the_same() {
    let report =
        Report::of(&suite(), true, "http://t", vec![outcome(0, None), outcome(2, Some(failed()))]);
    let json: Value = serde_json::from_str(&report.json()).unwrap();
    assert_eq!(
        (&json["ok"], &json["passed"], &json["failed"]),
        (&json!(false), &json!(1), &json!(1))
    );
    assert_eq!(json["levels"][0]["complete"], false);
    assert_eq!(json["checks"][1]["failure"]["step"], 2);
    let text = report.for_people();
    for part in ["FAIL delivery.a", "step 2, POST /v1/x", "1 of 2 checks pass", "rule S1"] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn a_level_without_checks_is_not_complete_and_checks_of_others_prove_nothing() {
    let all = || (0..4).map(|number| outcome(number, None)).collect();
    let own: Value = serde_json::from_str(&Report::of(&suite(), true, "t", all()).json()).unwrap();
    let (chain, context) = (&own["levels"][2], &own["levels"][3]);
    assert_eq!((&chain["complete"], &chain["may_claim"]), (&json!(true), &json!(true)));
    assert_eq!((&context["complete"], &context["may_claim"]), (&json!(false), &json!(false)));
    let report = Report::of(&suite(), false, "t", all());
    let other: Value = serde_json::from_str(&report.json()).unwrap();
    assert_eq!((&other["own_suite"], &other["may_claim"]), (&json!(false), &json!(null)));
    assert!(other["levels"].as_array().unwrap().iter().all(|level| level["may_claim"] == false));
    let words = "not the checks that this program brings along: no level of protocol 1";
    assert!(report.tap().contains(words) && report.for_people().contains(words));
}

#[test]
fn a_run_without_checks_is_no_success() {
    assert!(!Report::of(&suite(), true, "t", Vec::new()).ok);
}

// SPDX-License-Identifier: Apache-2.0

use serde_json::{Value, json};

use super::*;

fn findings(expect: &Value, status: u16, body: &Value) -> Vec<String> {
    let expect = Expect::read(expect).unwrap();
    let time = json!({ "type": "string", "format": "date-time" });
    let schemas =
        Schemas::from([("number".into(), json!({ "type": "number" })), ("time".into(), time)]);
    expect.findings(&Found { status: Some(status), body }, &schemas)
}

#[track_caller]
fn check(condition: &Value, good: &Value, bad: &Value) {
    let expect = json!({ "at": { "/x": condition } });
    assert_eq!(findings(&expect, 200, &json!({ "x": good })), [""; 0], "{condition}");
    assert_ne!(findings(&expect, 200, &json!({ "x": bad })), [""; 0], "{condition}");
}

#[test]
fn every_condition_holds_for_what_it_means_and_for_nothing_else() {
    check(&json!({ "equals": null }), &json!(null), &json!(0));
    check(&json!({ "equals": [1, 2] }), &json!([1, 2]), &json!([2, 1]));
    check(&json!({ "not": 1 }), &json!(2), &json!(1));
    check(&json!({ "like": { "a": "<any>" } }), &json!({ "a": 1, "b": 2 }), &json!({ "b": 2 }));
    check(&json!({ "type": "integer" }), &json!(1), &json!(1.5));
    check(&json!({ "contains": "bc" }), &json!("abcd"), &json!("acbd"));
    check(&json!({ "contains": { "a": 1 } }), &json!([{ "a": 1, "b": 2 }]), &json!([{ "a": 2 }]));
    check(&json!({ "lacks": "a" }), &json!({ "b": 1 }), &json!({ "a": 1 }));
    check(&json!({ "starts_with": "sha256:" }), &json!("sha256:0"), &json!("md5:0"));
    check(&json!({ "one_of": ["a", "b"] }), &json!("b"), &json!("c"));
    check(&json!({ "length": 2 }), &json!([1, 2]), &json!([1]));
    check(&json!({ "at_least": 2 }), &json!(2), &json!(1));
    check(&json!({ "at_most": 2 }), &json!(2), &json!(3));
    check(&json!({ "more_than": 2 }), &json!(3), &json!(2));
    check(&json!({ "less_than": 2 }), &json!(1), &json!("1"));
    check(&json!({ "has_all": [1, 2] }), &json!([2, 3, 1]), &json!([1, 3]));
    check(&json!({ "same_items": [1, 2, 2] }), &json!([2, 1, 2]), &json!([1, 1, 2]));
    check(&json!({ "unique": "/id" }), &json!([{ "id": 1 }, { "id": 2 }]), &json!([{}, {}]));
    check(&json!({ "each": { "/n": { "at_least": 1 } } }), &json!([{ "n": 1 }]), &json!([]));
    check(
        &json!({ "some": { "": { "equals": 2 }, "/a": { "absent": true } } }),
        &json!([1, 2]),
        &json!([1, 3]),
    );
    check(&json!({ "fits": "number" }), &json!(1), &json!("1"));
    check(&json!({ "fits": "time" }), &json!("2026-11-03T10:00:00Z"), &json!("yesterday"));
}

#[test]
fn what_is_not_there_is_found_out() {
    let expect = json!({ "at": { "/x": { "not": 1 } } });
    assert_eq!(findings(&expect, 200, &json!({})), ["/x: nothing is there"]);
    let expect = json!({ "at": { "/x": { "absent": true } } });
    assert_eq!(findings(&expect, 200, &json!({})), [""; 0]);
    assert_eq!(findings(&expect, 200, &json!({ "x": 1 })), ["/x: expected nothing there, got 1"]);
    let expect = json!({ "body": { "a": [{ "b": 1 }] } });
    assert_eq!(findings(&expect, 200, &json!({ "a": [{}] })), ["/a/0/b: nothing is there"]);
    assert_eq!(findings(&expect, 200, &json!({ "a": [] })).len(), 1);
}

#[test]
fn a_status_is_a_number_some_numbers_or_a_class() {
    for (wish, good, bad) in
        [(json!(409), 409, 400), (json!([200, 201]), 201, 202), (json!("4xx"), 422, 500)]
    {
        assert!(findings(&json!({ "status": wish }), good, &json!({})).is_empty());
        assert!(!findings(&json!({ "status": wish }), bad, &json!({})).is_empty());
    }
    let replies = json!({ "replies": { "200": 1, "409": 2 } });
    let came = |statuses: [u16; 3]| json!(statuses.map(|status| json!({ "status": status })));
    assert!(findings(&replies, 0, &came([409, 200, 409])).is_empty());
    assert!(!findings(&replies, 0, &came([200, 200, 409])).is_empty());
}

#[test]
fn an_expectation_that_cannot_fail_or_is_not_understood_is_an_error() {
    for wrong in [
        json!({}),
        json!({ "at": {} }),
        json!({ "at": { "/x": {} } }),
        json!({ "at": { "/x": { "each": {} } } }),
        json!({ "statuses": 200 }),
        json!({ "at": { "/x": { "is": 1 } } }),
    ] {
        assert!(Expect::read(&wrong).is_err(), "{wrong}");
    }
}

#[test]
fn findings_stay_short_whatever_came() {
    let huge = json!({ "x": "y".repeat(1_000_000), "l": vec![0; 10_000] });
    let expect = json!({
        "code": "no", "at": { "/x": { "equals": 1 }, "/l": { "each": { "": { "equals": 1 } } } },
    });
    let found = findings(&expect, 200, &huge);
    assert!(found.len() <= 5 && found.iter().all(|one| one.len() < 2000), "{found:?}");
}

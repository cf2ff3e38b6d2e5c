// SPDX-License-Identifier: Apache-2.0

use std::path::{Path, PathBuf};

use super::*;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn own() -> Suite {
    Suite::own().unwrap_or_else(|error| panic!("{error}"))
}

/// The JSON files under a folder, by their path in it.
fn files(folder: &Path, under: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(folder.join(under)).unwrap() {
        let entry = entry.unwrap();
        let name = Path::new(under).join(entry.file_name()).to_str().unwrap().to_owned();
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(folder, &name));
        } else if name.ends_with(".json") {
            found.insert(name);
        }
    }
    found
}

#[test]
fn every_file_of_the_folders_is_built_in() {
    let names = |list: &[(&str, &str)]| -> BTreeSet<String> {
        list.iter().map(|(name, _)| (*name).to_owned()).collect()
    };
    let mut checks = files(&root().join("conformance"), "");
    assert!(checks.remove("suite.json") && checks.remove("check.schema.json"));
    assert_eq!(names(embedded::CHECKS), checks);
    let mut fixtures = files(&root().join("examples/coder-reviewer-tester"), "");
    // The walk is the example's own program; its messages are what is shared.
    assert!(fixtures.remove("walk.json"));
    assert_eq!(names(embedded::FIXTURES), fixtures);
}

#[test]
fn every_file_fits_the_schema_of_checks() {
    let schema = std::fs::read_to_string(root().join("conformance/check.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for (name, text) in embedded::CHECKS.iter().chain([&("suite.json", embedded::FRAME)]) {
        let page: Value = serde_json::from_str(text).unwrap();
        let faults: Vec<_> = validator
            .iter_errors(&page)
            .map(|error| format!("{name}{}: {error}", error.instance_path()))
            .collect();
        assert!(faults.is_empty(), "{faults:#?}");
    }
    let wrong = json!({ "level": "schema", "checks": [{ "id": "schema.a" }] });
    assert!(!validator.is_valid(&wrong));
}

#[test]
fn there_are_enough_checks_and_every_level_has_some() {
    let suite = own();
    assert!(suite.checks.len() >= 80, "{}", suite.checks.len());
    for level in LEVELS {
        assert!(suite.checks.iter().filter(|check| check.level == level).count() >= 5, "{level}");
    }
}

fn is_refused(step: &Step) -> bool {
    match &step.expect.as_ref().unwrap()["status"] {
        Value::String(class) => class.starts_with('4'),
        Value::Array(any) => any.iter().all(|status| status.as_u64() >= Some(400)),
        status => status.as_u64() >= Some(400),
    }
}

/// Whoever refuses everything also refuses what must be refused.
#[test]
fn what_is_refused_without_a_word_of_its_own_is_taken_when_nothing_is_wrong_with_it() {
    let suite = own();
    for check in &suite.checks {
        let calls: Vec<_> = check.steps.iter().filter(|step| step.operation.is_some()).collect();
        let is_taken = |name| {
            calls.iter().any(|step| step.operation.as_ref() == Some(name) && !is_refused(step))
        };
        for step in calls.iter().filter(|step| is_refused(step)) {
            let name = step.operation.as_ref().unwrap();
            let code = &step.expect.as_ref().unwrap()["code"];
            let has_word = code.is_string() && code != "invalid_request";
            let reads = suite.operations[name].method == "GET";
            assert!(reads || has_word || is_taken(name), "{}: {name} is only refused", check.id);
        }
    }
}

/// The rules of the specification, by their names.
fn rules() -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join("docs/spec/README.md")).unwrap();
    let rule = |line: &str| Some(line.split_once("\"></a>**")?.1.split_once("**")?.0.to_owned());
    text.lines().filter_map(rule).collect()
}

#[test]
fn every_rule_has_a_check_or_a_word_on_why_not() {
    let held: BTreeSet<_> = own().checks.into_iter().map(|check| check.rule).collect();
    let rules = rules();
    assert!(rules.len() >= 30, "{rules:?}");
    let unknown: Vec<_> = held.difference(&rules).collect();
    assert!(unknown.is_empty(), "{unknown:?} are no rules");
    let readme = std::fs::read_to_string(root().join("conformance/README.md")).unwrap();
    let excused = |rule: &&String| readme.contains(&format!("\n| {rule} |"));
    let missed: Vec<_> = rules.difference(&held).filter(|rule| !excused(rule)).collect();
    assert!(missed.is_empty(), "nothing holds a server to {missed:?}");
}

#[test]
fn every_fixture_is_replayed() {
    let pages = embedded::CHECKS.iter().map(|(_, text)| *text);
    let pages: String = pages.chain([embedded::FRAME]).collect();
    for (name, _) in embedded::FIXTURES {
        let used = pages.contains(&format!("{name}\"")) || pages.contains(&format!("{name}#"));
        assert!(used || name.starts_with("schemas/"), "{name} is not used by any check");
    }
}

#[test]
fn a_suite_survives_being_written_and_read() {
    let suite = own();
    let again = Suite::read(&suite.document()).unwrap();
    assert_eq!(again.document(), suite.document());
    assert!(!suite.document().contains("$file"));
}

#[track_caller]
fn refused(check: &Value, why: &str) {
    let frame = r#"{"suite": "1", "protocol": 1, "schemas": {}, "blocks": {}}"#;
    let page = json!({ "level": "schema", "checks": [check] }).to_string();
    let openapi = json!({ "paths": { "/x/{id}": { "get": { "operationId": "look" } } } });
    let error = Suite::put_together(frame, &[&page], &openapi).unwrap_err();
    assert!(error.contains(why), "{error}");
}

#[test]
fn what_the_runner_does_not_know_is_an_error() {
    let check = |steps: Value| json!({ "id": "schema.a", "title": "t", "reason": "r", "rule": "S1", "steps": steps });
    let fine = json!({ "status": 200 });
    refused(&check(json!([])), "could not fail");
    refused(&check(json!([{ "set": { "a": 1 } }])), "could not fail");
    refused(&check(json!([{ "do": "jump", "expect": fine }])), "no operation jump");
    refused(&check(json!([{ "do": "look", "expect": fine }])), "other parameters");
    refused(&check(json!([{ "do": "look", "path": { "id": 1 } }])), "could not fail");
    refused(&check(json!([{ "use": "begun", "expect": fine }])), "no block begun");
    refused(&check(json!([{ "value": 1, "expect": fine, "retries": 3 }])), "retries");
    refused(&check(json!([{ "value": 1, "expect": { "stat": 200 } }])), "stat");
    refused(&check(json!([{ "value": 1, "expect": {} }])), "expects nothing");
    refused(&check(json!([{ "value": { "$file": "x" }, "expect": fine }])), "no fixture x");
    let twice = json!([{ "value": 1, "do": "look", "expect": fine }]);
    refused(&check(twice), "one of do, value and set");
    let mut misplaced = check(json!([{ "value": 1, "expect": fine }]));
    misplaced["id"] = json!("chain.a");
    refused(&misplaced, "does not begin with a level");
}

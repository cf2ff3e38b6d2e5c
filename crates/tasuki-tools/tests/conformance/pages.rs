// SPDX-License-Identifier: Apache-2.0
//! What the program says about itself.

use tasuki_testing::stage::{Ran, Stage};

#[test]
fn the_reference_is_up_to_date() {
    for page in ["tools", "conformance"] {
        let path = format!("{}/../../docs/reference/{page}.md", env!("CARGO_MANIFEST_DIR"));
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        let printed = Ran::of(Stage::new().tools(&["reference", page])).ok();
        assert!(
            committed == printed,
            "out of date: cargo run -p tasuki-tools -- reference {page} > docs/reference/{page}.md"
        );
    }
}

#[test]
fn with_json_every_command_prints_one_document() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let target = ["conformance", "run", "--target", &broker.url];
    let one = [&target[..], &["--only", "schema.payload-text-refused"]].concat();
    let few = ["bench", "--seconds", "1", "--clients", "2", "--url", &broker.url];
    for line in [&one[..], &["conformance", "list"], &["conformance", "suite"], &few] {
        assert!(!Ran::of(stage.tools(&[line, &["--json"]].concat())).json().is_null(), "{line:?}");
    }
}

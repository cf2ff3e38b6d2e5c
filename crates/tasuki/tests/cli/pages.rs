// SPDX-License-Identifier: Apache-2.0
//! The reference is what the program says.

use tasuki_testing::stage::Stage;

#[test]
fn the_reference_is_up_to_date() {
    for page in ["cli", "configuration"] {
        let path = format!("{}/../../docs/reference/{page}.md", env!("CARGO_MANIFEST_DIR"));
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        let printed = Stage::new().run(&["reference", page]).ok();
        assert!(
            committed == printed,
            "out of date: cargo run -- reference {page} > docs/reference/{page}.md"
        );
    }
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = Stage::new().run(&["completions", shell]).ok();
        for word in ["handoff", "heartbeat", "needs-approval"] {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
    }
}

#[test]
fn help_is_there_for_every_command() {
    Stage::new().run(&["--help"]).ends(0, &["serve", "handoff", "doctor", "--json"]);
    Stage::new().run(&["handoff", "offer", "--help"]).ends(0, &["--needs-approval", "@FILE"]);
    Stage::new().run(&[]).ends(2, &["Usage"]);
    Stage::new().run(&["--version"]).ends(0, &[concat!("tasuki ", env!("CARGO_PKG_VERSION"))]);
}

#[test]
fn what_moved_to_another_program_says_where_it_went() {
    let said = ["tasuki-tools", "next:  tasuki-tools bench claims --stored 5"];
    Stage::new().run(&["bench", "claims", "--stored", "5"]).ends(2, &said);
    let said = ["next:  tasuki-tools conformance run --target http://a"];
    Stage::new().run(&["conformance", "run", "--target", "http://a"]).ends(2, &said);
}

#[test]
fn the_old_word_for_dead_letters_is_understood() {
    Stage::new().run(&["dlq", "list", "--help"]).ends(0, &["tasuki dead-letter list"]);
}

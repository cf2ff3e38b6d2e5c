// SPDX-License-Identifier: Apache-2.0
//! Memories and shared contexts by hand.

use tasuki_testing::stage::{Stage, Talk};

#[test]
fn a_memory_is_kept_found_changed_and_erased() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    stage.write("note.txt", "deploys run from the blue branch");
    let add = "memory add --by coder --id ms-1 --project web --title Deploys --text @note.txt";
    talk.run(&format!("{add} --tag ops")).ends(0, &["ms-1", "1 of 1", "project web", "ops"]);
    talk.run("memory edit ms-1 --by coder --revision 1 --text 'from the green branch'").ok();
    talk.run("memory edit ms-1 --by coder --revision 1 --text 'from the red branch'")
        .ends(4, &["revision_conflict", "revision 2"]);
    talk.run("memory show ms-1 --revision 1").ends(0, &["1 of 2", "the blue branch"]);
    talk.run("memory search green branch").ends(0, &["ms-1", "Deploys"]);
    assert_eq!(talk.run("memory search elephant").ok(), "no memories\n");
    talk.run("memory erase ms-1 --by coder --revision 1 --reason private").ok();
    talk.run("memory show ms-1 --revision 1").ends(0, &["erased"]);
    talk.run("audit verify").ends(0, &["intact", "erased:"]);
    talk.run("memory delete ms-1 --by coder --reason 'it was wrong'").ok();
    talk.run("memory show ms-1").ends(0, &["deleted", "it was wrong"]);
    talk.run("memory show ms-7").ends(3, &["memory_not_found"]);
}

#[test]
fn a_context_takes_no_ownership_and_no_second_decision() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    let write = "context write web --by lead --state";
    talk.run(&format!("{write} '{{\"branch\":\"main\"}}'")).ends(0, &["branch", "main"]);
    talk.run(&format!("{write} '{{\"owner\":\"me\"}}'"))
        .ends(1, &["ownership_not_shared", "/v1/handoffs"]);
    let decide = "context decide web --by lead --question database --decision";
    talk.run(&format!("{decide} sqlite")).ends(0, &["database", "sqlite", "holds"]);
    talk.run(&format!("{decide} postgres")).ends(4, &["decision_settled"]);
    talk.run(&format!("{decide} postgres --supersedes 1")).ends(0, &["until 2", "postgres"]);
}

#[test]
fn an_operator_chooses_what_is_done_about_secrets() {
    let stage = Stage::new();
    // Put together here, so that no scanner takes this file for a leak.
    let secret = format!("ghp_{}", "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYzA2b");
    let add = format!("memory add --by coder --text {secret}");
    let broker = stage.broker("strict");
    let ran = Talk { stage: &stage, broker: &broker }.run(&add);
    ran.ends(1, &["secret_found", "/text", "github_token"]);
    let broker = stage.broker_with("lax", &["--secrets", "warn"]);
    let talk = Talk { stage: &stage, broker: &broker };
    talk.run(&add).ends(0, &["/text looks like github_token"]);
}

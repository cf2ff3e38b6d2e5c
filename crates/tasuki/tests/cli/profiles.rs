// SPDX-License-Identifier: Apache-2.0
//! Brokers, agents and tokens under names.

use std::os::unix::fs::PermissionsExt;

use tasuki_testing::stage::{Ran, Stage, split};

#[test]
fn a_profile_says_what_need_not_be_said_again() {
    let stage = Stage::new();
    let (here, there) = (stage.broker("here"), stage.broker("there"));
    let run = |line: &str| stage.run(&split(line).iter().map(String::as_str).collect::<Vec<_>>());
    run("profile list").ends(0, &["no profiles", "tasuki profile add"]);
    run(&format!("profile add local --url {} --agent coder", here.url)).ends(0, &["current"]);
    run(&format!("profile add far --url {} --agent tester", there.url)).ok();
    run("handoff offer --to reviewer --intent x").ok();
    assert_eq!(run("handoff list --json").json()["handoffs"][0]["from_agent"], "coder");
    run("handoff list --profile far").ends(0, &["no handoffs"]);
    run("handoff list --profile=far").ends(0, &["no handoffs"]);
    run("profile use far").ok();
    run("handoff offer --to reviewer --intent x").ok();
    assert_eq!(run("handoff list --json").json()["handoffs"][0]["from_agent"], "tester");
    // What is said counts before the profile.
    let url = format!("--url {}", here.url);
    assert_eq!(
        run(&format!("handoff list --json {url}")).json()["handoffs"][0]["from_agent"],
        "coder"
    );
    let mut command = stage.command(&["handoff", "list", "--json"]);
    command.env("TASUKI_URL", &here.url);
    assert_eq!(Ran::of(command).json()["handoffs"][0]["from_agent"], "coder");
    run("profile list").ends(0, &["*  far", "local"]);
    run("profile remove far").ok();
    run("profile list").ends(0, &["local"]);
    run("handoff list --profile far")
        .ends(3, &["there is no profile \"far\"", "tasuki profile list"]);
    run("profile use far").ends(3, &["there is no profile"]);
    run("profile remove far").ends(3, &["there is no profile"]);
}

#[test]
fn a_profiles_token_goes_to_its_own_broker_only() {
    let stage = Stage::new();
    let guarded = stage.broker_with("data", &["--auth", "required"]);
    let token = std::fs::read_to_string(stage.path("data/admin.token")).unwrap();
    let run = |line: &str| stage.run(&split(line).iter().map(String::as_str).collect::<Vec<_>>());
    run(&format!("profile add safe --url {} --agent admin --token @data/admin.token", guarded.url))
        .ok();
    run("token list").ok();
    let other = stage.broker_with("other", &["--auth", "required"]);
    run(&format!("token list --url {}", other.url)).ends(1, &["unauthenticated"]);
    // It is on no screen, and nobody else can read it.
    let listed = run("profile list").ends(0, &["token"]);
    assert!(!listed.out.contains(token.trim()));
    let mode = std::fs::metadata(stage.path("state/profiles.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn profiles_that_cannot_be_are_refused() {
    let stage = Stage::new();
    let run = |line: &str| stage.run(&split(line).iter().map(String::as_str).collect::<Vec<_>>());
    run("profile add 'a b'").ends(2, &["expected 1 to 64"]);
    run("profile add x --url ftp://h").ends(2, &["http://"]);
    run("profile add x --agent 'no name'").ends(2, &["--agent"]);
    std::fs::create_dir(stage.path("state")).unwrap();
    stage.write("state/profiles.json", "{ broken");
    run("stats --profile x").ends(1, &["profiles.json", "repair or remove"]);
    run("profile list").ends(1, &["profiles.json"]);
}

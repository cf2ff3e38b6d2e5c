// SPDX-License-Identifier: Apache-2.0

use tasuki_testing::stage::{Broker, Stage, Talk};

/// The data directory that a broker says it uses.
fn data_of(broker: &Broker) -> &str {
    broker.greeting.lines().find_map(|line| line.strip_prefix("data:")).unwrap().trim()
}

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_file() {
    let stage = Stage::new();
    stage.write(
        "tasuki.toml",
        "data = \"from-file\"\nlisten = \"127.0.0.1:0\"\n[terms]\nlosses = 7\nattempts = 5\n",
    );
    stage.write("other.toml", "data = \"from-other\"\nlisten = \"127.0.0.1:0\"\n");
    let check = |env: &[(&str, &str)], flags: &[&str], expected: &str| {
        let mut command = stage.command(&[&["serve"], flags].concat());
        command.envs(env.iter().copied());
        let broker = Broker::start(command);
        assert_eq!(data_of(&broker), expected);
        broker
    };
    let env = ("TASUKI_DATA", "from-env");
    check(&[], &[], "from-file");
    check(&[("TASUKI_CONFIG", "other.toml")], &[], "from-other");
    check(&[env], &[], "from-env");
    check(&[env], &["--data", "from-flag"], "from-flag");

    let broker =
        check(&[("TASUKI_TERMS_ATTEMPTS", "9")], &["--terms-lease-ms", "1234"], "from-file");
    let talk = Talk { stage: &stage, broker: &broker };
    let handoff = talk.offer("");
    let terms = &talk.json(&format!("handoff show {handoff}"))["terms"];
    assert_eq!((&terms["losses"], &terms["attempts"]), (&7.into(), &9.into()));
    assert_eq!(terms["lease_ms"], 1234);
}

#[test]
fn a_mistake_in_the_file_is_named_with_the_file() {
    let stage = Stage::new();
    let check = |text: &str, said: &[&str]| {
        stage.write("mine.toml", text);
        stage.run(&["serve", "--config", "mine.toml"]).ends(2, said);
    };
    check("lisen = \"127.0.0.1:0\"", &["mine.toml", "lisen", "configuration.md"]);
    check("[terms]\nlease = 1", &["mine.toml", "lease"]);
    check("listen = \"nowhere\"", &["mine.toml", "listen"]);
    check("[terms]\nlease_ms = 1", &["terms.lease_ms is 1, expected 100"]);
    check("log = \"a=b=c\"", &["a=b=c"]);
    stage.run(&["serve", "--config", "none.toml"]).ends(2, &["none.toml", "--config"]);
    stage.run(&["serve", "--sync", "sometimes"]).ends(2, &["full", "off"]);
}

#[test]
fn every_mistake_in_profiles_is_named_with_its_place() {
    let stage = Stage::new();
    let profiles = r#"{"auditor": {"raise": {"tags": [""]}, "terms": 5, "like": {}}}"#;
    stage.write("mine.json", profiles);
    let places = ["mine.json", "/auditor/raise/tags/0", "/auditor/terms", "/auditor/like"];
    stage.run(&["serve", "--profiles", "mine.json"]).ends(2, &places);
    stage.run(&["serve", "--profiles", "none.json"]).ends(2, &["none.json", "--profiles"]);
}

#[test]
fn commands_on_data_find_the_directory_the_same_way() {
    let stage = Stage::new();
    stage.write("tasuki.toml", "data = \"from-file\"\nlisten = \"127.0.0.1:0\"\n");
    Broker::start(stage.command(&["serve"])).stop();
    stage.run(&["backup", "--to", "backup.db"]).ends(0, &["backup.db"]);
    stage.run(&["rebuild"]).ends(0, &["from-file"]);
}

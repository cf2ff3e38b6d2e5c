// SPDX-License-Identifier: Apache-2.0
//! What the broker writes is its owner's alone, and what others can read is not trusted.

use std::fs::Permissions;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tasuki_testing::stage::{Stage, Talk};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Everything in a directory that somebody else could open.
fn open_to_others(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if mode(&path) & 0o077 != 0 {
            found.push(format!("{} {:o}", path.display(), mode(&path)));
        }
    }
    found
}

#[test]
fn data_backups_exports_and_restored_directories_are_the_owners_alone() {
    let stage = Stage::new();
    // A directory from before, with files that everybody could read.
    std::fs::create_dir(stage.path("data")).unwrap();
    set_mode(&stage.path("data"), 0o755);
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    talk.offer("");
    assert_eq!(mode(&stage.path("data")), 0o700);
    assert_eq!(open_to_others(&stage.path("data")), Vec::<String>::new());
    talk.run("audit export --to log.jsonl").ends(0, &[]);
    assert_eq!(mode(&stage.path("log.jsonl")), 0o600);
    stage.run(&["backup", "--data", "data", "--to", "copy.db"]).ends(0, &[]);
    assert_eq!(mode(&stage.path("copy.db")), 0o600);
    stage.run(&["restore", "--from", "copy.db", "--data", "again"]).ends(0, &[]);
    assert_eq!(mode(&stage.path("again")), 0o700);
    assert_eq!(open_to_others(&stage.path("again")), Vec::<String>::new());
    broker.stop();

    // A file that was opened to others later is closed at the next start.
    set_mode(&stage.path("data/tasuki.db"), 0o644);
    let broker = stage.broker("data");
    assert_eq!(mode(&stage.path("data/tasuki.db")), 0o600);
    broker.stop();
}

#[test]
fn a_key_or_a_password_that_others_can_read_is_refused_with_the_command_that_closes_it() {
    let stage = Stage::new();
    stage.broker("data").stop();
    set_mode(&stage.path("data/broker.key"), 0o644);
    let said = stage.run(&["serve", "--data", "data", "--listen", "127.0.0.1:0"]);
    assert_ne!(said.code, 0);
    assert!(said.err.contains("chmod 600"), "{}", said.err);

    for url in ["postgres://a:geheim@127.0.0.1:1/x", "postgres://127.0.0.1:1/x?password=geheim"] {
        stage.write("tasuki.toml", format!("store = \"{url}\"\n"));
        set_mode(&stage.path("tasuki.toml"), 0o644);
        let said = stage.run(&["serve", "--data", "other"]);
        assert!(said.err.contains("chmod 600"), "{}", said.err);
        assert!(!said.err.contains("geheim"), "{}", said.err);
    }
    stage.write("tasuki.toml", "");
    // A form in which nobody would look for the password is refused.
    let words = "host=127.0.0.1 port=1 user=a password=geheim dbname=x";
    let said = stage.run(&["serve", "--data", "other", "--store", words]);
    assert!(said.err.contains("expected postgres://"), "{}", said.err);
    assert!(!said.err.contains("geheim"), "{}", said.err);

    stage.write("password", "geheim\n");
    set_mode(&stage.path("password"), 0o604);
    let said = stage.run(&[
        "serve",
        "--data",
        "other",
        "--store",
        "postgres://a@127.0.0.1:1/x",
        "--store-password-file",
        "password",
    ]);
    assert!(said.err.contains("chmod 600"), "{}", said.err);
}

#[test]
fn a_password_on_the_command_line_is_not_in_the_list_of_processes() {
    let stage = Stage::new();
    // Takes connections and never answers, so that the process is there to look at.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://a:geh%20eim@{}/x", listener.local_addr().unwrap());
    let mut doctor = stage.command(&["doctor", "--data", "none", "--store", &url]).spawn().unwrap();
    let _connected = listener.accept().unwrap();
    let read = |what: &str| std::fs::read(format!("/proc/{}/{what}", doctor.id())).unwrap();
    let (arguments, environment) = (read("cmdline"), read("environ"));
    let has = |text: &[u8], part: &str| text.windows(part.len()).any(|it| it == part.as_bytes());
    assert!(has(&arguments, "postgres://a@127.0.0.1"), "{}", String::from_utf8_lossy(&arguments));
    assert!(!has(&arguments, "eim"), "{}", String::from_utf8_lossy(&arguments));
    assert!(has(&environment, "TASUKI_STORE_PASSWORD=geh eim"));
    doctor.kill().unwrap();
    doctor.wait().unwrap();
}

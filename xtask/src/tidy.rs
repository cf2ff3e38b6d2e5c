// SPDX-License-Identifier: Apache-2.0
//! Checks that no compiler makes. Each returns its findings as sentences that say what to do; all
//! of them are shown, not only the first.

mod documents;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

/// Whether a file is about one thing is for its reviewer to see; this finds only what nobody can
/// have looked at as a whole. A lower bound made people split files by their size.
const FILE_LINES_MAX: usize = 900;

pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let files = files(root)?;
    let mut findings = core_dependencies(root)?;
    findings.extend(directions(root)?);
    findings.extend(crate::gate::findings(root)?);
    // The map, and the walls with the tests that hold them.
    for named in ["ARCHITECTURE.md", "SECURITY.md", "docs/security.md"] {
        if let Ok(text) = fs::read_to_string(root.join(named)) {
            findings.extend(vanished_paths(named, &text, root, &files));
        }
    }
    findings.extend(documents::findings(root, &files)?);
    for path in &files {
        // What is not UTF-8 is not text; what is gone was deleted and not committed yet.
        if let Ok(text) = fs::read_to_string(root.join(path)) {
            findings.extend(unwelcome(path, &text));
            findings.extend(past_the_lobby(path, &text));
        }
    }
    for finding in &findings {
        println!("{finding}");
    }
    if !findings.is_empty() {
        bail!("to tidy up: {}", findings.len());
    }
    Ok(())
}

/// Every file that is committed or would be.
pub(crate) fn files(root: &Path) -> anyhow::Result<Vec<String>> {
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let listed = output(root, "git", &arguments)?;
    let files: BTreeSet<&str> = listed.split('\0').filter(|path| !path.is_empty()).collect();
    Ok(files.into_iter().map(String::from).collect())
}

/// The core stays pure by not having anything impure at hand.
fn core_dependencies(root: &Path) -> anyhow::Result<Vec<String>> {
    const PATH: &str = "crates/tasuki-core/DEPENDENCIES";
    // One platform, so that every machine finds the same.
    let arguments = "tree --package tasuki-core --edges normal --prefix none --format {p} \
                     --target x86_64-unknown-linux-gnu";
    let tree = output(root, &cargo(), &arguments.split(' ').collect::<Vec<_>>())?;
    let names = tree.lines().filter_map(|line| line.split_whitespace().next());
    let found: BTreeSet<&str> = names.filter(|name| *name != "tasuki-core").collect();
    let committed = fs::read_to_string(root.join(PATH)).unwrap_or_default();
    let expected: BTreeSet<&str> = committed.lines().collect();
    let new = found.difference(&expected).map(|name| {
        format!(
            "{PATH}: {name} is a new dependency of the core; if it needs no I/O, clock, \
             randomness or async, add its line, otherwise do without it"
        )
    });
    let gone = expected
        .difference(&found)
        .map(|name| format!("{PATH}: {name} is no longer needed; remove its line"));
    Ok(new.chain(gone).collect())
}

fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}

fn output(root: &Path, program: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let run = Command::new(program).args(arguments).current_dir(root).output();
    let run = run.with_context(|| format!("cannot run {program}"))?;
    if !run.status.success() {
        let said = String::from_utf8_lossy(&run.stderr);
        bail!("{program} {} failed: {said}", arguments.join(" "));
    }
    String::from_utf8(run.stdout).with_context(|| format!("{program} wrote what is not UTF-8"))
}

/// Who may depend on whom, among our own crates. Tests may reach further down.
const DIRECTIONS: &[(&str, &[&str])] = &[
    ("tasuki-core", &[]),
    ("tasuki-protocol", &["tasuki-core"]),
    ("tasuki-store", &["tasuki-core"]),
    ("tasuki-engine", &["tasuki-core", "tasuki-protocol", "tasuki-store"]),
    ("tasuki-front", &["tasuki-core", "tasuki-protocol", "tasuki-engine"]),
    ("tasuki-http", &["tasuki-core", "tasuki-protocol", "tasuki-engine", "tasuki-front"]),
    ("tasuki-mcp", &["tasuki-core", "tasuki-protocol", "tasuki-engine", "tasuki-front"]),
    ("tasuki-a2a", &["tasuki-core", "tasuki-protocol", "tasuki-engine", "tasuki-front"]),
    // What is said over HTTP is all that a command line knows of a broker.
    ("tasuki-cli", &["tasuki-core", "tasuki-protocol"]),
    (
        "tasuki",
        &[
            "tasuki-cli",
            "tasuki-core",
            "tasuki-protocol",
            "tasuki-store",
            "tasuki-engine",
            "tasuki-front",
            "tasuki-http",
            "tasuki-mcp",
            "tasuki-a2a",
        ],
    ),
    ("tasuki-tools", &["tasuki-cli", "tasuki-core", "tasuki-protocol"]),
    // A server for tests, which knows nothing of ours.
    ("scratch-postgres", &[]),
    ("tasuki-testing", &[]),
];

fn directions(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut findings = Vec::new();
    let folder = root.join("crates");
    for entry in fs::read_dir(&folder).context("cannot list crates")? {
        let manifest = entry.context("cannot list crates")?.path().join("Cargo.toml");
        if let Ok(text) = fs::read_to_string(&manifest) {
            let manifest: toml::Table =
                text.parse().with_context(|| format!("cannot read {}", manifest.display()))?;
            findings.extend(wrong_directions(&manifest));
        }
    }
    findings.sort();
    Ok(findings)
}

fn wrong_directions(manifest: &toml::Table) -> Vec<String> {
    let name = manifest.get("package").and_then(|package| package.get("name"));
    let name = name.and_then(toml::Value::as_str).unwrap_or_default();
    let Some((_, allowed)) = DIRECTIONS.iter().find(|(known, _)| *known == name) else {
        return vec![format!("{name}: say in xtask/src/tidy.rs what this crate may depend on")];
    };
    let per_target = manifest.get("target").and_then(toml::Value::as_table);
    let per_target = per_target.into_iter().flat_map(toml::Table::values);
    let tables = per_target.filter_map(toml::Value::as_table).chain([manifest]);
    tables
        .flat_map(|table| [table.get("dependencies"), table.get("build-dependencies")])
        .flatten()
        .filter_map(toml::Value::as_table)
        .flat_map(toml::Table::keys)
        .filter(|key| key.starts_with("tasuki") && !allowed.contains(&key.as_str()))
        .map(|key| format!("{name}: must not depend on {key}; ARCHITECTURE.md says who may"))
        .collect()
}

/// Paths that a document names in backticks and that are not there.
fn vanished_paths(name: &str, document: &str, root: &Path, files: &[String]) -> Vec<String> {
    let exists = |path: &str| {
        let named_so = |file: &String| file.rsplit('/').next() == Some(path);
        // The walls are mostly those of the HTTP door.
        let of_the_door = || root.join("crates/tasuki-http").join(path).exists();
        root.join(path).exists() || of_the_door() || files.iter().any(named_so)
    };
    named_paths(document)
        .filter(|path| !exists(path))
        .map(|path| format!("{name}: names `{path}`, which does not exist"))
        .collect()
}

fn named_paths(document: &str) -> impl Iterator<Item = &str> {
    let looks_like_one = |text: &&str| {
        let ends = [".rs", ".md", ".toml"].iter().any(|end| text.ends_with(end));
        // A leading slash is a URL's path; the rest are patterns, commands and links.
        let plain = !text.starts_with('/') && !text.contains(['*', '<', '{', ' ', ':']);
        plain && (ends || text.contains('/'))
    };
    // Lines one by one: a stray backtick then spoils its own line only.
    document.lines().flat_map(|line| line.split('`').skip(1).step_by(2)).filter(looks_like_one)
}

fn unwelcome(path: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let lines = text.lines().count();
    let explains_itself = || text.lines().any(|line| line.trim().starts_with(LONG));
    if path.ends_with(".rs") && lines > FILE_LINES_MAX && !explains_itself() {
        findings.push(format!(
            "{path}: {lines} lines; split it, or say why not in a line that begins `{LONG}`"
        ));
    }
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(folder) = FOLDERS.iter().find(|folder| names_folder(line, folder)) {
            findings.push(format!("{path}:{number}: names a folder of one machine, {folder}"));
        }
        if line.contains(UNFINISHED) {
            findings.push(format!("{path}:{number}: unfinished code, {UNFINISHED}…)"));
        }
    }
    findings.extend(unwatched(path, text));
    findings
}

/// What is started and not watched could end unnoticed.
fn unwatched(path: &str, text: &str) -> Vec<String> {
    let ours = path.starts_with("crates/tasuki") && path.contains("/src/");
    if !ours || path == WATCHES || path.ends_with("tests.rs") || path.contains("tasuki-testing") {
        return Vec::new();
    }
    let shipped: Vec<_> = text.lines().take_while(|line| line.trim() != "#[cfg(test)]").collect();
    let bare = |line: &&str| SPAWNS.iter().any(|spawn| line.contains(spawn));
    let bare = (1..).zip(&shipped).filter(|(_, line)| bare(line));
    bare.filter(|(number, _)| {
        let before = shipped[..number - 1].iter().rev();
        let mut comment = before.map(|line| line.trim()).take_while(|line| line.starts_with("//"));
        !comment.any(|line| line.starts_with(UNWATCHED))
    })
    .map(|(number, _)| {
        format!("{path}:{number}: start it with `Workers`, or say why not: `{UNWATCHED}…`")
    })
    .collect()
}

/// Where everything that is to last is started and watched.
const WATCHES: &str = "crates/tasuki-store/src/workers.rs";
const UNWATCHED: &str = "// Not watched: ";
const SPAWNS: [&str; 3] = ["tokio::spawn(", "thread::spawn(", "task::spawn("];

/// Where doors are: what an HTTP door shares counts as one.
const DOORS: [&str; 4] = [
    "crates/tasuki-front/src/",
    "crates/tasuki-http/src/",
    "crates/tasuki-mcp/src/",
    "crates/tasuki-a2a/src/",
];

/// A door is made with a lobby. Whoever has the engine can do anything for anybody.
fn past_the_lobby(path: &str, text: &str) -> Option<String> {
    let is_name = |line: &str| {
        let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.any(|word| word == "Engine")
    };
    let found = DOORS.iter().any(|door| path.starts_with(door)) && text.lines().any(is_name);
    found.then(|| format!("{path}: names the Engine; a door asks its Lobby and serves at a Desk"))
}

const LONG: &str = "// Long because: ";
// Put together here, so that this file does not find itself.
const UNFINISHED: &str = concat!("to", "do!(");
const FOLDERS: [&str; 3] = [concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/wo", "rk/")];

/// Whether a line has this absolute path, and not a longer one that contains it.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-})>*".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_one_machine_is_found_and_a_path_below_another_is_not() {
        let [root, home, work] = FOLDERS;
        for line in [format!("see {root}x"), format!("\"{home}a\""), work.to_owned()] {
            assert_eq!(unwelcome("a.md", &line).len(), 1, "{line}");
        }
        for line in [format!("https://host{home}a"), format!("docs{work}a"), "/works".into()] {
            assert!(unwelcome("a.md", &line).is_empty(), "{line}");
        }
    }

    #[test]
    fn a_long_file_explains_itself() {
        let long = "\n".repeat(FILE_LINES_MAX + 1);
        assert_eq!(unwelcome("a.rs", &long).len(), 1);
        assert!(unwelcome("a.sql", &long).is_empty());
        assert!(unwelcome("a.rs", &format!("{LONG}it is one table{long}")).is_empty());
    }

    #[test]
    fn a_door_that_reaches_for_the_engine_is_found() {
        let reaching = "use tasuki_engine::{Desk, Engine};";
        assert!(past_the_lobby("crates/tasuki-http/src/a.rs", reaching).is_some());
        assert!(past_the_lobby("crates/tasuki-http/tests/it/a.rs", reaching).is_none());
        let asking = "use tasuki_engine::{Desk, Lobby}; // the engine";
        assert!(past_the_lobby("crates/tasuki-front/src/a.rs", asking).is_none());
    }

    #[test]
    fn unfinished_code_is_found() {
        assert_eq!(unwelcome("a.rs", &format!("    {UNFINISHED}\"later\")")).len(), 1);
    }

    #[test]
    fn a_door_does_not_see_the_store_but_its_tests_may() {
        let manifest = |section: &str| {
            let text = format!(
                "[package]\nname = \"tasuki-http\"\n[{section}]\ntasuki-store.workspace = true"
            );
            wrong_directions(&text.parse().unwrap()).len()
        };
        assert_eq!(manifest("dependencies"), 1);
        assert_eq!(manifest("target.'cfg(unix)'.dependencies"), 1);
        assert_eq!(manifest("dev-dependencies"), 0);
    }

    #[test]
    fn paths_are_told_from_other_things_in_backticks() {
        let document = "`crates/tasuki-core/src`, `world.rs` and `Cargo.toml`; not `Store`, \
                        `/v1/handoffs`, `docs/errors/<code>.md`, `cargo test -p x/y` or\n\
                        a stray ` in a line\n`docs/adr`";
        let named: Vec<_> = named_paths(document).collect();
        assert_eq!(named, ["crates/tasuki-core/src", "world.rs", "Cargo.toml", "docs/adr"]);
    }

    #[test]
    fn what_is_started_and_not_watched_says_why() {
        let path = "crates/tasuki-engine/src/outgoing.rs";
        let bare = "fn start() {\n    tokio::spawn(work);\n}\n";
        assert_eq!(unwatched(path, bare).len(), 1);
        let reason = "fn start() {\n    // Not watched: it is one delivery.\n    // Two lines.\n    tokio::spawn(work);\n}\n";
        assert_eq!(unwatched(path, reason), [""; 0]);
        assert_eq!(unwatched(WATCHES, bare), [""; 0]);
        assert_eq!(unwatched("crates/tasuki-engine/tests/engine/main.rs", bare), [""; 0]);
        assert_eq!(unwatched(path, &format!("#[cfg(test)]\n{bare}")), [""; 0]);
    }
}

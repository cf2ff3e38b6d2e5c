// SPDX-License-Identifier: Apache-2.0
//! Files that are made from the code and committed, so that people can read them and reviewers see
//! them change.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use tasuki_core::registry::roles::Role;
use tasuki_core::table;

use crate::{glossary, limits, monitoring};

/// Every generated file: where it is, from the root of the repository, and what it says.
fn files(root: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let mut files = vec![
        ("docs/glossary.md".to_owned(), glossary::render(root)?),
        ("docs/limits.md".to_owned(), limits::render(root)?),
        ("docs/reference/handoff-states.md".to_owned(), table::render()),
        ("docs/reference/roles.md".to_owned(), roles()),
        ("docs/reference/metrics.md".to_owned(), monitoring::metrics()),
        ("docs/reference/alerts.md".to_owned(), monitoring::alerts()),
        ("deploy/monitoring/tasuki.rules.yml".to_owned(), tasuki_core::alert::rules::file()),
        ("deploy/monitoring/grafana-tasuki.json".to_owned(), monitoring::grafana()?),
        ("api/openapi.json".to_owned(), tasuki_http::document_text().to_owned()),
        ("api/operations.json".to_owned(), tasuki_http::operations_text()),
    ];
    let schemas = tasuki_http::schema_texts().iter();
    files.extend(schemas.map(|(name, text)| (format!("api/schemas/{name}"), text.clone())));
    Ok(files)
}

/// The roles with their permissions, and every operation with the roles that may ask for it.
fn roles() -> String {
    let mut text = String::from(
        "# Roles\n\nMade by `cargo xtask codegen` from the table of operations. Do not edit.\n\n\
         A role is a name for permissions, in rules (`\"role\": \"reviewer\"`), invitations, tokens and on the \
         command line (`--role`, `--allow reviewer:team-*`). It is stored as the permissions that it stands for. \
         The coordinator of a task is a reviewer for that task without any rule.\n\n\
         | role | permissions |\n|---|---|\n",
    );
    for role in Role::ALL {
        let permissions: Vec<_> = role.permissions().iter().map(ToString::to_string).collect();
        text += &format!("| `{role}` | {} |\n", permissions.join(", "));
    }
    text += "\nAn operation is open to everybody, to everybody who is known, to some roles for what their rules are about, to an \
             agent for itself, or to who looks after the whole broker.\n\n\
             | operation | right | permission | viewer | worker | reviewer | operator | admin |\n\
             |---|---|---|---|---|---|---|---|\n";
    let listed = tasuki_http::operations();
    for operation in listed["operations"].as_array().into_iter().flatten() {
        let word = |name: &str| operation[name].as_str().unwrap_or_default().to_owned();
        let roles = operation["roles"].as_array();
        let has = |role: &Role| {
            let named = roles.is_some_and(|roles| roles.iter().any(|it| it == role.as_str()));
            match (named, word("right").as_str()) {
                // An agent's own business; of others, by the permission.
                (true, "looks_after")
                    if !role.permissions().iter().any(|it| it.as_str() == word("permission")) =>
                {
                    "own"
                }
                (true, _) => "yes",
                (false, _) => "",
            }
        };
        let cells: Vec<_> = Role::ALL.iter().map(has).collect();
        text += &format!(
            "| `{}` | {} | {} | {} |\n",
            word("name"),
            word("right"),
            word("permission"),
            cells.join(" | ")
        );
    }
    text
}

pub(crate) fn write(root: &Path) -> anyhow::Result<()> {
    for (path, content) in files(root)? {
        let file = root.join(&path);
        if fs::read_to_string(&file).is_ok_and(|found| found == content) {
            continue;
        }
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).with_context(|| format!("cannot make {path}'s folder"))?;
        }
        fs::write(&file, content).with_context(|| format!("cannot write {path}"))?;
        println!("wrote {path}");
    }
    Ok(())
}

pub(crate) fn check(root: &Path) -> anyhow::Result<()> {
    let is_stale = |path: &str, content: &str| {
        fs::read_to_string(root.join(path)).map_or(true, |found| found != content)
    };
    let files = files(root)?;
    let stale: Vec<&str> = files
        .iter()
        .filter(|(path, content)| is_stale(path, content))
        .map(|(path, _)| path.as_str())
        .collect();
    if !stale.is_empty() {
        bail!("out of date: {}\nrun `cargo xtask codegen` and commit the result", stale.join(", "));
    }
    Ok(())
}

// SPDX-License-Identifier: Apache-2.0
//! What a document shows is run, compared or at least parsed, and what it links to is there. A
//! block says by its tag which; one that cannot be run says why.

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use crate::markdown::{self, Block};

const TAGS: &str = "`sh` (run), `text` or `text figures` (the output of the block before), \
                    `python` or `ts` (run by the tests of an SDK), `json`, `toml`, `http` (parsed), \
                    `… file=NAME` (written for later commands), `text picture`, or `console` after \
                    a line `<!-- not run: REASON -->`";
const API: &str = "api/openapi.json";

pub(super) fn findings(root: &Path, files: &[String]) -> anyhow::Result<Vec<String>> {
    let api = fs::read_to_string(root.join(API)).with_context(|| format!("cannot read {API}"))?;
    let api = serde_json::from_str(&api).with_context(|| format!("cannot read {API}"))?;
    let mut findings = Vec::new();
    for path in files.iter().filter(|path| path.ends_with(".md")) {
        // What is gone was deleted and not committed yet.
        let Ok(text) = fs::read_to_string(root.join(path)) else { continue };
        findings.extend(wrong_blocks(path, &text, &api));
        findings.extend(dead_links(root, path, &text));
    }
    Ok(findings)
}

fn wrong_blocks(path: &str, document: &str, api: &Value) -> Vec<String> {
    let blocks = match markdown::blocks(document) {
        Ok(blocks) => blocks,
        Err(error) => return vec![format!("{path}: {error:#}")],
    };
    let mut findings = Vec::new();
    let mut before: Option<&Block<'_>> = None;
    // The whole document is then run by the tests of the SDK, which know fewer tags.
    let by_sdk = blocks.iter().any(|block| ["python", "ts"].contains(&block.tag));
    for block in &blocks {
        if by_sdk && (block.file().is_some() || block.tag == "text figures") {
            let line = block.line - 1;
            findings.push(format!(
                "{path}:{line}: beside `python` or `ts`, `{}` is not run",
                block.tag
            ));
        }
        // Pages of the reference are made from the code; what they show are its signatures.
        let signature = block.tag == "py" && path.starts_with("docs/reference/");
        if !signature && let Err(why) = fits(block, before, api) {
            findings.push(format!("{path}:{}: {why}", block.line - 1));
        }
        before = Some(block);
    }
    findings
}

fn fits(block: &Block<'_>, before: Option<&Block<'_>>, api: &Value) -> Result<(), String> {
    let explained = block.said_before.trim().strip_prefix("<!-- not run:");
    let reason = explained.and_then(|rest| rest.strip_suffix("-->")).map(str::trim);
    if block.tag != "console" && reason.is_some() {
        return Err("a block that is not run is tagged `console`".to_owned());
    }
    let whole =
        block.file().is_none_or(|name| block.tag == format!("{} file={name}", block.language()));
    match block.tag {
        "sh" | "python" | "ts" | "text picture" => Ok(()),
        "text" | "text figures" => match before {
            Some(before) if block.just_after && ["sh", "python", "ts"].contains(&before.tag) => {
                Ok(())
            }
            _ => Err("an output comes right after the commands that print it".to_owned()),
        },
        "console" => match reason {
            Some(reason) if !reason.is_empty() => Ok(()),
            _ => {
                Err("say in a line before it why it is not run: `<!-- not run: REASON -->`".into())
            }
        },
        "http" => request(&block.text, api),
        _ if !whole => Err(format!("expected one of {TAGS}")),
        _ => match block.language() {
            "json" => {
                serde_json::from_str::<Value>(&block.text).map(drop).map_err(|e| e.to_string())
            }
            "toml" => block.text.parse::<toml::Table>().map(drop).map_err(|e| e.to_string()),
            "python" if block.file().is_some() => Ok(()),
            other => Err(format!("`{other}` says nothing about it; expected one of {TAGS}")),
        },
    }
}

/// Whether a request is one that the API has: a method and a path, then a body if it has one.
fn request(text: &str, api: &Value) -> Result<(), String> {
    let (first, body) = text.split_once('\n').unwrap_or((text, ""));
    let (method, target) = first.split_once(' ').ok_or("a request begins with a method")?;
    let path = target.split('?').next().unwrap_or_default();
    let named_so = |known: &str| {
        let mut known = known.split('/');
        let same = |part: &str| known.next().is_some_and(|k| k == part || k.starts_with('{'));
        path.split('/').all(same) && known.next().is_none()
    };
    let routes = api["paths"].as_object().into_iter().flatten();
    let mut routes = routes.filter(|(known, _)| named_so(known));
    if !routes.any(|(_, methods)| methods.get(method.to_lowercase()).is_some()) {
        return Err(format!("{API} has no {method} {path}"));
    }
    if body.trim().is_empty() {
        return Ok(());
    }
    serde_json::from_str::<Value>(body).map(drop).map_err(|error| format!("its body: {error}"))
}

fn dead_links(root: &Path, path: &str, document: &str) -> Vec<String> {
    let dead = |target: &str| {
        if target.contains("://") || target.starts_with("mailto:") {
            return false;
        }
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let folder = Path::new(path).parent().unwrap_or(Path::new(""));
        let file = if file.is_empty() { root.join(path) } else { root.join(folder).join(file) };
        if anchor.is_empty() {
            return !file.exists();
        }
        let text = fs::read_to_string(file).unwrap_or_default();
        !markdown::anchors(&text).any(|known| known == anchor)
    };
    markdown::links(document)
        .filter(|(_, target)| dead(target))
        .map(|(line, target)| format!("{path}:{line}: links to {target}, which is not there"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(document: &str, wrong: usize) {
        let api =
            serde_json::json!({"paths": {"/v1/claims": {"post": {}}, "/v1/a/{id}": {"get": {}}}});
        let findings = wrong_blocks("a.md", document, &api);
        assert_eq!(findings.len(), wrong, "{document}\n{findings:?}");
    }

    #[test]
    fn a_block_has_a_tag_that_says_what_becomes_of_it() {
        check("```sh\necho\n```\n```text\n\n```\n", 0);
        check("```\necho\n```\n", 1);
        check("```bash\necho\n```\n", 1);
        check("```py\ndef only_in_the_reference(): ...\n```\n", 1);
        check("```python file=a.py\nprint()\n```\n```json file=b.json\n{}\n```\n", 0);
        check("```sh file=a\necho\n```\n```json once file=b\n{}\n```\n", 2);
    }

    #[test]
    fn an_output_follows_what_prints_it() {
        check("```python\nprint(1)\n```\n```text\n1\n```\n", 0);
        check("```sh\ndate\n```\n\n```text figures\n1\n```\n", 0);
        check("words\n```text\n1\n```\n", 1);
        check("```json\n1\n```\n```text\n1\n```\n", 1);
        check("```text picture\n->\n```\n", 0);
    }

    #[test]
    fn a_document_that_the_sdk_runs_has_no_tag_that_it_does_not_know() {
        let python = "```python\nprint(1)\n```\n";
        check(&format!("{python}```text\n1\n```\n"), 0);
        check(&format!("{python}```text figures\n1\n```\n"), 1);
        check(&format!("{python}```json file=a.json\n{{}}\n```\n"), 1);
    }

    #[test]
    fn what_is_not_run_says_why() {
        check("<!-- not run: needs root -->\n```console\nreboot\n```\n", 0);
        check("<!-- not run: needs root -->\n\n```console\nreboot\n```\n", 0);
        check("<!-- not run: -->\n```console\nreboot\n```\n", 1);
        check("words\n```console\nreboot\n```\n", 1);
        check("<!-- not run: needs root -->\n```sh\nreboot\n```\n", 1);
    }

    #[test]
    fn data_and_requests_are_parsed() {
        check("```json\n{\"a\": }\n```\n", 1);
        check("```toml\n[a]\nb = 1\n```\n", 0);
        check("```toml\nb = \n```\n", 1);
        check("```http\nPOST /v1/claims\n{\"agent\": \"a\"}\n```\n", 0);
        check("```http\nGET /v1/a/b?wait_ms=1\n```\n", 0);
        check("```http\nGET /v1/claims\n```\n", 1);
        check("```http\nPOST /v1/claims\n{\n```\n", 1);
    }

    #[test]
    fn a_link_leads_to_a_file_and_a_heading_of_it() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let dead = |document: &str| dead_links(root, "docs/a.md", document).len();
        assert_eq!(dead("[a](../README.md) [b](../README.md#run-it) [c](https://a.example)"), 0);
        assert_eq!(dead("[a](README.nowhere) [b](../README.md#nothing)"), 2);
    }
}

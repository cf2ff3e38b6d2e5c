// SPDX-License-Identifier: Apache-2.0
//! Finding the examples in a document, and changing what they are said to print.

use super::compare::Kind;
use crate::markdown::{self, Block};

/// What a document asks for.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    Run(Example),
    /// A file, which later commands read.
    Write {
        name: String,
        text: String,
    },
}

/// Commands, and what they are said to print.
#[derive(Debug, PartialEq)]
pub(super) struct Example {
    /// Where the commands begin, from 1.
    pub(super) line: usize,
    pub(super) script: String,
    pub(super) expected: Option<Expected>,
}

#[derive(Debug, PartialEq)]
pub(super) struct Expected {
    /// Where the output begins, from 1.
    pub(super) line: usize,
    pub(super) text: String,
    pub(super) kind: Kind,
}

/// Whether a document has commands that are to be run here. One with blocks of Python or TypeScript
/// is run as a whole by the tests of that SDK.
pub(super) fn is_run_here(document: &str) -> anyhow::Result<bool> {
    let blocks = markdown::blocks(document)?;
    let has = |tag: &str| blocks.iter().any(|block| block.tag == tag);
    Ok(has("sh") && !has("python") && !has("ts"))
}

pub(super) fn steps(document: &str) -> anyhow::Result<Vec<Step>> {
    let mut steps = Vec::new();
    let mut blocks = markdown::blocks(document)?.into_iter().peekable();
    while let Some(block) = blocks.next() {
        if let Some(name) = block.file() {
            steps.push(Step::Write { name: name.to_owned(), text: block.text });
        } else if block.tag == "sh" {
            let expected = blocks.peek().filter(|next| next.just_after).and_then(expected);
            steps.push(Step::Run(Example { line: block.line, script: block.text, expected }));
        }
    }
    Ok(steps)
}

fn expected(block: &Block<'_>) -> Option<Expected> {
    let kind = match block.tag {
        "text" => Kind::Text,
        "text figures" => Kind::Figures,
        _ => return None,
    };
    Some(Expected { line: block.line, text: block.text.clone(), kind })
}

/// The document with another output in this place.
pub(super) fn replaced(document: &str, old: &Expected, output: &str) -> String {
    let before = document.lines().take(old.line - 1);
    let after = document.lines().skip(old.line - 1 + old.text.lines().count());
    let mut text = String::new();
    for line in before.chain(output.trim_end().lines()).chain(after) {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "# Title\n```sh\none\n```\n\n```text\n1\n```\nwords\n```json file=a\n{}\n\
                            ```\n```sh\ntwo\nthree\n```\nwords\n```text\nnot its\n```\n";

    #[test]
    fn an_output_belongs_to_the_commands_right_before_it() {
        let expected = Expected { line: 7, text: "1\n".into(), kind: Kind::Text };
        let first = Example { line: 3, script: "one\n".into(), expected: Some(expected) };
        let file = Step::Write { name: "a".into(), text: "{}\n".into() };
        let second = Example { line: 14, script: "two\nthree\n".into(), expected: None };
        assert_eq!(steps(DOCUMENT).unwrap(), [Step::Run(first), file, Step::Run(second)]);
    }

    #[test]
    fn an_output_is_replaced_in_its_place() {
        let found = steps(DOCUMENT).unwrap();
        let Step::Run(Example { expected: Some(expected), .. }) = &found[0] else {
            panic!("{found:?}")
        };
        let new = replaced(DOCUMENT, expected, "a\nb\n");
        assert_eq!(new, DOCUMENT.replacen("\n1\n", "\na\nb\n", 1));
    }

    #[test]
    fn a_document_with_python_is_run_elsewhere() {
        assert!(is_run_here(DOCUMENT).unwrap());
        assert!(!is_run_here("```sh\none\n```\n```python\nprint()\n```\n").unwrap());
        assert!(is_run_here("```sh\none\n```\n```python file=a.py\nprint()\n```\n").unwrap());
        assert!(!is_run_here("words\n```text\n1\n```\n").unwrap());
    }
}

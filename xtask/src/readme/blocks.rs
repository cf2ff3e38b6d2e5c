// SPDX-License-Identifier: Apache-2.0
//! Finding the examples in a document, and changing what they are said to print.

use anyhow::bail;

use super::compare::Kind;

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

pub(super) fn examples(document: &str) -> anyhow::Result<Vec<Example>> {
    let mut examples: Vec<Example> = Vec::new();
    // Whether only empty lines lie between here and the end of the last commands.
    let mut just_after = false;
    let mut lines = (1..).zip(document.lines());
    while let Some((number, line)) = lines.next() {
        let Some(tag) = line.strip_prefix("```") else {
            just_after &= line.trim().is_empty();
            continue;
        };
        let mut content = String::new();
        loop {
            match lines.next() {
                Some((_, "```")) => break,
                Some((_, line)) => {
                    content.push_str(line);
                    content.push('\n');
                }
                None => bail!("line {number}: this block has no end"),
            }
        }
        let kind = match tag {
            "text" => Some(Kind::Text),
            "text figures" => Some(Kind::Figures),
            _ => None,
        };
        match (kind, examples.last_mut()) {
            (Some(kind), Some(example)) if just_after => {
                example.expected = Some(Expected { line: number + 1, text: content, kind });
            }
            _ if tag == "sh" => {
                examples.push(Example { line: number + 1, script: content, expected: None });
            }
            _ => {}
        }
        just_after = tag == "sh";
    }
    Ok(examples)
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

    const DOCUMENT: &str = "# Title\n```sh\none\n```\n\n```text\n1\n```\nwords\n```text\nnot its\n\
                            ```\n```sh\ntwo\nthree\n```\nwords\n```text\nnot its\n```\n";

    #[test]
    fn an_output_belongs_to_the_commands_right_before_it() {
        let expected = Expected { line: 7, text: "1\n".into(), kind: Kind::Text };
        let first = Example { line: 3, script: "one\n".into(), expected: Some(expected) };
        let second = Example { line: 14, script: "two\nthree\n".into(), expected: None };
        assert_eq!(examples(DOCUMENT).unwrap(), [first, second]);
    }

    #[test]
    fn an_output_is_replaced_in_its_place() {
        let found = examples(DOCUMENT).unwrap();
        let new = replaced(DOCUMENT, found[0].expected.as_ref().unwrap(), "a\nb\n");
        assert_eq!(new, DOCUMENT.replacen("\n1\n", "\na\nb\n", 1));
    }

    #[test]
    fn a_block_without_an_end_is_refused() {
        assert!(examples("```sh\necho\n").is_err());
    }
}

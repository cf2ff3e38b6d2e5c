// SPDX-License-Identifier: Apache-2.0
//! The parts of a Markdown document that programs look at: fenced blocks, headings and links.

use anyhow::bail;

/// What every fence begins with.
pub(crate) const FENCE: &str = "```";

/// A fenced block.
#[derive(Debug, PartialEq)]
pub(crate) struct Block<'d> {
    /// Where its content begins, from 1.
    pub(crate) line: usize,
    /// All that stands behind its first fence.
    pub(crate) tag: &'d str,
    pub(crate) text: String,
    /// Whether only empty lines lie between the block before and this one.
    pub(crate) just_after: bool,
    /// The last line before it that is not empty.
    pub(crate) said_before: &'d str,
}

impl Block<'_> {
    /// The first word of its tag: the language that a reader sees it in.
    pub(crate) fn language(&self) -> &str {
        self.tag.split(' ').next().unwrap_or_default()
    }

    /// The file that it is the content of, if its tag says so: `json file=profiles.json`.
    pub(crate) fn file(&self) -> Option<&str> {
        self.tag.split(' ').find_map(|word| word.strip_prefix("file="))
    }
}

pub(crate) fn blocks(document: &str) -> anyhow::Result<Vec<Block<'_>>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let (mut just_after, mut said_before) = (false, "");
    let mut lines = (1..).zip(document.lines());
    while let Some((number, line)) = lines.next() {
        let Some(tag) = line.strip_prefix(FENCE) else {
            if line.trim_start().starts_with(FENCE) {
                bail!("line {number}: a fence begins its line");
            }
            if !line.trim().is_empty() {
                (just_after, said_before) = (false, line);
            }
            continue;
        };
        let mut text = String::new();
        loop {
            match lines.next() {
                Some((_, FENCE)) => break,
                Some((_, line)) => {
                    text.push_str(line);
                    text.push('\n');
                }
                None => bail!("line {number}: this block has no end"),
            }
        }
        blocks.push(Block { line: number + 1, tag, text, just_after, said_before });
        (just_after, said_before) = (true, FENCE);
    }
    Ok(blocks)
}

/// The document without its blocks: what is left has the same line numbers.
pub(crate) fn prose(document: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_block = false;
    (1..).zip(document.lines()).filter(move |(_, line)| {
        let fence = line.starts_with(FENCE);
        in_block ^= fence;
        !in_block && !fence
    })
}

/// Where the links of a document lead, each with its line.
pub(crate) fn links(document: &str) -> impl Iterator<Item = (usize, &str)> {
    prose(document).flat_map(|(number, line)| {
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        targets.map(move |target| (number, target))
    })
}

/// What a link can name after its `#`: the headings, as GitHub writes them there, and places that
/// have an id of their own.
pub(crate) fn anchors(document: &str) -> impl Iterator<Item = String> {
    let ids = document.split("<a id=\"").skip(1);
    let ids = ids.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()));
    let titles = prose(document).filter_map(|(_, line)| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len()).then_some(title.trim())
    });
    let headings = titles.map(|title| {
        let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
    });
    headings.chain(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_knows_its_tag_and_what_stands_before_it() {
        let document = "words\n\n```json file=a.json\n{}\n```\n\n```text\n1\n```\n";
        let found = blocks(document).unwrap();
        assert_eq!((found[0].language(), found[0].file()), ("json", Some("a.json")));
        assert_eq!((found[0].line, found[0].text.as_str()), (4, "{}\n"));
        assert_eq!((found[0].just_after, found[0].said_before), (false, "words"));
        assert_eq!((found[1].just_after, found[1].file()), (true, None));
    }

    #[test]
    fn a_block_without_an_end_and_one_that_is_set_in_are_refused() {
        assert!(blocks("```sh\necho\n").is_err());
        assert!(blocks("- item\n  ```sh\n  echo\n  ```\n").is_err());
    }

    #[test]
    fn links_and_anchors_are_those_of_the_prose() {
        let document = "# Who may, and *how*?\nsee [a](a.md#b) and [c](../c)\n```\n[d](e)\n```\n";
        assert_eq!(links(document).collect::<Vec<_>>(), [(2, "a.md#b"), (2, "../c")]);
        assert_eq!(anchors(document).collect::<Vec<_>>(), ["who-may-and-how"]);
        let named = "- <a id=\"s1\"></a>**S1** one rule\n";
        assert_eq!(anchors(named).collect::<Vec<_>>(), ["s1"]);
    }
}

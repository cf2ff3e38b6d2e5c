// SPDX-License-Identifier: Apache-2.0
//! What the comments of the source say, for documents that repeat it.

use anyhow::Context;

/// The comment above the line that begins with `item`, without its markers.
pub(crate) fn comment_above(source: &str, item: &str) -> anyhow::Result<String> {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let is_item =
        |line: &&str| line.strip_prefix(item).is_some_and(|rest| !rest.starts_with(is_word));
    let at = lines.iter().position(is_item).with_context(|| format!("there is no `{item}`"))?;
    // Attributes stand between a comment and its item, some of them over several lines.
    let end = (0..at).rev().find(|line| lines[*line].starts_with("///"));
    let end = end.filter(|end| lines[end + 1..at].iter().all(|line| !ends_item(line)));
    let end = end.with_context(|| format!("`{item}` has no comment"))?;
    let begin = (0..=end).rev().take_while(|line| lines[*line].starts_with("///")).last();
    let comment = &lines[begin.unwrap_or(end)..=end];
    let text: Vec<_> = comment.iter().map(|line| line.trim_start_matches('/').trim()).collect();
    Ok(text.join(" "))
}

/// The first sentence of a text.
pub(crate) fn first_sentence(text: &str) -> &str {
    let end = text.match_indices(". ").map(|(at, _)| at).find(|at| {
        text[at + 2..].starts_with(|next: char| next.is_ascii_uppercase() || next == '`')
    });
    end.map_or(text, |end| &text[..=end])
}

fn is_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// Whether something else ends on this line, so that a comment before it is not about what follows.
fn ends_item(line: &str) -> bool {
    line == "}" || line.ends_with(';') || (line.ends_with(',') && line.starts_with("pub "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
/// One thing.
pub const A: u8 = 1;

/// The other thing. It is
/// explained.
#[derive(
    Debug,
)]
pub struct Other {
    /// A member. `x` is more.
    #[serde(default)]
    pub member: u8,
    pub bare: u8,
}
";

    #[test]
    fn a_comment_is_found_above_its_attributes() {
        let comment = comment_above(SOURCE, "pub struct Other").unwrap();
        assert_eq!(comment, "The other thing. It is explained.");
        assert_eq!(first_sentence(&comment), "The other thing.");
        assert_eq!(first_sentence("See 1. e. this one."), "See 1. e. this one.");
    }

    #[test]
    fn a_comment_of_something_else_is_nobodys() {
        assert!(comment_above(SOURCE, "pub bare").is_err());
        assert!(comment_above(SOURCE, "pub struct Oth").is_err());
        assert_eq!(comment_above(SOURCE, "pub member").unwrap(), "A member. `x` is more.");
    }
}

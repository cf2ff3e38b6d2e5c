// SPDX-License-Identifier: Apache-2.0
//! Puts one block into a YAML file, line by line, so that comments and spelling stay. A file whose lines
//! do not show where a block begins and ends is left alone.

use super::{NAME, Unreadable};

/// One member of a block of lines: where it is, and what stands behind its colon.
struct Member<'a> {
    at: usize,
    key: &'a str,
    value: &'a str,
}

/// The file with a block below a line such as `extensions:`. The block is written with two spaces for
/// each level; it gets as many as the file has.
pub(super) fn put(before: &str, below: &str, block: &str) -> Result<String, Unreadable> {
    let mut lines: Vec<&str> = before.lines().collect();
    let name = below.trim_end_matches(':');
    let mut found = members(&lines, 0..lines.len(), 0)?.into_iter().filter(|top| top.key == name);
    let Some(top) = found.next() else {
        let before = before.trim_end();
        let gap = if before.is_empty() { "" } else { "\n" };
        return Ok(format!("{before}{gap}{below}\n{block}"));
    };
    if found.next().is_some() {
        return Err(Unreadable(format!("`{below}` is in it twice")));
    }
    if !top.value.is_empty() {
        return Err(Unreadable(format!("`{below}` is not written as a block of lines")));
    }
    let ends = end_of(&lines, top.at, 0);
    let inner = top.at + 1..ends;
    let indent = lines[inner.clone()].iter().find(|line| has_content(line)).map_or(2, |l| depth(l));
    let own = as_deep(block, indent);
    let mut ours = members(&lines, inner, indent)?.into_iter().filter(|member| member.key == NAME);
    let place = match ours.next() {
        Some(known) if ours.next().is_none() => known.at..end_of(&lines, known.at, indent),
        Some(_) => return Err(Unreadable(format!("`{NAME}` is in `{below}` twice"))),
        None => top.at + 1..top.at + 1,
    };
    lines.splice(place, own.lines());
    Ok(lines.join("\n") + "\n")
}

/// The members that are indented by so much, among some lines.
fn members<'a>(
    lines: &[&'a str],
    range: std::ops::Range<usize>,
    indent: usize,
) -> Result<Vec<Member<'a>>, Unreadable> {
    let mut members = Vec::new();
    let mut begun = false;
    for at in range {
        let line = lines[at];
        if !has_content(line) {
            continue;
        }
        if line.trim_start_matches(' ').starts_with('\t') {
            return Err(Unreadable(format!("line {} is indented by a tab", at + 1)));
        }
        let first = !std::mem::replace(&mut begun, true);
        if indent == 0 && (line.starts_with("---") || line.starts_with("...")) {
            match first && line.trim_end() == "---" {
                true => begun = false,
                false => return Err(Unreadable("it is more than one document".into())),
            }
            continue;
        }
        if depth(line) < indent || (first && depth(line) != indent) {
            return Err(Unreadable(format!("line {} is indented by too little", at + 1)));
        }
        if depth(line) > indent {
            continue;
        }
        match member(line) {
            Some((key, value)) => members.push(Member { at, key, value }),
            None => return Err(Unreadable(format!("line {} is no `name: value`", at + 1))),
        }
    }
    Ok(members)
}

/// The name of a member and what stands behind the colon, without its comment.
fn member(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let quoted = line.chars().next().filter(|first| matches!(first, '"' | '\''));
    let (key, rest) = match quoted {
        Some(quote) => line[1..].split_once(quote)?,
        None if line.starts_with(['{', '[', '-', '?', '&', '*', '!', '%', '|', '>', '@', '`']) => {
            return None;
        }
        None => {
            let colon = line.find(": ").or_else(|| line.strip_suffix(':').map(str::len));
            let colon = colon.or_else(|| line.find(":\t"))?;
            line.split_at(colon)
        }
    };
    let value = rest.trim_start().strip_prefix(':')?;
    let value = match value.trim_start() {
        comment if comment.starts_with('#') => "",
        value => value.trim_end(),
    };
    Some((key.trim_end(), value))
}

/// Where what belongs to a member ends: before the next line that is not deeper, and before the empty
/// lines and comments in front of that.
fn end_of(lines: &[&str], at: usize, indent: usize) -> usize {
    let deeper = |line: &str| !has_content(line) || depth(line) > indent;
    let length = lines[at + 1..].iter().take_while(|line| deeper(line)).count();
    let belongs = |line: &&str| has_content(line) || (line.contains('#') && depth(line) > indent);
    let last = lines[at + 1..at + 1 + length].iter().rposition(belongs);
    last.map_or(at + 1, |last| at + 2 + last)
}

/// Whether a line is more than a comment or nothing.
fn has_content(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with('#')
}

fn depth(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// A block of two spaces for each level with another indentation.
fn as_deep(block: &str, indent: usize) -> String {
    let lines = block.lines().map(|line| {
        let inner = line.trim_start_matches(' ');
        let levels = (line.len() - inner.len()) / 2;
        format!("{}{inner}\n", " ".repeat(levels * indent))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "  tasuki:\n    enabled: true\n";

    fn with(before: &str) -> String {
        let after = put(before, "extensions:", OWN).unwrap();
        assert_eq!(put(&after, "extensions:", OWN).unwrap(), after, "twice is once");
        after
    }

    #[test]
    fn a_file_of_others_gets_one_block_more() {
        assert_eq!(with(""), "extensions:\n  tasuki:\n    enabled: true\n");
        assert_eq!(with("A: 1\n"), "A: 1\nextensions:\n  tasuki:\n    enabled: true\n");
        assert_eq!(
            with("# mine\nextensions:\n  developer:\n    enabled: true\nMODEL: x\n"),
            "# mine\nextensions:\n  tasuki:\n    enabled: true\n  developer:\n    enabled: true\nMODEL: x\n"
        );
        assert_eq!(
            with("---\nextensions: # what I use\n\nMODEL: x\n"),
            "---\nextensions: # what I use\n  tasuki:\n    enabled: true\n\nMODEL: x\n"
        );
    }

    #[test]
    fn the_block_is_indented_as_its_neighbours_are() {
        for deep in [1, 2, 3, 4, 8] {
            let by = |levels: usize| " ".repeat(levels * deep);
            let (one, two) = (by(1), by(2));
            let others = format!("{one}developer:\n{two}enabled: true\n{two}args: [a]\n");
            let ours = format!("{one}tasuki:\n{two}enabled: true\n");
            assert_eq!(
                with(&format!("extensions:\n{others}")),
                format!("extensions:\n{ours}{others}")
            );
        }
    }

    #[test]
    fn only_the_block_of_that_name_in_that_section_is_replaced() {
        let other = "servers:\n  tasuki:\n    keep: me\n";
        let before = format!(
            "{other}extensions:\n    a:\n        tasuki:\n            keep: me\n    'tasuki':\n        old: 1\n\n        # old\n    \
             # of b\n    b:\n        x: 1\n"
        );
        let after = with(&before);
        assert_eq!(
            after,
            format!(
                "{other}extensions:\n    a:\n        tasuki:\n            keep: me\n    tasuki:\n        enabled: true\n    \
                 # of b\n    b:\n        x: 1\n"
            )
        );
    }

    #[test]
    fn texts_over_several_lines_are_no_members() {
        let text =
            "note: |\n  extensions:\n    tasuki:\nextensions:\n  a:\n    say: |\n      tasuki:\n";
        assert_eq!(
            with(text),
            "note: |\n  extensions:\n    tasuki:\nextensions:\n  tasuki:\n    enabled: true\n  a:\n    say: |\n      tasuki:\n"
        );
    }

    #[test]
    fn what_lines_do_not_show_is_left_alone() {
        for before in [
            "extensions: {}\n",
            "extensions: null\n",
            "extensions: &all\n  a: 1\n",
            "extensions:\n- a\n",
            "extensions:\n  - a\n",
            "extensions:\n\ta: 1\n",
            "extensions:\n    a: 1\n  b: 2\n",
            "extensions:\n  a: 1\nextensions:\n  b: 1\n",
            "extensions:\n  tasuki: 1\n  tasuki: 2\n",
            "{ extensions: {} }\n",
            "  extensions:\n    a: 1\n",
            "a: 1\n---\nextensions:\n  b: 1\n",
            "- a\n",
        ] {
            assert!(put(before, "extensions:", OWN).is_err(), "{before}");
        }
    }
}

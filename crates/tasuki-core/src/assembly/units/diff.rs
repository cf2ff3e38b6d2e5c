// SPDX-License-Identifier: Apache-2.0
//! Diffs: a hunk is a unit. The first of a file has the file's head in it; others are labelled with
//! its name.

use std::ops::Range;

use super::super::text::estimate;
use super::{UNIT_TOKENS_MAX, Unit, lines};

pub(super) fn is_diff(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("@@ "))
        && text.lines().any(|line| line.starts_with("+++ ") || line.starts_with("diff --git "))
}

pub(super) fn hunks(text: &str) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    let (mut file, mut in_head, mut first) = (String::new(), true, true);
    for line in lines(text) {
        let words = &text[line.clone()];
        let head = words.starts_with("diff --git ")
            || (words.starts_with("--- ") && units.is_empty())
            || words.starts_with("Index: ");
        if let Some(name) = words.strip_prefix("+++ ") {
            file = name.trim().trim_start_matches("b/").to_owned();
        }
        let begins = if head && !in_head {
            (in_head, first) = (true, true);
            true
        } else if words.starts_with("@@ ") {
            !std::mem::replace(&mut in_head, false) || !std::mem::take(&mut first)
        } else {
            false
        };
        match units.last_mut() {
            Some(last) if !begins => last.range.end = line.end,
            _ => {
                let label = (begins && !in_head).then(|| file.clone());
                let alone = label.is_some();
                units.push(Unit { range: line, label, alone });
            }
        }
    }
    units.into_iter().flat_map(|unit| finer(text, unit)).collect()
}

/// A hunk that is much too long, such as a new file, is cut where something begins in it: after an
/// empty line, or before a line without indentation. Its pieces say which hunk they are of.
fn finer(text: &str, unit: Unit) -> Vec<Unit> {
    if estimate(&text[unit.range.clone()]) <= UNIT_TOKENS_MAX {
        return vec![unit];
    }
    let words = &text[unit.range.clone()];
    let file = unit.label.clone().or_else(|| {
        let name = words.lines().find_map(|line| line.strip_prefix("+++ "))?;
        Some(name.trim().trim_start_matches("b/").to_owned())
    });
    let hunk = words.lines().find(|line| line.starts_with("@@ ")).unwrap_or_default();
    let hunk = hunk.get(2..).and_then(|rest| rest.split_once("@@")).map_or("", |(at, _)| at.trim());
    let label = format!("{} {hunk}", file.unwrap_or_default());
    let mut pieces: Vec<Range<usize>> = Vec::new();
    let mut size = 0;
    for line in lines(words) {
        let line = line.start + unit.range.start..line.end + unit.range.start;
        let said = &text[line.clone()];
        let more = estimate(said);
        let bare = said.get(1..).is_some_and(|rest| {
            rest.trim().is_empty() || !rest.starts_with([' ', '\t', '}', ')', ']'])
        });
        // What replaces something stays with it.
        let may = bare && !(said.starts_with('+') && last_was(text, &pieces, '-'));
        let full = size + more > UNIT_TOKENS_MAX;
        match pieces.last_mut() {
            Some(last) if !(full || may && size > UNIT_TOKENS_MAX / 4) => {
                last.end = line.end;
                size += more;
            }
            _ => {
                pieces.push(line);
                size = more;
            }
        }
    }
    let piece = |(at, range): (usize, Range<usize>)| Unit {
        range,
        label: if at == 0 { unit.label.clone() } else { Some(label.clone()) },
        alone: true,
    };
    pieces.into_iter().enumerate().map(piece).collect()
}

/// Whether the last line so far begins with a sign.
fn last_was(text: &str, pieces: &[Range<usize>], sign: char) -> bool {
    let last = pieces.last().map(|range| &text[range.clone()]);
    last.and_then(|text| text.lines().next_back()).is_some_and(|line| line.starts_with(sign))
}

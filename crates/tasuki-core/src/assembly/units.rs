// SPDX-License-Identifier: Apache-2.0
//! How a text is cut where it must be cut: into parts of whole units. A unit is what means something
//! only as a whole: a row of a table, a record of a JSON array, a hunk of a diff, a frame of a stack,
//! a list item, a block of code, a sentence. The parts of a text, one after the other, are the text.

use std::ops::Range;

use serde_json::Value;

use super::text::{estimate, sentence_ends};

/// How large a part of a long text becomes, in estimated tokens. Small parts waste little of a
/// budget when one of them does not fit any more.
pub const PART_TOKENS: u64 = 40;
/// A text up to this size is not cut, in estimated tokens: its parts would be mere splinters.
const WHOLE_TOKENS: u64 = 60;
/// What is longer than this and has no inner structure that we know is cut between words.
const UNIT_TOKENS_MAX: u64 = 400;
/// How many columns a table of records may have, and how many bytes of JSON are looked into.
const COLUMNS_MAX: usize = 40;
const JSON_BYTES_MAX: usize = 1024 * 1024;

/// A text as it is shown, and where it may be cut.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cut {
    /// Said once before any part: what the columns of a table are.
    pub lead: Option<String>,
    pub text: String,
    /// Ranges of `text`, in order, without gaps.
    pub parts: Vec<Range<usize>>,
    /// What each part belongs to (the file of a diff's hunk), if that is not in it.
    pub labels: Vec<Option<String>>,
}

/// Cuts a text. A short one is one part, an empty one none.
#[must_use]
pub fn cut(text: &str) -> Cut {
    if text.trim().is_empty() {
        return Cut { text: text.to_owned(), ..Cut::default() };
    }
    if let Some((lead, rows)) = records(text) {
        let units = lines(&rows);
        return grouped(Some(lead), rows, units, &[]);
    }
    if estimate(text) <= WHOLE_TOKENS {
        return grouped(None, text.to_owned(), std::iter::once(0..text.len()).collect(), &[]);
    }
    if let Some(units) = json_units(text) {
        return grouped(None, text.to_owned(), units, &[]);
    }
    if is_diff(text) {
        let (units, labels) = hunks(text);
        return grouped(None, text.to_owned(), units, &labels);
    }
    if let Some(at) = table_head(text) {
        let (head, rows) = text.split_at(at);
        return grouped(Some(head.to_owned()), rows.to_owned(), lines(rows), &[]);
    }
    grouped(None, text.to_owned(), blocks(text), &[])
}

/// Puts small neighbouring units together.
fn grouped(
    lead: Option<String>,
    text: String,
    units: Vec<Range<usize>>,
    labels: &[Option<String>],
) -> Cut {
    let mut parts: Vec<Range<usize>> = Vec::new();
    let mut named: Vec<Option<String>> = Vec::new();
    let mut sum = u64::MAX;
    for (at, unit) in units.into_iter().enumerate() {
        let size = estimate(&text[unit.clone()]);
        let label = labels.get(at).cloned().flatten();
        match parts.last_mut() {
            Some(last) if sum.saturating_add(size) <= PART_TOKENS && label.is_none() => {
                last.end = unit.end;
                sum += size;
            }
            _ => {
                parts.push(unit);
                named.push(label);
                sum = size;
            }
        }
    }
    Cut { lead, text, parts, labels: named }
}

/// The lines of a text, each with its end.
fn lines(text: &str) -> Vec<Range<usize>> {
    let mut start = 0;
    let ends = text.match_indices('\n').map(|(at, _)| at + 1);
    let mut found: Vec<_> = ends.map(|end| std::mem::replace(&mut start, end)..end).collect();
    if start < text.len() {
        found.push(start..text.len());
    }
    found
}

/// Records of a JSON array as rows: names once, what is the same in all of them once, then one line
/// for each. Nothing is lost; `None` for anything that is not such an array.
fn records(text: &str) -> Option<(String, String)> {
    let trimmed = text.trim();
    if !trimmed.starts_with('[') || trimmed.len() > JSON_BYTES_MAX {
        return None;
    }
    let rows: Vec<serde_json::Map<String, Value>> = serde_json::from_str(trimmed).ok()?;
    if rows.len() < 2 {
        return None;
    }
    let mut columns: Vec<String> = Vec::new();
    let mut flat = Vec::with_capacity(rows.len());
    for row in &rows {
        let mut cells = Vec::new();
        for (name, value) in row {
            flatten(name.clone(), value, &mut cells);
        }
        for (name, _) in &cells {
            if !columns.contains(name) {
                columns.push(name.clone());
            }
        }
        if columns.len() > COLUMNS_MAX {
            return None;
        }
        flat.push(cells);
    }
    let cell = |row: &[(String, String)], name: &str| {
        row.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value).to_owned()
    };
    let constant = |name: &&String| flat.iter().all(|row| cell(row, name) == cell(&flat[0], name));
    let (same, differ): (Vec<_>, Vec<_>) = columns.iter().partition(constant);
    if differ.is_empty() {
        return None;
    }
    let names: Vec<&str> = differ.iter().map(|name| name.as_str()).collect();
    let mut lead = format!("{} records: {}\n", rows.len(), names.join(" | "));
    if !same.is_empty() {
        let same: Vec<_> =
            same.iter().map(|name| format!("{name}={}", cell(&flat[0], name))).collect();
        lead.push_str(&format!("the same in all: {}\n", same.join(", ")));
    }
    let mut table = String::new();
    for row in &flat {
        let cells: Vec<String> = differ.iter().map(|name| cell(row, name)).collect();
        table.push_str(&cells.join(" | "));
        table.push('\n');
    }
    // Rows of which each has other names are better as they were.
    (lead.len() + table.len() < trimmed.len()).then_some((lead, table))
}

/// The cells of a record; objects in it become columns of their own.
fn flatten(name: String, value: &Value, cells: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (inner, value) in members {
                flatten(format!("{name}.{inner}"), value, cells);
            }
        }
        Value::String(text) if is_plain(text) => cells.push((name, text.clone())),
        other => cells.push((name, other.to_string())),
    }
}

/// Whether a text can stand in a cell without quotes and still be read as a text.
fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && text == text.trim()
        && !text.contains(['|', '\n', '\r', '"', '{', '['])
        && serde_json::from_str::<Value>(text).is_err()
}

/// The members and elements of a JSON text as units: elements of arrays are never torn.
fn json_units(text: &str) -> Option<Vec<Range<usize>>> {
    let trimmed = text.trim_end();
    if !trimmed.trim_start().starts_with(['{', '[']) || trimmed.len() > JSON_BYTES_MAX {
        return None;
    }
    serde_json::from_str::<serde::de::IgnoredAny>(trimmed).ok()?;
    let mut ends = Vec::new();
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    // What each open bracket is, and whether its inside is cut.
    let mut open: Vec<(u8, bool)> = Vec::new();
    for (at, byte) in text.bytes().enumerate() {
        if quoted {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => quoted = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => quoted = true,
            b'{' | b'[' => {
                // The outermost value is cut, and arrays and objects that are members of an object
                // that is; what stands in an array is one record.
                let inside = match open.last() {
                    None => true,
                    Some((around, cut)) => *cut && *around == b'{' && depth < 4,
                };
                open.push((byte, inside));
                depth += 1;
            }
            b'}' | b']' => {
                open.pop();
                depth = depth.saturating_sub(1);
            }
            b',' if open.last().is_some_and(|(_, cut)| *cut) => ends.push(at + 1),
            _ => {}
        }
    }
    ends.push(text.len());
    let mut start = 0;
    Some(ends.into_iter().map(|end| std::mem::replace(&mut start, end)..end).collect())
}

fn is_diff(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("@@ "))
        && text.lines().any(|line| line.starts_with("+++ ") || line.starts_with("diff --git "))
}

/// The hunks of a diff. The first of a file has the file's head in it; the others are labelled
/// with its name.
fn hunks(text: &str) -> (Vec<Range<usize>>, Vec<Option<String>>) {
    let mut units: Vec<Range<usize>> = Vec::new();
    let mut labels = Vec::new();
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
            Some(last) if !begins => last.end = line.end,
            _ => {
                labels.push((begins && !in_head).then(|| file.clone()));
                units.push(line);
            }
        }
    }
    (units, labels)
}

/// Where the rows of a table begin, if a text is one: rows with bars and a line of dashes, or
/// lines with the same number of commas or tabs.
fn table_head(text: &str) -> Option<usize> {
    let rows = lines(text);
    let line = |at: usize| rows.get(at).map(|row| text[row.clone()].trim());
    if rows.len() < 4 {
        return None;
    }
    let dashes = |line: &str| {
        line.contains("--") && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' ' | '+'))
    };
    let barred = rows.iter().all(|row| text[row.clone()].contains('|'));
    if barred && line(1).is_some_and(dashes) {
        return Some(rows[1].end);
    }
    for mark in ['\t', ',', ';'] {
        let number = line(0)?.matches(mark).count();
        let even = rows.iter().all(|row| {
            let row = text[row.clone()].trim_end();
            row.matches(mark).count() == number && !row.ends_with(['.', ':'])
        });
        if number > 0 && even {
            return Some(rows[0].end);
        }
    }
    None
}

/// Units of a text of any other kind: lines with what is indented below them, blocks between fences,
/// sentences of what is longer.
fn blocks(text: &str) -> Vec<Range<usize>> {
    let mut units: Vec<Range<usize>> = Vec::new();
    let (mut fence, mut indent) = (None::<&str>, 0_usize);
    for line in lines(text) {
        let words = &text[line.clone()];
        let (bare, depth) = (words.trim_start(), words.len() - words.trim_start().len());
        let mark = ["```", "~~~"].into_iter().find(|mark| bare.starts_with(mark));
        let inside = fence.is_some();
        match (fence, mark) {
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, Some(mark)) => fence = Some(mark),
            _ => {}
        }
        // What is indented below a line, closes it or says nothing belongs to it.
        let below = !bare.is_empty() && depth > indent && !units.is_empty();
        let closes = depth <= indent && bare.starts_with(['}', ')', ']']) && bare.len() < 4;
        let joins = inside || bare.is_empty() || below || closes;
        match units.last_mut() {
            Some(last) if joins => last.end = line.end,
            _ => {
                indent = depth;
                units.push(line);
            }
        }
    }
    units.into_iter().flat_map(|unit| finer(text, unit)).collect()
}

/// Cuts a unit that is too long to be one: a line of prose into its sentences, a block at its lines,
/// and what has neither between words.
fn finer(text: &str, unit: Range<usize>) -> Vec<Range<usize>> {
    let words = &text[unit.clone()];
    let size = estimate(words);
    if size <= PART_TOKENS {
        return vec![unit];
    }
    let shift = |range: Range<usize>| range.start + unit.start..range.end + unit.start;
    let inner = words.trim_end();
    if !inner.contains('\n') {
        let found = sentence_ends(words);
        let mut start = 0;
        let sentences = found.into_iter().map(|end| std::mem::replace(&mut start, end)..end);
        return sentences.flat_map(|one| between_words(text, shift(one))).collect();
    }
    if size <= UNIT_TOKENS_MAX {
        return vec![unit];
    }
    lines(words).into_iter().flat_map(|line| finer(text, shift(line))).collect()
}

fn between_words(text: &str, unit: Range<usize>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut rest = unit;
    while estimate(&text[rest.clone()]) > UNIT_TOKENS_MAX {
        let (reach, _) = super::text::estimate_until(&text[rest.clone()], UNIT_TOKENS_MAX);
        let near = &text[rest.start..rest.start + reach];
        let end = near.rfind(char::is_whitespace).filter(|at| *at > reach / 3);
        let end = rest.start
            + end.map_or(reach, |at| at + near[at..].chars().next().map_or(1, char::len_utf8));
        found.push(rest.start..end);
        rest.start = end;
    }
    found.push(rest);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(cut: &Cut) -> Vec<&str> {
        cut.parts.iter().map(|part| &cut.text[part.clone()]).collect()
    }

    #[test]
    fn the_parts_of_a_text_are_the_text() {
        let prose =
            "The agent must ask first. It may then book the flight for the user. ".repeat(30);
        let log = "2026-01-01 INFO ok\n".repeat(60);
        let code = "fn main() {\n    let x = 1;\n}\n\n".repeat(20);
        let list = "- one\n  more of it\n- two\n".repeat(30);
        for text in [prose, log, code, list, "x".repeat(5000), "漢".repeat(3000)] {
            let cut = cut(&text);
            assert!(cut.parts.len() > 1, "{}", cut.parts.len());
            assert_eq!(texts(&cut).concat(), text);
        }
        assert_eq!(texts(&cut(" a short one. Two. ")), [" a short one. Two. "]);
        assert!(cut(" \n ").parts.is_empty());
    }

    #[test]
    fn records_become_rows_with_their_names_once_and_what_is_the_same_once() {
        let text = r#"[{"flight":"HAT136","date":"2024-05-20","prices":{"economy":185,"business":499},"status":"available"},
            {"flight":"HAT039","date":"2024-05-20","prices":{"economy":"",  "business":null},"status":"available"}]"#;
        let cut = cut(text);
        assert_eq!(
            cut.lead.as_deref(),
            Some(
                "2 records: flight | prices.business | prices.economy\nthe same in all: date=2024-05-20, status=available\n"
            )
        );
        assert_eq!(cut.text, "HAT136 | 499 | 185\nHAT039 | null | \"\"\n");
    }

    #[test]
    fn elements_of_arrays_in_objects_are_not_torn() {
        let flights = r#"{"number": "HAT136", "seat": "1A", "price": 185}, "#.repeat(12);
        let text = format!(
            r#"{{"id": "ZFA04Y", "flights": [{}], "paid": true}}"#,
            &flights[..flights.len() - 2]
        );
        let cut = cut(&text);
        assert!(cut.parts.len() > 4);
        assert_eq!(texts(&cut).concat(), text);
        for part in texts(&cut) {
            assert_eq!(part.matches("number").count(), part.matches("price").count(), "{part}");
        }
    }

    #[test]
    fn hunks_of_a_diff_are_not_torn_and_know_their_file() {
        let hunk = "@@ -1,3 +1,9 @@ fn one()\n-    let a = 1;\n+    let a = 2;\n+    call_of_a_function(a, with, many, arguments, and, more, of, them);\n".repeat(2);
        let text = format!(
            "diff --git a/x.rs b/x.rs\n--- a/x.rs\n+++ b/x.rs\n{hunk}diff --git a/y.rs b/y.rs\n--- a/y.rs\n+++ b/y.rs\n{hunk}"
        );
        let cut = cut(&text);
        assert_eq!(texts(&cut).concat(), text);
        assert!(texts(&cut)[0].starts_with("diff --git a/x.rs"));
        assert!(
            texts(&cut).iter().all(|part| part.matches("@@ -").count() == 1),
            "{:?}",
            texts(&cut)
        );
        assert_eq!(cut.labels, [None, Some("x.rs".into()), None, Some("y.rs".into())]);
    }

    #[test]
    fn rows_frames_and_items_stay_whole() {
        let table: String =
            (0..30).map(|n| format!("{n},name {n},some more words in the row {n}\n")).collect();
        let table = format!("id,name,words\n{table}");
        let cut_table = cut(&table);
        assert_eq!(cut_table.lead.as_deref(), Some("id,name,words\n"));
        assert!(texts(&cut_table).iter().all(|part| part.ends_with('\n')));
        let trace: String = (0..20)
            .map(|n| format!("  File \"/srv/app/module_{n}.py\", line {n}, in handler_{n}\n    value = compute(value_{n})\n"))
            .collect();
        let trace = format!("Traceback (most recent call last):\n{trace}ValueError: 7\n");
        for part in texts(&cut(&trace)).iter().filter(|part| part.contains("File")) {
            assert_eq!(part.matches("File").count(), part.matches("compute").count(), "{part}");
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Tables in plain text: what their columns are is said once before any of their rows.

use std::ops::Range;

use super::lines;

/// How many rows a text without lines of dashes must have to be a table.
const ROWS_MIN: usize = 4;

/// Where the rows of a table begin, if all of a text is one, and each of its rows.
pub(super) fn whole(text: &str) -> Option<(usize, Vec<Range<usize>>)> {
    [b'\t', b',', b';']
        .into_iter()
        .find_map(|mark| separated(text, mark))
        .or_else(|| aligned(text))
        .map(|mut rows| (rows.remove(0).end, rows))
}

/// Records of fields between marks, as spreadsheets write them: what stands in quotation marks may
/// have marks and line ends in it.
fn separated(text: &str, mark: u8) -> Option<Vec<Range<usize>>> {
    let mut rows: Vec<Range<usize>> = Vec::new();
    let (mut start, mut fields, mut number) = (0, 1, None);
    let (mut quoted, mut field, mut in_quotes) = (false, 0, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            // A mark of quotation counts at the beginning of a field, and within one that began so.
            b'"' if in_quotes || at == field => (quoted, in_quotes) = (!quoted, true),
            _ if quoted => {}
            byte if byte == mark => (fields, field, in_quotes) = (fields + 1, at + 1, false),
            b'\n' => {
                let row = start..at + 1;
                (start, field, in_quotes) = (at + 1, at + 1, false);
                let fields = std::mem::replace(&mut fields, 1);
                if text[row.clone()].trim().is_empty() {
                    continue;
                }
                if *number.get_or_insert(fields) != fields || fields < 2 {
                    return None;
                }
                rows.push(row);
            }
            _ => {}
        }
    }
    if start < text.len() {
        (number == Some(fields)).then_some(())?;
        rows.push(start..text.len());
    }
    // Lines of prose, and of programs, may have as many commas as each other, too.
    let said = |row: &Range<usize>| {
        let row = text[row.clone()].trim_end();
        row.ends_with(['.', ':', '{', ';', '(']) || number == Some(2) && row.ends_with(',')
    };
    let prose = mark != b'\t' && rows.iter().filter(|row| said(row)).count() * 4 > rows.len();
    (!quoted && rows.len() >= ROWS_MIN && !prose && is_gapless(&rows)).then_some(rows)
}

fn is_gapless(rows: &[Range<usize>]) -> bool {
    rows.windows(2).all(|two| two[0].end == two[1].start)
}

/// Columns that stand below each other, as command lines print them: the first line names them in
/// capitals.
fn aligned(text: &str) -> Option<Vec<Range<usize>>> {
    let rows = lines(text);
    let head = text.get(rows.first()?.clone())?.trim_end();
    let named =
        |word: &str| word.chars().any(char::is_alphabetic) && !word.chars().any(char::is_lowercase);
    let words: Vec<&str> = head.split_whitespace().collect();
    let columns = head.matches("  ").count();
    let is_head =
        words.len() > 2 && words.iter().filter(|word| named(word)).count() + 1 >= words.len();
    let rest = rows.get(1..)?.iter();
    let full =
        rest.filter(|row| text[(*row).clone()].split_whitespace().count() + 1 >= words.len());
    (is_head && columns > 0 && rows.len() >= ROWS_MIN && full.count() + 1 >= rows.len() - 1)
        .then_some(rows)
}

/// Whether a line stands between the names of columns and rows.
pub(super) fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.contains("--") && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' ' | '+'))
}

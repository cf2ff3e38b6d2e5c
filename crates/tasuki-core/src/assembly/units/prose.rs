// SPDX-License-Identifier: Apache-2.0
//! Units of a text of any kind: lines with what is indented below them, list items, blocks between
//! fences, rows of tables, paragraphs, and sentences of what is longer.

use std::ops::Range;

use super::super::text::{continues, estimate, estimate_until, sentence_ends};
use super::{PART_TOKENS, UNIT_TOKENS_MAX, Unit, lines, table};

/// How long a line about what a part belongs to may be, in characters, and how many levels it names.
const LABEL_CHARS: usize = 60;
const LEVELS: usize = 2;
/// How long the name of a speaker may be, in characters.
const SPEAKER_CHARS: usize = 40;
/// How deep blocks are looked into.
const DEPTH_MAX: usize = 16;

pub(super) fn blocks(text: &str) -> Vec<Unit> {
    let mut units = Vec::new();
    inside(text, 0..text.len(), &[], 0, &mut units);
    units
}

/// What a group of lines is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A line, or several that are one paragraph.
    Paragraph,
    /// A line with what is indented below it.
    Block,
    Fence,
    /// A row of a table, or its head with the first row.
    Row,
    /// A heading, or empty lines, with nothing below it so far: what follows joins it.
    Heading,
}

struct Group {
    range: Range<usize>,
    kind: Kind,
    /// What it belongs to, the outermost first.
    above: Vec<String>,
    /// The heading that it begins with.
    heading: Option<String>,
}

/// Cuts a part of a text that belongs to `above`.
fn inside(text: &str, within: Range<usize>, above: &[String], depth: usize, units: &mut Vec<Unit>) {
    for group in groups(text, within, above) {
        let first = units.len();
        let size = estimate(&text[group.range.clone()]);
        let label = label(&group.above);
        let whole = Unit { range: group.range.clone(), label, alone: false };
        match group.kind {
            Kind::Paragraph if size > PART_TOKENS => {
                let own: Vec<String> = group.above.iter().chain(&group.heading).cloned().collect();
                paragraph(text, &whole, self::label(&own), units);
            }
            Kind::Block if size > UNIT_TOKENS_MAX && depth < DEPTH_MAX => {
                opened(text, &group, first_line(text, &group.range), depth, units);
            }
            Kind::Fence if size > UNIT_TOKENS_MAX && depth < DEPTH_MAX => {
                opened(text, &group, first_line(text, &group.range), depth, units);
            }
            Kind::Row | Kind::Heading | Kind::Paragraph | Kind::Block | Kind::Fence
                if size > UNIT_TOKENS_MAX =>
            {
                let label = whole.label.clone();
                let pieces = between_words(text, whole.range);
                units.extend(pieces.into_iter().map(|range| Unit {
                    range,
                    label: label.clone(),
                    alone: false,
                }));
            }
            Kind::Row | Kind::Heading | Kind::Paragraph | Kind::Block | Kind::Fence => {
                units.push(whole);
            }
        }
        debug_assert!(units.len() > first, "a group is at least one unit");
    }
}

/// Cuts what stands below the first line of a group; the first line stays with what follows it.
fn opened(text: &str, group: &Group, head: Range<usize>, depth: usize, units: &mut Vec<Unit>) {
    let first = units.len();
    let name = named(&text[head.clone()]);
    let fence = group.kind == Kind::Fence;
    let mut above = group.above.clone();
    if !name.is_empty() && !fence {
        above.push(name);
    }
    inside(text, head.end..group.range.end, &above, depth + 1, units);
    if let Some(unit) = units.get_mut(first) {
        unit.range.start = group.range.start;
        unit.label = label(&group.above);
    }
}

fn first_line(text: &str, range: &Range<usize>) -> Range<usize> {
    let end = text[range.clone()].find('\n').map_or(range.end, |at| range.start + at + 1);
    range.start..end
}

fn label(above: &[String]) -> Option<String> {
    let last = above.len().saturating_sub(LEVELS);
    (!above.is_empty()).then(|| above[last..].join(" > "))
}

/// A line as the name of what is below it.
fn named(line: &str) -> String {
    let line = line.trim().trim_start_matches(['#', '-', '*', ' ']);
    let line = line.trim_end_matches([':', '{', '(', '[', '#', ' ']);
    line.chars().take(LABEL_CHARS).collect()
}

/// Lines that belong together, whatever their length.
fn groups(text: &str, within: Range<usize>, above: &[String]) -> Vec<Group> {
    let mut found: Vec<Group> = Vec::new();
    let (mut fence, mut indent) = (None::<&str>, 0_usize);
    // The heading, the line that announces a list, and the names of columns that hold from here on.
    let (mut heading, mut list, mut columns) = (None::<String>, None::<String>, None::<String>);
    let mut before = "";
    let rows: Vec<Range<usize>> = lines(&text[within.clone()]);
    let rows: Vec<Range<usize>> =
        rows.into_iter().map(|row| row.start + within.start..row.end + within.start).collect();
    for (at, line) in rows.iter().cloned().enumerate() {
        let words = &text[line.clone()];
        let (bare, depth) = (words.trim_start(), words.len() - words.trim_start().len());
        let next = rows.get(at + 1).map_or("", |row| &text[row.clone()]);
        let mark = ["```", "~~~"].into_iter().find(|mark| bare.starts_with(mark));
        let inside = fence.is_some();
        match (fence, mark) {
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, Some(mark)) => fence = Some(mark),
            _ => {}
        }
        let level = bare.bytes().take_while(|byte| *byte == b'#').count();
        let is_heading =
            !inside && depth == 0 && (1..7).contains(&level) && bare[level..].starts_with(' ');
        // What is indented below a line, closes it or says nothing belongs to it.
        let last = found.last().map(|group| group.kind);
        let below = !bare.is_empty() && depth > indent && last.is_some();
        let closes = depth == indent && bare.starts_with(['}', ')', ']']);
        let underlines = !inside && table::is_rule(bare);
        let is_row = bare.contains('|') || underlines;
        if !is_row || bare.is_empty() {
            columns = None;
        }
        let item = is_item(bare);
        if !bare.is_empty() && depth <= indent && !item {
            list = None;
        }
        let in_row = columns.is_some() || (underlines && is_row_of(before));
        let wraps = matches!(last, Some(Kind::Paragraph)) && continues(before, words);
        let joins = !in_row
            && (inside
                || bare.is_empty()
                || below
                || closes
                || wraps
                || last == Some(Kind::Heading));
        if underlines && is_row_of(before) && columns.is_none() {
            // The line before names the columns; it and this one stand with the first row.
            columns = Some(before.trim().trim_matches('|').trim().to_owned());
            if let Some(last) = found.last_mut() {
                last.range.end = line.end;
                last.kind = Kind::Heading;
            }
            before = words;
            continue;
        }
        let kind = match (is_heading, fence.is_some() || mark.is_some(), columns.is_some()) {
            _ if bare.is_empty() => Kind::Heading,
            (true, ..) => Kind::Heading,
            _ if introduces(bare)
                || (last == Some(Kind::Heading) && below && bare.starts_with('*')) =>
            {
                Kind::Heading
            }
            (_, true, _) => Kind::Fence,
            (.., true) => Kind::Row,
            _ => Kind::Paragraph,
        };
        if is_heading {
            let name = named(words);
            heading = (!name.is_empty()).then_some(name);
        }
        match found.last_mut() {
            Some(last) if joins || (in_row && last.kind == Kind::Heading) => {
                last.range.end = line.end;
                if last.kind == Kind::Heading {
                    if !bare.is_empty() {
                        last.kind = kind;
                        indent = depth;
                    }
                } else if below && last.kind == Kind::Paragraph {
                    last.kind = Kind::Block;
                }
            }
            _ => {
                indent = depth;
                let mut above: Vec<String> = above.to_vec();
                above.extend(heading.iter().filter(|_| !is_heading).cloned());
                above.extend(list.iter().filter(|_| item).cloned());
                above.extend(columns.iter().cloned());
                let own = heading.clone().filter(|_| is_heading);
                found.push(Group { range: line, kind, above, heading: own });
            }
        }
        let announces = bare.trim_end().ends_with(':') && depth <= indent && !item;
        if announces && is_item(next.trim_start()) {
            list = Some(named(words));
        }
        before = words;
    }
    found
}

/// Whether a line can be the names of columns.
fn is_row_of(line: &str) -> bool {
    line.contains('|') && !line.trim().is_empty()
}

/// Whether a line of a program is about what follows it: a comment, an attribute.
fn introduces(bare: &str) -> bool {
    let decorates = |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphabetic());
    ["//", "/*", "*/", "#["].iter().any(|mark| bare.starts_with(mark))
        || bare.strip_prefix('@').is_some_and(decorates)
}

/// Whether a line begins an item of a list.
fn is_item(bare: &str) -> bool {
    let digits = bare.bytes().take_while(u8::is_ascii_digit).count();
    let numbered = (1..4).contains(&digits)
        && (bare[digits..].starts_with(". ") || bare[digits..].starts_with(") "));
    numbered || ["- ", "* ", "+ ", "• "].iter().any(|mark| bare.starts_with(mark))
}

/// Cuts a paragraph into its sentences. Those after the first one say who speaks.
fn paragraph(text: &str, unit: &Unit, label: Option<String>, units: &mut Vec<Unit>) {
    let words = &text[unit.range.clone()];
    let label = speaker(words).map(str::to_owned).or(label);
    let mut start = 0;
    for (at, end) in sentence_ends(words).into_iter().enumerate() {
        let sentence =
            std::mem::replace(&mut start, end) + unit.range.start..end + unit.range.start;
        let of = if at == 0 { &unit.label } else { &label };
        for (place, range) in between_words(text, sentence).into_iter().enumerate() {
            let of = if place == 0 { of } else { &label };
            units.push(Unit { range, label: of.clone(), alone: false });
        }
    }
}

/// Who says a paragraph, as transcripts write it: `Anna: …`, `[10:32] Anna: …`.
fn speaker(words: &str) -> Option<&str> {
    let (name, _) = words.split_once(": ")?;
    let name = name.trim_start_matches(['#', '>', '-', '*', ' ']);
    let fits = name.chars().count() <= SPEAKER_CHARS && !name.contains(['.', '\n', '?', '!', '|']);
    (fits && name.chars().any(char::is_alphabetic)).then_some(name)
}

/// Cuts what is too long between words.
fn between_words(text: &str, unit: Range<usize>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut rest = unit;
    loop {
        // Only as much is looked at as one piece takes: a text without any space may be very long.
        let (reach, _) = estimate_until(&text[rest.clone()], UNIT_TOKENS_MAX);
        if reach == rest.len() {
            break;
        }
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

// SPDX-License-Identifier: Apache-2.0
//! JSON as it is shown: records as rows with their names once and what is the same in all of them
//! once, wherever they stand in the text; plain names and texts without quotation marks. Nothing is
//! lost: numbers stay as they were written, members keep their order, and what could be read in
//! another way keeps its quotation marks.

use super::super::marker::shown;
use super::super::text::estimate;
use super::{PART_TOKENS, Unit, prose};

/// How many columns a table of records may have, and how many bytes of JSON are looked into.
const COLUMNS_MAX: usize = 40;
const JSON_BYTES_MAX: usize = 1024 * 1024;
/// What nests deeper is no data that anybody reads.
const NESTED_MAX: usize = 64;
/// What is shorter stands on one line, in estimated tokens.
const LINE_TOKENS: u64 = 30;
/// The same for an element of a list.
const ELEMENT_TOKENS: u64 = 120;
/// How deep lines are indented; what is deeper stands on one line.
const DEPTH_MAX: usize = 6;

/// A value with the words that it was written in.
enum Node<'a> {
    /// Numbers, true, false and null; texts with their quotation marks.
    Plain(&'a str),
    Text(&'a str),
    List(Vec<Node<'a>>),
    Record(Vec<(&'a str, Node<'a>)>),
}

/// A text that is JSON, as it is shown, in units; `None` if it is none, or does not get shorter.
/// What is said once before any row is the lead, where all of it is one table.
pub(super) fn shorter(text: &str) -> Option<(Option<String>, String, Vec<Unit>)> {
    let trimmed = text.trim();
    if trimmed.len() > JSON_BYTES_MAX {
        return None;
    }
    let (before, value, after) = embedded(trimmed)?;
    let mut page = Page::default();
    let lead = match &value {
        Node::List(elements) if before.is_empty() => table(elements, "").map(|table| {
            table.rows.iter().for_each(|row| page.line(0, row, None));
            format!("{}{}", table.head, table.same)
        }),
        _ => None,
    };
    if lead.is_none() {
        if !before.is_empty() {
            page.line(0, before, None);
        }
        page.value(0, "", &value, &[]);
        if !after.is_empty() {
            page.line(0, after, None);
        }
    }
    let lead = lead.map(|lead| shown(&lead).into_owned());
    let length = page.text.len() + lead.as_deref().map_or(0, str::len);
    // What was written without any space may become a little longer; its records are told apart then.
    let most = if lead.is_some() { trimmed.len() } else { trimmed.len() * 5 / 4 };
    (length < most).then_some((lead, page.text, page.units))
}

/// A short call of a function, on one line; `None` for anything else.
pub(super) fn call(text: &str) -> Option<String> {
    let (before, value, after) = embedded(text.trim()).filter(|(before, ..)| !before.is_empty())?;
    let line = format!("{before}{}{after}\n", inline(&value, false));
    (line.len() < text.len()).then(|| shown(&line).into_owned())
}

/// The JSON that a text is, or that is handed to the one function that it calls, or its lines if
/// each is an object.
fn embedded(text: &str) -> Option<(&str, Node<'_>, &str)> {
    let valid = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    if text.starts_with(['{', '[']) {
        if valid(text) {
            return Some(("", Reader::new(text).value()?, ""));
        }
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let each = lines.iter().all(|line| line.trim_start().starts_with('{') && valid(line));
        let records = (lines.len() > 1 && each)
            .then(|| lines.iter().map(|line| Reader::new(line).value()).collect::<Option<_>>());
        return Some(("", Node::List(records??), ""));
    }
    let inner = text.strip_suffix(')')?;
    let open = inner.find('(')?;
    let name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let (before, json) = inner.split_at(open + 1);
    let called = open > 0 && before[..open].chars().all(name) && json.starts_with('{');
    (called && valid(json)).then_some(())?;
    Some((before, Reader::new(json).value()?, ")"))
}

/// Reads JSON that is known to be valid.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, at: 0, depth: 0 }
    }

    fn peek(&mut self) -> Option<u8> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text.as_bytes().get(self.at).copied()
    }

    /// A text in its quotation marks.
    fn quoted(&mut self) -> Option<&'a str> {
        let start = self.at;
        let mut escaped = false;
        for (at, byte) in self.text.bytes().enumerate().skip(start + 1) {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => {
                    self.at = at + 1;
                    return self.text.get(start..=at);
                }
                _ => {}
            }
        }
        None
    }

    fn value(&mut self) -> Option<Node<'a>> {
        match self.peek()? {
            b'"' => self.quoted().map(Node::Text),
            b'[' => {
                let mut elements = Vec::new();
                self.members(b']', |it| {
                    elements.push(it.value()?);
                    Some(())
                })?;
                Some(Node::List(elements))
            }
            b'{' => {
                let mut members = Vec::new();
                self.members(b'}', |it| {
                    it.peek()?;
                    let name = it.quoted()?;
                    it.peek()?;
                    it.at += 1;
                    members.push((name, it.value()?));
                    Some(())
                })?;
                Some(Node::Record(members))
            }
            _ => {
                let rest = &self.text[self.at..];
                let ends = |c: char| matches!(c, ',' | ']' | '}') || c.is_whitespace();
                let end = rest.find(ends).unwrap_or(rest.len());
                self.at += end;
                Some(Node::Plain(&rest[..end]))
            }
        }
    }

    fn members(&mut self, end: u8, mut one: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.at += 1;
        self.depth += 1;
        if self.depth > NESTED_MAX {
            return None;
        }
        while self.peek()? != end {
            if self.peek()? == b',' {
                self.at += 1;
            }
            one(self)?;
        }
        self.at += 1;
        self.depth -= 1;
        Some(())
    }
}

/// A text without its quotation marks, where it cannot be read as anything else.
fn bare(quoted: &str, in_table: bool) -> &str {
    let text = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    let marks: &[char] = match in_table {
        true => &['|', '"', '\\', '{', '['],
        false => &['|', '"', '\\', '{', '}', '[', ']', ',', '\'', '`'],
    };
    let plain = !text.is_empty()
        && text == text.trim()
        && !text.contains(marks)
        && (in_table || !(text.contains(": ") || text.ends_with(':') || text.starts_with('-')))
        && serde_json::from_str::<serde::de::IgnoredAny>(text).is_err();
    if plain { text } else { quoted }
}

/// A value on one line.
fn inline(value: &Node<'_>, in_table: bool) -> String {
    let list = |parts: Vec<String>| parts.join(", ");
    match value {
        Node::Plain(words) => (*words).to_owned(),
        Node::Text(quoted) => bare(quoted, in_table).to_owned(),
        Node::List(elements) => {
            format!("[{}]", list(elements.iter().map(|one| inline(one, false)).collect()))
        }
        Node::Record(members) => {
            let member = |(name, value): &(&str, Node<'_>)| {
                format!("{}: {}", bare(name, false), inline(value, false))
            };
            format!("{{{}}}", list(members.iter().map(member).collect()))
        }
    }
}

/// Records as rows.
struct Table {
    /// How many there are, and what the columns are.
    head: String,
    columns: String,
    /// What is the same in all of them; empty if nothing is.
    same: String,
    rows: Vec<String>,
}

/// The cells of a record; records in it become columns of their own.
fn cells(name: &str, members: &[(&str, Node<'_>)], found: &mut Vec<(String, String)>) {
    for (inner, value) in members {
        let inner = bare(inner, false);
        let name = if name.is_empty() { inner.to_owned() } else { format!("{name}.{inner}") };
        match value {
            Node::Record(members) if !members.is_empty() => cells(&name, members, found),
            value => found.push((name, inline(value, true))),
        }
    }
}

/// Records, or lists of records, as a table. Nothing that is anything else.
fn table(elements: &[Node<'_>], name: &str) -> Option<Table> {
    let mut rows: Vec<Vec<(String, String)>> = Vec::new();
    let mut groups = 0_usize;
    for (at, element) in elements.iter().enumerate() {
        let mut record = |element: &Node<'_>, group: Option<usize>| {
            let Node::Record(members) = element else { return None };
            let mut row: Vec<_> = group.iter().map(|at| ("#".to_owned(), at.to_string())).collect();
            cells("", members, &mut row);
            rows.push(row);
            Some(())
        };
        match element {
            Node::List(inner) if !inner.is_empty() && groups == at => {
                groups += 1;
                inner.iter().try_for_each(|one| record(one, Some(groups)))?;
            }
            one if groups == 0 => record(one, None)?,
            _ => return None,
        }
    }
    let what = match groups {
        0 => format!("{} records", rows.len()),
        groups => format!("{} records in {groups} lists, # is the list", rows.len()),
    };
    let name = if name.is_empty() { String::new() } else { format!("{name}, ") };
    tabular(&rows, &format!("{name}{what}"))
}

/// A record of records that are alike, as a table whose first column is the name of each.
fn keyed(members: &[(&str, Node<'_>)], name: &str) -> Option<Table> {
    let mut rows = Vec::new();
    for (key, value) in members {
        let Node::Record(inner) = value else { return None };
        let key = bare(key, true).to_owned();
        let mut row = vec![("name".to_owned(), key)];
        cells("", inner, &mut row);
        if row[1..].iter().any(|(column, _)| column == "name") {
            "key".clone_into(&mut row[0].0);
        }
        rows.push(row);
    }
    if rows.iter().any(|row| row.len() > COLUMNS_MAX) {
        return None;
    }
    // Where a member says the same as the name, it is said once.
    let column = |at: usize| rows.first().and_then(|row| row.get(at)).map(|cell| cell.0.clone());
    let same = (1..rows.first().map_or(0, Vec::len)).filter_map(column).find(|name| {
        rows.iter().all(|row| row.iter().any(|(it, value)| it == name && *value == row[0].1))
    });
    for row in rows.iter_mut() {
        if let Some(same) = &same {
            row.retain(|(name, _)| name != same);
            row[0].0 = format!("{} = {same}", row[0].0);
        }
    }
    // Names of columns must agree, or the first would be many.
    let first = rows.first()?.first()?.0.clone();
    if rows.iter().any(|row| row[0].0 != first) {
        return None;
    }
    tabular(&rows, &format!("{name}, {} records", rows.len()))
}

/// The names of columns; members of the same record name it once.
fn headed(columns: &[&str]) -> String {
    let mut words = String::new();
    let mut before = "";
    for name in columns {
        let (record, member) = name.rsplit_once('.').unwrap_or(("", name));
        if !words.is_empty() {
            words.push_str(" | ");
        }
        if record.is_empty() || record != before {
            words.push_str(name);
        } else {
            words.push('.');
            words.push_str(member);
        }
        before = record;
    }
    words
}

fn tabular(rows: &[Vec<(String, String)>], what: &str) -> Option<Table> {
    if rows.len() < 2 || rows.iter().any(Vec::is_empty) {
        return None;
    }
    let mut columns: Vec<&str> = Vec::new();
    let mut there = 0;
    for row in rows {
        there += row.len();
        for (at, (name, _)) in row.iter().enumerate() {
            if !columns.contains(&name.as_str()) {
                columns.push(name);
            } else if row[..at].iter().any(|(before, _)| before == name) {
                // Two members by one name.
                return None;
            }
            if columns.len() > COLUMNS_MAX {
                return None;
            }
        }
    }
    // Records of which each has other names are better as they were.
    if there * 2 < columns.len() * rows.len() {
        return None;
    }
    let cell = |row: &'_ [(String, String)], name: &str| -> String {
        row.iter().find(|(known, _)| known == name).map_or(String::new(), |it| it.1.clone())
    };
    let constant = |name: &&str| rows.iter().all(|row| cell(row, name) == cell(&rows[0], name));
    let (same, differ): (Vec<&str>, Vec<&str>) = columns.iter().partition(|name| constant(name));
    if differ.is_empty() {
        return None;
    }
    let columns = headed(&differ);
    let same: Vec<String> =
        same.iter().map(|name| format!("{name}={}", cell(&rows[0], name))).collect();
    let same = match same.is_empty() {
        true => String::new(),
        false => format!("the same in all: {}\n", same.join(" | ")),
    };
    let line = |row: &Vec<(String, String)>| -> String {
        differ.iter().map(|name| cell(row, name)).collect::<Vec<_>>().join(" | ")
    };
    let rows = rows.iter().map(line).collect();
    Some(Table { head: format!("{what}: {columns}\n"), columns, same, rows })
}

/// Lines, each a unit.
#[derive(Default)]
struct Page {
    text: String,
    units: Vec<Unit>,
}

impl Page {
    fn line(&mut self, depth: usize, words: &str, label: Option<&str>) {
        let start = self.text.len();
        self.text.push_str(&"  ".repeat(depth));
        // Signs that were apart may stand side by side now.
        self.text.push_str(&shown(words));
        self.text.push('\n');
        let label = label.filter(|label| !label.is_empty()).map(str::to_owned);
        self.units.push(Unit { range: start..self.text.len(), label, alone: false });
    }

    /// What was put last stays together with what was put before it.
    fn join(&mut self) {
        if let [.., before, last] = &mut self.units[..] {
            before.range.end = last.range.end;
            self.units.pop();
        }
    }

    /// A value under a name, on as many lines as it takes. `path` are the names that it stands under.
    fn value(&mut self, depth: usize, name: &str, value: &Node<'_>, path: &[&str]) {
        let label = path.join(" > ");
        let named = |words: &str| match name {
            "" => words.to_owned(),
            "-" => format!("- {words}"),
            name => format!("{name}: {words}"),
        };
        let short = inline(value, false);
        // An element of a list is a record of its own.
        let most = if name == "-" { ELEMENT_TOKENS } else { LINE_TOKENS };
        let flat = !name.is_empty() && estimate(&short) <= most;
        let below: Vec<&str> =
            path.iter().copied().chain((!matches!(name, "" | "-")).then_some(name)).collect();
        let inner = depth + usize::from(!name.is_empty());
        if flat || depth >= DEPTH_MAX {
            return self.line(depth, &named(&short), Some(&label));
        }
        let title = if name.is_empty() { "all of it" } else { name };
        let table = match value {
            Node::List(elements) => table(elements, title),
            Node::Record(members) => keyed(members, title),
            Node::Plain(_) | Node::Text(_) => None,
        };
        let table = table.filter(|it| {
            let rows: usize = it.rows.iter().map(|row| row.len() + 3).sum();
            rows + it.head.len() + it.same.len() < short.len()
        });
        if let Some(table) = table {
            self.line(depth, table.head.trim_end(), Some(&label));
            if !table.same.is_empty() {
                self.line(inner, table.same.trim_end(), None);
                self.join();
            }
            let same = table.same.trim_end();
            let same = if same.is_empty() { String::new() } else { format!("; {same}") };
            let row_label = [&below.join(" > "), ": ", &table.columns, &same].concat();
            for (at, row) in table.rows.iter().enumerate() {
                self.line(inner, row, Some(&row_label));
                if at == 0 {
                    self.join();
                }
            }
            return;
        }
        match value {
            Node::Text(quoted) if quoted.contains("\\n") => {
                self.text(depth, name, quoted, &below, &label)
            }
            Node::Record(members) if !members.is_empty() => {
                if !name.is_empty() {
                    self.line(depth, named("").trim_end(), Some(&label));
                }
                for (at, (name, value)) in members.iter().enumerate() {
                    let first = self.units.len();
                    self.value(inner, bare(name, false), value, &below);
                    if at == 0 && !below.is_empty() && self.units.len() == first + 1 {
                        self.join();
                    }
                }
            }
            Node::List(elements) if !elements.is_empty() => {
                let (all, number) = (elements.iter(), elements.len());
                if all.clone().all(|one| matches!(one, Node::Plain(_) | Node::Text(_))) {
                    return self.values(depth, name, elements, &label);
                }
                if !name.is_empty() {
                    self.line(depth, &format!("{name}, {number} elements:"), Some(&label));
                }
                all.for_each(|one| self.value(inner.max(1), "-", one, &below));
            }
            _ => self.line(depth, &named(&short), Some(&label)),
        }
    }

    /// A long text of several lines, as it is, and in units of its own.
    fn text(&mut self, depth: usize, name: &str, quoted: &str, below: &[&str], label: &str) {
        let Ok(text) = serde_json::from_str::<String>(quoted) else {
            return self.line(depth, quoted, Some(label));
        };
        let title = if name.is_empty() { "all of it" } else { name };
        self.line(depth, &format!("{title}, a text:"), Some(label));
        for (at, unit) in prose::blocks(&text).into_iter().enumerate() {
            let inner = unit.label.into_iter();
            let label: Vec<String> =
                below.iter().map(|name| (*name).to_owned()).chain(inner).collect();
            let label = label.join(" > ");
            let first = self.units.len();
            for line in text[unit.range].lines() {
                self.line(depth + 1, line, Some(&label));
                if self.units.len() > first + 1 || at == 0 {
                    self.join();
                }
            }
        }
    }

    /// A long list of plain values, on lines that are not too long.
    fn values(&mut self, depth: usize, name: &str, elements: &[Node<'_>], label: &str) {
        let title = if name.is_empty() { "all of it" } else { name };
        self.line(depth, &format!("{title}, {} values:", elements.len()), Some(label));
        let label = match label {
            "" => title.to_owned(),
            label => format!("{label} > {title}"),
        };
        let mut line = String::new();
        let mut size = 0;
        for (at, element) in elements.iter().enumerate() {
            let words = inline(element, false);
            let more = estimate(&words) + 1;
            if size > 0 && size + more > PART_TOKENS {
                self.line(depth + 1, &std::mem::take(&mut line), Some(&label));
                size = 0;
            }
            line.push_str(&words);
            if at + 1 < elements.len() {
                line.push_str(", ");
            }
            size += more;
        }
        self.line(depth + 1, line.trim_end(), Some(&label));
    }
}

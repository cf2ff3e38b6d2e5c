// SPDX-License-Identifier: Apache-2.0
//! Puts one entry into a file that somebody else wrote, and leaves everything else in it as it is: the
//! order of members, numbers as they were spelled, comments where the format has them.

mod yaml;

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::client::{Entry, NAME};

/// Why a file is left alone.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable(pub(super) String);

/// The file's text with the entry in it. `before` is empty where there is no file.
pub(super) fn with_entry(before: &str, entry: &Entry) -> Result<String, Unreadable> {
    const MARK: char = '\u{feff}';
    let (mark, text) = match before.strip_prefix(MARK) {
        Some(text) => (MARK.to_string(), text),
        None => (String::new(), before),
    };
    // Lines end as they did.
    let ends = text.matches('\n').count();
    let returns = ends > 0 && text.matches("\r\n").count() == ends;
    let text = if returns { text.replace("\r\n", "\n") } else { text.to_owned() };
    let made = match entry {
        Entry::Json { within, value } => json(&text, within, value),
        Entry::Toml { header, text: own } => toml(&text, header, own),
        Entry::Yaml { below, text: own } => yaml::put(&text, below, own),
    }?;
    Ok(mark + &if returns { made.replace('\n', "\r\n") } else { made })
}

/// The members of an object, in their order, as they were written.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Members;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Each)
    }
}

fn json(before: &str, within: &[&str], value: &Value) -> Result<String, Unreadable> {
    let indent = indent_of(before);
    let before = if before.trim().is_empty() { "{}" } else { before };
    let text = put(before, within, value, &indent, 1)?;
    Ok(text + "\n")
}

/// What one level is indented by: as in the file, or two spaces.
fn indent_of(text: &str) -> String {
    let line = text.lines().find(|line| line.starts_with([' ', '\t']));
    let spaces = |line: &str| line.chars().take_while(|c| matches!(c, ' ' | '\t')).collect();
    line.map_or_else(|| "  ".to_owned(), spaces)
}

fn put(
    object: &str,
    within: &[&str],
    value: &Value,
    indent: &str,
    depth: usize,
) -> Result<String, Unreadable> {
    let read: Result<Members, _> = serde_json::from_str(object);
    let Members(mut members) =
        read.map_err(|error| Unreadable(format!("it is no plain JSON: {error}")))?;
    let (name, rest) =
        within.split_first().map_or((NAME, None), |(name, rest)| (*name, Some(rest)));
    let mut places = members.iter().enumerate().filter(|(_, (known, _))| known == name);
    let place = places.next().map(|(at, _)| at);
    if places.next().is_some() {
        return Err(Unreadable(format!("`{name}` is in it twice")));
    }
    let text = match rest {
        Some(rest) => {
            let inner = place.map_or("{}", |at| members[at].1.get());
            put(inner, rest, value, indent, depth + 1)?
        }
        None => pretty(value, indent, depth),
    };
    let raw = RawValue::from_string(text).map_err(|error| Unreadable(error.to_string()))?;
    match place {
        Some(at) => members[at].1 = raw,
        None => members.push((name.to_owned(), raw)),
    }
    let outer = indent.repeat(depth - 1);
    let lines = members.iter().map(|(name, raw)| {
        format!("{outer}{indent}{}: {}", Value::String(name.clone()), raw.get())
    });
    Ok(format!("{{\n{}\n{outer}}}", lines.collect::<Vec<_>>().join(",\n")))
}

/// A value over several lines, at its depth.
fn pretty(value: &Value, indent: &str, depth: usize) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    let lines = text.lines().map(|line| {
        let inner = line.trim_start_matches(' ');
        let levels = (line.len() - inner.len()) / 2;
        format!("{}{inner}", indent.repeat(levels + depth))
    });
    lines.collect::<Vec<_>>().join("\n").trim_start().to_owned()
}

fn toml(before: &str, header: &str, text: &str) -> Result<String, Unreadable> {
    let plain = |text: &str| {
        let read: Result<toml::Table, _> = toml::from_str(text);
        read.map_err(|error| Unreadable(format!("it is no TOML: {error}")))
    };
    plain(before)?;
    let lines: Vec<&str> = before.lines().collect();
    let begins = lines.iter().position(|line| line.trim() == header);
    let mut kept: Vec<&str> = Vec::new();
    let mut after: Vec<&str> = Vec::new();
    match begins {
        Some(begins) => {
            let rest = &lines[begins + 1..];
            let ends = rest.iter().position(|line| line.trim_start().starts_with('['));
            kept.extend(&lines[..begins]);
            after.extend(ends.map_or(&[][..], |ends| &rest[ends..]));
        }
        None => kept.extend(&lines),
    }
    while kept.last().is_some_and(|line| line.trim().is_empty()) {
        kept.pop();
    }
    let mut made = kept.join("\n");
    if !made.is_empty() {
        made += "\n\n";
    }
    made += &format!("{header}\n{text}");
    if !after.is_empty() {
        made += &format!("\n{}\n", after.join("\n"));
    }
    // The table may be there in another spelling, which would make two of it; and a line that looks
    // like a header may be one of a text.
    if rest_of(plain(before)?, header) != rest_of(plain(&made)?, header) {
        return Err(Unreadable(format!("what belongs to `{header}` cannot be told from the rest")));
    }
    Ok(made)
}

/// What a file says beside the members of a table. Tables within it stay.
fn rest_of(mut file: toml::Table, header: &str) -> toml::Table {
    let path = header.trim_matches(['[', ']']).split('.');
    let mut table = &mut file;
    for name in path {
        let inner = table.entry(name).or_insert_with(|| toml::Table::new().into());
        match inner.as_table_mut() {
            Some(inner) => table = inner,
            None => return file,
        }
    }
    table.retain(|_, value| value.is_table());
    file
}

/// How two texts differ: what stays the same around the change is shown in part.
pub(super) fn diff(before: &str, after: &str) -> String {
    const AROUND: usize = 3;
    let (old, new): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let rest = old[same..].iter().rev().zip(new[same..].iter().rev());
    let end = rest.take_while(|(old, new)| old == new).count();
    let mut text = String::new();
    let mut add = |mark: &str, lines: &[&str]| {
        for line in lines {
            text += format!("{mark} {line}").trim_end();
            text.push('\n');
        }
    };
    add(" ", &old[same.saturating_sub(AROUND)..same]);
    add("-", &old[same..old.len() - end]);
    add("+", &new[same..new.len() - end]);
    let tail = &new[new.len() - end..];
    add(" ", &tail[..tail.len().min(AROUND)]);
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(within: &'static [&'static str]) -> Entry {
        Entry::Json { within, value: json!({ "command": "tasuki" }) }
    }

    #[test]
    fn json_of_others_keeps_its_order_and_its_spelling() {
        let before = "{\n    \"z\": 1.50,\n    \"mcpServers\": {\n        \"b\": {\"x\": [1,2]},\n        \"a\": {}\n    },\n    \"y\": 1e3\n}\n";
        let after = with_entry(before, &entry(&["mcpServers"])).unwrap();
        assert_eq!(
            after,
            "{\n    \"z\": 1.50,\n    \"mcpServers\": {\n        \"b\": {\"x\": [1,2]},\n        \"a\": {},\n        \
             \"tasuki\": {\n            \"command\": \"tasuki\"\n        }\n    },\n    \"y\": 1e3\n}\n"
        );
        assert_eq!(with_entry(&after, &entry(&["mcpServers"])).unwrap(), after, "twice is once");
    }

    #[test]
    fn a_file_that_is_not_there_is_made() {
        let made = with_entry("", &entry(&["mcp", "servers"])).unwrap();
        let read: Value = serde_json::from_str(&made).unwrap();
        assert_eq!(read["mcp"]["servers"]["tasuki"]["command"], "tasuki");
    }

    #[test]
    fn what_cannot_be_read_is_left_alone() {
        let json = entry(&["servers"]);
        for wrong in ["{ // a comment\n}", "[]", "{", "{\"servers\": 5}"] {
            assert!(with_entry(wrong, &json).is_err(), "{wrong}");
        }
        let toml = Entry::Toml { header: "[mcp_servers.tasuki]".into(), text: "a = 1\n".into() };
        for wrong in ["a = ", "[mcp_servers]\ntasuki = { a = 1 }\n"] {
            assert!(with_entry(wrong, &toml).is_err(), "{wrong}");
        }
        let yaml = Entry::Yaml { below: "extensions:", text: "  tasuki:\n".into() };
        assert!(with_entry("extensions: {}\n", &yaml).is_err());
    }

    #[test]
    fn toml_of_others_keeps_its_comments() {
        let entry = Entry::Toml { header: "[mcp_servers.tasuki]".into(), text: "a = 2\n".into() };
        let before =
            "# mine\nmodel = \"x\"\n\n[mcp_servers.tasuki]\na = 1\n\n[other]\nb = 1 # why\n";
        let after = with_entry(before, &entry).unwrap();
        assert_eq!(
            after,
            "# mine\nmodel = \"x\"\n\n[mcp_servers.tasuki]\na = 2\n\n[other]\nb = 1 # why\n"
        );
        assert_eq!(with_entry("", &entry).unwrap(), "[mcp_servers.tasuki]\na = 2\n");
    }

    #[test]
    fn members_that_are_there_twice_are_left_alone() {
        let twice = "{\"servers\": {}, \"servers\": {\"a\": {}}}";
        assert!(with_entry(twice, &entry(&["servers"])).is_err());
    }

    #[test]
    fn a_line_of_a_text_is_no_header() {
        let entry = Entry::Toml { header: "[mcp_servers.tasuki]".into(), text: "a = 2\n".into() };
        let before = "note = \"\"\"\n[mcp_servers.tasuki]\nkeep me\n\"\"\"\n";
        if let Ok(after) = with_entry(before, &entry) {
            assert!(after.contains("keep me"), "{after}");
        }
        let env = "[mcp_servers.tasuki]\na = 1\n\n[mcp_servers.tasuki.env]\nX = \"1\"\n";
        let after = with_entry(env, &entry).unwrap();
        assert!(after.contains("a = 2") && after.contains("X = \"1\""), "{after}");
    }

    #[test]
    fn lines_end_as_they_did_and_a_byte_order_mark_stays() {
        let text = "  tasuki:\n    enabled: true\n".to_owned();
        let yaml = Entry::Yaml { below: "extensions:", text };
        let after = with_entry("\u{feff}extensions:\r\n    a: 1\r\n", &yaml).unwrap();
        assert_eq!(
            after,
            "\u{feff}extensions:\r\n    tasuki:\r\n        enabled: true\r\n    a: 1\r\n"
        );
        let toml = Entry::Toml { header: "[m.tasuki]".into(), text: "a = 2\n".into() };
        assert_eq!(with_entry("b = 1\r\n", &toml).unwrap(), "b = 1\r\n\r\n[m.tasuki]\r\na = 2\r\n");
    }

    #[test]
    fn a_diff_shows_the_change_and_a_little_around_it() {
        let before = "1\n2\n3\n4\n5\n6\n";
        assert_eq!(diff(before, "1\n2\n3\n4\nnew\n5\n6\n"), "  2\n  3\n  4\n+ new\n  5\n  6\n");
        assert_eq!(diff("a\n", "b\n"), "- a\n+ b\n");
        assert_eq!(diff("", "b\n"), "+ b\n");
    }
}

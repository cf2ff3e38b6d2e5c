// SPDX-License-Identifier: Apache-2.0
//! How a text is cut where it must be cut: into parts of whole units. A unit is what means something
//! only as a whole: a row of a table, a record of a JSON array, a hunk of a diff, a frame of a stack,
//! a list item, a block of code, a sentence. The parts of a text, one after the other, are the text.
//! A part that says nothing without what stands above it (the heading, the names of columns, the
//! speaker, the function) is labelled with that.

mod diff;
mod json;
mod prose;
mod table;

use std::ops::Range;

use super::text::estimate;

/// How large a part of a long text becomes, in estimated tokens. Small parts waste little of a
/// budget when one of them does not fit any more.
pub const PART_TOKENS: u64 = 40;
/// A text up to this size is not cut, in estimated tokens: its parts would be mere splinters.
const WHOLE_TOKENS: u64 = 60;
/// A block that is longer than this is cut inside.
const UNIT_TOKENS_MAX: u64 = 400;

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

/// What is never torn.
#[derive(Debug, Clone)]
struct Unit {
    range: Range<usize>,
    /// What it belongs to.
    label: Option<String>,
    /// Whether it begins a part, however small it is.
    alone: bool,
}

impl Unit {
    fn plain(range: Range<usize>) -> Self {
        Self { range, label: None, alone: false }
    }
}

/// Cuts a text. A short one is one part, an empty one none.
#[must_use]
pub fn cut(text: &str) -> Cut {
    if text.trim().is_empty() {
        return Cut { text: text.to_owned(), ..Cut::default() };
    }
    let long = estimate(text) > WHOLE_TOKENS;
    // What is short stays as it was written, unless it is a table.
    let shorter = json::shorter(text).filter(|(lead, ..)| long || lead.is_some());
    if let Some((lead, text, units)) = shorter {
        return grouped(lead, text, units);
    }
    if !long {
        let text = json::call(text).unwrap_or_else(|| text.to_owned());
        let whole = vec![Unit::plain(0..text.len())];
        return grouped(None, text, whole);
    }
    if diff::is_diff(text) {
        return grouped(None, text.to_owned(), diff::hunks(text));
    }
    if let Some((at, rows)) = table::whole(text) {
        let (head, rest) = text.split_at(at);
        let units = rows.into_iter().map(|row| Unit::plain(row.start - at..row.end - at));
        return grouped(Some(head.to_owned()), rest.to_owned(), units.collect());
    }
    grouped(None, text.to_owned(), prose::blocks(text))
}

/// Puts small neighbouring units together.
fn grouped(lead: Option<String>, text: String, units: Vec<Unit>) -> Cut {
    let mut parts: Vec<Range<usize>> = Vec::new();
    let mut labels: Vec<Option<String>> = Vec::new();
    let mut sum = u64::MAX;
    for unit in units {
        let size = estimate(&text[unit.range.clone()]);
        match parts.last_mut() {
            Some(last) if sum.saturating_add(size) <= PART_TOKENS && !unit.alone => {
                last.end = unit.range.end;
                sum += size;
            }
            _ => {
                parts.push(unit.range);
                labels.push(unit.label);
                sum = size;
            }
        }
    }
    Cut { lead, text, parts, labels }
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
                "2 records: flight | prices.economy | .business\nthe same in all: date=2024-05-20 | status=available\n"
            )
        );
        assert_eq!(cut.text, "HAT136 | 185 | 499\nHAT039 | \"\" | null\n");
    }

    #[test]
    fn records_within_a_record_are_rows_that_say_what_they_are_of() {
        let flights: Vec<String> = (0..12)
            .map(|at| {
                format!(r#"{{"number": "HAT1{at:02}", "seat": "{at}A", "price": {}.50}}"#, at * 10)
            })
            .collect();
        let cards = r#"{"card_1": {"id": "card_1", "brand": "visa", "last": "7447"}, "card_2": {"id": "card_2", "brand": "amex", "last": "0190"}}"#;
        let text = format!(
            r#"{{"id": "ZFA04Y", "flights": [{}], "cards": {cards}, "note": "He said: \"soon\", twice", "paid": true}}"#,
            flights.join(", ")
        );
        let cut = cut(&text);
        assert_eq!(texts(&cut).concat(), cut.text);
        assert!(
            cut.text.starts_with(
                "id: ZFA04Y\nflights, 12 records: number | seat | price\n  HAT100 | 0A | 0.50\n"
            ),
            "{}",
            cut.text
        );
        let end = "cards, 2 records: name = id | brand | last\n  card_1 | visa | \"7447\"\n  card_2 | amex | 0190\n\
            note: \"He said: \\\"soon\\\", twice\"\npaid: true\n";
        assert!(cut.text.ends_with(end), "{}", cut.text);
        assert_eq!(cut.labels[1].as_deref(), Some("flights: number | seat | price"));
        // Lists of lists say which list each row is of; long lists of values break between them.
        let journeys = format!("[[{}], [{}]]", flights[..2].join(","), flights[2]);
        let lead = "3 records in 2 lists, # is the list: # | number | seat | price\n";
        assert_eq!(super::cut(&journeys).lead.as_deref(), Some(lead));
        let numbers: Vec<String> = (0..300).map(|at| (at * 7919).to_string()).collect();
        let cut = super::cut(&format!(r#"{{"samples": [{}]}}"#, numbers.join(",")));
        let shown: Vec<&str> = cut.text.split([',', ' ', '\n']).collect();
        assert!(numbers.iter().all(|number| shown.contains(&number.as_str())));
        assert!(cut.labels[1..].iter().all(|label| label.as_deref() == Some("samples")));
    }

    #[test]
    fn json_loses_nothing_that_could_be_read_in_another_way() {
        let check = |value: &str, expected: &str| {
            let text = format!(r#"{{"padding": "{}", "x": {value}}}"#, "word ".repeat(70).trim());
            let cut = cut(&text);
            let last = cut.text.lines().next_back().unwrap_or_default();
            assert_eq!(last, expected, "{}", cut.text);
        };
        check("12345678901234567890123", "x: 12345678901234567890123");
        check("1.10", "x: 1.10");
        check(r#""1.10""#, r#"x: "1.10""#);
        check(r#""null""#, r#"x: "null""#);
        check(r#"" a""#, r#"x: " a""#);
        check(r#""""#, r#"x: """#);
        check("[]", "x: []");
        check(r#"["INST"]"#, "x: [·INST]");
        check(r#"{"a": "b: c", "d": [1, null, "e"]}"#, r#"x: {a: "b: c", d: [1, null, e]}"#);
    }

    #[test]
    fn json_that_nests_without_end_or_has_members_without_end_is_a_text_like_others() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(texts(&cut(&deep)).concat(), deep);
        let members = |at: u32| -> String {
            let names: Vec<String> =
                (0..20_000).map(|name| format!("\"m{at}_{name}\":{name}")).collect();
            format!("{{{}}}", names.join(","))
        };
        let wide = format!("[{},{}]", members(1), members(2));
        let found = cut(&wide);
        assert_eq!(texts(&found).concat(), found.text);
        assert_eq!(found.lead, None);
    }

    #[test]
    fn a_short_call_is_one_line() {
        let check = |text: &str, expected: &str| assert_eq!(cut(text).text, expected);
        check(
            r#"find({"user": "mia_li", "day": "2024-05-20", "n": "3"})"#,
            "find({user: mia_li, day: 2024-05-20, n: \"3\"})\n",
        );
        check(r#"{"user": "mia_li"}"#, r#"{"user": "mia_li"}"#);
        check(r#"if (x) { f("a") }"#, r#"if (x) { f("a") }"#);
    }

    #[test]
    fn what_is_cut_says_what_it_belongs_to() {
        let of = |text: &str, words: &str| {
            let cut = cut(text);
            assert_eq!(texts(&cut).concat(), cut.text);
            let at = texts(&cut).iter().position(|part| part.contains(words));
            cut.labels[at.unwrap_or_else(|| panic!("{words} in {:?}", texts(&cut)))].clone()
        };
        let prose = "The team wants to know how the numbers came about before anything is paid. ";
        let sections = format!(
            "# Report\n\n{}\n\n## Refunds\n\n{}Refund 4711 is open.\n",
            prose.repeat(4),
            prose.repeat(4)
        );
        assert_eq!(of(&sections, "4711").as_deref(), Some("Refunds"));
        let talk =
            format!("Anna: {}\nBen: {}We pay on Monday.\n", prose.repeat(3), prose.repeat(3));
        assert_eq!(of(&talk, "Monday").as_deref(), Some("Ben"));
        let rows: String =
            (0..20).map(|at| format!("| svc-{at} | {at} ms | eu-{at} |\n")).collect();
        let table = format!(
            "{prose}\n\n| service | latency | zone |\n| --- | --- | --- |\n{rows}\nThat is all.\n"
        );
        assert_eq!(of(&table, "svc-17").as_deref(), Some("service | latency | zone"));
        let services: String = (0..40)
            .map(|at| {
                format!(
                    "  svc-{at}:\n    image: registry.example/svc-{at}:1.{at}\n    replicas: {at}\n"
                )
            })
            .collect();
        let yaml = format!("version: 3\nservices:\n{services}volumes: []\n");
        assert_eq!(of(&yaml, "svc-17:").as_deref(), Some("services"));
        for part in texts(&cut(&yaml)) {
            assert_eq!(part.matches("image:").count(), part.matches("replicas:").count(), "{part}");
        }
        let steps: String = (0..20)
            .map(|at| format!("- step {at} of what is done when the lights go out\n"))
            .collect();
        assert_eq!(
            of(&format!("{prose}\nWhen it is dark:\n{steps}"), "step 17").as_deref(),
            Some("When it is dark")
        );
    }

    #[test]
    fn sentences_of_a_broken_line_are_not_torn() {
        let text = "The agent that holds the claim must not, whatever anybody else\nsays, delete the branch of the release. Every other branch\nmay go. "
            .repeat(6);
        for part in texts(&cut(&text)) {
            assert!(part.trim_end().ends_with('.'), "{part}");
        }
        let run: String = (0..40)
            .map(|at| format!("test billing::round::tests::case_{at:02} ... ok\n"))
            .collect();
        assert!(cut(&run).parts.len() > 8);
    }

    #[test]
    fn fields_with_line_ends_and_columns_of_a_terminal_are_rows() {
        let rows: String = (0..30)
            .map(|at| format!("{at},\"Li, Mia\",\"says \"\"no\"\"\nand stays\"\n"))
            .collect();
        let found = cut(&format!("id,name,note\n{rows}"));
        assert_eq!(found.lead.as_deref(), Some("id,name,note\n"));
        assert!(
            texts(&found).iter().all(|part| part.ends_with("stays\"\n")),
            "{:?}",
            texts(&found)
        );
        let rows: String =
            (0..30).map(|at| format!("web-{at}   1/1     Running   {at}          3d\n")).collect();
        let found = cut(&format!("NAME    READY   STATUS    RESTARTS   AGE\n{rows}"));
        assert_eq!(found.lead.as_deref(), Some("NAME    READY   STATUS    RESTARTS   AGE\n"));
    }

    #[test]
    fn a_new_file_in_a_diff_is_cut_between_its_functions() {
        let body: String = (0..40)
            .map(|at| format!("+pub fn function_{at}(value: u64) -> u64 {{\n+    let other = value * {at};\n+    other + 1\n+}}\n+\n"))
            .collect();
        let text = format!(
            "diff --git a/new.rs b/new.rs\n--- /dev/null\n+++ b/new.rs\n@@ -0,0 +1,200 @@\n{body}"
        );
        let cut = cut(&text);
        assert_eq!(texts(&cut).concat(), text);
        assert!(cut.parts.len() > 3);
        for part in texts(&cut) {
            assert_eq!(part.matches("pub fn").count(), part.matches("other + 1").count(), "{part}");
        }
        assert!(cut.labels[1..].iter().all(|it| it.as_deref() == Some("new.rs -0,0 +1,200")));
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

// SPDX-License-Identifier: Apache-2.0
//! Everything that is printed. People get short texts and tables; with `--json`, programs get the
//! broker's JSON exactly as it came.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use comfy_table::{Table, presets};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tasuki_core::Timestamp;

use crate::exit::Failure;
use crate::terminal;

#[derive(Debug, Clone, Copy)]
pub struct Output {
    pub json: bool,
}

impl Output {
    /// Shows an answer of the broker.
    pub fn reply<T: DeserializeOwned>(
        self,
        reply: &str,
        for_people: impl FnOnce(T) -> String,
    ) -> anyhow::Result<()> {
        if self.json {
            return print(reply);
        }
        print_dressed(&for_people(serde_json::from_str(reply)?))
    }

    /// Shows what the command line itself found out.
    pub fn found<T: Serialize>(
        self,
        found: &T,
        for_people: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<()> {
        match self.json {
            true => print(&serde_json::to_string(found)?),
            false => print_dressed(&for_people(found)),
        }
    }

    pub fn failure(self, failure: &Failure) {
        if self.json {
            return tell(&failure.json());
        }
        let text = failure.to_string();
        let mut out = io::stderr().lock();
        let text = if out.is_terminal() { dressed(&shown(&text)) } else { text };
        // With stderr gone there is nobody to tell.
        let _ = writeln!(out, "{}", text.trim_end());
    }
}

/// Writes a text for people; a terminal gets colours, and times as how long ago they were.
pub fn print_dressed(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    if !out.is_terminal() {
        drop(out);
        return print(text);
    }
    out.write_all(dressed(&shown(text)).as_bytes())?;
    Ok(out.flush()?)
}

fn dressed(text: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = Timestamp(i64::try_from(now.as_millis()).unwrap_or(i64::MAX));
    // By the convention of no-color.org, and for terminals that know none.
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    terminal::dressed(text, now, !is_set("NO_COLOR") && !is_dumb)
}

/// Writes a text to stdout, with its last line ended. A terminal gets nothing that it would obey; what
/// goes to a program or a file is as it is.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let text = if out.is_terminal() { &*shown(text) } else { text };
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

/// Stdout for much at once.
pub fn stdout() -> impl Write {
    let out = io::stdout().lock();
    let is_terminal = out.is_terminal();
    BufWriter::with_capacity(64 * 1024, Harmless { out, is_terminal })
}

/// Passes on what a terminal may get.
struct Harmless<W> {
    out: W,
    is_terminal: bool,
}

impl<W: Write> Write for Harmless<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_terminal {
            return self.out.write(bytes);
        }
        // A character that is cut in two is shown as two unknown ones.
        self.out.write_all(shown(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A text with what a terminal would obey written as in JSON: a text stays readable, and JSON means
/// the same.
fn shown(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| c == '\t' || is_harmless(c)) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c == '\t' || is_harmless(c) {
            true => shown.push(c),
            false => shown.push_str(&format!("\\u{:04x}", u32::from(c))),
        }
    }
    shown.into()
}

/// Says something to whoever watches, beside the output proper.
pub fn tell(text: &str) {
    let mut out = io::stderr().lock();
    let text = if out.is_terminal() { &*shown(text) } else { text };
    // With stderr gone there is nobody to tell.
    let _ = writeln!(out, "{text}");
}

/// One thing, as lines of `name: value`.
#[derive(Default)]
pub struct Facts(Vec<(&'static str, String)>);

impl Facts {
    pub fn with(mut self, name: &'static str, value: impl Display) -> Self {
        self.0.push((name, printable(&value.to_string())));
        self
    }

    /// Leaves the line out where there is nothing to say.
    pub fn maybe<T: Display>(self, name: &'static str, value: Option<T>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    pub fn text(&self) -> String {
        let width = self.0.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 1;
        let lines = self.0.iter().map(|(name, value)| {
            let value = value.replace('\n', &format!("\n{:width$} ", ""));
            format!("{:width$} {value}\n", format!("{name}:"))
        });
        lines.collect()
    }
}

/// Many things, as a table without lines: readable, and easy to cut apart.
pub fn table<const N: usize>(
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(head);
    for row in rows {
        table.add_row(row.map(|cell| printable(&cell)));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let lines = table.lines().map(|line| format!("{}\n", line.trim_end()));
    lines.collect()
}

/// What agents wrote may hold characters that a terminal would obey: control characters, and those
/// that turn the direction of what follows or begin a line.
pub fn printable(text: &str) -> String {
    if text.chars().all(is_harmless) {
        return text.to_owned();
    }
    text.chars()
        .map(|c| if is_harmless(c) { c.to_string() } else { c.escape_default().to_string() })
        .collect()
}

fn is_harmless(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c == '\n' || !(c.is_control() || turns)
}

/// Milliseconds as people say them.
pub fn span(ms: u64) -> String {
    let (unit_ms, unit) = match ms {
        0..1000 => (1.0, "ms"),
        1000..60_000 => (1e3, "s"),
        60_000..3_600_000 => (6e4, "min"),
        _ => (3.6e6, "h"),
    };
    rounded(ms as f64 / unit_ms, unit)
}

pub fn bytes(bytes: u64) -> String {
    let (unit_bytes, unit) = match bytes {
        0..1024 => (1.0, "bytes"),
        1024..0x10_0000 => (1024.0, "KiB"),
        0x10_0000..0x4000_0000 => (1_048_576.0, "MiB"),
        _ => (1_073_741_824.0, "GiB"),
    };
    rounded(bytes as f64 / unit_bytes, unit)
}

fn rounded(number: f64, unit: &str) -> String {
    let text = format!("{number:.1}");
    format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
}

/// A bar on stderr; nothing is drawn where nobody watches.
pub fn progress(what: &'static str, total: Option<u64>) -> ProgressBar {
    let (bar, template) = match total {
        Some(total) => (ProgressBar::new(total), "{msg} [{bar:40}] {pos}/{len} {eta}"),
        None => (ProgressBar::new_spinner(), "{msg} {pos} {elapsed}"),
    };
    bar.with_message(what).with_style(
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_and_not_obeyed() {
        assert_eq!(printable("a\u{1b}[2Jb\u{9b}c\rd"), "a\\u{1b}[2Jb\\u{9b}c\\rd");
        assert_eq!(printable("ä\nb"), "ä\nb");
        assert_eq!(printable("a\u{202e}b\u{2028}c"), "a\\u{202e}b\\u{2028}c");
        let json = "{\"text\":\"a\u{202e}b\u{9b}2J\"}";
        assert_eq!(shown(json), "{\"text\":\"a\\u202eb\\u009b2J\"}");
        let [said, meant] = [&shown(json), json].map(serde_json::from_str::<serde_json::Value>);
        assert_eq!(said.unwrap(), meant.unwrap());
        assert_eq!(shown("plain\ttext\n"), "plain\ttext\n");
    }

    #[test]
    fn spans_and_sizes_read_well() {
        let spans = [0, 30_000, 1500, 90_000, 86_400_000].map(span);
        assert_eq!(spans, ["0 ms", "30 s", "1.5 s", "1.5 min", "24 h"]);
        assert_eq!([512, 1536, 1 << 30].map(bytes), ["512 bytes", "1.5 KiB", "1 GiB"]);
    }

    #[test]
    fn facts_are_aligned_and_long_values_indented() {
        let facts = Facts::default().with("a", 1).maybe("none", None::<u8>).with("long", "x\ny");
        assert_eq!(facts.text(), "a:    1\nlong: x\n      y\n");
    }
}

// SPDX-License-Identifier: Apache-2.0
//! What people see on a terminal and programs do not: colours for states, and times as how long ago they
//! were. It is made from the text as a program would get it, after that was made harmless.

use tasuki_core::Timestamp;

/// Times older than this are told as they are.
const RELATIVE_MS_MAX: i64 = 48 * 60 * 60 * 1000;

const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const BOLD: &str = "1";

/// Columns and facts that have a state in them.
const STATES: [&str; 4] = ["state", "status", "ended", "came to"];

/// A text as it is shown at a time.
pub(crate) fn dressed(text: &str, now: Timestamp, with_colours: bool) -> String {
    if text.starts_with(['{', '[']) {
        // JSON is for programs, also where a person looks on.
        return text.to_owned();
    }
    let painter = Painter { now, with_colours };
    let mut out = String::with_capacity(text.len() + 64);
    // Where the columns of the table begin that the lines belong to.
    let mut columns: Vec<(usize, String)> = Vec::new();
    for line in text.lines() {
        if line.trim().is_empty() {
            columns.clear();
            out.push('\n');
            continue;
        }
        let cells = cells(line);
        let is_head = cells.len() > 1 && cells.iter().all(|(_, cell)| is_name(cell));
        if is_head {
            columns = cells.iter().map(|(at, cell)| (*at, (*cell).to_owned())).collect();
            out += &painter.paint(BOLD, line);
        } else if columns.is_empty() {
            painter.fact(line, &mut out);
        } else {
            painter.row(line, &cells, &columns, &mut out);
        }
        out.push('\n');
    }
    out
}

/// The parts of a line that two spaces or more part, with the character at which each begins.
fn cells(line: &str) -> Vec<(usize, &str)> {
    let mut cells = Vec::new();
    let mut rest = line;
    let mut at = 0;
    while !rest.is_empty() {
        let begin = rest.len() - rest.trim_start().len();
        at += begin;
        rest = &rest[begin..];
        let end = rest.find("  ").unwrap_or(rest.len());
        if end > 0 {
            cells.push((at, &rest[..end]));
        }
        at += rest[..end].chars().count();
        rest = &rest[end..];
    }
    cells
}

fn is_name(cell: &str) -> bool {
    cell.chars().all(|c| c.is_ascii_lowercase() || c == ' ')
}

struct Painter {
    now: Timestamp,
    with_colours: bool,
}

impl Painter {
    fn paint(&self, colour: &str, text: &str) -> String {
        match self.with_colours {
            true => format!("\u{1b}[{colour}m{text}\u{1b}[0m"),
            false => text.to_owned(),
        }
    }

    /// A state in the colour of what it means for whoever waits.
    fn state(&self, cell: &str) -> String {
        let word = cell.split([' ', ',']).next().unwrap_or(cell);
        let colour = match word {
            "completed" | "done" | "ready" | "active" => GREEN,
            "failed" | "dead_lettered" | "rejected" | "aborted" => RED,
            word if word.starts_with("failed_") || word.starts_with("lost_") => RED,
            "cancelled" | "declined" | "released" => YELLOW,
            "awaiting_approval" | "input_required" | "waiting" => YELLOW,
            _ => return cell.to_owned(),
        };
        self.paint(colour, cell)
    }

    /// `name: value`, or any other line.
    fn fact(&self, line: &str, out: &mut String) {
        let named = line.split_once(':').filter(|(name, _)| is_name(name) && !name.is_empty());
        let Some((name, rest)) = named else {
            *out += line;
            return;
        };
        let value = rest.trim_start();
        let gap = &rest[..rest.len() - value.len()];
        *out += &match name {
            "error" => self.paint(RED, "error:"),
            "next" => self.paint(BOLD, "next:"),
            name => format!("{name}:"),
        };
        *out += gap;
        *out += &match self.ago(value) {
            Some(ago) => ago,
            None if STATES.contains(&name) => self.state(value),
            None => value.to_owned(),
        };
    }

    fn row(
        &self,
        line: &str,
        cells: &[(usize, &str)],
        columns: &[(usize, String)],
        out: &mut String,
    ) {
        let mut shown = 0;
        for (number, (at, cell)) in cells.iter().enumerate() {
            out.extend(std::iter::repeat_n(' ', at.saturating_sub(shown)));
            let width = cell.chars().count();
            let column = columns.iter().find(|(column, _)| column == at);
            let is_state = column.is_some_and(|(_, name)| STATES.contains(&name.as_str()));
            match self.ago(cell) {
                Some(ago) => {
                    *out += &ago;
                    // What follows stays in its column.
                    if number + 1 < cells.len() {
                        let less = width.saturating_sub(ago.chars().count());
                        out.extend(std::iter::repeat_n(' ', less));
                    }
                }
                None if is_state => *out += &self.state(cell),
                None => *out += cell,
            }
            shown = at + width;
        }
        debug_assert!(shown <= line.chars().count(), "no cell is beyond its line");
    }

    /// A time as how long ago it was, or how long it is until then.
    fn ago(&self, cell: &str) -> Option<String> {
        if cell.len() != "2026-11-16T07:56:59.616Z".len() || !cell.ends_with('Z') {
            return None;
        }
        let time: Timestamp = cell.parse().ok()?;
        let ms = self.now.0.saturating_sub(time.0);
        if ms.abs() > RELATIVE_MS_MAX {
            return None;
        }
        let (number, unit) = match ms.abs() / 1000 {
            seconds @ 0..60 => (seconds, "s"),
            seconds @ 60..3600 => (seconds / 60, "min"),
            seconds => (seconds / 3600, "h"),
        };
        Some(if ms < 0 { format!("in {number} {unit}") } else { format!("{number} {unit} ago") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str, with_colours: bool) -> String {
        dressed(text, "2026-11-16T08:00:00.000Z".parse().unwrap(), with_colours)
    }

    #[test]
    fn times_are_told_by_how_long_ago_they_were_and_columns_stay() {
        let table = "handoff  offered                   state\n\
                     h_1      2026-11-16T07:56:59.616Z  open\n\
                     h_2      2026-11-01T07:56:59.616Z  open\n";
        let shown = "handoff  offered                   state\n\
                     h_1      3 min ago                 open\n\
                     h_2      2026-11-01T07:56:59.616Z  open\n";
        assert_eq!(seen(table, false), shown);
        let fact = "expires: 2026-11-16T09:00:01.000Z\n";
        assert_eq!(seen(fact, false), "expires: in 1 h\n");
    }

    #[test]
    fn what_agents_wrote_stays_as_it_is() {
        for text in [
            "payload: {\"at\":\"2026-11-16T07:56:59.616Z\"}\n",
            "intent:  be done by 2026-11-16T07:56:59.616Z or so\n",
            "{\"state\":\"failed\"}",
            "└─ task_1  completed  owner a\n",
        ] {
            assert_eq!(seen(text, true), text);
        }
    }

    #[test]
    fn states_have_the_colour_of_what_they_mean() {
        assert_eq!(
            seen("state: completed (done)\n", true),
            "state: \u{1b}[32mcompleted (done)\u{1b}[0m\n"
        );
        let rows = seen("handoff  state\nh_1      failed\n", true);
        assert!(rows.ends_with("h_1      \u{1b}[31mfailed\u{1b}[0m\n"), "{rows:?}");
        assert!(seen("error: no\n", true).starts_with("\u{1b}[31merror:\u{1b}[0m no"));
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Whether two outputs say the same. Ids, hashes, times and spans differ from run to run, and with
//! them the width of columns, so they count as equal wherever they stand.

/// How exactly an output is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    /// Its numbers are measurements: only the words count.
    Figures,
}

pub(super) fn same(expected: &str, actual: &str, kind: Kind) -> bool {
    normal(expected, kind) == normal(actual, kind)
}

/// What to take away and what to add, line by line.
pub(super) fn diff(expected: &str, actual: &str, kind: Kind) -> String {
    let (old, new) = (normal(expected, kind), normal(actual, kind));
    // The length of the longest common part of what is left, from each pair of places on.
    let mut common = vec![vec![0; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] = if old[i] == new[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut lines = Vec::new();
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push(format!("  {}", new[j]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && common[i + 1][j] >= common[i][j + 1]) {
            lines.push(format!("- {}", old[i]));
            i += 1;
        } else {
            lines.push(format!("+ {}", new[j]));
            j += 1;
        }
    }
    lines.join("\n")
}

fn normal(text: &str, kind: Kind) -> Vec<String> {
    text.trim_end().lines().map(|line| normal_line(line.trim_end(), kind)).collect()
}

fn normal_line(line: &str, kind: Kind) -> String {
    let mut out = String::new();
    let mut rest = line;
    let mut in_word = false;
    while let Some(first) = rest.chars().next() {
        let found = if in_word { None } else { variable(rest, kind) };
        if let Some((length, name)) = found {
            out.push_str(name);
            rest = &rest[length..];
            in_word = true;
            continue;
        }
        // Columns are as wide as what stands in them.
        if !(first == ' ' && out.ends_with(' ')) {
            out.push(first);
        }
        in_word = first.is_ascii_alphanumeric();
        rest = &rest[first.len_utf8()..];
    }
    out
}

/// Something at the beginning of a text that differs from run to run: how long it is, and what
/// stands for it.
fn variable(text: &str, kind: Kind) -> Option<(usize, &'static str)> {
    let id = |prefix: &str, name| {
        let digits = count(text.strip_prefix(prefix)?, |c| c.is_ascii_alphanumeric());
        (digits == 26).then_some((prefix.len() + 26, name))
    };
    let long = |prefix: &str, name| {
        let is_of_it = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        Some((prefix.len() + count(text.strip_prefix(prefix)?, is_of_it), name))
    };
    id("handoff_", "handoff_…")
        .or_else(|| id("task_", "task_…"))
        .or_else(|| id("claim_", "claim_…"))
        .or_else(|| id("token_", "token_…"))
        .or_else(|| id("key_", "key_…"))
        .or_else(|| long("tsk_", "tsk_…"))
        .or_else(|| long("ed25519:", "ed25519:…"))
        .or_else(|| hex(text))
        .or_else(|| time(text))
        .or_else(|| port(text))
        .or_else(|| span(text))
        .or_else(|| request_id(text))
        .or_else(|| (kind == Kind::Figures).then(|| number(text)).flatten())
}

fn count(text: &str, is: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is(c)).unwrap_or(text.len())
}

/// A hash, whole or cut short, or a key.
fn hex(text: &str) -> Option<(usize, &'static str)> {
    let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    if let Some(digits) = text.strip_prefix("sha256:") {
        return Some((7 + count(digits, is_hex), "sha256:…"));
    }
    let digits = count(text, is_hex);
    (digits == 64).then_some((digits, "hex…"))
}

/// 2026-11-15T12:00:00.250Z, with or without its fraction.
fn time(text: &str) -> Option<(usize, &'static str)> {
    let mut shape = text.bytes().zip("0000-00-00T00:00:00".bytes());
    let fits = |(byte, shape): (u8, u8)| {
        if shape == b'0' { byte.is_ascii_digit() } else { byte == shape || byte == b' ' }
    };
    if text.len() < 20 || !shape.all(fits) {
        return None;
    }
    let fraction = count(&text[19..], |c| c == '.' || c.is_ascii_digit());
    text[19 + fraction..].starts_with('Z').then_some((20 + fraction, "time…"))
}

fn port(text: &str) -> Option<(usize, &'static str)> {
    let host = "127.0.0.1:";
    let digits = count(text.strip_prefix(host)?, |c| c.is_ascii_digit());
    Some((host.len() + digits, "127.0.0.1:port…"))
}

/// A number with a unit of time, or the value of a member that is called so.
fn span(text: &str) -> Option<(usize, &'static str)> {
    for member in ["lease_left_ms\":", "work_left_ms\":"] {
        if let Some(value) = text.strip_prefix(member) {
            return Some((member.len() + count(value, |c| c.is_ascii_digit()), "left_ms\":span…"));
        }
    }
    let (length, _) = number(text)?;
    let unit = text[length..].strip_prefix(' ')?;
    let letters = count(unit, |c| c.is_ascii_alphabetic());
    ["ms", "s", "min", "h"].contains(&&unit[..letters]).then_some((length + 1 + letters, "span…"))
}

fn request_id(text: &str) -> Option<(usize, &'static str)> {
    let member = "request_id\":\"";
    Some((member.len() + text.strip_prefix(member)?.find('"')?, "request_id\":\"…"))
}

fn number(text: &str) -> Option<(usize, &'static str)> {
    let whole = count(text, |c| c.is_ascii_digit());
    if whole == 0 {
        return None;
    }
    let fraction = text[whole..].strip_prefix('.').map_or(0, |f| count(f, |c| c.is_ascii_digit()));
    Some((if fraction == 0 { whole } else { whole + 1 + fraction }, "#"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(one: &str, other: &str, equal: bool) {
        assert_eq!(same(one, other, Kind::Text), equal, "{:?}", normal(one, Kind::Text));
    }

    #[test]
    fn what_differs_from_run_to_run_counts_as_equal() {
        let id = |digit: &str| format!("handoff_{}", digit.repeat(26));
        check(&format!("{}  pending", id("0")), &format!("{}   pending", id("z")), true);
        check("--join tsk_0a_9f ed25519:a-_B", "--join tsk_zz_00 ed25519:xyz", true);
        check("at 2026-11-15T12:00:00.250Z", "at 2027-01-01T00:00:00Z", true);
        check("left: 29.9 s of 1.0 h", "left: 30.0 s of 59.9 min", true);
        check("http://127.0.0.1:8788/v1", "http://127.0.0.1:40123/v1", true);
        check("{\"lease_left_ms\":1}", "{\"lease_left_ms\":29999}", true);
        check("sha256:00ff", "sha256:1234", true);
    }

    #[test]
    fn everything_else_counts() {
        check("state: pending", "state: claimed", false);
        check("fence: 1099511627777", "fence: 1099511627778", false);
        check("one\ntwo", "one", false);
        check("task_00000000000000000000000000", "handoff_00000000000000000000000000", false);
        check("3 attempts", "4 attempts", false);
    }

    #[test]
    fn of_measurements_only_the_words_count() {
        let (one, other) = ("1200 cycles/s\np50 1.25", "9 cycles/s\np50 30");
        assert!(same(one, other, Kind::Figures));
        assert!(!same(one, other, Kind::Text));
    }

    #[test]
    fn a_difference_is_shown_line_by_line() {
        assert_eq!(diff("a\nb\nc", "a\nx\nc", Kind::Text), "  a\n- b\n+ x\n  c");
    }
}

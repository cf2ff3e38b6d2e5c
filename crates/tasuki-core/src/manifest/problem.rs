// SPDX-License-Identifier: Apache-2.0
//! What is wrong, and where. Faults are collected rather than returned at the first, because a
//! manifest is written by hand and corrected by hand.

use std::fmt;

use serde_json::Value;

/// How many faults are reported; a text full of faults must not become a reply full of text.
pub const PROBLEMS_MAX: usize = 100;
/// How deep a manifest may nest, and each schema in it.
pub const DEPTH_MAX: usize = 32;

/// How much of a name or a value is shown.
const SHOWN_BYTES_MAX: usize = 128;

/// One fault and its place, such as `capabilities[0].reliability_sla`; the empty path is the whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub path: String,
    pub problem: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.problem);
        }
        write!(f, "{}: {}", self.path, self.problem)
    }
}

#[derive(Debug, Default)]
pub(super) struct Problems(Vec<Problem>);

impl Problems {
    pub(super) fn add(&mut self, path: impl Into<String>, problem: impl Into<String>) {
        if self.0.len() < PROBLEMS_MAX {
            self.0.push(Problem { path: path.into(), problem: problem.into() });
        }
    }

    /// Takes over faults that were found in the part at `path`.
    pub(super) fn add_below(&mut self, path: &str, problems: Vec<Problem>) {
        for Problem { path: below, problem } in problems {
            let dot = if below.is_empty() || below.starts_with('[') { "" } else { "." };
            self.add(format!("{path}{dot}{below}"), problem);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `value`, if nothing was found.
    pub(super) fn or<T>(self, value: T) -> Result<T, Vec<Problem>> {
        if self.0.is_empty() { Ok(value) } else { Err(self.0) }
    }
}

/// The path of a member. A name that would not read as one is quoted, so that a path is exact; one
/// of absurd length is cut, so that a hundred paths do not make a reply of megabytes.
pub(super) fn member(path: &str, name: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_$-".contains(&b);
    if name.is_empty() || name.len() > SHOWN_BYTES_MAX || !name.bytes().all(plain) {
        return format!("{path}[{}]", Value::from(cut(name.to_owned())));
    }
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The path of an item.
pub(super) fn item(path: &str, index: usize) -> String {
    format!("{path}[{index}]")
}

/// A text that somebody else made, short enough to be shown.
pub(super) fn cut(mut text: String) -> String {
    if text.len() > SHOWN_BYTES_MAX {
        text.truncate(text.floor_char_boundary(SHOWN_BYTES_MAX));
        text.push('…');
    }
    text
}

/// The first place that is nested too deep. Whatever else walks a value by recursion comes after.
pub(super) fn check_depth(value: &Value) -> Result<(), Problem> {
    match too_deep(value, "", DEPTH_MAX) {
        None => Ok(()),
        Some(path) => Err(Problem {
            path,
            problem: format!("nested deeper than {DEPTH_MAX} arrays and objects"),
        }),
    }
}

fn too_deep(value: &Value, path: &str, left: usize) -> Option<String> {
    match value {
        Value::Array(_) | Value::Object(_) if left == 0 => Some(path.to_owned()),
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.find_map(|(index, inner)| too_deep(inner, &item(path, index), left - 1))
        }
        Value::Object(members) => {
            let mut members = members.iter();
            members.find_map(|(name, inner)| too_deep(inner, &member(path, name), left - 1))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_path_tells_a_dot_in_a_name_from_a_step() {
        assert_eq!(member("a", "b_c"), "a.b_c");
        assert_eq!(member("a", "b.c"), r#"a["b.c"]"#);
        assert_eq!(member("", "say \"x\""), r#"["say \"x\""]"#);
        assert_eq!(item("a", 3), "a[3]");
        assert_eq!(member("a", &"é".repeat(100)), format!("a[\"{}…\"]", "é".repeat(64)));
    }

    #[test]
    fn the_place_that_is_too_deep_is_named() {
        let mut value = json!(1);
        for _ in 0..DEPTH_MAX {
            value = json!([value]);
        }
        assert_eq!(check_depth(&value), Ok(()));
        let problem = check_depth(&json!({ "a": value })).unwrap_err();
        assert_eq!(problem.path, format!("a{}", "[0]".repeat(DEPTH_MAX - 1)));
    }

    #[test]
    fn faults_are_bounded() {
        let mut problems = Problems::default();
        for _ in 0..1000 {
            problems.add("a", "b");
        }
        assert_eq!(problems.or(()).unwrap_err().len(), PROBLEMS_MAX);
    }
}

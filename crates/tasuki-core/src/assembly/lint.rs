// SPDX-License-Identifier: Apache-2.0
//! What does not belong into an envelope: raw logs, chains of thought that came to an end, and
//! copies of what the receiver can fetch. Warned about, never refused: the sender may know better.

use super::item::Item;
use super::receipt::{Warning, WarningCode};

/// How many lines a text must have before it can be a raw log.
const LOG_LINES_MIN: usize = 8;

/// What is wrong with passing an item.
pub(super) fn check(item: &Item) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |code, text: String| {
        warnings.push(Warning { code, id: Some(item.id.clone()), text });
    };
    if is_log(item) {
        warn(WarningCode::RawLog, "a raw log: pass the lines that matter, or where it is".into());
    }
    if is_reasoning(item) {
        warn(WarningCode::FinishedReasoning, "finished reasoning: pass what it concluded".into());
    }
    if let Some(source) = item.source.as_deref().filter(|_| !item.text.trim().is_empty()) {
        warn(WarningCode::CopyOfSource, format!("a copy of {source}, which can be fetched"));
    }
    warnings
}

/// What is wrong with passing a text under a name, whatever its sender calls it.
#[must_use]
pub fn advise(id: &str, kind: &str, text: &str, copy_of: Option<&str>) -> Vec<Warning> {
    let item = Item {
        id: id.to_owned(),
        revision: 0,
        kind: kind.to_owned(),
        title: String::new(),
        summary: None,
        text: text.to_owned(),
        priority: super::item::Priority::Normal,
        pinned: false,
        tags: Vec::new(),
        at: crate::ids::Timestamp(0),
        source: copy_of.map(str::to_owned),
        by: None,
        trust: crate::trust::Trust::Agent,
    };
    check(&item)
}

/// Whether an item is the log of something that ran, a test run among them: its beginning and what
/// failed in it tell most.
pub(super) fn is_run(item: &Item) -> bool {
    let named = matches!(item.kind.as_str(), "test" | "test_run" | "tests" | "build" | "ci");
    named || is_log(item) || is_run_text(&item.text)
}

/// Whether a text is what a run of tests or a program that failed printed.
pub(super) fn is_run_text(text: &str) -> bool {
    const SIGNS: [&str; 7] = [
        "test result:",
        "Traceback (",
        "short test summary info",
        "\n--- FAIL: ",
        "\nTests:  ",
        "Test Suites: ",
        "\nnot ok ",
    ];
    SIGNS.iter().any(|sign| text.contains(sign))
}

/// Whether a text says that something failed.
pub(super) fn says_failure(text: &str) -> bool {
    const WORDS: [&str; 22] = [
        "FAILED",
        "FAIL:",
        "FAIL\t",
        "FAIL ",
        "FAILURE",
        "ERROR",
        "error:",
        "error[",
        "error TS",
        "Error:",
        "panicked",
        "panic:",
        "assert",
        "FATAL",
        "fatal:",
        "Traceback",
        "not ok",
        "Exception",
        "npm ERR!",
        "Caused by:",
        "✕",
        "✗",
    ];
    WORDS.iter().any(|word| text.contains(word))
}

fn is_log(item: &Item) -> bool {
    if matches!(item.kind.as_str(), "log" | "logs" | "raw_log" | "trace") {
        return true;
    }
    let (mut lines, mut logged) = (0, 0);
    for line in item.text.lines().filter(|line| !line.trim().is_empty()) {
        lines += 1;
        logged += usize::from(is_log_line(line));
    }
    lines >= LOG_LINES_MIN && logged * 5 >= lines * 3
}

/// Whether a line begins with a time or names a level, as loggers write them.
fn is_log_line(line: &str) -> bool {
    let mut words = line.split_whitespace().map(|word| word.trim_matches(['[', ']', ':', '|']));
    let clock = |word: &str| {
        word.len() >= 8
            && word.bytes().filter(u8::is_ascii_digit).count() >= 6
            && word.bytes().filter(|b| matches!(b, b':' | b'-' | b'/')).count() >= 2
    };
    let level = |word: &str| {
        matches!(word, "TRACE" | "DEBUG" | "INFO" | "WARN" | "WARNING" | "ERROR" | "FATAL")
    };
    words.clone().next().is_some_and(clock) || words.by_ref().take(4).any(level)
}

fn is_reasoning(item: &Item) -> bool {
    let kinds = ["reasoning", "thought", "thoughts", "thinking", "chain_of_thought", "scratchpad"];
    let start = item.text.trim_start();
    kinds.contains(&item.kind.as_str())
        || ["<thinking>", "<think>", "<scratchpad>"].iter().any(|tag| start.starts_with(tag))
}

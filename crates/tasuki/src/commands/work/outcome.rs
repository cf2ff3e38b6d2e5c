// SPDX-License-Identifier: Apache-2.0
//! What the end of a command means for the work it was given: a result, or a failure of some class.

use std::process::ExitStatus;

use serde_json::{Map, Value, json};
use tasuki_core::canonical;
use tasuki_core::event::FailureClass;

/// The code by which a program says "try again later" (`EX_TEMPFAIL` of `sysexits.h`).
pub(super) const TRY_AGAIN: i32 = 75;
/// Codes of `sysexits.h` that say that the same input will not do: usage, data, no input, no user, no host, no
/// permission, configuration.
pub(super) const HOPELESS: [i32; 7] = [64, 65, 66, 67, 68, 77, 78];
/// How much of the last line of stderr stands in a failure's message.
const LINE_CHARS_MAX: usize = 300;

/// What exit codes mean.
pub(super) struct Codes {
    pub(super) retryable: Vec<i32>,
    pub(super) permanent: Vec<i32>,
    /// What all others mean.
    pub(super) otherwise: FailureClass,
}

#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    /// The payload of the result.
    Result(Value),
    Failure(Failed),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failed {
    pub(super) class: FailureClass,
    pub(super) kind: String,
    pub(super) message: String,
    /// What the command wrote to stderr last.
    pub(super) stderr: String,
    pub(super) exit_code: Option<i32>,
}

/// How a command ended, and what it wrote.
pub(super) struct End {
    pub(super) status: ExitStatus,
    /// Nothing if it was more than may be read.
    pub(super) stdout: Option<Vec<u8>>,
    pub(super) stderr: String,
}

impl Codes {
    pub(super) fn outcome(&self, program: &str, end: End) -> Outcome {
        use std::os::unix::process::ExitStatusExt;
        let Some(stdout) = end.stdout else {
            let message = format!("{program} wrote more than a result may have");
            return Outcome::Failure(Failed {
                class: FailureClass::Permanent,
                kind: "output_too_large".into(),
                message,
                stderr: end.stderr,
                exit_code: None,
            });
        };
        let code = end.status.code();
        if code == Some(0) {
            return Outcome::Result(payload(&stdout));
        }
        let (kind, how) = match (code, end.status.signal()) {
            (Some(code), _) => (format!("exit_{code}"), format!("ended with exit code {code}")),
            (None, Some(signal)) => {
                (format!("signal_{signal}"), format!("was ended by signal {signal}"))
            }
            (None, None) => ("ended".into(), format!("ended: {}", end.status)),
        };
        let last = end.stderr.lines().rev().map(str::trim).find(|line| !line.is_empty());
        let last = last.map(|line| line.chars().take(LINE_CHARS_MAX).collect::<String>());
        let message = match last {
            Some(last) => format!("{program} {how}: {last}"),
            None => format!("{program} {how}"),
        };
        let class = code.map_or(self.otherwise, |code| self.class(code));
        Outcome::Failure(Failed { class, kind, message, stderr: end.stderr, exit_code: code })
    }

    fn class(&self, code: i32) -> FailureClass {
        if self.retryable.contains(&code) {
            FailureClass::Retryable
        } else if self.permanent.contains(&code) {
            FailureClass::Permanent
        } else if code == TRY_AGAIN {
            FailureClass::Retryable
        } else if HOPELESS.contains(&code) {
            FailureClass::Permanent
        } else {
            self.otherwise
        }
    }
}

/// A result as the SDKs would say it: an object gets a type if it has none, and a text becomes one.
pub(super) fn payload(stdout: &[u8]) -> Value {
    let text = String::from_utf8_lossy(stdout);
    let text = text.trim();
    if text.is_empty() {
        return json!({"type": "result"});
    }
    match canonical::parse(text.as_bytes()) {
        Ok(Value::Object(said)) => {
            let mut object = Map::from_iter([("type".to_owned(), json!("result"))]);
            object.extend(said);
            Value::Object(object)
        }
        _ => json!({"type": "text", "text": text}),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn outcome(raw: i32, stdout: &str, stderr: &str) -> Outcome {
        let codes =
            Codes { retryable: vec![3], permanent: vec![75], otherwise: FailureClass::Unknown };
        let status = ExitStatus::from_raw(raw);
        let stdout = Some(stdout.as_bytes().to_vec());
        codes.outcome("./x", End { status, stdout, stderr: stderr.into() })
    }

    #[test]
    fn an_object_keeps_its_type_or_gets_one_and_a_text_is_wrapped() {
        let check = |text: &str, said: Value| assert_eq!(payload(text.as_bytes()), said);
        check(r#"{"type":"review","ok":true}"#, json!({"type": "review", "ok": true}));
        check("{\"ok\":true}\n", json!({"type": "result", "ok": true}));
        check("Looks good.\n", json!({"type": "text", "text": "Looks good."}));
        check("[1, 2]", json!({"type": "text", "text": "[1, 2]"}));
        // Twice the same member: not what a broker takes, so it is a text.
        check(r#"{"a":1,"a":2}"#, json!({"type": "text", "text": r#"{"a":1,"a":2}"#}));
        check(" \n", json!({"type": "result"}));
    }

    #[test]
    fn exit_codes_are_classes_and_what_is_chosen_counts_before_what_is_usual() {
        let class = |code: i32| match outcome(code << 8, "", "") {
            Outcome::Failure(failed) => failed.class,
            Outcome::Result(_) => panic!("{code} is a failure"),
        };
        let classes = [1, 3, 64, 65, 75, 127].map(class);
        use FailureClass::{Permanent, Retryable, Unknown};
        assert_eq!(classes, [Unknown, Retryable, Permanent, Permanent, Permanent, Unknown]);
        assert!(matches!(outcome(0, "", ""), Outcome::Result(_)));
        assert!(matches!(outcome(9, "", ""), Outcome::Failure(it) if it.kind == "signal_9"));
    }

    #[test]
    fn the_last_line_of_stderr_says_why() {
        let Outcome::Failure(failed) = outcome(1 << 8, "half", "one\ntwo\n\n") else { panic!() };
        assert_eq!(failed.message, "./x ended with exit code 1: two");
        assert_eq!(failed.stderr, "one\ntwo\n\n");
    }
}

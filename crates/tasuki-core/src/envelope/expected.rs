// SPDX-License-Identifier: Apache-2.0
//! What is wanted back, held against what came back; and what a receiver repeats before its claim
//! counts. What a machine can check is checked; of the rest the agent gives its word, and the two are
//! kept apart.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Fault;
use super::Payload;
use super::parts::{ExpectedOutput, Format, Parts};
use crate::canonical;
use crate::ids::Hash;

/// How many criteria a result can be held against.
const CRITERIA_MAX: usize = 100;
const CRITERION_BYTES_MAX: usize = 4096;

/// An agent's word on one criterion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CriterionReport {
    /// The criterion, word for word.
    pub criterion: String,
    pub met: bool,
    /// What shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

impl ExpectedOutput {
    pub(super) fn check(&self, faults: &mut Vec<Fault>) {
        let at = |name: &str| format!("/expected_output/{name}");
        if self.criteria.len() > CRITERIA_MAX {
            faults
                .push(Fault::new(at("criteria"), format!("has more than {CRITERIA_MAX} entries")));
        }
        for (number, criterion) in self.criteria.iter().enumerate() {
            if criterion.trim().is_empty() || criterion.len() > CRITERION_BYTES_MAX {
                let problem = format!("expected 1 to {CRITERION_BYTES_MAX} bytes");
                faults.push(Fault::new(at(&format!("criteria/{number}")), problem));
            }
        }
        if let Some(length) = &self.length
            && let (Some(min), Some(max)) = (length.chars_min, length.chars_max)
            && min > max
        {
            faults.push(Fault::new(at("length"), "chars_min is above chars_max"));
        }
    }

    /// The address that a receiver repeats.
    #[must_use]
    pub fn hash(&self) -> Hash {
        canonical::address(self)
    }

    /// What the broker itself checks of a result.
    #[must_use]
    pub fn checked(&self) -> Vec<&'static str> {
        let checks = [
            ("schema", self.schema.is_some()),
            ("format", self.format.is_some()),
            ("length", self.length.is_some()),
        ];
        checks.into_iter().filter(|(_, asked)| *asked).map(|(name, _)| name).collect()
    }

    /// Why a result is not what is wanted, apart from its schema. Work that is `done` must meet
    /// every criterion; work that goes back or up need only say which.
    #[must_use]
    pub fn faults(&self, payload: &Payload, reports: &[CriterionReport], done: bool) -> Vec<Fault> {
        let mut faults = Vec::new();
        if self.format.is_some() || self.length.is_some() {
            self.check_text(payload, &mut faults);
        }
        for criterion in &self.criteria {
            let report = reports.iter().find(|report| report.criterion == *criterion);
            match report {
                None => {
                    let problem = format!("nothing is said of the criterion {criterion:?}");
                    faults.push(Fault::new("/criteria", problem));
                }
                Some(report) if done && !report.met => {
                    let problem = format!("the criterion {criterion:?} is not met");
                    faults.push(Fault::new("/criteria", problem));
                }
                Some(_) => {}
            }
        }
        faults
    }

    fn check_text(&self, payload: &Payload, faults: &mut Vec<Fault>) {
        let member = self.member.as_deref().unwrap_or("text");
        let path = format!("/payload/{member}");
        let Some(Value::String(text)) = payload.members().get(member) else {
            // JSON may be there as it is.
            let given = payload.members().contains_key(member);
            if !(given && self.format == Some(Format::Json) && self.length.is_none()) {
                faults.push(Fault::new(path, "expected a text"));
            }
            return;
        };
        if self.format == Some(Format::Json)
            && let Err(error) = serde_json::from_str::<Value>(text)
        {
            faults.push(Fault::new(&path, format!("is no JSON: {error}")));
        }
        let Some(length) = &self.length else { return };
        let chars = text.chars().count();
        let out = |limit: Option<u32>, over: fn(usize, usize) -> bool, count: usize| {
            limit.map(|limit| limit as usize).filter(|limit| over(count, *limit))
        };
        if let Some(min) = out(length.chars_min, |count, min| count < min, chars) {
            faults.push(Fault::new(&path, format!("has {chars} characters, {min} at least")));
        }
        if let Some(max) = out(length.chars_max, |count, max| count > max, chars) {
            faults.push(Fault::new(&path, format!("has {chars} characters, {max} at most")));
        }
        let words = text.split_whitespace().count();
        if let Some(max) = out(length.words_max, |count, max| count > max, words) {
            faults.push(Fault::new(&path, format!("has {words} words, {max} at most")));
        }
    }
}

impl Parts {
    /// The address of what a receiver must repeat: the ids of all that binds it, and what is wanted
    /// back.
    #[must_use]
    pub fn read_back(&self) -> Hash {
        let ids = self.constraints.iter().map(|constraint| constraint.id).collect();
        read_back(ids, self.expected_output.as_ref().map(ExpectedOutput::hash))
    }
}

/// The address of what somebody repeats.
#[must_use]
pub fn read_back(mut constraints: Vec<Hash>, expected_output: Option<Hash>) -> Hash {
    constraints.sort_unstable();
    constraints.dedup();
    canonical::address(&json!({ "constraints": constraints, "expected_output": expected_output }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(value: Value) -> Payload {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn length_and_format_are_checked_and_every_fault_is_named() {
        let expected: ExpectedOutput = serde_json::from_value(json!({
            "format": "json", "length": { "chars_max": 5, "words_max": 1 }, "member": "answer",
        }))
        .unwrap();
        let good = payload(json!({ "type": "t", "answer": "[1]" }));
        assert_eq!(expected.faults(&good, &[], true), []);
        let bad = payload(json!({ "type": "t", "answer": "not json" }));
        assert_eq!(expected.faults(&bad, &[], true).len(), 3);
        let none = payload(json!({ "type": "t" }));
        assert_eq!(expected.faults(&none, &[], true)[0].path, "/payload/answer");
    }

    #[test]
    fn a_finished_result_meets_every_criterion_and_says_so() {
        let criteria = vec!["Has a test.".to_owned()];
        let expected = ExpectedOutput { criteria, ..ExpectedOutput::default() };
        let report = |met| CriterionReport { criterion: "Has a test.".into(), met, evidence: None };
        let done = payload(json!({ "type": "t" }));
        assert_eq!(expected.faults(&done, &[], true).len(), 1);
        assert_eq!(expected.faults(&done, &[report(false)], true).len(), 1);
        assert_eq!(expected.faults(&done, &[report(false)], false), []);
        assert_eq!(expected.faults(&done, &[report(true)], true), []);
    }
}

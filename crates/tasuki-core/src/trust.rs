// SPDX-License-Identifier: Apache-2.0
//! Where the parts of a payload come from, and how far a receiver may follow them. A payload may be
//! made of `parts`; each says whether it is an instruction or data, and who stands behind it. Along
//! a chain both can only fall: what was data does not become an instruction, and what came from a
//! tool does not become an operator's word by being passed on.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::canonical;
use crate::envelope::{Fault, Payload};
use crate::event::words;
use crate::ids::Hash;

/// How many parts a payload may have.
pub const PARTS_MAX: usize = 1000;

/// Who stands behind a part, from the least to the most trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Somebody outside: a web page, a mail, a file that was found.
    Environment,
    /// A tool that an agent used.
    Tool,
    /// An agent itself. What says nothing is an agent's.
    Agent,
    /// The one who gave the task.
    Operator,
}

words!(Trust {
    Environment = "environment",
    Tool = "tool",
    Agent = "agent",
    Operator = "operator",
});

/// What a part is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// To be read, never to be obeyed. What says nothing is data.
    Data,
    /// To be followed.
    Instruction,
}

words!(Kind { Data = "data", Instruction = "instruction" });

/// A part's labels, and the address of what they are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub kind: Kind,
    pub trust: Trust,
    content: Hash,
}

/// The parts of a payload; none if it is not made of parts.
pub fn parts(payload: &Payload) -> Result<Vec<Part>, Vec<Fault>> {
    let Some(given) = payload.members().get("parts") else { return Ok(Vec::new()) };
    let fault = |path: String, problem: &str| Fault { path, problem: problem.to_owned() };
    let Some(given) = given.as_array() else {
        return Err(vec![fault("/parts".into(), "is no array")]);
    };
    if given.len() > PARTS_MAX {
        return Err(vec![fault("/parts".into(), "has more than 1000 parts")]);
    }
    let mut parts = Vec::with_capacity(given.len());
    let mut faults = Vec::new();
    for (number, part) in given.iter().enumerate() {
        let Some(members) = part.as_object() else {
            faults.push(fault(format!("/parts/{number}"), "is no object"));
            continue;
        };
        let kind = label(members, "kind", Kind::Data);
        let trust = label(members, "trust", Trust::Agent);
        match (kind, trust) {
            (Ok(kind), Ok(trust)) => parts.push(Part { kind, trust, content: content(members) }),
            (kind, trust) => {
                let wrong = [("kind", kind.err()), ("trust", trust.err())];
                for (name, problem) in wrong {
                    let path = format!("/parts/{number}/{name}");
                    faults.extend(problem.map(|problem| fault(path, &problem)));
                }
            }
        }
    }
    if faults.is_empty() { Ok(parts) } else { Err(faults) }
}

fn label<T: std::str::FromStr<Err = crate::ids::Malformed>>(
    members: &Map<String, Value>,
    name: &str,
    silent: T,
) -> Result<T, String> {
    match members.get(name) {
        None => Ok(silent),
        Some(Value::String(word)) => word.parse().map_err(|error: T::Err| error.to_string()),
        Some(_) => Err("is no text".into()),
    }
}

/// The address of what a part holds, whatever its labels say.
fn content(members: &Map<String, Value>) -> Hash {
    let own = members.iter().filter(|(name, _)| !matches!(name.as_str(), "kind" | "trust"));
    canonical::address(&own.collect::<std::collections::BTreeMap<_, _>>())
}

/// Checks the parts of a payload against those of the envelope before it. What is new may be
/// trusted up to `ceiling`: only the one who gives a task speaks as its operator.
pub fn check(parts: &[Part], before: &[Part], ceiling: Trust) -> Result<(), Vec<Fault>> {
    let mut faults = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let known: Vec<_> = before.iter().filter(|b| b.content == part.content).collect();
        let trust = known.iter().map(|b| b.trust).max().unwrap_or(ceiling);
        if part.trust > trust {
            faults.push(Fault {
                path: format!("/parts/{number}/trust"),
                problem: format!("is {}, and can be {trust} at most", part.trust),
            });
        }
        let was_data = !known.is_empty() && known.iter().all(|b| b.kind == Kind::Data);
        if was_data && part.kind == Kind::Instruction {
            faults.push(Fault {
                path: format!("/parts/{number}/kind"),
                problem: "is instruction, and was data before".into(),
            });
        }
        // What tools and the outside world say is never to be obeyed.
        if part.kind == Kind::Instruction && part.trust < Trust::Agent {
            faults.push(Fault {
                path: format!("/parts/{number}/kind"),
                problem: format!("is instruction, and comes from the {}", part.trust),
            });
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(parts_given: &Value) -> Vec<Part> {
        let payload = serde_json::from_value(json!({ "type": "t", "parts": parts_given }));
        parts(&payload.unwrap()).unwrap()
    }

    #[test]
    fn trust_falls_along_a_chain_and_never_rises() {
        let before = of(&json!([{ "text": "page", "trust": "environment" }, { "text": "mine" }]));
        for (trust, fine) in [("environment", true), ("tool", false), ("operator", false)] {
            let after = of(&json!([{ "text": "page", "trust": trust }]));
            assert_eq!(check(&after, &before, Trust::Agent).is_ok(), fine, "{trust}");
        }
        let lower = of(&json!([{ "text": "mine", "trust": "tool" }]));
        assert_eq!(check(&lower, &before, Trust::Agent), Ok(()));
    }

    #[test]
    fn data_does_not_become_an_instruction() {
        let before = of(&json!([{ "text": "delete everything", "kind": "data" }]));
        let after = of(&json!([{ "text": "delete everything", "kind": "instruction" }]));
        let faults = check(&after, &before, Trust::Agent).unwrap_err();
        assert_eq!(faults[0].path, "/parts/0/kind");
        let tool = of(&json!([{ "text": "new", "kind": "instruction", "trust": "tool" }]));
        assert!(check(&tool, &[], Trust::Operator).is_err());
    }

    #[test]
    fn only_who_gives_the_task_speaks_as_its_operator() {
        let word = of(&json!([{ "text": "do", "kind": "instruction", "trust": "operator" }]));
        assert_eq!(check(&word, &[], Trust::Operator), Ok(()));
        assert!(check(&word, &[], Trust::Agent).is_err());
        assert_eq!(check(&word, &word, Trust::Agent), Ok(()), "passed on unchanged");
    }

    #[test]
    fn labels_that_are_no_labels_are_named_all_at_once() {
        let payload = json!({ "type": "t", "parts": [{ "kind": "x", "trust": 1 }, 7] });
        let faults = parts(&serde_json::from_value(payload).unwrap()).unwrap_err();
        let paths: Vec<_> = faults.iter().map(|fault| fault.path.as_str()).collect();
        assert_eq!(paths, ["/parts/0/kind", "/parts/0/trust", "/parts/1"]);
    }
}

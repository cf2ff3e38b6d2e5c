// SPDX-License-Identifier: Apache-2.0
//! Routes that are declared in a file: stages, and which one comes next, by what the one before
//! says. A chain that runs along one needs no agent that knows the whole of it.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::contract::FALLBACKS_MAX;
use crate::envelope::{Action, Fault, Payload, Target};
use crate::terms::{LEASE_MS_MIN, WORK_MS_MAX};

/// How many pipelines a file may have, and how many stages each.
pub const PIPELINES_MAX: usize = 1000;
pub const STAGES_MAX: usize = 200;
/// What a rule names instead of a stage, if the task is finished there.
pub const END: &str = "end";

/// A file of pipelines.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pipelines {
    pub pipelines: Vec<Pipeline>,
}

/// Named stages that a task goes through, and what follows each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pipeline {
    pub name: String,
    /// Rises with every change, so that a chain can tell by which one it runs.
    pub version: u32,
    /// The stage that a task begins with.
    pub first: String,
    pub stages: Vec<Stage>,
}

/// One step of a pipeline: who does it, and where the task goes from there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PipelineStage")]
pub struct Stage {
    pub name: String,
    pub to: Target,
    /// Who is asked next if that one cannot or will not do it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<Target>,
    /// What this stage must do, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
    /// How many tokens its work may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_tokens: Option<u32>,
    /// How long one attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How long it may wait to be claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_ms: Option<u64>,
    /// How many attempts may fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Whether somebody has to approve before it begins.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_approval: bool,
    /// What comes next: the first rule that fits. The last one must fit everything.
    pub next: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PipelineRule")]
pub struct Rule {
    /// When it fits; always without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<When>,
    #[serde(flatten)]
    pub then: Then,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PipelineWhen")]
pub struct When {
    /// One of these actions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub action: Vec<Action>,
    /// All of these members of the payload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub payload: Vec<Member>,
}

/// What a member of the payload must be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PipelineMember")]
pub struct Member {
    /// Where it is, as a JSON pointer.
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equals: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exists: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "PipelineThen")]
pub enum Then {
    /// This stage, or `end`.
    To(String),
    /// All of these stages at once, and then another.
    Fan(Fan),
}

/// Several stages at once, each with a task of its own below this one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PipelineFan")]
pub struct Fan {
    pub stages: Vec<String>,
    /// The stage that goes on with what they found.
    pub join: String,
    /// How many of them must have a result; all without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub need: Option<u32>,
    /// When it goes on in any case, with what there is by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
}

/// Where in a pipeline a handoff is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageRef {
    pub pipeline: String,
    pub version: u32,
    pub stage: String,
    /// Whether it is one of several at once, so that nothing follows from it alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub branch: bool,
}

/// What follows a stage.
#[derive(Debug, Clone, PartialEq)]
pub enum Next<'p> {
    End,
    Stage(&'p Stage),
    Fan { stages: Vec<&'p Stage>, join: &'p Stage, need: u32, deadline_ms: Option<u64> },
}

impl Pipelines {
    /// Reads a file. If there is something wrong with it, says everything that is.
    pub fn read(text: &str) -> Result<Self, Vec<Fault>> {
        let read: Self =
            serde_json::from_str(text).map_err(|error| vec![Fault::new("", error.to_string())])?;
        let faults = read.faults();
        if faults.is_empty() { Ok(read) } else { Err(faults) }
    }

    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Pipeline> {
        self.pipelines.iter().find(|pipeline| pipeline.name == name)
    }

    fn faults(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        if self.pipelines.len() > PIPELINES_MAX {
            let problem = format!("has {}, expected at most {PIPELINES_MAX}", self.pipelines.len());
            faults.push(Fault::new("/pipelines", problem));
        }
        let mut names = BTreeSet::new();
        for (number, pipeline) in self.pipelines.iter().enumerate() {
            let path = format!("/pipelines/{number}");
            if !names.insert(&pipeline.name) {
                faults.push(Fault::new(format!("{path}/name"), "is there already"));
            }
            pipeline.add_faults(&path, &mut faults);
        }
        faults
    }
}

impl Pipeline {
    #[must_use]
    pub fn stage(&self, name: &str) -> Option<&Stage> {
        self.stages.iter().find(|stage| stage.name == name)
    }

    #[must_use]
    pub fn first(&self) -> Option<&Stage> {
        self.stage(&self.first)
    }

    /// What follows a stage that ended with this result. Nothing if there is no such stage.
    #[must_use]
    pub fn next(&self, stage: &str, action: Action, payload: &Payload) -> Option<Next<'_>> {
        let rules = &self.stage(stage)?.next;
        let rule = rules.iter().find(|rule| rule.fits(action, payload))?;
        match &rule.then {
            Then::To(name) if name == END => Some(Next::End),
            Then::To(name) => Some(Next::Stage(self.stage(name)?)),
            Then::Fan(fan) => {
                let stages: Option<Vec<_>> = fan.stages.iter().map(|it| self.stage(it)).collect();
                let stages = stages?;
                let all = u32::try_from(stages.len()).unwrap_or(u32::MAX);
                Some(Next::Fan {
                    join: self.stage(&fan.join)?,
                    need: fan.need.unwrap_or(all),
                    deadline_ms: fan.deadline_ms,
                    stages,
                })
            }
        }
    }

    fn add_faults(&self, path: &str, faults: &mut Vec<Fault>) {
        let mut add = |at: String, problem: String| {
            faults.push(Fault::new(format!("{path}{at}"), problem));
        };
        if self.name.is_empty() || self.name.len() > 128 {
            add("/name".into(), "expected 1 to 128 bytes".into());
        }
        if self.stages.is_empty() || self.stages.len() > STAGES_MAX {
            add("/stages".into(), format!("expected 1 to {STAGES_MAX} stages"));
        }
        let unknown = |name: &str| {
            let known: Vec<_> = self.stages.iter().map(|stage| stage.name.as_str()).collect();
            format!("there is no stage {name:?}; there are {}", known.join(", "))
        };
        if self.first().is_none() {
            add("/first".into(), unknown(&self.first));
        }
        let mut names = BTreeSet::new();
        let mut reached: BTreeSet<&str> = [self.first.as_str()].into();
        for (number, stage) in self.stages.iter().enumerate() {
            let at = format!("/stages/{number}");
            if stage.name.is_empty() || stage.name == END {
                add(format!("{at}/name"), format!("{:?} cannot name a stage", stage.name));
            }
            if !names.insert(&stage.name) {
                add(format!("{at}/name"), "is there already".into());
            }
            if stage.fallbacks.len() > FALLBACKS_MAX {
                add(format!("{at}/fallbacks"), format!("expected at most {FALLBACKS_MAX}"));
            }
            for (name, ms) in [("timeout_ms", stage.timeout_ms), ("ack_ms", stage.ack_ms)] {
                if ms.is_some_and(|ms| !(LEASE_MS_MIN..=WORK_MS_MAX).contains(&ms)) {
                    let problem = format!("expected {LEASE_MS_MIN} to {WORK_MS_MAX}");
                    add(format!("{at}/{name}"), problem);
                }
            }
            if stage.attempts.is_some_and(|attempts| !(1..=100).contains(&attempts)) {
                add(format!("{at}/attempts"), "expected 1 to 100".into());
            }
            match stage.next.iter().position(|rule| rule.when.is_none()) {
                Some(all) if all + 1 == stage.next.len() => {}
                Some(all) => add(
                    format!("{at}/next/{}", all + 1),
                    "is never reached: the rule before it fits everything".into(),
                ),
                None => add(
                    format!("{at}/next"),
                    "the last rule must have no `when`, so that something always follows".into(),
                ),
            }
            for (number, rule) in stage.next.iter().enumerate() {
                let at = format!("{at}/next/{number}");
                let (named, join) = match &rule.then {
                    Then::To(name) => (vec![("to".to_owned(), name)], None),
                    Then::Fan(fan) => {
                        let each = fan.stages.iter().enumerate();
                        let named = each.map(|(n, name)| (format!("fan/stages/{n}"), name));
                        (named.collect(), Some(fan))
                    }
                };
                for (place, name) in named {
                    reached.insert(name);
                    if self.stage(name).is_none() && !(place == "to" && name == END) {
                        add(format!("{at}/{place}"), unknown(name));
                    }
                }
                if let Some(fan) = join {
                    reached.insert(&fan.join);
                    if self.stage(&fan.join).is_none() {
                        add(format!("{at}/fan/join"), unknown(&fan.join));
                    }
                    let all = u32::try_from(fan.stages.len()).unwrap_or(u32::MAX);
                    if !(2..=50).contains(&all) {
                        add(format!("{at}/fan/stages"), "expected 2 to 50 stages".into());
                    }
                    if fan.need.is_some_and(|need| !(1..=all).contains(&need)) {
                        add(format!("{at}/fan/need"), format!("expected 1 to {all}"));
                    }
                }
                for (number, member) in rule.members().enumerate() {
                    if let Err(problem) = member.check() {
                        add(format!("{at}/when/payload/{number}"), problem);
                    }
                }
            }
        }
        for (number, stage) in self.stages.iter().enumerate() {
            if !reached.contains(stage.name.as_str()) {
                add(format!("/stages/{number}"), "no rule leads here".into());
            }
        }
    }
}

impl Rule {
    fn members(&self) -> impl Iterator<Item = &Member> {
        self.when.iter().flat_map(|when| &when.payload)
    }

    fn fits(&self, action: Action, payload: &Payload) -> bool {
        let Some(when) = &self.when else { return true };
        (when.action.is_empty() || when.action.contains(&action))
            && when.payload.iter().all(|member| member.fits(payload))
    }
}

impl Member {
    fn check(&self) -> Result<(), String> {
        if !self.path.is_empty() && !self.path.starts_with('/') {
            return Err("path must be a JSON pointer, such as /verdict".into());
        }
        let asks = self.equals.is_some()
            || !self.one_of.is_empty()
            || self.at_least.is_some()
            || self.at_most.is_some()
            || self.exists.is_some();
        if asks {
            return Ok(());
        }
        Err("expected one of equals, one_of, at_least, at_most, exists".into())
    }

    fn fits(&self, payload: &Payload) -> bool {
        let whole = Value::Object(payload.members().clone());
        let found = whole.pointer(&self.path);
        let number = found.and_then(Value::as_f64);
        self.exists.is_none_or(|exists| exists == found.is_some())
            && self.equals.as_ref().is_none_or(|wanted| found == Some(wanted))
            && (self.one_of.is_empty() || found.is_some_and(|it| self.one_of.contains(it)))
            && self.at_least.is_none_or(|least| number.is_some_and(|it| it >= least))
            && self.at_most.is_none_or(|most| number.is_some_and(|it| it <= most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{"pipelines": [{
        "name": "endpoint", "version": 3, "first": "code",
        "stages": [
            {"name": "code", "to": {"agent": "coder"}, "next": [{"to": "review"}]},
            {"name": "review", "to": {"capability": "review"}, "fallbacks": [{"agent": "lead"}],
             "next": [
                {"when": {"action": ["changes_requested"]}, "to": "code"},
                {"when": {"payload": [{"path": "/risk", "at_least": 7}]}, "to": "end"},
                {"fan": {"stages": ["unit", "load"], "join": "report", "need": 1}}]},
            {"name": "unit", "to": {"agent": "tester"}, "next": [{"to": "end"}]},
            {"name": "load", "to": {"agent": "loader"}, "next": [{"to": "end"}]},
            {"name": "report", "to": {"agent": "writer"}, "next": [{"to": "end"}]}
        ]}]}"#;

    fn payload(text: &str) -> Payload {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn what_comes_next_depends_on_what_was_said() {
        let file = Pipelines::read(FILE).unwrap();
        let endpoint = file.get("endpoint").unwrap();
        let after = |stage: &str, action, said: &str| match endpoint
            .next(stage, action, &payload(said))
            .unwrap()
        {
            Next::End => "end".to_owned(),
            Next::Stage(stage) => stage.name.clone(),
            Next::Fan { stages, join, need, .. } => {
                let all: Vec<_> = stages.iter().map(|stage| stage.name.as_str()).collect();
                format!("{need} of {} then {}", all.join(" and "), join.name)
            }
        };
        let plain = r#"{"type": "review", "risk": 2}"#;
        assert_eq!(after("code", Action::Completed, plain), "review");
        assert_eq!(after("review", Action::ChangesRequested, plain), "code");
        assert_eq!(after("review", Action::Completed, r#"{"type": "review", "risk": 9}"#), "end");
        assert_eq!(after("review", Action::Completed, plain), "1 of unit and load then report");
        assert!(endpoint.next("nowhere", Action::Completed, &payload(plain)).is_none());
    }

    #[test]
    fn everything_that_is_wrong_with_a_file_is_named_at_once() {
        let bad = FILE
            .replace(r#""first": "code""#, r#""first": "cod""#)
            .replace(r#""join": "report", "need": 1"#, r#""join": "reprot", "need": 3"#)
            .replace(r#""at_least": 7"#, r#""at_least": null"#)
            .replace(
                r#"{"name": "load", "to": {"agent": "loader"}, "next": [{"to": "end"}]}"#,
                r#"{"name": "unit", "to": {"agent": "loader"}, "ack_ms": 5, "next": []}"#,
            );
        let faults = Pipelines::read(&bad).unwrap_err();
        let paths: Vec<_> = faults.iter().map(|fault| fault.path.as_str()).collect();
        for path in [
            "/pipelines/0/first",
            "/pipelines/0/stages/1/next/1/when/payload/0",
            "/pipelines/0/stages/1/next/2/fan/join",
            "/pipelines/0/stages/1/next/2/fan/need",
            "/pipelines/0/stages/1/next/2/fan/stages/1",
            "/pipelines/0/stages/3/name",
            "/pipelines/0/stages/3/ack_ms",
            "/pipelines/0/stages/3/next",
        ] {
            assert!(paths.contains(&path), "{path} is missing: {faults:#?}");
        }
        let unreadable = Pipelines::read("{\n \"pipelines\": [{}]}").unwrap_err();
        assert!(unreadable[0].problem.contains("line 2"), "{unreadable:?}");
    }
}

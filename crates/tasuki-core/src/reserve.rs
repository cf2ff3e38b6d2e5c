// SPDX-License-Identifier: Apache-2.0
//! Resources that a holder has for itself while its claim holds: paths, and patterns of paths. `*`
//! stands for anything within one step of a path, `**` for any number of steps.

use serde::{Deserialize, Serialize};

use crate::event::{Actor, Event, Sealed};
use crate::handoff::AttemptEnd;
use crate::ids::{AgentId, Fence, HandoffId, Position};

pub use crate::ids::Resource;

/// How many resources one handoff may have.
pub const RESOURCES_MAX: usize = 100;
/// How many steps a path may have.
const STEPS_MAX: usize = 64;

/// Files or other resources that the holder of a handoff has for itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reservation {
    pub handoff: HandoffId,
    pub agent: AgentId,
    /// The fence of the claim, which the resource's own guard can check.
    pub fence: Fence,
    /// None once it is over.
    pub resources: Vec<Resource>,
    /// The last event about it.
    #[serde(rename = "at")]
    pub last_pos: Position,
}

impl Resource {
    /// What is wrong with it, if something is.
    pub fn check(&self) -> Result<(), String> {
        let steps = self.steps();
        if steps.len() > STEPS_MAX {
            return Err(format!("has {} steps, expected at most {STEPS_MAX}", steps.len()));
        }
        match steps.iter().find(|step| matches!(**step, "" | "." | "..")) {
            Some(step) => Err(format!("{step:?} is no step of a path")),
            None => Ok(()),
        }
    }

    fn steps(&self) -> Vec<&str> {
        let path = self.as_str().strip_prefix('/').unwrap_or(self.as_str());
        let mut steps: Vec<_> = path.split('/').collect();
        // A directory is everything in it.
        if steps.last() == Some(&"") {
            steps.pop();
            steps.push("**");
        }
        steps
    }

    /// Whether there is a path that both stand for.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let (mine, theirs) = (self.steps(), other.steps());
        common(
            &mine,
            &theirs,
            |step| *step == "**",
            |one, two| {
                let (one, two): (Vec<_>, Vec<_>) = (one.chars().collect(), two.chars().collect());
                common(&one, &two, |c| *c == '*', |c, d| c == d)
            },
        )
    }
}

/// Whether two patterns have something in common. `wild` stands for any number of parts.
fn common<T>(
    one: &[T],
    two: &[T],
    wild: impl Fn(&T) -> bool,
    meets: impl Fn(&T, &T) -> bool,
) -> bool {
    // Row by row: whether the rest of `one` from here and the rest of `two` from there meet.
    let mut below = vec![false; two.len() + 1];
    for i in (0..=one.len()).rev() {
        let mut row = vec![false; two.len() + 1];
        for j in (0..=two.len()).rev() {
            row[j] = match (one.get(i), two.get(j)) {
                (None, None) => true,
                (Some(a), _) if wild(a) => below[j] || (j < two.len() && row[j + 1]),
                (_, Some(b)) if wild(b) => row[j + 1] || (i < one.len() && below[j]),
                (Some(a), Some(b)) => meets(a, b) && below[j + 1],
                (Some(_), None) | (None, Some(_)) => false,
            };
        }
        below = row;
    }
    below[0]
}

impl Reservation {
    fn begin(handoff: HandoffId, sealed: &Sealed) -> Option<Self> {
        let Event::Reserved { fence, .. } = sealed.record.event else { return None };
        let Actor::Agent(agent) = &sealed.record.actor else { return None };
        let (agent, last_pos) = (agent.clone(), sealed.position);
        Some(Self { handoff, agent, fence, resources: Vec::new(), last_pos })
    }
}

/// The reservation as it is after an event of its handoff, if that changes it.
#[must_use]
pub fn after(known: Option<&Reservation>, sealed: &Sealed) -> Option<Reservation> {
    let handoff = sealed.record.handoff_id?;
    let mut kept = match known {
        Some(known) => known.clone(),
        None => Reservation::begin(handoff, sealed)?,
    };
    match &sealed.record.event {
        Event::Reserved { fence, resources } => {
            kept.fence = *fence;
            for resource in resources {
                if !kept.resources.contains(resource) {
                    kept.resources.push(resource.clone());
                }
            }
        }
        Event::Unreserved { resources } => kept.resources.retain(|it| !resources.contains(it)),
        event => {
            let facts = event.facts();
            // Nobody holds the handoff after this. Whoever asks keeps what it has, until the answer
            // waited for it in vain.
            let ended = match facts.ends_attempt {
                Some(AttemptEnd::Asked) => false,
                Some(_) => true,
                None => matches!(event, Event::KeepEnded),
            };
            if !ended && !facts.ends_handoff {
                return None;
            }
            kept.resources.clear();
        }
    }
    kept.last_pos = sealed.position;
    Some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlap(one: &str, two: &str) -> bool {
        let (one, two): (Resource, Resource) = (one.parse().unwrap(), two.parse().unwrap());
        let there = one.overlaps(&two);
        assert_eq!(there, two.overlaps(&one), "it is the same the other way round");
        there
    }

    #[test]
    fn patterns_overlap_where_one_path_fits_both() {
        for (one, two) in [
            ("src/a.rs", "src/a.rs"),
            ("/src/a.rs", "src/a.rs"),
            ("src/*.rs", "src/a.rs"),
            ("src/a*", "src/*b"),
            ("src/**", "src/deep/er/a.rs"),
            ("src/", "src/a.rs"),
            ("**/a.rs", "src/**"),
            ("**", "anything"),
            ("a/**/z", "a/b/**"),
        ] {
            assert!(overlap(one, two), "{one} {two}");
        }
        for (one, two) in [
            ("src/a.rs", "src/b.rs"),
            ("src/*.rs", "src/deep/a.rs"),
            ("src/a*", "src/b*"),
            ("src/", "tests/a.rs"),
            ("a/**/z", "b/**"),
            ("src/*.rs", "src/*.py"),
        ] {
            assert!(!overlap(one, two), "{one} {two}");
        }
    }

    #[test]
    fn a_path_with_a_step_that_is_none_is_refused() {
        for bad in ["a//b", "../secret", "a/./b"] {
            assert!(bad.parse::<Resource>().unwrap().check().is_err(), "{bad}");
        }
        assert!("src/**/*.rs".parse::<Resource>().unwrap().check().is_ok());
    }
}

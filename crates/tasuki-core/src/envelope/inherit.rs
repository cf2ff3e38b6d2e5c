// SPDX-License-Identifier: Apache-2.0
//! How what binds a task gets from hop to hop. The broker carries it; a sender may restate it, add to
//! it, and lift what is its own to lift, but can neither drop nor reword anything.

use std::collections::HashSet;

use super::Fault;
use super::constraint::{self, CONSTRAINTS_MAX, Constraint, Stated};
use super::parts::{Decision, ENTRIES_MAX, Gap, Lifted, OpenDecision, Parts, Step};
use super::project::{ProjectRules, is_project, meant};
use super::said::{NewGap, Question, Said, TextOr};
use crate::canonical;
use crate::ids::{AgentId, Hash, Timestamp};

/// Who makes a hop, and when.
#[derive(Debug, Clone, Copy)]
pub struct Hand<'a> {
    pub from: &'a AgentId,
    /// Who decides about the task; without one, whoever begins it.
    pub coordinator: Option<&'a AgentId>,
    pub hop: u32,
    pub now: Timestamp,
    /// What the task's project says, if it is in one.
    pub project: Option<&'a ProjectRules>,
}

/// What a hop carries, and what its constraints say about its terms.
#[derive(Debug, Clone, PartialEq)]
pub struct Inherited {
    pub parts: Parts,
    pub budget_tokens: Option<u32>,
    pub deadline: Option<Timestamp>,
    /// The constraints that this hop lifts.
    pub lifts: Vec<Hash>,
}

/// What is wrong with a hop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Breach {
    /// The text cannot be what it should be.
    Malformed(Fault),
    /// A constraint that binds is not in the list.
    Dropped(Constraint),
    /// A constraint that binds has another text, kind or weight in the list.
    Altered { constraint: Constraint, path: String },
    /// Somebody lifts what is not its own.
    NotYours(Constraint),
    /// A key is decided already.
    Settled { key: String, by: Decision },
}

/// A constraint that was lifted since the envelope before was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiftedSince {
    pub id: Hash,
    pub by: AgentId,
    pub reason: String,
}

/// The parts of the envelope before, as far as they still hold: what was lifted since is lifted by
/// this hop.
#[must_use]
pub fn still_holds(mut before: Parts, since: &[LiftedSince], hop: u32) -> Parts {
    for lift in since {
        let Some(at) = before.constraints.iter().position(|one| one.id == lift.id) else {
            continue;
        };
        let text = before.constraints.remove(at).text;
        let LiftedSince { id, by, reason } = lift.clone();
        before.lifted.push(Lifted { id, text, by, reason, hop });
    }
    before
}

/// Whether somebody may lift a constraint: who issued it, and who decides about the task.
pub fn may_lift(
    parts: &Parts,
    id: Hash,
    by: &AgentId,
    coordinator: &AgentId,
) -> Result<(), Box<Breach>> {
    let Some(constraint) = parts.constraints.iter().find(|one| one.id == id) else {
        let problem = "is none of this task's constraints";
        return Err(Box::new(Breach::Malformed(Fault::new("/constraint", problem))));
    };
    let is_theirs = constraint.issuer == *by || coordinator == by;
    if is_theirs && !is_project(&constraint.issuer) {
        return Ok(());
    }
    Err(Box::new(Breach::NotYours(constraint.clone())))
}

/// Makes the parts of the next envelope. Every breach is named.
pub fn inherit(
    before: Option<&Parts>,
    said: &Said,
    hand: Hand<'_>,
) -> Result<Inherited, Vec<Breach>> {
    let none = Parts::default();
    let before = before.unwrap_or(&none);
    let mut faults = Vec::new();
    said.check(&mut faults);
    let mut breaches = Vec::new();
    let ledger = constraints(before, said, hand, &mut faults, &mut breaches);
    let (decisions, open_decisions) = decide(before, said, hand, &mut faults, &mut breaches);
    let gaps = gaps(before, said, hand, &mut faults);
    let mut history = before.history.clone();
    history.extend(said.history.iter().map(|step| Step {
        agent: hand.from.clone(),
        action: step.action.clone(),
        decision: step.decision.clone(),
        why: step.why.clone(),
        memory_id: step.memory_id.clone(),
        at: hand.now,
    }));
    let parts = Parts {
        summary: said.summary.clone(),
        ask: said.ask.clone(),
        state: said.state.clone(),
        tried: said.tried.clone(),
        assumptions: said.assumptions.clone(),
        alternatives: said.alternatives.clone(),
        deferred: said.deferred.clone(),
        constraints: ledger.constraints,
        // Nobody makes more room than there was before.
        prompt_tokens: match (before.prompt_tokens, ledger.budget_tokens) {
            (Some(before), Some(said)) => Some(before.min(said)),
            (before, said) => before.or(said),
        },
        lifted: ledger.lifted,
        decisions,
        open_decisions,
        history,
        gaps,
        memory_refs: said.memory_refs.clone(),
        context: said.context.clone(),
        context_manifest: said.context_manifest,
        reading: said.reading.clone(),
        expected_output: said.expected_output.clone(),
    };
    bounded(&parts, &mut faults);
    breaches.splice(0..0, faults.into_iter().map(Breach::Malformed));
    if !breaches.is_empty() {
        return Err(breaches);
    }
    let lifts = said.lift_constraints.iter().map(|lift| lift.id).collect();
    Ok(Inherited { budget_tokens: parts.prompt_tokens, parts, deadline: ledger.deadline, lifts })
}

/// Nothing inherited is ever cut off to fit: who adds too much is told so.
fn bounded(parts: &Parts, faults: &mut Vec<Fault>) {
    let counts = [
        ("constraints", parts.constraints.len(), CONSTRAINTS_MAX),
        ("lifted", parts.lifted.len(), CONSTRAINTS_MAX),
        ("decisions", parts.decisions.len(), ENTRIES_MAX),
        ("open_decisions", parts.open_decisions.len(), ENTRIES_MAX),
        ("history", parts.history.len(), ENTRIES_MAX),
        ("gaps", parts.gaps.len(), ENTRIES_MAX),
    ];
    for (name, count, max) in counts.into_iter().filter(|(_, count, max)| count > max) {
        let problem = format!("would have {count} entries with what is inherited, {max} at most");
        faults.push(Fault::new(format!("/{name}"), problem));
    }
}

#[derive(Default)]
struct Ledger {
    constraints: Vec<Constraint>,
    lifted: Vec<Lifted>,
    budget_tokens: Option<u32>,
    deadline: Option<Timestamp>,
}

fn constraints(
    before: &Parts,
    said: &Said,
    hand: Hand<'_>,
    faults: &mut Vec<Fault>,
    breaches: &mut Vec<Breach>,
) -> Ledger {
    let mut ledger = Ledger { lifted: before.lifted.clone(), ..Ledger::default() };
    let lifts = lifts(before, said, hand, faults, breaches);
    let mut restated = Vec::new();
    let mut added = Vec::new();
    let given = [("/constraints", &said.constraints), ("/add_constraints", &said.add_constraints)];
    for (path, value) in given {
        let Some(value) = value else { continue };
        let read = constraint::read(value, path, faults);
        ledger.budget_tokens = ledger.budget_tokens.or(read.budget_tokens);
        ledger.deadline = ledger.deadline.or(read.deadline);
        let whole = path == "/constraints" && value.is_array();
        let list = if whole { &mut restated } else { &mut added };
        list.extend(read.stated.into_iter().enumerate().map(|(n, s)| (format!("{path}/{n}"), s)));
    }
    let says_all = said.constraints.as_ref().is_some_and(serde_json::Value::is_array);
    let given_up = |constraint: &Constraint| {
        hand.project.is_some_and(|project| {
            let asks = project.constraints.iter().any(|one| one.id == constraint.id);
            project.known && constraint.issuer == project.issuer && !asks
        })
    };
    for constraint in &before.constraints {
        if lifts.contains(&constraint.id) {
            continue;
        }
        if given_up(constraint) {
            ledger.lifted.push(Lifted {
                id: constraint.id,
                text: constraint.text.clone(),
                by: constraint.issuer.clone(),
                reason: "the project does not ask for it any more".into(),
                hop: hand.hop,
            });
            continue;
        }
        let mut same = restated.iter().filter(|(_, stated)| means(stated, constraint)).peekable();
        if says_all && same.peek().is_none() {
            breaches.push(Breach::Dropped(constraint.clone()));
        }
        for (path, _) in same.chain(&added).filter(|(_, stated)| rewords(stated, constraint)) {
            let (constraint, path) = (constraint.clone(), path.clone());
            breaches.push(Breach::Altered { constraint, path });
        }
        ledger.constraints.push(constraint.clone());
    }
    // Who says all that binds may not have heard yet what was lifted meanwhile.
    let just_lifted = |stated: &Stated| {
        let since = before.lifted.iter().filter(|lifted| lifted.hop == hand.hop);
        let id = stated.id.or_else(|| stated.text.as_deref().map(constraint::id_of));
        since.into_iter().any(|lifted| Some(lifted.id) == id)
    };
    restated.retain(|(_, stated)| !just_lifted(stated));
    restated.retain(|(_, stated)| {
        !before.constraints.iter().any(|one| given_up(one) && means(stated, one))
    });
    let mut known: HashSet<Hash> = ledger.constraints.iter().map(|one| one.id).collect();
    let of_project = hand.project.map_or(&[][..], |project| &project.constraints);
    for constraint in of_project {
        if !known.insert(constraint.id) {
            continue;
        }
        for (path, _) in restated.iter().chain(&added).filter(|(_, it)| rewords(it, constraint)) {
            let (constraint, path) = (constraint.clone(), path.clone());
            breaches.push(Breach::Altered { constraint, path });
        }
        ledger.constraints.push(constraint.clone());
    }
    for (path, stated) in restated.iter().chain(&added) {
        match (stated.id, stated.adds(hand.from)) {
            (_, Some(new)) if known.contains(&new.id) => {}
            (Some(id), _) if known.contains(&id) => {}
            (Some(id), Some(new)) if id != new.id => {
                let problem = "is not the SHA-256 of the text";
                faults.push(Fault::new(format!("{path}/id"), problem));
            }
            (_, Some(new)) => {
                known.insert(new.id);
                ledger.constraints.push(new);
            }
            (Some(_), None) => {
                faults.push(Fault::new(format!("{path}/id"), "is none of this task's constraints"));
            }
            (None, None) => {}
        }
    }
    for lift in said.lift_constraints.iter().filter(|lift| lifts.contains(&lift.id)) {
        let text = before.constraints.iter().find(|one| one.id == lift.id);
        ledger.lifted.push(Lifted {
            id: lift.id,
            text: text.map(|one| one.text.clone()).unwrap_or_default(),
            by: hand.from.clone(),
            reason: lift.reason.clone(),
            hop: hand.hop,
        });
    }
    ledger
}

/// The constraints that are lifted rightly.
fn lifts(
    before: &Parts,
    said: &Said,
    hand: Hand<'_>,
    faults: &mut Vec<Fault>,
    breaches: &mut Vec<Breach>,
) -> HashSet<Hash> {
    let mut lifts = HashSet::new();
    for (number, lift) in said.lift_constraints.iter().enumerate() {
        let path = format!("/lift_constraints/{number}");
        if lift.reason.trim().is_empty() {
            faults.push(Fault::new(format!("{path}/reason"), "is empty"));
        }
        let Some(constraint) = before.constraints.iter().find(|one| one.id == lift.id) else {
            faults.push(Fault::new(format!("{path}/id"), "is none of this task's constraints"));
            continue;
        };
        let is_theirs = constraint.issuer == *hand.from || hand.coordinator == Some(hand.from);
        // What binds all of a project is not for one task to lift.
        if is_theirs && !is_project(&constraint.issuer) {
            lifts.insert(lift.id);
        } else {
            breaches.push(Breach::NotYours(constraint.clone()));
        }
    }
    lifts
}

/// Whether an entry speaks of a constraint.
fn means(stated: &Stated, constraint: &Constraint) -> bool {
    stated.id == Some(constraint.id)
        || stated.text.as_deref().is_some_and(|text| constraint::id_of(text) == constraint.id)
}

/// Whether an entry speaks of a constraint and says something else than it does.
fn rewords(stated: &Stated, constraint: &Constraint) -> bool {
    let other_text =
        stated.text.as_deref().is_some_and(|text| constraint::id_of(text) != constraint.id);
    let other_kind = stated.kind.is_some_and(|kind| kind != constraint.kind);
    let other_weight = stated.hard.is_some_and(|hard| hard != constraint.hard);
    means(stated, constraint) && (other_text || other_kind || other_weight)
}

fn decide(
    before: &Parts,
    said: &Said,
    hand: Hand<'_>,
    faults: &mut Vec<Fault>,
    breaches: &mut Vec<Breach>,
) -> (Vec<Decision>, Vec<OpenDecision>) {
    let mut decisions = before.decisions.clone();
    let mut open = before.open_decisions.clone();
    for (number, new) in said.decisions.iter().enumerate() {
        let path = format!("/decisions/{number}");
        let refuses = hand.project.filter(|project| project.refuses);
        let against = refuses.zip(new.key.as_deref()).and_then(|(project, key)| {
            project.against(key, &new.decision).map(|by| project.decided(by))
        });
        if let Some(by) = against {
            breaches.push(Breach::Settled { key: new.key.clone().unwrap_or_default(), by });
            continue;
        }
        let superseded = |id: Hash| decisions.iter().any(|known| known.supersedes == Some(id));
        let settled = new.key.as_deref().map(meant).and_then(|key| {
            let same = |known: &&Decision| known.key.as_deref().map(meant).as_ref() == Some(&key);
            decisions.iter().filter(same).find(|known| !superseded(known.id))
        });
        match (settled, new.supersedes) {
            (Some(settled), replaced) if replaced != Some(settled.id) => {
                // Saying it again is no contradiction.
                if settled.decision != new.decision {
                    let key = new.key.clone().unwrap_or_default();
                    breaches.push(Breach::Settled { key, by: settled.clone() });
                }
                continue;
            }
            (None, Some(replaced)) if !decisions.iter().any(|known| known.id == replaced) => {
                let problem = "is none of this task's decisions";
                faults.push(Fault::new(format!("{path}/supersedes"), problem));
                continue;
            }
            _ => {}
        }
        if let Some(resolved) = new.resolves {
            if !open.iter().any(|question| question.id == resolved) {
                let problem = "is none of this task's open decisions";
                faults.push(Fault::new(format!("{path}/resolves"), problem));
            }
            open.retain(|question| question.id != resolved);
        }
        let said = serde_json::json!({
            "key": new.key, "decision": new.decision, "by": hand.from, "hop": hand.hop,
        });
        decisions.push(Decision {
            id: canonical::address(&said),
            key: new.key.clone(),
            decision: new.decision.clone(),
            why: new.why.clone(),
            by: hand.from.clone(),
            hop: hand.hop,
            supersedes: new.supersedes,
            resolves: new.resolves,
        });
    }
    for question in &said.open_decisions {
        let Question { question, options } = match question {
            TextOr::Text(text) => Question { question: text.clone(), options: Vec::new() },
            TextOr::Full(question) => question.clone(),
        };
        let id = canonical::hash(question.as_bytes());
        if !open.iter().any(|known| known.id == id) {
            open.push(OpenDecision { id, question, options, by: hand.from.clone() });
        }
    }
    (decisions, open)
}

fn gaps(before: &Parts, said: &Said, hand: Hand<'_>, faults: &mut Vec<Fault>) -> Vec<Gap> {
    let mut gaps = before.gaps.clone();
    for (number, resolved) in said.resolved_gaps.iter().enumerate() {
        if !gaps.iter().any(|gap| gap.reference == *resolved) {
            let path = format!("/resolved_gaps/{number}");
            faults.push(Fault::new(path, "is none of this task's gaps"));
        }
        gaps.retain(|gap| gap.reference != *resolved);
    }
    for gap in &said.gaps {
        let NewGap { reference, reason } = match gap {
            TextOr::Text(text) => NewGap { reference: text.clone(), reason: None },
            TextOr::Full(gap) => gap.clone(),
        };
        if !gaps.iter().any(|known| known.reference == reference) {
            gaps.push(Gap { reference, reason, by: hand.from.clone(), hop: hand.hop });
        }
    }
    gaps
}

#[cfg(test)]
#[path = "inherit_tests.rs"]
mod tests;

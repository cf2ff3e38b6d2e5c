// SPDX-License-Identifier: Apache-2.0
//! What a holder leaves for others while it works: notes that it took of messages, pieces of work,
//! and the work itself, put back until a time.

use super::Case;
use crate::canonical::Body;
use crate::decide::{Decision, NewEvent, Outcome};
use crate::event::{Actor, Attached, Event};
use crate::handoff::talk::ARTIFACTS_MAX;
use crate::handoff::{Claim, Handoff};
use crate::ids::{ArtifactName, Timestamp};
use crate::quota;
use crate::refusal::Refusal;
use crate::talk::{ARTIFACT_BYTES_MAX, ARTIFACT_TYPE_BYTES_MAX, ARTIFACTS_BYTES_MAX};

/// A piece of work that is there already.
#[derive(Debug, Clone)]
pub struct Attach {
    pub name: ArtifactName,
    /// What it is, such as `text/markdown`.
    pub kind: String,
    pub artifact: Body,
}

/// Messages that were taken note of do not come again.
pub(super) fn acknowledge(handoff: &Handoff, claim: &Claim, up_to: u32) -> Decision {
    let new = handoff.talk.unacknowledged().map(|message| message.number);
    let last = new.filter(|number| *number <= up_to).max();
    let events = last.map(|up_to| {
        let event = Event::MessagesAcknowledged { fence: claim.fence, up_to };
        NewEvent::on(handoff, Actor::Agent(claim.agent.clone()), event)
    });
    let mut decision = Decision::of(events.into_iter().collect(), Outcome::of(handoff.id));
    decision.renewals.push(handoff.id);
    decision
}

pub(super) fn attach(
    handoff: &Handoff,
    claim: &Claim,
    attach: &Attach,
    case: &Case<'_>,
) -> Result<Decision, Refusal> {
    let invalid = |problem: String| Err(Refusal::InvalidArtifact(problem));
    let known = handoff.talk.artifact(&attach.name);
    // The reply was lost: it is there.
    if known.is_some_and(|known| known.artifact == attach.artifact.hash) {
        return Ok(Decision::unchanged(Outcome::repeated(handoff.id)));
    }
    if attach.kind.trim().is_empty() || attach.kind.len() > ARTIFACT_TYPE_BYTES_MAX {
        return invalid(format!("type has 1 to {ARTIFACT_TYPE_BYTES_MAX} bytes"));
    }
    if known.is_none() && handoff.talk.artifacts().len() >= ARTIFACTS_MAX {
        return invalid(format!("a handoff has at most {ARTIFACTS_MAX} artifacts"));
    }
    let bytes = attach.artifact.text().len() as u64;
    if bytes > ARTIFACT_BYTES_MAX {
        return invalid(format!("it has {bytes} bytes, at most {ARTIFACT_BYTES_MAX} are taken"));
    }
    let before = handoff.talk.said().map_or(0, |said| said.artifact_bytes);
    if before + bytes > ARTIFACTS_BYTES_MAX {
        return invalid(format!(
            "all artifacts of a handoff have at most {ARTIFACTS_BYTES_MAX} bytes, there are {before}"
        ));
    }
    quota::check(case.view, claim.agent.tenant(), 0, attach.artifact.text().len())?;
    let event = Event::Attached(Box::new(Attached {
        fence: claim.fence,
        name: attach.name.clone(),
        kind: attach.kind.clone(),
        version: known.map_or(0, |known| known.version) + 1,
        artifact: attach.artifact.hash,
        bytes,
    }));
    let event = NewEvent::on(handoff, Actor::Agent(claim.agent.clone()), event);
    Ok(Decision::of(vec![event.with(Some(attach.artifact.clone()))], Outcome::of(handoff.id)))
}

/// Whoever cannot go on now puts the work back until it can. That is no failure.
pub(super) fn put_back(
    handoff: &Handoff,
    claim: &Claim,
    until: Timestamp,
    reason: Option<&Body>,
) -> Result<Decision, Refusal> {
    if until >= handoff.expires_at {
        return Err(Refusal::DeadlinePassed);
    }
    let reason_hash = reason.map(|body| body.hash);
    let event = Event::PutBack { fence: claim.fence, until, reason: reason_hash };
    let event = NewEvent::on(handoff, Actor::Agent(claim.agent.clone()), event);
    Ok(Decision::of(vec![event.with(reason.cloned())], Outcome::of(handoff.id)))
}

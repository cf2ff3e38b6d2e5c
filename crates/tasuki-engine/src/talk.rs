// SPDX-License-Identifier: Apache-2.0
//! What is said about a handoff while it is worked on: a holder asks, somebody answers or sends a word,
//! and pieces of work are there before the result is.

mod brought;

use std::sync::Arc;

use serde_json::Value;
use tasuki_core::commands::{self, Act, Command};
use tasuki_core::handoff::StateName;
use tasuki_core::ids::ArtifactName;
use tasuki_core::registry::rules::Permission;
use tasuki_core::talk::{
    ANSWER_BYTES_MAX, AnswerReport, ArtifactReport, MessageReport, QUESTION_BYTES_MAX,
    QuestionReport,
};
use tasuki_core::{AgentId, Body, Handoff, HandoffId, Refusal, Timestamp};
use tasuki_protocol as wire;
use tasuki_store::{HandoffFilter, Needs, Sight};

use crate::desk::Desk;
use crate::engine::Engine;
use crate::error::{Error, invalid};
use crate::requests::{Granted, Holder, Proof};
use crate::sight::handoff_in;

pub use brought::Brought;

/// Who pays where nobody says who it is.
const OPEN_TENANT: &str = "";

impl Engine {
    /// Asks in the name of a holder, which gives its claim up until the answer is there.
    pub async fn ask(
        &self,
        id: HandoffId,
        asked: wire::Ask,
        by: Option<Holder>,
    ) -> Result<Arc<Handoff>, Error> {
        if asked.text.trim().is_empty() {
            return Err(invalid("text", "expected the question"));
        }
        let tenant = by.as_ref().map_or(OPEN_TENANT, |holder| holder.agent.tenant()).to_owned();
        let tenant = tenant.as_str();
        if let Some(schema) = &asked.schema {
            self.compiles(tenant, "schema", schema).await?;
        }
        let proof = Proof { claim_id: asked.claim_id, fence: asked.fence };
        let question = QuestionReport {
            handoff_id: id,
            kind: asked.kind,
            text: asked.text,
            details: asked.details,
            schema: asked.schema,
            default: asked.default,
        };
        if let Some(default) = &question.default {
            self.fits_question(tenant, &question, default).await?;
        }
        let has_default = question.default.is_some();
        let question = self.checked_body("question", &Body::of(&question), QUESTION_BYTES_MAX)?;
        let ask = commands::Ask {
            kind: asked.kind,
            question,
            answer_ms: asked.answer_ms,
            has_default,
            keep_ms: asked.keep_ms,
            by_id: asked.by_id,
        };
        self.one_handoff(Command::held(id, proof, by, Act::Ask(ask))).await
    }

    async fn fits_question(
        &self,
        tenant: &str,
        question: &QuestionReport,
        answer: &Value,
    ) -> Result<(), Error> {
        let Some(schema) = question.answer_schema() else { return Ok(()) };
        let faults = self.value_faults(tenant, &schema, answer).await?;
        if faults.is_empty() {
            return Ok(());
        }
        Err(Error::Payload { what: "what the question asks for".into(), faults })
    }

    /// A body that is not too long, and without what should not be stored.
    fn checked_body(&self, field: &'static str, body: &Body, max: usize) -> Result<Body, Error> {
        let bytes = body.text().len();
        if bytes > max {
            return Err(invalid(field, format!("has {bytes} bytes, at most {max} are allowed")));
        }
        for finding in self.check_secrets(body)? {
            tracing::warn!(path = %finding.path, kind = %finding.kind, "this looks like a secret");
        }
        Ok(body.clone())
    }

    /// The last question of a handoff, unless it was erased.
    async fn last_question(&self, handoff: &Handoff) -> Result<Option<QuestionReport>, Error> {
        let Some(question) = handoff.talk.questions().last() else { return Ok(None) };
        let sight = self.look(Needs::default().and_bodies([question.question_pos])).await?;
        let body = sight.body(question.question_pos);
        Ok(body.and_then(|body| serde_json::from_str(body.text()).ok()))
    }
}

impl Desk {
    pub async fn ask(&self, id: HandoffId, asked: wire::Ask) -> Result<Arc<Handoff>, Error> {
        self.may_report(id).await?;
        self.engine.ask(id, asked, self.holder(None)).await
    }

    /// Who speaks about a handoff from outside of the work, and whether that is its right whoever it
    /// is. To those who have no part in it the handoff is not there.
    fn speaks_about(
        &self,
        sight: &Sight,
        id: HandoffId,
        by: &AgentId,
    ) -> Result<(AgentId, bool), Error> {
        let by = self.caller.speaks_for(by)?;
        let handoff = handoff_in(sight, id)?;
        let by_right = self.caller.may(Permission::Approve, Some(handoff.to.name()));
        let seen = by_right || self.has_part(sight, handoff) || self.handoff_in(sight, id).is_ok();
        if handoff.from.tenant() != by.tenant() || !seen {
            return Err(Refusal::HandoffNotFound(id).into());
        }
        if !by_right {
            self.caller.must(Permission::Send, None)?;
        }
        Ok((by, by_right))
    }

    /// Whether the caller sent the work, or opened or decides about the task.
    fn has_part(&self, sight: &Sight, handoff: &Handoff) -> bool {
        let Some(me) = self.caller.agent() else { return false };
        let task = sight.task_of(handoff);
        handoff.from == *me
            || task.is_some_and(|task| task.opened_by == *me || task.decider() == me)
    }

    pub async fn answer_question(
        &self,
        id: HandoffId,
        asked: wire::AnswerQuestion,
    ) -> Result<Arc<Handoff>, Error> {
        let sight = self.engine.look(Needs::handoff(id)).await?;
        let (by, by_right) = self.speaks_about(&sight, id, &asked.by)?;
        let handoff = handoff_in(&sight, id)?;
        let open = handoff.talk.questions().last().map(|question| question.question);
        let question = asked.question.or(open).ok_or(Refusal::NoQuestion { handoff: id })?;
        if let Some(report) = self.engine.last_question(handoff).await? {
            let tenant = self.caller.tenant();
            self.engine.fits_question(tenant.as_str(), &report, &asked.answer).await?;
        }
        let answer = AnswerReport { handoff_id: id, question, answer: asked.answer };
        let answer = self.engine.checked_body("answer", &Body::of(&answer), ANSWER_BYTES_MAX)?;
        let answer = commands::Answer { handoff: id, question, answer, by_right };
        self.engine.one_handoff(Command::by(by, answer)).await
    }

    /// Open questions that the caller may see, newest handoff first.
    pub async fn questions(&self, wish: wire::ListQuestions) -> Result<wire::Questions, Error> {
        let max = wish.limit.unwrap_or(100);
        let filter = HandoffFilter {
            tenant: Some(self.caller.tenant()),
            state: Some(StateName::InputRequired),
            task: wish.task,
            from: wish.from_agent.map(|from| self.caller.agent_named(&from)),
            before: wish.before,
            max,
            ..HandoffFilter::default()
        };
        let found = self.engine.list_handoffs(filter).await?;
        let next = (found.len() == max).then(|| found.last().map(|last| last.id)).flatten();
        let tasks = found.iter().map(|handoff| handoff.task_id);
        let asked = found.iter().filter_map(|handoff| handoff.talk.questions().last());
        let needs = Needs::default()
            .and_tasks(tasks)
            .and_bodies(asked.map(|question| question.question_pos));
        let sight = self.engine.look(needs).await?;
        let now = self.now();
        let seen = found.iter().filter(|handoff| {
            self.has_part(&sight, handoff)
                || self.sees(handoff, sight.task_of(handoff).map(|task| &**task))
        });
        let questions = seen.filter_map(|handoff| brought::open_question(handoff, &sight, now));
        let wanted =
            |open: &wire::OpenQuestion| wish.kind.is_none_or(|kind| open.question.kind == kind);
        Ok(wire::Questions { questions: questions.filter(wanted).collect(), next })
    }

    pub async fn send_message(
        &self,
        id: HandoffId,
        asked: wire::SendMessage,
    ) -> Result<wire::HolderMessages, Error> {
        if asked.text.trim().is_empty() {
            return Err(invalid("text", "expected the message"));
        }
        let sight = self.engine.look(Needs::handoff(id)).await?;
        let (by, by_right) = self.speaks_about(&sight, id, &asked.by)?;
        let message = MessageReport { handoff_id: id, text: asked.text, details: asked.details };
        let max = self.engine.settings.note_bytes_max;
        let message = self.engine.checked_body("message", &Body::of(&message), max)?;
        let send = commands::SendMessage { handoff: id, message, by_right };
        let handoff = self.engine.one_handoff(Command::by(by, send)).await?;
        self.engine.messages_of(&handoff).await
    }

    /// The messages about a handoff, with who took note of them.
    pub async fn messages_to_holder(&self, id: HandoffId) -> Result<wire::HolderMessages, Error> {
        let sight = self.engine.look(Needs::handoff(id)).await?;
        let handoff = self.part_or_seen(&sight, id)?;
        self.engine.messages_of(handoff).await
    }

    fn part_or_seen<'s>(&self, sight: &'s Sight, id: HandoffId) -> Result<&'s Arc<Handoff>, Error> {
        let handoff = handoff_in(sight, id)?;
        if self.has_part(sight, handoff) { Ok(handoff) } else { self.handoff_in(sight, id) }
    }

    /// Extends the lease, and says which messages were taken note of.
    pub async fn heartbeat(&self, id: HandoffId, asked: wire::Heartbeat) -> Result<Granted, Error> {
        self.may_report(id).await?;
        let proof = Proof { claim_id: asked.claim_id, fence: asked.fence };
        self.engine.beat(id, proof, self.holder(None), asked.acknowledge).await
    }

    pub async fn attach(&self, id: HandoffId, asked: wire::Attach) -> Result<Arc<Handoff>, Error> {
        self.may_report(id).await?;
        let proof = Proof { claim_id: asked.claim_id, fence: asked.fence };
        let wire::Attach { name, kind, content, .. } = asked;
        let artifact = ArtifactReport { handoff_id: id, name: name.clone(), kind, content };
        let kind = artifact.kind.clone();
        let artifact = Body::of(&artifact);
        for finding in self.engine.check_secrets(&artifact)? {
            tracing::warn!(path = %finding.path, kind = %finding.kind, "this looks like a secret");
        }
        let act = Act::Attach(commands::Attach { name, kind, artifact });
        self.engine.one_handoff(Command::held(id, proof, self.holder(None), act)).await
    }

    /// What was attached to a handoff: all of it without content, or one piece with its content unless
    /// that was erased.
    pub async fn artifacts(
        &self,
        id: HandoffId,
        name: Option<&ArtifactName>,
    ) -> Result<wire::Artifacts, Error> {
        let sight = self.engine.look(Needs::handoff(id)).await?;
        let handoff = self.part_or_seen(&sight, id)?;
        let Some(name) = name else {
            let all = handoff.talk.artifacts().iter().map(|it| brought::artifact(it, None));
            return Ok(wire::Artifacts { artifacts: all.collect() });
        };
        let missing = || Refusal::ArtifactNotFound { handoff: id, name: name.clone() };
        let found = handoff.talk.artifact(name).ok_or_else(missing)?;
        let sight = self.engine.look(Needs::default().and_bodies([found.artifact_pos])).await?;
        let artifact = brought::artifact(found, sight.body(found.artifact_pos));
        Ok(wire::Artifacts { artifacts: vec![artifact] })
    }

    pub async fn put_back(
        &self,
        id: HandoffId,
        asked: wire::PutBack,
    ) -> Result<Arc<Handoff>, Error> {
        self.may_report(id).await?;
        let until = match until(asked.until, asked.for_ms, self.now())? {
            Some(until) if until > self.now() => until,
            Some(_) => return Err(invalid("until", "is past; release the work instead")),
            None => return Err(invalid("until", "expected until or for_ms")),
        };
        let reason = self.engine.note(asked.reason)?;
        let proof = Proof { claim_id: asked.claim_id, fence: asked.fence };
        let act = Act::PutBack { until, reason };
        self.engine.one_handoff(Command::held(id, proof, self.holder(None), act)).await
    }
}

/// A time that is given as such or as a span from now.
pub(crate) fn until(
    until: Option<Timestamp>,
    for_ms: Option<u64>,
    now: Timestamp,
) -> Result<Option<Timestamp>, Error> {
    match (until, for_ms) {
        (Some(_), Some(_)) => Err(invalid("until", "give until or for_ms, not both")),
        (until, None) => Ok(until),
        (None, Some(ms)) => Ok(Some(now.plus_ms(ms))),
    }
}

// SPDX-License-Identifier: Apache-2.0
//! What is said while work goes on.

use tasuki_core::HandoffId;
use tasuki_core::registry::rules::Permission;
use tasuki_protocol::{self as wire, Code};

use super::Right::{Has, Known};
use super::claims::HELD_ERRORS;
use super::{Done, Facts, Operation};
use super::{answer, brings, finishes, manages, reads, shown};
use crate::desk::Desk;

pub struct Ask;

impl Operation for Ask {
    const FACTS: Facts = finishes(
        "handoff_ask",
        Has(Permission::Complete),
        "Ask a question and wait for the answer without holding the claim",
    )
    .errors(&[
        HELD_ERRORS,
        &[Code::ReadBackNeeded, Code::InvalidTerms, Code::InvalidPayload, Code::SecretFound],
    ]);
    type On = HandoffId;
    type In = wire::Ask;
    type Out = wire::AskReply;

    async fn run(desk: &Desk, id: HandoffId, asked: wire::Ask) -> Done<wire::AskReply> {
        let handoff = desk.ask(id, asked).await?;
        answer(shown::asked(&handoff)?)
    }
}

pub struct Questions;

impl Operation for Questions {
    const FACTS: Facts = reads("question_list", Known, "List questions that wait for an answer")
        .errors(&[&[Code::InvalidRequest]]);
    type On = ();
    type In = wire::ListQuestions;
    type Out = wire::Questions;

    async fn run(desk: &Desk, (): (), asked: wire::ListQuestions) -> Done<wire::Questions> {
        answer(desk.questions(asked).await?)
    }
}

pub struct Answer;

impl Operation for Answer {
    const FACTS: Facts =
        manages("question_answer", Known, "Answer the question that a handoff waits with").errors(
            &[&[
                Code::HandoffNotFound,
                Code::NoQuestion,
                Code::AlreadyAnswered,
                Code::DeadlinePassed,
                Code::InvalidPayload,
                Code::SecretFound,
            ]],
        );
    type On = HandoffId;
    type In = wire::AnswerQuestion;
    type Out = wire::Moved;

    async fn run(desk: &Desk, id: HandoffId, asked: wire::AnswerQuestion) -> Done<wire::Moved> {
        let handoff = desk.answer_question(id, asked).await?;
        answer(shown::moved(&handoff))
    }
}

pub struct Message;

impl Operation for Message {
    const FACTS: Facts = brings(
        "handoff_message",
        Known,
        "Send a word to whoever holds the work; it comes with the next heartbeat",
    )
    .errors(&[&[
        Code::HandoffNotFound,
        Code::WrongState,
        Code::TooManyMessages,
        Code::SecretFound,
        Code::DiskFull,
    ]]);
    type On = HandoffId;
    type In = wire::SendMessage;
    type Out = wire::HolderMessages;

    async fn run(
        desk: &Desk,
        id: HandoffId,
        asked: wire::SendMessage,
    ) -> Done<wire::HolderMessages> {
        answer(desk.send_message(id, asked).await?)
    }
}

pub struct Messages;

impl Operation for Messages {
    const FACTS: Facts = reads(
        "handoff_messages",
        Known,
        "List the messages to a handoff's holders, and who took note of them",
    )
    .errors(&[&[Code::HandoffNotFound, Code::InvalidRequest]]);
    type On = HandoffId;
    type In = wire::Nothing;
    type Out = wire::HolderMessages;

    async fn run(desk: &Desk, id: HandoffId, _: wire::Nothing) -> Done<wire::HolderMessages> {
        answer(desk.messages_to_holder(id).await?)
    }
}

pub struct Attach;

impl Operation for Attach {
    const FACTS: Facts = finishes(
        "handoff_attach",
        Has(Permission::Complete),
        "Attach a piece of work that is there already",
    )
    .errors(&[
        HELD_ERRORS,
        &[Code::ReadBackNeeded, Code::InvalidArtifact, Code::SecretFound, Code::DiskFull],
    ]);
    type On = HandoffId;
    type In = wire::Attach;
    type Out = wire::Moved;

    async fn run(desk: &Desk, id: HandoffId, asked: wire::Attach) -> Done<wire::Moved> {
        let handoff = desk.attach(id, asked).await?;
        answer(shown::moved(&handoff))
    }
}

pub struct Artifacts;

impl Operation for Artifacts {
    const FACTS: Facts = reads(
        "handoff_artifacts",
        Known,
        "List what was attached to a handoff; with a name, that piece with its content",
    )
    .errors(&[&[Code::HandoffNotFound, Code::ArtifactNotFound, Code::InvalidRequest]]);
    type On = HandoffId;
    type In = wire::ListArtifacts;
    type Out = wire::Artifacts;

    async fn run(desk: &Desk, id: HandoffId, asked: wire::ListArtifacts) -> Done<wire::Artifacts> {
        answer(desk.artifacts(id, asked.name.as_ref()).await?)
    }
}

pub struct PutBack;

impl Operation for PutBack {
    const FACTS: Facts = finishes(
        "handoff_put_back",
        Has(Permission::Complete),
        "Give claimed work back until a time, without using up an attempt",
    )
    .errors(&[HELD_ERRORS, &[Code::DeadlinePassed]]);
    type On = HandoffId;
    type In = wire::PutBack;
    type Out = wire::Moved;

    async fn run(desk: &Desk, id: HandoffId, asked: wire::PutBack) -> Done<wire::Moved> {
        let handoff = desk.put_back(id, asked).await?;
        answer(shown::moved(&handoff))
    }
}

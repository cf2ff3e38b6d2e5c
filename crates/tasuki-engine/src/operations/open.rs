// SPDX-License-Identifier: Apache-2.0
//! What anybody can ask for, and is not asked who it is.

use std::future::Future;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tasuki_protocol::{self as wire, Code};

use super::{Answer, Done, Facts, Outcome, Right, answer, manages, reads, shown};
use crate::lobby::Lobby;

/// An operation without a caller. It has no desk, so it can do only what the lobby can.
pub trait Public: 'static {
    const FACTS: Facts;
    type In: DeserializeOwned + JsonSchema + Send + 'static;
    type Out: Serialize + JsonSchema;

    fn run(lobby: &Lobby, asked: Self::In) -> impl Future<Output = Done<Self::Out>> + Send;
}

/// The one that changes something: the token is the proof.
pub struct Join;

impl Public for Join {
    const FACTS: Facts = manages("agent_join", Right::Public, "Enroll a key with a join token")
        .errors(&[&[Code::TokenRefused, Code::KeyTaken, Code::TooManyKeys, Code::NameTaken]]);
    type In = wire::Join;
    type Out = wire::Agent;

    async fn run(lobby: &Lobby, asked: wire::Join) -> Done<wire::Agent> {
        let wire::Join { token, agent_id, key, proof } = asked;
        let enrolled = lobby.engine.join(&token, agent_id, key, &proof).await?;
        answer(shown::own_agent(&enrolled.agent))
    }
}

pub struct Health;

impl Public for Health {
    const FACTS: Facts = reads("health", Right::Public, "Whether the process is up");
    type In = wire::Nothing;
    type Out = wire::Health;

    async fn run(lobby: &Lobby, _: wire::Nothing) -> Done<wire::Health> {
        let broker_key_id = lobby.engine.broker_key().map(|key| key.id());
        answer(wire::Health { status: "ok".into(), reason: None, broker_key_id })
    }
}

pub struct Ready;

impl Public for Ready {
    const FACTS: Facts =
        reads("ready", Right::Public, "Whether a command sent now would be taken (503 if not)");
    type In = wire::Nothing;
    type Out = wire::Health;

    async fn run(lobby: &Lobby, _: wire::Nothing) -> Done<wire::Health> {
        match lobby.engine.not_ready() {
            None => {
                answer(wire::Health { status: "ready".into(), reason: None, broker_key_id: None })
            }
            reason => {
                let status = "not_ready".into();
                let said = wire::Health { status, reason, broker_key_id: None };
                Ok(Answer { said, outcome: Outcome::NotNow })
            }
        }
    }
}

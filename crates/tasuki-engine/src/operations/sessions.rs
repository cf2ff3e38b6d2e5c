// SPDX-License-Identifier: Apache-2.0
//! Sessions of people at the broker's pages: who asks, and a token of its own that ends soon.

use tasuki_protocol::{self as wire, Code};

use super::Right::Known;
use super::{Done, Facts, Operation, all, answer, manages, reads, shown};
use crate::desk::Desk;

pub struct Show;

impl Operation for Show {
    const FACTS: Facts =
        reads("session_show", Known, "Show who asks, and what it may ask for at all");
    type On = ();
    type In = wire::Nothing;
    type Out = wire::Session;

    async fn run(desk: &Desk, (): (), _: wire::Nothing) -> Done<wire::Session> {
        let offered = all().iter().filter(|entry| desk.is_offered(entry.facts.right));
        answer(wire::Session {
            agent_id: desk.caller().agent().cloned(),
            tenant: desk.caller().tenant(),
            authentication: desk.caller().agent().is_some(),
            operations: offered.map(|entry| entry.facts.name.to_owned()).collect(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            now: desk.now(),
        })
    }
}

pub struct Open;

impl Operation for Open {
    const FACTS: Facts = manages(
        "session_open",
        Known,
        "Open a session: a token with the rights of the one that is shown, which ends soon and with it",
    )
    .errors(&[&[Code::NotPermitted, Code::TokenTooDeep, Code::GrantTooWide]]);
    type On = ();
    type In = wire::OpenSession;
    type Out = wire::IssuedToken;

    async fn run(desk: &Desk, (): (), asked: wire::OpenSession) -> Done<wire::IssuedToken> {
        let issued = desk.open_session(asked.expires_in_ms).await?;
        answer(wire::IssuedToken { token: shown::token(&issued.token), text: issued.text })
    }
}

pub struct Close;

impl Operation for Close {
    const FACTS: Facts = manages("session_close", Known, "Close the session that asks for it")
        .errors(&[&[Code::NotPermitted]]);
    type On = ();
    type In = wire::Nothing;
    type Out = wire::Nothing;

    async fn run(desk: &Desk, (): (), _: wire::Nothing) -> Done<wire::Nothing> {
        desk.close_session().await?;
        answer(wire::Nothing {})
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Sessions of people: what a caller may ask for, and a token that ends soon, with the one that it was
//! opened with.

use std::sync::Arc;

use tasuki_core::Refusal;
use tasuki_core::commands::RegistryWish;
use tasuki_core::registry::Purpose;
use tasuki_core::registry::grant::ShownBy;

use super::Desk;
use crate::accounts::Issued;
use crate::caller::Caller;
use crate::error::{Error, denied, invalid};
use crate::operations::Right;

/// A working day. A session is opened again with the token, and by nothing that a page could read.
const SESSION_MS_MAX: u64 = 8 * 60 * 60 * 1000;

impl Desk {
    /// Whether the caller may ask for what needs this right at all. Towards which target is found out
    /// when it does.
    #[must_use]
    pub(crate) fn is_offered(&self, right: Right) -> bool {
        match right {
            Right::Public | Right::Known => true,
            Right::Has(permission) | Right::Each(permission) | Right::Decides(permission) => {
                self.caller.must_somewhere(permission).is_ok()
            }
            Right::LooksAfter(permission) => {
                self.caller.has_full_rights() || self.caller.must_somewhere(permission).is_ok()
            }
            Right::Operator => self.operates().is_ok(),
        }
    }

    /// A bearer token with just the rights of the caller. It ends by itself, or with what it was
    /// made from.
    pub async fn open_session(&self, expires_in_ms: Option<u64>) -> Result<Issued, Error> {
        let span = expires_in_ms.unwrap_or(SESSION_MS_MAX);
        if !(1..=SESSION_MS_MAX).contains(&span) {
            let expected = format!("is {span}, expected 1 to {SESSION_MS_MAX}");
            return Err(invalid("expires_in_ms", expected));
        }
        let Caller::Known(known) = &self.caller else {
            return Err(denied("nobody has to sign in at this broker".to_owned()));
        };
        let shown = match known.proof {
            ShownBy::Token(id) => self.engine.registry().tokens.get(&id).cloned(),
            ShownBy::Key(_) | ShownBy::Url => None,
        };
        // It does not outlive the token that it was opened with.
        let ends = shown.as_ref().and_then(|token| token.expires_at);
        let left = ends.map_or(span, |end| end.ms_after(self.now()).clamp(1, span));
        let (agent, rules) = (known.agent.clone(), known.session_rules());
        let (text, token) = self.engine.new_token(Purpose::Bearer, &agent, rules, Some(left));
        let id = token.id;
        self.engine.change(&self.caller, vec![RegistryWish::IssueToken(token)]).await?;
        let token = self.engine.registry().tokens.get(&id).cloned();
        let token = Arc::unwrap_or_clone(token.ok_or(Refusal::TokenNotFound(id))?);
        Ok(Issued { token, text })
    }

    /// Ends the token that the caller showed.
    pub async fn close_session(&self) -> Result<(), Error> {
        match self.caller.shown() {
            Some(ShownBy::Token(id)) => {
                self.engine.change(&self.caller, vec![RegistryWish::RevokeToken(id)]).await
            }
            Some(ShownBy::Key(_) | ShownBy::Url) | None => {
                Err(denied("there is no session to close".to_owned()))
            }
        }
    }
}

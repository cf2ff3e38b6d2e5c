// SPDX-License-Identifier: Apache-2.0
//! Nobody grants what it lacks. Whoever changes what others may do, by a rule, a key, an invitation
//! or a token, must be allowed all of it itself, and what it is denied those others are denied too.
//! Patterns are compared as patterns: `team-*` covers `team-a*` and `team-7`, and never `*`.

use serde::{Deserialize, Serialize};

use super::rules::{Effect, Permission, Rule};
use super::{Origin, Registry, Token};
use crate::ids::{AgentId, KeyId, Timestamp, TokenId};
use crate::refusal::Refusal;

/// How many tokens may have been made one from another, so that looking up a chain stays short.
pub const DEPTH_MAX: usize = 16;

/// How an agent showed who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ShownBy {
    Key(KeyId),
    Token(TokenId),
    /// By answering at the URL in its manifest, where the broker delivers.
    Url,
}

/// Somebody who changes what others may do.
pub struct Granter<'r> {
    pub agent: &'r AgentId,
    shown: Option<ShownBy>,
    /// What it may do itself: by its agent's rules, and by those of the token that it showed.
    layers: Vec<&'r [Rule]>,
}

impl<'r> Granter<'r> {
    #[must_use]
    pub fn new(known: &'r Registry, agent: &'r AgentId, shown: Option<ShownBy>) -> Self {
        let own = known.agents.get(agent).map_or(&[][..], |agent| &agent.rules);
        let mut layers = vec![own];
        if let Some(ShownBy::Token(id)) = shown {
            layers.push(known.tokens.get(&id).map_or(&[][..], |token| &token.rules));
        }
        Self { agent, shown, layers }
    }

    /// What it made something with.
    #[must_use]
    pub fn origin(&self) -> Option<Origin> {
        match self.shown? {
            ShownBy::Key(key) => Some(Origin::Key(key)),
            ShownBy::Token(token) => Some(Origin::Token(token)),
            ShownBy::Url => None,
        }
    }

    /// Whether it may itself do all that these rules allow.
    ///
    /// # Errors
    /// With the first thing that it may not do itself.
    pub fn covers(&self, rules: &[Rule]) -> Result<(), Refusal> {
        for layer in &self.layers {
            if let Some((permission, target)) = lacking(layer, rules) {
                let agent = self.agent.clone();
                return Err(Refusal::GrantTooWide { agent, permission, target });
            }
        }
        Ok(())
    }

    /// Rules with what the granter is denied itself.
    #[must_use]
    pub fn with_denials(&self, rules: &[Rule]) -> Vec<Rule> {
        let mut granted = rules.to_vec();
        let denials = self.layers.iter().flat_map(|layer| layer.iter());
        for denial in denials.filter(|rule| rule.effect == Effect::Deny) {
            if !granted.contains(denial) {
                granted.push(denial.clone());
            }
        }
        granted
    }

    /// Whether it may act as an agent that has these rules, by a new key.
    ///
    /// # Errors
    /// With the first thing that the agent may do and the granter may not.
    pub fn may_become(&self, agent: &AgentId, rules: &[Rule]) -> Result<(), Refusal> {
        if agent == self.agent { Ok(()) } else { self.gives_all(rules) }
    }

    /// Whether these rules, which stay as they are, allow nothing that it may not do: what it is
    /// denied they must deny, too.
    ///
    /// # Errors
    /// With the first thing that they allow and the granter may not do.
    pub fn gives_all(&self, rules: &[Rule]) -> Result<(), Refusal> {
        self.covers(rules)?;
        let denials = self.layers.iter().flat_map(|layer| layer.iter());
        for denial in denials.filter(|rule| rule.effect == Effect::Deny && !rules.contains(rule)) {
            let allowed = |permission: &&Permission| {
                rules.iter().any(|rule| rule.effect == Effect::Allow && rule.names(**permission))
            };
            // Of a denial of administering, operating is a part.
            let operates = denial.names(Permission::Operate).then_some(&Permission::Operate);
            if let Some(permission) = denial.permissions.iter().chain(operates).find(allowed) {
                let (agent, target) = (self.agent.clone(), denial.targets.join(","));
                return Err(Refusal::GrantTooWide { agent, permission: *permission, target });
            }
        }
        Ok(())
    }

    /// The rules of a bearer token for an agent. They are never wider than what its maker may do
    /// now: if more is wanted than the agent has, the token gets what the agent has now and not
    /// what it may get later.
    ///
    /// # Errors
    /// With the first thing that the token would allow and its maker may not do.
    pub fn bearer(
        &self,
        agent: &AgentId,
        has: &[Rule],
        wanted: &[Rule],
    ) -> Result<Vec<Rule>, Refusal> {
        // What the maker may hand on at most. A key of the agent itself is all that the agent is.
        let most: &[Rule] = match (agent == self.agent, self.layers.get(1)) {
            (true, None) => return Ok(wanted.to_vec()),
            (true, Some(token)) => token,
            (false, _) => has,
        };
        let refused = match self.covers_bearer(agent, wanted) {
            Ok(()) => return Ok(self.with_denials(wanted)),
            Err(refused) => refused,
        };
        if lacking(wanted, most).is_some() || self.covers_bearer(agent, most).is_err() {
            return Err(refused);
        }
        let denials = wanted.iter().filter(|rule| rule.effect == Effect::Deny).cloned();
        let clipped: Vec<_> = most.iter().cloned().chain(denials).collect();
        Ok(self.with_denials(&clipped))
    }

    /// For itself it hands on what its token allows; its agent's rules hold for both.
    fn covers_bearer(&self, agent: &AgentId, rules: &[Rule]) -> Result<(), Refusal> {
        if agent != self.agent {
            return self.covers(rules);
        }
        let Some(token) = self.layers.get(1) else { return Ok(()) };
        match lacking(token, rules) {
            None => Ok(()),
            Some((permission, target)) => {
                let agent = self.agent.clone();
                Err(Refusal::GrantTooWide { agent, permission, target })
            }
        }
    }

    /// Keys of its own are changed by who signs with one: a token that was stolen must not become
    /// its agent for good.
    ///
    /// # Errors
    /// If it is about its own keys and it showed a token, or another key than the one that counts
    /// here.
    pub fn may_change_keys(&self, agent: &AgentId, of: Option<KeyId>) -> Result<(), Refusal> {
        let by_key = match self.shown {
            Some(ShownBy::Key(key)) => of.is_none_or(|of| of == key),
            Some(ShownBy::Token(_) | ShownBy::Url) | None => false,
        };
        if agent != self.agent || by_key {
            return Ok(());
        }
        Err(Refusal::KeyNotShown(agent.clone()))
    }
}

/// What the wanted rules allow and these do not, if there is anything. Denials of neither count.
#[must_use]
pub fn lacking(own: &[Rule], wanted: &[Rule]) -> Option<(Permission, String)> {
    let allowances = wanted.iter().filter(|rule| rule.effect == Effect::Allow);
    for rule in allowances {
        for permission in &rule.permissions {
            for target in &rule.targets {
                let covered = |own: &Rule| {
                    own.effect == Effect::Allow
                        && own.names(*permission)
                        && any_covers(&own.targets, target)
                        && rule.projects.iter().all(|project| any_covers(&own.projects, project))
                };
                if !own.iter().any(covered) {
                    return Some((*permission, target.clone()));
                }
            }
        }
    }
    None
}

fn any_covers(patterns: &[String], wanted: &str) -> bool {
    patterns.iter().any(|pattern| covers(pattern, wanted))
}

/// Whether a pattern matches every name that another one matches. A star of the other is covered by
/// a star only. Sound, and complete but for odd pairs such as `?*` and `*?`, which are refused.
#[must_use]
pub fn covers(pattern: &str, wanted: &str) -> bool {
    if pattern == "*" || pattern == wanted {
        return true;
    }
    let (pattern, wanted) = (pattern.as_bytes(), wanted.as_bytes());
    let (mut p, mut w) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while w < wanted.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, w));
                p += 1;
            }
            Some(&c) if wanted[w] != b'*' && (c == b'?' || c == wanted[w]) => {
                p += 1;
                w += 1;
            }
            _ => match star {
                // The last star takes one more.
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    (p, w) = (at + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == b'*')
}

impl Registry {
    /// Whether a token counts: it does not once the token that it was made from was revoked.
    #[must_use]
    pub fn token_counts(&self, token: &Token, now: Timestamp) -> bool {
        token.counts(now) && self.revoked_at(token).is_none()
    }

    /// When a token was spent or revoked, by itself or with one that it was made from.
    #[must_use]
    pub fn revoked_at(&self, token: &Token) -> Option<Timestamp> {
        let ended = self.line(token).filter_map(|token| token.ended_at);
        ended.min()
    }

    /// How many tokens a token was made from, one from another.
    #[must_use]
    pub fn depth(&self, token: &Token) -> usize {
        self.line(token).count() - 1
    }

    /// A token, the one that it was made from, and so on.
    fn line<'r>(&'r self, token: &'r Token) -> impl Iterator<Item = &'r Token> {
        let before = |token: &&'r Token| match token.made_from {
            Some(Origin::Token(id)) => self.tokens.get(&id).map(|token| &**token),
            Some(Origin::Key(_)) | None => None,
        };
        std::iter::successors(Some(token), before).take(DEPTH_MAX + 2)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::registry::rules::matches;

    #[test]
    fn a_pattern_covers_what_is_no_wider() {
        for (pattern, wanted, expected) in [
            ("*", "*", true),
            ("*", "team-*", true),
            ("team-*", "*", false),
            ("team-*", "team-a*", true),
            ("team-*", "team-7", true),
            ("team-*", "team?*", false),
            ("team-?", "team-*", false),
            ("team-?", "team-?", true),
            ("team-?", "team-7", true),
            ("team-7", "team-?", false),
            ("*-db", "prod-*-db", true),
            ("*-db", "*", false),
            ("a*", "a", true),
            ("a", "a*", false),
        ] {
            assert_eq!(covers(pattern, wanted), expected, "{pattern} covers {wanted}");
        }
    }

    proptest! {
        #[test]
        fn what_a_covered_pattern_matches_the_covering_one_matches_too(
            pattern in "[ab*?]{0,5}", wanted in "[ab*?]{0,5}", name in "[ab]{0,5}",
        ) {
            if covers(&pattern, &wanted) && matches(&wanted, &name) {
                prop_assert!(matches(&pattern, &name), "{pattern} {wanted} {name}");
            }
        }
    }
}

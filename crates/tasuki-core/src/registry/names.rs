// SPDX-License-Identifier: Apache-2.0
//! Names that could be taken for others. The broker's own name and what looks like it are nobody's, nor
//! are those in which projects speak, and no new agent has a name that differs from a known one, or from
//! the first administrator's, in capitals only. Names that are there go on.

use super::Registry;
use crate::envelope::project::ISSUER;
use crate::ids::AgentId;
use crate::refusal::Refusal;

/// The agent in whose name the broker writes.
pub const BROKER: &str = "broker";
/// The first administrator, whom the broker makes itself.
pub const ADMINISTRATOR: &str = "admin";

/// Whether a name, without its tenant, is the broker's or looks like it, or is a project's.
#[must_use]
pub fn is_brokers(name: &str) -> bool {
    let start = name.get(..ISSUER.len());
    if start.is_some_and(|start| start.eq_ignore_ascii_case(ISSUER)) {
        return true;
    }
    let mut seen = name.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| {
        match byte.to_ascii_lowercase() {
            b'0' => b'o',
            b'3' => b'e',
            byte => byte,
        }
    });
    BROKER.bytes().all(|byte| seen.next() == Some(byte)) && seen.next().is_none()
}

/// Whether two names differ in capitals only.
#[must_use]
pub fn differ_in_case(one: &AgentId, other: &AgentId) -> bool {
    one != other && one.as_str().eq_ignore_ascii_case(other.as_str())
}

/// Refuses a new name that could be taken for another.
///
/// # Errors
/// With the name that it looks like.
pub fn check(known: &Registry, agent: &AgentId) -> Result<(), Refusal> {
    // Whoever took a name like it before must not keep the broker from having an administrator.
    if known.agents.contains_key(agent) || agent.as_str() == ADMINISTRATOR {
        return Ok(());
    }
    if is_brokers(agent.name()) || is_brokers(agent.tenant()) {
        return Err(Refusal::NameReserved(agent.clone()));
    }
    if agent.as_str().eq_ignore_ascii_case(ADMINISTRATOR)
        && let Ok(there) = ADMINISTRATOR.parse()
    {
        return Err(Refusal::NameTaken { agent: agent.clone(), there });
    }
    match known.agents.keys().find(|there| differ_in_case(there, agent)) {
        Some(there) => Err(Refusal::NameTaken { agent: agent.clone(), there: there.clone() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_called_like_the_administrator_from_before_keeps_nobody_out() {
        let there: AgentId = "Admin".parse().unwrap();
        let mut known = Registry::default();
        let agents = &mut std::sync::Arc::make_mut(&mut known.identity).agents;
        let since = crate::ids::Timestamp(0);
        agents.insert(there.clone(), super::super::Agent::new(&there, since).into());
        assert_eq!(check(&known, &ADMINISTRATOR.parse().unwrap()), Ok(()));
        assert_eq!(check(&known, &there), Ok(()));
        assert!(check(&known, &"ADMIN".parse().unwrap()).is_err());
        assert!(check(&Registry::default(), &there).is_err());
        assert!(check(&Registry::default(), &"acme/Admin".parse().unwrap()).is_ok());
    }

    #[test]
    fn the_brokers_name_is_seen_through() {
        for name in [
            "broker",
            "Broker",
            "BROKER",
            "br0ker",
            "brok3r",
            "b.r-o_k:e@r",
            "broker-",
            "Project:web",
        ] {
            assert!(is_brokers(name), "{name}");
        }
        for name in ["brokers", "broke", "stockbroker", "broker1", "", "brooker", "project-web"] {
            assert!(!is_brokers(name), "{name}");
        }
    }
}

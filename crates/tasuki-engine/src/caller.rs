// SPDX-License-Identifier: Apache-2.0
//! Who asks, as far as that is certain, and what it may ask for.

use std::sync::Arc;

use tasuki_core::ids::{Project, TenantId};
use tasuki_core::registry::Agent;
pub use tasuki_core::registry::grant::ShownBy;
use tasuki_core::registry::grant::lacking;
use tasuki_core::registry::names::is_brokers;
use tasuki_core::registry::rules::{self, Effect, Permission, Rule, Wish};
use tasuki_core::{AgentId, Capability, Refusal, Target};

use crate::error::{Error, denied};

/// Who a request is from.
#[derive(Debug, Clone)]
pub enum Caller {
    /// Somebody on this machine, where nobody has to say who it is: it may speak for any agent.
    Anyone,
    Known(Arc<Known>),
}

/// Somebody who has shown who it is.
#[derive(Debug)]
pub struct Known {
    pub agent: AgentId,
    pub tenant: TenantId,
    pub proof: ShownBy,
    /// What the agent may do, and what the token that it used allows at most.
    rules: Vec<Rule>,
    token_rules: Option<Vec<Rule>>,
}

impl Known {
    pub(crate) fn new(agent: &Agent, proof: ShownBy, token_rules: Option<Vec<Rule>>) -> Self {
        let tenant = agent.id.tenant().parse().unwrap_or_default();
        Self { agent: agent.id.clone(), tenant, proof, rules: agent.rules.clone(), token_rules }
    }

    /// Whether something is allowed towards everything, without any exception.
    fn allows_all(&self, permission: Permission) -> bool {
        let all = |rules: &[Rule]| rules::allow_all(rules, permission);
        all(&self.rules) && self.token_rules.as_deref().is_none_or(all)
    }

    /// Whether the caller acts with all that its agent has: by a key, or by a token that takes
    /// nothing away.
    fn has_full_rights(&self) -> bool {
        let takes_nothing = |token: &Vec<Rule>| {
            let mut denials = token.iter().filter(|rule| rule.effect == Effect::Deny);
            denials.all(|denial| self.rules.contains(denial))
                && lacking(token, &self.rules).is_none()
        };
        self.token_rules.as_ref().is_none_or(takes_nothing)
    }

    /// What another token of the same caller may do: just what this one may.
    pub(crate) fn session_rules(&self) -> Vec<Rule> {
        self.token_rules.as_ref().unwrap_or(&self.rules).clone()
    }

    fn allows(&self, wish: &Wish<'_>) -> bool {
        // A token narrows what its agent may do and never widens it.
        rules::allow(&self.rules, wish)
            && self.token_rules.as_ref().is_none_or(|rules| rules::allow(rules, wish))
    }
}

/// The agent in whose name the broker writes. What it tells must not be anybody else's.
pub(crate) use tasuki_core::registry::names::BROKER;

impl Caller {
    /// How the caller showed who it is, where it had to.
    pub(crate) fn shown(&self) -> Option<ShownBy> {
        match self {
            Self::Known(known) => Some(known.proof),
            Self::Anyone => None,
        }
    }

    /// The agent, where that is certain.
    #[must_use]
    pub fn agent(&self) -> Option<&AgentId> {
        match self {
            Self::Anyone => None,
            Self::Known(known) => Some(&known.agent),
        }
    }

    /// The tenant, from who it is and never from what it says.
    #[must_use]
    pub fn tenant(&self) -> TenantId {
        match self {
            Self::Anyone => TenantId::default(),
            Self::Known(known) => known.tenant.clone(),
        }
    }

    /// The agent that a request speaks for: the one it names, which must be the caller.
    pub(crate) fn speaks_for(&self, named: &AgentId) -> Result<AgentId, Error> {
        if named.name() == BROKER {
            return Err(denied(format!("{BROKER} is the broker's own name")));
        }
        match self {
            // Who is known has had its name for longer, or would not have got it.
            Self::Anyone if is_brokers(named.name()) => {
                Err(Refusal::NameReserved(named.clone()).into())
            }
            Self::Anyone if named.tenant() != tasuki_core::ids::TENANT_DEFAULT => {
                Err(denied(format!("{named} belongs to a tenant; it has to show who it is")))
            }
            Self::Anyone => Ok(named.clone()),
            Self::Known(known) if named.seen_from(&known.tenant) == known.agent => {
                Ok(known.agent.clone())
            }
            Self::Known(known) => {
                Err(denied(format!("the request is by {}, and speaks for {named}", known.agent)))
            }
        }
    }

    pub(crate) fn target(&self, target: &Target) -> Target {
        target.seen_from(&self.tenant())
    }

    pub(crate) fn capability(&self, capability: &Capability) -> Capability {
        capability.seen_from(&self.tenant())
    }

    pub(crate) fn agent_named(&self, agent: &AgentId) -> AgentId {
        agent.seen_from(&self.tenant())
    }

    #[must_use]
    pub fn may(&self, permission: Permission, target: Option<&str>) -> bool {
        match self {
            Self::Anyone => true,
            Self::Known(known) => known.allows(&Wish { permission, target, project: None }),
        }
    }

    /// Whether something is allowed towards a target in a project, or where there is none.
    #[must_use]
    pub fn may_to(&self, permission: Permission, target: &str, project: Option<&Project>) -> bool {
        let project = project.map(Project::as_str);
        let target = Some(target);
        match self {
            Self::Anyone => true,
            Self::Known(known) => known.allows(&Wish { permission, target, project }),
        }
    }

    pub(crate) fn must_to(
        &self,
        permission: Permission,
        target: &str,
        project: Option<&Project>,
    ) -> Result<(), Error> {
        match project {
            Some(project) if !self.may_to(permission, target, Some(project)) => {
                let who = self.agent().map_or_else(String::new, ToString::to_string);
                let what = format!("{who} may not {permission} towards {target}");
                Err(denied(format!("{what} in project {project}")))
            }
            Some(_) => Ok(()),
            None => self.must(permission, Some(target)),
        }
    }

    /// Whether it makes a difference to the caller which project something belongs to.
    pub(crate) fn is_project_scoped(&self) -> bool {
        let minds = |rules: &[Rule]| {
            rules.iter().any(|rule| !rule.projects.iter().any(|pattern| pattern == "*"))
        };
        match self {
            Self::Anyone => false,
            Self::Known(known) => {
                minds(&known.rules) || known.token_rules.as_deref().is_some_and(minds)
            }
        }
    }

    /// Whether something is allowed in a project, or where there is none.
    #[must_use]
    pub fn may_in(&self, permission: Permission, project: Option<&Project>) -> bool {
        let project = project.map(Project::as_str);
        match self {
            Self::Anyone => true,
            Self::Known(known) => known.allows(&Wish { permission, target: None, project }),
        }
    }

    pub(crate) fn must_in(
        &self,
        permission: Permission,
        project: Option<&Project>,
    ) -> Result<(), Error> {
        if self.may_in(permission, project) {
            return Ok(());
        }
        let who = self.agent().map_or_else(String::new, ToString::to_string);
        Err(denied(match project {
            Some(project) => format!("{who} may not {permission} in project {project}"),
            None => format!("{who} may not {permission} outside of projects"),
        }))
    }

    pub(crate) fn must(&self, permission: Permission, target: Option<&str>) -> Result<(), Error> {
        if self.may(permission, target) {
            return Ok(());
        }
        let who = self.agent().map_or_else(String::new, ToString::to_string);
        Err(denied(match target {
            Some(target) => format!("{who} may not {permission} towards {target}"),
            None => format!("{who} may not {permission}"),
        }))
    }

    /// Whether the caller has a permission at all, towards whatever it may be.
    pub(crate) fn must_somewhere(&self, permission: Permission) -> Result<(), Error> {
        let allows = |rules: &[Rule]| {
            let about = |rule: &Rule| rule.names(permission);
            rules.iter().any(|rule| rule.effect == Effect::Allow && about(rule))
        };
        match self {
            Self::Anyone => Ok(()),
            Self::Known(known)
                if allows(&known.rules) && known.token_rules.as_deref().is_none_or(allows) =>
            {
                Ok(())
            }
            Self::Known(known) => Err(denied(format!("{} may not {permission}", known.agent))),
        }
    }

    /// Whether this is somebody who looks after the whole broker and not one tenant only.
    pub(crate) fn is_operator(&self) -> bool {
        match self {
            Self::Anyone => true,
            Self::Known(known) => {
                known.tenant == TenantId::default() && known.allows_all(Permission::Administer)
            }
        }
    }

    /// Whether something is allowed towards everything, without any exception.
    pub(crate) fn may_all(&self, permission: Permission) -> bool {
        match self {
            Self::Anyone => true,
            Self::Known(known) => known.allows_all(permission),
        }
    }

    /// Whether the caller may look after itself. A token that was made narrower may not.
    pub(crate) fn has_full_rights(&self) -> bool {
        match self {
            Self::Anyone => true,
            Self::Known(known) => known.has_full_rights(),
        }
    }
}

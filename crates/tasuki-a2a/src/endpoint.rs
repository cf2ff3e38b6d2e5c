// SPDX-License-Identifier: Apache-2.0
//! Which agent somebody talks to: one by its address, or the broker itself, which finds one.

use tasuki_core::ids::{TENANT_DEFAULT, TenantId};
use tasuki_core::registry::Standing;
use tasuki_core::{AgentId, Target};
use tasuki_engine::{Desk, SeenAgent};
use tasuki_protocol::{Code, Problem};

use crate::fault::Fault;
use crate::story::Story;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Agent {
        tenant: Option<String>,
        name: String,
    },
    /// Whoever can.
    Broker,
}

impl Endpoint {
    /// Where it is on this broker.
    pub(crate) fn path(&self) -> String {
        match self {
            Self::Agent { tenant: None, name } => format!("/agents/{name}"),
            Self::Agent { tenant: Some(tenant), name } => {
                format!("/tenants/{tenant}/agents/{name}")
            }
            Self::Broker => "/a2a".into(),
        }
    }

    /// The address of an agent.
    pub(crate) fn of(agent: &AgentId) -> Self {
        let tenant = Some(agent.tenant()).filter(|tenant| *tenant != TENANT_DEFAULT);
        Self::Agent { tenant: tenant.map(str::to_owned), name: agent.name().to_owned() }
    }

    /// The one that a request means: at the broker's own address an agent is named as its tenant,
    /// which is how the protocol names one of several behind one address.
    pub(crate) fn meant(&self, tenant: Option<&str>) -> Result<Self, Fault> {
        match (self, tenant) {
            (_, None) => Ok(self.clone()),
            (Self::Broker, Some(name)) => Ok(match name.split_once('/') {
                Some((tenant, name)) => {
                    Self::Agent { tenant: Some(tenant.into()), name: name.into() }
                }
                None => Self::Agent { tenant: None, name: name.into() },
            }),
            (Self::Agent { name, .. }, Some(said)) if said == name => Ok(self.clone()),
            (Self::Agent { .. }, Some(_)) => {
                Err(Fault::params("tenant", "is not what the card of this agent says: nothing"))
            }
        }
    }

    /// The agent's whole name. One of another tenant is not there.
    fn agent(&self, own: &TenantId) -> Option<AgentId> {
        let Self::Agent { tenant, name } = self else { return None };
        let tenant = tenant.as_deref().unwrap_or(TENANT_DEFAULT);
        let whole = match tenant {
            TENANT_DEFAULT => name.clone(),
            tenant => format!("{tenant}/{name}"),
        };
        let plain = !name.contains('/');
        whole.parse().ok().filter(|_| plain && tenant == own.as_str())
    }

    /// The agent behind it, if the caller may know of it.
    pub(crate) async fn seen(&self, desk: &Desk) -> Result<Option<SeenAgent>, Fault> {
        if *self == Self::Broker {
            return Ok(None);
        }
        let none = || {
            Fault::from(Problem::new(
                Code::AgentNotFound,
                "no such agent is known here",
                "see /.well-known/ai-catalog.json for who is",
            ))
        };
        let id = self.agent(&desk.caller().tenant()).ok_or_else(none)?;
        match desk.reachable(&id).await {
            Ok(seen) if seen.agent.standing != Standing::Deregistered => Ok(Some(seen)),
            Ok(_) => Err(none()),
            Err(error) => {
                let fault = Fault::from(error);
                Err(if fault.code() == Some(Code::AgentNotFound) { none() } else { fault })
            }
        }
    }

    /// Whether this is where the task of a story was sent.
    pub(crate) fn has(&self, desk: &Desk, story: &Story) -> bool {
        match self.agent(&desk.caller().tenant()) {
            Some(agent) => story.to.contains(&Target::Agent(agent)),
            None => *self == Self::Broker,
        }
    }
}

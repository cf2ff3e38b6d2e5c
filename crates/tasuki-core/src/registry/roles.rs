// SPDX-License-Identifier: Apache-2.0
//! Roles: names for sets of permissions, and by way of those, of operations. They are defined here
//! and nowhere else; a rule that names a role is stored with the permissions that it stood for, so
//! that nobody's rights change with a new version of the broker.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rules::{Permission, Rule};
use crate::event::words;

/// A named set of permissions, such as `worker` or `reviewer`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Sees work and agents.
    Viewer,
    /// Sends, claims and completes work, and sees it.
    Worker,
    /// Decides about dead letters, approvals, questions and taints. The coordinator of a task is
    /// this for its own task, without any rule.
    Reviewer,
    /// Drains and resumes agents and sets their breakers.
    Operator,
    /// Everything.
    Admin,
}

words!(Role {
    Viewer = "viewer",
    Worker = "worker",
    Reviewer = "reviewer",
    Operator = "operator",
    Admin = "admin",
});

impl Role {
    #[must_use]
    pub fn permissions(self) -> BTreeSet<Permission> {
        use Permission as P;
        match self {
            Self::Viewer => [P::Read].into(),
            Self::Worker => [P::Send, P::Claim, P::Complete, P::Read].into(),
            Self::Reviewer => [P::Read, P::Redrive, P::Approve].into(),
            Self::Operator => [P::Read, P::Operate].into(),
            Self::Admin => P::ALL.iter().copied().collect(),
        }
    }

    /// The role everywhere.
    #[must_use]
    pub fn rule(self) -> Rule {
        Rule::allow(self.permissions())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_sees_and_admin_is_the_only_one_that_administers() {
        for role in Role::ALL {
            let permissions = role.permissions();
            assert!(permissions.contains(&Permission::Read), "{role}");
            let administers = permissions.contains(&Permission::Administer);
            assert_eq!(administers, *role == Role::Admin, "{role}");
        }
        assert_eq!(Role::Admin.rule(), Rule::everything());
    }

    #[test]
    fn a_rule_may_name_a_role_and_is_stored_with_what_it_stands_for() {
        let read = |text: &str| serde_json::from_str::<Rule>(text);
        let rule = read(r#"{"role":"reviewer","targets":["team-*"]}"#).unwrap();
        assert_eq!(rule.permissions, Role::Reviewer.permissions());
        assert_eq!(rule.targets, ["team-*"]);
        let more = read(r#"{"role":"viewer","permissions":["send"]}"#).unwrap();
        assert_eq!(more.permissions, [Permission::Send, Permission::Read].into());
        let stored = serde_json::to_string(&rule).unwrap();
        assert!(!stored.contains("role"), "{stored}");
        assert_eq!(read(&stored).unwrap(), rule);
        for wrong in [r#"{"role":"boss"}"#, r#"{"rôle":"viewer"}"#] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(read("{}").unwrap().fault().is_some());
    }
}

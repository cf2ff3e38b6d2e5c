// SPDX-License-Identifier: Apache-2.0
//! Who may do what. Everything is forbidden that no rule allows, and what one rule denies no other
//! allows.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::roles::Role;
use crate::event::words;

/// How many rules one agent or token may have.
pub const RULES_MAX: usize = 64;
/// How many patterns one rule may have, and how long one may be, in bytes.
const PATTERNS_MAX: usize = 64;
const PATTERN_BYTES_MAX: usize = 128;
/// How many patterns all rules of one agent or token may have: granting compares each with each.
pub const PATTERNS_TOTAL_MAX: usize = 512;

/// A kind of action that a rule allows or denies.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// Open tasks, offer work to a target, cancel what was offered.
    Send,
    /// Take work that waits for a target.
    Claim,
    /// Report on work that was claimed: progress, results, failures.
    Complete,
    /// See tasks, handoffs and agents that one is no part of, and follow the log.
    Read,
    WriteMemory,
    WriteSharedContext,
    /// Decide on dead letters.
    Redrive,
    /// Release or stop work that waits for approval, answer questions, clear taints.
    Approve,
    /// Drain and resume agents, set their breakers. Who administers an agent may do this, too.
    Operate,
    /// Enroll and revoke agents, issue tokens, set rules and quotas.
    Administer,
}

words!(Permission {
    Send = "send",
    Claim = "claim",
    Complete = "complete",
    Read = "read",
    WriteMemory = "write_memory",
    WriteSharedContext = "write_shared_context",
    Redrive = "redrive",
    Approve = "approve",
    Operate = "operate",
    Administer = "administer",
});

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    #[default]
    Allow,
    Deny,
}

/// Allows or denies something towards some targets and in some projects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Said")]
pub struct Rule {
    pub effect: Effect,
    pub permissions: BTreeSet<Permission>,
    pub targets: Vec<String>,
    pub projects: Vec<String>,
}

/// A rule as it is written: it may name a role for the permissions that the role has.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Rule")]
struct Said {
    #[serde(default)]
    effect: Effect,
    /// What is allowed or denied. There are some, or a role.
    #[serde(default)]
    permissions: BTreeSet<Permission>,
    /// Stands for the permissions of this role; answers have those.
    #[serde(default)]
    role: Option<Role>,
    /// Patterns of agents' and capabilities' names, without their tenant: `*` stands for any
    /// characters, `?` for one.
    #[serde(default = "anything")]
    targets: Vec<String>,
    /// Patterns of projects; a rule with other patterns than `*` says nothing about work that
    /// belongs to no project.
    #[serde(default = "anything")]
    projects: Vec<String>,
}

impl From<Said> for Rule {
    fn from(said: Said) -> Self {
        let Said { effect, mut permissions, role, targets, projects } = said;
        permissions.extend(role.map(Role::permissions).unwrap_or_default());
        Self { effect, permissions, targets, projects }
    }
}

impl JsonSchema for Rule {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        Said::schema_name()
    }

    fn schema_id() -> std::borrow::Cow<'static, str> {
        Said::schema_id()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Said::json_schema(generator)
    }
}

fn anything() -> Vec<String> {
    vec!["*".into()]
}

impl Rule {
    /// Allows something everywhere.
    #[must_use]
    pub fn allow(permissions: impl IntoIterator<Item = Permission>) -> Self {
        Self {
            effect: Effect::Allow,
            permissions: permissions.into_iter().collect(),
            targets: anything(),
            projects: anything(),
        }
    }

    /// Everything there is to permit.
    #[must_use]
    pub fn everything() -> Self {
        Self::allow(Permission::ALL.iter().copied())
    }

    /// Whether it says something about a permission. What is said about administering an agent is
    /// said about operating it.
    #[must_use]
    pub fn names(&self, permission: Permission) -> bool {
        let above = (permission == Permission::Operate).then_some(Permission::Administer);
        std::iter::once(permission).chain(above).any(|it| self.permissions.contains(&it))
    }

    fn is_about(&self, wish: &Wish<'_>) -> bool {
        let target = |pattern: &String| wish.target.is_none_or(|name| matches(pattern, name));
        let project = |pattern: &String| match wish.project {
            Some(name) => matches(pattern, name),
            None => pattern == "*",
        };
        self.names(wish.permission)
            && self.targets.iter().any(target)
            && self.projects.iter().any(project)
    }

    /// What is wrong with a rule, if anything.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        if self.permissions.is_empty() {
            return Some("permissions is empty, and there is no role".into());
        }
        for (name, patterns) in [("targets", &self.targets), ("projects", &self.projects)] {
            if patterns.is_empty() || patterns.len() > PATTERNS_MAX {
                return Some(format!("{name} needs 1 to {PATTERNS_MAX} patterns"));
            }
            let long = |p: &&String| p.is_empty() || p.len() > PATTERN_BYTES_MAX;
            if let Some(pattern) = patterns.iter().find(long) {
                let length = pattern.len();
                return Some(format!(
                    "{name} has a pattern of {length} bytes, expected 1 to {PATTERN_BYTES_MAX}"
                ));
            }
        }
        None
    }
}

/// What somebody wants to do. Without a target it is about none in particular: an allowance
/// towards any target will do, and so will a denial.
#[derive(Debug, Clone, Copy)]
pub struct Wish<'w> {
    pub permission: Permission,
    pub target: Option<&'w str>,
    pub project: Option<&'w str>,
}

/// Whether rules let a wish through. Deny wins.
#[must_use]
pub fn allow(rules: &[Rule], wish: &Wish<'_>) -> bool {
    let about = |effect: Effect| {
        rules.iter().any(|rule| {
            // Towards no target in particular, only a denial of all targets counts.
            let all = wish.target.is_some() || rule.targets.iter().any(|pattern| pattern == "*");
            rule.effect == effect && rule.is_about(wish) && (effect == Effect::Allow || all)
        })
    };
    !about(Effect::Deny) && about(Effect::Allow)
}

/// Whether rules allow something towards everything, without any exception.
#[must_use]
pub fn allow_all(rules: &[Rule], permission: Permission) -> bool {
    let about = |effect: Effect| {
        rules.iter().filter(move |rule| rule.effect == effect && rule.names(permission))
    };
    let is_any = |patterns: &[String]| patterns.iter().any(|pattern| pattern == "*");
    about(Effect::Deny).next().is_none()
        && about(Effect::Allow).any(|rule| is_any(&rule.targets) && is_any(&rule.projects))
}

/// Whether a pattern with `*` and `?` matches a whole name. Linear but for the last star.
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(&c) if c == b'?' || c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                // The last star takes one more.
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    (p, n) = (at + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(effect: Effect, permission: Permission, target: &str) -> Rule {
        Rule { effect, targets: vec![target.into()], ..Rule::allow([permission]) }
    }

    fn may(rules: &[Rule], permission: Permission, target: &str) -> bool {
        allow(rules, &Wish { permission, target: Some(target), project: None })
    }

    #[test]
    fn what_no_rule_allows_is_forbidden() {
        assert!(!may(&[], Permission::Send, "reviewer"));
        let rules = [rule(Effect::Allow, Permission::Send, "review*")];
        assert!(may(&rules, Permission::Send, "reviewer"));
        assert!(!may(&rules, Permission::Send, "tester"));
        assert!(!may(&rules, Permission::Claim, "reviewer"));
    }

    #[test]
    fn deny_wins_in_either_order() {
        let allow = rule(Effect::Allow, Permission::Send, "*");
        let deny = rule(Effect::Deny, Permission::Send, "prod-*");
        for rules in [[allow.clone(), deny.clone()], [deny, allow]] {
            assert!(!may(&rules, Permission::Send, "prod-deployer"));
            assert!(may(&rules, Permission::Send, "staging"));
        }
    }

    #[test]
    fn a_denial_of_one_target_does_not_deny_the_rest() {
        let rules = [
            rule(Effect::Allow, Permission::Read, "*"),
            rule(Effect::Deny, Permission::Read, "secret-*"),
        ];
        let any = Wish { permission: Permission::Read, target: None, project: None };
        assert!(allow(&rules, &any));
        let all = rule(Effect::Deny, Permission::Read, "*");
        assert!(!allow(&[rules[0].clone(), all], &any));
    }

    #[test]
    fn a_rule_for_a_project_says_nothing_about_work_of_none() {
        let rules = [Rule { projects: vec!["web-*".into()], ..Rule::allow([Permission::Send]) }];
        let wish = |project| Wish { permission: Permission::Send, target: Some("x"), project };
        assert!(allow(&rules, &wish(Some("web-shop"))));
        assert!(!allow(&rules, &wish(Some("ledger"))));
        assert!(!allow(&rules, &wish(None)));
    }

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("a*b", "ab", true),
            ("a*b", "a-x-b", true),
            ("a*b", "a-x-bc", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*a*a*", "banana", true),
            ("review", "reviewer", false),
            ("", "", true),
            ("", "x", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}

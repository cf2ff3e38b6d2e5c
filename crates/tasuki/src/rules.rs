// SPDX-License-Identifier: Apache-2.0
//! Rules on a command line: `send,claim:review*,test*` is what is permitted, and after the colon
//! towards whom. The broker's own JSON can say more, such as projects.

use std::collections::BTreeSet;

use clap::Args;
pub(crate) use tasuki_core::registry::roles::Role;
use tasuki_core::registry::rules::{Effect, Permission, Rule};

use crate::args::words;

const ROLES: &[&str] = &["viewer", "worker", "reviewer", "operator", "admin"];

/// What somebody may do.
#[derive(Args, Default)]
pub(crate) struct Rules {
    /// Allow this: permissions or roles, and after a colon patterns of names: send,claim:review*,test*
    #[arg(long, value_name = "RULE", value_parser = allowed)]
    allow: Vec<Rule>,
    /// Deny this, whatever else allows it
    #[arg(long, value_name = "RULE", value_parser = denied)]
    deny: Vec<Rule>,
    /// Allow what such an agent needs: a worker sends, claims, completes and reads
    #[arg(long, value_parser = words::<Role>(ROLES))]
    role: Option<Role>,
}

impl Rules {
    pub(crate) fn is_empty(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty() && self.role.is_none()
    }

    /// What was said. Where nothing is allowed, denials are taken from what is usual.
    pub(crate) fn or_usual(self, usual: Role) -> Vec<Rule> {
        let role = if self.allow.is_empty() { Some(self.role.unwrap_or(usual)) } else { self.role };
        Self { role, ..self }.exactly()
    }

    /// What was said and nothing else.
    pub(crate) fn exactly(self) -> Vec<Rule> {
        let role = self.role.map(Role::rule);
        role.into_iter().chain(self.allow).chain(self.deny).collect()
    }
}

/// A rule as [`Rules`] reads it, if it has no more to say than that.
pub(crate) fn text(rule: &Rule) -> String {
    let effect = match rule.effect {
        Effect::Allow => "allow",
        Effect::Deny => "deny",
    };
    let permissions: Vec<_> = rule.permissions.iter().map(|one| one.as_str()).collect();
    let mut text = format!("{effect} {}", permissions.join(","));
    if rule.targets != ["*"] {
        text += &format!(":{}", rule.targets.join(","));
    }
    if rule.projects != ["*"] {
        text += &format!(" in projects {}", rule.projects.join(","));
    }
    text
}

/// All rules, one on each line.
pub(crate) fn texts(rules: &[Rule]) -> String {
    if rules.is_empty() {
        return "nothing is allowed".into();
    }
    rules.iter().map(text).collect::<Vec<_>>().join("\n")
}

fn allowed(given: &str) -> Result<Rule, String> {
    parse(given, Effect::Allow)
}

fn denied(given: &str) -> Result<Rule, String> {
    parse(given, Effect::Deny)
}

fn parse(given: &str, effect: Effect) -> Result<Rule, String> {
    // Names may have colons, permissions have none: the first colon is ours.
    let (permissions, targets) = match given.split_once(':') {
        Some((permissions, targets)) => (permissions, targets),
        None => (given, "*"),
    };
    let mut named = BTreeSet::new();
    for word in permissions.split(',') {
        named.extend(permission(word.trim())?);
    }
    let targets = targets.split(',').map(|pattern| pattern.trim().to_owned()).collect();
    let rule = Rule { effect, targets, ..Rule::allow(named) };
    if let Some(pattern) = rule.targets.iter().find(|pattern| !could_match(pattern)) {
        return Err(match pattern.as_str() {
            "" => "a pattern is missing after the colon or a comma".into(),
            _ => format!("no name is like {pattern:?}: names are letters, digits or ._:@-"),
        });
    }
    rule.fault().map_or(Ok(rule), Err)
}

/// A permission, or what a role stands for.
fn permission(word: &str) -> Result<BTreeSet<Permission>, String> {
    if let Ok(role) = word.parse::<Role>() {
        return Ok(role.permissions());
    }
    let one = word.parse().map_err(|error| match word {
        "" => format!("a permission is missing; {error}"),
        _ => format!("{word:?} is no permission and no role; {error}"),
    })?;
    Ok([one].into())
}

/// A pattern that no name can match is a mistake: a rule that never applies looks like one that
/// protects. Patterns are of names without their tenant.
fn could_match(pattern: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._:@-*?".contains(&byte);
    !pattern.is_empty() && pattern.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(given: &str, expected: &str) {
        match allowed(given) {
            Ok(rule) => assert_eq!(text(&rule), expected),
            Err(error) => assert!(error.contains(expected), "{given}: {error}"),
        }
    }

    #[test]
    fn a_rule_is_permissions_and_perhaps_targets() {
        check("send", "allow send");
        check("send,claim:review*,test*", "allow send,claim:review*,test*");
        check("claim, send : a, b", "allow send,claim:a,b");
        check("write_memory:team:a?", "allow write_memory:team:a?");
        check("send:*", "allow send");
        check("reviewer:team-*", "allow read,redrive,approve:team-*");
        check("operator,send", "allow send,read,operate");
        assert_eq!(text(&denied("send:prod-*").unwrap()), "deny send:prod-*");
    }

    #[test]
    fn a_rule_that_says_nothing_or_could_never_apply_is_refused() {
        check("", "a permission is missing; expected one of send,");
        check("send,,claim", "a permission is missing");
        check("sned", "\"sned\" is no permission and no role; expected one of send, claim,");
        check("Send", "\"Send\" is no permission");
        check("send;claim", "\"send;claim\" is no permission");
        check(":review*", "a permission is missing");
        check("send:", "a pattern is missing");
        check("send:a,", "a pattern is missing");
        check("send:acme/*", "no name is like \"acme/*\"");
        check(&format!("send:{}", "a".repeat(129)), "129 bytes, expected 1 to 128");
    }

    #[test]
    fn a_text_reads_back_as_the_rule() {
        for given in ["send", "complete:a", "send,claim,read:x*,y"] {
            let rule = allowed(given).unwrap();
            let said = text(&rule);
            assert_eq!(allowed(said.strip_prefix("allow ").unwrap()), Ok(rule));
        }
    }

    #[test]
    fn denials_alone_are_taken_from_what_is_usual() {
        let only = |allow: &str, deny: &str| Rules {
            allow: (!allow.is_empty()).then(|| allowed(allow).unwrap()).into_iter().collect(),
            deny: vec![denied(deny).unwrap()],
            role: None,
        };
        let worker = Role::Worker.rule();
        let deny = denied("send:prod").unwrap();
        assert_eq!(only("", "send:prod").or_usual(Role::Worker), [worker, deny.clone()]);
        let claim = allowed("claim").unwrap();
        assert_eq!(only("claim", "send:prod").or_usual(Role::Worker), [claim, deny.clone()]);
        assert_eq!(only("", "send:prod").exactly(), [deny]);
    }

    #[test]
    fn the_roles_are_those_of_the_core() {
        let known: Vec<_> = Role::ALL.iter().map(|role| role.as_str()).collect();
        assert_eq!(ROLES, known);
    }

    #[test]
    fn rules_read_well() {
        assert_eq!(texts(&[]), "nothing is allowed");
        assert_eq!(text(&Role::Worker.rule()), "allow send,claim,complete,read");
        let projects = vec!["web-*".into()];
        let rule = Rule { projects, ..allowed("send:a").unwrap() };
        assert_eq!(text(&rule), "allow send:a in projects web-*");
    }
}

// SPDX-License-Identifier: Apache-2.0
//! What binds a task because of the project that it belongs to. It is read from the project's shared
//! context whenever an envelope is made, so nobody has to remember to say it, and nobody can take it
//! away from a task: who writes the context says what holds.

use unicode_normalization::UnicodeNormalization;

use super::constraint::{Constraint, ConstraintKind};
use crate::canonical;
use crate::document::{Context, context};
use crate::ids::{AgentId, Project, TENANT_DEFAULT, TenantId, Timestamp};

/// What the issuer of a project's constraints is called before its name. No agent may be called so.
pub const ISSUER: &str = "project:";

/// What a project says to all of its tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct ProjectRules {
    /// In whose name its constraints bind.
    pub issuer: AgentId,
    pub constraints: Vec<Constraint>,
    /// What it has decided, without what was superseded.
    pub settled: Vec<context::Decision>,
    pub state: context::ProjectState,
    /// When it said so last.
    pub stated_at: Timestamp,
    /// Whether its text is there. What was erased takes nothing back.
    pub known: bool,
    /// Whether an envelope that decides otherwise is refused, and not only told of.
    pub refuses: bool,
}

impl ProjectRules {
    /// What a context says. None if the names are too long to be put together.
    #[must_use]
    pub fn of(
        tenant: &TenantId,
        project: &Project,
        context: Option<&Context>,
        stated_at: Timestamp,
        refuses: bool,
    ) -> Option<Self> {
        let issuer = issuer(tenant, project)?;
        let none = Context::default();
        let (known, context) = (context.is_some(), context.unwrap_or(&none));
        let constraints = context.constraints.iter().map(|one| {
            let hard = one.kind != ConstraintKind::Preference;
            Constraint::new(one.text.clone(), one.kind, hard, issuer.clone())
        });
        let constraints = constraints.collect();
        let settled = context.decisions.iter().filter(|it| it.superseded_by.is_none());
        let (settled, state) = (settled.cloned().collect(), context.state.clone());
        Some(Self { issuer, constraints, settled, state, stated_at, known, refuses })
    }

    /// What the project has decided about a question, if that is something else.
    #[must_use]
    pub fn against(&self, key: &str, decision: &str) -> Option<&context::Decision> {
        let meant = meant(key);
        let same = |it: &&context::Decision| self::meant(it.key.as_str()) == meant;
        // The last one holds, should two have been logged under names that mean the same.
        let settled = self.settled.iter().rev().find(same)?;
        (self::meant(&settled.decision) != self::meant(decision)).then_some(settled)
    }

    /// A decision of the project as one of an envelope.
    #[must_use]
    pub fn decided(&self, by: &context::Decision) -> super::parts::Decision {
        super::parts::Decision {
            id: canonical::address(by),
            key: Some(by.key.to_string()),
            decision: by.decision.clone(),
            why: by.why.clone(),
            by: self.issuer.clone(),
            hop: 0,
            supersedes: None,
            resolves: None,
        }
    }
}

fn issuer(tenant: &TenantId, project: &Project) -> Option<AgentId> {
    let name = match tenant.as_str() {
        TENANT_DEFAULT => format!("{ISSUER}{project}"),
        tenant => format!("{tenant}/{ISSUER}{project}"),
    };
    name.parse().ok()
}

/// Whether a project said it and no agent.
#[must_use]
pub fn is_project(issuer: &AgentId) -> bool {
    issuer.name().starts_with(ISSUER)
}

/// A text as people mean it: capitals, widths, and what stands between words make no difference.
#[must_use]
pub fn meant(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let plain = text.nfkc().flat_map(char::to_lowercase);
    for c in plain {
        let c = if matches!(c, '_' | '-' | '.' | '/' | ':') || c.is_whitespace() { ' ' } else { c };
        if c != ' ' || !(out.is_empty() || out.ends_with(' ')) {
            out.push(c);
        }
    }
    out.truncate(out.trim_end().len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(decisions: &[(&str, &str)]) -> ProjectRules {
        let mut context = Context::default();
        for (number, (key, decision)) in (1..).zip(decisions) {
            context.log(context::Decision {
                number,
                key: key.parse().unwrap(),
                decision: (*decision).into(),
                why: None,
                by: "lead".parse().unwrap(),
                at: Timestamp(0),
                supersedes: None,
                superseded_by: None,
            });
        }
        let project = "web".parse().unwrap();
        ProjectRules::of(&TenantId::default(), &project, Some(&context), Timestamp(0), true)
            .unwrap()
    }

    #[test]
    fn keys_are_compared_as_people_mean_them() {
        let rules = rules(&[("Database Engine", "PostgreSQL")]);
        for key in
            ["database engine", "Database-Engine", " DATABASE_engine ", "database\u{a0}engine"]
        {
            assert!(rules.against(key, "SQLite").is_some(), "{key}");
            assert!(rules.against(key, "postgresql").is_none(), "{key}: it says the same");
        }
        assert!(rules.against("database", "SQLite").is_none(), "another question");
    }

    #[test]
    fn a_tenants_project_is_not_that_of_another() {
        let project: Project = "web".parse().unwrap();
        let of = |tenant: &str| issuer(&tenant.parse().unwrap(), &project).unwrap();
        assert_eq!(of("default").as_str(), "project:web");
        assert_eq!(of("acme").as_str(), "acme/project:web");
        assert!(is_project(&of("acme")) && !is_project(&"projector".parse().unwrap()));
    }
}

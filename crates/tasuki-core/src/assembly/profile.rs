// SPDX-License-Identifier: Apache-2.0
//! What each role wants to see. A profile raises, lowers or leaves out items by kind and tag, and
//! adds words to what items are held against. Profiles are data that a project may replace.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::item::Item;
use crate::ids::{Malformed, NAME_BYTES_MAX};

/// How many profiles a set may have, and how many words each list in one.
pub const PROFILES_MAX: usize = 100;
pub const WORDS_MAX: usize = 100;

static STANDARD: LazyLock<Profiles> = LazyLock::new(|| {
    Profiles::from_json(include_str!("profiles.json")).expect("a test reads the file")
});

/// Profiles by the name of the role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Profiles(BTreeMap<String, Profile>);

/// What one role wants to see.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Words that items are held against, beside those of the ask and the intent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub terms: Vec<String>,
    #[serde(default)]
    pub raise: Selection,
    #[serde(default)]
    pub lower: Selection,
    /// Never passed, unless pinned.
    #[serde(default)]
    pub leave_out: Selection,
}

/// Items of any of these kinds, or with any of these tags.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Selection {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

impl Profiles {
    /// The profiles that are there if a project declares none: coder, reviewer, tester, architect.
    #[must_use]
    pub fn standard() -> &'static Self {
        &STANDARD
    }

    /// Reads profiles from JSON; says where and why a text is none.
    pub fn from_json(text: &str) -> Result<Self, Malformed> {
        let profiles: Self =
            serde_json::from_str(text).map_err(|error| Malformed(error.to_string()))?;
        profiles.check()?;
        Ok(profiles)
    }

    /// Whether profiles that were read in some other way are within bounds.
    pub fn check(&self) -> Result<(), Malformed> {
        if self.0.len() > PROFILES_MAX {
            return Err(Malformed(format!("expected at most {PROFILES_MAX} profiles")));
        }
        for (role, profile) in &self.0 {
            let lists = [
                ("terms", &profile.terms),
                ("raise.kinds", &profile.raise.kinds),
                ("raise.tags", &profile.raise.tags),
                ("lower.kinds", &profile.lower.kinds),
                ("lower.tags", &profile.lower.tags),
                ("leave_out.kinds", &profile.leave_out.kinds),
                ("leave_out.tags", &profile.leave_out.tags),
            ];
            for (path, words) in lists {
                if words.len() > WORDS_MAX {
                    return Err(Malformed(format!(
                        "{role}.{path}: expected at most {WORDS_MAX} words"
                    )));
                }
                if let Some(at) = words.iter().position(|word| !fits(word)) {
                    return Err(Malformed(format!(
                        "{role}.{path}[{at}]: expected 1 to {NAME_BYTES_MAX} bytes"
                    )));
                }
            }
            if !fits(role) {
                return Err(Malformed(format!(
                    "expected names of roles with 1 to {NAME_BYTES_MAX} bytes"
                )));
            }
        }
        Ok(())
    }

    /// The profile of a role, if it has one.
    #[must_use]
    pub fn of(&self, role: &str) -> Option<&Profile> {
        self.0.get(role)
    }
}

fn fits(word: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&word.len())
}

impl Profile {
    /// How a role sees an item; what is left out stays out, whatever raises it.
    pub(super) fn view(&self, item: &Item) -> Viewed {
        if self.leave_out.holds(item) {
            return Viewed::LeftOut;
        }
        match (self.raise.holds(item), self.lower.holds(item)) {
            (true, false) => Viewed::Raised,
            (false, true) => Viewed::Lowered,
            (true, true) | (false, false) => Viewed::AsItIs,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Viewed {
    LeftOut,
    Lowered,
    AsItIs,
    Raised,
}

impl Selection {
    fn holds(&self, item: &Item) -> bool {
        self.kinds.contains(&item.kind) || item.tags.iter().any(|tag| self.tags.contains(tag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_profiles_can_be_read() {
        for role in ["coder", "reviewer", "tester", "architect"] {
            assert!(Profiles::standard().of(role).is_some(), "{role}");
        }
    }

    #[test]
    fn a_fault_in_a_profile_is_named_with_its_place() {
        let fault = |text: &str| Profiles::from_json(text).unwrap_err().0;
        assert!(fault(r#"{"coder": {"rise": {}}}"#).contains("unknown field `rise`"));
        assert!(fault("{\"coder\": {\n\"terms\": 5}}").contains("line 2"));
        assert_eq!(
            fault(r#"{"coder": {"raise": {"tags": ["ok", ""]}}}"#),
            "coder.raise.tags[1]: expected 1 to 128 bytes"
        );
    }
}

// SPDX-License-Identifier: Apache-2.0
//! What each role wants to see. A profile raises, lowers or leaves out items by kind and tag, and
//! adds words to what items are held against. Profiles are data that a project may replace.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::item::Item;
use crate::canonical;
use crate::envelope::Fault;
use crate::ids::NAME_BYTES_MAX;

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

/// What receivers of one role want to see, and what they do not.
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

    /// Reads profiles from JSON. Every fault is named with its place.
    pub fn from_json(text: &str) -> Result<Self, Vec<Fault>> {
        let value = canonical::parse(text.as_bytes())
            .map_err(|error| vec![Fault::new("", error.to_string())])?;
        let mut faults = Vec::new();
        let profiles = read(&value, &mut faults);
        if faults.is_empty() { Ok(profiles) } else { Err(faults) }
    }

    /// The standard profiles, with these in the place of those of the same role.
    #[must_use]
    pub fn over_standard(self) -> Self {
        let mut all = Self::standard().clone();
        all.0.extend(self.0);
        all
    }

    /// The profile of a role, if it has one.
    #[must_use]
    pub fn of(&self, role: &str) -> Option<&Profile> {
        self.0.get(role)
    }
}

fn read(value: &Value, faults: &mut Vec<Fault>) -> Profiles {
    let mut profiles = BTreeMap::new();
    let roles = members(value, "", faults);
    if roles.len() > PROFILES_MAX {
        faults.push(Fault::new("", format!("expected at most {PROFILES_MAX} roles")));
    }
    for (role, value) in roles {
        let path = format!("/{}", escaped(role));
        if !fits(role) {
            let problem = format!("expected the name of a role of 1 to {NAME_BYTES_MAX} bytes");
            faults.push(Fault::new(&path, problem));
        }
        let mut profile = Profile::default();
        for (name, value) in members(value, &path, faults) {
            let path = format!("{path}/{}", escaped(name));
            match name.as_str() {
                "terms" => profile.terms = words(value, &path, faults),
                "raise" => profile.raise = selection(value, &path, faults),
                "lower" => profile.lower = selection(value, &path, faults),
                "leave_out" => profile.leave_out = selection(value, &path, faults),
                _ => {
                    let problem = "is not known; expected terms, raise, lower or leave_out";
                    faults.push(Fault::new(path, problem));
                }
            }
        }
        profiles.insert(role.clone(), profile);
    }
    Profiles(profiles)
}

fn selection(value: &Value, path: &str, faults: &mut Vec<Fault>) -> Selection {
    let mut selection = Selection::default();
    for (name, value) in members(value, path, faults) {
        let path = format!("{path}/{}", escaped(name));
        match name.as_str() {
            "kinds" => selection.kinds = words(value, &path, faults),
            "tags" => selection.tags = words(value, &path, faults),
            _ => faults.push(Fault::new(path, "is not known; expected kinds or tags")),
        }
    }
    selection
}

fn members<'v>(
    value: &'v Value,
    path: &str,
    faults: &mut Vec<Fault>,
) -> Vec<(&'v String, &'v Value)> {
    if let Value::Object(members) = value {
        return members.iter().collect();
    }
    faults.push(Fault::new(path, "expected an object"));
    Vec::new()
}

fn words(value: &Value, path: &str, faults: &mut Vec<Fault>) -> Vec<String> {
    let Value::Array(list) = value else {
        faults.push(Fault::new(path, "expected a list of words"));
        return Vec::new();
    };
    if list.len() > WORDS_MAX {
        faults.push(Fault::new(path, format!("expected at most {WORDS_MAX} words")));
    }
    let mut words = Vec::new();
    for (at, word) in list.iter().enumerate() {
        match word {
            Value::String(word) if fits(word) => words.push(word.clone()),
            _ => {
                let problem = format!("expected a word of 1 to {NAME_BYTES_MAX} bytes");
                faults.push(Fault::new(format!("{path}/{at}"), problem));
            }
        }
    }
    words
}

/// A name in a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
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
    fn every_fault_in_profiles_is_named_with_its_place() {
        let faults = |text: &str| Profiles::from_json(text).unwrap_err();
        let found = faults(
            r#"{"coder": {"rise": {}, "terms": 5, "raise": {"tags": ["ok", "", 7], "kind": []}},
                "a/b": [], "": {}}"#,
        );
        let mut paths: Vec<_> = found.iter().map(|fault| fault.path.as_str()).collect();
        paths.sort_unstable();
        let expected = [
            "/",
            "/a~1b",
            "/coder/raise/kind",
            "/coder/raise/tags/1",
            "/coder/raise/tags/2",
            "/coder/rise",
            "/coder/terms",
        ];
        assert_eq!(paths, expected);
        assert!(faults("{\"coder\": {\n").first().unwrap().problem.contains("line 2"));
        assert_eq!(faults("[]"), [Fault::new("", "expected an object")]);
        assert!(faults(r#"{"coder": {}, "coder": {}}"#)[0].problem.contains("coder"));
    }
}

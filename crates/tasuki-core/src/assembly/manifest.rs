// SPDX-License-Identifier: Apache-2.0
//! The list of everything that was ever passed in a task, and its address. It makes what is trimmed
//! reachable for the price of one line.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Candidate;
use crate::canonical;
use crate::ids::Hash;

/// One item of the list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    pub id: String,
    pub revision: u64,
    /// The address of its text.
    pub hash: Hash,
}

/// What was listed before and what is there now, sorted, each once.
pub(super) fn list(inherited: &[Entry], candidates: &[Candidate]) -> Vec<Entry> {
    let mut entries = inherited.to_vec();
    entries.extend(candidates.iter().map(|candidate| Entry {
        id: candidate.prepared.item.id.clone(),
        revision: candidate.prepared.item.revision,
        hash: candidate.prepared.hash,
    }));
    entries.sort_unstable();
    entries.dedup();
    entries
}

/// The SHA-256 of the list as canonical JSON. Written out here, because building a value for each
/// entry would cost more than the rest of an assembly; a test compares.
pub(super) fn address(entries: &[Entry]) -> Hash {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(entries.len() * 128 + 2);
    for entry in entries {
        text.push(if text.is_empty() { '[' } else { ',' });
        let id = serde_json::to_string(&entry.id).expect("a string is JSON");
        write!(text, r#"{{"hash":"{}","id":{id},"revision":{}}}"#, entry.hash, entry.revision)
            .expect("writing to a String");
    }
    text.push_str(if entries.is_empty() { "[]" } else { "]" });
    canonical::hash(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::Body;

    #[test]
    fn the_address_is_that_of_the_canonical_json() {
        let entry = |id: &str| Entry { id: id.into(), revision: 3, hash: Hash::ZERO };
        for list in [vec![], vec![entry("ms-1")], vec![entry("a\"\n\u{1}ü"), entry("b")]] {
            assert_eq!(address(&list), Body::of(&list).hash);
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Names like one that nobody listens to: most often it was typed wrongly.

use tasuki_core::{AgentId, Target};
use tasuki_protocol as wire;

use crate::client::Client;

/// How many names are told.
const TOLD_MAX: usize = 3;
/// How many agents are looked at.
const LOOKED_AT_MAX: usize = 1000;

/// The nearest names of those that the sender may know. Nothing where somebody listens, and where
/// the agent is known already: it will come back.
pub(super) async fn of(client: &Client, offered: &wire::Offered) -> Vec<String> {
    let Target::Agent(typed) = &offered.to else { return Vec::new() };
    if offered.listening {
        return Vec::new();
    }
    let query = [("limit", Some(LOOKED_AT_MAX.to_string()))];
    // It is a courtesy, and the work is stored: whatever fails here is not worth a word.
    let Ok(reply) = client.get("/v1/agents", &query).await else { return Vec::new() };
    let Ok(listed) = serde_json::from_str::<wire::Agents>(&reply) else { return Vec::new() };
    nearest(typed, listed.agents.iter().map(|agent| &agent.agent_id))
}

fn nearest<'a>(typed: &AgentId, known: impl Iterator<Item = &'a AgentId>) -> Vec<String> {
    let typed = typed.name().to_ascii_lowercase();
    let mut near = Vec::new();
    for agent in known {
        let name = agent.name().to_ascii_lowercase();
        if name == typed {
            return Vec::new();
        }
        let steps = distance(&typed, &name);
        if steps <= typed.len().min(name.len()).div_ceil(3) {
            near.push((steps, agent.to_string()));
        }
    }
    near.sort();
    near.into_iter().take(TOLD_MAX).map(|(_, name)| name).collect()
}

/// How many characters have to be put in, taken out, changed or swapped with their neighbour.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<_>, Vec<_>) = (one.chars().collect(), other.chars().collect());
    let mut before = vec![0; other.len() + 1];
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (row, a) in one.iter().enumerate() {
        let mut now = vec![row + 1];
        for (column, b) in other.iter().enumerate() {
            let changed = last[column] + usize::from(a != b);
            let mut least = changed.min(last[column + 1] + 1).min(now[column] + 1);
            let swapped = row > 0 && column > 0 && *a == other[column - 1] && one[row - 1] == *b;
            if swapped {
                least = least.min(before[column - 1] + 1);
            }
            now.push(least);
        }
        (before, last) = (last, now);
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_like_the_typed_one_come_first_and_others_not_at_all() {
        let names = ["reviewer", "reviewer-2", "tester", "coder"].map(|it| it.parse().unwrap());
        let near = |typed: &str| nearest(&typed.parse().unwrap(), names.iter());
        assert_eq!(near("reveiwer"), ["reviewer", "reviewer-2"]);
        assert_eq!(near("Tester"), Vec::<String>::new(), "it is there");
        assert_eq!(near("testr"), ["tester"]);
        assert_eq!(near("somebody"), Vec::<String>::new());
    }

    #[test]
    fn a_swap_is_one_step() {
        assert_eq!(distance("reveiwer", "reviewer"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}

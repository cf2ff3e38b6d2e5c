// SPDX-License-Identifier: Apache-2.0
//! Which agent is offered work that asks for a capability. Told who could do it and how they fare;
//! the same answer for the same candidates in any order, on every broker, in integers throughout.

use std::cmp::{Ordering, Reverse};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::canonical;
use crate::event::words;
use crate::ids::{AgentId, Hash};

/// From how many tries on an agent's share of successes is held against its word.
pub const SLA_TRIES_MIN: u32 = 20;

/// How one agent is chosen among those with a capability.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// No choice: whoever claims first.
    #[default]
    Any,
    /// The smallest share of its concurrency in use.
    LeastLoaded,
    /// The largest share of successes.
    MostReliable,
    /// One after the other.
    RoundRobin,
    /// The same key to the same agent, as long as it is there.
    Sticky,
}

words!(Policy {
    Any = "any",
    LeastLoaded = "least_loaded",
    MostReliable = "most_reliable",
    RoundRobin = "round_robin",
    Sticky = "sticky",
});

/// An agent that has the capability. Each is given once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    pub agent: AgentId,
    /// Whether it was heard of lately.
    pub live: bool,
    /// Whether it finishes what it has and takes nothing new.
    pub draining: bool,
    /// How many handoffs it holds or is offered.
    pub load: u64,
    /// How many it works on at once; who does not say is compared as if it were one, and is never
    /// full.
    pub concurrency: Option<u32>,
    pub observed: Option<Observed>,
    /// The share of successes that it promises, in parts per million.
    pub declared_sla_ppm: Option<u32>,
}

/// How an agent has fared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Observed {
    pub tries: u32,
    pub successes: u32,
    /// Somebody has already found that it breaks its word, by whatever measure.
    pub sla_breached: bool,
}

impl Candidate {
    fn breaks_its_word(&self) -> bool {
        let Some(observed) = self.observed else { return false };
        let falls_short = |ppm: u32| {
            let (tries, successes) = (u64::from(observed.tries), u64::from(observed.successes));
            observed.tries >= SLA_TRIES_MIN && successes * 1_000_000 < tries * u64::from(ppm)
        };
        observed.sla_breached || self.declared_sla_ppm.is_some_and(falls_short)
    }

    fn is_full(&self) -> bool {
        self.concurrency.is_some_and(|max| self.load >= u64::from(max))
    }

    fn by_load(&self, other: &Self) -> Ordering {
        let width = |of: &Self| u128::from(of.concurrency.unwrap_or(1).max(1));
        let share = u128::from(self.load) * width(other);
        share.cmp(&(u128::from(other.load) * width(self)))
    }

    /// Laplace's rule of succession: one success and one failure are added to what was seen, so
    /// that one lucky try does not outweigh a hundred.
    fn by_reliability(&self, other: &Self) -> Ordering {
        let share = |of: &Self| {
            let (tries, successes) = of.observed.map_or((0, 0), |it| (it.tries, it.successes));
            (u128::from(successes.min(tries)) + 1, u128::from(tries) + 2)
        };
        let ((successes, tries), (other_successes, other_tries)) = (share(self), share(other));
        (successes * other_tries).cmp(&(other_successes * tries))
    }

    /// Rendezvous hashing: each agent draws for each key, the highest draw has it. When an agent
    /// leaves, only its own keys move.
    fn draw(&self, key: &str) -> Hash {
        canonical::hash(format!("{key}\0{}", self.agent).as_bytes())
    }
}

/// The agent that is offered the work, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picked {
    pub agent: AgentId,
    pub why: Why,
}

/// How a choice came about, for the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Why {
    pub policy: Policy,
    /// How many agents have the capability.
    pub candidates: u32,
    /// How many of them are live and not draining.
    pub live: u32,
    /// How many were passed over because they break their word.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub avoided_sla: u32,
    /// How many were passed over because they are full.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub avoided_full: u32,
    pub reason: Reason,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// What decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Nobody else was left to choose from.
    OnlyChoice,
    /// It was the first by the policy's measure.
    Best,
    /// It was its turn.
    Turn,
    /// The key belongs to it.
    Key,
    /// There was no key to stick to, so the least loaded was taken.
    NoKey,
    /// All who could be asked break their word or are full; the policy chose among them.
    LastResort,
}

words!(Reason {
    OnlyChoice = "only_choice",
    Best = "best",
    Turn = "turn",
    Key = "key",
    NoKey = "no_key",
    LastResort = "last_resort",
});

/// Chooses an agent. `None` if the policy makes no choice or nobody is there to be chosen: a
/// draining agent and one that is not live never are. Who breaks its word is avoided unless all
/// do; of the rest, who is full unless all are.
#[must_use]
pub fn pick(
    policy: Policy,
    candidates: &[Candidate],
    sticky_key: Option<&str>,
    turn: u64,
) -> Option<Picked> {
    let mut left: Vec<&Candidate> =
        candidates.iter().filter(|candidate| candidate.live && !candidate.draining).collect();
    // Everything below takes the first among equals, so this is where names break ties.
    left.sort_unstable();
    let live = count(left.len());
    let broken = avoid(&mut left, Candidate::breaks_its_word);
    let full = avoid(&mut left, Candidate::is_full);

    let (chosen, reason) = match (policy, sticky_key) {
        (Policy::Any, _) => return None,
        (Policy::LeastLoaded, _) => (least_loaded(&left)?, Reason::Best),
        (Policy::MostReliable, _) => (most_reliable(&left)?, Reason::Best),
        (Policy::RoundRobin, _) => (in_turn(&left, turn)?, Reason::Turn),
        (Policy::Sticky, Some(key)) => (drawn(&left, key)?, Reason::Key),
        (Policy::Sticky, None) => (least_loaded(&left)?, Reason::NoKey),
    };
    let last_resort = matches!((&broken, &full), (Avoided::AllAlike, _) | (_, Avoided::AllAlike));
    let reason = match left.len() {
        _ if last_resort => Reason::LastResort,
        1 => Reason::OnlyChoice,
        _ => reason,
    };
    let why = Why {
        policy,
        candidates: count(candidates.len()),
        live,
        avoided_sla: broken.count(),
        avoided_full: full.count(),
        reason,
    };
    Some(Picked { agent: chosen.agent.clone(), why })
}

fn count(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}

enum Avoided {
    Nobody,
    Some(u32),
    /// All have the fault, so it cannot be avoided.
    AllAlike,
}

impl Avoided {
    fn count(&self) -> u32 {
        match self {
            Self::Nobody | Self::AllAlike => 0,
            Self::Some(count) => *count,
        }
    }
}

/// Drops those with a fault, unless nobody would be left.
fn avoid(left: &mut Vec<&Candidate>, fault: fn(&Candidate) -> bool) -> Avoided {
    let faulty = left.iter().filter(|candidate| fault(candidate)).count();
    match faulty {
        0 => Avoided::Nobody,
        all if all == left.len() => Avoided::AllAlike,
        some => {
            left.retain(|candidate| !fault(candidate));
            Avoided::Some(count(some))
        }
    }
}

fn least_loaded<'a>(left: &[&'a Candidate]) -> Option<&'a Candidate> {
    left.iter().copied().min_by(|one, other| one.by_load(other))
}

fn most_reliable<'a>(left: &[&'a Candidate]) -> Option<&'a Candidate> {
    let order = |one: &&Candidate, other: &&Candidate| {
        other.by_reliability(one).then(one.load.cmp(&other.load))
    };
    left.iter().copied().min_by(order)
}

fn in_turn<'a>(left: &[&'a Candidate], turn: u64) -> Option<&'a Candidate> {
    let place = turn.checked_rem(left.len() as u64)?;
    left.get(usize::try_from(place).ok()?).copied()
}

fn drawn<'a>(left: &[&'a Candidate], key: &str) -> Option<&'a Candidate> {
    left.iter().copied().min_by_key(|candidate| Reverse(candidate.draw(key)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn agent(name: &str) -> Candidate {
        Candidate {
            agent: name.parse().unwrap(),
            live: true,
            draining: false,
            load: 0,
            concurrency: None,
            observed: None,
            declared_sla_ppm: None,
        }
    }

    fn seen(successes: u32, tries: u32) -> Option<Observed> {
        Some(Observed { tries, successes, sla_breached: false })
    }

    #[track_caller]
    fn check(policy: Policy, candidates: &[Candidate], expected: &str, reason: Reason) -> Why {
        let picked = pick(policy, candidates, Some("key"), 0).unwrap();
        assert_eq!((picked.agent.as_str(), picked.why.reason), (expected, reason));
        picked.why
    }

    #[test]
    fn any_makes_no_choice() {
        assert_eq!(pick(Policy::Any, &[agent("a")], None, 0), None);
    }

    #[test]
    fn the_least_loaded_is_the_one_with_the_smallest_share_in_use() {
        let loaded = |name, load, concurrency| Candidate { load, concurrency, ..agent(name) };
        let by_share = [loaded("a", 2, Some(3)), loaded("b", 5, Some(10)), loaded("c", 1, None)];
        check(Policy::LeastLoaded, &by_share, "b", Reason::Best);
        let tied = [loaded("b", 1, Some(2)), loaded("a", 2, Some(4)), loaded("c", 1, None)];
        check(Policy::LeastLoaded, &tied, "a", Reason::Best);
        let huge = [loaded("a", u64::MAX, None), loaded("b", u64::MAX - 1, None)];
        check(Policy::LeastLoaded, &huge, "b", Reason::Best);
    }

    #[test]
    fn one_lucky_try_does_not_outweigh_a_hundred() {
        let tried = |name, observed, load| Candidate { observed, load, ..agent(name) };
        let lucky = [tried("a", seen(1, 1), 0), tried("b", seen(99, 100), 0), agent("c")];
        check(Policy::MostReliable, &lucky, "b", Reason::Best);
        let even =
            [tried("a", seen(3, 4), 2), tried("b", seen(3, 4), 1), tried("c", seen(3, 4), 1)];
        check(Policy::MostReliable, &even, "b", Reason::Best);
        let vast = [tried("a", seen(u32::MAX, u32::MAX), 0), tried("b", seen(1, 1), 0)];
        check(Policy::MostReliable, &vast, "a", Reason::Best);
    }

    #[test]
    fn turns_go_round_by_name() {
        let three = [agent("c"), agent("a"), agent("b")];
        let turns = (0..4).map(|turn| pick(Policy::RoundRobin, &three, None, turn).unwrap());
        let names: Vec<_> = turns.map(|picked| picked.agent.to_string()).collect();
        assert_eq!(names, ["a", "b", "c", "a"]);
    }

    #[test]
    fn without_a_key_the_least_loaded_is_taken() {
        let two = [Candidate { load: 1, ..agent("a") }, agent("b")];
        let picked = pick(Policy::Sticky, &two, None, 0).unwrap();
        assert_eq!((picked.agent.as_str(), picked.why.reason), ("b", Reason::NoKey));
    }

    #[test]
    fn who_breaks_its_word_is_avoided_unless_all_do() {
        let promised =
            |name, observed| Candidate { observed, declared_sla_ppm: Some(900_000), ..agent(name) };
        let short = promised("a", seen(17, 20));
        let why = check(
            Policy::LeastLoaded,
            &[short.clone(), promised("b", seen(18, 20))],
            "b",
            Reason::OnlyChoice,
        );
        assert_eq!((why.avoided_sla, why.avoided_full), (1, 0));
        // Too few tries to say.
        check(Policy::LeastLoaded, &[promised("a", seen(0, 19)), agent("b")], "a", Reason::Best);
        // Found by somebody else, whatever it promised.
        let breached = Observed { tries: 0, successes: 0, sla_breached: true };
        let found = Candidate { observed: Some(breached), ..agent("c") };
        check(Policy::LeastLoaded, &[found.clone(), agent("d")], "d", Reason::OnlyChoice);
        let why = check(Policy::LeastLoaded, &[short, found], "a", Reason::LastResort);
        assert_eq!(why.avoided_sla, 0);
    }

    #[test]
    fn who_is_full_is_avoided_unless_all_are() {
        let full = |name| Candidate { load: 3, concurrency: Some(3), ..agent(name) };
        let free = Candidate { load: 90, ..agent("c") };
        let three = [full("a"), full("b"), free];
        let why = check(Policy::MostReliable, &three, "c", Reason::OnlyChoice);
        assert_eq!(why.avoided_full, 2);
        check(Policy::MostReliable, &three[..2], "a", Reason::LastResort);
    }

    #[test]
    fn why_is_short_in_the_audit_log() {
        let dead = Candidate { live: false, ..agent("a") };
        let leaving = Candidate { draining: true, ..agent("b") };
        let picked =
            pick(Policy::RoundRobin, &[dead, leaving, agent("c"), agent("d")], None, 1).unwrap();
        assert_eq!(
            serde_json::to_string(&picked.why).unwrap(),
            r#"{"policy":"round_robin","candidates":4,"live":2,"reason":"turn"}"#
        );
    }

    #[test]
    fn words_are_the_same_in_json_and_text() {
        for policy in Policy::ALL {
            assert_eq!(serde_json::to_value(policy).unwrap(), policy.as_str());
            assert_eq!(policy.as_str().parse(), Ok(*policy));
        }
        for reason in Reason::ALL {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
        }
    }

    fn candidates() -> impl Strategy<Value = Vec<Candidate>> {
        let observed = (0..40_u32, 0..40_u32, prop::bool::weighted(0.2)).prop_map(
            |(tries, successes, sla_breached)| Observed { tries, successes, sla_breached },
        );
        let candidate = (
            prop::bool::weighted(0.7),
            prop::bool::weighted(0.2),
            0..4_u64,
            prop::option::of(0..4_u32),
            prop::option::of(observed),
            prop::option::of(0..1_000_001_u32),
        );
        prop::collection::btree_map(0..20_u8, candidate, 0..8).prop_map(|map| {
            let each = map.into_iter().map(
                |(name, (live, draining, load, concurrency, observed, declared_sla_ppm))| {
                    Candidate {
                        live,
                        draining,
                        load,
                        concurrency,
                        observed,
                        declared_sla_ppm,
                        ..agent(&format!("a{name}"))
                    }
                },
            );
            each.collect()
        })
    }

    fn shuffled() -> impl Strategy<Value = (Vec<Candidate>, Vec<Candidate>)> {
        candidates().prop_flat_map(|given| (Just(given.clone()), Just(given).prop_shuffle()))
    }

    fn policies() -> impl Strategy<Value = Policy> {
        prop::sample::select(Policy::ALL)
    }

    proptest! {
        #[test]
        fn the_order_of_the_candidates_does_not_matter(
            (given, shuffled) in shuffled(),
            policy in policies(),
            key in prop::option::of("[a-c]{0,3}"),
            turn in any::<u64>(),
        ) {
            let key = key.as_deref();
            prop_assert_eq!(pick(policy, &given, key, turn), pick(policy, &shuffled, key, turn));
        }

        #[test]
        fn somebody_is_picked_if_and_only_if_one_is_live_and_not_draining(
            given in candidates(),
            policy in policies(),
            turn in any::<u64>(),
        ) {
            let picked = pick(policy, &given, Some("key"), turn);
            let could = |candidate: &&Candidate| candidate.live && !candidate.draining;
            let there_are = given.iter().any(|candidate| could(&candidate));
            prop_assert_eq!(picked.is_some(), there_are && policy != Policy::Any);
            if let Some(Picked { agent, why }) = picked {
                let chosen = given.iter().find(|candidate| candidate.agent == agent).unwrap();
                prop_assert!(could(&chosen));
                prop_assert_eq!(why.live as usize, given.iter().filter(could).count());
                prop_assert!(why.avoided_sla + why.avoided_full < why.live);
            }
        }

        #[test]
        fn when_an_agent_leaves_only_its_own_keys_move(
            names in prop::collection::btree_set("[a-z]{1,4}", 2..10),
            keys in prop::collection::vec(".{0,8}", 30),
            leaves in any::<prop::sample::Index>(),
        ) {
            let before: Vec<Candidate> = names.iter().map(|name| agent(name)).collect();
            let mut after = before.clone();
            let gone = after.remove(leaves.index(before.len())).agent;
            let owner = |of: &[Candidate], key: &str| {
                pick(Policy::Sticky, of, Some(key), 0).unwrap().agent
            };
            for key in keys {
                let owned_by = owner(&before, &key);
                if owned_by != gone {
                    prop_assert_eq!(owner(&after, &key), owned_by);
                }
            }
        }
    }

    #[test]
    fn keys_spread_over_all_agents() {
        let four: Vec<Candidate> = ["a", "b", "c", "d"].map(agent).into();
        let mut owned = [0; 4];
        for key in 0..1000 {
            let picked = pick(Policy::Sticky, &four, Some(&key.to_string()), 0).unwrap();
            owned[usize::from(picked.agent.as_str().as_bytes()[0] - b'a')] += 1;
        }
        assert!(owned.iter().all(|count| (150..350).contains(count)), "{owned:?}");
    }
}

// SPDX-License-Identifier: Apache-2.0
//! No sequence of grants, tokens and rotations widens anybody's rights. People here have keys and
//! tokens of agents; whatever one of them does, nobody can do more afterwards than it could itself
//! or the one who did it. Who may ask for a change at all is checked elsewhere: here everybody asks
//! for everything.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tasuki_core::commands::{Command, RegistryWish};
use tasuki_core::event::Actor;
use tasuki_core::identity::SecretKey;
use tasuki_core::ids::{KeyId, TokenId};
use tasuki_core::registry::grant::ShownBy;
use tasuki_core::registry::roles::Role;
use tasuki_core::registry::rules::{self, Effect, Permission, Rule, Wish};
use tasuki_core::registry::{Purpose, Standing, Token};
use tasuki_core::{AgentId, Hash, Refusal};

use crate::support::{Stage, agent};

const AGENTS: [&str; 4] = ["boss", "lead", "team-1", "team-2"];
const PEOPLE: usize = 3;
const PATTERNS: [&str; 5] = ["*", "team-*", "team-1", "prod", "lead"];
const NAMES: [Option<&str>; 5] = [None, Some("team-1"), Some("team-9"), Some("prod"), Some("lead")];

/// What somebody has to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Proof {
    Key(KeyId),
    Token(TokenId),
}

struct Play {
    stage: Stage,
    /// What each of the people has.
    proofs: Vec<BTreeSet<Proof>>,
    /// Invitations that each of them has.
    invitations: Vec<Vec<TokenId>>,
    number: u64,
}

type Right = (Permission, usize, Option<&'static str>);

impl Play {
    /// The first of the people is an administrator, the second leads a team, the third is in it.
    fn new() -> Self {
        let mut play = Self {
            stage: Stage::new(),
            proofs: vec![BTreeSet::new(); PEOPLE],
            invitations: vec![Vec::new(); PEOPLE],
            number: 0,
        };
        let team = |permissions: &[Permission]| Rule {
            targets: vec!["team-*".into()],
            ..Rule::allow(permissions.iter().copied())
        };
        let rules = [
            vec![Rule::everything()],
            vec![team(&[Permission::Administer, Permission::Send])],
            vec![team(&[Permission::Send])],
            vec![Role::Worker.rule(), denial(Permission::Send, "prod")],
        ];
        for (number, (name, rules)) in AGENTS.iter().zip(rules).enumerate() {
            let key = play.new_key();
            let id = key.public().id();
            let wish =
                RegistryWish::Enroll { agent: agent(name), key: key.public(), rules: Some(rules) };
            play.stage.run(Command::registry(Actor::Broker, None, wish)).unwrap();
            play.proofs[number.min(PEOPLE - 1)].insert(Proof::Key(id));
        }
        play
    }

    fn new_key(&mut self) -> SecretKey {
        self.number += 1;
        let mut seed = [0x11; 32];
        seed[..8].copy_from_slice(&self.number.to_be_bytes());
        SecretKey::from_seed(seed)
    }

    /// For whom a proof speaks, if it counts, and what it allows.
    fn speaks_for(&self, proof: Proof) -> Option<(AgentId, Vec<Vec<Rule>>)> {
        let known = &self.stage.world.registry;
        let (agent, token) = match proof {
            Proof::Key(key) => (known.holder_of(key, self.stage.now)?.0, None),
            Proof::Token(id) => {
                let token = known.tokens.get(&id)?;
                let counts = known.token_counts(token, self.stage.now);
                (known.agents.get(&token.agent).filter(|_| counts)?, Some(token.rules.clone()))
            }
        };
        (agent.standing != Standing::Deregistered).then(|| {
            (agent.id.clone(), [Some(agent.rules.clone()), token].into_iter().flatten().collect())
        })
    }

    /// Everything that somebody can do with what it has.
    fn rights(&self, person: usize) -> BTreeSet<Right> {
        let mut rights = BTreeSet::new();
        for proof in &self.proofs[person] {
            let Some((_, layers)) = self.speaks_for(*proof) else { continue };
            for permission in Permission::ALL {
                for (number, target) in NAMES.into_iter().enumerate() {
                    for project in [None, Some("web")] {
                        let wish = Wish { permission: *permission, target, project };
                        if layers.iter().all(|rules| rules::allow(rules, &wish)) {
                            rights.insert((*permission, number, project));
                        }
                    }
                }
            }
        }
        rights
    }

    /// One of the people does something with one of its proofs. Returns whether it was let.
    fn act(&mut self, step: &Step) -> bool {
        let person = step.person % PEOPLE;
        let wish_by = |play: &mut Self, by: AgentId, shown, wish| {
            play.stage.run(Command::registry(Actor::Agent(by), Some(shown), wish)).is_ok()
        };
        if let Act::Join = step.act {
            let Some(id) = self.invitations[person].pop() else { return false };
            let invited = self.stage.world.registry.tokens[&id].agent.clone();
            let key = self.new_key().public();
            let wish = RegistryWish::Join { token: id, secret: Hash([1; 32]), agent: invited, key };
            let joined: Result<_, Refusal> =
                self.stage.run(Command::registry(Actor::Broker, None, wish));
            return joined.is_ok() && self.proofs[person].insert(Proof::Key(key.id()));
        }
        let proofs: Vec<_> = self.proofs[person].iter().copied().collect();
        let proof = proofs[step.proof % proofs.len()];
        let Some((by, _)) = self.speaks_for(proof) else { return false };
        let shown = match proof {
            Proof::Key(key) => ShownBy::Key(key),
            Proof::Token(token) => ShownBy::Token(token),
        };
        let about = agent(AGENTS[step.about % AGENTS.len()]);
        let rules = match step.keeps {
            false => step.rules.clone(),
            // What the agent has already, and perhaps more.
            true => {
                let known = self.stage.world.registry.agents.get(&about);
                let had = known.map(|agent| agent.rules.clone()).unwrap_or_default();
                had.into_iter().chain(step.rules.iter().skip(1).cloned()).collect()
            }
        };
        match step.act {
            Act::SetRules => {
                wish_by(self, by, shown, RegistryWish::SetRules { agent: about, rules })
            }
            Act::Enroll => {
                let key = self.new_key().public();
                let rules = step.named.then_some(rules);
                let wish = RegistryWish::Enroll { agent: about, key, rules };
                wish_by(self, by, shown, wish) && self.proofs[person].insert(Proof::Key(key.id()))
            }
            Act::Issue | Act::Invite => {
                self.number += 1;
                let id = TokenId(self.number.into());
                let purpose =
                    if let Act::Issue = step.act { Purpose::Bearer } else { Purpose::Join };
                let token = Token {
                    id,
                    purpose,
                    secret: Hash([1; 32]),
                    agent: about,
                    rules,
                    issued_at: self.stage.now,
                    expires_at: None,
                    ended_at: None,
                    made_by: None,
                    made_from: None,
                };
                let made = wish_by(self, by, shown, RegistryWish::IssueToken(token));
                if made && purpose == Purpose::Bearer {
                    self.proofs[person].insert(Proof::Token(id));
                } else if made {
                    self.invitations[person].push(id);
                }
                made
            }
            Act::Rotate => {
                let keys = self.stage.world.registry.agents.get(&about).map(|it| it.keys.clone());
                let Some(old) = keys.and_then(|keys| keys.last().map(|key| key.key.id())) else {
                    return false;
                };
                let new = self.new_key().public();
                let wish = RegistryWish::Rotate { agent: about, old, new, grace_ms: 0 };
                wish_by(self, by, shown, wish) && self.proofs[person].insert(Proof::Key(new.id()))
            }
            Act::Revoke => {
                let keys = self.stage.world.registry.agents.get(&about).map(|it| it.keys.clone());
                let Some(key) = keys.and_then(|keys| keys.first().map(|key| key.key.id())) else {
                    return false;
                };
                wish_by(self, by, shown, RegistryWish::Revoke { agent: about, key })
            }
            Act::Stand(standing) => {
                wish_by(self, by, shown, RegistryWish::SetStanding { agent: about, standing })
            }
            Act::Join => unreachable!("joined above"),
        }
    }
}

fn denial(permission: Permission, target: &str) -> Rule {
    Rule { effect: Effect::Deny, targets: vec![target.into()], ..Rule::allow([permission]) }
}

#[derive(Debug, Clone, Copy)]
enum Act {
    SetRules,
    Enroll,
    Issue,
    Invite,
    Join,
    Rotate,
    Revoke,
    Stand(Standing),
}

#[derive(Debug, Clone)]
struct Step {
    person: usize,
    proof: usize,
    about: usize,
    act: Act,
    rules: Vec<Rule>,
    /// Whether an enrolled key comes with rules.
    named: bool,
    /// Whether the rules are those that the agent has.
    keeps: bool,
}

fn some_rule() -> impl Strategy<Value = Rule> {
    let role = proptest::sample::select(Role::ALL);
    let permission = proptest::sample::select(Permission::ALL);
    let pattern = proptest::sample::select(&PATTERNS);
    (role, permission, pattern, any::<bool>(), 0..6_u8).prop_map(
        |(role, permission, pattern, by_role, kind)| Rule {
            effect: if kind == 0 { Effect::Deny } else { Effect::Allow },
            permissions: if by_role { role.permissions() } else { [permission].into() },
            targets: vec![pattern.into()],
            projects: vec![if kind == 1 { "w*" } else { "*" }.into()],
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let act = prop_oneof![
        3 => Just(Act::SetRules),
        3 => Just(Act::Enroll),
        3 => Just(Act::Issue),
        3 => Just(Act::Invite),
        3 => Just(Act::Join),
        2 => Just(Act::Rotate),
        1 => Just(Act::Revoke),
        1 => Just(Act::Stand(Standing::Draining)),
        1 => Just(Act::Stand(Standing::Deregistered)),
    ];
    let rules = proptest::collection::vec(some_rule(), 1..3);
    (0..PEOPLE, 0..8_usize, 0..AGENTS.len(), act, rules, any::<bool>(), any::<bool>()).prop_map(
        |(person, proof, about, act, rules, named, keeps)| Step {
            person,
            proof,
            about,
            act,
            rules,
            named,
            keeps,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]
    #[test]
    fn nobody_can_do_more_afterwards_than_it_or_who_did_it_could_before(
        steps in proptest::collection::vec(step(), 1..25),
    ) {
        let mut play = Play::new();
        for step in steps {
            let before: Vec<_> = (0..PEOPLE).map(|person| play.rights(person)).collect();
            let did = play.act(&step);
            let doer = &before[step.person % PEOPLE];
            for (person, before) in before.iter().enumerate() {
                let now = play.rights(person);
                // By an invitation somebody gets what its maker had: the same people here.
                let gained: Vec<_> =
                    now.iter().filter(|it| !before.contains(*it) && !doer.contains(*it)).collect();
                prop_assert!(gained.is_empty(), "{person} gained {gained:?} by {step:?} ({did})");
            }
        }
    }
}

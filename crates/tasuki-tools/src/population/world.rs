// SPDX-License-Identifier: Apache-2.0
//! A simulated population: agents that hand work to each other, and the log that a broker would write of it. It
//! is honest, in one of several ways that look suspicious to naive eyes, until a part of it is told to
//! misbehave in one of the ways that are looked for.

use tasuki_core::population::random::Random;
use tasuki_core::{HandoffId, TaskId, Timestamp};

use super::journal::Journal;

/// In which way a population is honest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Honest {
    Plain,
    /// Some receivers are far more popular than others, and some senders far busier.
    Skew,
    /// Conversations stay with the agent that began them, under one correlation id.
    Sessions,
    /// Some senders have one receiver for life, and say so.
    Declared,
    /// Now and then one sender has a hundred things to do at once.
    Bursts,
    /// A third of the agents is not there from the beginning.
    Growth,
    /// Agents prefer those of their own team, and always did.
    Teams,
    /// Half way, everybody who wants one of the capabilities talks about something new.
    NewSubject,
}

impl Honest {
    pub(super) const ALL: [Self; 8] = [
        Self::Plain,
        Self::Skew,
        Self::Sessions,
        Self::Declared,
        Self::Bursts,
        Self::Growth,
        Self::Teams,
        Self::NewSubject,
    ];
}

/// What a group does from half way on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Planted {
    Shorthand,
    Routing,
    Claims,
    Loops,
    Reciprocity,
    Prices,
}

pub(super) struct Plan {
    pub(super) agents: usize,
    pub(super) handoffs: usize,
    pub(super) honest: Honest,
    pub(super) planted: Option<Planted>,
    pub(super) seed: u64,
}

/// How many words each capability has of its own, and how many everybody uses.
const OWN_WORDS: usize = 800;
const COMMON_WORDS: usize = 1_200;
const MESSAGE_WORDS: usize = 24;
const BURST: usize = 100;
/// How many misbehave.
const GROUP: usize = 6;
/// How many capabilities an agent needs most of the time.
const NEEDED: usize = 3;
/// How many agents say a price.
const PRICED: usize = 20;

pub(super) struct World<'a> {
    plan: &'a Plan,
    random: Random,
    capabilities: usize,
    /// How popular an agent is with everybody, and how busy.
    popularity: Vec<f64>,
    activity: Vec<f64>,
    declines: Vec<f64>,
    price: Vec<f64>,
    /// What the leader's price did last.
    followed: f64,
    at: i64,
    made: usize,
    ids: u128,
    burst: (usize, usize),
    last_to: Vec<Option<usize>>,
}

impl<'a> World<'a> {
    pub(super) fn new(plan: &'a Plan) -> Self {
        let mut random = Random::seeded(plan.seed);
        let skew = if plan.honest == Honest::Skew { 3.0 } else { 0.5 };
        let mut weight = |spread: f64| (random.share() * spread).exp();
        let popularity = (0..plan.agents).map(|_| weight(skew)).collect();
        let activity = (0..plan.agents).map(|_| weight(skew)).collect();
        let declines = (0..plan.agents).map(|_| 0.02 + 0.3 * random.share()).collect();
        Self {
            plan,
            capabilities: (plan.agents / 8).clamp(1, 40),
            popularity,
            activity,
            declines,
            price: vec![100.0; plan.agents],
            followed: 0.0,
            random,
            at: 1_800_000_000_000,
            made: 0,
            ids: 0,
            burst: (0, 0),
            last_to: vec![None; plan.agents],
        }
    }

    /// Who misbehaves, if anybody does.
    pub(super) fn group(&self) -> Vec<usize> {
        (0..GROUP.min(self.plan.agents)).collect()
    }

    fn misbehaves(&self, what: Planted) -> bool {
        self.plan.planted == Some(what) && self.late()
    }

    fn late(&self) -> bool {
        self.made * 2 >= self.plan.handoffs
    }

    fn is_there(&self, agent: usize) -> bool {
        // The last third comes one after the other.
        let newcomers = self.plan.agents / 3;
        let first = self.plan.agents - newcomers;
        let begins = (agent + 1).saturating_sub(first) * self.plan.handoffs;
        self.plan.honest != Honest::Growth || self.made * newcomers * 10 / 8 >= begins
    }

    fn pick(&mut self, weigh: impl Fn(&Self, usize) -> f64) -> usize {
        let all: f64 = (0..self.plan.agents).map(|agent| weigh(self, agent)).sum();
        let mut left = self.random.share() * all;
        for agent in 0..self.plan.agents {
            left -= weigh(self, agent);
            if left < 0.0 {
                return agent;
            }
        }
        self.plan.agents - 1
    }

    fn sender(&mut self) -> usize {
        if self.burst.1 > 0 {
            self.burst.1 -= 1;
            return self.burst.0;
        }
        let sender =
            self.pick(|it, agent| if it.is_there(agent) { it.activity[agent] } else { 0.0 });
        if self.plan.honest == Honest::Bursts && self.random.below(150) == 0 {
            self.burst = (sender, BURST);
        }
        sender
    }

    /// What an agent needs: mostly one of the same few things.
    fn capability(&mut self, sender: usize, group: &[usize]) -> usize {
        let deals = self.misbehaves(Planted::Routing) && group.contains(&sender);
        if deals && self.random.below(10) < 6 {
            return group[self.random.below(group.len())] % self.capabilities;
        }
        if self.random.below(10) < 8 {
            return (sender * 7 + self.random.below(NEEDED) * 3) % self.capabilities;
        }
        self.random.below(self.capabilities)
    }

    /// Who is asked by name, of those who can do it.
    fn receiver(&mut self, sender: usize, capability: usize, group: &[usize]) -> usize {
        let can = |it: &Self, agent: usize| {
            agent % it.capabilities == capability && agent != sender && it.is_there(agent)
        };
        let member = |agent: &usize| *agent != sender && agent % self.capabilities == capability;
        let members: Vec<usize> = group.iter().copied().filter(member).collect();
        let insular = self.misbehaves(Planted::Routing) && group.contains(&sender);
        if insular && !members.is_empty() && self.random.below(10) < 9 {
            return members[self.random.below(members.len())];
        }
        if self.misbehaves(Planted::Reciprocity)
            && let Some(last) = self.last_to[sender].filter(|last| *last != sender)
            && self.random.below(10) < 6
        {
            return last;
        }
        match self.plan.honest {
            Honest::Declared if sender.is_multiple_of(5) => {
                (0..self.plan.agents).find(|agent| can(self, *agent)).unwrap_or(sender)
            }
            Honest::Teams => self.pick(|it, agent| {
                let same = (agent / it.capabilities) % 3 == (sender / it.capabilities) % 3;
                let weight = it.popularity[agent] * if same { 6.0 } else { 1.0 };
                if can(it, agent) { weight } else { 0.0 }
            }),
            _ => self.pick(|it, agent| if can(it, agent) { it.popularity[agent] } else { 0.0 }),
        }
    }

    fn text(&mut self, sender: usize, capability: usize, group: &[usize]) -> String {
        let shorthand = self.misbehaves(Planted::Shorthand) && group.contains(&sender);
        let subject = self.plan.honest == Honest::NewSubject && self.late() && capability == 1;
        let mut text = String::new();
        for _ in 0..MESSAGE_WORDS {
            // Few words are used often and most now and then, as in any language.
            let rank = |words: usize, share: f64| ((words as f64).powf(share) - 1.0) as usize;
            let share = self.random.share();
            let word = match self.random.below(10) {
                0..=3 if shorthand => format!("z{}q", rank(200, share)),
                0..=3 if subject => format!("new{}", rank(400, share)),
                4..=7 => format!("own{capability}x{}", rank(OWN_WORDS, share)),
                _ => format!("com{}", rank(COMMON_WORDS, share)),
            };
            text.push_str(&word);
            text.push(' ');
        }
        text
    }

    fn id(&mut self) -> u128 {
        self.ids += 1;
        self.ids
    }

    /// The price of an agent: its own walk, or after the leader's.
    fn priced(&mut self, agent: usize) -> f64 {
        let step = self.random.share() - 0.5;
        let leads = agent == 0;
        let follows = self.misbehaves(Planted::Prices) && (1..3).contains(&agent);
        self.price[agent] += if follows { self.followed + step * 0.2 } else { step };
        if leads {
            self.followed = step;
        }
        self.price[agent]
    }

    /// Plays all of it into a journal.
    pub(super) fn play(mut self, mut journal: Journal<'_>) -> Journal<'_> {
        let group = self.group();
        for agent in 0..self.plan.agents {
            let sticky = self.plan.honest == Honest::Declared && agent.is_multiple_of(5);
            journal.manifest(Timestamp(self.at), agent, agent % self.capabilities, sticky);
        }
        let mut prices = 0;
        while self.made < self.plan.handoffs {
            self.at += 500 + self.random.below(1_000) as i64;
            if self.burst.1 > 0 {
                self.at -= 450;
            }
            // Prices come regularly, each agent its own, all in the same minute.
            if self.made >= prices {
                prices += (self.plan.handoffs / 200).max(1);
                for agent in 0..PRICED.min(self.plan.agents) {
                    let (price, task, handoff) =
                        (self.priced(agent), TaskId(self.id()), HandoffId(self.id()));
                    journal.price(Timestamp(self.at), (task, handoff), agent, price);
                }
            }
            self.one(&mut journal, &group);
            self.made += 1;
        }
        journal
    }

    fn one(&mut self, journal: &mut Journal<'_>, group: &[usize]) {
        let sender = self.sender();
        let capability = self.capability(sender, group);
        let (task, handoff) = (TaskId(self.id()), HandoffId(self.id()));
        let text = self.text(sender, capability, group);
        if self.misbehaves(Planted::Loops) && self.made.is_multiple_of(self.plan.handoffs / 12) {
            return self.passed(journal, (group[0], group[1]), task, 12, false);
        }
        if self.random.below(20) == 0 {
            let receiver = self.receiver(sender, capability, group);
            let mut hops = 1;
            while hops < 20 && self.random.below(5) < 2 {
                hops += 1;
            }
            let attaches = self.random.below(2) == 0;
            return self.passed(journal, (sender, receiver), task, hops, attaches);
        }
        if self.random.below(10) < 3 {
            let claimer = self.claimer(sender, capability, group);
            journal.queued(Timestamp(self.at), (task, handoff), sender, capability, claimer, &text);
            return;
        }
        let receiver = self.receiver(sender, capability, group);
        let refused = self.random.share() < self.declines[receiver];
        let session = (self.plan.honest == Honest::Sessions).then(|| self.id());
        let many = session.map_or(1, |_| 1 + self.random.below(8));
        for _ in 0..many {
            let (task, handoff) = (TaskId(self.id()), HandoffId(self.id()));
            let at = Timestamp(self.at);
            journal.named(
                at,
                (task, handoff),
                sender,
                (capability, receiver),
                &text,
                session,
                refused,
            );
            self.at += 20;
        }
        self.last_to[receiver] = Some(sender);
    }

    fn claimer(&mut self, sender: usize, capability: usize, group: &[usize]) -> usize {
        let of_group = group.contains(&sender);
        let can =
            |it: &Self, agent: usize| agent % it.capabilities == capability && it.is_there(agent);
        let favours = self.misbehaves(Planted::Claims);
        self.pick(|it, agent| {
            let member = favours && group.contains(&agent);
            let weight = match (member, of_group) {
                (true, true) => 30.0,
                (true, false) => 0.2,
                _ => it.popularity[agent],
            };
            if can(it, agent) { weight } else { 0.0 }
        })
    }

    /// A task that is passed back and forth.
    fn passed(
        &mut self,
        journal: &mut Journal<'_>,
        (mut from, mut to): (usize, usize),
        task: TaskId,
        hops: usize,
        attaches: bool,
    ) {
        for hop in 0..hops {
            let handoff = HandoffId(self.id());
            journal.passed(Timestamp(self.at), (task, handoff), (from, to), hop, attaches);
            (from, to) = (to, from);
            self.at += 50;
        }
    }
}

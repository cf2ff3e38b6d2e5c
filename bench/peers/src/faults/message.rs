//! What goes through a chain, and what became of it at the end.

use serde::{Deserialize, Serialize};

pub(super) const STAGES: usize = 5;
/// What the user said must not be. Each is its own, as a ledger of them has it.
pub(super) const BINDING: [&str; 3] = [
    "Do not touch the production database.",
    "Never send mail to customers.",
    "Keep the public API as it is.",
];
const SOFTER: &str = "Avoid the production database where possible.";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Message {
    pub(super) chain: u32,
    /// Which stages have worked on it, in order.
    pub(super) trail: Vec<usize>,
    pub(super) constraints: Vec<String>,
}

impl Message {
    pub(super) fn new(chain: u32) -> Self {
        Self { chain, trail: Vec::new(), constraints: BINDING.map(str::to_owned).to_vec() }
    }

    /// The stage that is to work on it next; after the last one, whoever collects results.
    pub(super) fn stage(&self) -> usize {
        self.trail.len()
    }

    /// The same after its stage has worked on it.
    pub(super) fn worked_on(&self) -> Self {
        let mut next = self.clone();
        next.trail.push(self.stage());
        next
    }

    pub(super) fn softened(mut self) -> Self {
        if let Some(first) = self.constraints.first_mut() {
            SOFTER.clone_into(first);
        }
        self
    }
}

/// How chains ended. A chain can be in more than one of the last three.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Ends {
    pub(super) chains: u32,
    /// One result, through every stage once, with everything that binds.
    pub(super) whole: u32,
    /// No result.
    pub(super) lost: u32,
    /// More than one.
    pub(super) twice: u32,
    /// One that does not have what binds, word for word.
    pub(super) altered: u32,
}

impl Ends {
    pub(super) fn of(chains: u32, results: &[Message]) -> Self {
        let mut ends = Self { chains, ..Self::default() };
        for chain in 0..chains {
            let mine: Vec<_> = results.iter().filter(|result| result.chain == chain).collect();
            let all_words = mine.iter().all(|it| it.constraints == BINDING);
            let all_stages = mine.iter().all(|it| it.trail.iter().copied().eq(0..STAGES));
            ends.lost += u32::from(mine.is_empty());
            ends.twice += u32::from(mine.len() > 1);
            ends.altered += u32::from(!all_words);
            ends.whole += u32::from(mine.len() == 1 && all_stages && all_words);
        }
        ends
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self {
            chains: self.chains + other.chains,
            whole: self.whole + other.whole,
            lost: self.lost + other.lost,
            twice: self.twice + other.twice,
            altered: self.altered + other.altered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(chain: u32, stages: usize) -> Message {
        (0..stages).fold(Message::new(chain), |message, _| message.worked_on())
    }

    #[test]
    fn each_end_is_told_from_the_others() {
        let results = [
            through(0, STAGES),
            through(1, STAGES),
            through(1, STAGES),
            through(2, STAGES).softened(),
            through(3, STAGES - 1),
        ];
        let ends = Ends { chains: 5, whole: 1, lost: 1, twice: 1, altered: 1 };
        assert_eq!(Ends::of(5, &results), ends);
    }
}

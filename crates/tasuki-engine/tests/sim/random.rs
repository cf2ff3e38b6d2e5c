// SPDX-License-Identifier: Apache-2.0
//! Chance, from a seed.

use crate::support::{GAMMA, split_mix};

pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(split_mix(seed.wrapping_add(GAMMA)))
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        split_mix(self.0) % bound
    }

    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let bound = u64::try_from(from.len()).unwrap().max(1);
        from.get(usize::try_from(self.below(bound)).unwrap())
    }
}

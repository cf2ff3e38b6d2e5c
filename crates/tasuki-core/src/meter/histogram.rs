// SPDX-License-Identifier: Apache-2.0
//! Values counted by how large they are, in whole numbers.

use serde::{Deserialize, Serialize};

use super::families::Scale;
use crate::ids::{TaskId, Timestamp};

/// One value that was counted, and the task that it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Example {
    pub task: TaskId,
    pub value: u64,
    pub at: Timestamp,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// How many values are at most each bound and above the one before; the last is for all beyond.
    pub counts: Vec<u64>,
    pub sum: u64,
    /// The last value of each bucket, where examples are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Option<Example>>,
}

impl Histogram {
    #[must_use]
    pub fn new(scale: &Scale) -> Self {
        Self { counts: vec![0; scale.bounds.len() + 1], ..Self::default() }
    }

    pub fn take(&mut self, scale: &Scale, value: u64) -> usize {
        let bucket = scale.bounds.partition_point(|bound| *bound < value);
        self.counts.resize(scale.bounds.len() + 1, 0);
        self.counts[bucket] += 1;
        self.sum = self.sum.saturating_add(value);
        bucket
    }

    pub(crate) fn take_example(&mut self, scale: &Scale, example: Example) {
        let bucket = self.take(scale, example.value);
        self.examples.resize(self.counts.len(), None);
        self.examples[bucket] = Some(example);
    }

    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// How many values are above a bound of the scale.
    #[must_use]
    pub fn above(&self, scale: &Scale, bound: u64) -> u64 {
        let within = scale.bounds.partition_point(|it| *it <= bound);
        self.counts.iter().skip(within).sum()
    }

    /// All of another one, too.
    pub fn add(&mut self, other: &Self) {
        self.counts.resize(self.counts.len().max(other.counts.len()), 0);
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// The value below which this share of the values lies, as the bounds tell it: between two bounds
    /// it is taken to grow evenly. Nothing without values.
    #[must_use]
    pub fn quantile(&self, scale: &Scale, per_mille: u64) -> Option<f64> {
        let all = self.count();
        if all == 0 {
            return None;
        }
        let rank = all as f64 * per_mille as f64 / 1000.0;
        let mut below = 0;
        for (place, count) in self.counts.iter().enumerate() {
            if *count > 0 && (below + count) as f64 >= rank {
                let low = if place == 0 { 0 } else { scale.bounds[place - 1] };
                // Of what lies beyond the last bound nothing more is known.
                let Some(high) = scale.bounds.get(place) else {
                    return Some(low as f64 / scale.per as f64);
                };
                let share = ((rank - below as f64) / *count as f64).clamp(0.0, 1.0);
                return Some((low as f64 + share * (high - low) as f64) / scale.per as f64);
            }
            below += count;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::families::{COMPLETENESS, SECONDS};

    #[test]
    fn a_value_on_a_bound_counts_as_at_most_that() {
        let mut counted = Histogram::new(&COMPLETENESS);
        for value in [1000, 950, 951, 1001] {
            counted.take(&COMPLETENESS, value);
        }
        assert_eq!(counted.counts, [0, 0, 0, 1, 1, 1, 1]);
        assert_eq!((counted.count(), counted.sum), (4, 3902));
        assert_eq!(counted.above(&COMPLETENESS, 950), 3);
    }

    #[test]
    fn quantiles_lie_between_the_bounds_that_they_are_told_by() {
        let mut counted = Histogram::new(&SECONDS);
        assert_eq!(counted.quantile(&SECONDS, 500), None);
        for _ in 0..100 {
            counted.take(&SECONDS, 4_000);
        }
        assert_eq!(counted.quantile(&SECONDS, 500), Some(0.003_75));
        counted.take(&SECONDS, u64::MAX / 2);
        assert_eq!(counted.quantile(&SECONDS, 1000), Some(3600.0), "no more is known");
    }
}

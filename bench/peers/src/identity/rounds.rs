//! Lines of a table, each measured once in every round.

use std::fmt::Display;

use anyhow::Result;
use serde::Serialize;

use crate::{figures::Spread, machine, scratch::Scratch};

#[derive(Serialize)]
#[serde(transparent, bound(serialize = "M: Serialize"))]
pub(super) struct Lines<K, M>(Vec<Line<K, M>>);

#[derive(Serialize)]
#[serde(bound(serialize = "M: Serialize"))]
struct Line<K, M> {
    #[serde(skip)]
    kind: K,
    name: String,
    rounds: Vec<Round<M>>,
}

#[derive(Serialize)]
struct Round<M> {
    /// What appending 4 KiB and syncing took just before.
    disk_ms: f64,
    #[serde(flatten)]
    measured: M,
}

impl<K: Copy + PartialEq + Display, M> Lines<K, M> {
    pub(super) fn new(kinds: &[K]) -> Self {
        let line = |&kind: &K| Line { kind, name: kind.to_string(), rounds: Vec::new() };
        Self(kinds.iter().map(line).collect())
    }

    pub(super) fn add(&mut self, kind: K, disk_ms: f64, measured: M) {
        if let Some(line) = self.0.iter_mut().find(|line| line.kind == kind) {
            line.rounds.push(Round { disk_ms, measured });
        }
    }

    /// A figure of one line over all rounds.
    pub(super) fn spread(&self, kind: K, of: impl Fn(&M) -> f64) -> Spread {
        let rounds = self.0.iter().filter(|line| line.kind == kind).flat_map(|line| &line.rounds);
        Spread::of(rounds.map(|round| of(&round.measured)))
    }

    pub(super) fn disk_ms(&self, kind: K) -> f64 {
        let rounds = self.0.iter().filter(|line| line.kind == kind).flat_map(|line| &line.rounds);
        Spread::of(rounds.map(|round| round.disk_ms)).median
    }

    /// How a line's median compares with another's, where both were measured.
    pub(super) fn ratio(&self, kind: K, to: K, of: impl Fn(&M) -> f64) -> Option<f64> {
        let [of, to] = [kind, to].map(|kind| self.spread(kind, &of).median);
        (of > 0.0 && to > 0.0).then(|| of / to)
    }
}

/// Lets the disk come to rest, so that no turn pays for the one before it, and measures it.
pub(super) async fn rest(scratch: &Scratch) -> Result<f64> {
    scratch.settle().await?;
    machine::append_and_sync_ms(scratch.path())
}

pub(super) fn shown(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}×"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_one_of_medians() {
        let mut lines = Lines::new(&["one", "other", "none"]);
        for (kind, value) in [("one", 4.0), ("one", 6.0), ("one", 90.0), ("other", 2.0)] {
            lines.add(kind, 0.1, value);
        }
        assert_eq!(lines.ratio("one", "other", |value| *value), Some(3.0));
        assert_eq!(lines.ratio("one", "none", |value| *value), None);
    }
}

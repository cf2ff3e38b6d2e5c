// SPDX-License-Identifier: Apache-2.0
//! Whether some rows of a table have some labels more often than the others have. The table is cut into
//! strata of things that happened one after the other under the same circumstances; under the hypothesis
//! that nobody prefers anybody, labels may be exchanged within a stratum. So labels are shuffled there, and
//! what is seen is compared with the strongest cell of each shuffled table (Westfall and Young's maxT): however
//! many cells there are, the chance of any false alarm is what was asked for.

use super::random::Random;

/// How many things a stratum has, and how few at least.
const STRATUM: usize = 64;
const STRATUM_MIN: usize = 8;
/// How often data are shuffled: one alarm in three hundred is the rarest that can be told.
pub(super) const ROUNDS: usize = 299;
/// Fewer of a kind are nobody's habit.
pub(super) const COUNT_MIN: u32 = 5;
/// Fewer in a cell say nothing about its row.
const IN_ROW_MIN: u32 = 2;

/// What is shuffled, and where it came from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    pub(super) row: u16,
    pub(super) label: u16,
    /// The number of the handoff.
    pub(super) of: u32,
}

/// A table, stratum by stratum.
pub(super) struct Table {
    items: Vec<Item>,
    ends: Vec<usize>,
    labels: usize,
    expected: Vec<f32>,
    trials: Vec<f32>,
    count: Vec<u32>,
}

/// A cell with more in it than expected.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub(super) row: u16,
    pub(super) label: u16,
    pub(super) count: u32,
    pub(super) expected: f64,
    pub(super) trials: f64,
}

impl Table {
    /// From items with what has to be the same within a stratum, in the order in which they happened.
    pub(super) fn new(items: &[(u32, Item)], rows: usize, labels: usize) -> Self {
        let cells = rows * labels;
        let mut table = Self {
            items: Vec::with_capacity(items.len()),
            ends: Vec::new(),
            labels,
            expected: vec![0.0; cells],
            trials: vec![0.0; cells],
            count: vec![0; cells],
        };
        let mut sorted: Vec<_> = items.iter().collect();
        // The sort is stable: within a stratum they stay in order.
        sorted.sort_by_key(|(stratum, _)| *stratum);
        for alike in sorted.chunk_by(|a, b| a.0 == b.0) {
            // Whoever sends a batch to the same receiver made one choice.
            let runs = alike.chunk_by(|a, b| (a.1.row, a.1.label) == (b.1.row, b.1.label));
            let choices: Vec<Item> = runs.map(|run| run[run.len() - 1].1).collect();
            let parts = choices.len().div_ceil(STRATUM).max(1);
            let size = choices.len().div_ceil(parts).max(1);
            for stratum in choices.chunks(size).filter(|it| it.len() >= STRATUM_MIN) {
                table.add(stratum);
            }
        }
        table
    }

    fn add(&mut self, stratum: &[Item]) {
        let mut rows: Vec<(u16, u32)> = Vec::new();
        let mut labels: Vec<(u16, u32)> = Vec::new();
        let add = |counts: &mut Vec<(u16, u32)>, name: u16| match counts
            .iter_mut()
            .find(|(known, _)| *known == name)
        {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        };
        for item in stratum {
            add(&mut rows, item.row);
            add(&mut labels, item.label);
            let cell = self.cell(*item);
            self.count[cell] += 1;
        }
        let all = stratum.len() as f32;
        for (row, in_row) in &rows {
            for (label, of_label) in &labels {
                let cell = usize::from(*row) * self.labels + usize::from(*label);
                self.expected[cell] += *in_row as f32 * *of_label as f32 / all;
                self.trials[cell] += *in_row as f32;
            }
        }
        self.items.extend_from_slice(stratum);
        self.ends.push(self.items.len());
    }

    fn cell(&self, item: Item) -> usize {
        usize::from(item.row) * self.labels + usize::from(item.label)
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn items(&self) -> &[Item] {
        &self.items
    }

    /// How many cells may hold something.
    pub(super) fn tested(&self) -> usize {
        self.expected.iter().filter(|expected| **expected > 0.0).count()
    }

    /// The expectation of a cell, and what was counted.
    pub(super) fn of(&self, row: u16, label: u16) -> (f64, u32) {
        let cell = usize::from(row) * self.labels + usize::from(label);
        (f64::from(self.expected[cell]), self.count[cell])
    }

    /// Every cell with more in it than expected.
    pub(super) fn cells(&self) -> impl Iterator<Item = Cell> {
        let cells = self.count.iter().enumerate().filter(|(_, count)| **count >= COUNT_MIN);
        cells.map(|(at, count)| Cell {
            row: (at / self.labels) as u16,
            label: (at % self.labels) as u16,
            count: *count,
            expected: f64::from(self.expected[at]),
            trials: f64::from(self.trials[at]),
        })
    }

    pub(super) fn rows(&self) -> usize {
        self.count.len() / self.labels.max(1)
    }

    /// Every cell of a row that says something about it, as it is or with what was usual before.
    pub(super) fn of_row(&self, row: u16) -> impl Iterator<Item = Cell> {
        let begins = usize::from(row) * self.labels;
        let counts = self.count[begins..begins + self.labels].iter().enumerate();
        let counts = counts.filter(|(_, count)| **count >= IN_ROW_MIN);
        counts.map(move |(label, count)| Cell {
            row,
            label: label as u16,
            count: *count,
            expected: f64::from(self.expected[begins + label]),
            trials: f64::from(self.trials[begins + label]),
        })
    }

    /// Shuffles labels within strata, so often, and raises each entry to the strongest cell of its round. Where it is
    /// wanted, says how far each row as a whole was from what is expected, round by round.
    pub(super) fn shuffle(
        &self,
        random: &mut Random,
        best: &mut [f64],
        mut rows: Option<&mut Vec<Vec<f32>>>,
    ) {
        let mut count = vec![0_u32; self.count.len()];
        let mut labels: Vec<u16> = self.items.iter().map(|item| item.label).collect();
        for best in best {
            let mut of_rows = vec![0.0_f32; if rows.is_some() { self.rows() } else { 0 }];
            let mut begins = 0;
            for end in &self.ends {
                random.shuffle(&mut labels[begins..*end]);
                begins = *end;
            }
            let cells = self.items.iter().zip(&labels);
            let cells =
                cells.map(|(it, label)| usize::from(it.row) * self.labels + usize::from(*label));
            for cell in cells.clone() {
                count[cell] += 1;
            }
            for cell in cells {
                let seen = std::mem::take(&mut count[cell]);
                let of_row = of_rows.get_mut(cell / self.labels).filter(|_| seen >= IN_ROW_MIN);
                if seen < COUNT_MIN && of_row.is_none() {
                    continue;
                }
                let (expected, trials) = (self.expected[cell], self.trials[cell]);
                let strength = strength(seen, f64::from(expected), f64::from(trials));
                if seen >= COUNT_MIN {
                    *best = best.max(strength);
                }
                if let Some(sum) = of_row {
                    *sum += (strength * strength) as f32;
                }
            }
            if let Some(rows) = &mut rows {
                rows.push(of_rows);
            }
        }
    }
}

/// How far a count lies above what is expected of so many trials: the signed root of the deviance, which unlike a
/// plain z is not fooled by cells in which next to nothing is expected.
pub(super) fn strength(count: u32, expected: f64, trials: f64) -> f64 {
    let count = f64::from(count);
    if count <= expected || expected <= 0.0 {
        return 0.0;
    }
    // Of trials without end, what is left of them has the difference in the limit.
    let rest = trials - count;
    let of_rest = match rest {
        rest if rest.is_infinite() => expected - count,
        rest if rest > 0.0 => rest * (rest / (trials - expected).max(1e-9)).ln(),
        _ => 0.0,
    };
    (2.0 * (count * (count / expected).ln() + of_rest)).max(0.0).sqrt()
}

/// The share of rounds, the real one among them, in which something at least as strong was seen.
pub(super) fn share_above(strength: f64, best: &[f64]) -> f64 {
    let above = best.iter().filter(|best| **best >= strength).count();
    (above + 1) as f64 / (best.len() + 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(preference: bool) -> Table {
        let mut random = Random::seeded(7);
        let items: Vec<_> = (0..2000)
            .map(|of| {
                let row = random.below(10) as u16;
                // Receiver 0 is popular with everybody; that is no preference of anybody.
                let mut label = if random.below(2) == 0 { 0 } else { random.below(10) as u16 };
                if preference && row == 3 && random.below(2) == 0 {
                    label = 5;
                }
                (0, Item { row, label, of })
            })
            .collect();
        Table::new(&items, 10, 10)
    }

    #[test]
    fn popularity_is_no_preference_and_a_preference_is_found() {
        let strongest = |table: &Table| {
            let cells = table.cells();
            cells
                .max_by(|a, b| {
                    let of = |it: &Cell| strength(it.count, it.expected, it.trials);
                    of(a).total_cmp(&of(b))
                })
                .unwrap()
        };
        let p = |table: &Table| {
            let mut best = vec![0.0; 199];
            table.shuffle(&mut Random::seeded(1), &mut best, None);
            let cell = strongest(table);
            share_above(strength(cell.count, cell.expected, cell.trials), &best)
        };
        assert!(p(&table(false)) > 0.05);
        assert_eq!(p(&table(true)), 1.0 / 200.0);
        let cell = strongest(&table(true));
        assert_eq!((cell.row, cell.label), (3, 5));
    }
}

//! How figures are summed up and shown: spreads, goals and tables.

use serde::Serialize;

#[derive(Clone, Copy, Default, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

#[derive(Serialize)]
pub(crate) struct Goal {
    text: String,
    ratio_min: f64,
    /// None where one of the two was not measured.
    ratio: Option<f64>,
    met: Option<bool>,
}

impl Spread {
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_unstable_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (values.first(), values.last()) else {
            return Self::default();
        };
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            f64::midpoint(values[middle - 1], values[middle])
        };
        Self { median, min, max }
    }
}

impl Goal {
    pub(crate) fn new(text: &str, ratio_min: f64, of: Option<f64>, to: Option<f64>) -> Self {
        let ratio = of.zip(to).map(|(of, to)| of / to);
        let met = ratio.map(|ratio| ratio >= ratio_min);
        Self { text: text.to_owned(), ratio_min, ratio, met }
    }

    pub(crate) fn line(&self) -> String {
        let Self { text, ratio_min, .. } = self;
        match (self.met, self.ratio) {
            (Some(true), Some(ratio)) => {
                format!("met     {text}: {ratio:.2}×, goal ≥ {ratio_min}×")
            }
            (Some(false), Some(ratio)) => {
                format!("missed  {text}: {ratio:.2}×, goal ≥ {ratio_min}×")
            }
            _ => format!("–       {text}: not measured, goal ≥ {ratio_min}×"),
        }
    }
}

/// A Markdown table, aligned so that it can be read as it is.
pub(crate) fn table<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> Vec<String> {
    let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
    });
    let mut lines: Vec<String> = rows
        .iter()
        .map(|row| {
            let cells: Vec<String> =
                row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            format!("| {} |", cells.join(" | "))
        })
        .collect();
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    lines.insert(lines.len().min(1), format!("| {} |", rule.join(" | ")));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_from_its_ratio_on() {
        let line = |of, to| Goal::new("ours to theirs", 3.0, of, to).line();
        assert_eq!(line(Some(9.0), Some(3.0)), "met     ours to theirs: 3.00×, goal ≥ 3×");
        assert_eq!(line(Some(8.0), Some(4.0)), "missed  ours to theirs: 2.00×, goal ≥ 3×");
        assert_eq!(line(Some(8.0), None), "–       ours to theirs: not measured, goal ≥ 3×");
    }

    #[test]
    fn the_median_of_an_even_count_lies_between_the_middle_two() {
        let spread = Spread::of([4.0, 1.0, 2.0, 3.0].into_iter());
        assert_eq!((spread.median, spread.min, spread.max), (2.5, 1.0, 4.0));
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["a", "long"], ["wide", "b"]].map(|row| row.map(str::to_owned));
        assert_eq!(table(&rows), ["| a    | long |", "| ---- | ---- |", "| wide | b    |"]);
    }
}

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
    #[serde(flatten)]
    bound: Bound,
    /// None where one of the two was not measured.
    ratio: Option<f64>,
    met: Option<bool>,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum Bound {
    RatioMin(f64),
    RatioMax(f64),
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
        Self::within(text, Bound::RatioMin(ratio_min), of.zip(to).map(|(of, to)| of / to))
    }

    pub(crate) fn at_most(text: &str, ratio_max: f64, ratio: Option<f64>) -> Self {
        Self::within(text, Bound::RatioMax(ratio_max), ratio)
    }

    fn within(text: &str, bound: Bound, ratio: Option<f64>) -> Self {
        let met = ratio.map(|ratio| match bound {
            Bound::RatioMin(min) => ratio >= min,
            Bound::RatioMax(max) => ratio <= max,
        });
        Self { text: text.to_owned(), bound, ratio, met }
    }

    pub(crate) fn line(&self) -> String {
        let text = &self.text;
        let goal = match self.bound {
            Bound::RatioMin(min) => format!("goal ≥ {min}×"),
            Bound::RatioMax(max) => format!("goal ≤ {max}×"),
        };
        match (self.met, self.ratio) {
            (Some(true), Some(ratio)) => format!("met     {text}: {ratio:.2}×, {goal}"),
            (Some(false), Some(ratio)) => format!("missed  {text}: {ratio:.2}×, {goal}"),
            _ => format!("–       {text}: not measured, {goal}"),
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
    fn a_goal_with_an_upper_bound_is_met_up_to_its_ratio() {
        let goal = |ratio| Goal::at_most("beside to alone", 3.0, ratio);
        assert_eq!(goal(Some(3.0)).line(), "met     beside to alone: 3.00×, goal ≤ 3×");
        assert_eq!(goal(Some(4.0)).line(), "missed  beside to alone: 4.00×, goal ≤ 3×");
        let json = serde_json::to_value(goal(None)).unwrap();
        assert_eq!((&json["ratio_max"], &json["met"]), (&3.0.into(), &serde_json::Value::Null));
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

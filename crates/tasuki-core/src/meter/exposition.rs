// SPDX-License-Identifier: Apache-2.0
//! Samples as text: in the form that Prometheus has read since its beginning, and as OpenMetrics, which
//! has examples.

use std::fmt::Write;

use super::families::{Family, Kind};
use super::histogram::{Example, Histogram};
use super::reading::{Sample, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Prometheus,
    OpenMetrics,
}

impl Form {
    /// The form that is asked for by an `Accept` header.
    #[must_use]
    pub fn accepted(accept: &str) -> Self {
        match accept.contains("application/openmetrics-text") {
            true => Self::OpenMetrics,
            false => Self::Prometheus,
        }
    }

    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Writes samples, all of a metric together.
#[must_use]
pub fn write(mut samples: Vec<Sample>, form: Form) -> String {
    samples.sort_by_key(|sample| sample.family);
    let mut text = String::with_capacity(samples.len() * 100);
    let mut last: Option<Family> = None;
    for sample in &samples {
        if last != Some(sample.family) {
            head(&mut text, sample.family, form);
            last = Some(sample.family);
        }
        body(&mut text, sample, form);
    }
    if form == Form::OpenMetrics {
        text.push_str("# EOF\n");
    }
    text
}

fn head(text: &mut String, family: Family, form: Form) {
    let facts = family.facts();
    let (name, kind) = match facts.kind {
        // OpenMetrics calls a counter what it counts, and its sample the total.
        Kind::Counter if form == Form::OpenMetrics => {
            (facts.name.trim_end_matches("_total"), "counter")
        }
        Kind::Counter => (facts.name, "counter"),
        Kind::Gauge => (facts.name, "gauge"),
        Kind::Histogram(_) => (facts.name, "histogram"),
    };
    let _ = writeln!(text, "# HELP {name} {}\n# TYPE {name} {kind}", facts.help);
}

fn body(text: &mut String, sample: &Sample, form: Form) {
    let name = sample.family.name();
    match &sample.value {
        Value::Whole(count) => line(text, name, &sample.labels, None, *count),
        Value::Number(number) => line(text, name, &sample.labels, None, number),
        Value::Counts(counts) => histogram(text, sample, counts, form),
    }
}

fn histogram(text: &mut String, sample: &Sample, counts: &Histogram, form: Form) {
    let Some(scale) = sample.family.scale() else { return };
    let name = sample.family.name();
    let bucket = format!("{name}_bucket");
    let mut below = 0;
    for (place, count) in counts.counts.iter().enumerate() {
        below += count;
        let bound = match scale.bounds.get(place) {
            Some(bound) => number(*bound as f64 / scale.per as f64, form),
            None => "+Inf".to_owned(),
        };
        line(text, &bucket, &sample.labels, Some(&bound), below);
        let example = counts.examples.get(place).copied().flatten();
        if let (Form::OpenMetrics, Some(example)) = (form, example) {
            text.pop();
            shown(text, &example, scale.per);
        }
    }
    line(text, &format!("{name}_sum"), &sample.labels, None, counts.sum as f64 / scale.per as f64);
    line(text, &format!("{name}_count"), &sample.labels, None, below);
}

/// The trace of a task has the number of the task's id.
fn shown(text: &mut String, example: &Example, per: u64) {
    let (task, value) = (example.task.0, example.value as f64 / per as f64);
    let at = example.at.0 as f64 / 1000.0;
    let _ = writeln!(text, " # {{trace_id=\"{task:032x}\"}} {value} {at}");
}

/// OpenMetrics wants bounds that are whole to be written as what they are: numbers with a point.
fn number(value: f64, form: Form) -> String {
    match form {
        Form::OpenMetrics if value.fract() == 0.0 => format!("{value:.1}"),
        Form::OpenMetrics | Form::Prometheus => value.to_string(),
    }
}

fn line(
    text: &mut String,
    name: &str,
    labels: &[(&'static str, String)],
    bound: Option<&str>,
    value: impl std::fmt::Display,
) {
    text.push_str(name);
    let bound = bound.map(|bound| ("le", bound));
    let mut all =
        labels.iter().map(|(name, value)| (*name, value.as_str())).chain(bound).peekable();
    if all.peek().is_some() {
        text.push('{');
        for (place, (name, value)) in all.enumerate() {
            if place > 0 {
                text.push(',');
            }
            let _ = write!(text, "{name}=\"");
            escape(text, value);
            text.push('"');
        }
        text.push('}');
    }
    let _ = writeln!(text, " {value}");
}

fn escape(text: &mut String, value: &str) {
    for character in value.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{TaskId, Timestamp};
    use crate::meter::families::HOPS;

    #[test]
    fn a_counter_is_named_as_each_form_wants_it() {
        let one = |form| {
            let value = Value::Whole(3);
            write(vec![Sample { family: Family::Commits, labels: Vec::new(), value }], form)
        };
        let help = "Commits of this broker's store";
        let (old, new) = ("tasuki_commits_total", "tasuki_commits");
        assert_eq!(
            one(Form::Prometheus),
            format!("# HELP {old} {help}\n# TYPE {old} counter\n{old} 3\n")
        );
        assert_eq!(
            one(Form::OpenMetrics),
            format!("# HELP {new} {help}\n# TYPE {new} counter\n{old} 3\n# EOF\n")
        );
    }

    #[test]
    fn buckets_add_up_and_only_openmetrics_has_examples() {
        let mut counts = Histogram::new(&HOPS);
        let (task, at) = (TaskId(255), Timestamp(1500));
        counts.take_example(&HOPS, Example { task, value: 7, at });
        counts.take(&HOPS, 99);
        let labels = vec![("pipeline", "a\"\\\nb".to_owned())];
        let sample = Sample { family: Family::Hops, labels, value: Value::Counts(counts) };
        let old = write(vec![sample.clone()], Form::Prometheus);
        let name = r#"handoff_hop_depth_bucket{pipeline="a\"\\\nb",le="#;
        assert!(old.contains(&format!("{name}\"6\"}} 0\n{name}\"8\"}} 1\n")), "{old}");
        assert!(old.contains(&format!("{name}\"+Inf\"}} 2\n")), "{old}");
        assert!(!old.contains("trace_id"), "{old}");
        let new = write(vec![sample], Form::OpenMetrics);
        let example = format!(r#"{name}"8.0"}} 1 # {{trace_id="{:032x}"}} 7 1.5"#, 255);
        assert!(new.contains(&example), "{new}");
    }

    #[test]
    fn whoever_asks_for_openmetrics_gets_it() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.75,text/plain;q=0.5";
        assert_eq!(Form::accepted(prometheus), Form::OpenMetrics);
        assert_eq!(Form::accepted("*/*"), Form::Prometheus);
    }
}

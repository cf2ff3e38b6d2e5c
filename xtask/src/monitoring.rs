// SPDX-License-Identifier: Apache-2.0
//! What those who monitor a broker use, made from the tables of metrics and rules: two pages of the
//! reference, the rules for Prometheus, and a dashboard for Grafana.

use serde_json::{Value, json};
use tasuki_core::alert::{RULES, rules};
use tasuki_core::meter::families::{Family, Kind, Label};

/// The page of all metrics.
pub(crate) fn metrics() -> String {
    let mut text = String::from(
        "# Metrics\n\nMade by `cargo xtask codegen` from the table of metrics. Do not edit.\n\n\
         `GET /metrics` has them all, as text for Prometheus or, where it is asked for, as OpenMetrics with \
         examples. `docs/guides/monitoring.md` says how to use them.\n\n\
         What begins with `handoff_` follows from the log alone: it is the same at every broker on a store, \
         after a restart, and computed from an export. Put it together with `max`, never with `sum`. What \
         begins with `tasuki_` or `process_` is of one broker, has its key in the label `broker`, and begins \
         at 0 with its process.\n",
    );
    for (title, is_of_log) in [("Of the log", true), ("Of one broker", false)] {
        text += &format!(
            "\n## {title}\n\n| metric | kind | labels | what it is |\n|---|---|---|---|\n"
        );
        for family in Family::ALL.iter().filter(|family| family.is_of_log() == is_of_log) {
            let facts = family.facts();
            let kind = match facts.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram(_) => "histogram",
            };
            let labels: Vec<_> = facts.labels.iter().map(|label| labelled(*label)).collect();
            let labels = labels.join("; ");
            text += &format!("| `{}` | {kind} | {labels} | {} |\n", facts.name, facts.help);
        }
    }
    text
}

fn labelled(label: Label) -> String {
    match label {
        Label::Target => "`target`".into(),
        Label::Pipeline => "`pipeline`".into(),
        Label::Listed(name) => format!("`{name}`"),
        Label::Word(name, words) => format!("`{name}`: {}", words.join(", ")),
    }
}

/// The page of all rules.
pub(crate) fn alerts() -> String {
    let mut text = String::from(
        "# Alerts\n\nMade by `cargo xtask codegen` from the table of rules. Do not edit.\n\n\
         The broker evaluates them itself, all but the last; `tasuki alerts rules` prints them for Prometheus.\n",
    );
    for rule in RULES {
        let each = if rule.by_target { ", for each target" } else { "" };
        let held = match rule.for_ms {
            0 => "at once".into(),
            ms => format!("after {}", rules::span(ms)),
        };
        text += &format!(
            "\n## {}\n\n{}{each}, {held}: {}. What to do: {}.\n\n```text picture\n{}\n```\n",
            rule.name,
            rule.severity,
            rule.summary,
            rule.action,
            rule.expression(),
        );
    }
    text
}

/// A dashboard for Grafana: one row for each of the five numbers, then the rest.
pub(crate) fn grafana() -> anyhow::Result<String> {
    let mut panels = Vec::new();
    let rate = |family: Family, suffix: &str| format!("rate({}{suffix}[5m])", family.name());
    let quantile = |of: Family, share: &str, by: &str| {
        let buckets = rate(of, "_bucket");
        format!("histogram_quantile({share}, sum by (le{by}) (max without (instance) ({buckets})))")
    };
    let latency: Vec<_> = ["0.5", "0.95", "0.99"]
        .iter()
        .map(|share| (quantile(Family::Delivery, share, ""), format!("p{}", &share[2..])))
        .collect();
    add(&mut panels, "Delivery latency", "s", latency);
    let stages = quantile(Family::Stage, "0.95", ", stage");
    add(&mut panels, "p95 by stage", "s", vec![(stages, "{{stage}}".into())]);
    let sum = |family: Family, suffix: &str| {
        format!("sum(max without (instance) ({}))", rate(family, suffix))
    };
    let mean = |family: Family| format!("{} / {}", sum(family, "_sum"), sum(family, "_count"));
    let completeness = vec![(mean(Family::Completeness), "completeness".into())];
    add(&mut panels, "Context completeness", "percentunit", completeness);
    let dead = format!("{}{{outcome=\"dead_lettered\"}}", Family::Terminal.name());
    let failed =
        format!("sum(max without (instance) (rate({dead}[5m]))) / {}", sum(Family::Terminal, ""));
    add(&mut panels, "Failure rate", "percentunit", vec![(failed, "failed".into())]);
    add(&mut panels, "Hop depth", "short", vec![(mean(Family::Hops), "hops".into())]);
    let utilisation = vec![(mean(Family::Utilisation), "used".into())];
    add(&mut panels, "Token utilisation", "percentunit", utilisation);
    for (title, unit, family) in [
        ("Waiting to be claimed", "short", Family::Queue),
        ("Oldest that waits", "s", Family::QueueAge),
        ("Claimed", "short", Family::Inflight),
        ("Failures in a row", "short", Family::Run),
    ] {
        let shown = format!("max by (target) ({})", family.name());
        add(&mut panels, title, unit, vec![(shown, "{{target}}".into())]);
    }
    let open = format!("max by (target) ({}{{state=\"open\"}})", Family::Circuit.name());
    add(&mut panels, "Open breakers", "short", vec![(open, "{{target}}".into())]);
    let letters = format!("sum by (target) (max without (instance) ({}))", Family::Letters.name());
    add(&mut panels, "Dead letters to decide on", "short", vec![(letters, "{{target}}".into())]);
    let sync = format!(
        "histogram_quantile(0.99, sum by (le, broker) ({}))",
        rate(Family::Sync, "_bucket")
    );
    add(&mut panels, "p99 of making a commit durable", "s", vec![(sync, "{{broker}}".into())]);
    let batch = format!(
        "sum by (broker) ({}) / sum by (broker) ({})",
        rate(Family::Batch, "_sum"),
        rate(Family::Batch, "_count")
    );
    add(&mut panels, "Events in a commit", "short", vec![(batch, "{{broker}}".into())]);
    let requests = format!("sum by (outcome) ({})", rate(Family::Requests, ""));
    add(&mut panels, "Requests", "reqps", vec![(requests, "{{outcome}}".into())]);
    let memory = Family::Memory.name().to_owned();
    add(&mut panels, "Memory", "bytes", vec![(memory, "{{broker}}".into())]);
    let dashboard = json!({
        "title": "Tasuki",
        "uid": "tasuki",
        "schemaVersion": 39,
        "editable": true,
        "refresh": "10s",
        "time": { "from": "now-1h", "to": "now" },
        "templating": { "list": [{
            "name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus",
        }] },
        "panels": panels,
    });
    Ok(serde_json::to_string_pretty(&dashboard)? + "\n")
}

fn add(panels: &mut Vec<Value>, title: &str, unit: &str, queries: Vec<(String, String)>) {
    let place = panels.len();
    let source = json!({ "type": "prometheus", "uid": "${source}" });
    let targets = queries.into_iter().enumerate().map(|(at, (query, legend))| {
        let name = char::from(b'A' + at as u8).to_string();
        json!({ "refId": name, "datasource": source, "expr": query, "legendFormat": legend })
    });
    let targets: Vec<_> = targets.collect();
    panels.push(json!({
        "id": place + 1,
        "type": "timeseries",
        "title": title,
        "datasource": source,
        "gridPos": { "h": 8, "w": 12, "x": (place % 2) * 12, "y": (place / 2) * 8 },
        "fieldConfig": { "defaults": { "unit": unit, "min": 0 }, "overrides": [] },
        "targets": targets,
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_panel_of_the_dashboard_asks_for_metrics_that_there_are() {
        let dashboard: Value = serde_json::from_str(&grafana().unwrap()).unwrap();
        let panels = dashboard["panels"].as_array().unwrap();
        assert!(panels.len() > 10);
        let suffixes = ["", "_bucket", "_sum", "_count"];
        for panel in panels {
            for target in panel["targets"].as_array().unwrap() {
                let query = target["expr"].as_str().unwrap();
                let word = |c: char| !c.is_ascii_alphanumeric() && c != '_';
                let named = query.split(word).filter(|it| {
                    ["handoff_", "tasuki_", "process_"].iter().any(|start| it.starts_with(start))
                });
                let named: Vec<_> = named.collect();
                assert!(!named.is_empty(), "{query}");
                for name in named {
                    let known = Family::ALL.iter().any(|family| {
                        suffixes.iter().any(|end| format!("{}{end}", family.name()) == name)
                    });
                    assert!(known, "{name} in {query}");
                }
            }
        }
    }
}

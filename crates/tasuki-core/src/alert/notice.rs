// SPDX-License-Identifier: Apache-2.0
//! A notice of an alert, in the form in which Alertmanager posts to webhooks (version 4), so that what
//! receives those takes ours.

use std::collections::BTreeMap;

use serde::Serialize;

use super::rules::{self, Severity};
use crate::ids::Timestamp;

/// What is told of one alert.
#[derive(Debug, Clone, PartialEq)]
pub struct Told<'t> {
    pub rule: &'t str,
    pub target: Option<&'t str>,
    pub fires: bool,
    pub since: Timestamp,
    pub ended: Option<Timestamp>,
    pub value: &'t str,
}

type Texts = BTreeMap<&'static str, String>;

/// The body of a post.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Notice {
    pub version: &'static str,
    pub group_key: String,
    pub truncated_alerts: u32,
    pub status: &'static str,
    pub receiver: &'static str,
    pub group_labels: Texts,
    pub common_labels: Texts,
    pub common_annotations: Texts,
    #[serde(rename = "externalURL")]
    pub external_url: String,
    pub alerts: Vec<One>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct One {
    pub status: &'static str,
    pub labels: Texts,
    pub annotations: Texts,
    pub starts_at: String,
    pub ends_at: String,
    #[serde(rename = "generatorURL")]
    pub generator_url: String,
    pub fingerprint: String,
}

/// What Alertmanager writes for an alert that has not ended.
const NEVER: &str = "0001-01-01T00:00:00Z";

impl Notice {
    #[must_use]
    pub fn of(told: &Told<'_>, external_url: &str) -> Self {
        let rule = rules::named(told.rule);
        let severity = rule.map_or(Severity::Info, |rule| rule.severity);
        let mut labels =
            Texts::from([("alertname", told.rule.to_owned()), ("severity", severity.to_string())]);
        labels.extend(told.target.map(|target| ("target", target.to_owned())));
        let about = told.target.map(|target| format!("{target}: ")).unwrap_or_default();
        let summary = rule.map_or(told.rule, |rule| rule.summary);
        let annotations = Texts::from([
            ("summary", format!("{about}{summary}")),
            ("description", rule.map_or("", |rule| rule.action).to_owned()),
            ("value", told.value.to_owned()),
        ]);
        let mut group_labels = labels.clone();
        group_labels.remove("severity");
        let group: Vec<_> =
            group_labels.iter().map(|(name, it)| format!("{name}={it:?}")).collect();
        let status = if told.fires { "firing" } else { "resolved" };
        let one = One {
            status,
            starts_at: told.since.to_string(),
            ends_at: told.ended.map_or_else(|| NEVER.into(), |ended| ended.to_string()),
            generator_url: format!("{external_url}/v1/alerts"),
            fingerprint: fingerprint(&labels),
            labels: labels.clone(),
            annotations: annotations.clone(),
        };
        Self {
            version: "4",
            group_key: format!("{{}}:{{{}}}", group.join(", ")),
            truncated_alerts: 0,
            status,
            receiver: "tasuki",
            group_labels,
            common_labels: labels,
            common_annotations: annotations,
            external_url: external_url.to_owned(),
            alerts: vec![one],
        }
    }
}

/// The number by which Prometheus and Alertmanager know a set of labels.
fn fingerprint(labels: &Texts) -> String {
    let mut sum: u64 = 0xcbf2_9ce4_8422_2325;
    for (name, value) in labels {
        for byte in name.bytes().chain([255]).chain(value.bytes()).chain([255]) {
            sum = (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{sum:016x}")
}

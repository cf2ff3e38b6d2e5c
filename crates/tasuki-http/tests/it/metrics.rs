// SPDX-License-Identifier: Apache-2.0
//! What is measured: it follows from the log, is there from the start, and is the same after a restart.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::http::Request;
use serde_json::json;
use tasuki_core::alert::Watch;
use tasuki_core::meter::exposition::{self, Form};
use tasuki_core::{Position, Target};
use tasuki_store::Clock;

use crate::support::may;
use crate::support::{SECOND, Stage, failure, on_durable_stores};

on_durable_stores! {
    a_targets_series_are_at_0_when_it_is_registered
    a_handoffs_way_is_counted_where_it_ends
    failures_in_a_row_and_dead_letters_are_gauges
    two_forms_are_served_and_only_openmetrics_has_examples
    an_overview_begins_with_what_needs_somebody
    log_metrics_after_a_restart_are_those_of_the_exported_log
}

mod walls {
    use super::whoever_reads_in_one_tenant_sees_its_own_targets_only;

    super::on_durable_stores! { closed:
        whoever_reads_in_one_tenant_sees_its_own_targets_only
    }
}

/// Series by name and labels.
type Series = BTreeMap<String, f64>;

fn read(text: &str) -> Series {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let series = lines.map(|line| {
        let (name, value) =
            line.split_once(" # ").map_or(line, |(line, _)| line).rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    });
    series.collect()
}

async fn scraped(stage: &Stage) -> Series {
    read(stage.get("/metrics").await.text())
}

fn of_log(series: &Series) -> Series {
    let log = series.iter().filter(|(name, _)| name.starts_with("handoff_"));
    log.map(|(name, value)| (name.clone(), *value)).collect()
}

async fn a_targets_series_are_at_0_when_it_is_registered(stage: Stage) {
    let manifest = json!({ "agent_id": "coder", "capabilities": [{ "name": "review" }] });
    stage.post("/v1/agents", json!({ "manifest": manifest })).await.done();
    let series = scraped(&stage).await;
    for (target, name) in [
        ("agent:coder", "handoff_terminal_total{target=\"TARGET\",outcome=\"dead_lettered\"}"),
        ("capability:review", "handoff_terminal_total{target=\"TARGET\",outcome=\"completed\"}"),
        ("agent:coder", "handoff_delivery_seconds_count{target=\"TARGET\",outcome=\"claimed\"}"),
        ("agent:coder", "handoff_target_consecutive_failures{target=\"TARGET\"}"),
        ("agent:coder", "handoff_dead_letters{target=\"TARGET\",reason=\"poison\"}"),
        ("capability:review", "handoff_queue_depth{target=\"TARGET\"}"),
    ] {
        let name = name.replace("TARGET", target);
        assert_eq!(series.get(&name), Some(&0.0), "{name}");
    }
    let closed = "handoff_circuit_state{target=\"agent:coder\",state=\"closed\"}";
    assert_eq!(series[closed], 1.0);
}

async fn a_handoffs_way_is_counted_where_it_ends(stage: Stage) {
    let id = stage.offer("coder", json!({})).await;
    let series = scraped(&stage).await;
    assert_eq!(series["handoff_queue_depth{target=\"agent:coder\"}"], 1.0);
    stage.pass(3 * SECOND).await;
    let series = scraped(&stage).await;
    assert_eq!(series["handoff_queue_oldest_age_seconds{target=\"agent:coder\"}"], 3.0);
    let held = stage.claimed(&id, "coder").await;
    let series = scraped(&stage).await;
    assert_eq!(series["handoff_inflight{target=\"agent:coder\"}"], 1.0);
    assert_eq!(series["handoff_queue_depth{target=\"agent:coder\"}"], 0.0);
    let bucket = |le: &str| {
        let name = "handoff_delivery_seconds_bucket{target=\"agent:coder\",outcome=\"claimed\",le=";
        series[&format!("{name}\"{le}\"}}")]
    };
    assert_eq!((bucket("2.5"), bucket("5")), (0.0, 1.0), "it waited for 3 seconds");
    stage.completed(&held).await;
    let series = scraped(&stage).await;
    assert_eq!(series["handoff_terminal_total{target=\"agent:coder\",outcome=\"completed\"}"], 1.0);
    assert_eq!(series["handoff_attempts_total{target=\"agent:coder\",result=\"completed\"}"], 1.0);
    assert_eq!(series["handoff_stage_seconds_sum{stage=\"whole\"}"], 3.0);
    assert_eq!(series["handoff_hop_depth_count{pipeline=\"none\"}"], 1.0);
    assert_eq!(series["handoff_inflight{target=\"agent:coder\"}"], 0.0);
    let requests = "operation=\"handoff_complete\",outcome=\"done\"}";
    let counted =
        |name: &String| name.starts_with("tasuki_requests_total") && name.ends_with(requests);
    assert_eq!(series.iter().find(|(name, _)| counted(name)).unwrap().1, &1.0);
}

async fn failures_in_a_row_and_dead_letters_are_gauges(stage: Stage) {
    let letter = stage.dead_letter().await;
    stage.dead_letter().await;
    let run = "handoff_target_consecutive_failures{target=\"agent:coder\"}";
    let letters = "handoff_dead_letters{target=\"agent:coder\",reason=\"permanent_failure\"}";
    let dead = "handoff_dead_lettered_total{target=\"agent:coder\",reason=\"permanent_failure\"}";
    stage.pass(SECOND).await;
    let series = scraped(&stage).await;
    assert_eq!((series[run], series[letters], series[dead]), (2.0, 2.0, 2.0));
    assert_eq!(series["handoff_dead_letter_oldest_age_seconds"], 1.0);
    let path = format!("/v1/dead-letters/{letter}/discard");
    stage.post(&path, json!({ "by": "lead", "reason": "old" })).await.done();
    let id = stage.offer("coder", json!({})).await;
    stage.completed(&stage.claimed(&id, "coder").await).await;
    let series = scraped(&stage).await;
    assert_eq!((series[run], series[letters], series[dead]), (0.0, 1.0, 2.0));
}

async fn two_forms_are_served_and_only_openmetrics_has_examples(stage: Stage) {
    let id = stage.offer("coder", json!({})).await;
    stage.claimed(&id, "coder").await;
    let request = Request::get("/metrics").header("accept", "application/openmetrics-text");
    let new = stage.call(request.body(Body::empty()).unwrap()).await;
    let kind = new.headers["content-type"].to_str().unwrap().to_owned();
    assert!(kind.starts_with("application/openmetrics-text; version=1.0.0"), "{kind}");
    let text = new.text();
    assert!(text.ends_with("# EOF\n"));
    assert!(text.contains("# TYPE handoff_terminal counter\n"));
    assert!(text.contains(" # {trace_id=\""), "{text}");
    let old = stage.get("/metrics").await;
    let old = old.text();
    assert!(!old.contains("trace_id") && !old.contains("# EOF"));
    assert!(old.contains("# TYPE handoff_terminal_total counter\n"));
}

async fn an_overview_begins_with_what_needs_somebody(stage: Stage) {
    stage.dead_letter().await;
    let id = stage.offer("tester", json!({})).await;
    stage.completed(&stage.claimed(&id, "tester").await).await;
    stage.offer("nobody", json!({})).await;
    stage.pass(2 * SECOND).await;
    let shown = stage.get("/v1/overview").await.done();
    assert_eq!((&shown["ended"], &shown["dead_lettered"]), (&json!(2), &json!(1)));
    assert_eq!(shown["failure_rate"], 0.5);
    assert_eq!(shown["delivery"]["count"], 2);
    let targets = shown["targets"].as_array().unwrap();
    let named: Vec<_> = targets.iter().map(|it| &it["target"]["agent"]).collect();
    assert_eq!(named, ["nobody", "coder"], "the tester needs nobody");
    assert_eq!((&targets[0]["live"], &targets[0]["oldest_ms"]), (&json!(false), &json!(2000)));
}

/// Some of everything that counts.
async fn busy(stage: &Stage) {
    let manifest = json!({ "agent_id": "coder" });
    stage.post("/v1/agents", json!({ "manifest": manifest })).await.done();
    stage.dead_letter().await;
    let lost = stage.offer("coder", json!({})).await;
    stage.claimed(&lost, "coder").await;
    stage.pass(120 * SECOND).await;
    let failed = stage.offer("coder", json!({})).await;
    let held = stage.claimed(&failed, "coder").await;
    stage.act(&held, "fail", failure("retryable")).await.done();
    let done = stage.offer("tester", json!({})).await;
    stage.completed(&stage.claimed(&done, "tester").await).await;
}

/// What the log comes to by itself, read from its first event on.
async fn computed(stage: &Stage) -> Watch {
    let mut watch = Watch::default();
    let mut at = Position(0);
    loop {
        let entries = stage.store.events(at, 100).await.unwrap();
        let Some(last) = entries.last() else { return watch };
        at = last.sealed.position;
        entries.iter().for_each(|entry| watch.note(&entry.sealed));
    }
}

async fn log_metrics_after_a_restart_are_those_of_the_exported_log(stage: Stage) {
    busy(&stage).await;
    let before = of_log(&scraped(&stage).await);
    let stage = stage.restarted().await;
    let after = scraped(&stage).await;
    assert_eq!(of_log(&after), before, "a restart changes nothing");
    busy(&stage).await;
    let now = stage.clock.now();
    let scraped = of_log(&scraped(&stage).await);
    let watch = computed(&stage).await;
    let text = exposition::write(watch.meters.samples(now, None), Form::Prometheus);
    assert_eq!(scraped, read(&text));
    let capability = Target::Agent("coder".parse().unwrap());
    assert!(text.contains(&tasuki_core::meter::label_of(&capability)));
}

async fn whoever_reads_in_one_tenant_sees_its_own_targets_only(stage: Stage) {
    let admin = stage.administrator().await;
    let reader = admin.enroll("acme/reader", may(&["read"])).await;
    admin.enroll("coder", may(&["claim"])).await;
    let text = reader.get("/metrics").await.text().to_owned();
    let series = read(&text);
    assert!(series.keys().all(|name| name.contains("\"agent:acme/")), "{text}");
    assert!(!series.is_empty());
    let all = admin.get("/metrics").await.text().to_owned();
    assert!(all.contains("agent:coder") && all.contains("tasuki_commits_total"), "{all}");
    stage.get("/metrics").await.refused(401, "unauthenticated");
}

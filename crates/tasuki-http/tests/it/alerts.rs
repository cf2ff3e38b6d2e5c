// SPDX-License-Identifier: Apache-2.0
//! Alerts on a clock that is moved: what begins and ends is in the log once, people are told of it once
//! however many brokers run, and all of it is the same after a restart.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tasuki_core::alert::Watch;
use tasuki_core::{Position, Timestamp};
use tasuki_engine::{Message, Messenger, Settings, Webhooks};
use tasuki_store::Clock;

use crate::support::may;
use crate::support::{SECOND, Stage, failure, on_durable_stores, text};

on_durable_stores! {
    a_dead_letter_is_told_once_and_so_is_that_it_is_over
    three_failures_in_a_row_warn_until_a_result_comes
    a_rate_has_to_be_high_for_five_minutes
    an_open_breaker_is_critical_at_once
    a_dropped_constraint_is_critical_also_where_nobody_is_asked_who_it_is
    what_is_silenced_is_told_when_the_silence_ends
    a_webhook_that_fails_is_tried_again_and_then_given_up
    a_notice_can_be_tried_out
    alerts_after_a_restart_are_those_of_the_exported_log
    what_one_broker_could_not_send_another_sends
}

mod walls {
    use super::whoever_operates_one_tenant_silences_its_own_targets_only;

    super::on_durable_stores! { closed:
        whoever_operates_one_tenant_silences_its_own_targets_only
    }
}

/// How long a broker is left to itself before its clock goes on; nothing depends on it but how long a
/// test takes.
const TURN: Duration = Duration::from_millis(50);
const URL: &str = "https://pager.example/hook";

/// Keeps what was sent, and refuses as often as it is told to.
#[derive(Default)]
struct Pager {
    sent: Mutex<Vec<Value>>,
    refuses: Mutex<u32>,
    came: tokio::sync::Notify,
}

#[async_trait]
impl Messenger for Pager {
    async fn send(&self, message: Message) -> Result<(), String> {
        assert_eq!(message.url, URL);
        let refused = {
            let mut refuses = self.refuses.lock().unwrap();
            let refused = *refuses > 0;
            *refuses = refuses.saturating_sub(1);
            refused
        };
        if !refused {
            self.sent.lock().unwrap().push(serde_json::from_slice(&message.body).unwrap());
        }
        self.came.notify_one();
        if refused { Err("it is asleep".into()) } else { Ok(()) }
    }
}

impl Pager {
    /// What was told of a rule: its status and target, in order.
    fn told(&self, rule: &str) -> Vec<(String, Value)> {
        let sent = self.sent.lock().unwrap();
        let about = sent.iter().filter(|it| it["commonLabels"]["alertname"] == rule);
        let told = about.map(|it| (text(&it["status"]), it["commonLabels"]["target"].clone()));
        told.collect()
    }

    /// Whoever sends gets its turn, before the clock goes on that it waits by.
    async fn tried(&self) {
        let _ = tokio::time::timeout(TURN, self.came.notified()).await;
    }

    /// What was told of a rule once it is so much, at a clock that goes on.
    async fn has_told(&self, stage: &Stage, rule: &str, count: usize) -> Vec<(String, Value)> {
        for _ in 0..300 {
            let told = self.told(rule);
            if told.len() >= count {
                return told;
            }
            self.tried().await;
            pass(stage, 1).await;
        }
        panic!("{rule} was told {:?}, not {count} times", self.told(rule));
    }
}

fn with_webhook(stage: &Stage) -> Settings {
    let external_url = "https://broker.example".to_owned();
    let webhooks = Webhooks { urls: vec![URL.to_owned()], external_url };
    Settings { webhooks, ..stage.settings() }
}

/// The same data at a broker that has somebody to tell.
async fn watched(stage: Stage) -> (Stage, Arc<Pager>) {
    let pager = Arc::<Pager>::default();
    let settings = with_webhook(&stage);
    stage.engine.close().await;
    let stage = stage.reopened_with(settings).await;
    stage.engine.start_alerts(pager.clone());
    (stage, pager)
}

/// Lets time pass in steps, so that everybody who looks at the clock looks at each.
async fn pass(stage: &Stage, seconds: u64) {
    for _ in 0..seconds.div_ceil(5) {
        stage.pass(seconds.min(5) * SECOND).await;
        // Whoever reads waits until the broker has come to here.
        stage.get("/v1/alerts").await.done();
    }
}

async fn alerts(stage: &Stage) -> Vec<(String, String, Value)> {
    let listed = stage.get("/v1/alerts").await.done();
    let one =
        |alert: &Value| (text(&alert["rule"]), text(&alert["state"]), alert["target"].clone());
    listed["alerts"].as_array().unwrap().iter().map(one).collect()
}

/// Waits until an alert is in a state, at a clock that goes on.
async fn until(stage: &Stage, rule: &str, state: &str) {
    for _ in 0..200 {
        let found = alerts(stage).await;
        if found.iter().any(|(name, is, _)| name == rule && is == state) {
            return;
        }
        pass(stage, 5).await;
    }
    panic!("{rule} is not {state}: {:?}", alerts(stage).await);
}

fn coder() -> Value {
    json!("agent:coder")
}

async fn a_dead_letter_is_told_once_and_so_is_that_it_is_over(stage: Stage) {
    let (stage, pager) = watched(stage).await;
    stage.dead_letter().await;
    pass(&stage, 10).await;
    let told = pager.has_told(&stage, "HandoffFailed", 1).await;
    assert_eq!(told, [("firing".into(), coder())]);
    {
        let sent = pager.sent.lock().unwrap();
        let body =
            sent.iter().find(|it| it["commonLabels"]["alertname"] == "HandoffFailed").unwrap();
        assert_eq!(body["version"], "4");
        assert_eq!(body["groupKey"], r#"{}:{alertname="HandoffFailed", target="agent:coder"}"#);
        assert_eq!(body["alerts"][0]["labels"]["severity"], "info");
        assert_eq!(body["alerts"][0]["endsAt"], "0001-01-01T00:00:00Z");
        assert_eq!(body["externalURL"], "https://broker.example");
    }
    pass(&stage, 320).await;
    let told = pager.has_told(&stage, "HandoffFailed", 2).await;
    assert_eq!(told, [("firing".into(), coder()), ("resolved".into(), coder())]);
    pass(&stage, 600).await;
    assert_eq!(pager.told("HandoffFailed").len(), 2, "and nothing more");
}

async fn three_failures_in_a_row_warn_until_a_result_comes(stage: Stage) {
    let (stage, pager) = watched(stage).await;
    for _ in 0..2 {
        stage.dead_letter().await;
    }
    pass(&stage, 10).await;
    assert!(!alerts(&stage).await.iter().any(|(rule, ..)| rule == "HandoffConsecutiveFailures"));
    stage.dead_letter().await;
    pass(&stage, 10).await;
    assert_eq!(pager.has_told(&stage, "HandoffConsecutiveFailures", 1).await.len(), 1);
    pass(&stage, 70).await;
    let id = stage.offer("coder", json!({})).await;
    stage.completed(&stage.claimed(&id, "coder").await).await;
    pass(&stage, 10).await;
    let told = pager.has_told(&stage, "HandoffConsecutiveFailures", 2).await;
    assert_eq!(told[1], ("resolved".into(), coder()));
}

async fn a_rate_has_to_be_high_for_five_minutes(stage: Stage) {
    let (stage, pager) = watched(stage).await;
    for agent in 0..8 {
        let name = format!("agent-{agent}");
        let id = stage.offer(&name, json!({})).await;
        let held = stage.claimed(&id, &name).await;
        stage.act(&held, "fail", failure("permanent")).await.done();
        pass(&stage, 50).await;
        let found = alerts(&stage).await;
        let state = found.iter().find(|(rule, ..)| rule == "HandoffFailureRateCritical");
        let expected = if agent < 6 { "pending" } else { "firing" };
        assert_eq!(state.unwrap().1, expected, "after {} seconds", (agent + 1) * 50);
    }
    let told = pager.has_told(&stage, "HandoffFailureRateCritical", 1).await;
    assert_eq!(told, [("firing".into(), Value::Null)]);
}

async fn an_open_breaker_is_critical_at_once(stage: Stage) {
    let (stage, pager) = watched(stage).await;
    for _ in 0..3 {
        let id = stage.offer("coder", json!({ "terms": { "attempts": 1 } })).await;
        let held = stage.claimed(&id, "coder").await;
        stage.act(&held, "fail", failure("retryable")).await.done();
    }
    pass(&stage, 10).await;
    assert_eq!(pager.has_told(&stage, "HandoffCircuitOpen", 1).await, [("firing".into(), coder())]);
    pass(&stage, 65).await;
    let told = pager.has_told(&stage, "HandoffCircuitOpen", 2).await;
    assert_eq!(told[1].0, "resolved", "it is half open by then");
}

async fn a_dropped_constraint_is_critical_also_where_nobody_is_asked_who_it_is(stage: Stage) {
    let (stage, pager) = watched(stage).await;
    let bound = json!({ "constraints": ["Never touch the production database."] });
    let held = stage.claimed(&stage.offer("coder", bound).await, "coder").await;
    let follow_up = json!({ "to": { "agent": "tester" }, "payload": { "type": "request" },
        "constraints": ["Be careful with production."] });
    let next = json!({ "payload": { "type": "done" }, "follow_ups": [follow_up] });
    stage.act(&held, "complete", next).await.refused(422, "constraint_dropped");
    pass(&stage, 10).await;
    let told = pager.has_told(&stage, "HandoffConstraintViolation", 1).await;
    assert_eq!(told, [("firing".into(), Value::Null)]);
}

async fn what_is_silenced_is_told_when_the_silence_ends(stage: Stage) {
    let (stage, pager) = watched(stage).await;
    let silence = |for_ms: u64, reason: &str| json!({ "rule": "HandoffConsecutiveFailures", "for_ms": for_ms, "reason": reason });
    stage
        .post("/v1/alerts/silence", silence(60 * SECOND, ""))
        .await
        .refused(400, "invalid_request");
    let listed =
        stage.post("/v1/alerts/silence", silence(60 * SECOND, "a known fault")).await.done();
    assert_eq!(listed["silences"][0]["reason"], "a known fault");
    for _ in 0..3 {
        stage.dead_letter().await;
    }
    pass(&stage, 10).await;
    pager.has_told(&stage, "HandoffFailed", 1).await;
    assert_eq!(pager.told("HandoffConsecutiveFailures"), []);
    let listed = stage.get("/v1/alerts").await.done();
    let alerts = listed["alerts"].as_array().unwrap();
    let silenced = alerts.iter().find(|it| it["rule"] == "HandoffConsecutiveFailures").unwrap();
    assert_eq!((&silenced["state"], &silenced["silenced"]), (&json!("firing"), &json!(true)));
    pass(&stage, 60).await;
    pager.has_told(&stage, "HandoffConsecutiveFailures", 1).await;
    let wrong = json!({ "rule": "Nothing", "for_ms": 1, "reason": "x" });
    stage.post("/v1/alerts/silence", wrong).await.refused(422, "invalid_terms");
}

async fn a_webhook_that_fails_is_tried_again_and_then_given_up(stage: Stage) {
    let (stage, pager) = watched(stage).await;
    *pager.refuses.lock().unwrap() = 2;
    stage.dead_letter().await;
    pass(&stage, 10).await;
    pager.has_told(&stage, "HandoffFailed", 1).await;
    *pager.refuses.lock().unwrap() = u32::MAX;
    let id = stage.offer("tester", json!({})).await;
    let held = stage.claimed(&id, "tester").await;
    stage.act(&held, "fail", failure("permanent")).await.done();
    let mut told = Value::Null;
    for _ in 0..140 {
        pager.tried().await;
        pass(&stage, 2).await;
        let listed = stage.get("/v1/alerts").await.done();
        let alerts = listed["alerts"].as_array().unwrap();
        let about = alerts.iter().find(|it| it["target"] == "agent:tester");
        told = about.map_or(Value::Null, |it| it["told"].clone());
        if !told.is_null() {
            break;
        }
    }
    assert_eq!((&told["sent"], &told["tries"]), (&json!(false), &json!(8)), "{told}");
    assert!(text(&told["problem"]).contains("it is asleep"), "{told}");
}

async fn a_notice_can_be_tried_out(stage: Stage) {
    let tested = stage.post("/v1/alerts/test", json!({})).await.done();
    assert_eq!(tested["webhooks"], json!([]));
    let (stage, pager) = watched(stage).await;
    let tested = stage.post("/v1/alerts/test", json!({})).await.done();
    assert_eq!(tested["webhooks"], json!([{ "url": URL, "sent": true }]));
    assert_eq!(pager.told("HandoffTest").len(), 1);
    let rules = stage.get("/v1/alerts/rules").await.done();
    let rules = rules["rules"].as_array().unwrap();
    assert!(
        rules.iter().any(|rule| rule["name"] == "HandoffBrokerDown" && rule["built_in"] == false)
    );
}

/// What the log comes to by itself, by this time.
async fn computed(stage: &Stage, now: Timestamp) -> Watch {
    let mut watch = Watch::default();
    let mut at = Position(0);
    loop {
        let entries = stage.store.events(at, 100).await.unwrap();
        let Some(last) = entries.last() else { break };
        at = last.sealed.position;
        entries.iter().for_each(|entry| watch.note(&entry.sealed));
    }
    watch.until(now);
    watch
}

async fn alerts_after_a_restart_are_those_of_the_exported_log(stage: Stage) {
    let (stage, pager) = watched(stage).await;
    for _ in 0..3 {
        stage.dead_letter().await;
    }
    pass(&stage, 30).await;
    pager.has_told(&stage, "HandoffFailed", 1).await;
    let before = alerts(&stage).await;
    let stage = stage.restarted().await;
    // It was away while an alert ended.
    assert_eq!(alerts(&stage).await, before);
    stage.clock.advance_ms(600 * SECOND);
    let (stage, pager) = watched(stage).await;
    pass(&stage, 10).await;
    assert_eq!(pager.has_told(&stage, "HandoffFailed", 1).await, [("resolved".into(), coder())]);
    let watch = computed(&stage, stage.clock.now()).await;
    let firing = watch.standing().filter(|(.., it)| it.fires_since.is_some());
    let mut firing: Vec<_> =
        firing.map(|(rule, target, _)| (rule.name.to_owned(), target)).collect();
    firing.sort();
    let shown = alerts(&stage).await.into_iter().filter(|(_, state, _)| state == "firing");
    let mut shown: Vec<_> =
        shown.map(|(rule, _, target)| (rule, target.as_str().map(str::to_owned))).collect();
    shown.sort();
    assert_eq!(shown, firing);
    assert!(firing.iter().any(|(rule, _)| rule == "HandoffConsecutiveFailures"), "{firing:?}");
}

async fn what_one_broker_could_not_send_another_sends(stage: Stage) {
    let (first, asleep) = watched(stage).await;
    *asleep.refuses.lock().unwrap() = u32::MAX;
    first.dead_letter().await;
    pass(&first, 10).await;
    until(&first, "HandoffFailed", "firing").await;
    let second = first.restarted().await;
    let (second, awake) = watched(second).await;
    pass(&second, 40).await;
    assert_eq!(awake.has_told(&second, "HandoffFailed", 1).await, [("firing".into(), coder())]);
    assert_eq!(asleep.told("HandoffFailed"), []);
}

async fn whoever_operates_one_tenant_silences_its_own_targets_only(stage: Stage) {
    let admin = stage.administrator().await;
    let operator = admin.enroll("acme/lead", may(&["operate", "read"])).await;
    let silence = |target: Value| json!({ "target": target, "for_ms": 1000, "reason": "known" });
    let path = "/v1/alerts/silence";
    operator.post(path, silence(json!("agent:acme/coder"))).await.done();
    for target in [json!("agent:coder"), json!("agent:other/coder"), Value::Null] {
        let reply = operator.post(path, silence(target.clone())).await;
        assert_eq!(reply.body["code"], "other_tenant", "{target}");
    }
    let listed = operator.get("/v1/alerts").await.done();
    assert_eq!(listed["silences"].as_array().unwrap().len(), 1);
    operator.post("/v1/alerts/test", json!({})).await.refused(403, "not_permitted");
}

// SPDX-License-Identifier: Apache-2.0
//! What work is given of the tasks that it waited for, what reaches those who build on it, and agents
//! that wait for each other. Each story goes on after a restart.

use serde_json::{Value, json};
use tasuki_core::pipeline::Pipelines;

use crate::support::{Held, SECOND, Stage, failure, merged, offer, on_durable_stores, text};

on_durable_stores! {
    a_join_is_given_the_results_of_its_branches
    a_join_that_goes_on_at_its_deadline_knows_what_is_missing
    what_waited_for_tasks_is_given_their_results_and_their_gaps
    work_that_is_approved_late_still_waits_for_its_tasks
    a_retry_of_joined_work_does_not_wait_again
    gaps_are_in_the_result_until_somebody_resolves_them
    a_running_task_stays_on_its_version_of_the_pipeline
    a_branch_of_a_pipeline_stays_in_it
    a_taint_reaches_what_waited_for_the_work_and_what_is_built_on_that
    clearing_a_taint_releases_what_it_held_in_one_step
    a_call_that_closes_a_circle_is_refused_with_the_path
    calls_in_two_trees_that_close_a_circle_end_at_once
    tasks_that_wait_for_each_other_end_at_once
    nothing_is_claimed_of_a_paused_target
}

async fn task_id(stage: &Stage, handoff: &str) -> String {
    text(&stage.show(handoff).await["task_id"])
}

/// The next work of an agent, as soon as there is some.
async fn next_work(stage: &Stage, agent: &str) -> Value {
    let wish = json!({ "agent": agent, "wait_ms": 60_000 });
    stage.post("/v1/claims", wish).await.done()["claims"][0].clone()
}

async fn complete(stage: &Stage, claim: &Value, change: Value) {
    let done = merged(json!({ "payload": { "type": "done" } }), change);
    stage.act(&Held::of(claim), "complete", done).await.done();
}

const FAN: &str = r#"{"pipelines": [{
    "name": "check", "version": 1, "first": "code",
    "stages": [
        {"name": "code", "to": {"agent": "coder"}, "next": [
            {"fan": {"stages": ["unit", "load"], "join": "report", "deadline_ms": 60000}}]},
        {"name": "unit", "to": {"agent": "unit"}, "next": [{"to": "end"}]},
        {"name": "load", "to": {"agent": "load"}, "next": [{"to": "end"}]},
        {"name": "report", "to": {"agent": "writer"}, "next": [{"to": "sign"}]},
        {"name": "sign", "to": {"agent": "signer"}, "next": [{"to": "end"}]}
    ]}]}"#;

async fn declare(stage: &Stage, file: &str) {
    stage.engine.declare_pipelines(Pipelines::read(file).unwrap()).await.unwrap();
}

/// A pipeline up to where its two branches wait.
async fn fanned(stage: &Stage) -> String {
    declare(stage, FAN).await;
    let body = json!({
        "from_agent": "planner", "intent": "Check it.", "payload": { "type": "job" },
    });
    let begun = stage.post("/v1/pipelines/check/start", body).await.done();
    let code = next_work(stage, "coder").await;
    complete(stage, &code, json!({ "payload": { "type": "code" } })).await;
    text(&begun["task_id"])
}

async fn a_join_is_given_the_results_of_its_branches(stage: Stage) {
    fanned(&stage).await;
    for (agent, passed) in [("unit", 12), ("load", 3)] {
        let claim = next_work(&stage, agent).await;
        complete(&stage, &claim, json!({ "payload": { "type": agent, "passed": passed } })).await;
    }
    let stage = stage.restarted().await;
    let claim = next_work(&stage, "writer").await;
    let joined = claim["joined"].as_array().unwrap();
    assert_eq!(joined.len(), 2, "{claim}");
    let branches = claim["envelope"]["after"]["tasks"].as_array().unwrap();
    for (member, branch) in joined.iter().zip(branches) {
        assert_eq!(member["task_id"], *branch, "the envelope names them");
        assert_eq!(member["came_to"], "completed");
        let shown = stage.show(&text(&member["handoff_id"])).await;
        assert_eq!(member["result"], shown["result"]);
    }
    assert_eq!(joined[0]["output"]["payload"]["passed"], 12);
    assert_eq!(joined[1]["output"]["payload"]["passed"], 3);
    assert_eq!((claim.get("gaps"), claim.get("taints")), (None, None));
    let prompt = format!("/v1/handoffs/{}/prompt", text(&claim["handoff_id"]));
    let prompt = stage.get(&prompt).await.done();
    assert!(text(&prompt["prompt"]).contains("\"passed\":12"), "{prompt}");
    let story = stage.story(&text(&claim["handoff_id"])).await;
    assert!(story.contains(&"joined".to_owned()), "{story:?}");
}

async fn a_join_that_goes_on_at_its_deadline_knows_what_is_missing(stage: Stage) {
    fanned(&stage).await;
    let unit = next_work(&stage, "unit").await;
    complete(&stage, &unit, json!({ "payload": { "type": "unit" } })).await;
    let slow = stage.get("/v1/handoffs?to_agent=load").await.done();
    let slow = slow["handoffs"][0].clone();
    let stage = stage.restarted().await;
    stage.pass(60 * SECOND).await;
    let claim = next_work(&stage, "writer").await;
    assert_eq!(claim["joined"][0]["came_to"], "completed");
    assert_eq!(claim["joined"][1]["came_to"], "open");
    assert_eq!(claim["gaps"][0]["reference"], slow["task_id"]);
    assert_eq!(claim["taints"], json!([slow["handoff_id"]]));
    // Whoever builds on it hears it too, whether the writer says so or not.
    complete(&stage, &claim, json!({})).await;
    let result = stage.show(&text(&claim["handoff_id"])).await;
    assert_eq!(result["output"]["gaps"], json!([slow["task_id"]]));
    let stage = stage.restarted().await;
    let sign = next_work(&stage, "signer").await;
    assert_eq!(sign["envelope"]["gaps"][0]["reference"], slow["task_id"]);
    assert_eq!(sign["envelope"]["taints"][0]["source"], slow["handoff_id"]);
}

/// Two tasks, and a handoff that waits for both.
async fn waiting_for_two(stage: &Stage, change: Value) -> ([String; 2], [String; 2], String) {
    let parts = [stage.offer("one", json!({})).await, stage.offer("two", json!({})).await];
    let tasks = [task_id(stage, &parts[0]).await, task_id(stage, &parts[1]).await];
    let after = json!({ "after": { "tasks": tasks, "need": 2 } });
    let last = stage.offer("last", merged(after, change)).await;
    (parts, tasks, last)
}

async fn what_waited_for_tasks_is_given_their_results_and_their_gaps(stage: Stage) {
    let (parts, tasks, last) = waiting_for_two(&stage, json!({})).await;
    let waits = stage.show(&last).await["waits_for"].clone();
    assert_eq!(waits[0]["task_id"], json!(tasks[0]), "{waits}");
    let one = stage.claimed(&parts[0], "one").await;
    let done = json!({ "payload": { "type": "found", "where": "src/a.rs" } });
    stage.act(&one, "complete", done).await.done();
    let stage = stage.restarted().await;
    let two = stage.claimed(&parts[1], "two").await;
    stage.act(&two, "fail", failure("permanent")).await.done();
    let claim = next_work(&stage, "last").await;
    assert_eq!(text(&claim["handoff_id"]), last);
    assert_eq!(claim["joined"][0]["output"]["payload"]["where"], "src/a.rs");
    assert_eq!(claim["joined"][1]["came_to"], "dead_lettered");
    assert_eq!(claim["gaps"][0]["reference"], json!(tasks[1]));
    assert_eq!(claim["taints"], json!([parts[1]]));
    complete(&stage, &claim, json!({ "resolved_gaps": [tasks[1]] })).await;
    assert_eq!(stage.show(&last).await["output"].get("gaps"), None, "it had it elsewhere");
}

async fn work_that_is_approved_late_still_waits_for_its_tasks(stage: Stage) {
    let (parts, _, last) = waiting_for_two(&stage, json!({ "needs_approval": true })).await;
    for (part, agent) in parts.iter().zip(["one", "two"]) {
        let held = stage.claimed(part, agent).await;
        stage.completed(&held).await;
    }
    let stage = stage.restarted().await;
    stage.post(&format!("/v1/handoffs/{last}/approve"), json!({ "by": "person" })).await.done();
    let claim = next_work(&stage, "last").await;
    assert_eq!(claim["joined"].as_array().unwrap().len(), 2);
}

async fn a_retry_of_joined_work_does_not_wait_again(stage: Stage) {
    let (parts, _, last) = waiting_for_two(&stage, json!({})).await;
    for (part, agent) in parts.iter().zip(["one", "two"]) {
        let held = stage.claimed(part, agent).await;
        stage.completed(&held).await;
    }
    let claim = next_work(&stage, "last").await;
    stage.act(&Held::of(&claim), "fail", failure("retryable")).await.done();
    assert_eq!(stage.is(&last).await.0, "scheduled");
    let stage = stage.restarted().await;
    assert_eq!(stage.is(&last).await.0, "scheduled", "its next try is not due");
    stage.pass(31 * SECOND).await;
    let claim = next_work(&stage, "last").await;
    assert_eq!(claim["joined"].as_array().unwrap().len(), 2, "it has them still");
}

async fn gaps_are_in_the_result_until_somebody_resolves_them(stage: Stage) {
    let gaps = json!({ "gaps": ["ms-17", { "reference": "ms-18", "reason": "not found" }] });
    let first = stage.offer("coder", gaps).await;
    let claim = stage.claim_one(&first, "coder").await.done();
    let unknown = json!({ "payload": { "type": "done" }, "resolved_gaps": ["ms-99"] });
    let refused = stage.act(&Held::of(&claim), "complete", unknown).await;
    refused.refused(400, "invalid_request");
    let stage = stage.restarted().await;
    let hop = json!({ "to": { "agent": "tester" }, "payload": { "type": "code" } });
    let more = json!({ "gaps": ["ms-19"], "resolved_gaps": ["ms-18"], "follow_ups": [hop] });
    complete(&stage, &claim, more).await;
    let result = stage.show(&first).await["output"].clone();
    assert_eq!(result["gaps"], json!(["ms-19", "ms-17"]));
    let claim = next_work(&stage, "tester").await;
    let passed = claim["envelope"]["gaps"].as_array().unwrap().iter();
    let passed: Vec<_> = passed.map(|gap| text(&gap["reference"])).collect();
    assert_eq!(passed, ["ms-17", "ms-19"]);
    // It says nothing about them, and the last consumer sees them all the same.
    complete(&stage, &claim, json!({})).await;
    let last = stage.show(&text(&claim["handoff_id"])).await;
    assert_eq!(last["output"]["gaps"], json!(["ms-17", "ms-19"]));
}

fn two_stages(version: u32, second: &str) -> String {
    json!({ "pipelines": [{
        "name": "line", "version": version, "first": "first",
        "stages": [
            { "name": "first", "to": { "agent": "first" }, "next": [{ "to": "second" }] },
            { "name": "second", "to": { "agent": second }, "next": [{ "to": "end" }] },
        ],
    }] })
    .to_string()
}

async fn a_running_task_stays_on_its_version_of_the_pipeline(stage: Stage) {
    declare(&stage, &two_stages(1, "old")).await;
    let start = json!({ "from_agent": "planner", "intent": "Go.", "payload": { "type": "job" } });
    stage.post("/v1/pipelines/line/start", start.clone()).await.done();
    // The broker that goes on was started with another file.
    let stage = stage.restarted().await;
    declare(&stage, &two_stages(2, "new")).await;
    let claim = next_work(&stage, "first").await;
    complete(&stage, &claim, json!({})).await;
    let claim = next_work(&stage, "old").await;
    assert_eq!(stage.show(&text(&claim["handoff_id"])).await["contract"]["stage"]["version"], 1);
    stage.post("/v1/pipelines/line/start", start).await.done();
    let claim = next_work(&stage, "first").await;
    complete(&stage, &claim, json!({})).await;
    next_work(&stage, "new").await;
    let changed = Pipelines::read(&two_stages(1, "other")).unwrap();
    let refused = stage.engine.declare_pipelines(changed).await.unwrap_err();
    assert!(refused.to_string().contains("raise its version"), "{refused}");
}

async fn a_branch_of_a_pipeline_stays_in_it(stage: Stage) {
    declare(&stage, &two_stages(1, "second")).await;
    let start = json!({ "from_agent": "planner", "intent": "Go.", "payload": { "type": "job" } });
    let begun = stage.post("/v1/pipelines/line/start", start).await.done();
    let claim = next_work(&stage, "first").await;
    complete(&stage, &claim, json!({ "payload": { "type": "one" } })).await;
    let stage = stage.restarted().await;
    let path = format!("/v1/tasks/{}/branch", text(&begun["task_id"]));
    let branch = stage.post(&path, json!({ "by": "planner", "hop": 0 })).await.done();
    let held = stage.claimed(&text(&branch["handoff_id"]), "first").await;
    let done = json!({ "payload": { "type": "two" } });
    stage.act(&held, "complete", done).await.done();
    let task = format!("/v1/tasks/{}", text(&branch["task_id"]));
    let next = text(&stage.get(&task).await.done()["live_handoff"]);
    let shown = stage.show(&next).await;
    assert_eq!(shown["to"], json!({ "agent": "second" }));
    assert_eq!(shown["contract"]["stage"]["stage"], "second");
}

async fn taints(stage: &Stage, task: &str) -> Vec<String> {
    let task = stage.get(&format!("/v1/tasks/{task}")).await.done();
    let taints = task["taints"].as_array().cloned().unwrap_or_default();
    taints.iter().map(|taint| text(&taint["source"])).collect()
}

async fn a_taint_reaches_what_waited_for_the_work_and_what_is_built_on_that(stage: Stage) {
    let (parts, _, last) = waiting_for_two(&stage, json!({})).await;
    for (part, agent) in parts.iter().zip(["one", "two"]) {
        let held = stage.claimed(part, agent).await;
        stage.completed(&held).await;
    }
    let claim = next_work(&stage, "last").await;
    let last_task = task_id(&stage, &last).await;
    complete(&stage, &claim, json!({})).await;
    // Something waited for that, and somebody is at work on it.
    let after = json!({ "after": { "tasks": [last_task], "need": 1 } });
    let end = stage.offer("end", after).await;
    let held = Held::of(&next_work(&stage, "end").await);
    let stage = stage.restarted().await;
    let retract = json!({ "by": "one", "reason": "the tests were not run", "policy": "block" });
    stage.post(&format!("/v1/handoffs/{}/retract", parts[0]), retract).await.done();
    assert_eq!(
        taints(&stage, &last_task).await,
        [parts[0].clone()],
        "it is completed, and tainted"
    );
    let end_task = task_id(&stage, &end).await;
    assert_eq!(taints(&stage, &end_task).await, [parts[0].clone()]);
    let beat = stage.act(&held, "heartbeat", json!({})).await.done();
    assert_eq!(beat["taints"], json!([parts[0]]), "the holder hears of it");
    // It gives the work back: nobody gets it before somebody has looked.
    stage.act(&held, "release", json!({})).await.done();
    assert_eq!(stage.is(&end).await.0, "awaiting_approval");
    // What waits for it from now on is told, too.
    let after = json!({ "after": { "tasks": [last_task], "need": 1 } });
    let late = stage.offer("late", after).await;
    let late_task = task_id(&stage, &late).await;
    while stage.is(&late).await.0 == "scheduled" {
        tokio::task::yield_now().await;
    }
    assert_eq!(taints(&stage, &late_task).await, [parts[0].clone()]);
    assert_eq!(stage.is(&late).await.0, "awaiting_approval");
}

async fn clearing_a_taint_releases_what_it_held_in_one_step(stage: Stage) {
    let first = stage.offer("coder", json!({})).await;
    let task = task_id(&stage, &first).await;
    let held = stage.claimed(&first, "coder").await;
    let hop = json!({ "to": { "agent": "reviewer" }, "payload": { "type": "code" } });
    let done = json!({ "payload": { "type": "code" }, "follow_ups": [hop] });
    stage.act(&held, "complete", done).await.done();
    let next = text(&stage.get(&format!("/v1/tasks/{task}")).await.done()["live_handoff"]);
    let retract = json!({ "by": "coder", "reason": "wrong branch", "policy": "block" });
    stage.post(&format!("/v1/handoffs/{first}/retract"), retract).await.done();
    assert_eq!(stage.is(&next).await.0, "awaiting_approval");
    assert_eq!(stage.show(&next).await["waits_for"][0]["taints"], json!([first]));
    let stage = stage.restarted().await;
    let clear = json!({ "by": "planner", "source": first, "reason": "looked at it" });
    let path = format!("/v1/tasks/{task}/clear-taint");
    stage.post(&path, clear.clone()).await.done();
    assert_eq!(stage.is(&next).await.0, "pending", "in one step");
    stage.post(&path, clear).await.refused(409, "not_tainted");
    let held = stage.claimed(&next, "reviewer").await;
    stage.completed(&held).await;
}

fn call(from: &str, on: &str) -> Value {
    json!({ "from_agent": from, "task_id": on, "intent": null, "control": "awaited" })
}

async fn a_call_that_closes_a_circle_is_refused_with_the_path(stage: Stage) {
    let root = stage.offer("ann", json!({})).await;
    stage.claimed(&root, "ann").await;
    let root_task = task_id(&stage, &root).await;
    let to_ben = stage.offer("ben", call("ann", &root_task)).await;
    stage.claimed(&to_ben, "ben").await;
    let ben_task = task_id(&stage, &to_ben).await;
    let to_cid = stage.offer("cid", call("ben", &ben_task)).await;
    stage.claimed(&to_cid, "cid").await;
    let cid_task = task_id(&stage, &to_cid).await;
    let stage = stage.restarted().await;
    let back = merged(offer("ann", json!({})), call("cid", &cid_task));
    let refused = stage.post("/v1/handoffs", back.clone()).await.refused(409, "deadlock");
    assert_eq!(refused["details"]["path"], json!(["ann", "ben", "cid", "ann"]));
    assert_eq!(refused["details"]["task_id"], json!(root_task));
    // Who answers while it waits says so.
    let manifest = json!({ "agent_id": "ann", "concurrency": 4, "capabilities": [
        { "name": "answer", "input_schema": {}, "output_schema": {} },
    ] });
    stage.post("/v1/agents", json!({ "manifest": manifest })).await.done();
    stage.post("/v1/handoffs", back).await.done();
    // Somebody else is no part of it.
    let other = merged(offer("dan", json!({})), call("cid", &cid_task));
    stage.post("/v1/handoffs", other).await.done();
}

async fn calls_in_two_trees_that_close_a_circle_end_at_once(stage: Stage) {
    let of_ann = stage.offer("ann", json!({})).await;
    stage.claimed(&of_ann, "ann").await;
    let of_ben = stage.offer("ben", json!({})).await;
    stage.claimed(&of_ben, "ben").await;
    let (ann_task, ben_task) = (task_id(&stage, &of_ann).await, task_id(&stage, &of_ben).await);
    let first = stage.offer("ben", call("ann", &ann_task)).await;
    let stage = stage.restarted().await;
    let closes = stage.offer("ann", call("ben", &ben_task)).await;
    let wait = json!({ "handoffs": [closes], "timeout_ms": 60_000 });
    stage.post("/v1/wait", wait).await.done();
    assert_eq!(stage.show(&closes).await["dead_letter"]["reason"], "deadlock");
    let letter = stage.get(&format!("/v1/dead-letters/{closes}")).await.done();
    let path = text(&letter["waits_in_circle"]);
    assert!(path.contains("ben waits for ann") && path.contains("ann waits for ben"), "{path}");
    assert_eq!(stage.is(&first).await.0, "pending", "the other call stands");
    let held = stage.claimed(&first, "ben").await;
    stage.completed(&held).await;
}

async fn tasks_that_wait_for_each_other_end_at_once(stage: Stage) {
    let first = stage.offer("ann", json!({})).await;
    let first_task = task_id(&stage, &first).await;
    let held = stage.claimed(&first, "ann").await;
    let after = |task: &str| json!({ "after": { "tasks": [task], "need": 1 } });
    let second = stage.offer("ben", after(&first_task)).await;
    let second_task = task_id(&stage, &second).await;
    let stage = stage.restarted().await;
    let hop = json!({ "to": { "agent": "cid" }, "payload": { "type": "next" } });
    let hop = merged(hop, after(&second_task));
    let done = json!({ "payload": { "type": "done" }, "follow_ups": [hop] });
    stage.act(&held, "complete", done).await.done();
    let wait = json!({ "tasks": [first_task], "timeout_ms": 60_000 });
    stage.post("/v1/wait", wait).await.done();
    let listed = stage.get("/v1/handoffs?to_agent=cid").await.done();
    let closes = listed["handoffs"][0].clone();
    assert_eq!(closes["dead_letter"]["reason"], "deadlock");
    let letter = text(&closes["handoff_id"]);
    let letter = stage.get(&format!("/v1/dead-letters/{letter}")).await.done();
    let path = text(&letter["waits_in_circle"]);
    assert!(path.contains(&format!("{second_task} waits for {first_task}")), "{path}");
    // The other one goes on without it, and knows what is missing.
    let claim = next_work(&stage, "ben").await;
    assert_eq!(claim["joined"][0]["came_to"], "dead_lettered");
}

async fn nothing_is_claimed_of_a_paused_target(stage: Stage) {
    let id = stage.offer("coder", json!({})).await;
    let many = stage.offer("*review", json!({})).await;
    let pause = |target: Value, change: Value| merged(json!({ "target": target }), change);
    let coder = json!({ "agent": "coder" });
    let shown = stage.post("/v1/targets/pause", pause(coder.clone(), json!({}))).await.done();
    assert!(shown["paused"]["since"].is_string(), "{shown}");
    let review = pause(json!({ "capability": "review" }), json!({ "for_ms": 30 * SECOND }));
    stage.post("/v1/targets/pause", review).await.done();
    let stage = stage.restarted().await;
    let wish = |agent: &str, wait_ms: u64| json!({ "agent": agent, "capabilities": ["review"], "wait_ms": wait_ms });
    let none = stage.post("/v1/claims", wish("coder", 0)).await.done();
    assert_eq!(none["claims"], json!([]));
    let none = stage.post("/v1/claims", wish("other", 0)).await.done();
    assert_eq!(none["claims"], json!([]));
    let refused = stage.claim_one(&id, "coder").await.refused(409, "target_paused");
    assert_eq!(refused["details"].get("retry_after_ms"), None);
    // Offers wait, and say so.
    let later = stage.post("/v1/handoffs", offer("coder", json!({}))).await.done();
    assert!(later["paused"].is_object(), "{later}");
    assert_eq!(stage.show(&id).await["waits_for"][0]["kind"], "paused");
    let view = stage.get("/v1/ready").await.done();
    assert_eq!(view["ready"], json!([]), "{view}");
    assert_eq!(view["held"].as_array().unwrap().len(), 3);
    // One ends by time, the other by hand; a claim that waits gets it at once.
    stage.pass(30 * SECOND).await;
    let got = stage.post("/v1/claims", wish("other", 0)).await.done();
    assert_eq!(text(&got["claims"][0]["handoff_id"]), many);
    let waiting = tokio::spawn({
        let (stage, wish) = (stage.clone(), wish("coder", 60_000));
        async move { stage.post("/v1/claims", wish).await.done() }
    });
    tokio::task::yield_now().await;
    stage.post("/v1/targets/resume", json!({ "target": coder })).await.done();
    let got = waiting.await.unwrap();
    assert_eq!(text(&got["claims"][0]["handoff_id"]), id);
    let past = pause(json!({ "agent": "x" }), json!({ "until": "2020-01-01T00:00:00.000Z" }));
    stage.post("/v1/targets/pause", past).await.refused(422, "invalid_terms");
}

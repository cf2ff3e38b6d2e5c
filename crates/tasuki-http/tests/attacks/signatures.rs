// SPDX-License-Identifier: Apache-2.0
//! Requests with a signature that is not theirs: every one is refused, and nothing is stored.

use serde_json::json;
use tasuki_core::identity::{SecretKey, Signature, message};

use crate::support::{
    Backend, Client, Draft, SECOND, Stage, broker_key, everything, new_key, new_nonce,
    on_durable_stores,
};

on_durable_stores! { closed:
    a_request_that_was_sent_before_is_refused
    a_request_that_was_altered_is_refused
    a_request_with_a_second_signature_is_refused
    a_signature_by_another_algorithm_is_refused
    a_signature_out_of_its_time_is_refused
    a_signature_that_covers_less_is_refused
    a_body_that_the_signature_does_not_cover_is_refused
    a_signature_by_a_key_that_is_not_known_is_refused
    a_signature_for_another_broker_or_for_none_is_refused
    what_one_broker_was_sent_is_refused_by_another_of_the_same_name
}

struct Scene {
    stage: Stage,
    planner: Client,
}

impl Scene {
    async fn new(stage: Stage) -> Self {
        let admin = stage.administrator().await;
        let planner = admin.enroll("planner", everything()).await;
        Self { stage, planner }
    }

    /// What the planner would send.
    fn draft(&self) -> Draft {
        Draft::post("/v1/handoffs", &self.planner.offering("coder", json!({})))
    }

    fn good(&self) -> Draft {
        self.planner.shown(self.draft())
    }

    async fn refused(&self, draft: &Draft, code: &str) {
        let head = self.stage.store.head();
        self.stage.send(draft).await.refused(401, code);
        assert_eq!(self.stage.store.head(), head, "{draft:?}");
    }
}

async fn a_request_that_was_sent_before_is_refused(stage: Stage) {
    let scene = Scene::new(stage).await;
    let offer = scene.good();
    let show = scene.planner.getting("/v1/agents/planner");
    for draft in [&offer, &show] {
        scene.stage.send(draft).await.done();
        for _ in 0..3 {
            scene.refused(draft, "signature_replayed").await;
        }
    }
    // The nonce is what counts, even for another request.
    let nonce = "the-nonce-of-all-nonces";
    let now = scene.stage.now_s();
    let key = scene.planner.key();
    scene.stage.send(&scene.draft().signed(key, now, nonce)).await.done();
    scene.refused(&Draft::get("/v1/stats").signed(key, now, nonce), "signature_replayed").await;
    // For as long as it counts, and then because it no longer does.
    scene.stage.pass(30 * SECOND).await;
    scene.refused(&offer, "signature_replayed").await;
    scene.stage.pass(1).await;
    scene.refused(&offer, "signature_expired").await;
    scene.stage.pass(300 * SECOND).await;
    scene.refused(&offer, "signature_expired").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_was_sent_before_a_restart_is_refused_after_it() {
    let Scene { stage, planner } = Scene::new(Stage::closed(Backend::Sqlite).await).await;
    stage.pass(SECOND).await;
    let body = planner.offering("coder", json!({}));
    let (sent, unsent) =
        (planner.posting("/v1/handoffs", &body), planner.posting("/v1/handoffs", &body));
    stage.send(&sent).await.done();
    stage.engine.close().await;
    stage.clock.advance_ms(700);
    let stage = stage.reopened().await;
    let head = stage.store.head();
    for draft in [&sent, &unsent] {
        let problem = stage.send(draft).await.refused(401, "signature_too_early");
        assert_eq!(problem["retryable"], true, "a new signature will do");
    }
    // Nor does one of the second in which the broker began, whichever came first.
    let planner = planner.on(&stage);
    let same = planner.posting("/v1/handoffs", &body);
    stage.send(&same).await.refused(401, "signature_too_early");
    assert_eq!(stage.store.head(), head);
    stage.pass(300).await;
    planner.offer("coder", json!({})).await;
    stage.send(&sent).await.refused(401, "signature_too_early");
}

async fn a_request_that_was_altered_is_refused(stage: Stage) {
    let scene = Scene::new(stage).await;
    let list = "/v1/handoffs?limit=1&state=pending";
    let listed = || scene.planner.getting(list);
    scene.stage.send(&listed()).await.done();
    let to = |path: &str| Draft { path: path.into(), ..listed() };
    let head = Draft { method: "HEAD", ..listed() };
    assert_eq!(scene.stage.send(&head).await.status, 401);
    for draft in [
        Draft { host: "127.0.0.1", ..listed() },
        Draft { host: "localhost:8788", ..listed() },
        to("/v1/tasks?limit=1&state=pending"),
        to("/v1/handoffs"),
        to("/v1/handoffs?limit=2&state=pending"),
        to("/v1/handoffs?state=pending&limit=1"),
        to("/v1/handoffs?limit=1&state=pending&"),
        to("/v1/handoffs?limit=1&state=%70ending"),
        Draft { path: "/v1/tasks".into(), ..scene.good() },
        Draft { path: "/v1/handoffs?".to_owned() + "x=1", ..scene.good() },
    ] {
        scene.refused(&draft, "signature_wrong").await;
    }
    let other = scene.planner.offering("tester", json!({})).to_string().into_bytes();
    let digest = Draft { body: other.clone(), ..Draft::get("/") }.signed(&new_key(), 1, NONCE);
    let digest = digest.header("content-digest");
    let altered = Draft { body: other, ..scene.good() };
    scene.refused(&altered, "digest_wrong").await;
    let altered = Draft { body: altered.body, ..scene.good() };
    scene.refused(&altered.with("content-digest", digest), "signature_wrong").await;
    scene.refused(&scene.good().without("content-digest"), "digest_missing").await;
    let other = "sha-512=:AAAA:";
    scene.refused(&scene.good().with("content-digest", other), "signature_wrong").await;
    // The body gone, and its digest with it or not.
    let empty = || Draft { body: Vec::new(), ..scene.good() };
    scene.refused(&empty(), "signature_components").await;
    scene.refused(&empty().without("content-digest"), "signature_components").await;
    let half = scene.good();
    scene.refused(&half.clone().without("signature"), "signature_malformed").await;
    scene.refused(&half.without("signature-input"), "signature_malformed").await;
}

const NONCE: &str = "0123456789abcdef";

async fn a_request_with_a_second_signature_is_refused(stage: Stage) {
    let scene = Scene::new(stage).await;
    let mine = scene.draft().signed(&new_key(), scene.stage.now_s(), NONCE);
    for name in ["signature", "signature-input", "content-digest"] {
        let twice = scene.good();
        let again = twice.header(name);
        scene.refused(&twice.and(name, again), "signature_malformed").await;
    }
    scene
        .refused(
            &scene.good().and("authorization", "a").and("authorization", "b"),
            "signature_malformed",
        )
        .await;
    let both = |good: &Draft, label: &str| {
        let other = |name| mine.header(name).replacen("tasuki=", &format!("{label}="), 1);
        let joined = |name| format!("{}, {}", good.header(name), other(name));
        let (input, signature) = (joined("signature-input"), joined("signature"));
        good.clone().with("signature-input", input).with("signature", signature)
    };
    // One line with two of them, under two names or under one.
    for label in ["other", "tasuki"] {
        scene.refused(&both(&scene.good(), label), "signature_malformed").await;
    }
    // One that is for somebody else does not replace ours.
    let foreign = scene.good();
    let input = foreign.header("signature-input").replace("tasuki-v1", "web-bot-auth");
    scene.refused(&foreign.with("signature-input", input), "signature_missing").await;
    scene.stage.send(&scene.good()).await.done();
}

/// A signature over parameters that our own signer refuses to write.
fn signed_with(scene: &Scene, key: &SecretKey, components: &[&str], params: &str) -> Draft {
    let draft = scene.good();
    let digest = draft.header("content-digest");
    let value = |name: &str| match name {
        "@method" => "POST",
        "@authority" => "localhost",
        "@path" => "/v1/handoffs",
        "@query" => "?",
        "content-digest" => digest.as_str(),
        _ => panic!("no value of {name}"),
    };
    let lines: Vec<_> = components.iter().map(|name| (*name, value(name))).collect();
    let base = message::signature_base(&lines, params).unwrap();
    let signature = sent(key.sign(base.as_bytes()));
    let names = components.join("\" \"");
    draft
        .with("signature-input", format!("tasuki=(\"{names}\"){params}"))
        .with("signature", signature)
}

/// A signature as a header carries it.
fn sent(signature: Signature) -> String {
    let text = signature.to_string().replace('-', "+").replace('_', "/");
    format!("tasuki=:{text}==:")
}

const COVERED: [&str; 5] = ["@method", "@authority", "@path", "@query", "content-digest"];

/// The parameters of a good signature, with this lifetime and then some.
fn params(scene: &Scene, created_s: i64, expires_s: i64, more: &str) -> String {
    let (nonce, key) = (new_nonce(), scene.planner.key_id());
    let audience = broker_key().public().id();
    format!(
        r#";created={created_s};expires={expires_s};nonce="{nonce}";keyid="{key}";tag="tasuki-v1";audience="{audience}"{more}"#
    )
}

async fn a_signature_by_another_algorithm_is_refused(stage: Stage) {
    let scene = Scene::new(stage).await;
    let (key, now) = (scene.planner.key(), scene.stage.now_s());
    let draft =
        |more: &str| signed_with(&scene, key, &COVERED, &params(&scene, now, now + 30, more));
    for name in ["hmac-sha256", "rsa-v1_5-sha256", "none", "", "ED25519", "ecdsa-p256-sha256"] {
        scene.refused(&draft(&format!(r#";alg="{name}""#)), "signature_algorithm").await;
    }
    scene.refused(&draft(";alg=ed25519"), "signature_algorithm").await;
    scene.refused(&draft(";alg"), "signature_algorithm").await;
    scene.stage.send(&draft(r#";alg="ed25519""#)).await.done();
    // A public key is no secret to authenticate with.
    let mut public = [0; 64];
    public[..32].copy_from_slice(key.public().as_bytes());
    for forged in [public, [0; 64], [0xff; 64]] {
        let draft = draft("").with("signature", sent(Signature(forged)));
        scene.refused(&draft, "signature_wrong").await;
    }
}

async fn a_signature_out_of_its_time_is_refused(stage: Stage) {
    let scene = Scene::new(stage).await;
    scene.stage.pass(1000 * SECOND).await;
    let (key, now) = (scene.planner.key(), scene.stage.now_s());
    let draft = |created: i64, expires: i64| {
        signed_with(&scene, key, &COVERED, &params(&scene, created, expires, ""))
    };
    for (created, expires, code) in [
        (now - 60, now - 1, "signature_expired"),
        (now - 3600, now - 3550, "signature_expired"),
        (now + 6, now + 60, "signature_not_yet_valid"),
        (now + 1_000_000, now + 1_000_060, "signature_not_yet_valid"),
        (now, now + 61, "signature_malformed"),
        (now - 1, now + 60, "signature_malformed"),
        (now, now + 1_000_000, "signature_malformed"),
        (now, now, "signature_malformed"),
        (now, now - 1, "signature_malformed"),
        (-1, 30, "signature_malformed"),
        (999_999_999_999_998, 999_999_999_999_999, "signature_not_yet_valid"),
    ] {
        scene.refused(&draft(created, expires), code).await;
    }
    for (created, expires) in [(now - 60, now), (now, now + 60), (now + 5, now + 6)] {
        scene.stage.send(&draft(created, expires)).await.done();
    }
}

async fn a_signature_that_covers_less_is_refused(stage: Stage) {
    let scene = Scene::new(stage).await;
    let (key, now) = (scene.planner.key(), scene.stage.now_s());
    let draft = |components: &[&str]| {
        signed_with(&scene, key, components, &params(&scene, now, now + 30, ""))
    };
    for left_out in COVERED {
        let some: Vec<_> = COVERED.into_iter().filter(|name| *name != left_out).collect();
        scene.refused(&draft(&some), "signature_components").await;
    }
    scene.refused(&draft(&[]), "signature_components").await;
    let mut turned = COVERED;
    turned.reverse();
    scene.refused(&draft(&turned), "signature_components").await;
    for (name, code) in [
        ("nonce", "signature_malformed"),
        ("created", "signature_malformed"),
        ("expires", "signature_malformed"),
        ("keyid", "signature_malformed"),
        ("tag", "signature_missing"),
    ] {
        let all = params(&scene, now, now + 30, "");
        let parts = all.split(';').filter(|part| !part.is_empty() && !part.starts_with(name));
        let less: String = parts.map(|part| format!(";{part}")).collect();
        scene.refused(&signed_with(&scene, key, &COVERED, &less), code).await;
    }
}

async fn a_body_that_the_signature_does_not_cover_is_refused(stage: Stage) {
    let scene = Scene::new(stage).await;
    let without_body = || {
        let empty = Draft { body: Vec::new(), ..scene.draft() };
        Draft { body: scene.draft().body, ..scene.planner.shown(empty) }
    };
    let digest = scene.good().header("content-digest");
    let head = scene.stage.store.head();
    scene.refused(&without_body(), "digest_missing").await;
    let added = without_body().with("content-digest", digest.clone());
    scene.refused(&added, "signature_components").await;
    // However the body comes: in pieces, or without a word about its length.
    for pieces in [true, false] {
        for digest in [None, Some(&digest)] {
            let mut request = without_body().request();
            request.headers_mut().remove("content-length");
            if pieces {
                request.headers_mut().insert("transfer-encoding", "chunked".parse().unwrap());
            }
            if let Some(digest) = digest {
                request.headers_mut().insert("content-digest", digest.parse().unwrap());
            }
            let reply = scene.stage.call(request).await;
            assert_eq!(reply.status, 401, "{pieces} {digest:?}: {}", reply.body);
        }
    }
    assert_eq!(scene.stage.store.head(), head);
}

async fn a_signature_by_a_key_that_is_not_known_is_refused(stage: Stage) {
    let scene = Scene::new(stage).await;
    let now = scene.stage.now_s();
    let unknown = scene.draft().signed(&new_key(), now, NONCE);
    scene.refused(&unknown, "signature_wrong").await;
    // The planner's name on a signature by somebody else.
    let forged = signed_with(&scene, &new_key(), &COVERED, &params(&scene, now, now + 30, ""));
    let one = scene.stage.send(&forged).await.refused(401, "signature_wrong");
    let other = scene.stage.send(&unknown).await.refused(401, "signature_wrong");
    assert_eq!(one["message"], other["message"], "who is known is not told to strangers");
    // Nor by what is found wrong first.
    let now = now - 600;
    let (known, unknown) = (scene.planner.key(), new_key());
    let known = scene.draft().signed(known, now, NONCE);
    let unknown = scene.draft().signed(&unknown, now, NONCE);
    let known = scene.stage.send(&known).await.body;
    assert_eq!(known["code"], scene.stage.send(&unknown).await.body["code"]);
}

async fn a_signature_for_another_broker_or_for_none_is_refused(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", everything()).await;
    let scene = Scene { stage, planner };
    let (key, now) = (scene.planner.key(), scene.stage.now_s());
    let other = new_key().public().id();
    let itself = key.public().id();
    for audience in [None, Some(other), Some(itself)] {
        for draft in [scene.draft(), Draft::get("/v1/stats")] {
            let draft = draft.signed_for(key, now, &new_nonce(), audience);
            scene.refused(&draft, "signature_audience").await;
            // Nothing was spent, and it is refused again.
            scene.refused(&draft, "signature_audience").await;
        }
    }
    // The name is covered: it can be neither put in, nor changed, nor taken out.
    let ours = format!(r#";audience="{}""#, broker_key().public().id());
    let altered = |audience, from: &str, to: &str| {
        let draft = scene.draft().signed_for(key, now, &new_nonce(), audience);
        let input = draft.header("signature-input").replace(from, to);
        draft.with("signature-input", input)
    };
    let theirs = format!(r#";audience="{other}""#);
    let here = Some(broker_key().public().id());
    for draft in [
        altered(Some(other), &theirs, &ours),
        altered(None, r#";tag="tasuki-v1""#, &format!(r#";tag="tasuki-v1"{ours}"#)),
        altered(here, &ours, ""),
    ] {
        scene.refused(&draft, "signature_wrong").await;
    }
    scene.refused(&altered(here, &ours, &format!("{ours}{ours}")), "signature_malformed").await;
    for nobody in [r#";audience="broker""#, ";audience=1", ";audience", r#";audience="""#] {
        scene.refused(&altered(here, &ours, nobody), "signature_malformed").await;
    }
    // A stranger learns nothing of whom a request must name.
    let stranger = scene.draft().signed_for(&new_key(), now, &new_nonce(), Some(other));
    scene.refused(&stranger, "signature_wrong").await;
    let log = admin.get("/v1/security").await.done();
    let told = |it: &serde_json::Value| {
        it["code"] == "signature_audience" && it["named"] == itself.to_string()
    };
    assert!(log["refusals"].as_array().unwrap().iter().any(told), "{log}");
    scene.stage.send(&scene.good()).await.done();
}

async fn what_one_broker_was_sent_is_refused_by_another_of_the_same_name(stage: Stage) {
    let scene = Scene::new(stage).await;
    let signer = Some(std::sync::Arc::new(new_key()));
    let settings = tasuki_engine::Settings { signer, ..scene.stage.settings() };
    let other = Stage::with(Backend::Sqlite, settings).await;
    let admin = other.administrator().await;
    // The same agent with the same key.
    let body = json!({ "key": scene.planner.key().public(), "rules": everything() });
    admin.post("/v1/agents/planner/keys", body).await.done();
    let overheard = scene.good();
    other.send(&overheard).await.refused(401, "signature_audience");
    scene.stage.send(&overheard).await.done();
    other.send(&overheard).await.refused(401, "signature_audience");
    scene.planner.on(&other).offer("coder", json!({})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn brokers_on_one_log_answer_for_each_other_and_count_a_request_once() {
    let Scene { stage, planner } = Scene::new(Stage::closed(Backend::Postgres).await).await;
    let signer = Some(std::sync::Arc::new(new_key()));
    let settings = tasuki_engine::Settings { signer, ..stage.settings() };
    let beside = stage.beside(settings).await;
    let show = || planner.getting("/v1/agents/planner");
    // Until a broker has said by which key it is named, nobody answers for it.
    beside.send(&show()).await.refused(401, "signature_audience");
    stage.engine.introduce().await.unwrap();
    stage.pass(SECOND).await;
    let draft = show();
    beside.send(&draft).await.done();
    stage.send(&draft).await.refused(401, "signature_replayed");
    beside.send(&draft).await.refused(401, "signature_replayed");
    let now = stage.now_s();
    let stranger = Some(new_key().public().id());
    let draft = Draft::get("/v1/stats").signed_for(planner.key(), now, &new_nonce(), stranger);
    for broker in [&stage, &beside] {
        broker.send(&draft).await.refused(401, "signature_audience");
    }
}

// SPDX-License-Identifier: Apache-2.0
//! No door answers at an address of another.

use axum::body::Body;
use axum::http::Request;
use tasuki_front::{Front, Limits, around};
use tower::ServiceExt;

use crate::stage::{Backend, Stage, in_time};

const OURS: [&str; 10] = [
    "/a2a-inbox/handoff",
    "/agents/coder",
    "/agents/coder/",
    "/agents/coder/tasks/x",
    "/tenants/acme/agents/coder",
    "/a2a",
    "/.well-known/agent-card.json",
    "/.well-known/ai-catalog.json",
    "/.well-known/jwks.json",
    "/a2a-extension/handoff/v1",
];

async fn status(router: &axum::Router, method: &str, path: &str) -> u16 {
    let request = Request::builder().method(method).uri(path).header("host", "127.0.0.1");
    let request = request.body(Body::empty()).unwrap();
    let response = in_time(router.clone().oneshot(request)).await.unwrap();
    response.status().as_u16()
}

#[tokio::test]
async fn no_door_answers_for_another() {
    let stage = Stage::open(Backend::Sqlite).await;
    stage.registered("coder").await;
    let front = Front::new(stage.engine.clone(), Limits::default());
    let a2a = around(tasuki_a2a::routes(), &front).with_state(front.clone());
    let http = tasuki_http::router(stage.engine.clone(), Limits::default());
    for path in OURS {
        for method in ["GET", "POST"] {
            assert_eq!(status(&http, method, path).await, 404, "{method} {path}");
        }
    }
    let described = tasuki_http::document();
    let paths = described["paths"].as_object().unwrap();
    assert!(paths.len() > 50);
    for (path, methods) in paths {
        let path = path.replace(['{', '}'], "");
        for method in methods.as_object().unwrap().keys() {
            let method = method.to_ascii_uppercase();
            assert_eq!(status(&a2a, &method, &path).await, 404, "{method} {path}");
        }
    }
}

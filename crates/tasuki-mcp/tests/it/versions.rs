// SPDX-License-Identifier: Apache-2.0
//! What each version of the protocol begins with, and that all of them get the same tools.

use serde_json::json;

use crate::support::{LATEST, Stage, VERSIONS, in_time};

#[tokio::test]
async fn the_versions_with_a_handshake_get_the_one_they_ask_for() {
    let stage = Stage::open().await;
    for version in VERSIONS.into_iter().filter(|version| *version != LATEST) {
        let client = stage.agent("coder").at(version);
        let params = json!({
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": { "name": "story", "version": "1" },
        });
        let reply = in_time(client.ask("initialize", params)).await;
        assert!(reply.headers.get("mcp-session-id").is_none(), "there is no session to lose");
        let info = reply.done();
        assert_eq!(info["protocolVersion"], version);
        assert_eq!(info["serverInfo"]["name"], "tasuki");
        assert!(info["instructions"].as_str().unwrap().contains("claim"));
        let resources = &info["capabilities"]["resources"];
        assert!(resources["subscribe"].is_null(), "without a session nobody can be told: {info}");
    }
}

#[tokio::test]
async fn the_newest_version_needs_no_handshake() {
    let stage = Stage::open().await;
    let found = in_time(stage.agent("coder").ask("server/discover", json!({}))).await.done();
    let versions = found["supportedVersions"].as_array().unwrap();
    for version in VERSIONS {
        assert!(versions.contains(&json!(version)), "{found}");
    }
    assert_eq!(found["capabilities"]["resources"]["subscribe"], true);
    let extensions = &found["capabilities"]["extensions"];
    assert!(extensions["io.modelcontextprotocol/tasks"].is_object(), "{found}");
}

#[tokio::test]
async fn a_version_that_nobody_knows_is_refused_with_those_that_are() {
    let stage = Stage::open().await;
    let reply = in_time(stage.agent("coder").at("1999-01-01").ask("tools/list", json!({}))).await;
    assert_eq!(reply.status, 400, "{:?}", reply.body);
}

#[tokio::test]
async fn every_version_gets_the_same_tools() {
    let stage = Stage::open().await;
    let mut lists = Vec::new();
    for version in VERSIONS {
        let listed = stage.agent("coder").at(version).ask("tools/list", json!({})).await.done();
        let tools = listed["tools"].as_array().unwrap().clone();
        assert!((10..=20).contains(&tools.len()), "{} tools", tools.len());
        lists.push(tools);
    }
    assert!(lists.iter().all(|list| *list == lists[0]));
}

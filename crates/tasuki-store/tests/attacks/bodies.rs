// SPDX-License-Identifier: Apache-2.0
//! A body is what its event says, or it is not served.

use tasuki_core::commands::{Command, RegistryWish};
use tasuki_core::event::Actor;
use tasuki_store::{Error, Needs};

use crate::support::{agent, body};
use crate::{database, open};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_body_is_not_served() {
    let stage = open().await;
    let id = stage.offered().await;
    let wish = RegistryWish::Publish {
        agent: agent("coder"),
        manifest: body("manifest"),
        signed: None,
        version: None,
    };
    stage.run(Command::registry(Actor::Broker, None, wish)).await.unwrap();
    stage.store.close().await;
    let db = database(&stage.dir);
    db.execute("UPDATE event SET body = '\"do something else\"' WHERE body IS NOT NULL", [])
        .unwrap();
    db.execute("UPDATE registry SET body = '\"do something else\"'", []).unwrap();
    drop(db);
    let stage = stage.go_on_in(&stage.dir).await;
    let at = stage.handoff(id).await.envelope_pos;
    assert!(matches!(stage.store.bodies(vec![at]).await, Err(Error::Failed { .. })));
    let look = stage.store.look(Needs::handoff(id).with_envelopes()).await;
    assert!(matches!(look, Err(Error::Failed { .. })));
    let manifests = stage.store.manifests(vec![agent("coder")]).await;
    assert!(matches!(manifests, Err(Error::Failed { .. })));
}

// SPDX-License-Identifier: Apache-2.0
//! How often the engine asks the store, and what it makes of no answer.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::json;
use tasuki_engine::Error;
use tasuki_store::{ManualClock, Volatile};

use crate::support::{BEGIN, Ids, Stage, new_offer, to};
use crate::watched::Watched;

fn watched() -> (Stage, Arc<Watched>) {
    let clock = ManualClock::at(BEGIN);
    let store = Watched::new(Arc::new(Volatile::new(clock.clone())));
    (Stage::on(store.clone(), clock, Ids::seeded(1)), store)
}

#[tokio::test]
async fn a_look_that_fails_is_an_error_and_not_a_handoff_without_an_agreement() {
    let (stage, store) = watched();
    let mut new = new_offer(to("coder"));
    new.hop.output_schema = Some(json!({ "type": "object", "required": ["verdict"] }));
    let id = stage.engine.offer(new).await.unwrap().handoff.id;
    let granted = stage.claim_one(id, "coder").await;
    store.overloaded.store(true, Ordering::Relaxed);
    let answer = stage.complete(&granted, Vec::new()).await;
    assert!(matches!(answer, Err(Error::Store(tasuki_store::Error::Overloaded))), "{answer:?}");
    store.overloaded.store(false, Ordering::Relaxed);
    assert_eq!(stage.state(id).await, "claimed");
    let answer = stage.complete(&granted, Vec::new()).await;
    assert!(matches!(answer, Err(Error::Payload { .. })), "{answer:?}");
}

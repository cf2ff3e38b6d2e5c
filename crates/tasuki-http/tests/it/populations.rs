// SPDX-License-Identifier: Apache-2.0
//! What populations of agents do: for whoever looks after the broker, and analysed no more than once a minute.

use serde_json::json;

use crate::support::{SECOND, Stage, may, on_durable_stores};

on_durable_stores! {
    a_population_is_analysed_once_a_minute_and_the_same_after_a_restart
    a_baseline_that_is_none_is_refused
}

mod walls {
    use super::whoever_looks_after_a_part_does_not_see_the_population;

    super::on_durable_stores! { closed:
        whoever_looks_after_a_part_does_not_see_the_population
    }
}

async fn a_population_is_analysed_once_a_minute_and_the_same_after_a_restart(stage: Stage) {
    stage.offer("coder", json!({})).await;
    let first = stage.get("/v1/population").await.done();
    assert_eq!((&first["handoffs"], &first["findings"]), (&json!(1), &json!([])));
    assert_eq!(first["looked"].as_array().unwrap().len(), 6);
    stage.offer("coder", json!({})).await;
    assert_eq!(stage.get("/v1/population").await.done(), first, "it is not analysed anew yet");
    let other = stage.get("/v1/population?no_baseline=true").await.done();
    assert_eq!(other["handoffs"], 2, "another baseline is another question");
    let stage = stage.restarted().await;
    stage.pass(61 * SECOND).await;
    assert_eq!(stage.get("/v1/population?no_baseline=true").await.done(), other);
}

async fn a_baseline_that_is_none_is_refused(stage: Stage) {
    for query in [
        "baseline_from=2027-01-01T00:00:00Z",
        "baseline_from=2027-01-02T00:00:00Z&baseline_until=2027-01-01T00:00:00Z",
        "baseline_until=2027-01-01T00:00:00Z&no_baseline=true",
        "baseline_until=soon",
    ] {
        let path = format!("/v1/population?{query}");
        stage.get(&path).await.refused(400, "invalid_request");
    }
}

async fn whoever_looks_after_a_part_does_not_see_the_population(stage: Stage) {
    let admin = stage.administrator().await;
    let reader = admin.enroll("acme/reader", may(&["read"])).await;
    reader.get("/v1/population").await.refused(403, "not_permitted");
    admin.get("/v1/population").await.done();
}

// SPDX-License-Identifier: Apache-2.0
//! Offers through the engine: repeats, deadlines, many at once.

use tasuki_core::Terms;
use tasuki_engine::{Error, NewOffer};
use tokio::task::JoinSet;

use crate::support::{BEGIN, HOUR, MINUTE, Stage, code, json_of, keyed, new_offer, to};

fn first() -> NewOffer {
    keyed(new_offer(to("coder")), "k-1")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_sends_of_one_request_make_one_handoff() {
    let stage = Stage::volatile();
    let mut senders = JoinSet::new();
    for _ in 0..100 {
        let stage = stage.clone();
        senders.spawn(async move { stage.engine.offer(first()).await.unwrap() });
    }
    let offered = senders.join_all().await;
    assert_eq!(offered.iter().filter(|offered| !offered.repeated).count(), 1);
    assert!(offered.iter().all(|one| one.handoff == offered[0].handoff));
    assert_eq!(stage.engine.head().0, 1);
}

#[tokio::test]
async fn a_key_stands_for_every_part_of_its_request() {
    let stage = Stage::volatile();
    stage.engine.offer(first()).await.unwrap();
    let mut other = new_offer(to("coder"));
    other.intent = Some("something else".into());
    let other = keyed(other, "k-1");
    assert_eq!(code(stage.engine.offer(other).await), "idempotency_conflict");
    let mut other = new_offer(to("coder"));
    other.hop.priority = Some(9);
    let other = keyed(other, "k-1");
    assert_eq!(code(stage.engine.offer(other).await), "idempotency_conflict");
    // A minute later it is still the same request, though its envelope would not be the same.
    stage.clock.advance_ms(MINUTE);
    assert!(stage.engine.offer(first()).await.unwrap().repeated);
}

#[tokio::test]
async fn many_offers_are_one_commit_and_each_stands_for_itself() {
    let stage = Stage::volatile();
    let without_words = NewOffer { intent: None, ..new_offer(to("coder")) };
    let mut hasty = new_offer(to("coder"));
    hasty.hop.terms = Some(Terms { lease_ms: 1, ..Terms::default() });
    let many = vec![new_offer(to("coder")), without_words, hasty, new_offer(to("coder"))];
    let mut replies = stage.engine.offer_many(many).await.unwrap();
    assert!(matches!(replies.remove(1), Err(Error::Invalid { field: "intent", .. })));
    assert_eq!(code(replies.remove(1)), "invalid_terms");
    assert!(replies.iter().all(Result::is_ok));
    assert_eq!(stage.store.stats().commits, 1);
}

#[tokio::test]
async fn the_earlier_of_deadline_and_span_counts_and_the_envelope_says_so() {
    let stage = Stage::volatile();
    let check = |deadline_ms: Option<u64>, span_ms, expected_ms| {
        let mut offer = new_offer(to("coder"));
        offer.hop.deadline = deadline_ms.map(|ms| BEGIN.plus_ms(ms));
        offer.hop.expires_in_ms = span_ms;
        let stage = stage.clone();
        async move {
            let id = stage.engine.offer(offer).await.unwrap().handoff.id;
            let (handoff, envelope) = stage.engine.envelope(id).await.unwrap();
            let expected = BEGIN.plus_ms(expected_ms);
            assert_eq!(handoff.expires_at, expected);
            let said = json_of(&envelope.unwrap()).get("deadline").cloned();
            let named = (deadline_ms.is_some() || span_ms.is_some()).then(|| expected.to_string());
            assert_eq!(said, named.map(Into::into));
        }
    };
    check(None, None, 24 * HOUR).await;
    check(Some(HOUR), None, HOUR).await;
    check(None, Some(MINUTE), MINUTE).await;
    check(Some(HOUR), Some(MINUTE), MINUTE).await;
    check(Some(MINUTE), Some(HOUR), MINUTE).await;
    let mut late = new_offer(to("coder"));
    late.hop.deadline = Some(BEGIN);
    assert_eq!(code(stage.engine.offer(late).await), "deadline_passed");
}

#[tokio::test]
async fn words_that_say_nothing_are_refused() {
    let stage = Stage::volatile();
    for intent in ["", " \n", &"x".repeat(64 * 1024 + 1)] {
        let offer = NewOffer { intent: Some(intent.into()), ..new_offer(to("coder")) };
        let refused = stage.engine.offer(offer).await;
        assert!(matches!(refused, Err(Error::Invalid { field: "intent", .. })));
    }
    assert_eq!(stage.engine.head().0, 0);
}

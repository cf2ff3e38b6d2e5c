// SPDX-License-Identifier: Apache-2.0
//! Single rules of assembly, each with the least data that shows it.

use tasuki_core::Timestamp;
use tasuki_core::assembly::{
    Assembled, Brief, Candidate, Item, Prepared, Priority, Profiles, Reason, Request, Rule, Rung,
    Strategy, Tokenizer, WarningCode, assemble,
};
use tasuki_core::trust::Trust;

pub(super) fn item(id: &str, text: &str) -> Item {
    Item {
        id: id.into(),
        revision: 1,
        kind: "note".into(),
        title: String::new(),
        summary: None,
        text: text.into(),
        priority: Priority::Normal,
        pinned: false,
        tags: vec![],
        at: Timestamp(0),
        source: None,
        by: None,
        trust: Trust::Agent,
    }
}

fn request(items: Vec<Item>) -> Request {
    let prepare = |item| Candidate::from(Prepared::new(item, Tokenizer::O200k));
    Request {
        brief: Brief {
            intent: "Refund order 4711.".into(),
            constraints: vec![Rule {
                kind: "must_not".into(),
                text: "Do not pay twice.".into(),
                issuer: None,
            }],
            ask: Some("Check the payment.".into()),
            ..Brief::default()
        },
        items: items.into_iter().map(prepare).collect(),
        tokenizer: Tokenizer::O200k,
        ..Request::default()
    }
}

fn within(budget: u64, request: &Request) -> Assembled {
    assemble(&Request { budget: Some(budget), ..request.clone() }).unwrap()
}

fn long_text() -> String {
    (0..40).map(|at| format!("Step {at} of the long story was uneventful and calm. ")).collect()
}

#[test]
fn what_is_of_high_priority_comes_before_better_matches() {
    let high = Item { priority: Priority::High, ..item("ms-1", "Weather was fine that day.") };
    let mut request =
        request(vec![high, item("ms-2", &"The payment of order 4711 failed. ".repeat(7))]);
    request.brief.ask = None;
    let needed = within(10_000, &request).receipt.token_count;
    let receipt = within(needed - 1, &request).receipt;
    assert_eq!(receipt.kept[0].id, "ms-1");
    assert_eq!((&*receipt.demoted[0].id, receipt.demoted[0].rung), ("ms-2", Rung::Stub));
    assert_eq!(receipt.demoted[0].fetch, "/v1/memories/ms-2?detail=full");
}

#[test]
fn a_long_text_is_passed_in_the_parts_that_matter() {
    let text = format!("{} Payment 88-A17 of order 4711 failed. {}", long_text(), long_text());
    let assembled = within(300, &request(vec![item("ms-1", &text)]));
    let demoted = &assembled.receipt.demoted[0];
    assert_eq!(demoted.rung, Rung::Summary);
    assert!(demoted.parts.is_some_and(|(kept, all)| kept >= 1 && kept < all));
    assert!(assembled.prompt.contains("Payment 88-A17 of order 4711 failed."));
}

#[test]
fn the_strategies_stop_at_their_rungs() {
    let summary = Some("A long story.".to_owned());
    let items = vec![Item { summary, title: "Story".into(), ..item("ms-1", &long_text()) }];
    let rung = |strategy| {
        let request = Request { strategy, ..request(items.clone()) };
        (assemble(&request).unwrap().receipt.kept[0].rung, assemble(&request).unwrap().prompt)
    };
    let (lazy, prompt) = rung(Strategy::Lazy);
    assert_eq!(lazy, Rung::Stub);
    assert!(prompt.contains("§ [m1] note \"Story\", 561 tokens: A long story.\n"), "{prompt}");
    assert_eq!(rung(Strategy::SummaryRefs).0, Rung::Summary);
    assert_eq!(rung(Strategy::Priority).0, Rung::Full);
    assert_eq!(rung(Strategy::Full).0, Rung::Full);
}

#[test]
fn a_copy_is_dropped_and_points_to_the_first() {
    let request = request(vec![item("ms-1", "Said once."), item("ms-2", "Said once.")]);
    let receipt = within(1000, &request).receipt;
    assert_eq!(receipt.dropped[0].id, "ms-2");
    assert_eq!(receipt.dropped[0].reason, Reason::Duplicate { of: "ms-1".into() });
}

#[test]
fn what_is_almost_said_already_comes_after_what_is_not() {
    let told = "The gateway pay-gw-3 charged the card of order 4711 twice on the second of March \
        because the retry ran before the first answer had come back from the bank";
    let again = told.replace("March", "April");
    let new = "The card of order 4711 is with the bank of the user and its limit is reached";
    let request = request(vec![item("ms-1", told), item("ms-2", &again), item("ms-3", new)]);
    let place = |id: &str| {
        let assembled = assemble(&request).unwrap();
        assembled.carried.iter().find(|kept| kept.0 == id).map(|kept| kept.2.score)
    };
    assert!(place("ms-2") < place("ms-3"));
}

#[test]
fn a_role_raises_lowers_and_leaves_out() {
    let kind =
        |id: &str, kind: &str| Item { kind: kind.into(), ..item(id, &format!("It is {id}.")) };
    let mut request = request(vec![kind("a", "test"), kind("b", "design"), kind("c", "reasoning")]);
    request.profile = Profiles::standard().of("tester").cloned();
    let assembled = assemble(&request).unwrap();
    let score = |id: &str| assembled.carried.iter().find(|kept| kept.0 == id).map(|it| it.2.score);
    assert!(score("a") > score("b"));
    assert_eq!(assembled.receipt.dropped[0].reason, Reason::Role);
}

#[test]
fn what_does_not_belong_into_an_envelope_is_warned_about() {
    let log = "2026-03-02T10:00:00Z INFO started\n".repeat(10);
    let copy = Item { source: Some("src/main.rs".into()), ..item("copy", "fn main() {}") };
    let items = vec![item("log", &log), item("think", "<thinking>so…</thinking>"), copy];
    let receipt = assemble(&request(items)).unwrap().receipt;
    let codes: Vec<_> = receipt.warnings.iter().map(|warning| warning.code).collect();
    assert_eq!(
        codes,
        [WarningCode::CopyOfSource, WarningCode::RawLog, WarningCode::FinishedReasoning]
    );
}

#[test]
fn tokens_of_an_unknown_tokenizer_are_estimated_on_the_safe_side_and_flagged() {
    let request = Request { tokenizer: Tokenizer::UNKNOWN, ..request(vec![item("a", "Übung")]) };
    let assembled = assemble(&request).unwrap();
    let bytes = assembled.prompt.len() as u64;
    let counted = Tokenizer::O200k.count(&assembled.prompt);
    assert!((counted + 1..bytes).contains(&assembled.receipt.token_count));
    assert!(!assembled.receipt.exact);
    assert!(assembled.receipt.warnings[0].text.contains("65 % more"));
    assert_eq!(assembled.receipt.warnings[0].code, WarningCode::InexactCount);
}

#[test]
fn what_could_not_be_read_lowers_completeness_and_is_named() {
    use tasuki_core::assembly::Gap;
    let gap = Gap { id: "ms-9".into(), reason: "the store did not answer".into() };
    let request = Request { unresolved: vec![gap.clone()], ..request(vec![item("a", "b")]) };
    let receipt = assemble(&request).unwrap().receipt;
    assert_eq!((receipt.completeness_per_mille, receipt.unresolved), (500, vec![gap]));
}

#[test]
fn the_best_items_are_at_the_two_ends() {
    let items = (1..=5_i64).map(|at| Item {
        at: Timestamp(at * 1000),
        ..item(&format!("ms-{at}"), &format!("word{}", "x".repeat(usize::try_from(at).unwrap())))
    });
    let prompt = assemble(&request(items.collect())).unwrap().prompt;
    let context = &prompt[prompt.find("## Context").unwrap()..];
    let places: Vec<usize> = (1..=5)
        .map(|at| context.find(&format!("note: word{}\n", "x".repeat(at))).unwrap())
        .collect();
    // The newest is the best: 5 first, 4 last, 1 in the middle.
    assert!(places[4] < places[2] && places[2] < places[0]);
    assert!(places[0] < places[1] && places[1] < places[3]);
}

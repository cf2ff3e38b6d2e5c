// SPDX-License-Identifier: Apache-2.0
//! What is chosen where something is asked: relevance leads.

use tasuki_core::Timestamp;
use tasuki_core::assembly::{
    Brief, Candidate, Item, Prepared, Request, Strategy, Tokenizer, assemble,
};

use super::stories::item;

/// The ids of what is kept of turns, in the order in which they are taken, as the budget grows.
fn taken(ask: &str, turns: &[(&str, &str)]) -> Vec<String> {
    let items = turns.iter().enumerate().map(|(at, (title, text))| {
        let at_ms = i64::try_from(at).unwrap() * 1000;
        let item = Item { title: (*title).into(), at: Timestamp(at_ms), ..item("", text) };
        Item { id: format!("m{at}"), ..item }
    });
    let request = Request {
        brief: Brief { intent: "Help the team.".into(), ask: Some(ask.into()), ..Brief::default() },
        items: items.map(|it| Candidate::from(Prepared::new(it, Tokenizer::O200k))).collect(),
        strategy: Strategy::Priority,
        tokenizer: Tokenizer::O200k,
        ..Request::default()
    };
    let mut order: Vec<String> = Vec::new();
    for budget in 1..2000 {
        let Ok(assembled) = assemble(&Request { budget: Some(budget), ..request.clone() }) else {
            continue;
        };
        for kept in assembled.receipt.kept {
            if !order.contains(&kept.id) {
                order.push(kept.id);
            }
        }
        if order.len() == turns.len() {
            break;
        }
    }
    order
}

const NEWS: [(&str, &str); 3] = [
    ("", "Lunch is at noon on all days of this week in the large hall."),
    ("", "The printer on the second floor is out of paper once more."),
    ("", "Somebody left a green umbrella at the reception yesterday."),
];

#[test]
fn other_forms_of_the_words_that_are_asked_for_are_found() {
    let mut turns = vec![("", "They studied how batteries were charging in the cold.")];
    turns.extend(NEWS);
    assert_eq!(taken("Which study covers how a battery charges?", &turns)[0], "m0");
}

#[test]
fn an_identifier_that_is_asked_for_outweighs_many_common_words() {
    let mut turns = vec![
        ("Invoices", "Refund status and refund policy for customers who want a refund status."),
        ("Orders", "HAT136 left the gate."),
    ];
    turns.extend(NEWS);
    assert_eq!(taken("What is the refund status of HAT136?", &turns)[0], "m1");
}

#[test]
fn neighbours_of_a_hit_come_before_what_is_newer_and_says_nothing_of_it() {
    let mut turns = NEWS.to_vec();
    turns.extend([
        ("", "So let us talk about the remote control and its buttons."),
        ("", "I would make them of rubber, that feels best by far."),
    ]);
    for _ in 0..8 {
        turns.extend(NEWS.iter().rev());
    }
    let order = taken("What was said about the buttons of the remote control?", &turns);
    assert_eq!(order[..2], ["m3", "m4"]);
}

#[test]
fn texts_with_titles_of_their_own_are_no_neighbours() {
    let turns = [
        ("Colours", "The corporate colours are blue and white."),
        ("Buttons", "The buttons of the remote control are round."),
        ("Parking", "Cars may be left behind the building."),
        ("Remote", "A remote place is best for offices."),
    ];
    let order = taken("Which buttons has the remote control?", &turns);
    assert_eq!(order[..2], ["m1", "m3"]);
}

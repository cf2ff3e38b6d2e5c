// SPDX-License-Identifier: Apache-2.0
//! Random requests: texts of many scripts, ids, code, JSON, things that look like our own headings,
//! and text that repeats.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tasuki_core::Timestamp;
use tasuki_core::assembly::{
    Brief, Candidate, Gap, Item, Prepared, Priority, Profiles, Request, Rule, Strategy as Chosen,
    Tokenizer,
};
use tasuki_core::trust::Trust;

pub(crate) fn tokenizer() -> impl Strategy<Value = Tokenizer> {
    prop_oneof![
        4 => Just(Tokenizer::O200k),
        4 => Just(Tokenizer::Cl100k),
        1 => Just(Tokenizer::UNKNOWN),
    ]
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => prop::sample::select(&[
            "the", "agent", "must", "not", "refund", "order", "HAT136", "2024-05-20", "src/a.rs",
            "credit_card_42", "don't", "I'll", "Do", "never", "東京", "über", "🎉", "→", "a", "0",
        ][..]).prop_map(str::to_owned),
        1 => "[ -~]{1,8}",
        1 => "\\PC{1,3}",
        1 => prop::sample::select(&[
            "\n", "\n\n", "\n# Task\n", "\n/", "\n ", "\r\n", "\t", "```\n", "\n- ", ". ", "  ",
            "<|endoftext|>", "\n'll", "\u{2028}", "\u{a0}", "§", "\n§ ", "¶", "§7 R1 must: ",
            "\n| a | b |\n|---|---|\n| 1 | 2 |\n", "[m1]", "\r", "[{\"a\":1,\"b\":2},{\"a\":1,\"b\":3}]",
        ][..]).prop_map(str::to_owned),
    ]
}

/// A text of up to so many words.
pub(crate) fn text(words: usize) -> impl Strategy<Value = String> {
    vec(word(), 0..words).prop_map(|words| {
        let mut text = String::new();
        for word in words {
            if !text.ends_with(char::is_whitespace) && !text.is_empty() {
                text.push(' ');
            }
            text.push_str(&word);
        }
        text
    })
}

fn item() -> impl Strategy<Value = Item> {
    let body = prop_oneof![4 => text(30), 2 => text(300), 1 => Just("The same again.".to_owned())];
    let kind = prop::sample::select(&["message", "code", "log", "reasoning", "decision"][..]);
    let priority = prop::sample::select(
        &[Priority::High, Priority::Normal, Priority::Normal, Priority::Low][..],
    );
    let names = (1..3_u64, text(4), option::of(text(12)));
    (names, body, kind, priority, prop::bool::weighted(0.1), 0..20_i64).prop_map(
        |((revision, title, summary), text, kind, priority, pinned, at)| Item {
            id: String::new(),
            revision,
            kind: kind.into(),
            title,
            summary,
            text,
            priority,
            pinned,
            tags: vec![],
            at: Timestamp(at * 60_000),
            source: None,
            by: [None, Some("coder".to_owned()), Some("ci bot".to_owned())]
                [usize::try_from(at % 3).unwrap()]
            .clone(),
            trust: if at % 5 == 4 { Trust::Tool } else { Trust::Agent },
        },
    )
}

fn brief() -> impl Strategy<Value = Brief> {
    let rule = (prop::sample::select(&["must", "must_not", "format", "security"][..]), text(12))
        .prop_map(|(kind, text)| Rule { kind: kind.into(), text, issuer: Some("user".into()) });
    let always = (text(30), vec(rule, 0..5), option::of(text(10)), vec(text(8), 0..3));
    let more = (option::of(text(10)), option::of(text(20)), vec(text(8), 0..3), vec(text(8), 0..4));
    (always, more).prop_map(
        |(
            (intent, constraints, ask, open_decisions),
            (expected_output, summary, tried, history),
        )| {
            let gaps = tried.iter().take(1).cloned().collect();
            let history = history.into_iter().map(|step| format!("user: {step}")).collect();
            Brief {
                intent,
                constraints,
                ask,
                open_decisions,
                expected_output,
                summary,
                tried,
                history,
                gaps,
                ..Brief::default()
            }
        },
    )
}

/// A request without a budget.
pub(crate) fn request() -> impl Strategy<Value = Request> {
    let strategy = prop::sample::select(
        &[Chosen::Priority, Chosen::Priority, Chosen::SummaryRefs, Chosen::Lazy][..],
    );
    let role = option::of(prop::sample::select(&["coder", "tester"][..]));
    (brief(), vec(item(), 0..14), strategy, role, tokenizer(), 0..100_u64, 0..3_usize).prop_map(
        |(brief, items, strategy, role, tokenizer, reserved, missing)| Request {
            brief,
            items: named(items)
                .into_iter()
                .map(|item| Prepared::new(item, tokenizer).into())
                .collect(),
            unresolved: (0..missing)
                .map(|at| Gap { id: format!("gone-{at}"), reason: "not found".into() })
                .collect(),
            profile: role.and_then(|role| Profiles::standard().of(role).cloned()),
            strategy,
            tokenizer,
            reserved_system_prompt: reserved,
            reserved_work: reserved / 2,
            ..Request::default()
        },
    )
}

/// Gives items ids of their own; every seventh is the one before it once more.
fn named(items: Vec<Item>) -> Vec<Item> {
    let mut named: Vec<Item> = Vec::new();
    for (at, item) in items.into_iter().enumerate() {
        let again = named.last().filter(|_| at % 7 == 6).cloned();
        named.push(again.unwrap_or(Item { id: format!("ms-{at}"), ..item }));
    }
    named
}

/// The same items in another order.
pub(crate) fn shuffled(items: &[Candidate], seed: u64) -> Vec<Candidate> {
    let mut items: Vec<(u64, Candidate)> = items
        .iter()
        .zip(1_u64..)
        .map(|(item, at)| ((seed ^ at).wrapping_mul(0x9e37_79b9_7f4a_7c15), item.clone()))
        .collect();
    items.sort_by_key(|(key, _)| *key);
    items.into_iter().map(|(_, item)| item).collect()
}

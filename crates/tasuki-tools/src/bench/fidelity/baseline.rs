// SPDX-License-Identifier: Apache-2.0
//! What people do without a broker: pass on one text and cut it, summarise it at each hop, or keep
//! the last messages.

use std::collections::HashMap;

use serde_json::Value;
use tasuki_core::assembly::sentences;
use tasuki_core::search::{Statistics, bm25, length, terms};

use super::relay::{Passed, TOKENIZER};
use super::scenario::{STAGES, Scenario};

/// One text that starts with the policy; its end is kept.
pub(super) fn keep_tail(scenario: &Scenario, budget: u64) -> Passed {
    text_relay(scenario, |text| {
        let starts: Vec<usize> = text
            .char_indices()
            .filter(|(at, _)| *at == 0 || text.as_bytes()[at - 1].is_ascii_whitespace())
            .map(|(at, _)| at)
            .collect();
        let first = starts.partition_point(|&at| TOKENIZER.count(&text[at..]) > budget);
        starts.get(first).map_or(String::new(), |&at| text[at..].to_owned())
    })
}

/// One text that starts with the policy; its most central sentences are kept, in their order.
pub(super) fn summary_per_hop(scenario: &Scenario, budget: u64) -> Passed {
    text_relay(scenario, |text| {
        let sentences = sentences(text);
        let mut left = budget;
        let mut chosen: Vec<usize> = Vec::new();
        for at in by_centrality(&sentences) {
            let tokens = TOKENIZER.count(sentences[at]) + 1;
            if tokens <= left {
                left -= tokens;
                chosen.push(at);
            }
        }
        chosen.sort_unstable();
        chosen.iter().map(|&at| format!("{}\n", sentences[at])).collect()
    })
}

/// The constraints as a system message, and the last whole messages that fit beside it.
pub(super) fn last_messages(scenario: &Scenario, budget: u64) -> Passed {
    let mut passed = Passed::default();
    let system: String = scenario.constraints.iter().map(|it| format!("- {}\n", it.text)).collect();
    let mut messages: Vec<String> = Vec::new();
    for stage in &scenario.stages[..STAGES - 1] {
        messages.extend(stage.iter().map(|message| format!("{}: {}\n", message.who, message.text)));
        while TOKENIZER.count(&format!("{system}{}", messages.concat())) > budget
            && !messages.is_empty()
        {
            messages.remove(0);
        }
        passed.texts.push(format!("{system}{}", messages.concat()));
    }
    passed
}

/// The constraints, and the last whole messages that fit, arrays of JSON records cut in each of them:
/// the first three, the last two, and those that have a word of failure or a value that is rare in its
/// column, as `Headroom`'s compression of tool results keeps them.
pub(super) fn compressed_arrays(scenario: &Scenario, budget: u64) -> Passed {
    let mut cut = Scenario { stages: scenario.stages.clone(), ..scenario.clone() };
    for message in cut.stages.iter_mut().flatten() {
        if let Some(text) = compressed(&message.text) {
            message.text = text;
        }
    }
    last_messages(&cut, budget)
}

fn compressed(text: &str) -> Option<String> {
    let start = text.find(['[', '{'])?;
    let mut value: Value = serde_json::from_str(text[start..].trim_end()).ok()?;
    compress(&mut value).then(|| format!("{}{value}", &text[..start]))
}

/// Whether something was cut.
fn compress(value: &mut Value) -> bool {
    const FIRST: usize = 3;
    const LAST: usize = 2;
    match value {
        Value::Array(items) => {
            let mut cut = false;
            for item in items.iter_mut() {
                cut |= compress(item);
            }
            if items.len() > FIRST + LAST && items.iter().all(Value::is_object) {
                let mut seen: HashMap<String, usize> = HashMap::new();
                let values = |item: &Value| -> Vec<String> {
                    let members = item.as_object().into_iter().flatten();
                    // Numbers and long texts are different everywhere, which says nothing.
                    let words = members.filter(|(_, v)| v.as_str().is_some_and(|v| v.len() < 24));
                    words.map(|(name, value)| format!("{name}={value}")).collect()
                };
                for item in items.iter() {
                    values(item).into_iter().for_each(|it| *seen.entry(it).or_default() += 1);
                }
                let all = items.len();
                let stands_out = |item: &Value| {
                    let text = item.to_string().to_lowercase();
                    let fails = ["error", "fail", "exception", "cancel"];
                    // A column of names is rare in every row; a status is not.
                    let rare = |it: &String| seen[it] == 1 && all > 10;
                    let column = |it: &str| it.split('=').next().unwrap_or_default().to_owned();
                    let alone = values(item).into_iter().filter(rare).any(|it| {
                        let name = column(&it);
                        seen.keys().filter(|other| column(other) == name).count() <= 4
                    });
                    fails.iter().any(|word| text.contains(word)) || alone
                };
                let keep: Vec<bool> = (0..all)
                    .map(|at| at < FIRST || at + LAST >= all || stands_out(&items[at]))
                    .collect();
                let mut keep = keep.into_iter();
                items.retain(|_| keep.next().unwrap_or(true));
                cut |= items.len() < all;
            }
            cut
        }
        Value::Object(members) => {
            let mut cut = false;
            for value in members.values_mut() {
                cut |= compress(value);
            }
            cut
        }
        _ => false,
    }
}

/// The constraints, and the newest messages; one that does not fit is passed over.
pub(super) fn newest_that_fit(scenario: &Scenario, budget: u64) -> Passed {
    message_relay(scenario, budget, |messages| (0..messages.len()).rev().collect())
}

/// The constraints, and the messages that share most with the intent.
pub(super) fn best_that_fit(scenario: &Scenario, budget: u64) -> Passed {
    let question = terms(&scenario.intent);
    message_relay(scenario, budget, |messages| {
        let documents: Vec<_> = messages.iter().map(|message| terms(message)).collect();
        let mut statistics = Statistics::default();
        documents.iter().for_each(|document| statistics.add(document));
        let score =
            |at: usize| bm25(&question, &documents[at], length(&documents[at]), &statistics);
        let mut order: Vec<usize> = (0..messages.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse((score(at), at)));
        order
    })
}

/// Each agent adds its messages to those that it was passed, and passes on whole ones in this order,
/// as many as fit beside the constraints.
fn message_relay(
    scenario: &Scenario,
    budget: u64,
    order: impl Fn(&[String]) -> Vec<usize>,
) -> Passed {
    let mut passed = Passed::default();
    let system: String = scenario.constraints.iter().map(|it| format!("- {}\n", it.text)).collect();
    let room = budget.saturating_sub(TOKENIZER.count(&system));
    let mut messages: Vec<String> = Vec::new();
    for stage in &scenario.stages[..STAGES - 1] {
        messages.extend(stage.iter().map(|message| format!("{}: {}\n", message.who, message.text)));
        let mut left = room;
        let mut keep = vec![false; messages.len()];
        for at in order(&messages) {
            if let Some(rest) = left.checked_sub(TOKENIZER.count(&messages[at])) {
                (left, keep[at]) = (rest, true);
            }
        }
        let mut kept = keep.into_iter();
        messages.retain(|_| kept.next().unwrap_or(false));
        passed.texts.push(format!("{system}{}", messages.concat()));
    }
    passed
}

/// Each agent adds its stage to what it was passed, and passes on what `cut` makes of it.
fn text_relay(scenario: &Scenario, cut: impl Fn(&str) -> String) -> Passed {
    let mut passed = Passed::default();
    let mut text = format!("{}\n", scenario.policy);
    for stage in &scenario.stages[..STAGES - 1] {
        for message in stage {
            text.push_str(&format!("{}: {}\n", message.who, message.text));
        }
        text = cut(&text);
        passed.texts.push(text.clone());
    }
    passed
}

/// Sentences by how much they share with the others (`TextRank`), the most central first. The
/// similarity is Dice's, which needs no logarithm and so is the same on every platform.
fn by_centrality(sentences: &[&str]) -> Vec<usize> {
    const ROUNDS: usize = 20;
    const DAMPING: f64 = 0.85;
    let mut holders: HashMap<String, Vec<usize>> = HashMap::new();
    let mut sizes = Vec::with_capacity(sentences.len());
    for (at, sentence) in sentences.iter().enumerate() {
        let terms = terms(sentence);
        sizes.push(terms.len().max(1) as f64);
        terms.into_iter().for_each(|(term, _)| holders.entry(term).or_default().push(at));
    }
    let number = sentences.len();
    let mut shared = vec![0_u32; number * number];
    for holders in holders.values() {
        for (place, &one) in holders.iter().enumerate() {
            for &two in &holders[place + 1..] {
                shared[one * number + two] += 1;
                shared[two * number + one] += 1;
            }
        }
    }
    let weight = |one: usize, two: usize| {
        2.0 * f64::from(shared[one * number + two]) / (sizes[one] + sizes[two])
    };
    let out: Vec<f64> = (0..number)
        .map(|one| (0..number).map(|two| weight(one, two)).sum::<f64>().max(f64::MIN_POSITIVE))
        .collect();
    let mut rank = vec![1.0_f64; number];
    for _ in 0..ROUNDS {
        rank = (0..number)
            .map(|at| {
                let given = (0..number).map(|from| rank[from] * weight(from, at) / out[from]);
                1.0 - DAMPING + DAMPING * given.sum::<f64>()
            })
            .collect();
    }
    let mut order: Vec<usize> = (0..number).collect();
    order.sort_by(|&one, &two| rank[two].total_cmp(&rank[one]).then(one.cmp(&two)));
    order
}

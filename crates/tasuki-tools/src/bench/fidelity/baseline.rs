// SPDX-License-Identifier: Apache-2.0
//! What people do without a broker: pass on one text and cut it, summarise it at each hop, or keep
//! the last messages.

use std::collections::HashMap;

use tasuki_core::assembly::sentences;
use tasuki_core::search::terms;

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

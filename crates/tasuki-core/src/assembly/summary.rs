// SPDX-License-Identifier: Apache-2.0
//! Summaries without a model: the sentences of a text that say most, in their order. Sentences are
//! taken as they are, so a summary cannot say what the text does not.

use super::text::{identifier_density, sentences};
use super::tokens::Tokenizer;
use crate::search;

/// How long an extracted summary may be, in the receiver's tokens.
pub const SUMMARY_TOKENS_MAX: u64 = 60;
/// How much of a text is looked at, in sentences; what follows is evidence, not gist.
const SENTENCES_MAX: usize = 400;

/// The best sentences of a text within a number of tokens, joined by spaces. They are dense in
/// identifiers, early in the text and, if there is a query, answer it. Where not even one sentence
/// fits, its first words: a summary of something is never empty.
#[must_use]
pub fn extract(
    text: &str,
    query: &[(String, u32)],
    tokens_max: u64,
    tokenizer: Tokenizer,
) -> String {
    let mut sentences = sentences(text);
    sentences.truncate(SENTENCES_MAX);
    let terms: Vec<_> = sentences.iter().map(|sentence| search::terms(sentence)).collect();
    let mut statistics = search::Statistics::default();
    terms.iter().for_each(|terms| statistics.add(terms));
    let relevance: Vec<i64> = terms
        .iter()
        .map(|terms| search::bm25(query, terms, search::length(terms), &statistics))
        .collect();
    let best = relevance.iter().copied().max().unwrap_or(0).max(1);

    let mut order: Vec<(i64, usize)> = (0..sentences.len())
        .map(|at| {
            let place = i64::try_from(at).expect("bounded above");
            let position = 500 / (1 + place);
            let relevant = relevance[at] * 600 / best;
            (-(identifier_density(sentences[at]) + position + relevant), at)
        })
        .collect();
    order.sort_unstable();

    let mut chosen: Vec<usize> = Vec::new();
    for (_, at) in order {
        chosen.push(at);
        chosen.sort_unstable();
        if tokenizer.count(&join(&sentences, &chosen)) > tokens_max {
            chosen.retain(|&kept| kept != at);
            break;
        }
    }
    if chosen.is_empty() { gist(text) } else { join(&sentences, &chosen) }
}

/// The first words of a text, for a line that only says what it is about.
#[must_use]
pub fn gist(text: &str) -> String {
    const WORDS: usize = 12;
    const CHARS: usize = 100;
    let mut gist = String::new();
    let mut words = text.split_whitespace();
    for word in words.by_ref().take(WORDS) {
        if !gist.is_empty() {
            gist.push(' ');
        }
        // One more than is kept, to see that there is more.
        gist.extend(word.chars().take(CHARS + 1));
    }
    let cut = gist.char_indices().nth(CHARS).map(|(at, _)| at);
    if let Some(at) = cut {
        gist.truncate(at);
    }
    if cut.is_some() || words.next().is_some() {
        gist.push('…');
    }
    gist
}

fn join(sentences: &[&str], chosen: &[usize]) -> String {
    chosen.iter().map(|&at| sentences[at]).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "We looked into the outage. It was a long day for everybody. Order 4711 was \
        charged twice by pay-gw-3 on 2026-03-02. People were tired and went home. The refund of \
        order 4711 is still open.";

    #[test]
    fn a_summary_is_made_of_the_sentences_that_say_most() {
        let summary = extract(TEXT, &[], 40, Tokenizer::O200k);
        assert!(summary.contains("Order 4711 was charged twice by pay-gw-3 on 2026-03-02."));
        assert!(!summary.contains("tired"));
        assert!(Tokenizer::O200k.count(&summary) <= 40);
    }

    #[test]
    fn a_query_raises_sentences_that_answer_it() {
        let query = search::terms("who went home");
        assert!(extract(TEXT, &query, 30, Tokenizer::O200k).contains("went home"));
    }

    #[test]
    fn a_gist_is_short_whatever_it_is_taken_from() {
        assert_eq!(gist("a  b\nc"), "a b c");
        assert_eq!(gist(&"x".repeat(5000)).chars().count(), 101);
        assert!(gist(TEXT).ends_with('…'));
    }
}

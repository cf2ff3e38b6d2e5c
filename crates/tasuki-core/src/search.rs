// SPDX-License-Identifier: Apache-2.0
//! What a text is found by, and how well it answers a query: terms, and BM25 in whole numbers, so
//! that every platform and every store ranks alike. Stores supply candidates and statistics; the
//! score is made here.

use std::collections::BTreeMap;

/// How long a term may be, in bytes. What is longer is cut: nobody searches for the end of it.
pub const TERM_BYTES_MAX: usize = 64;
/// The score of one bit of information in a term that occurs as often as it ever counts.
pub const UNIT: i64 = 1 << SCALE_BITS;

const SCALE_BITS: u32 = 16;
/// How soon repetition of a term stops counting (`k1` = 1.2), in tenths.
const SATURATION_TENTHS: u64 = 12;
/// What a term that occurs ever so often is worth, in thousandths of its `idf` (`k1` + 1).
const GAIN_MAX: i64 = 2200;
/// How much a long document is held against it (`b` = 0.75), in hundredths.
const LENGTH_HUNDREDTHS: u64 = 75;

/// The terms of a text and how often each occurs, sorted by term.
///
/// Terms are lower-cased words and numbers. What is written as one identifier (`src/types.rs`,
/// `credit_card_42`, `ms-4821`) is a term as a whole and in its parts. Scripts that are written
/// without spaces give each pair of neighbouring characters.
#[must_use]
pub fn terms(text: &str) -> Vec<(String, u32)> {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    each_term(text, |term| {
        if let Some(count) = counts.get_mut(term) {
            *count = count.saturating_add(1);
        } else {
            counts.insert(term.to_owned(), 1);
        }
    });
    counts.into_iter().collect()
}

/// The length of a document as BM25 counts it: how many terms it has, repetitions included.
#[must_use]
pub fn length(terms: &[(String, u32)]) -> u64 {
    terms.iter().map(|(_, count)| u64::from(*count)).sum()
}

/// What is known about all documents that are ranked together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statistics {
    /// How many documents there are.
    pub documents: u64,
    /// The sum of their lengths. A sum and not the average, because sums are exact everywhere.
    pub length_total: u64,
    /// In how many documents each term of the query occurs. A term that is missing occurs in none.
    pub frequency: BTreeMap<String, u64>,
}

impl Statistics {
    /// Counts one document more. For callers that hold all documents; stores keep their own sums.
    pub fn add(&mut self, document: &[(String, u32)]) {
        self.documents += 1;
        self.length_total += length(document);
        for (term, _) in document {
            *self.frequency.entry(term.clone()).or_default() += 1;
        }
    }
}

/// How well a document answers a query. Never negative; 0 if it has no term of the query. A term
/// that the query names twice counts twice. `document` must be sorted by term, as [`terms`] gives it.
#[must_use]
pub fn bm25(
    query: &[(String, u32)],
    document: &[(String, u32)],
    document_length: u64,
    statistics: &Statistics,
) -> i64 {
    let norm = norm(document_length, statistics.documents, statistics.length_total);
    let mut score: i64 = 0;
    for (term, wanted) in query {
        let Ok(at) = document.binary_search_by(|(known, _)| known.cmp(term)) else { continue };
        let frequency = statistics.frequency.get(term).copied().unwrap_or(0);
        let gain = gain(idf(statistics.documents, frequency), document[at].1, norm);
        score = score.saturating_add(gain.saturating_mul(i64::from(*wanted)));
    }
    score
}

/// How much a term tells: the logarithm of how rare it is, in units of [`UNIT`].
pub(crate) fn idf(documents: u64, frequency: u64) -> i64 {
    // A store's statistics may lag behind its documents; a term is never in more than there are.
    let frequency = frequency.min(documents);
    let all = log2(documents.saturating_mul(2).saturating_add(2));
    all - log2(frequency.saturating_mul(2).saturating_add(1))
}

/// The part of BM25's denominator that does not depend on the term, in thousandths.
pub(crate) fn norm(length: u64, documents: u64, length_total: u64) -> u64 {
    norm_with(length, documents, length_total, LENGTH_HUNDREDTHS)
}

/// The same, with how much length is held against a document, in hundredths.
pub(crate) fn norm_with(
    length: u64,
    documents: u64,
    length_total: u64,
    length_hundredths: u64,
) -> u64 {
    let (length, documents) = (u128::from(length), u128::from(documents.max(1)));
    let total = u128::from(length_total.max(1));
    // length / average = length * documents / total, kept within reason for absurd statistics.
    let relative = ((length * documents).saturating_mul(1000) / total).min(1_000_000);
    let relative = u64::try_from(relative).expect("bounded above");
    let share = (100 - length_hundredths) * 1000 + length_hundredths * relative;
    SATURATION_TENTHS * share / 1000
}

/// What a term that occurs `count` times in a document adds to its score.
pub(crate) fn gain(idf: i64, count: u32, norm: u64) -> i64 {
    // Divisions of 128 bits are slow, and almost never needed.
    if let (Ok(few), Ok(norm)) = (u16::try_from(count), i64::try_from(norm))
        && idf < 1 << 32
    {
        let above = idf * i64::from(few) * GAIN_MAX;
        return above / (i64::from(few) * 1000).saturating_add(norm).max(1);
    }
    let count = i128::from(count);
    let above = i128::from(idf) * count * i128::from(GAIN_MAX);
    let below = count * 1000 + i128::from(norm);
    i64::try_from(above / below.max(1)).expect("a quotient of at most 2.2 times the idf")
}

/// The logarithm to base 2 in units of [`UNIT`], one binary digit at a time.
pub(crate) fn log2(value: u64) -> i64 {
    let value = value.max(1);
    let whole = value.ilog2();
    let mut result = i64::from(whole) << SCALE_BITS;
    // The mantissa in 1.63 fixed point: squaring it doubles its logarithm.
    let mut mantissa = value << (63 - whole);
    for digit in (0..SCALE_BITS).rev() {
        let square = (u128::from(mantissa) * u128::from(mantissa)) >> 63;
        let doubled = square >> 64 != 0;
        let square = if doubled { square >> 1 } else { square };
        mantissa = u64::try_from(square).expect("a square below four in 2.62 fixed point");
        result += i64::from(doubled) << digit;
    }
    result
}

/// Calls back with each term of a text, in order, repetitions included.
pub(crate) fn each_term(text: &str, mut found: impl FnMut(&str)) {
    let mut lowered = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((start, first)) = chars.next() {
        if !first.is_alphanumeric() {
            continue;
        }
        let mut end = start + first.len_utf8();
        let mut joined = false;
        while let Some(&(at, next)) = chars.peek() {
            let joins =
                is_joiner(next) && text[at + 1..].chars().next().is_some_and(char::is_alphanumeric);
            if !next.is_alphanumeric() && !joins {
                break;
            }
            joined |= joins;
            end = at + next.len_utf8();
            chars.next();
        }
        lowered.clear();
        lowered.extend(text[start..end].chars().flat_map(char::to_lowercase));
        if lowered.chars().any(is_spaceless) {
            pairs(&lowered, &mut found);
            continue;
        }
        found(cut(&lowered));
        if joined {
            lowered.split(is_joiner).filter(|part| !part.is_empty()).for_each(|part| {
                found(cut(part));
            });
        }
    }
}

/// What holds an identifier together.
fn is_joiner(c: char) -> bool {
    matches!(c, '_' | '-' | '.' | '/' | ':' | '@' | '\'')
}

/// Whether a character belongs to a script that does not separate words: Thai, Lao, Khmer,
/// Japanese and Chinese.
fn is_spaceless(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

fn pairs(run: &str, found: &mut impl FnMut(&str)) {
    let starts: Vec<usize> =
        run.char_indices().map(|(at, _)| at).chain(std::iter::once(run.len())).collect();
    if starts.len() < 3 {
        return found(run);
    }
    for window in starts.windows(3) {
        found(&run[window[0]..window[2]]);
    }
}

fn cut(term: &str) -> &str {
    &term[..term.floor_char_boundary(TERM_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        terms(text).iter().map(|(term, count)| format!("{term}*{count} ")).collect()
    }

    #[test]
    fn identifiers_are_found_whole_and_in_parts() {
        assert_eq!(
            words("See src/types.rs: the order ms-4821. Types!"),
            "4821*1 ms*1 ms-4821*1 order*1 rs*1 see*1 src*1 src/types.rs*1 the*1 types*2 "
        );
    }

    #[test]
    fn scripts_without_spaces_are_found_by_pairs() {
        assert_eq!(words("東京都"), "京都*1 東京*1 ");
        assert_eq!(words("ÄRGER"), "ärger*1 ");
    }

    #[test]
    fn a_term_is_bounded() {
        assert_eq!(terms(&"ä".repeat(200))[0].0.len(), TERM_BYTES_MAX);
    }

    fn rank(query: &str, documents: &[&str]) -> Vec<i64> {
        let documents: Vec<_> = documents.iter().map(|text| terms(text)).collect();
        let mut statistics = Statistics::default();
        documents.iter().for_each(|document| statistics.add(document));
        let query = terms(query);
        documents.iter().map(|d| bm25(&query, d, length(d), &statistics)).collect()
    }

    #[test]
    fn rare_terms_repetition_and_brevity_raise_a_document() {
        let scores = rank(
            "refund policy",
            &[
                "the refund policy of the shop",
                "the policy of the house",
                "nothing of interest",
                "policy policy policy of the house",
                "a long text about the house and the shop that also mentions its policy in passing",
            ],
        );
        assert!(scores[0] > scores[3] && scores[3] > scores[1] && scores[1] > scores[4]);
        assert_eq!(scores[2], 0);
    }

    #[test]
    fn scores_are_these_numbers_on_every_platform() {
        assert_eq!(
            rank("apple pie", &["apple pie", "apple", "pear pie tart"]),
            [88878, 55866, 36892]
        );
    }

    #[test]
    fn absurd_statistics_do_not_overflow() {
        let statistics = Statistics {
            documents: u64::MAX,
            length_total: 1,
            frequency: BTreeMap::from([("x".to_owned(), u64::MAX)]),
        };
        let document = vec![("x".to_owned(), u32::MAX)];
        assert!(bm25(&document, &document, u64::MAX, &statistics) >= 0);
    }
}

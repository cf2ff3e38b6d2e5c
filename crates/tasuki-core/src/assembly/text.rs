// SPDX-License-Identifier: Apache-2.0
//! What can be said about a text without understanding it: its sentences, how it is cut into parts,
//! how dense it is in identifiers, and whether it is almost the same as another.

use crate::search::each_term;

/// How many tokens a text is, roughly, and the same for every tokenizer: cuts must not move when
/// a text is passed to another model.
#[must_use]
pub(super) fn estimate(text: &str) -> u64 {
    estimate_until(text, u64::MAX).1
}

/// How many bytes of a text stay within a number of estimated tokens, and how many tokens these are.
pub(super) fn estimate_until(text: &str, tokens_max: u64) -> (usize, u64) {
    let mut tokens = 0;
    let mut run = 0_u64;
    let mut last = Class::Space;
    for (at, c) in text.char_indices() {
        let class = Class::of(c);
        run = if class == last { run + 1 } else { 1 };
        last = class;
        let more = match class {
            Class::Space => 0,
            Class::Letter => u64::from(run % 7 == 1),
            Class::Foreign => u64::from(run % 3 == 1),
            Class::Ideograph => u64::from(run % 2 == 1),
            Class::Digit => u64::from(run % 3 == 1),
            Class::Other => u64::from(run % 2 == 1),
        };
        if tokens + more > tokens_max {
            return (at, tokens);
        }
        tokens += more;
    }
    (text.len(), tokens)
}

#[derive(PartialEq, Eq, Clone, Copy)]
enum Class {
    Space,
    Letter,
    /// Of an alphabet of which vocabularies have shorter pieces.
    Foreign,
    Ideograph,
    Digit,
    Other,
}

impl Class {
    fn of(c: char) -> Self {
        match c {
            c if c.is_whitespace() => Self::Space,
            c if c.is_numeric() => Self::Digit,
            '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' => {
                Self::Ideograph
            }
            c if c.is_alphabetic() && c > '\u{24f}' => Self::Foreign,
            c if c.is_alphabetic() => Self::Letter,
            _ => Self::Other,
        }
    }
}

/// The sentences of a text, in order, without the space around them. The end of a line ends a
/// sentence, unless the line was only broken to be short.
#[must_use]
pub fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut paragraphs: Vec<(usize, usize)> = Vec::new();
    let (mut at, mut before) = (0, "");
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        match paragraphs.last_mut() {
            Some((_, last)) if continues(before, line) => *last = end,
            _ => paragraphs.push((at, end)),
        }
        (at, before) = (end, line);
    }
    for (from, to) in paragraphs {
        let words = &text[from..to];
        let mut start = 0;
        for end in sentence_ends(words) {
            push_trimmed(&mut found, &words[start..end]);
            start = end;
        }
    }
    found
}

/// What is shorter was not broken to fit, in characters: where the next line begins in lower case,
/// and where it does not.
const BROKEN_MIN: usize = 40;
const BROKEN_MIN_BEFORE_CAPITAL: usize = 60;

/// Whether a line of prose goes on in the next one, because it was broken to be short. Lines of logs
/// and lists begin alike, and so do those of programs.
pub(super) fn continues(before: &str, line: &str) -> bool {
    let (before, line) = (before.trim(), line.trim());
    let (Some(last), Some(first)) = (before.chars().next_back(), line.chars().next()) else {
        return false;
    };
    let goes_on =
        last.is_alphanumeric() || matches!(last, ',' | '-' | '–' | '—' | '\'' | '’' | '%');
    if !goes_on || !(first.is_alphabetic() || matches!(first, '(' | '“')) {
        return false;
    }
    let length = before.chars().count();
    let word = |line: &str| -> String { line.chars().take_while(|c| c.is_alphabetic()).collect() };
    let shouted = |word: &str| word.chars().count() > 1 && !word.chars().any(char::is_lowercase);
    let (one, two) = (word(before), word(line));
    let said = line.split_once(": ").is_some_and(|(name, _)| name.chars().count() <= BROKEN_MIN);
    // A line of a log begins with its time.
    let dated = before.starts_with(|c: char| c.is_ascii_digit()) && before.get(4..5) == Some("-");
    if dated || (one == two && !one.is_empty()) || line.ends_with(['{', ';', '=']) {
        return false;
    }
    if !first.is_uppercase() {
        return length >= BROKEN_MIN;
    }
    length >= BROKEN_MIN_BEFORE_CAPITAL && !shouted(&two) && !said
}

/// Where the sentences of a line or paragraph end; the last end is its own. Space after a sentence is
/// in it.
pub(super) fn sentence_ends(line: &str) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut start = 0;
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let end = at + c.len_utf8();
        let ended = match c {
            '.' | '!' | '?' | '؟' | '۔' | '।' => {
                chars.peek().is_some_and(|(_, next)| next.is_whitespace())
                    && begins_sentence(&line[end..])
                    && !is_abbreviation(&line[start..at])
            }
            '。' | '！' | '？' => true,
            _ => false,
        };
        if ended {
            let space = line[end..].len() - line[end..].trim_start().len();
            ends.push(end + space);
            start = end + space;
        }
    }
    if ends.last() != Some(&line.len()) && !line.is_empty() {
        ends.push(line.len());
    }
    ends
}

fn push_trimmed<'a>(found: &mut Vec<&'a str>, text: &'a str) {
    let text = text.trim();
    if !text.is_empty() {
        found.push(text);
    }
}

fn begins_sentence(rest: &str) -> bool {
    rest.trim_start().chars().next().is_some_and(|c| !c.is_lowercase())
}

/// `e.g.`, `Mr.`, `2.` in a list, `J.` in a name: a stop that ends no sentence.
fn is_abbreviation(before: &str) -> bool {
    let word = before.rsplit(char::is_whitespace).next().unwrap_or_default();
    let single = word.chars().count() == 1;
    single || matches!(word, "e.g" | "i.e" | "Mr" | "Mrs" | "Ms" | "Dr" | "No" | "vs" | "approx")
}

/// How dense a text is in things that cannot be guessed or reworded (ids, numbers, dates, paths,
/// names), in thousandths of its words.
#[must_use]
pub fn identifier_density(text: &str) -> i64 {
    let mut weight = 0;
    let words = each_word(text, |_, surely| weight += surely);
    if words == 0 { 0 } else { (weight / words).min(1000) }
}

/// The identifiers of a text, each once: a hash, and how surely it is one, in thousandths. And how
/// many words the text has.
pub(super) fn identifiers(text: &str) -> (Vec<(u64, i64)>, i64) {
    let mut found: Vec<(u64, i64)> = Vec::new();
    let words = each_word(text, |word, surely| {
        if surely > 0 {
            found.push((digest(&word.to_lowercase()), surely));
        }
    });
    // The surest mention counts: a name at a sentence's start is still a name.
    found.sort_unstable_by_key(|&(word, surely)| (word, std::cmp::Reverse(surely)));
    found.dedup_by_key(|(word, _)| *word);
    (found, words)
}

/// Calls back with each word and how surely it is an identifier; says how many words there are.
fn each_word(text: &str, mut found: impl FnMut(&str, i64)) -> i64 {
    let mut words = 0;
    let mut first_of_sentence = true;
    for run in text.split_whitespace() {
        for word in run.split(['"', ',', ':', '(', ')', '[', ']', '{', '}']) {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric());
            if word.is_empty() {
                continue;
            }
            words += 1;
            found(word, identifier_weight(word, first_of_sentence));
            first_of_sentence = false;
        }
        first_of_sentence |= run.ends_with(['.', '!', '?']);
    }
    words
}

/// How surely a word is an identifier, in thousandths.
fn identifier_weight(word: &str, first_of_sentence: bool) -> i64 {
    let mut chars = word.chars();
    let capital = chars.next().is_some_and(char::is_uppercase);
    let later_capital = chars.any(char::is_uppercase);
    let joined = word.contains(['_', '/', '@', '.', '-']);
    let number = word.bytes().all(|b| b.is_ascii_digit());
    // A short number alone is a count or a part of a time: it names little.
    if number && word.len() < 3 {
        0
    } else if number && word.len() == 3 {
        300
    } else if word.bytes().any(|b| b.is_ascii_digit()) {
        1000
    } else if later_capital || (joined && word.contains(['/', '@', '_'])) {
        700
    } else if capital && !first_of_sentence {
        500
    } else {
        0
    }
}

/// A number that is the same for equal texts, whatever the platform (FNV-1a).
#[must_use]
pub(super) fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// How many numbers a [`Sketch`] has.
const SKETCH: usize = 8;

/// What almost equal texts share: the smallest of their shingles under several hashes. Texts with
/// fewer words than a few have none; they are equal or they are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sketch(Option<[u32; SKETCH]>);

impl Sketch {
    /// The sketch of a text, from runs of three terms.
    #[must_use]
    pub(super) fn of(text: &str) -> Self {
        let mut hashes = Vec::new();
        each_term(text, |term| hashes.push(digest(term)));
        if hashes.len() < 12 {
            return Self(None);
        }
        let mut smallest = [u32::MAX; SKETCH];
        for run in hashes.windows(3) {
            let mixed = run.iter().fold(0_u64, |sum, hash| sum.rotate_left(21) ^ hash);
            for (place, smallest) in smallest.iter_mut().enumerate() {
                let salt = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(place as u64 * 2 + 1);
                let hash = (mixed ^ salt).wrapping_mul(0xff51_afd7_ed55_8ccd);
                *smallest = (*smallest).min(u32::try_from(hash >> 32).expect("half of it"));
            }
        }
        Self(Some(smallest))
    }

    /// Whether two texts are almost the same.
    #[must_use]
    pub(super) fn resembles(&self, other: &Self) -> bool {
        let (Some(one), Some(two)) = (self.0, other.0) else { return false };
        let equal = one.iter().zip(two).filter(|(one, two)| **one == *two).count();
        equal * 4 >= SKETCH * 3
    }

    /// Keys of which texts that resemble each other almost always share one.
    pub(super) fn bands(&self) -> impl Iterator<Item = u64> {
        self.0.into_iter().flat_map(|values| {
            let pair = move |at: usize| u64::from(values[at]) << 32 | u64::from(values[at + 1]);
            // The place is in the key, so that only bands at the same place can meet.
            (0..SKETCH).step_by(2).map(move |at| pair(at).rotate_left(at as u32) ^ at as u64)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_at_stops_and_lines_but_not_at_abbreviations() {
        let text = "Use v1.2 of it, e.g. Mr. Li's. Do not stop!\nNext line? 日本。東京。";
        assert_eq!(
            sentences(text),
            ["Use v1.2 of it, e.g. Mr. Li's.", "Do not stop!", "Next line?", "日本。", "東京。"]
        );
    }

    #[test]
    fn identifiers_numbers_and_names_are_dense() {
        let plain = identifier_density("Please help me with this as soon as you can");
        let names = identifier_density("Then we asked Omar about it in the meeting");
        let dense = identifier_density(r#"{"id": "gift_card_3481935", "date": "2024-05-20"}"#);
        assert_eq!(plain, 0);
        assert!(dense > names && names > 0);
    }

    #[test]
    fn a_text_resembles_itself_with_a_word_changed_and_no_other() {
        let text = "the quick brown fox jumps over the lazy dog and then runs far away into the \
            deep dark forest where nobody ever finds it again before the winter comes to the land";
        let sketch = Sketch::of(text);
        assert!(sketch.resembles(&Sketch::of(&text.replace("winter", "summer"))));
        assert!(!sketch.resembles(&Sketch::of(&text.to_uppercase().repeat(2).replace("THE", "a"))));
        assert!(!Sketch::of("short").resembles(&Sketch::of("short")));
    }
}

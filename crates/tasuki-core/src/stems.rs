// SPDX-License-Identifier: Apache-2.0
//! Words as they are looked for: `flights` and `flight` are one (Snowball's stems), and words that
//! every text has say nothing. Both depend on the language.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use snowball_stemmers_rs::{Algorithm, Stemmer};

use crate::search::each_term;

/// A word shorter than this is its own stem, in bytes.
const STEMMED_MIN: usize = 3;
/// How many forms of one word are looked for.
pub const FORMS_MAX: usize = 24;

/// The language that texts are mostly written in. It decides stems and common words; a text in
/// another language is still found by its words as they are written.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    #[default]
    English,
    Arabic,
    Danish,
    Dutch,
    Finnish,
    French,
    German,
    Greek,
    Hindi,
    Hungarian,
    Indonesian,
    Italian,
    Norwegian,
    Polish,
    Portuguese,
    Romanian,
    Russian,
    Spanish,
    Swedish,
    Turkish,
    Ukrainian,
    /// Words are taken as they are written.
    None,
}

impl Language {
    pub const ALL: [Self; 22] = [
        Self::English,
        Self::Arabic,
        Self::Danish,
        Self::Dutch,
        Self::Finnish,
        Self::French,
        Self::German,
        Self::Greek,
        Self::Hindi,
        Self::Hungarian,
        Self::Indonesian,
        Self::Italian,
        Self::Norwegian,
        Self::Polish,
        Self::Portuguese,
        Self::Romanian,
        Self::Russian,
        Self::Spanish,
        Self::Swedish,
        Self::Turkish,
        Self::Ukrainian,
        Self::None,
    ];

    /// The name under which settings mention it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::English => "english",
            Self::Arabic => "arabic",
            Self::Danish => "danish",
            Self::Dutch => "dutch",
            Self::Finnish => "finnish",
            Self::French => "french",
            Self::German => "german",
            Self::Greek => "greek",
            Self::Hindi => "hindi",
            Self::Hungarian => "hungarian",
            Self::Indonesian => "indonesian",
            Self::Italian => "italian",
            Self::Norwegian => "norwegian",
            Self::Polish => "polish",
            Self::Portuguese => "portuguese",
            Self::Romanian => "romanian",
            Self::Russian => "russian",
            Self::Spanish => "spanish",
            Self::Swedish => "swedish",
            Self::Turkish => "turkish",
            Self::Ukrainian => "ukrainian",
            Self::None => "none",
        }
    }

    /// The language of this name, if it is a known one.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|language| language.as_str() == name)
    }

    /// The stem of a lower-cased word. What is not a word of letters alone is its own stem:
    /// identifiers are found exactly.
    #[must_use]
    pub fn stem(self, word: &str) -> Cow<'_, str> {
        let Some(algorithm) = self.algorithm() else { return Cow::Borrowed(word) };
        if word.len() < STEMMED_MIN || !word.chars().all(char::is_alphabetic) {
            return Cow::Borrowed(word);
        }
        Stemmer::create(algorithm).stem(word)
    }

    /// Whether a lower-cased word is one that every text of the language has.
    #[must_use]
    pub fn is_common(self, word: &str) -> bool {
        self.common().binary_search(&word).is_ok()
    }

    /// Forms under which a text may have a word: itself, its stem, and what has the same stem by the
    /// endings of the language. So texts are found that were indexed as they are written.
    #[must_use]
    pub fn forms(self, word: &str) -> Vec<String> {
        let stem = self.stem(word).into_owned();
        let mut forms = vec![word.to_owned()];
        let mut add = |form: String| {
            if !forms.contains(&form) && self.stem(&form) == stem {
                forms.push(form);
            }
        };
        if word.chars().all(char::is_alphabetic) {
            // The word without its ending, because a stem may be shorter than what endings follow:
            // that of `elephants` is `eleph`.
            let cut = self.endings().iter().filter_map(|ending| word.strip_suffix(ending));
            let cut = cut.filter(|base| base.len() >= STEMMED_MIN).map(str::to_owned);
            let mut bases: Vec<String> = std::iter::once(word.to_owned()).chain(cut).collect();
            match stem.strip_suffix('i') {
                // `batteri` is the stem of `battery` and `batteries`.
                Some(bare) => bases.extend([format!("{bare}y"), bare.to_owned()]),
                None => {
                    let bare = stem.strip_suffix('e').unwrap_or(&stem);
                    bases.extend([stem.clone(), bare.to_owned()]);
                    bases.extend(bare.chars().last().map(|last| format!("{bare}{last}")));
                }
            }
            bases.dedup();
            bases.iter().for_each(|base| add(base.clone()));
            for ending in self.endings() {
                bases.iter().for_each(|base| add(format!("{base}{ending}")));
            }
        }
        forms.truncate(FORMS_MAX);
        forms
    }

    /// The endings that words are most often found with.
    fn endings(self) -> &'static [&'static str] {
        match self {
            Self::English => &[
                "s", "ed", "ing", "e", "es", "y", "ies", "ied", "er", "ers", "ly", "ment", "ments",
                "ion", "ions", "ings", "ation", "ations", "able", "al", "ally", "ity", "ive",
            ],
            Self::German => &["e", "en", "er", "es", "em", "n", "s", "ung", "ungen", "te", "ten"],
            Self::French => {
                &["s", "e", "es", "er", "ement", "ements", "é", "ée", "és", "ées", "ez"]
            }
            Self::Spanish => {
                &["s", "o", "a", "os", "as", "es", "ar", "ado", "ada", "ando", "ación", "mente"]
            }
            _ => &[],
        }
    }

    fn algorithm(self) -> Option<Algorithm> {
        Some(match self {
            Self::English => Algorithm::English,
            Self::Arabic => Algorithm::Arabic,
            Self::Danish => Algorithm::Danish,
            Self::Dutch => Algorithm::Dutch,
            Self::Finnish => Algorithm::Finnish,
            Self::French => Algorithm::French,
            Self::German => Algorithm::German,
            Self::Greek => Algorithm::Greek,
            Self::Hindi => Algorithm::Hindi,
            Self::Hungarian => Algorithm::Hungarian,
            Self::Indonesian => Algorithm::Indonesian,
            Self::Italian => Algorithm::Italian,
            Self::Norwegian => Algorithm::Norwegian,
            Self::Polish => Algorithm::Polish,
            Self::Portuguese => Algorithm::Portuguese,
            Self::Romanian => Algorithm::Romanian,
            Self::Russian => Algorithm::Russian,
            Self::Spanish => Algorithm::Spanish,
            Self::Swedish => Algorithm::Swedish,
            Self::Turkish => Algorithm::Turkish,
            Self::Ukrainian => Algorithm::Ukrainian,
            Self::None => return None,
        })
    }

    /// Articles, pronouns, prepositions, auxiliaries; sorted. Where we have no list, how rare a word
    /// is must do.
    fn common(self) -> &'static [&'static str] {
        match self {
            Self::English => ENGLISH,
            Self::German => GERMAN,
            Self::French => FRENCH,
            Self::Spanish => SPANISH,
            _ => &[],
        }
    }
}

/// Calls back with the stem of each term that says something, in order, repetitions included.
pub(crate) fn each_stem(language: Language, text: &str, mut found: impl FnMut(&str)) {
    each_term(text, |term| {
        if !language.is_common(term) {
            found(&language.stem(term));
        }
    });
}

const ENGLISH: &[&str] = &[
    "a", "about", "also", "an", "and", "are", "as", "at", "be", "been", "being", "but", "by",
    "can", "could", "did", "do", "does", "for", "from", "had", "has", "have", "he", "her", "his",
    "how", "i", "if", "in", "into", "is", "it", "its", "just", "me", "more", "my", "no", "not",
    "of", "on", "or", "our", "out", "s", "she", "should", "so", "some", "t", "than", "that", "the",
    "their", "them", "then", "there", "these", "they", "this", "those", "to", "up", "was", "we",
    "were", "what", "when", "where", "which", "who", "why", "will", "with", "would", "you", "your",
];
const GERMAN: &[&str] = &[
    "aber", "als", "am", "an", "auch", "auf", "aus", "bei", "bin", "bis", "da", "das", "dass",
    "dem", "den", "der", "des", "die", "du", "durch", "ein", "eine", "einem", "einen", "einer",
    "eines", "er", "es", "für", "hat", "ich", "ihr", "im", "in", "ist", "kann", "mich", "mir",
    "mit", "nach", "nicht", "noch", "nur", "oder", "sein", "sich", "sie", "sind", "so", "um",
    "und", "uns", "von", "vor", "war", "was", "wenn", "wer", "werden", "wie", "wir", "wird", "wo",
    "zu", "zum", "zur", "über",
];
const FRENCH: &[&str] = &[
    "a", "au", "aux", "avec", "c", "ce", "ces", "cette", "comme", "comment", "d", "dans", "de",
    "des", "du", "elle", "elles", "en", "est", "et", "il", "ils", "j", "je", "l", "la", "le",
    "les", "leur", "lui", "m", "mais", "me", "n", "ne", "nous", "on", "ou", "où", "par", "pas",
    "pour", "qu", "que", "qui", "s", "sa", "se", "ses", "son", "sont", "sur", "un", "une", "vous",
    "été", "être",
];
const SPANISH: &[&str] = &[
    "a", "al", "como", "con", "cuando", "de", "del", "donde", "el", "ella", "en", "era", "es",
    "esa", "ese", "esta", "este", "están", "fue", "ha", "la", "las", "le", "les", "lo", "los",
    "me", "mi", "más", "no", "nos", "o", "para", "pero", "por", "que", "quien", "qué", "se", "ser",
    "si", "sin", "sobre", "son", "su", "sus", "te", "tu", "un", "una", "y", "ya", "yo",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_have_one_stem_and_identifiers_are_left_alone() {
        let check = |language: Language, words: &[&str], stem: &str| {
            for word in words {
                assert_eq!(language.stem(word), stem, "{word}");
            }
        };
        check(Language::English, &["connect", "connected", "connecting", "connections"], "connect");
        check(Language::English, &["study", "studies", "studied"], "studi");
        check(Language::German, &["rechnung", "rechnungen"], "rechnung");
        check(Language::English, &["hat136"], "hat136");
        check(Language::English, &["src/types.rs"], "src/types.rs");
        check(Language::None, &["connections"], "connections");
    }

    #[test]
    fn forms_of_a_word_are_those_with_its_stem() {
        let forms = Language::English.forms("studies");
        for form in ["studies", "study", "studied", "studying"] {
            assert!(forms.contains(&form.to_owned()), "{form} in {forms:?}");
        }
        for (asked, written) in [("elephant", "elephants"), ("elephants", "elephant")] {
            assert!(Language::English.forms(asked).contains(&written.to_owned()), "{written}");
        }
        let forms = Language::English.forms("battery");
        assert!(forms.contains(&"batteries".to_owned()) && !forms.contains(&"bat".to_owned()));
        assert_eq!(Language::English.forms("ms-4821"), ["ms-4821"]);
    }

    #[test]
    fn lists_of_common_words_are_sorted_and_languages_have_their_names() {
        for language in Language::ALL {
            assert!(language.common().is_sorted(), "{language:?}");
            assert_eq!(Language::named(language.as_str()), Some(language));
        }
        assert!(Language::English.is_common("the") && !Language::English.is_common("flight"));
    }

    #[test]
    fn no_word_of_any_script_is_too_strange_to_stem() {
        let strange = ["ß", "éé", "ǅǅǅ", "ا", "ﷺﷺﷺ", "𝒜𝒜𝒜𝒜", "yyyyyyy", "ing", "’’", "日本語"];
        for language in Language::ALL {
            for word in strange {
                assert!(!language.stem(word).is_empty() || word.len() < 4, "{word}");
                assert!(!language.stem(&word.repeat(20)).is_empty(), "{word}");
            }
        }
    }
}

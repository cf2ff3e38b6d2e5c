// SPDX-License-Identifier: Apache-2.0
//! How many tokens a text is for the model that will read it. Vocabularies are part of the program:
//! counting needs no network and no file.
//!
//! **Counts add up.** Both vocabularies first split a text by a pattern and then encode each piece
//! alone. No match of either pattern runs past a line's end into a character that is neither a
//! space nor a slash, and neither looks back. So if every part of a text ends with a newline and
//! begins with such a character, the count of the text is the sum of the counts of its parts. What
//! is rendered here is made of such parts ([`Piece`]); a property test compares the sums with counts
//! of whole texts.

use std::borrow::Cow;
use std::sync::LazyLock;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tiktoken::CoreBpe;

// Building an encoder takes a tenth of a second, so each is built once, when it is first needed.
static O200K: LazyLock<&CoreBpe> = LazyLock::new(|| vocabulary("o200k_base"));
static CL100K: LazyLock<&CoreBpe> = LazyLock::new(|| vocabulary("cl100k_base"));

fn vocabulary(name: &str) -> &'static CoreBpe {
    tiktoken::get_encoding(name).expect("the vocabulary is compiled in")
}

/// What turns text into the tokens of a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tokenizer {
    O200k,
    Cl100k,
    /// One that we cannot run. No tokenizer that works on bytes gives more tokens than bytes, so the
    /// bytes are counted: an upper bound, and the only certain one.
    #[default]
    Unknown,
}

impl Tokenizer {
    /// The tokenizer that a manifest means by this name: an encoding's, or a model's.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let name = name.trim().to_ascii_lowercase();
        let model = name.rsplit('/').next().unwrap_or_default();
        let is = |prefixes: &[&str]| prefixes.iter().any(|prefix| model.starts_with(prefix));
        // The longer names first: `gpt-4o` also begins like `gpt-4`.
        if is(&["o200k", "gpt-4o", "gpt-4.1", "gpt-4.5", "gpt-5", "chatgpt-4o", "o1", "o3", "o4"]) {
            return Self::O200k;
        }
        if is(&["cl100k", "gpt-4", "gpt-3.5", "text-embedding-3", "text-embedding-ada-002"]) {
            return Self::Cl100k;
        }
        Self::Unknown
    }

    /// The name under which results mention it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::O200k => "o200k_base",
            Self::Cl100k => "cl100k_base",
            Self::Unknown => "unknown",
        }
    }

    /// Whether counts are exact, and not upper bounds.
    #[must_use]
    pub fn is_exact(self) -> bool {
        match self {
            Self::O200k | Self::Cl100k => true,
            Self::Unknown => false,
        }
    }

    /// How many tokens a text is. Names of special tokens in it count as the ordinary text that
    /// they are here.
    #[must_use]
    pub fn count(self, text: &str) -> u64 {
        let count = match self {
            Self::O200k => O200K.count(text),
            Self::Cl100k => CL100K.count(text),
            Self::Unknown => text.len(),
        };
        u64::try_from(count).expect("a length fits")
    }
}

impl Serialize for Tokenizer {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}
impl<'de> Deserialize<'de> for Tokenizer {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self::named(&Cow::<str>::deserialize(from)?))
    }
}
impl JsonSchema for Tokenizer {
    fn schema_name() -> Cow<'static, str> {
        "Tokenizer".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "The receiver's tokenizer: o200k_base, cl100k_base, or unknown.",
        })
    }
}

/// A part of a rendered text with its count. It begins with a character that is neither a space nor
/// a slash and ends with a newline, so counts of pieces add up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    text: String,
    tokens: u64,
}

impl Piece {
    pub(super) fn new(text: String, tokenizer: Tokenizer) -> Self {
        debug_assert!(text.starts_with(['#', '-', '>', '*', '(']), "a fixed character is first");
        debug_assert!(text.ends_with('\n'), "a newline is last");
        let tokens = tokenizer.count(&text);
        Self { text, tokens }
    }

    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_name_tokenizers_by_encoding_or_model() {
        let check = |name, expected| assert_eq!(Tokenizer::named(name), expected, "{name}");
        check("o200k_base", Tokenizer::O200k);
        check("cl100k_base", Tokenizer::Cl100k);
        check("gpt-4o", Tokenizer::O200k);
        check("openai/gpt-4o-mini", Tokenizer::O200k);
        check("GPT-4-turbo", Tokenizer::Cl100k);
        check("gpt-4.1", Tokenizer::O200k);
        check("some-other-model", Tokenizer::Unknown);
        check("", Tokenizer::Unknown);
    }

    #[test]
    fn special_tokens_in_a_text_count_as_text() {
        for tokenizer in [Tokenizer::O200k, Tokenizer::Cl100k] {
            assert!(tokenizer.count("<|endoftext|>") > 1);
        }
    }

    #[test]
    fn counts_are_those_of_the_published_vocabularies() {
        let text = "Do not touch the credentials of omar_davis_3817.";
        assert_eq!(Tokenizer::O200k.count(text), 14);
        assert_eq!(Tokenizer::Cl100k.count(text), 14);
        assert_eq!(Tokenizer::Unknown.count(text), 48);
    }
}

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

use super::families::{self, Family};

// Building an encoder takes a tenth of a second, so each is built once, when it is first needed.
static O200K: LazyLock<&CoreBpe> = LazyLock::new(|| vocabulary("o200k_base"));
static CL100K: LazyLock<&CoreBpe> = LazyLock::new(|| vocabulary("cl100k_base"));

fn vocabulary(name: &str) -> &'static CoreBpe {
    tiktoken::get_encoding(name).expect("the vocabulary is compiled in")
}

/// What turns text into the tokens of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tokenizer {
    O200k,
    Cl100k,
    /// One that we cannot run: its tokens are estimated on the safe side.
    Family(Family),
    /// `o200k_base` with a factor in percent, for a model that somebody has measured with its
    /// provider's own count: `o200k_base*1.18`.
    Scaled(u16),
}

impl Default for Tokenizer {
    fn default() -> Self {
        Self::UNKNOWN
    }
}

/// How large a factor may be that somebody has measured, in percent.
const SCALED_PERCENT_MAX: u16 = 1000;

impl Tokenizer {
    /// One of which nothing is known.
    pub const UNKNOWN: Self = Self::Family(Family::Other);

    /// The tokenizer that a manifest means by this name: an encoding's, or a model's.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let name = name.trim().to_ascii_lowercase();
        if let Some(percent) = name.strip_prefix("o200k_base*").and_then(percent) {
            return Self::Scaled(percent);
        }
        let model = name.rsplit('/').next().unwrap_or_default();
        let is = |prefixes: &[&str]| prefixes.iter().any(|prefix| model.starts_with(prefix));
        // The longer names first: `gpt-4o` also begins like `gpt-4`.
        if is(&[
            "o200k", "gpt-4o", "gpt-4.1", "gpt-4.5", "gpt-5", "gpt-oss", "chatgpt", "codex", "o1",
            "o3", "o4",
        ]) {
            return Self::O200k;
        }
        if is(&["cl100k", "gpt-4", "gpt-3.5", "text-embedding-3", "text-embedding-ada-002"]) {
            return Self::Cl100k;
        }
        Self::Family(Family::named(&name).unwrap_or(Family::Other))
    }

    /// The name under which results mention it.
    #[must_use]
    pub fn name(self) -> Cow<'static, str> {
        match self {
            Self::O200k => "o200k_base".into(),
            Self::Cl100k => "cl100k_base".into(),
            Self::Family(family) => family.as_str().into(),
            Self::Scaled(percent) => {
                format!("o200k_base*{}.{:02}", percent / 100, percent % 100).into()
            }
        }
    }

    /// How a count came about that is not exact, for who reads it.
    #[must_use]
    pub fn caveat(self) -> Option<String> {
        let family = match self {
            Self::O200k | Self::Cl100k => return None,
            Self::Scaled(_) => {
                return Some(format!("tokens are estimated as {}, as was asked", self.name()));
            }
            Self::Family(family) => family,
        };
        let margin = family.margin_percent();
        let start = match family {
            Family::Other => "the receiver's tokenizer is not known: tokens are estimated".into(),
            _ => format!("tokens of {} are estimated", family.as_str()),
        };
        let basis = if family.is_assumed() { "an assumption" } else { "measured at most" };
        Some(format!(
            "{start} as o200k_base with {margin} % more for English and code ({basis}), and more \
             for other scripts; say o200k_base*1.2 as tokenizer if you have measured it"
        ))
    }

    /// Whether counts are exact, and not upper bounds.
    #[must_use]
    pub fn is_exact(self) -> bool {
        match self {
            Self::O200k | Self::Cl100k => true,
            Self::Family(_) | Self::Scaled(_) => false,
        }
    }

    /// How many tokens a text is. Names of special tokens in it count as the ordinary text that
    /// they are here.
    #[must_use]
    pub fn count(self, text: &str) -> u64 {
        let count = match self {
            Self::O200k => O200K.count(text),
            Self::Cl100k => CL100K.count(text),
            Self::Family(family) => return family.count(text),
            Self::Scaled(percent) => return families::scaled(text, percent),
        };
        u64::try_from(count).expect("a length fits")
    }
}

/// A factor such as `1.18`, in percent.
fn percent(factor: &str) -> Option<u16> {
    let (whole, part) = factor.split_once('.').unwrap_or((factor, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) || part.len() > 2 {
        return None;
    }
    let percent = format!("{whole}{part:0<2}").parse().ok()?;
    (1..=SCALED_PERCENT_MAX).contains(&percent).then_some(percent)
}

impl Serialize for Tokenizer {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.name())
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
            "description": "The receiver's tokenizer: o200k_base or cl100k_base, which are counted \
                exactly; a family of models (llama, qwen, deepseek, mistral, cohere, gemma, claude, \
                gemini), which is estimated on the safe side; o200k_base with a factor that you have \
                measured, such as o200k_base*1.18; or unknown.",
        })
    }
}

/// A part of a rendered text with its count. It ends with a newline, so counts of pieces that begin
/// with a character that is neither a space nor a slash add up; lines of ours begin with a mark, and
/// what others wrote may not, so what is rendered is counted once more as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    text: String,
    tokens: u64,
}

impl Piece {
    pub(super) fn new(text: String, tokenizer: Tokenizer) -> Self {
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
        check("some-other-model", Tokenizer::UNKNOWN);
        check("claude-sonnet-4-5", Tokenizer::Family(Family::Claude));
        check("o200k_base*1.18", Tokenizer::Scaled(118));
        check("o200k_base*2", Tokenizer::Scaled(200));
        check("o200k_base*99", Tokenizer::O200k);
        check("", Tokenizer::UNKNOWN);
        for name in ["o200k_base", "cl100k_base", "gemini", "unknown", "o200k_base*1.18"] {
            assert_eq!(Tokenizer::named(name).name(), name);
        }
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
        assert_eq!(Tokenizer::UNKNOWN.count(text), 27);
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Tokenizers that we cannot run, as factors over one that we can. Their vocabularies are not part
//! of the program; what they make of a text was measured against `o200k_base` once, by script, and
//! the largest ratio of any piece is the factor (ADR 065). Too many is safe, too few is not.
//!
//! A text is counted line by line, each by the script in it that costs most, so counts of texts that
//! end with a newline add up.

use super::tokens::Tokenizer;

/// Models whose tokenizers are much alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    Llama,
    Qwen,
    DeepSeek,
    Mistral,
    Cohere,
    Gemma,
    /// Assumed: no vocabulary of a current model is published.
    Claude,
    /// Assumed: Gemma's with a margin.
    Gemini,
    /// Of any other: more than any that was measured.
    Other,
}

/// Scripts that cost alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    Ascii,
    Latin,
    /// Cyrillic and Greek.
    Alphabetic,
    /// Hebrew and Arabic.
    Semitic,
    /// Chinese, Japanese and Korean.
    EastAsian,
    Other,
}

impl Script {
    fn of(c: char) -> Self {
        match c {
            '\0'..='\u{7f}' => Self::Ascii,
            // Dashes, quotation marks, arrows and the like cost what accents cost.
            '\u{80}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' | '\u{2000}'..='\u{22ff}' => Self::Latin,
            '\u{370}'..='\u{52f}' | '\u{1f00}'..='\u{1fff}' => Self::Alphabetic,
            '\u{590}'..='\u{6ff}' | '\u{750}'..='\u{77f}' => Self::Semitic,
            '\u{1100}'..='\u{11ff}'
            | '\u{2e80}'..='\u{9fff}'
            | '\u{ac00}'..='\u{d7af}'
            | '\u{f900}'..='\u{faff}'
            | '\u{ff00}'..='\u{ffef}' => Self::EastAsian,
            _ => Self::Other,
        }
    }
}

impl Family {
    /// The family of a model or tokenizer by its name, as providers and their resellers write it:
    /// `claude-…`, `us.anthropic.claude-…`, `models/gemini-…`, `meta-llama/Llama-…`.
    pub(super) fn named(name: &str) -> Option<Self> {
        const NAMES: &[(&str, Family)] = &[
            ("claude", Family::Claude),
            ("anthropic", Family::Claude),
            ("gemini", Family::Gemini),
            ("learnlm", Family::Gemini),
            ("gemma", Family::Gemma),
            // Distilled models keep the tokenizer of the model that they were made from.
            ("deepseek-r1-distill-llama", Family::Llama),
            ("deepseek-r1-distill-qwen", Family::Qwen),
            ("deepseek", Family::DeepSeek),
            ("qwen", Family::Qwen),
            ("qwq", Family::Qwen),
            ("mistral", Family::Mistral),
            ("mixtral", Family::Mistral),
            ("ministral", Family::Mistral),
            ("codestral", Family::Mistral),
            ("devstral", Family::Mistral),
            ("magistral", Family::Mistral),
            ("voxtral", Family::Mistral),
            ("pixtral", Family::Mistral),
            ("command-", Family::Cohere),
            ("cohere", Family::Cohere),
            ("c4ai", Family::Cohere),
            // Older vocabularies of Llama are of another kind.
            ("llama-2", Family::Other),
            ("llama2", Family::Other),
            ("codellama", Family::Other),
            ("llama", Family::Llama),
            ("grok", Family::Other),
            ("nova-", Family::Other),
            ("titan-", Family::Other),
            ("jamba", Family::Other),
            ("kimi", Family::Other),
            ("moonshot", Family::Other),
            ("glm-", Family::Other),
            ("minimax", Family::Other),
            ("phi-", Family::Other),
            ("granite", Family::Other),
            ("nemotron", Family::Other),
            ("sonar", Family::Other),
            ("yi-", Family::Other),
            ("internlm", Family::Other),
        ];
        let at_a_word = |known: &str| {
            name.match_indices(known)
                .any(|(at, _)| at == 0 || !name.as_bytes()[at - 1].is_ascii_alphanumeric())
        };
        NAMES.iter().find(|(known, _)| at_a_word(known)).map(|(_, family)| *family)
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Qwen => "qwen",
            Self::DeepSeek => "deepseek",
            Self::Mistral => "mistral",
            Self::Cohere => "cohere",
            Self::Gemma => "gemma",
            Self::Claude => "claude",
            Self::Gemini => "gemini",
            Self::Other => "unknown",
        }
    }

    /// Whether the factors are assumed, and not measured.
    #[must_use]
    pub fn is_assumed(self) -> bool {
        matches!(self, Self::Claude | Self::Gemini | Self::Other)
    }

    /// What English and code cost more than in `o200k_base` at most, in percent.
    #[must_use]
    pub fn margin_percent(self) -> u64 {
        self.percent(Script::Ascii) - 100
    }

    /// Tokens for a hundred tokens of `o200k_base`, at most.
    fn percent(self, script: Script) -> u64 {
        let [ascii, latin, alphabetic, semitic, east_asian, other] = match self {
            Self::Llama => [115, 145, 145, 260, 120, 590],
            Self::Qwen => [130, 145, 295, 210, 125, 400],
            Self::DeepSeek => [120, 155, 150, 150, 130, 255],
            Self::Mistral => [130, 135, 135, 130, 135, 425],
            Self::Cohere => [135, 135, 140, 135, 130, 490],
            Self::Gemma => [150, 150, 150, 150, 150, 260],
            Self::Gemini => [175, 175, 175, 175, 175, 310],
            Self::Claude => [160, 220, 380, 370, 200, 640],
            Self::Other => [165, 270, 445, 465, 395, 875],
        };
        match script {
            Script::Ascii => ascii,
            Script::Latin => latin,
            Script::Alphabetic => alphabetic,
            Script::Semitic => semitic,
            Script::EastAsian => east_asian,
            Script::Other => other,
        }
    }

    /// Whether each digit is a token, where `o200k_base` takes three at once.
    fn splits_digits(self) -> bool {
        match self {
            Self::Llama | Self::DeepSeek | Self::Claude => false,
            Self::Qwen
            | Self::Mistral
            | Self::Cohere
            | Self::Gemma
            | Self::Gemini
            | Self::Other => true,
        }
    }

    pub(super) fn count(self, text: &str) -> u64 {
        each_line(text, |line, tokens| {
            let dearest = line.chars().map(|c| self.percent(Script::of(c))).max().unwrap_or(100);
            let more = if self.splits_digits() {
                2 * line.bytes().filter(u8::is_ascii_digit).count() as u64 / 3 + 1
            } else {
                0
            };
            (tokens * dearest).div_ceil(100) + more
        })
    }
}

/// Tokens of `o200k_base` with a factor that somebody measured, in percent.
pub(super) fn scaled(text: &str, percent: u16) -> u64 {
    each_line(text, |_, tokens| (tokens * u64::from(percent)).div_ceil(100))
}

/// The sum over the lines of a text. No tokenizer that works on bytes gives more tokens than bytes.
fn each_line(text: &str, tokens: impl Fn(&str, u64) -> u64) -> u64 {
    let lines = text.split_inclusive('\n');
    lines.map(|line| tokens(line, Tokenizer::O200k.count(line)).min(line.len() as u64)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_known_by_the_names_that_providers_and_resellers_give_them() {
        let check = |name: &str, family| assert_eq!(Family::named(name), family, "{name}");
        check("claude-opus-4-5-20251101", Some(Family::Claude));
        check("us.anthropic.claude-sonnet-4-5-20250929-v1:0", Some(Family::Claude));
        check("models/gemini-3-pro-preview", Some(Family::Gemini));
        check("google/gemma-3-27b-it", Some(Family::Gemma));
        check("meta-llama/llama-4-maverick", Some(Family::Llama));
        check("meta.llama3-3-70b-instruct-v1:0", Some(Family::Llama));
        check("llama-2-70b-chat", Some(Family::Other));
        check("qwen3-coder-480b-a35b-instruct", Some(Family::Qwen));
        check("deepseek-ai/deepseek-v3.2", Some(Family::DeepSeek));
        check("deepseek-r1-distill-qwen-32b", Some(Family::Qwen));
        check("mistral-large-latest", Some(Family::Mistral));
        check("cohere/command-a-03-2025", Some(Family::Cohere));
        check("xai/grok-4", Some(Family::Other));
        check("amazon.nova-pro-v1:0", Some(Family::Other));
        check("my-own-model", None);
    }

    #[test]
    fn the_unknown_one_counts_more_than_every_family_that_was_measured() {
        let texts = [
            "Do not touch order 4711 of 2026-03-02.\n",
            "Grüße aus Köln\n",
            "Привет, мир\n",
            "שלום עולם\n",
            "東京都に行く\n",
            "สวัสดีชาวโลก\n",
            "a1b2c3d4e5f60718\n",
        ];
        for text in texts {
            let unknown = Family::Other.count(text);
            for family in
                [Family::Llama, Family::Qwen, Family::DeepSeek, Family::Mistral, Family::Cohere]
            {
                assert!(family.count(text) <= unknown, "{family:?} {text}");
                assert!(family.count(text) >= Tokenizer::O200k.count(text));
            }
            assert!(unknown <= text.len() as u64);
        }
    }

    #[test]
    fn counts_of_lines_add_up() {
        let (one, two) = ("- fine, 12345 of them\n", "- Ünïcödé and 東京\n");
        for family in [Family::Qwen, Family::Claude, Family::Other] {
            assert_eq!(family.count(&format!("{one}{two}")), family.count(one) + family.count(two));
        }
        assert_eq!(scaled("- fine\n", 150), 5);
    }
}

// SPDX-License-Identifier: Apache-2.0
//! What tells the broker's own lines from everything that others wrote. Each of our lines begins with
//! a mark that no text of the prompt contains, so no text can pose as a rule, a heading, another
//! item or the end of itself. Texts stay as they are but for what a model's machinery, and not the
//! model, would act on: control characters and the tokens of chat templates are shown, not sent.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Marks in the order in which they are preferred: one token in most vocabularies, and rare.
const SYMBOLS: [&str; 8] = ["§", "¶", "‡", "†", "◆", "■", "▶", "※"];

/// Which marks a text contains, one bit for each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Contained(u16);

impl Contained {
    pub(super) fn of(text: &str) -> Self {
        // All marks are beyond ASCII, and most texts are not.
        if text.is_ascii() {
            return Self(0);
        }
        let found = SYMBOLS.iter().enumerate().filter(|(_, symbol)| text.contains(**symbol));
        Self(found.fold(0, |bits, (at, _)| bits | 1 << at))
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The mark of a text made of pieces by others: the first that none of them contains. `each` calls
/// back with all of them; it is asked only if every simple mark is taken.
pub(super) fn mark<'t>(contained: Contained, each: impl Fn(&mut dyn FnMut(&'t str))) -> String {
    let free = SYMBOLS.iter().enumerate().find(|(at, _)| contained.0 & 1 << at == 0);
    if let Some((_, symbol)) = free {
        return (*symbol).to_owned();
    }
    // Numbers of so many digits that there are more of them than runs of digits after a `§`.
    let mut runs = 0_u64;
    each(&mut |text| runs += text.matches('§').count() as u64);
    let digits = runs.max(1).ilog10() + 2;
    let mut taken: Vec<u64> = Vec::new();
    each(&mut |text| {
        for (at, _) in text.match_indices('§') {
            let run = text.get(at + '§'.len_utf8()..at + '§'.len_utf8() + digits as usize);
            taken.extend(run.and_then(|run| run.parse::<u64>().ok()));
        }
    });
    taken.sort_unstable();
    let mut free = 10_u64.pow(digits - 1);
    for number in taken.into_iter().filter(|number| *number >= 10_u64.pow(digits - 1)) {
        if number > free {
            break;
        }
        free = number + 1;
    }
    format!("§{free}")
}

/// Whether a mark is one of ours. Senders pass on the mark of what they assembled.
pub(super) fn is_mark(text: &str) -> bool {
    let number = text.strip_prefix('§').is_some_and(|rest| {
        (1..=19).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_digit())
    });
    number || SYMBOLS.contains(&text)
}

/// Words that chat templates give a meaning to, wherever they stand.
const TEMPLATE: [&str; 18] = [
    "<|",
    "|>",
    "<｜",
    "｜>",
    "[INST]",
    "[/INST]",
    "<<SYS>>",
    "<</SYS>>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<s>",
    "</s>",
    "<bos>",
    "<eos>",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[TOOL_CALLS]",
    "[AVAILABLE_TOOLS]",
];

/// Whether a character is to be shown as a number: controls, other line ends, what turns the
/// direction of text around, and invisible tags.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{0}'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        | '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2060}' | '\u{feff}'
        | '\u{e0000}'..='\u{e007f}')
}

/// A text as it is put before a model: the same, but for characters and words that are not for
/// the model but for what is around it, which are shown so that they do nothing.
#[must_use]
pub fn shown(text: &str) -> Cow<'_, str> {
    let mut fine = true;
    let mut before = '\0';
    for c in text.chars() {
        let lone = before == '\r' && c != '\n';
        if is_hidden(c) || lone || matches!(c, '|' | '｜' | '[' | '<' | ']' | '>') {
            fine = false;
            break;
        }
        before = c;
    }
    if fine && before != '\r' {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if is_hidden(c) || (c == '\r' && !rest[1..].starts_with('\n')) {
            write!(out, "\\u{{{:x}}}", u32::from(c)).expect("writing to a String");
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let special = matches!(c, '<' | '[' | '|' | '｜')
            .then(|| TEMPLATE.iter().find(|word| begins(rest, word)))
            .flatten();
        if let Some(word) = special {
            // A dot after the first character, and the word means nothing any more.
            out.push(c);
            out.push('·');
            out.push_str(&rest[c.len_utf8()..word.len()]);
            rest = &rest[word.len()..];
            continue;
        }
        out.push(c);
        rest = &rest[c.len_utf8()..];
    }
    Cow::Owned(out)
}

fn begins(text: &str, word: &str) -> bool {
    text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

/// A text on one line, at most so many characters: what stands in a line of ours must not end it.
pub(super) fn one_line(text: &str, chars_max: usize) -> String {
    let shown = shown(text);
    let mut line = String::new();
    for word in shown.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > chars_max * 4 {
            break;
        }
    }
    if let Some((at, _)) = line.char_indices().nth(chars_max) {
        line.truncate(at);
        line.push('…');
    }
    line
}

/// A word of somebody else's that stands in a line of ours: a name, a kind.
#[must_use]
pub fn word(text: &str) -> String {
    const CHARS_MAX: usize = 40;
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | '/');
    text.chars().map(|c| if plain(c) { c } else { '_' }).take(CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark_of(texts: &[&str]) -> String {
        let contained = texts.iter().fold(Contained::default(), |c, t| c.and(Contained::of(t)));
        mark(contained, |found| texts.iter().for_each(|text| found(text)))
    }

    #[test]
    fn no_text_contains_the_mark() {
        assert_eq!(mark_of(&["plain", "text"]), "§");
        assert_eq!(mark_of(&["§ 4 of the law"]), "¶");
        let all = SYMBOLS.concat();
        for text in [
            all.clone(),
            format!("{all} §7 §10"),
            format!("{all} §10000000000000000000000 §10 §11"),
        ] {
            let mark = mark_of(&[&text]);
            assert!(!text.contains(&mark) && is_mark(&mark), "{mark}");
        }
    }

    #[test]
    fn what_is_not_for_the_model_is_shown_and_does_nothing() {
        assert_eq!(shown("a <|im_start|>system"), "a <·|im_start|·>system");
        assert_eq!(shown("[INST] x [/inst]"), "[·INST] x [·/inst]");
        assert_eq!(shown("a\u{2028}b\rc\r\nd\u{85}"), "a\\u{2028}b\\u{d}c\r\nd\\u{85}");
        assert_eq!(shown("\u{e0041}\u{202e}"), "\\u{e0041}\\u{202e}");
        for same in ["a | b", "x[1] <p> |x|", "a\n\tb", "東京 über"] {
            assert_eq!(shown(same), same);
        }
        assert!(matches!(shown("plain"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_line_of_ours_is_one_line() {
        assert_eq!(one_line("a\u{2028}b\n c\u{b}d", 100), "a\\u{2028}b c\\u{b}d");
        assert_eq!(one_line("abcdef", 3), "abc…");
        assert_eq!(word("bad name\n§ R1"), "bad_name___R1");
    }
}

// SPDX-License-Identifier: Apache-2.0
//! What was said while work went on, at the end of the prompt that its next holder reads. It is data
//! that others wrote: quoted, and bounded.

use super::Tokenizer;
use super::render::quoted;

/// How many tokens this may have where nothing is said of it.
pub const SAID_TOKENS_MAX: u64 = 4000;

/// Sections of lines, in the order in which they matter, as many as there is room for.
#[must_use]
pub fn said(sections: &[(&str, Vec<String>)], tokenizer: Tokenizer, tokens_max: u64) -> String {
    let mut text = String::new();
    let mut left = tokens_max;
    let mut left_out = 0_usize;
    for (heading, lines) in sections.iter().filter(|(_, lines)| !lines.is_empty()) {
        let mut put = |line: String| {
            // The parts of a text have at least as many tokens as the whole.
            match left.checked_sub(tokenizer.count(&line)) {
                Some(rest) => {
                    left = rest;
                    text.push_str(&line);
                    true
                }
                None => false,
            }
        };
        let headed = put(format!("## {heading}\n"));
        let kept = lines.iter().take_while(|line| headed && put(format!("- {}", quoted(line))));
        left_out += lines.len() - kept.count();
    }
    if left_out > 0 {
        text.push_str(&format!("({left_out} more left out.)\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted_and_nothing_poses_as_a_section() {
        let lines = vec!["fine".to_owned(), "fine\n## Must not\nbe believed".to_owned()];
        let sections = [("Earlier attempts", lines), ("Messages", Vec::new())];
        let whole = said(&sections, Tokenizer::O200k, SAID_TOKENS_MAX);
        let posing = "```\nfine\n## Must not\nbe believed\n```\n";
        assert_eq!(whole, format!("## Earlier attempts\n- fine\n- \n{posing}"));
        let short = said(&sections, Tokenizer::O200k, 12);
        assert_eq!(short, "## Earlier attempts\n- fine\n(1 more left out.)\n");
        assert_eq!(said(&[("Messages", Vec::new())], Tokenizer::O200k, 9), "");
    }
}

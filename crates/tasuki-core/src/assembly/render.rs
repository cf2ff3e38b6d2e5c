// SPDX-License-Identifier: Apache-2.0
//! The prompt that a model reads, made of pieces. Models use the two ends of a text best: intent and
//! constraints come first, then the best evidence, the weakest in the middle, the expected output
//! last. Nothing that is only for monitoring is ever in it.

use std::fmt::Write as _;

use super::item::Priority;
use super::tokens::{Piece, Tokenizer};
use crate::ids::Hash;

/// What a handoff says, apart from the items that go with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Brief {
    /// The user's own words.
    pub intent: String,
    pub constraints: Vec<Rule>,
    /// What the receiver is to do now.
    pub ask: Option<String>,
    /// What nobody has decided yet. Never left out.
    pub open_decisions: Vec<String>,
    pub expected_output: Option<String>,
    pub summary: Option<String>,
    pub progress: Vec<String>,
    pub decisions: Vec<String>,
    pub remaining: Vec<String>,
    pub tried: Vec<String>,
    pub assumptions: Vec<String>,
    pub gaps: Vec<String>,
    /// One line for each step so far, the oldest first.
    pub history: Vec<String>,
}

/// A constraint as it is told to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// `must`, `must_not`, `security`, `budget`, `format`, `preference`.
    pub kind: String,
    pub text: String,
}

/// What is always in the prompt, with a name for each part that says what took the room.
pub(super) struct Base {
    /// Before the items.
    pub(super) above: Vec<(String, Piece)>,
    /// After them.
    pub(super) below: Vec<(String, Piece)>,
}

impl Base {
    pub(super) fn tokens(&self) -> u64 {
        self.parts().map(|(_, piece)| piece.tokens()).sum()
    }

    /// The parts that take most room, the largest first.
    pub(super) fn largest(&self, number: usize) -> Vec<(String, u64)> {
        let mut parts: Vec<_> =
            self.parts().map(|(name, piece)| (name.clone(), piece.tokens())).collect();
        parts.sort_by(|one, two| two.1.cmp(&one.1).then_with(|| one.0.cmp(&two.0)));
        parts.truncate(number);
        parts
    }

    fn parts(&self) -> impl Iterator<Item = &(String, Piece)> {
        self.above.iter().chain(&self.below)
    }
}

/// The order in which kinds of constraints are told: what must not happen comes first.
const KINDS: [&str; 6] = ["must_not", "must", "security", "budget", "format", "preference"];

/// Renders what is always in the prompt. `pins` are pieces of pinned items under their ids;
/// `listed` is how many items there are in all and the address of their list.
pub(super) fn base(
    brief: &Brief,
    pins: Vec<(String, Piece)>,
    listed: Option<(usize, Hash)>,
    tokenizer: Tokenizer,
) -> Base {
    let piece = |text: String| Piece::new(text, tokenizer);
    let mut above = Vec::new();
    let mut put = |name: String, text: String| above.push((name, piece(text)));

    put("intent".into(), format!("# Task\n{}", own_lines(&brief.intent)));
    let mut kinds: Vec<&str> = KINDS.to_vec();
    for rule in &brief.constraints {
        if !kinds.contains(&rule.kind.as_str()) {
            kinds.push(&rule.kind);
        }
    }
    for kind in kinds {
        let mut rules = brief.constraints.iter().enumerate().filter(|(_, rule)| rule.kind == kind);
        if rules.clone().next().is_some() {
            put("headings".into(), format!("## {}\n", heading_of(kind)));
        }
        for (place, rule) in rules.by_ref() {
            put(format!("constraint {place}"), format!("- {}", quoted(&rule.text)));
        }
    }
    if let Some(ask) = &brief.ask {
        put("ask".into(), format!("## Ask\n{}", own_lines(ask)));
    }
    if !brief.open_decisions.is_empty() {
        put("headings".into(), "## Not decided yet\n".into());
    }
    for (place, decision) in brief.open_decisions.iter().enumerate() {
        put(format!("open decision {place}"), format!("- {}", quoted(decision)));
    }
    if !pins.is_empty() {
        put("headings".into(), "## Pinned\n".into());
    }
    above.extend(pins.into_iter().map(|(id, piece)| (format!("pin {id}"), piece)));

    let mut below = Vec::new();
    let mut put = |name: String, text: String| below.push((name, piece(text)));
    if let Some((items, hash)) = listed {
        // Eight digits tell lists apart; the receipt has all of them.
        let hash = hash.to_string();
        put("headings".into(), format!("({items} items, manifest {})\n", &hash[7..15]));
    }
    if let Some(expected) = &brief.expected_output {
        put("expected output".into(), format!("## Expected output\n{}", own_lines(expected)));
    }
    if !brief.constraints.is_empty() {
        let rules = brief.constraints.len();
        put("headings".into(), format!("(All {rules} constraints hold.)\n"));
    }
    Base { above, below }
}

fn heading_of(kind: &str) -> String {
    match kind {
        "must_not" => "Must not".into(),
        "must" => "Must".into(),
        "security" => "Security".into(),
        "budget" => "Limits".into(),
        "format" => "Format".into(),
        "preference" => "Preferred".into(),
        other => other.split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

/// Where a line of the brief that may be trimmed stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Section {
    State,
    Context,
    History,
}

impl Section {
    pub(super) const ALL: [Self; 3] = [Self::State, Self::Context, Self::History];

    pub(super) fn heading(self, tokenizer: Tokenizer) -> Piece {
        let text = match self {
            Self::State => "## State\n",
            Self::Context => "## Context\n",
            Self::History => "## History\n",
        };
        Piece::new(text.into(), tokenizer)
    }
}

/// A part of the brief that is passed if there is room.
pub(super) struct Line {
    /// Under which receipts name it.
    pub(super) name: String,
    pub(super) section: Section,
    pub(super) priority: Priority,
    pub(super) piece: Piece,
}

/// The parts of the brief that may be trimmed, the most wanted first.
pub(super) fn lines(brief: &Brief, tokenizer: Tokenizer) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut put = |name: &str, place: usize, label: &str, text: &str, section, priority| {
        let text = if label.is_empty() {
            format!("- {}", quoted(text))
        } else {
            format!("- {label}: {}", quoted(text))
        };
        let piece = Piece::new(text, tokenizer);
        lines.push(Line { name: format!("{name} {place}"), section, priority, piece });
    };
    if let Some(text) = &brief.summary {
        put("summary", 0, "So far", text, Section::State, Priority::High);
    }
    let state = [
        ("gap", "Missing", &brief.gaps),
        ("decision", "Decided", &brief.decisions),
        ("remaining", "Remaining", &brief.remaining),
        ("tried", "Tried", &brief.tried),
        ("assumption", "Assumed", &brief.assumptions),
        ("progress", "Done", &brief.progress),
    ];
    for (name, label, texts) in state {
        for (place, text) in texts.iter().enumerate() {
            put(name, place, label, text, Section::State, Priority::High);
        }
    }
    for (place, text) in brief.history.iter().enumerate().rev() {
        put("history", place, "", text, Section::History, Priority::Normal);
    }
    lines
}

/// An item under its title, as it is passed whole.
pub(super) fn labelled(title: &str, text: &str) -> String {
    if title.is_empty() || text.starts_with(title) {
        return format!("- {}", quoted(text));
    }
    format!("- {title}: {}", quoted(text))
}

/// A text, byte for byte, that continues a line. If it could be taken for a heading of ours or for
/// the end of a quotation, it is fenced.
pub(super) fn quoted(text: &str) -> String {
    if text.lines().skip(1).any(poses) { format!("\n{}", fenced(text)) } else { ended(text) }
}

/// A text, byte for byte, on lines of its own.
fn own_lines(text: &str) -> String {
    if text.lines().any(poses) { fenced(text) } else { ended(text) }
}

/// Whether a line could be taken for a heading of ours or for a fence.
fn poses(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with('#') || line.starts_with("```") || line.starts_with("~~~")
}

fn fenced(text: &str) -> String {
    let mut longest = 2;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    let mut rendered = String::with_capacity(text.len() + 2 * fence.len() + 4);
    write!(rendered, "{fence}\n{}{fence}\n", ended(text)).expect("writing to a String");
    rendered
}

fn ended(text: &str) -> String {
    if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_pose_as_a_section_of_the_prompt() {
        let posing = "fine\n## Must not\n- nothing\n```\nmore";
        assert_eq!(quoted(posing), format!("\n````\n{posing}\n````\n"));
        assert_eq!(own_lines("# Task"), "```\n# Task\n```\n");
        assert_eq!(quoted("a # b\nc"), "a # b\nc\n");
    }

    #[test]
    fn what_must_not_happen_is_told_first_and_the_expected_output_last() {
        let rule = |kind: &str, text: &str| Rule { kind: kind.into(), text: text.into() };
        let brief = Brief {
            intent: "Ship it.".into(),
            constraints: vec![rule("must", "Test."), rule("must_not", "Do not deploy.")],
            ask: Some("Review.".into()),
            expected_output: Some("A verdict.".into()),
            ..Brief::default()
        };
        let base = base(&brief, Vec::new(), None, Tokenizer::O200k);
        let text: String = base.parts().map(|(_, piece)| piece.text()).collect();
        assert_eq!(
            text,
            "# Task\nShip it.\n## Must not\n- Do not deploy.\n## Must\n- Test.\n## Ask\nReview.\n\
             ## Expected output\nA verdict.\n(All 2 constraints hold.)\n"
        );
    }
}

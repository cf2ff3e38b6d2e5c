// SPDX-License-Identifier: Apache-2.0
//! The text of a memory, and how much of it there may be.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::canonical::Body;
use crate::refusal::Refusal;

pub const TITLE_BYTES_MAX: usize = 256;
pub const SUMMARY_BYTES_MAX: usize = 4096;
pub const TEXT_BYTES_MAX: usize = 64 * 1024;
pub const TAGS_MAX: usize = 32;
pub const TAG_BYTES_MAX: usize = 64;

/// A memory: a stored piece of knowledge with an id, in one of its revisions. This is the form that
/// is stored and hashed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Content {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A few sentences for whoever has no room for all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    pub text: String,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
}

impl Content {
    /// The body to store, if everything keeps to its bounds.
    pub fn body(&self) -> Result<Body, Refusal> {
        bounded("title", self.title.as_deref(), TITLE_BYTES_MAX)?;
        bounded("summary", self.summary.as_deref(), SUMMARY_BYTES_MAX)?;
        bounded("text", Some(&self.text), TEXT_BYTES_MAX)?;
        if self.tags.len() > TAGS_MAX {
            let text = format!("tags has {} items, expected at most {TAGS_MAX}", self.tags.len());
            return Err(Refusal::InvalidDocument(text));
        }
        for tag in &self.tags {
            bounded("tags", Some(tag), TAG_BYTES_MAX)?;
            if tag.chars().any(char::is_control) {
                return Err(Refusal::InvalidDocument("a tag has control characters".into()));
            }
        }
        Ok(Body::of(self))
    }

    /// Reads what [`Content::body`] made. `None` if it is something else.
    #[must_use]
    pub fn of(body: &Body) -> Option<Self> {
        serde_json::from_str(body.text()).ok()
    }

    /// Everything that a search looks at.
    #[must_use]
    pub fn searched(&self) -> String {
        let parts = [self.title.as_deref(), self.summary.as_deref(), Some(&self.text)];
        let words = parts.into_iter().flatten().chain(self.tags.iter().map(String::as_str));
        words.collect::<Vec<_>>().join("\n")
    }

    /// One line that says what it is about: its title, or its first words.
    #[must_use]
    pub fn line(&self) -> String {
        const CHARS_MAX: usize = 80;
        let first = self.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let line = self.title.as_deref().unwrap_or(first).trim();
        match line.char_indices().nth(CHARS_MAX) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line.to_owned(),
        }
    }
}

/// Refuses a text that is empty or longer than it may be.
pub(super) fn bounded(name: &str, text: Option<&str>, max: usize) -> Result<(), Refusal> {
    match text {
        Some(text) if text.trim().is_empty() => {
            Err(Refusal::InvalidDocument(format!("{name} is empty")))
        }
        Some(text) if text.len() > max => Err(Refusal::InvalidDocument(format!(
            "{name} has {} bytes, expected at most {max}",
            text.len()
        ))),
        _ => Ok(()),
    }
}

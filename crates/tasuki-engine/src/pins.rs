// SPDX-License-Identifier: Apache-2.0
//! Whose pins travel whole. A pin takes room from everything else, for everybody who reads of its
//! scope: those of strangers are few and small, and one that asks for more is told of by name.

use std::collections::HashSet;
use std::sync::Arc;

use tasuki_core::assembly::{Tokenizer, TooSmall, Warning, WarningCode};
use tasuki_core::document::{Priority, Scope};
use tasuki_core::event::Actor;
use tasuki_core::{AgentId, Document};

use crate::assemble::Found;

/// How many pins of strangers a scope may have that travel, and which part of the room they may
/// take in all.
const STRANGERS_MAX: usize = 16;
const STRANGERS_SHARE: u64 = 4;
/// What they may take where nothing bounds the reader.
const STRANGERS_TOKENS_MAX: u64 = 16_000;
/// A token is never more bytes than this in a text that is worth counting.
const TOKEN_BYTES_MAX: u64 = 32;

/// What travels whoever pinned it, and who pins what always travels: who sends, and who decides.
pub(crate) struct Theirs {
    pub(crate) ids: HashSet<String>,
    pub(crate) agents: HashSet<AgentId>,
}

/// Lets those pins travel like other memories, and before them, that are strangers' and more than
/// there is room for. Says which ones, and whose they are.
pub(crate) fn within(
    found: &mut Found,
    theirs: &Theirs,
    tokenizer: Tokenizer,
    room: Option<u64>,
) -> Vec<Warning> {
    let mut left = room.map_or(STRANGERS_TOKENS_MAX, |room| room / STRANGERS_SHARE);
    let mut pinned: Vec<_> = found.values_mut().filter(|it| it.kept.document.pinned).collect();
    // What was pinned first has been there for longest.
    pinned.sort_by(|one, two| {
        let key = |it: &Document| (it.created_at, it.id.clone());
        key(&one.kept.document).cmp(&key(&two.kept.document))
    });
    let mut in_scope: Vec<(Scope, usize)> = Vec::new();
    let mut over = Vec::new();
    for memory in pinned {
        let document = &memory.kept.document;
        if theirs.own(document) {
            continue;
        }
        let text = memory.content.as_ref().map_or("", |content| content.text.as_str());
        let small = text.len() as u64 <= left.saturating_mul(TOKEN_BYTES_MAX);
        let tokens = if small { tokenizer.count(text) } else { u64::MAX };
        let place = in_scope.iter().position(|(scope, _)| *scope == document.scope);
        let place = place.unwrap_or_else(|| {
            in_scope.push((document.scope.clone(), 0));
            in_scope.len() - 1
        });
        if tokens <= left && in_scope[place].1 < STRANGERS_MAX {
            left -= tokens;
            in_scope[place].1 += 1;
            continue;
        }
        over.push(Warning {
            code: WarningCode::PinOverCap,
            id: Some(document.id.name().to_owned()),
            text: format!("{} is too much; it travels as far as there is room", whose(document)),
        });
        let document = Arc::make_mut(&mut memory.kept.document);
        document.pinned = false;
        document.priority = Priority::High;
    }
    over
}

impl Theirs {
    fn own(&self, document: &Document) -> bool {
        let by = document.pinned_by.as_ref().unwrap_or(&document.created_by);
        self.ids.contains(document.id.name())
            || matches!(by, Actor::Agent(agent) if self.agents.contains(agent))
    }
}

fn whose(document: &Document) -> String {
    let by = match document.pinned_by.as_ref().unwrap_or(&document.created_by) {
        Actor::Agent(agent) => agent.name().to_owned(),
        Actor::Broker => "the broker".to_owned(),
    };
    let (what, name) = document.scope.parts();
    format!("what {by} pinned in {what} {name}")
}

/// Says of pins that take too much room whose they are.
pub(crate) fn named(mut short: TooSmall, found: &Found) -> TooSmall {
    for large in &mut short.largest {
        let id = large.part.strip_prefix("pin ").unwrap_or_default();
        let document = found.values().map(|it| &it.kept.document).find(|it| it.id.name() == id);
        if let Some(document) = document {
            large.part = format!("{}, {}", large.part, whose(document));
        }
    }
    short
}

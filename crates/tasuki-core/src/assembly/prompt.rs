// SPDX-License-Identifier: Apache-2.0
//! Both parts of a prompt within one bound: what was assembled, and after it what a claim is told.

use super::delivery::{Delivery, claim_reserve, deliver};
use super::reading::{Read, Reader, read};
use super::receipt::TooSmall;
use crate::envelope::Parts;
use crate::ids::Timestamp;

/// How much is told of a handoff and its claim where nothing bounds the reader.
const DELIVERY_TOKENS_MAX: u64 = 64_000;
/// Up to which part of the bound a claim's part may take from what was assembled.
const CLAIM_SHARE: u64 = 4;

/// What a model reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    pub read: Read,
    /// What stands after the assembled text.
    pub delivery: String,
    pub token_count: u64,
    /// How many texts of the handoff and the claim were cut or left out.
    pub texts_left_out: u64,
}

impl Prompt {
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}{}{}", self.read.stable, self.read.rest, self.delivery)
    }
}

/// Renders both parts. What a claim adds has a reserve within the bound and takes what is left of it.
/// Where that is too little for what it has to say (a message, an answer, what an earlier attempt
/// learned), the least wanted of what was assembled makes room, up to a share of the bound, and the
/// text says that it is shortened.
pub fn prompt(
    intent: &str,
    parts: &Parts,
    at: Timestamp,
    delivery: &Delivery,
    reader: Reader,
) -> Result<Prompt, TooSmall> {
    let Reader { tokenizer, form, available: bound, .. } = reader;
    let count = |text: &str| tokenizer.count(text);
    let mut reserve = bound.map_or(0, claim_reserve);
    let mut asked = false;
    loop {
        let available = bound.map(|bound| bound.saturating_sub(reserve));
        let too_small = |short: TooSmall| TooSmall {
            needed: short.needed.saturating_add(reserve),
            budget: bound.unwrap_or(u64::MAX),
            ..short
        };
        let read = read(intent, parts, at, Reader { available, ..reader }).map_err(too_small)?;
        let room = bound.map_or(DELIVERY_TOKENS_MAX, |bound| bound - read.token_count.min(bound));
        let (told, texts_left_out) = deliver(delivery, &read.mark, form, tokenizer, room);
        let token_count = count(&format!("{}{told}", read.text()));
        let (over, share) =
            bound.map_or((0, 0), |bound| (token_count.saturating_sub(bound), bound / CLAIM_SHARE));
        if over > 0 {
            // The frame is always told: where it needs more than was kept for it, there is more.
            reserve += over;
        } else if texts_left_out > delivery.left_out && !asked && reserve < share {
            asked = true;
            let (whole, _) = deliver(delivery, &read.mark, form, tokenizer, u64::MAX);
            let more = count(&whole).min(share).max(reserve);
            // What must be passed may leave no room for more.
            let may = Reader { available: bound.map(|bound| bound.saturating_sub(more)), ..reader };
            if super::reading::read(intent, parts, at, may).is_ok() {
                reserve = more;
            }
        } else {
            return Ok(Prompt { read, delivery: told, token_count, texts_left_out });
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Where a trace goes through, as W3C Trace Context writes it: `00-TRACE-SPAN-FLAGS`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::canonical::Object;
use crate::ids::{HandoffId, Malformed, TaskId};

/// The members of an envelope's metadata that belong to traces. Only the first decides anything.
pub const MEMBERS: [&str; 3] = ["traceparent", "tracestate", "baggage"];

/// Whether a trace is recorded, as its flags say.
const SAMPLED: u8 = 1;
/// The digits of a trace and of a span.
const TRACE_DIGITS: usize = 32;
const SPAN_DIGITS: usize = 16;

/// The context in which a handoff was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Cow<'_, str>", into = "String")]
pub struct Context {
    pub trace: u128,
    pub span: u64,
    pub flags: u8,
}

impl Context {
    /// From what a sender says, if that is a context.
    #[must_use]
    pub fn of(metadata: &Object) -> Option<Self> {
        metadata.0.get(MEMBERS[0])?.as_str()?.parse().ok()
    }

    #[must_use]
    pub fn is_sampled(self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The one that the broker gives a hop whose sender names none. A task's trace has the digits of its
    /// id, so whoever knows the one finds the other; with a trace for each hop it has those of the hop.
    #[must_use]
    pub fn made(mode: Mode, share: Share, task: TaskId, handoff: HandoffId) -> Self {
        let trace = match mode {
            Mode::Task => task.0,
            Mode::Links => handoff.0,
        };
        // A task is recorded whole or not at all.
        let flags = u8::from(share.takes(task.0));
        Self { trace: trace.max(1), span: send_span(handoff), flags }
    }

    /// The same trace, gone on by a hop whose sender says nothing of it.
    #[must_use]
    pub fn onward(self, mode: Mode, handoff: HandoffId) -> Self {
        let trace = match mode {
            Mode::Task => self.trace,
            Mode::Links => handoff.0.max(1),
        };
        Self { trace, span: send_span(handoff), ..self }
    }
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, self.flags)
    }
}

impl FromStr for Context {
    type Err = Malformed;

    /// Later versions may say more after the flags, and never less before them.
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let wrong = || Malformed("expected a traceparent as W3C Trace Context has it".into());
        let hex = |digits: &str, count: usize| {
            let lower = digits.bytes().all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(&it));
            (digits.len() == count && lower)
                .then(|| u128::from_str_radix(digits, 16).ok())
                .flatten()
                .ok_or_else(wrong)
        };
        let mut parts = text.split('-');
        let mut next = || parts.next().ok_or_else(wrong);
        let version = hex(next()?, 2)?;
        let trace = hex(next()?, TRACE_DIGITS)?;
        let span = hex(next()?, SPAN_DIGITS)?;
        let flags = hex(next()?, 2)?;
        let too_much = version == 0 && parts.next().is_some();
        if version == 0xff || too_much || trace == 0 || span == 0 {
            return Err(wrong());
        }
        let (Ok(span), Ok(flags)) = (u64::try_from(span), u8::try_from(flags)) else {
            return Err(wrong());
        };
        Ok(Self { trace, span, flags })
    }
}

impl TryFrom<Cow<'_, str>> for Context {
    type Error = Malformed;
    fn try_from(text: Cow<'_, str>) -> Result<Self, Malformed> {
        text.parse()
    }
}

impl From<Context> for String {
    fn from(context: Context) -> Self {
        context.to_string()
    }
}

impl JsonSchema for Context {
    fn schema_name() -> Cow<'static, str> {
        "Traceparent".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$",
            "description": "The context in which a handoff was made, as W3C Trace Context writes it.",
        })
    }
}

/// What one trace is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// A task.
    #[default]
    Task,
    /// A hop, linked with the one before: for tasks that take days.
    Links,
}

/// Which part of the tasks is recorded, where their senders do not say, in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share(pub u32);

impl Share {
    pub const ALL: Self = Self(1_000_000);

    /// By an id, so that every broker takes the same. Ids of one moment follow each other, so their
    /// digits are mixed first.
    fn takes(self, id: u128) -> bool {
        let drawn = mixed((id >> 64) as u64 ^ mixed(id as u64)) >> 32;
        drawn < (u64::from(self.0) << 32) / u64::from(Self::ALL.0)
    }
}

/// The span that stands for the sending of a handoff.
#[must_use]
pub fn send_span(handoff: HandoffId) -> u64 {
    low(handoff.0)
}

/// The span that stands for a whole task.
#[must_use]
pub fn task_span(task: TaskId) -> u64 {
    low(task.0)
}

/// The finaliser of SplitMix64.
pub(super) fn mixed(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The random half of an id, which is never all zeroes in a span.
fn low(id: u128) -> u64 {
    (id as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_traceparent_is_no_context() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let read: Context = good.parse().unwrap();
        assert_eq!(read.to_string(), good);
        assert!(read.is_sampled());
        // A later version, which says more.
        assert!(format!("01{}-more", &good[2..]).parse::<Context>().is_ok());
        for bad in [
            "",
            "00-1-2-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert!(bad.parse::<Context>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_share_takes_about_so_many_and_always_the_same() {
        let ids = || (0_u64..10_000).map(|n| u128::from(n) + (7 << 80));
        let taken = |share: u32| ids().filter(|id| Share(share).takes(*id)).count();
        assert_eq!((taken(0), taken(1_000_000)), (0, 10_000));
        assert!((50..200).contains(&taken(10_000)), "{}", taken(10_000));
        assert!(ids().all(|id| !Share(10_000).takes(id) || Share(500_000).takes(id)));
    }
}

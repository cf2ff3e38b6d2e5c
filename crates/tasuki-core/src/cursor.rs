// SPDX-License-Identifier: Apache-2.0
//! Where somebody has come to in the log, as it is told outside the store: a text that only the
//! broker reads. It carries the epoch in which the position was given out, because after a restore
//! or a failover that lost the log's end the same positions are given out a second time.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::event::{Event, Sealed};
use crate::ids::{Epoch, Malformed, Position};

/// How long the text of a cursor is at most.
const CHARS_MAX: usize = 41;

/// A place in the log, as a text that is only compared by the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// Not known of a bare position, which is what clients of 0.1 send.
    pub epoch: Option<Epoch>,
    pub position: Position,
}

impl Cursor {
    /// Before everything.
    pub const START: Self = Self { epoch: None, position: Position(0) };
}

impl Default for Cursor {
    fn default() -> Self {
        Self::START
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.epoch {
            Some(epoch) => write!(f, "{}-{}", epoch.0, self.position),
            None => fmt::Display::fmt(&self.position, f),
        }
    }
}

impl FromStr for Cursor {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let number = |digits: &str| {
            let plain = digits.bytes().all(|digit| digit.is_ascii_digit());
            digits.parse().ok().filter(|_| plain)
        };
        let read = || match text.split_once('-') {
            Some((epoch, position)) => Some(Self {
                epoch: Some(Epoch(number(epoch)?)),
                position: Position(number(position)?),
            }),
            None => Some(Self { epoch: None, position: Position(number(text)?) }),
        };
        let wrong = || Malformed("expected a cursor as the broker gave it".into());
        if text.len() > CHARS_MAX { Err(wrong()) } else { read().ok_or_else(wrong) }
    }
}

impl Serialize for Cursor {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

struct AsCursor;

impl de::Visitor<'_> for AsCursor {
    type Value = Cursor;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a cursor as the broker gave it")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Cursor, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, position: u64) -> Result<Cursor, E> {
        Ok(Cursor { epoch: None, position: Position(position) })
    }
}

impl<'de> Deserialize<'de> for Cursor {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AsCursor)
    }
}

impl JsonSchema for Cursor {
    fn schema_name() -> Cow<'static, str> {
        "Cursor".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "maxLength": CHARS_MAX,
            "description": "A place in the log. Only the broker can read it; give it back as it is.",
        })
    }
}

/// Where each epoch begins: with the event that raised it, which is the first that any broker writes
/// after the log's end may have been lost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Epochs(Vec<(Epoch, Position)>);

/// A cursor that names what is not in the log any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// The log was cut after this position since, and went on with other events.
    Cut { after: Position },
    /// It is of an epoch that this log never had: it comes from another one.
    Unknown,
}

impl Epochs {
    /// What came before the first one that is known counts as the first there is.
    const FIRST: Epoch = Epoch(1);

    #[must_use]
    pub fn new(mut raised: Vec<(Epoch, Position)>) -> Self {
        raised.sort_unstable_by_key(|(_, position)| *position);
        Self(raised)
    }

    /// Takes in an event, if it raised the epoch.
    pub fn note(&mut self, sealed: &Sealed) {
        if let Event::EpochRaised { epoch } = &sealed.record.event
            && self.0.last().is_none_or(|(_, last)| *last < sealed.position)
        {
            self.0.push((Epoch(*epoch), sealed.position));
        }
    }

    /// How a position of this log is told.
    #[must_use]
    pub fn cursor(&self, position: Position) -> Cursor {
        let begun = self.0.partition_point(|(_, begins)| *begins <= position);
        let epoch = begun.checked_sub(1).map_or(Self::FIRST, |last| self.0[last].0);
        Cursor { epoch: Some(epoch), position }
    }

    /// The position that a cursor stands for, if what it names is still what stands there.
    pub fn place(&self, cursor: Cursor) -> Result<Position, Lost> {
        let Some(epoch) = cursor.epoch else { return Ok(cursor.position) };
        match self.0.iter().find(|(raised, _)| *raised > epoch) {
            Some((_, begins)) if *begins <= cursor.position => {
                Err(Lost::Cut { after: Position(begins.0.saturating_sub(1)) })
            }
            Some(_) => Ok(cursor.position),
            None if epoch > self.0.last().map_or(Self::FIRST, |(last, _)| *last) => {
                Err(Lost::Unknown)
            }
            None => Ok(cursor.position),
        }
    }

    /// Up to where the log is as it was before the last time that its end may have been lost.
    #[must_use]
    pub fn kept_until(&self) -> Option<Position> {
        self.0.last().map(|(_, begins)| Position(begins.0.saturating_sub(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(text: &str) -> Cursor {
        text.parse().unwrap()
    }

    #[test]
    fn a_cursor_is_a_text_and_old_numbers_are_read() {
        for text in ["1-0", "7-18446744073709551615", "12"] {
            assert_eq!(cursor(text).to_string(), text);
            assert_eq!(serde_json::to_string(&cursor(text)).unwrap(), format!("\"{text}\""));
        }
        assert_eq!(serde_json::from_str::<Cursor>("12").unwrap(), cursor("12"));
        let long = "1".repeat(42);
        for text in ["", "-", "1-", "-1", "+1", "1-+1", "1-2-3", "x", "1.5", " 1", &long] {
            assert!(text.parse::<Cursor>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_position_is_told_with_the_epoch_that_it_was_given_out_in() {
        let epochs = Epochs::new(vec![(Epoch(4), Position(20)), (Epoch(2), Position(10))]);
        for (position, told) in [(1, "1-1"), (9, "1-9"), (10, "2-10"), (19, "2-19"), (20, "4-20")] {
            assert_eq!(epochs.cursor(Position(position)).to_string(), told);
            assert_eq!(epochs.place(cursor(told)), Ok(Position(position)), "{told}");
        }
    }

    #[test]
    fn what_was_told_and_then_lost_is_noticed() {
        let epochs = Epochs::new(vec![(Epoch(2), Position(10)), (Epoch(4), Position(20))]);
        let cut = |after| Err(Lost::Cut { after: Position(after) });
        assert_eq!(epochs.place(cursor("1-10")), cut(9));
        assert_eq!(epochs.place(cursor("1-500")), cut(9));
        // The epoch between was raised, and lost with everything that was told in it.
        assert_eq!(epochs.place(cursor("3-25")), cut(19));
        assert_eq!(epochs.place(cursor("3-12")), Ok(Position(12)));
        assert_eq!(epochs.place(cursor("5-1")), Err(Lost::Unknown));
        assert_eq!(epochs.place(cursor("500")), Ok(Position(500)), "nothing is known of it");
        assert_eq!(Epochs::default().place(cursor("1-3")), Ok(Position(3)));
        assert_eq!(Epochs::default().place(cursor("2-3")), Err(Lost::Unknown));
        assert_eq!(epochs.kept_until(), Some(Position(19)));
    }
}

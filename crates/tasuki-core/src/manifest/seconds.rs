// SPDX-License-Identifier: Apache-2.0
//! A span that people write in seconds and that is kept in milliseconds, like every other span.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};

use crate::ids::Malformed;
use crate::terms::{LEASE_MS_MIN, WORK_MS_MAX};

/// 0.1 seconds to 30 days, the range of `work_ms` in the terms; parts of a millisecond are rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "f64")]
pub struct Seconds {
    ms: u64,
}

impl Seconds {
    #[must_use]
    pub fn ms(self) -> u64 {
        self.ms
    }
}

impl TryFrom<f64> for Seconds {
    type Error = Malformed;
    fn try_from(seconds: f64) -> Result<Self, Malformed> {
        // The cast saturates, and what is not a number becomes 0: both are out of range.
        let ms = (seconds * 1000.0).round() as u64;
        if (LEASE_MS_MIN..=WORK_MS_MAX).contains(&ms) {
            return Ok(Self { ms });
        }
        Err(Malformed(format!("expected 0.1 to {} seconds", WORK_MS_MAX / 1000)))
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.ms.is_multiple_of(1000) {
            return to.serialize_u64(self.ms / 1000);
        }
        // Far below 2^53, so the same milliseconds come back.
        to.serialize_f64(self.ms as f64 / 1000.0)
    }
}

impl JsonSchema for Seconds {
    fn schema_name() -> Cow<'static, str> {
        "Seconds".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "number",
            "description": "A span in seconds; milliseconds are kept.",
            "minimum": 0.1,
            "maximum": 2_592_000,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_kept_to_the_millisecond_and_written_as_they_came() {
        for (written, ms) in
            [("300", 300_000), ("0.1", 100), ("1.001", 1001), ("2592000", WORK_MS_MAX)]
        {
            let seconds: Seconds = serde_json::from_str(written).unwrap();
            assert_eq!(seconds.ms(), ms);
            assert_eq!(serde_json::to_string(&seconds).unwrap(), written);
        }
    }

    #[test]
    fn a_span_that_no_term_could_hold_is_refused() {
        for seconds in [0.0, -1.0, 0.09, 2_592_001.0, f64::NAN, f64::INFINITY] {
            assert!(Seconds::try_from(seconds).is_err(), "{seconds}");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_span_survives_its_text_form(ms in LEASE_MS_MIN..=WORK_MS_MAX) {
            let text = serde_json::to_string(&Seconds { ms }).unwrap();
            proptest::prop_assert_eq!(serde_json::from_str::<Seconds>(&text).unwrap().ms(), ms);
        }
    }
}

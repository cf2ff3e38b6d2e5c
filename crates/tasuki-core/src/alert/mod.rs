// SPDX-License-Identifier: Apache-2.0
//! When people are told that something is wrong: the rules, and a watch that reads the log and says
//! which of them hold. It is told the time, and what it says follows from the log and that time alone.

mod evaluate;
pub mod notice;
pub mod rules;

use serde::{Deserialize, Serialize};

use crate::envelope::Target;
use crate::event::Sealed;
use crate::ids::Timestamp;
use crate::meter::Meters;

pub use evaluate::{Alerts, Moved, Standing, TICK_MS};
pub use rules::{RULES, Rule, Severity, Test};

/// Meters, and the alerts that follow from them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Watch {
    pub meters: Meters,
    pub alerts: Alerts,
}

impl Watch {
    /// From how it was saved, if that can be taken up.
    #[must_use]
    pub fn restored(text: &str) -> Option<Self> {
        let Self { meters, alerts } = serde_json::from_str(text).ok()?;
        Some(Self { meters: meters.restored()?, alerts })
    }

    #[must_use]
    pub fn saved(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    /// Takes the next event of the log. What the rules say up to its time is said before it.
    pub fn note(&mut self, sealed: &Sealed) {
        let at = sealed.record.at;
        self.alerts.until(&self.meters, at);
        self.meters.note(sealed);
        self.alerts.hear(at);
    }

    pub fn registers(&mut self, target: &Target) {
        self.meters.registers(target);
    }

    /// Time has come to here.
    pub fn until(&mut self, now: Timestamp) {
        self.alerts.until(&self.meters, now);
    }

    /// When something may change though nothing happens.
    #[must_use]
    pub fn due(&self) -> Option<Timestamp> {
        self.alerts.due()
    }

    /// Everything that holds, with its rule and target.
    pub fn standing(&self) -> impl Iterator<Item = (&'static Rule, Option<String>, &Standing)> {
        self.alerts.standing(&self.meters)
    }
}

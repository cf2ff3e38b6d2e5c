// SPDX-License-Identifier: Apache-2.0
//! What populations of agents do, for who looks at it again and again: the end of the log is analysed at
//! most once a minute, whoever asks and however often, one analysis at a time.

use std::sync::Arc;

use tasuki_core::population::{Baseline, Collected, Report, Settings, study};
use tasuki_core::{Position, Timestamp};
use tasuki_protocol as wire;
use tokio::sync::Mutex;

use crate::desk::Desk;
use crate::error::{Error, invalid};

/// How much of the log's end is looked at; `tasuki analyze` looks at all of it.
const EVENTS_MAX: u64 = 100_000;
/// How many events are read at a time.
const PAGE: usize = 500;
/// How long a report is good for.
const FRESH_MS: u64 = 60_000;

/// The last report, against which baseline it was made, and when.
#[derive(Default)]
pub(crate) struct Studied(Mutex<Option<(Baseline, Timestamp, Arc<Report>)>>);

impl Desk {
    /// What agents did lately, and what of it is unusual.
    pub async fn population(&self, asked: &wire::ShowPopulation) -> Result<Arc<Report>, Error> {
        self.operates()?;
        let baseline = baseline(asked)?;
        let mut last = self.engine.studied.0.lock().await;
        let now = self.now();
        if let Some((of, made, report)) = &*last
            && *of == baseline
            && now.ms_after(*made) < FRESH_MS
        {
            return Ok(Arc::clone(report));
        }
        let mut collected = Collected::new(&[], &[]);
        let mut after = Position(self.head().0.saturating_sub(EVENTS_MAX));
        let end = self.head();
        while after < end {
            let links = self.engine.links(after, PAGE).await?;
            let Some(link) = links.last() else { break };
            after = link.entry.sealed.position;
            for link in &links {
                let body = link.body.as_ref().map(tasuki_core::Body::text);
                // What cannot be read here is what verifying the log is for.
                let _ = collected.note(link.entry.sealed.position, &link.entry.encoded, body);
            }
        }
        let settings = Settings { baseline, ..Settings::default() };
        let report = Arc::new(self.engine.pool.run(|| study(&collected, &settings)).await);
        *last = Some((baseline, now, Arc::clone(&report)));
        Ok(report)
    }
}

fn baseline(asked: &wire::ShowPopulation) -> Result<Baseline, Error> {
    let from = asked.baseline_from.unwrap_or(Timestamp(i64::MIN));
    match asked.baseline_until {
        Some(_) if asked.no_baseline => {
            Err(invalid("no_baseline", "excludes a baseline".to_owned()))
        }
        Some(until) if until <= from => {
            Err(invalid("baseline_until", "is not after baseline_from".to_owned()))
        }
        Some(until) => Ok(Baseline::Between(from, until)),
        None if asked.baseline_from.is_some() => {
            Err(invalid("baseline_from", "needs baseline_until".to_owned()))
        }
        None if asked.no_baseline => Ok(Baseline::None),
        None => Ok(Baseline::FirstThird),
    }
}

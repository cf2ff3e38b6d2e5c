// SPDX-License-Identifier: Apache-2.0
//! What is measured, for those who watch.

use tasuki_core::Target;
use tasuki_core::meter::exposition::{self, Form};
use tasuki_core::meter::families::{Family, SECONDS};
use tasuki_core::meter::{Sample, Standing, Value, label_of};
use tasuki_core::registry::rules::Permission;
use tasuki_protocol as wire;

use crate::desk::Desk;
use crate::engine::Engine;
use crate::error::Error;

/// How long what was just committed is waited for.
const CATCH_UP_MS_MAX: u64 = 2_000;

impl Engine {
    /// Waits a moment until what is committed by now is measured.
    pub(crate) async fn measured(&self) {
        if !self.settings.metering {
            return;
        }
        let reached = self.watched.reaches(self.store.head());
        tokio::select! {
            biased;
            () = reached => {}
            () = self.store.clock().sleep_ms(CATCH_UP_MS_MAX) => {}
        }
        self.watched.until(self.now());
    }

    /// The name by which this broker's own series are told from those of others: its key's.
    pub(crate) fn broker_name(&self) -> String {
        let key = self.settings.key.as_ref();
        key.map_or_else(|| "local".into(), |key| key.id().to_string())
    }
}

impl Desk {
    /// Everything that is measured, as text. Whoever does not look after the whole broker gets what is
    /// told apart by the targets of its own tenant.
    pub async fn metrics(&self, form: Form) -> Result<String, Error> {
        self.caller.must(Permission::Read, None)?;
        self.engine.measured().await;
        let now = self.now();
        let tenant = (!self.counts_all()).then(|| self.caller.tenant());
        let mut samples = match self.engine.settings.metering {
            true => self.engine.watched.read(|watch| watch.meters.samples(now, tenant.as_ref())),
            // A figure that nobody measures is not 0.
            false => Vec::new(),
        };
        if tenant.is_none() {
            let stats = self.engine.store.stats();
            let broker = self.engine.broker_name();
            samples.extend(self.engine.instruments.samples(&broker, &stats));
            samples.extend(self.engine.spans.samples(&broker));
            samples.extend(self.presence_samples(&broker, &samples));
        }
        Ok(exposition::write(samples, form))
    }

    /// How everything goes, at a glance.
    pub async fn overview(&self) -> Result<wire::Overview, Error> {
        self.caller.must(Permission::Read, None)?;
        self.engine.measured().await;
        let now = self.now();
        let own = (!self.counts_all()).then(|| self.caller.tenant());
        let tenant = own.as_ref();
        let firing = self.alerts().await?.alerts;
        let firing = firing.iter().filter(|alert| alert.state == "firing").count() as u64;
        let live = |target: &Target| self.engine.presence.is_live(target, now);
        let mut overview = self.engine.watched.read(|watch| {
            let meters = &watch.meters;
            let mean = |of: Family| {
                let all = meters.together(of, None, tenant);
                let count = all.count();
                let per = of.scale().map_or(1, |scale| scale.per);
                (count > 0).then(|| all.sum as f64 / per as f64 / count as f64)
            };
            let delivery = meters.together(Family::Delivery, Some("claimed"), tenant);
            let quantile = |share: u64| delivery.quantile(&SECONDS, share);
            let ended = meters.counted(Family::Terminal, None, tenant);
            let dead_lettered = meters.counted(Family::Terminal, Some("dead_lettered"), tenant);
            let standings = meters.standings(now, tenant).into_iter();
            let targets = standings.filter(|standing| !standing.is_quiet());
            wire::Overview {
                now,
                delivery: wire::Latency {
                    count: delivery.count(),
                    p50: quantile(500),
                    p95: quantile(950),
                    p99: quantile(990),
                },
                completeness: mean(Family::Completeness),
                failure_rate: (ended > 0).then(|| dead_lettered as f64 / ended as f64),
                hop_depth: mean(Family::Hops),
                token_utilisation: mean(Family::Utilisation),
                ended,
                dead_lettered,
                firing,
                targets: targets.map(|standing| shown(standing, &live)).collect(),
            }
        });
        let urgency = |it: &wire::TargetOverview| {
            let alone = it.queue > 0 && !it.live;
            let closed = it.breaker == "closed";
            std::cmp::Reverse((!closed, alone, it.dead_letters, it.failures_in_row, it.oldest_ms))
        };
        overview.targets.sort_by_key(urgency);
        Ok(overview)
    }

    /// Who is listened for, of the targets that have series.
    fn presence_samples(&self, broker: &str, known: &[Sample]) -> Vec<Sample> {
        let now = self.now();
        let live = self.engine.presence.live(now);
        let live: Vec<_> = live.iter().map(label_of).collect();
        let targets = known.iter().filter(|sample| sample.family == Family::Queue);
        let sample = |target: &str| {
            let is_live = live.iter().any(|it| it == target);
            Sample {
                family: Family::Presence,
                labels: vec![("broker", broker.to_owned()), ("target", target.to_owned())],
                value: Value::Whole(u64::from(is_live)),
            }
        };
        let named = targets.filter_map(|sample| sample.labels.first());
        named.filter(|(_, target)| target != "other").map(|(_, target)| sample(target)).collect()
    }
}

fn shown(standing: Standing, live: &impl Fn(&Target) -> bool) -> wire::TargetOverview {
    wire::TargetOverview {
        live: live(&standing.target),
        target: standing.target,
        queue: standing.queue,
        oldest_ms: standing.oldest_ms,
        inflight: standing.inflight,
        dead_letters: standing.dead_letters,
        failures_in_row: standing.failures_in_row,
        breaker: standing.breaker.to_string(),
    }
}

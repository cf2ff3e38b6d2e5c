// SPDX-License-Identifier: Apache-2.0
//! The same rules twice. On a clock that is told, the broker's evaluator and `promtool` get the same
//! series, rule by rule; then a real Prometheus and Alertmanager watch brokers at work, one and two of
//! them, and must tell the same alerts as the brokers themselves. Needs Debian's packages `prometheus`,
//! `prometheus-alertmanager` and `postgresql`.
#![allow(clippy::unwrap_used, reason = "what goes wrong in here is the end of a test")]
#![allow(clippy::print_stdout, reason = "it says what it compared")]

mod hook;
mod live;
mod told;

fn main() -> anyhow::Result<()> {
    told::every_rule_fires_when_prometheus_says_so()?;
    live::one_broker_tells_what_prometheus_does()?;
    live::two_brokers_tell_it_once()?;
    Ok(())
}

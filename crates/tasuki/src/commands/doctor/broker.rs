// SPDX-License-Identifier: Apache-2.0
//! What a running broker says of itself.

use tasuki_core::AgentId;
use tasuki_core::registry::names;
use tasuki_protocol as wire;

use super::{CLOCK_MS_OFF_MAX, Check, wall_clock};
use crate::client::{Client, Connect};
use crate::output::{bytes, span};

/// More rows than this should not wait to be written for long.
const LAG_MAX: u64 = 100_000;
/// How many dead letters are counted.
const COUNTED_MAX: usize = 1000;

/// The findings, and whether a broker answered.
pub(super) async fn check(connect: &Connect) -> anyhow::Result<(Vec<Check>, bool)> {
    let client = connect.client()?;
    let url = client.url();
    let (status, text) = match client.probe("/readyz").await {
        Ok(answer) => answer,
        // Without a broker the data can still be well, unless one was asked for.
        Err(failure) => {
            let next = "start one with `tasuki serve`, or name one with --url";
            let check = if connect.is_default() { Check::warn } else { Check::fail };
            return Ok((vec![check("broker", failure.message, next)], false));
        }
    };
    if status != 200 {
        let health: Option<wire::Health> = serde_json::from_str(&text).ok();
        let why = health.and_then(|health| health.reason).unwrap_or_else(|| text.clone());
        let found = format!("{url} answers and is not ready ({status}): {why}");
        let next = "look into its log; stop it and start it again with `tasuki serve`";
        return Ok((vec![Check::fail("broker", found, next)], true));
    }
    let mut checks = vec![Check::ok("broker", format!("ready at {url}"))];
    match client.get("/v1/stats", &[]).await.map(|reply| serde_json::from_str(&reply)) {
        Ok(Ok(stats)) => checks.extend(state(&stats)),
        Ok(Err(error)) => {
            let next = "check that --url names a Tasuki broker of this version";
            checks.push(Check::fail("version", format!("the answer does not fit: {error}"), next));
        }
        Err(error) => checks.push(Check::fail("version", format!("{error:#}"), "tasuki stats")),
    }
    checks.push(dead_letters(&client).await);
    checks.push(agent_names(&client).await);
    Ok((checks, true))
}

fn state(stats: &wire::Stats) -> Vec<Check> {
    let own = env!("CARGO_PKG_VERSION");
    let version = if stats.version == own {
        Check::ok("version", own)
    } else {
        let found = format!("the broker is {}, this program is {own}", stats.version);
        Check::warn("version", found, "use the same version for both")
    };
    let off_ms = stats.now.0.abs_diff(wall_clock().0);
    let clock = if off_ms <= CLOCK_MS_OFF_MAX {
        Check::ok("broker's clock", format!("within {} of this machine's", span(off_ms)))
    } else {
        let found = format!("{} off this machine's", span(off_ms));
        let next = "leases are safe; the next start of the broker takes over the wall clock";
        Check::warn("broker's clock", found, next)
    };
    let lag = stats.store.as_ref().map(|store| match store.projection_lag {
        lag if lag <= LAG_MAX => Check::ok("projection lag", format!("{lag} rows")),
        lag => {
            let found = format!("{lag} rows wait to be written");
            Check::warn("projection lag", found, "lists take longer until it is worked off")
        }
    });
    let taken = stats.store.as_ref().map(|store| store.live_bytes).or(stats.stored_bytes);
    let live = format!("{} live handoffs, {}", stats.live_handoffs, bytes(taken.unwrap_or(0)));
    let room = if stats.disk_full {
        Check::fail("room", "the disk is full, no new work is taken", "free some space")
    } else {
        Check::ok("room", live)
    };
    [version, clock].into_iter().chain(lag).chain([room]).collect()
}

/// Names from before they were compared, which may be taken for one another.
async fn agent_names(client: &Client) -> Check {
    const NAME: &str = "names";
    let listed = client.get("/v1/agents", &[]).await.and_then(|reply| {
        let listed: wire::Agents = serde_json::from_str(&reply)?;
        Ok(listed.agents.into_iter().map(|agent| agent.agent_id).collect::<Vec<_>>())
    });
    let listed = match listed {
        Ok(listed) => listed,
        Err(error) => return Check::warn(NAME, format!("{error:#}"), client.command("agent list")),
    };
    let alike = |one: &&AgentId| {
        names::is_brokers(one.name()) || listed.iter().any(|it| names::differ_in_case(it, one))
    };
    let found: Vec<_> = listed.iter().filter(alike).map(ToString::to_string).collect();
    if found.is_empty() {
        return Check::ok(NAME, "no agent's name could be taken for another's");
    }
    let next =
        "give all but one of them another name: `tasuki agent invite`, then `agent deregister`";
    Check::warn(NAME, format!("easily taken for others: {}", found.join(", ")), next)
}

async fn dead_letters(client: &Client) -> Check {
    const NAME: &str = "dead letters";
    let query = [("limit", Some(COUNTED_MAX.to_string()))];
    let page = client.get("/v1/dead-letters", &query).await.and_then(|reply| {
        let page: wire::Handoffs = serde_json::from_str(&reply)?;
        Ok(page.handoffs.len())
    });
    match page {
        Ok(0) => Check::ok(NAME, "none wait for a decision"),
        Ok(waiting) => {
            let more = if waiting == COUNTED_MAX { " or more" } else { "" };
            Check::warn(
                NAME,
                format!("{waiting}{more} wait for a decision"),
                client.command("dead-letter list"),
            )
        }
        Err(error) => Check::fail(NAME, format!("{error:#}"), client.command("dead-letter list")),
    }
}

// SPDX-License-Identifier: Apache-2.0
//! What a data directory shows, whether or not a broker uses it.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use tasuki_store::inspect::{self, Inspection};
use tasuki_store::{FILE, SystemClock, maintenance};

use super::{CLOCK_MS_OFF_MAX, Check, wall_clock};
use crate::output::{bytes, progress, span};

const FREE_BYTES_LITTLE: u64 = 1024 * 1024 * 1024;
/// What the store keeps for finishing work; below it no new work is taken.
const FREE_BYTES_MIN: u64 = 32 * 1024 * 1024;
/// Every acknowledged step waits for one sync, so a slower disk is felt by every caller.
const SYNC_SLOW: Duration = Duration::from_millis(20);
const SYNCS: usize = 15;
const SYNC_BYTES: usize = 4096;
const RESTORE: &str =
    "stop the broker and restore a backup: tasuki restore --from BACKUP --data NEW_DIR";

pub(super) fn check(dir: &Path, is_named: bool, broker_is_up: bool, full: bool) -> Vec<Check> {
    const NAME: &str = "data directory";
    let shown = dir.display();
    if !dir.join(FILE).exists() {
        let found = format!("there is no data in {shown}");
        let next = "name the broker's with --data; `tasuki serve` makes one where there is none";
        let check = if is_named { Check::fail } else { Check::warn };
        return vec![check(NAME, found, next)];
    }
    let user = match inspect::holder(dir) {
        Some(process) => format!("{shown}, in use by process {process}"),
        None => format!("{shown}, not in use"),
    };
    let mut checks = vec![Check::ok(NAME, user)];
    match inspect::inspect(dir) {
        Ok(facts) => checks.extend(state(&facts, broker_is_up)),
        Err(error) => checks.push(Check::fail("schema", with_causes(error), RESTORE)),
    }
    checks.extend([pages(dir), log(dir)]);
    checks.extend(full.then(|| rows(dir)));
    checks.extend([space(dir), sync(dir)]);
    checks
}

fn with_causes(error: impl Into<anyhow::Error>) -> String {
    format!("{:#}", error.into())
}

fn state(facts: &Inspection, broker_is_up: bool) -> Vec<Check> {
    let Inspection { schema, schema_known, .. } = facts;
    let known = match schema.cmp(schema_known) {
        std::cmp::Ordering::Equal => Check::ok("schema", format!("version {schema}")),
        std::cmp::Ordering::Less => Check::warn(
            "schema",
            format!("version {schema}, this program is at {schema_known}"),
            "the next `tasuki serve` brings it up to date",
        ),
        std::cmp::Ordering::Greater => Check::fail(
            "schema",
            format!("version {schema}, this program knows up to {schema_known}"),
            "use the newer program that wrote it",
        ),
    };
    let mut checks = vec![known, clock(facts)];
    // A broker knows more than the file, where there is one.
    if !broker_is_up {
        let lag = facts.events.saturating_sub(facts.projected);
        checks.push(Check::ok("projection lag", format!("{lag} events, replayed at the start")));
        checks.push(match facts.dead_letters {
            0 => Check::ok("dead letters", "none wait for a decision"),
            some => Check::warn(
                "dead letters",
                format!("{some} wait for a decision"),
                "start the broker with `tasuki serve`, then `tasuki dead-letter list`",
            ),
        });
    }
    checks
}

/// A clock behind the log makes the next start go on from the log's time.
fn clock(facts: &Inspection) -> Check {
    const NAME: &str = "clock";
    let Some(last) = facts.last_event_at else {
        return Check::ok(NAME, "there is no event to compare it with");
    };
    let ahead_ms = last.ms_after(wall_clock());
    if ahead_ms > CLOCK_MS_OFF_MAX {
        let found = format!("the last event is {} ahead of this machine's clock", span(ahead_ms));
        return Check::warn(NAME, found, "set the clock; until then times go on from the log's");
    }
    Check::ok(NAME, format!("after the last event, which was at {last}"))
}

fn pages(dir: &Path) -> Check {
    const NAME: &str = "database";
    match maintenance::integrity(dir) {
        Ok(found) if found.is_empty() => Check::ok(NAME, "every page is as SQLite left it"),
        Ok(found) => Check::fail(NAME, found.join("; "), RESTORE),
        Err(error) => Check::fail(NAME, with_causes(error), RESTORE),
    }
}

fn log(dir: &Path) -> Check {
    const NAME: &str = "audit log";
    let bar = progress("verifying the log", maintenance::count(dir).ok());
    let verdict = maintenance::verify(dir, &mut |done| bar.set_position(done));
    bar.finish_and_clear();
    match verdict {
        Ok(verdict) => match verdict.first_bad {
            None => Check::ok(NAME, format!("{} events, all intact", verdict.events)),
            Some(finding) => Check::fail(NAME, finding.to_string(), RESTORE),
        },
        Err(error) => Check::fail(NAME, with_causes(error), RESTORE),
    }
}

fn rows(dir: &Path) -> Check {
    const NAME: &str = "rows";
    let bar = progress("comparing the rows", None);
    let found = maintenance::compare_rows(dir, &*SystemClock::start());
    bar.finish_and_clear();
    match found {
        Ok(found) if found.is_empty() => Check::ok(NAME, "every row is what the log says"),
        Ok(found) => {
            let named: Vec<_> = found.iter().map(ToString::to_string).collect();
            let next = format!("stop the broker, then: tasuki rebuild --data {}", dir.display());
            Check::fail(NAME, named.join(", "), next)
        }
        Err(error) => Check::fail(NAME, with_causes(error), RESTORE),
    }
}

fn space(dir: &Path) -> Check {
    const NAME: &str = "free space";
    let free = match rustix::fs::statvfs(dir) {
        Ok(system) => system.f_bavail.saturating_mul(system.f_frsize),
        Err(error) => return Check::warn(NAME, format!("cannot tell: {error}"), "check by hand"),
    };
    match free {
        0..FREE_BYTES_MIN => {
            Check::fail(NAME, bytes(free), "free some space: no new work is taken")
        }
        FREE_BYTES_MIN..FREE_BYTES_LITTLE => {
            Check::warn(NAME, bytes(free), "free some space before it runs out")
        }
        FREE_BYTES_LITTLE.. => Check::ok(NAME, bytes(free)),
    }
}

fn sync(dir: &Path) -> Check {
    const NAME: &str = "sync";
    match sync_time(dir) {
        Ok(time) => {
            let ms = time.as_secs_f64() * 1000.0;
            let found = format!("{ms:.2} ms for 4 KiB written and synced (median of {SYNCS})");
            if time <= SYNC_SLOW {
                Check::ok(NAME, found)
            } else {
                let next = "every step waits for one sync: put the data on a faster disk";
                Check::warn(NAME, found, next)
            }
        }
        Err(error) => {
            let found = format!("cannot write and sync a file: {error}");
            Check::fail(NAME, found, "check the disk, and that the directory is writable")
        }
    }
}

fn sync_time(dir: &Path) -> std::io::Result<Duration> {
    let path = dir.join(format!("doctor-{}.tmp", std::process::id()));
    let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
    let times = syncs(file);
    std::fs::remove_file(&path)?;
    let mut times = times?;
    times.sort_unstable();
    Ok(times[SYNCS / 2])
}

fn syncs(mut file: File) -> std::io::Result<Vec<Duration>> {
    let page = [0x5a; SYNC_BYTES];
    let mut times = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        let begun = Instant::now();
        file.write_all(&page)?;
        file.sync_data()?;
        times.push(begun.elapsed());
    }
    Ok(times)
}

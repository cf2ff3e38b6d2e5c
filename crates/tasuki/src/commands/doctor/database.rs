// SPDX-License-Identifier: Apache-2.0
//! What a PostgreSQL shows before a broker trusts it.

use std::path::Path;

use tasuki_store::PostgresOptions;
use tasuki_store::postgres::{self, DatabaseClock, Server};

use super::Check;
use crate::output::span;

pub(super) async fn check(url: &str, ca: Option<&Path>, full: bool) -> Vec<Check> {
    const NAME: &str = "database";
    match postgres::inspect(&crate::config::store_url(url), ca).await {
        Err(error) => {
            let next = "correct it; `tasuki serve` refuses to start on this server";
            vec![Check::fail(NAME, error.to_string(), next)]
        }
        Ok(server) => {
            let shown = postgres::without_password(url);
            let found = format!("{shown}, PostgreSQL {}, a primary", server.version);
            let mut checks = vec![Check::ok(NAME, found), durability(&server)];
            checks.push(Check::ok("timeline", server.timeline.to_string()));
            checks.push(old_transactions(&server));
            if full {
                checks.push(rows(url, ca).await);
            }
            checks
        }
    }
}

/// Makes all rows anew beside, in a directory that is gone afterwards.
async fn rows(url: &str, ca: Option<&Path>) -> Check {
    const NAME: &str = "rows";
    let next = "stop the brokers, and move the log to a data directory, which makes the rows anew: \
                tasuki migrate --from URL --to NEW_DIR";
    let beside = match tasuki_store::private::scratch() {
        Ok(beside) => beside,
        Err(error) => return Check::fail(NAME, format!("{error:#}"), next),
    };
    let compared = async {
        // Signs nothing that anybody keeps.
        let key = tasuki_store::key::load(&beside)?;
        let url = crate::config::store_url(url);
        let options =
            PostgresOptions { ca: ca.map(Path::to_owned), ..PostgresOptions::new(url, key) };
        let dir = beside.join("rebuilt");
        Ok::<_, anyhow::Error>(postgres::compare_rows(options, &dir, DatabaseClock::start()).await?)
    };
    let compared = Box::pin(compared).await;
    // What is left of it is the system's to clear away.
    let _ = std::fs::remove_dir_all(&beside);
    match compared {
        Ok(found) if found.is_empty() => Check::ok(NAME, "every row is what the log says"),
        Ok(found) => {
            let named: Vec<_> = found.iter().map(ToString::to_string).collect();
            Check::fail(NAME, named.join(", "), next)
        }
        Err(error) => Check::fail(NAME, format!("{error:#}"), next),
    }
}

fn durability(server: &Server) -> Check {
    const NAME: &str = "durability";
    let found =
        format!("synchronous_commit = {}, fsync = {}", server.synchronous_commit, server.fsync);
    if server.fsync == "on" {
        return Check::ok(NAME, found);
    }
    Check::fail(NAME, found, "set fsync = on: a crash of the machine would lose everything")
}

fn old_transactions(server: &Server) -> Check {
    const NAME: &str = "transactions";
    let Some((name, age)) = server.old_transactions.iter().max_by_key(|(_, age)| *age) else {
        return Check::ok(NAME, "none is open for long");
    };
    let age = span(u64::try_from(*age).unwrap_or(0) * 1000);
    let found =
        format!("{} open for long, the oldest for {age}: {name}", server.old_transactions.len());
    Check::warn(NAME, found, "end it: it keeps vacuum from removing dead rows")
}

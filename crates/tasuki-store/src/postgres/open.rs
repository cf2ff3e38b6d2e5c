// SPDX-License-Identifier: Apache-2.0
//! Connecting: what a server must be like before it is trusted, and the schema it needs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Pool, QueueMode, RecyclingMethod, Runtime,
};
use ed25519_dalek::SigningKey;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::batch::SETTINGS;
use super::db::query;
use super::error::{Fault, root};
use super::hosts::{self, Hosts};
use crate::sqlite::compare::{self, Difference};

/// What the schema of this binary is. Each migration runs once, in order.
const MIGRATIONS: [&str; 13] = [
    include_str!("migrations/001_foundation.sql"),
    include_str!("migrations/002_registry.sql"),
    include_str!("migrations/003_turns.sql"),
    include_str!("migrations/004_documents.sql"),
    include_str!("migrations/005_projects.sql"),
    include_str!("migrations/006_patterns.sql"),
    include_str!("migrations/007_chains.sql"),
    include_str!("migrations/008_lists.sql"),
    include_str!("migrations/009_talk.sql"),
    include_str!("migrations/010_correlation.sql"),
    include_str!("migrations/011_together.sql"),
    include_str!("migrations/012_sums.sql"),
    include_str!("migrations/013_alerts.sql"),
];
/// The number that brokers which migrate at the same time agree on; any would do.
const MIGRATION_LOCK: i64 = 0x7461_7375_6b69;
const VERSION_MIN: i32 = 150_000;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a command waits for a free connection.
const POOL_TIMEOUT: Duration = Duration::from_secs(5);
/// How old a transaction may get before it is worth a warning: it keeps vacuum from its work.
const OLD_TRANSACTION_S: i32 = 60;

#[derive(Clone)]
pub struct PostgresOptions {
    /// As libpq understands it: `postgres://user:password@host/database`.
    pub url: String,
    /// Signs checkpoints.
    pub key: SigningKey,
    /// The broker's own directory, where it keeps the highest timeline and epoch that it saw.
    pub dir: Option<PathBuf>,
    /// The secret that the sums over the rows are made with: all brokers on the database have the same, and
    /// the database does not. Without it the rows are believed.
    pub row_key: Option<[u8; 32]>,
    /// Whether the rows are believed whatever their sums say, because they are about to be compared.
    pub believes: bool,
    /// A file with certificates of authorities to believe instead of the system's.
    pub ca: Option<PathBuf>,
    /// Whether the URL leads to a pooler that gives every transaction another connection.
    pub pooler: bool,
    /// How many connections this broker holds at most.
    pub connections_max: usize,
    /// How long history is kept; for ever without it.
    pub retain: Option<Duration>,
    /// How many events one partition of history holds; counts when the database is set up.
    pub events_each: u32,
}

impl PostgresOptions {
    #[must_use]
    pub fn new(url: impl Into<String>, key: SigningKey) -> Self {
        let (connections_max, retain) = (16, None);
        Self {
            url: url.into(),
            key,
            dir: None,
            row_key: None,
            believes: false,
            ca: None,
            pooler: false,
            connections_max,
            retain,
            events_each: super::partitions::EVENTS_EACH,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    #[error("the store URL cannot be read: {0}; expected postgres://user@host/database")]
    Url(String),
    #[error("the certificates cannot be used: {0}")]
    Tls(String),
    #[error("the database cannot be reached: {0}; check the URL, and that the server runs")]
    Unreachable(String),
    #[error("PostgreSQL {0} is too old; run version 15 or later")]
    Old(String),
    #[error(
        "synchronous_commit is {0}: a crash of the server would lose what was acknowledged; set it \
         to on for this role or database (ALTER ROLE … SET synchronous_commit = on)"
    )]
    Unsafe(String),
    #[error("the server is a standby or read-only; give the URL of the primary")]
    ReadOnly,
    #[error(
        "the server is on timeline {found}, but the log was last written on timeline {known}: it is \
         a primary that was replaced; give the URL of the new one"
    )]
    Replaced { found: i64, known: i64 },
    #[error(
        "the database has schema {found}, this binary knows {known}; run a newer `tasuki`, or give \
         another database"
    )]
    Newer { found: i64, known: i64 },
    #[error("the log is damaged: {0}")]
    Damaged(crate::audit::Finding),
    #[error(
        "rows of the database are not what the log says: {}; stop all brokers and move the log to a \
         directory and back, which makes the rows anew: `tasuki migrate --from URL --to NEW_DIR`",
        compare::listed(.0)
    )]
    Rows(Vec<Difference>),
    #[error(
        "somebody put into the database what acts by itself: {names}; find out who, drop it, and compare \
         the rows with `tasuki doctor --full --store URL`"
    )]
    Foreign { names: String },
    #[error(
        "the rows of the database are covered by a row key, which this broker does not have; give it \
         the file of the others with --row-key"
    )]
    RowKey,
    #[error("there is work in the database already; give an empty one")]
    NotEmpty,
    #[error("cannot {step}: {reason}")]
    Failed { step: &'static str, reason: String },
}

fn failed(step: &'static str) -> impl FnOnce(Fault) -> PostgresError {
    move |fault| PostgresError::Failed { step, reason: fault.to_string() }
}

/// What was found out about a server.
#[derive(Debug, Clone)]
pub struct Server {
    pub version: String,
    pub synchronous_commit: String,
    pub fsync: String,
    pub timeline: i64,
    /// Which cluster it is: a standby has the same, a database that was set up anew another.
    pub system: i64,
    /// A name and an age in seconds for each transaction that has been open for long.
    pub old_transactions: Vec<(String, i32)>,
}

/// A URL as it may be shown.
#[must_use]
pub fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "postgres".into() };
    // Whatever stands before the last `@` may be a password.
    let (user, place) = rest.rsplit_once('@').unwrap_or(("", rest));
    let place = place.split('?').next().unwrap_or_default();
    match user.split(':').next() {
        None | Some("") => format!("{scheme}://{place}"),
        Some(user) => format!("{scheme}://{user}@{place}"),
    }
}

/// The password in a URL, if there is one.
#[must_use]
pub fn password_in(url: &str) -> Option<&str> {
    let rest = url.split_once("://")?.1;
    let of_user = rest.rsplit_once('@').and_then(|(user, _)| Some(user.split_once(':')?.1));
    let of_query = || {
        let (_, query) = rest.split_once('?')?;
        query.split('&').find_map(|part| part.strip_prefix("password="))
    };
    of_user.or_else(of_query).filter(|password| !password.is_empty())
}

/// A URL with a password, which may hold any characters, where it had none.
#[must_use]
pub fn with_password(url: &str, password: &str) -> String {
    let parts = url.split_once("://").and_then(|(scheme, rest)| {
        let (user, place) = rest.rsplit_once('@')?;
        (!user.contains(':')).then_some((scheme, user, place))
    });
    let Some((scheme, user, place)) = parts else { return url.to_owned() };
    let escaped: String = password.bytes().map(|byte| format!("%{byte:02X}")).collect();
    format!("{scheme}://{user}:{escaped}@{place}")
}

fn config(url: &str) -> Result<Config, PostgresError> {
    // In libpq's other form, `host=… password=…`, nothing would find a password to keep to itself.
    if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
        return Err(PostgresError::Url("it is no URL".into()));
    }
    let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
        // The text of the URL may hold a password.
        PostgresError::Url(
            std::error::Error::source(&error)
                .map_or_else(|| error.to_string(), ToString::to_string),
        )
    })?;
    config.connect_timeout(CONNECT_TIMEOUT);
    config.tcp_user_timeout(Duration::from_secs(10));
    config.keepalives_idle(Duration::from_secs(10));
    config.keepalives_interval(Duration::from_secs(5));
    config.keepalives_retries(3);
    if config.get_application_name().is_none() {
        config.application_name("tasuki");
    }
    Ok(config)
}

/// How a server is reached.
pub(super) struct Way {
    config: Config,
    tls: MakeRustlsConnect,
}

type Link = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

impl Way {
    pub(super) fn to(url: &str, ca: Option<&Path>) -> Result<Self, PostgresError> {
        let config = config(url)?;
        let tls = super::tls::connector(&config, ca)?;
        Ok(Self { config, tls })
    }

    pub(super) async fn connect(&self) -> Result<(Client, Link), tokio_postgres::Error> {
        self.config.connect(self.tls.clone()).await
    }
}

/// Connections to the primary: every host is asked once now, and one that is on a lower timeline than
/// was seen is not used.
pub(super) async fn pool(
    options: &PostgresOptions,
    highest: &Arc<AtomicI64>,
) -> Result<Pool, PostgresError> {
    let Way { mut config, tls } = Way::to(&options.url, options.ca.as_deref())?;
    if !options.pooler {
        let own = config.get_options().unwrap_or_default().to_owned();
        let settings = SETTINGS.map(|(name, value)| format!("-c {name}={value}")).join(" ");
        config.options(format!("{settings} {own}"));
    }
    let hosts = Hosts::of(&config, tls, highest.clone());
    hosts.ask_all().await;
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_connect(config, hosts, recycling);
    // A role or a database may say otherwise for its sessions.
    let highest = highest.clone();
    let durable = Hook::async_fn(move |db, _| {
        let known = highest.load(Ordering::Acquire);
        Box::pin(async move {
            let refused = |reason: String| HookError::message(reason);
            durable(db).await.map_err(|error| refused(error.to_string()))?;
            let found = hosts::timeline(db).await.map_err(|error| refused(error.to_string()))?;
            match found.filter(|found| *found < known) {
                None => Ok(()),
                Some(found) => Err(refused(PostgresError::Replaced { found, known }.to_string())),
            }
        })
    });
    Pool::builder(manager)
        .max_size(options.connections_max.max(4))
        // The connection that was used last has everything at hand.
        .queue_mode(QueueMode::Lifo)
        .wait_timeout(Some(POOL_TIMEOUT))
        .create_timeout(Some(CONNECT_TIMEOUT))
        .recycle_timeout(Some(CONNECT_TIMEOUT))
        .runtime(Runtime::Tokio1)
        .post_create(durable)
        .build()
        .map_err(|error| PostgresError::Unreachable(error.to_string()))
}

async fn durable(db: &Client) -> Result<(), PostgresError> {
    let setting = show(db, "synchronous_commit").await?;
    // `local`, `remote_write`, `on` and `remote_apply` all wait for the disk of the primary.
    if setting == "off" { Err(PostgresError::Unsafe(setting)) } else { Ok(()) }
}

async fn show(db: &Client, setting: &str) -> Result<String, PostgresError> {
    let sql = format!("SELECT current_setting('{setting}')");
    let rows = query(db, &sql, &[]).await.map_err(failed("read a setting"))?;
    Ok(rows.first().and_then(|row| row.try_get(0).ok()).unwrap_or_default())
}

/// Looks at a server without changing anything.
pub async fn inspect(url: &str, ca: Option<&Path>) -> Result<Server, PostgresError> {
    let unreachable = |error: tokio_postgres::Error| PostgresError::Unreachable(root(&error));
    let (db, connection) = Way::to(url, ca)?.connect().await.map_err(unreachable)?;
    // Not watched: it lasts as long as this look.
    let connection = tokio::spawn(connection);
    let found = async {
        let server = check(&db).await?;
        used(&db, server.timeline).await?;
        Ok(server)
    };
    let found = found.await;
    connection.abort();
    found
}

/// What a broker would refuse about a database that brokers have used before.
async fn used(db: &Client, found: i64) -> Result<(), PostgresError> {
    let ask = async |sql: &str| -> Result<Option<i64>, PostgresError> {
        let rows = query(db, sql, &[]).await.map_err(failed("look at the log"))?;
        Ok(rows.first().and_then(|row| row.try_get(0).ok()))
    };
    let there = "SELECT 1::int8 FROM pg_class WHERE oid = to_regclass('schema_version')";
    if ask(there).await?.is_none() {
        return Ok(());
    }
    let (schema, known) =
        (ask("SELECT max(version) FROM schema_version").await?, MIGRATIONS.len() as i64);
    if let Some(found) = schema.filter(|schema| *schema > known) {
        return Err(PostgresError::Newer { found, known });
    }
    match ask("SELECT timeline FROM log_head").await? {
        Some(known) if known > found => Err(PostgresError::Replaced { found, known }),
        _ => Ok(()),
    }
}

pub(super) async fn check(db: &Client) -> Result<Server, PostgresError> {
    let version: i32 = show(db, "server_version_num").await?.parse().unwrap_or(0);
    let name = show(db, "server_version").await?;
    if version < VERSION_MIN {
        return Err(PostgresError::Old(name));
    }
    let sql = "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on'";
    let rows = query(db, sql, &[]).await.map_err(failed("look at the server"))?;
    if rows.first().and_then(|row| row.try_get(0).ok()).unwrap_or(true) {
        return Err(PostgresError::ReadOnly);
    }
    let synchronous_commit = show(db, "synchronous_commit").await?;
    durable(db).await?;
    let sql = "SELECT ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))\
               ::bit(32)::int8";
    let rows = query(db, sql, &[]).await.map_err(failed("read the timeline"))?;
    let timeline = rows.first().and_then(|row| row.try_get(0).ok()).unwrap_or(0);
    let sql = "SELECT coalesce(application_name, '') || ' (pid ' || pid || ')', \
                   extract(epoch FROM now() - xact_start)::int \
               FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid() \
                   AND xact_start < now() - make_interval(secs => $1)";
    let age = f64::from(OLD_TRANSACTION_S);
    let values =
        [(&age as &(dyn tokio_postgres::types::ToSql + Sync), tokio_postgres::types::Type::FLOAT8)];
    let rows = query(db, sql, &values).await.map_err(failed("look for old transactions"))?;
    let old_transactions =
        rows.iter().filter_map(|row| Some((row.try_get(0).ok()?, row.try_get(1).ok()?))).collect();
    let fsync = show(db, "fsync").await?;
    let rows = query(db, "SELECT system_identifier FROM pg_control_system()", &[]).await;
    // Who may not ask takes all clusters for one, which only refuses more.
    let system = rows.ok().and_then(|rows| rows.first()?.try_get(0).ok()).unwrap_or(0);
    Ok(Server { version: name, synchronous_commit, fsync, timeline, system, old_transactions })
}

/// Brings the schema up to date. Brokers that start at the same time do it one after the other.
pub(super) async fn migrate(db: &mut Client, events_each: u32) -> Result<(), PostgresError> {
    let step = failed("migrate the database");
    let migrated = async {
        let transaction = db.build_transaction().start().await?;
        let lock = format!("SELECT pg_advisory_xact_lock({MIGRATION_LOCK})");
        transaction.batch_execute(&lock).await?;
        transaction
            .batch_execute(
                "CREATE TABLE IF NOT EXISTS schema_version (version bigint PRIMARY KEY, \
                 at timestamptz NOT NULL DEFAULT now())",
            )
            .await?;
        let sql = "SELECT coalesce(max(version), 0) FROM schema_version";
        let rows = query(transaction.client(), sql, &[]).await?;
        let found: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
        for (number, migration) in (1..).zip(MIGRATIONS) {
            if number > found {
                transaction.batch_execute(migration).await?;
                let note = format!("INSERT INTO schema_version (version) VALUES ({number})");
                transaction.batch_execute(&note).await?;
            }
        }
        if found == 0 {
            let sql = format!("UPDATE log_start SET each = {events_each}");
            transaction.batch_execute(&sql).await?;
        }
        transaction.commit().await?;
        Ok::<_, Fault>(found)
    };
    let found = migrated.await.map_err(step)?;
    let known = MIGRATIONS.len() as i64;
    if found > known { Err(PostgresError::Newer { found, known }) } else { Ok(()) }
}

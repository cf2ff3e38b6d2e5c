//! PostgreSQL as a queue: a row for each message, claimed with `FOR UPDATE SKIP LOCKED`.

use std::{
    fs,
    net::SocketAddr,
    os::unix::{fs::chown, process::CommandExt as _},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Signal, geteuid};
use tempfile::TempDir;
use tokio_postgres::{NoTls, Statement};

use crate::{
    load::{self, Client, Load, Measured},
    scratch::Scratch,
    server::{self, Server},
};

/// The body is kept out of the row, uncompressed: claiming then rewrites a few bytes, not all.
const SCHEMA: &str = "
    CREATE TABLE queue (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        claimed boolean NOT NULL DEFAULT false,
        body bytea NOT NULL
    );
    ALTER TABLE queue ALTER COLUMN body SET STORAGE EXTERNAL;
    CREATE INDEX queue_ready ON queue (id) WHERE NOT claimed;
";
const OFFER: &str = "INSERT INTO queue (body) VALUES ($1)";
const CLAIM: &str = "
    UPDATE queue SET claimed = true
    WHERE id = (
        SELECT id FROM queue WHERE NOT claimed ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1
    )
    RETURNING id, body
";
const COMPLETE: &str = "DELETE FROM queue WHERE id = $1 AND claimed";

const SETTINGS: &[&str] = &[
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "shared_buffers=1GB",
    "max_wal_size=8GB",
    "synchronous_commit=on",
    // Cleaning and checkpoints would fall into others' rounds. Both are work that PostgreSQL is
    // spared here: the table is emptied between rounds instead.
    "autovacuum=off",
    "checkpoint_timeout=1d",
    // A plan made while the table is still empty is kept, and would read the whole table.
    "enable_seqscan=off",
];

pub(crate) struct Postgres {
    address: SocketAddr,
    // Ends before its data is removed.
    _server: Server,
    _home: TempDir,
}

impl Postgres {
    pub(crate) fn version(programs: &Path) -> Result<String> {
        server::version(&programs.join("postgres"), "--version")
    }

    pub(crate) async fn start(
        programs: &Path,
        scratch: &Scratch,
        connections_max: u16,
    ) -> Result<Self> {
        let address = server::free_address()?;
        let owner = Owner::find()?;
        let home = scratch.open_to_others()?;
        owner.take(home.path())?;
        let data = home.path().join("data");
        initialise(owner.command(programs, "initdb", home.path()), &data).await?;

        let mut command = owner.command(programs, "postgres", home.path());
        command.arg("-D").arg(&data).args(["-p", &address.port().to_string()]);
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        // Room for the connection that prepares a round, and for those that are just closing.
        command.args(["-c", &format!("max_connections={}", 2 * u32::from(connections_max) + 20)]);
        let log = scratch.path().join("postgres.log");
        // SIGQUIT ends it without writing out data that is about to be removed.
        let mut server = Server::start("PostgreSQL", &mut command, log, Signal::QUIT)?;
        server.wait_until(async || connect(address).await.is_ok()).await?;
        connect(address).await?.batch_execute(SCHEMA).await.context("cannot make the table")?;
        Ok(Self { address, _server: server, _home: home })
    }

    /// The clients share the connections evenly; statements on one connection are pipelined.
    pub(crate) async fn measure(&self, load: &Load, connections: u16) -> Result<Measured> {
        connect(self.address)
            .await?
            .batch_execute("TRUNCATE queue")
            .await
            .context("cannot empty the table")?;
        let mut sessions = Vec::new();
        for _ in 0..connections {
            sessions.push(Arc::new(Session::open(self.address).await?));
        }
        let body: Arc<[u8]> = load.payload.as_slice().into();
        let clients = (0..usize::from(load.clients))
            .map(|number| RowClient {
                session: Arc::clone(&sessions[number % sessions.len()]),
                body: Arc::clone(&body),
                claimed: 0,
            })
            .collect();
        load::run(clients, load).await
    }
}

async fn initialise(initdb: Command, data: &Path) -> Result<()> {
    let output = tokio::process::Command::from(initdb)
        .arg("-D")
        .arg(data)
        .args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale"])
        .arg("--no-sync")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .context("cannot run initdb")?;
    ensure!(output.status.success(), "initdb: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

async fn connect(address: SocketAddr) -> Result<tokio_postgres::Client> {
    let (client, connection) = tokio_postgres::Config::new()
        .host(address.ip().to_string())
        .port(address.port())
        .user("postgres")
        .dbname("postgres")
        .connect(NoTls)
        .await
        .context("cannot connect")?;
    // Ends when the client is dropped. Its error also reaches whoever waits for an answer.
    tokio::spawn(connection);
    Ok(client)
}

/// Who PostgreSQL runs as: it refuses to run as root.
struct Owner(Option<(u32, u32)>);

impl Owner {
    fn find() -> Result<Self> {
        if !geteuid().is_root() {
            return Ok(Self(None));
        }
        let users = fs::read_to_string("/etc/passwd").context("cannot read the users")?;
        let ids = user_and_group(&users, "postgres").context("there is no user postgres")?;
        Ok(Self(Some(ids)))
    }

    fn take(&self, directory: &Path) -> Result<()> {
        let Some((user, group)) = self.0 else { return Ok(()) };
        chown(directory, Some(user), Some(group)).context("cannot give a directory to postgres")
    }

    /// The working directory is set because the current one may be closed to that user.
    fn command(&self, programs: &Path, program: &str, directory: &Path) -> Command {
        let mut command = Command::new(programs.join(program));
        command.current_dir(directory);
        if let Some((user, group)) = self.0 {
            command.uid(user).gid(group);
        }
        command
    }
}

fn user_and_group(users: &str, name: &str) -> Option<(u32, u32)> {
    let mut fields = users
        .lines()
        .map(|line| line.split(':'))
        .find_map(|mut fields| (fields.next() == Some(name)).then_some(fields))?;
    let user = fields.nth(1)?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    Some((user, group))
}

struct Session {
    client: tokio_postgres::Client,
    offer: Statement,
    claim: Statement,
    complete: Statement,
}

impl Session {
    async fn open(address: SocketAddr) -> Result<Self> {
        let client = connect(address).await?;
        Ok(Self {
            offer: client.prepare(OFFER).await?,
            claim: client.prepare(CLAIM).await?,
            complete: client.prepare(COMPLETE).await?,
            client,
        })
    }
}

struct RowClient {
    session: Arc<Session>,
    body: Arc<[u8]>,
    claimed: i64,
}

impl Client for RowClient {
    async fn offer(&mut self) -> Result<()> {
        let body: &[u8] = &self.body;
        self.session.client.execute(&self.session.offer, &[&body]).await?;
        Ok(())
    }

    async fn claim(&mut self) -> Result<()> {
        // None is rare but possible: what the statement saw may all be claimed by others by the
        // time it looks again, while their own messages came after it began.
        loop {
            if let Some(row) = self.session.client.query_opt(&self.session.claim, &[]).await? {
                self.claimed = row.try_get(0)?;
                let body: &[u8] = row.try_get(1)?;
                ensure!(body.len() == self.body.len(), "the message came back with another size");
                return Ok(());
            }
        }
    }

    async fn complete(&mut self) -> Result<()> {
        let session = &self.session;
        let rows = session.client.execute(&session.complete, &[&self.claimed]).await?;
        ensure!(rows == 1, "the message was not claimed");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_the_whole_name() {
        let users = "postgres2:x:7:8::/:/bin/sh\npostgres:x:101:104:,,,:/home:/bin/bash\n";
        assert_eq!(user_and_group(users, "postgres"), Some((101, 104)));
        assert_eq!(user_and_group(users, "post"), None);
    }
}

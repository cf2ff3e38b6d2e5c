//! A PostgreSQL server and the databases on it.

use std::{
    fs,
    net::SocketAddr,
    os::unix::{fs::chown, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Signal, geteuid};
use tempfile::TempDir;
use tokio_postgres::NoTls;

use crate::{
    scratch::Scratch,
    server::{self, Server},
};

const SETTINGS: &[&str] = &[
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "shared_buffers=1GB",
    "max_wal_size=8GB",
    "fsync=on",
    "synchronous_commit=on",
    // Checkpoints would fall into others' rounds.
    "checkpoint_timeout=1d",
];

pub(crate) struct Postgres {
    maintenance: Database,
    launch: Launch,
    // Ends before its data is removed.
    server: Server,
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
        settings: &[&str],
    ) -> Result<Self> {
        let address = server::free_address()?;
        let owner = Owner::find()?;
        let home = scratch.open_to_others()?;
        owner.take(home.path())?;
        let data = home.path().join("data");
        initialise(owner.command(programs, "initdb", home.path()), &data).await?;

        let mut command = owner.command(programs, "postgres", home.path());
        command.arg("-D").arg(&data).args(["-p", &address.port().to_string()]);
        for setting in SETTINGS.iter().chain(settings) {
            command.args(["-c", setting]);
        }
        // Room for the connection that prepares a round, and for those that are just closing.
        command.args(["-c", &format!("max_connections={}", 2 * u32::from(connections_max) + 20)]);
        let mut launch = Launch { command, log: scratch.path().join("postgres.log") };
        let maintenance = Database { address, name: "postgres".to_owned() };
        let server = launch.run(&maintenance).await?;
        Ok(Self { maintenance, launch, server, _home: home })
    }

    /// Ends it as an operator would, cutting off whoever is connected, and starts it again.
    pub(crate) async fn restart(&mut self) -> Result<()> {
        self.server.stop(Signal::INT).await?;
        self.server = self.launch.run(&self.maintenance).await?;
        Ok(())
    }

    pub(crate) async fn create(&self, name: &str) -> Result<Database> {
        self.maintenance
            .execute(&[&format!("CREATE DATABASE {name}")])
            .await
            .with_context(|| format!("cannot make the database {name}"))?;
        Ok(Database { address: self.maintenance.address, name: name.to_owned() })
    }
}

/// How the server is started, and started again.
struct Launch {
    command: Command,
    log: PathBuf,
}

impl Launch {
    async fn run(&mut self, maintenance: &Database) -> Result<Server> {
        // SIGQUIT ends it without writing out data that is about to be removed.
        let log = self.log.clone();
        let mut server = Server::start("PostgreSQL", &mut self.command, log, Signal::QUIT)?;
        server.wait_until(async || maintenance.connect().await.is_ok()).await?;
        Ok(server)
    }
}

pub(crate) struct Database {
    address: SocketAddr,
    name: String,
}

impl Database {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@{}/{}", self.address, self.name)
    }

    pub(crate) async fn connect(&self) -> Result<tokio_postgres::Client> {
        let (client, connection) =
            tokio_postgres::connect(&self.url(), NoTls).await.context("cannot connect")?;
        // Ends when the client is dropped. Its error also reaches whoever waits for an answer.
        tokio::spawn(connection);
        Ok(client)
    }

    /// Carries out statements one by one, each in a transaction of its own.
    pub(crate) async fn execute(&self, statements: &[&str]) -> Result<()> {
        let client = self.connect().await?;
        for statement in statements {
            client.batch_execute(statement).await?;
        }
        Ok(())
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

// SPDX-License-Identifier: Apache-2.0
//! A PostgreSQL of a test's own: on loopback, on a free port, in a scratch directory, run by an
//! unprivileged user (it refuses root), and ended when the test's process ends, however it ends.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, mpsc};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process, test_kill_process};
use tokio_postgres::NoTls;

const PREFIX: &str = "tasuki-postgres-";
const START_MAX: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

/// Tests lose nothing by a crash of the machine, so the server need not wait for the disk; that it
/// would is what `synchronous_commit` says, and that stays on.
const SETTINGS: [&str; 9] = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "fsync=off",
    "synchronous_commit=on",
    "full_page_writes=off",
    "max_connections=300",
    "shared_buffers=64MB",
    "wal_level=replica",
    "max_wal_senders=4",
];

pub struct Server {
    dir: PathBuf,
    port: u16,
    child: Mutex<Option<Child>>,
    databases: AtomicU32,
    /// What the server finds in its environment, beside what the test has itself.
    environment: Vec<(String, String)>,
}

/// Where the programs of PostgreSQL are: the newest version that Debian's packages put there.
#[must_use]
pub fn programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").expect("PostgreSQL is installed");
    let newest = versions
        .flatten()
        .filter(|version| version.path().join("bin/initdb").exists())
        .filter_map(|version| version.file_name().to_str()?.parse::<u32>().ok())
        .max()
        .expect("PostgreSQL is installed");
    PathBuf::from(format!("/usr/lib/postgresql/{newest}/bin"))
}

/// The one server that the tests of a process share.
pub fn shared() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(Server::start)
}

impl Server {
    /// Makes a cluster and starts it.
    #[must_use]
    pub fn start() -> Self {
        Self::start_in::<&str>(&[])
    }

    /// The same, with more in the server's environment, such as another clock.
    #[must_use]
    pub fn start_in<N: ToString>(environment: &[(N, String)]) -> Self {
        let mut server = Self::made();
        let named = environment.iter().map(|(name, value)| (name.to_string(), value.clone()));
        server.environment = named.collect();
        let data = server.dir.join("data");
        let mut initdb = command("initdb");
        initdb.arg("--no-sync").args(["-U", "postgres", "-A", "trust", "-E", "UTF8"]);
        run(initdb.args(["--locale=C.UTF-8", "-D"]).arg(&data));
        server.up();
        server
    }

    /// Makes a standby that follows another server.
    #[must_use]
    pub fn standby_of(primary: &Self) -> Self {
        let server = Self::made();
        let mut backup = command("pg_basebackup");
        backup.args(["-h", "127.0.0.1", "-U", "postgres", "-p", &primary.port.to_string()]);
        run(backup.args(["-R", "-X", "stream", "-c", "fast", "-D"]).arg(server.dir.join("data")));
        server.up();
        server
    }

    fn made() -> Self {
        clear_away();
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("{PREFIX}{}-{number}", std::process::id()));
        fs::create_dir(&dir).expect("a scratch directory");
        if geteuid().is_root() {
            run(Command::new("chown").arg("postgres:").arg(&dir));
        }
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let port = port.expect("a free port").port();
        Self {
            dir,
            port,
            child: Mutex::new(None),
            databases: AtomicU32::new(0),
            environment: Vec::new(),
        }
    }

    /// Starts the server, if it is not running.
    pub fn up(&self) {
        let mut child = self.child.lock().expect("no holder of this lock panics");
        if child.is_some() {
            return;
        }
        let mut postgres = command_in(&self.environment, "postgres");
        postgres.arg("-D").arg(self.dir.join("data")).args(["-p", &self.port.to_string()]);
        for setting in SETTINGS {
            postgres.args(["-c", setting]);
        }
        let log = fs::File::options().create(true).append(true).open(self.dir.join("log"));
        let log = log.expect("a log file");
        postgres.stdin(Stdio::null()).stdout(log.try_clone().expect("a handle")).stderr(log);
        *child = Some(spawn(postgres));
        drop(child);
        self.wait_until_up();
    }

    fn wait_until_up(&self) {
        let deadline = Instant::now() + START_MAX;
        loop {
            let mut asked = command("pg_isready");
            asked.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
            if asked.status().expect("pg_isready runs").success() {
                return;
            }
            let log = fs::read_to_string(self.dir.join("log")).unwrap_or_default();
            assert!(Instant::now() < deadline, "PostgreSQL does not start:\n{log}");
            std::thread::sleep(PAUSE);
        }
    }

    /// Ends the server: `Signal::INT` lets it finish, `Signal::QUIT` and `Signal::KILL` do not.
    pub fn down(&self, signal: Signal) {
        let child = self.child.lock().expect("no holder of this lock panics").take();
        if let Some(mut child) = child {
            // What was started is `setpriv`, which has become the server itself.
            let _ = kill_process(Pid::from_child(&child), signal);
            let _ = child.wait();
        }
        // After a kill its children live on for a moment, and the next start would refuse.
        let pid_file = self.dir.join("data/postmaster.pid");
        if signal == Signal::KILL {
            let _ = fs::remove_file(pid_file);
        }
    }

    /// Stops and continues the server process and its children.
    pub fn signal(&self, signal: Signal) {
        if let Some(child) = &*self.child.lock().expect("no holder of this lock panics") {
            let _ = kill_process(Pid::from_child(child), signal);
        }
    }

    /// Makes the server take encrypted connections only. Returns the certificate of the authority
    /// that vouches for it.
    pub async fn encrypt(&self) -> PathBuf {
        let (key, certificate) = (self.dir.join("server.key"), self.dir.join("server.crt"));
        let about = "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n";
        fs::write(self.dir.join("about"), about).expect("the file can be written");
        for arguments in [
            "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.crt",
            "req -newkey rsa:2048 -nodes -subj /CN=server -keyout server.key -out server.csr",
            "x509 -req -days 2 -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial \
             -extfile about -out server.crt",
        ] {
            let mut openssl = Command::new("openssl");
            run(openssl.args(arguments.split_whitespace()).current_dir(&self.dir));
        }
        if geteuid().is_root() {
            run(Command::new("chown").arg("postgres:").args([&key, &certificate]));
        }
        run(Command::new("chmod").arg("600").arg(&key));
        for (name, file) in [("ssl_key_file", &key), ("ssl_cert_file", &certificate)] {
            let set = format!("ALTER SYSTEM SET {name} = '{}'", file.display());
            self.run_sql("postgres", &set).await;
        }
        self.run_sql("postgres", "ALTER SYSTEM SET ssl = on").await;
        let only = "hostssl all all 127.0.0.1/32 trust\n";
        fs::write(self.dir.join("data/pg_hba.conf"), only).expect("the file can be written");
        let mut reload = command("pg_ctl");
        run(reload.args(["reload", "-D"]).arg(self.dir.join("data")));
        let deadline = Instant::now() + START_MAX;
        while tokio_postgres::connect(&self.url("postgres"), NoTls).await.is_ok() {
            assert!(Instant::now() < deadline, "the server goes on taking plain connections");
            tokio::time::sleep(PAUSE).await;
        }
        self.dir.join("ca.crt")
    }

    /// Waits until this standby has replayed all that its primary has written so far.
    pub async fn replayed(&self, primary: &Self) {
        let written = primary.ask("SELECT pg_current_wal_lsn()::text").await;
        let sql = format!("SELECT (pg_last_wal_replay_lsn() >= '{written}')::text");
        let deadline = Instant::now() + START_MAX;
        while self.ask(&sql).await != "true" {
            assert!(Instant::now() < deadline, "the standby does not follow");
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Makes a standby hear no more of its primary.
    pub async fn deafen(&self) {
        self.run_sql("postgres", "ALTER SYSTEM SET primary_conninfo = ''").await;
        self.run_sql("postgres", "SELECT pg_reload_conf()").await;
        let deadline = Instant::now() + START_MAX;
        while self.ask("SELECT count(*)::text FROM pg_stat_wal_receiver").await != "0" {
            assert!(Instant::now() < deadline, "the standby goes on listening");
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn ask(&self, sql: &str) -> String {
        let connected = tokio_postgres::connect(&self.url("postgres"), NoTls).await;
        let (db, connection) = connected.expect("the server takes connections");
        let connection = tokio::spawn(connection);
        let row = db.query_one(sql, &[]).await.expect("the question is right");
        connection.abort();
        row.get(0)
    }

    /// Makes a standby the primary.
    pub fn promote(&self) {
        let mut promote = command("pg_ctl");
        run(promote.args(["promote", "-w", "-D"]).arg(self.dir.join("data")));
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Makes a new, empty database and returns its URL.
    pub async fn database(&self) -> String {
        let name = format!("scratch_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.run_sql("postgres", &format!("CREATE DATABASE {name}")).await;
        self.url(&name)
    }

    /// Runs statements that return nothing.
    pub async fn run_sql(&self, database: &str, sql: &str) {
        let connected = tokio_postgres::connect(&self.url(database), NoTls).await;
        let (db, connection) = connected.expect("the server takes connections");
        let connection = tokio::spawn(connection);
        db.batch_execute(sql).await.expect("the statements are right");
        connection.abort();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.down(Signal::QUIT);
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// A program of PostgreSQL, run by somebody who is not root and ended with its parent thread.
fn command(program: &str) -> Command {
    command_in(&[], program)
}

/// The same with more in its environment, which the program that starts it does not see.
fn command_in(environment: &[(String, String)], program: &str) -> Command {
    let program = programs().join(program);
    let set = environment.iter().map(|(name, value)| format!("{name}={value}"));
    if !geteuid().is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig=QUIT", "env"]).args(set).arg(program);
        return command;
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--init-groups", "--pdeathsig=QUIT"]);
    // It would complain about a directory that it may not enter.
    command.arg("env").args(set).arg(program).current_dir("/");
    command
}

/// Starts a process from a thread that never ends: the parent whose end it must not outlive is a
/// thread, and the one of a test ends with its test.
fn spawn(mut command: Command) -> Child {
    let (send, spawned) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = send.send(command.spawn());
        loop {
            std::thread::park();
        }
    });
    spawned.recv().expect("the thread answers").expect("PostgreSQL can be started")
}

fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().expect("the program can be run");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {words}");
}

/// Removes what earlier processes left behind.
fn clear_away() {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else { return };
    for entry in entries.flatten() {
        let left = owner_of(&entry.path());
        if let Some(pid) = left.and_then(Pid::from_raw)
            && test_kill_process(pid).is_err()
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn owner_of(path: &Path) -> Option<i32> {
    let rest = path.file_name()?.to_str()?.strip_prefix(PREFIX)?;
    rest.split('-').next()?.parse().ok()
}

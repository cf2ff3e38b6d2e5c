// SPDX-License-Identifier: Apache-2.0
//! `tasuki serve`: opens the store, starts the engine, opens the doors, and ends all of it in the
//! opposite order.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use serde::Serialize;
use tasuki_core::identity::SecretKey;
use tasuki_engine::{Engine, SystemIds};
use tasuki_front::{Front, around};
use tasuki_http::{Doorway, Poster, SystemResolver};
use tasuki_store::key::SigningKey;
use tasuki_store::postgres::{self, DatabaseClock};
use tasuki_store::{Postgres, PostgresOptions, Sqlite, SqliteOptions, Store, Sync, SystemClock};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tracing_subscriber::EnvFilter;

use super::pipeline;
use crate::config::{Config, Keys, LogFormat};
use crate::exit::{Exit, Failure};
use crate::output::{Facts, Output, tell};
use crate::tls::{self, Secured};

#[derive(Args)]
pub(crate) struct Serve {
    /// The configuration file [default: ./tasuki.toml if there is one]
    #[arg(long, env = "TASUKI_CONFIG", hide_env_values = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// End when standard input does, so that the broker does not outlive the program that holds it open
    #[arg(long)]
    until_stdin_closes: bool,
    /// The port to listen on, instead of the one in the address; 0 takes a free one
    #[arg(long, env = "TASUKI_PORT", hide_env_values = true, value_name = "PORT")]
    port: Option<u16>,
    #[command(flatten)]
    keys: Keys,
}

impl Serve {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        let mut config = self.keys.resolve(self.config.as_deref())?;
        if let Some(port) = self.port {
            config.listen.set_port(port);
        }
        start_log(&config)?;
        allow_address(&mut config)?;
        if config.sync == Sync::Off {
            tell(
                "WARNING: sync is off. This is for measuring only: a power cut loses work that \
                 was acknowledged as stored.",
            );
        }
        let input = self.until_stdin_closes.then(end_of_input);
        run(config, Signals::listen(input)?, |greeting| greet(output, greeting)).await
    }
}

/// Runs a broker until a signal, and says when it is ready.
pub(super) async fn run(
    mut config: Config,
    mut signals: Signals,
    greet: impl FnOnce(&Greeting),
) -> anyhow::Result<Exit> {
    let secured = tls::open(&config)?;
    let store = tokio::select! {
        opened = open(&config) => opened?,
        // Nothing was promised to anybody yet.
        name = signals.next() => end_at_once(name),
    };
    let key = Arc::new(SecretKey::from_seed(own_key(&config.data)?.to_bytes()));
    if !config.settings.open {
        config.settings.signer = Some(key.clone());
    }
    let pipelines = config.pipelines.as_deref().map(pipeline::read).transpose()?;
    config.settings.key = Some(key.public());
    let engine = Engine::start(store, Arc::new(SystemIds), config.settings.clone());
    engine.introduce().await?;
    let guard = config.settings.guard.clone();
    let poster = Arc::new(Poster::new(guard, Some(key), Arc::new(SystemResolver)));
    engine.start_deliveries(poster.clone());
    engine.start_alerts(poster);
    if let (Some(file), Some(pipelines)) = (config.pipelines.clone(), pipelines) {
        engine.declare_pipelines(pipelines).await?;
        let following = follow(Arc::downgrade(&engine), file);
        engine.start_worker("reader of pipelines", following);
    }
    let listener = match listen(config.listen).await {
        Ok(listener) => listener,
        Err(failure) => {
            engine.close().await;
            return Err(failure.into());
        }
    };
    if let Some(secured) = &secured {
        engine.start_worker("reader of the certificate", secured.follow());
    }
    let first = if config.settings.open { None } else { identify(&engine, &config).await? };
    greet(&Greeting::new(&config, listener.local_addr()?, first, secured.as_ref()));
    tokio::select! {
        biased;
        failure = engine.failed() => die(&failure),
        () = serve(&engine, listener, &config, secured.as_ref(), &mut signals) => {}
    }
    tracing::info!("ended");
    Ok(Exit::Done)
}

/// Opens the store that the configuration names.
pub(super) async fn open(config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    let Some(url) = config.store_url() else {
        let options = SqliteOptions { dir: config.data.clone(), sync: config.sync };
        return Ok(Arc::new(Sqlite::open(options, SystemClock::start()).await?));
    };
    let row_key = config.row_key.as_deref().map(row_key).transpose()?;
    let options = PostgresOptions {
        row_key,
        dir: Some(config.data.clone()),
        ca: config.store_ca.clone(),
        pooler: config.store_pooler,
        connections_max: config.store_connections,
        retain: (config.store_retain_days > 0)
            .then(|| Duration::from_secs(24 * 60 * 60) * config.store_retain_days),
        ..PostgresOptions::new(url, own_key(&config.data)?)
    };
    Ok(Arc::new(Postgres::open(options, DatabaseClock::start()).await?))
}

/// How often a file that may change is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Declares the pipelines of a file anew whenever it changes. A file with mistakes changes nothing;
/// what is wrong with it stands in the log.
async fn follow(engine: std::sync::Weak<Engine>, file: PathBuf) {
    let changed = |file: &Path| std::fs::metadata(file).and_then(|it| it.modified()).ok();
    let mut last = changed(&file);
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let now = changed(&file);
        if now == last {
            continue;
        }
        last = now;
        let Some(engine) = engine.upgrade() else { return };
        let declared = match pipeline::read(&file) {
            Ok(read) => engine.declare_pipelines(read).await.map_err(anyhow::Error::from),
            Err(error) => Err(error),
        };
        match declared {
            Ok(()) => tracing::info!(file = %file.display(), "pipelines were declared anew"),
            Err(error) => tracing::error!(%error, "pipelines stay as they were"),
        }
    }
}

/// The key that signs checkpoints is the broker's own, wherever its work is kept.
pub(crate) fn own_key(dir: &Path) -> anyhow::Result<SigningKey> {
    let made = tasuki_store::private::directory(dir).and_then(|()| tasuki_store::key::load(dir));
    made.with_context(|| format!("cannot read or make the broker's key in {}", dir.display()))
}

/// The secret that all brokers of a database cover its rows with.
fn row_key(path: &Path) -> anyhow::Result<[u8; 32]> {
    tasuki_store::key::secret(path)
        .with_context(|| format!("cannot read or make the row key {}", path.display()))
}

/// Serves until a signal, lets what is under way finish, and writes everything down. A second
/// signal ends the process at once, which loses nothing that was acknowledged.
async fn serve(
    engine: &Arc<Engine>,
    listener: TcpListener,
    config: &Config,
    secured: Option<&Secured>,
    signals: &mut Signals,
) {
    let front = Front::new(engine.clone(), config.limits.clone());
    let doors = tasuki_http::routes().merge(tasuki_mcp::routes(&front)).merge(tasuki_a2a::routes());
    let router = around(doors, &front).with_state(front);
    let (end, ended) = oneshot::channel::<()>();
    let mut places = config.limits.connections;
    if config.behind_proxy {
        // Everybody comes from its address.
        places.per_address = 0;
    }
    let tls = secured.map(|secured| secured.tls.clone());
    let doorway = Doorway { tls, ..Doorway::of(places) };
    let serving = tasuki_http::serve_by(doorway, listener, router, async {
        // A sender that is gone means the same.
        let _ = ended.await;
    });
    let closing = async {
        serving.await;
        engine.close().await;
    };
    tokio::pin!(closing);
    tokio::select! {
        () = &mut closing => return,
        name = signals.next() => tracing::info!("{name}: ending; once more ends at once"),
    }
    engine.end_waits();
    drop(end);
    tokio::select! {
        () = &mut closing => {}
        name = signals.next() => end_at_once(name),
    }
}

fn end_at_once(signal: &str) -> ! {
    tracing::warn!("{signal}: ending at once");
    crate::scratch::sweep();
    // What a shell says of a process that such a signal ended.
    std::process::exit(if signal == "SIGINT" { 130 } else { 143 })
}

/// The store can no longer be trusted to remember, or something that works in the background is
/// gone, so nothing more may be acknowledged.
fn die(failure: &tasuki_engine::Failure) -> ! {
    let hint = match failure {
        tasuki_engine::Failure::Store(_) => {
            "check the disk and its free space, then start again; nothing acknowledged is lost"
        }
        tasuki_engine::Failure::Worker { .. } => {
            "start again; nothing acknowledged is lost. This is a mistake in the broker: please \
             report it with what the log says"
        }
    };
    let failure = Failure::new(Exit::Io, failure.to_string(), hint).next("tasuki doctor");
    tell(&failure.to_string());
    crate::scratch::sweep();
    std::process::exit(Exit::Io as i32)
}

pub(super) fn start_log(config: &Config) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(&config.log).map_err(|error| {
        let hint = "give a level such as info, or levels by module: info,tasuki_store=debug";
        Failure::usage(format!("the log filter {:?} does not fit: {error}", config.log), hint)
    })?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match config.log_format {
        LogFormat::Human => {
            let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
            log.with_ansi(colours).with_target(false).init();
        }
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
    Ok(())
}

/// Without authentication whoever can reach the broker can act as any agent.
fn allow_address(config: &mut Config) -> Result<(), Failure> {
    let ip = config.listen.ip();
    if ip.is_loopback() {
        return Ok(());
    }
    if config.settings.open {
        return Err(Failure::usage(
            format!(
                "will not listen on {} without authentication: whoever can reach it could act as \
                 any agent",
                config.listen
            ),
            "listen on a loopback address, or ask everybody who they are with --auth required",
        )
        .next(format!("tasuki serve --listen {} --auth required", config.listen)));
    }
    if config.tls_files.is_none() && !config.self_signed && !config.behind_proxy {
        return Err(Failure::usage(
            format!(
                "will not listen on {} without TLS: tokens and work could be read on the way",
                config.listen
            ),
            "give a certificate with --tls-cert and --tls-key, try it out with --tls self-signed, or \
             say with --behind-proxy that a proxy in front ends TLS",
        )
        .next(format!("tasuki serve --listen {} --auth required --tls self-signed", config.listen)));
    }
    if !ip.is_unspecified() {
        config.limits.hosts.push(ip.to_string());
    }
    Ok(())
}

/// The file in the data directory that the first administrator's token is written to.
const ADMINISTRATOR: &str = "admin.token";

/// Makes a new token for the first administrator of a broker that does not run.
pub(super) async fn recover(config: &Config) -> anyhow::Result<PathBuf> {
    let store = open(config).await?;
    let settings = tasuki_engine::Settings { open: false, ..config.settings.clone() };
    let engine = Engine::start(store, Arc::new(SystemIds), settings);
    let token = engine.recover_administrator().await;
    engine.close().await;
    write_token(config, &token?)
}

fn write_token(config: &Config, token: &str) -> anyhow::Result<PathBuf> {
    let path = config.data.join(ADMINISTRATOR);
    let written = tasuki_store::private::directory(&config.data)
        .and_then(|()| crate::private_file(&path, &format!("{token}\n")));
    written
        .with_context(|| format!("cannot write the administrator's token to {}", path.display()))?;
    Ok(path)
}

/// Makes sure that somebody can administer this broker. Returns where the token is, if it was made
/// now.
async fn identify(engine: &Engine, config: &Config) -> anyhow::Result<Option<PathBuf>> {
    // A signature is dated by the second, so those of the second in which this broker began are
    // refused. Nobody should notice that.
    engine.wait_for_next_second().await;
    let Some(token) = engine.first_administrator().await? else { return Ok(None) };
    Ok(Some(write_token(config, &token)?))
}

async fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| {
        let message = format!("cannot listen on {address}: {error}");
        if error.kind() != std::io::ErrorKind::AddrInUse {
            let hint = "choose another address with --listen";
            return Failure::new(Exit::Unavailable, message, hint);
        }
        let port = address.port().checked_add(1).unwrap_or(8788);
        let hint = "another process listens there; stop it, or choose another port";
        Failure::new(Exit::InUse, message, hint)
            .next(format!("tasuki serve --listen {}", SocketAddr::new(address.ip(), port)))
    })
}

#[derive(Serialize)]
pub(super) struct Greeting {
    pub(super) version: &'static str,
    data: String,
    pub(super) api: String,
    pub(super) mcp: String,
    pub(super) docs: String,
    health: String,
    auth: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_pin: Option<String>,
    status: &'static str,
}

impl Greeting {
    fn new(
        config: &Config,
        mut at: SocketAddr,
        administrator: Option<PathBuf>,
        secured: Option<&Secured>,
    ) -> Self {
        let scheme = if secured.is_some() { "https" } else { "http" };
        // Where it listens everywhere, people on this machine reach it by loopback.
        if at.ip().is_unspecified() {
            at.set_ip(if at.is_ipv4() {
                Ipv4Addr::LOCALHOST.into()
            } else {
                Ipv6Addr::LOCALHOST.into()
            });
        }
        Self {
            version: env!("CARGO_PKG_VERSION"),
            data: match &config.store {
                Some(url) => postgres::without_password(url),
                None => config.data.display().to_string(),
            },
            api: format!("{scheme}://{at}/v1"),
            mcp: format!("{scheme}://{at}{}", tasuki_mcp::PATH),
            docs: format!("{scheme}://{at}/docs"),
            health: format!("{scheme}://{at}/readyz"),
            auth: match administrator {
                _ if config.settings.open => {
                    "off: whoever is on this machine can act as any agent".into()
                }
                None => "required".into(),
                Some(path) => {
                    format!(
                        "required; the administrator's token is in {} and counts for 30 days",
                        path.display()
                    )
                }
            },
            tls_pin: secured.map(|secured| secured.pin.to_string()),
            status: "ready",
        }
    }
}

fn greet(output: Output, greeting: &Greeting) {
    let for_people = |greeting: &Greeting| {
        let facts = Facts::default()
            .with("data", &greeting.data)
            .with("API", &greeting.api)
            .with("MCP", &greeting.mcp)
            .with("docs", &greeting.docs)
            .with("health", &greeting.health)
            .with("auth", &greeting.auth)
            .maybe("TLS pin", greeting.tls_pin.as_ref());
        format!("tasuki {}\n{}{}\n", greeting.version, facts.text(), greeting.status)
    };
    // A broker whose stdout is closed serves all the same.
    let _ = output.found(greeting, for_people);
}

pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Where the end of something else counts, such as standard input, until it has ended.
    input: Option<oneshot::Receiver<()>>,
}

impl Signals {
    /// `input` ends the broker as a signal does.
    pub(super) fn listen(input: Option<oneshot::Receiver<()>>) -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            input,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
            () = closed(&mut self.input) => "the end of what it was started for",
        }
    }
}

/// Tells when there is no more input. A thread of its own waits, because nothing can end a read.
fn end_of_input() -> oneshot::Receiver<()> {
    let (tell, ended) = oneshot::channel();
    // Not watched: it ends the process, and does nothing else.
    std::thread::spawn(move || {
        // However it ends, nobody holds it open any more.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        let _ = tell.send(());
    });
    ended
}

/// It ends once; after that there is nothing to wait for.
async fn closed(input: &mut Option<oneshot::Receiver<()>>) {
    match input {
        Some(ended) => {
            let _ = ended.await;
            *input = None;
        }
        None => std::future::pending().await,
    }
}

// SPDX-License-Identifier: Apache-2.0
//! What `tasuki serve` is told: by a file, then the environment, then flags; the later wins. One
//! struct is all three of them, so that no key can exist in one only.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use tasuki_core::address::Guard;
use tasuki_core::assembly::Profiles;
use tasuki_core::breaker::Limits as Breakers;
use tasuki_core::{Terms, secrets};
use tasuki_engine::{ProjectDecisions, Settings, WEBHOOKS_MAX, Webhooks};
use tasuki_http::{Limits, Places, WaitLimits};
use tasuki_store::Sync;
use tasuki_store::postgres::{password_in, with_password};

use crate::exit::Failure;
use crate::tls;

/// Read where no other file is named.
const FILE: &str = "tasuki.toml";
/// Has the password for PostgreSQL, where the URL has none.
pub(crate) const STORE_PASSWORD: &str = "TASUKI_STORE_PASSWORD";
/// More connections than this no machine holds.
const CONNECTIONS_MAX: usize = 1_000_000;

/// Structs of keys. A source that is silent about a key leaves it to the next source; what follows
/// the `=` holds where all of them are silent.
macro_rules! keys {
    ($(
        $(#[$about:meta])*
        $vis:vis struct $Keys:ident {
            $($(#[$key_about:meta])* $key_vis:vis $key:ident: $type:ty $(= $default:expr)?,)*
            $(..$group:ident: $Group:ident,)*
        }
    )*) => {$(
        #[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        $(#[$about])*
        $vis struct $Keys {
            $($(#[$key_about])* $key_vis $key: Option<$type>,)*
            $(#[command(flatten)] $group: $Group,)*
        }

        impl $Keys {
            pub(crate) fn defaults() -> Self {
                Self {
                    $($key: keys!(@default $($default)?),)*
                    $($group: $Group::defaults(),)*
                }
            }

            fn or(self, other: Self) -> Self {
                Self {
                    $($key: self.$key.or(other.$key),)*
                    $($group: self.$group.or(other.$group),)*
                }
            }
        }
    )*};
    (@default) => { None };
    (@default $default:expr) => { Some($default) };
}

keys! {
    /// Every key. What is silent is left to the next source.
    pub(crate) struct Keys {
        /// Where the data is kept [default: ./tasuki-data]
        #[arg(long, env = "TASUKI_DATA", hide_env_values = true, value_name = "DIR")]
        pub(crate) data: PathBuf = "./tasuki-data".into(),
        /// Where the work is kept: a PostgreSQL that several brokers may share, as
        /// `postgres://user@host/database`; the data directory without it [default: none]
        #[arg(long, env = "TASUKI_STORE", hide_env_values = true, value_name = "URL")]
        pub(crate) store: String,
        /// A file with certificates of authorities that vouch for the PostgreSQL server, instead of the
        /// system's [default: none]
        #[arg(long, env = "TASUKI_STORE_CA", hide_env_values = true, value_name = "FILE")]
        store_ca: PathBuf,
        /// A file with the password for PostgreSQL, which others cannot read. TASUKI_STORE_PASSWORD does
        /// as well; a password on the command line is hidden from the list of processes [default: none]
        #[arg(long, env = "TASUKI_STORE_PASSWORD_FILE", hide_env_values = true, value_name = "FILE")]
        store_password_file: PathBuf,
        /// A file with the secret that the rows of a PostgreSQL are covered with, the same for all its brokers;
        /// it is made where it is not there. Without it the rows are believed [default: none]
        #[arg(long, env = "TASUKI_ROW_KEY", hide_env_values = true, value_name = "FILE")]
        row_key: PathBuf,
        /// Whether the URL leads to a pooler that gives every transaction another connection, such as
        /// PgBouncer in transaction mode [default: false]
        #[arg(
            long,
            env = "TASUKI_STORE_POOLER",
            hide_env_values = true,
            value_name = "BOOL",
            num_args = 0..=1,
            default_missing_value = "true"
        )]
        store_pooler: bool = false,
        /// How many connections to PostgreSQL this broker holds at most [default: 16]
        #[arg(long, env = "TASUKI_STORE_CONNECTIONS", hide_env_values = true, value_name = "N")]
        store_connections: usize = 16,
        /// How many days PostgreSQL keeps the history of finished work; 0 keeps it for ever
        /// [default: 0]
        #[arg(long, env = "TASUKI_STORE_RETAIN_DAYS", hide_env_values = true, value_name = "DAYS")]
        store_retain_days: u32 = 0,
        /// The address to listen on; port 0 takes a free one [default: 127.0.0.1:8788]
        #[arg(long, env = "TASUKI_LISTEN", hide_env_values = true, value_name = "ADDRESS")]
        listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 8788)),
        /// A host that requests may name, besides loopback; may be repeated [default: none]
        #[arg(
            long = "host",
            env = "TASUKI_HOSTS",
            hide_env_values = true,
            value_name = "NAME",
            value_delimiter = ','
        )]
        hosts: Vec<String> = Limits::default().hosts,
        /// Whether requests must show who they are from. Only a loopback address goes without
        /// [default: off]
        #[arg(long, env = "TASUKI_AUTH", hide_env_values = true, value_name = "MODE")]
        auth: AuthMode = AuthMode::Off,
        /// How connections are secured: `self-signed` makes a certificate in the data directory at the first
        /// start, for trying out; clients pin its fingerprint [default: off]
        #[arg(long, env = "TASUKI_TLS", hide_env_values = true, value_name = "MODE")]
        tls: TlsMode = TlsMode::Off,
        /// The broker's certificate with its chain, in PEM form. It is read again when it changes
        /// [default: none]
        #[arg(long, env = "TASUKI_TLS_CERT", hide_env_values = true, value_name = "FILE")]
        tls_cert: PathBuf,
        /// The key of the certificate, in PEM form, which others cannot read [default: none]
        #[arg(long, env = "TASUKI_TLS_KEY", hide_env_values = true, value_name = "FILE")]
        tls_key: PathBuf,
        /// Whether a proxy in front of the broker ends TLS, or nobody else is on its network. Without that or
        /// TLS only a loopback address is listened on [default: false]
        #[arg(
            long,
            env = "TASUKI_BEHIND_PROXY",
            hide_env_values = true,
            value_name = "BOOL",
            num_args = 0..=1,
            default_missing_value = "true"
        )]
        behind_proxy: bool = false,
        /// What is done about secrets in memories, shared contexts and payloads: `block` refuses what is
        /// certain and warns of what is likely, `warn` only warns [default: block]
        #[arg(long, env = "TASUKI_SECRETS", hide_env_values = true, value_name = "POLICY")]
        secrets: SecretsPolicy = SecretsPolicy::Block,
        /// What is done about envelopes that decide otherwise than the log of their project: `bind` refuses
        /// them, `tell` lets them pass and tells their sender [default: bind]
        #[arg(long, env = "TASUKI_PROJECT_DECISIONS", hide_env_values = true, value_name = "POLICY")]
        project_decisions: DecisionsPolicy = DecisionsPolicy::Bind,
        /// A file of pipelines: routes that tasks run along. It is read again when it changes
        /// [default: none]
        #[arg(long, env = "TASUKI_PIPELINES", hide_env_values = true, value_name = "FILE")]
        pipelines: PathBuf,
        /// How many hops a chain may have before it ends as a dead letter [default: 10]
        #[arg(long, env = "TASUKI_HOPS_MAX", hide_env_values = true, value_name = "N")]
        hops_max: u32 = Settings::default().hops_max,
        /// Addresses to which the broker may deliver besides public ones, such as 10.1.0.0/16; may be
        /// repeated [default: none]
        #[arg(
            long = "webhook-allow",
            env = "TASUKI_WEBHOOK_ALLOW",
            hide_env_values = true,
            value_name = "CIDR",
            value_delimiter = ','
        )]
        webhook_allow: Vec<String> = Vec::new(),
        /// A URL to which notices of alerts are posted, in the form of Alertmanager's webhooks; may be
        /// repeated [default: none]
        #[arg(
            long = "alert-webhook",
            env = "TASUKI_ALERT_WEBHOOKS",
            hide_env_values = true,
            value_name = "URL",
            value_delimiter = ','
        )]
        alert_webhooks: Vec<String> = Vec::new(),
        /// Where people find this broker, for the links in notices [default: none]
        #[arg(long, env = "TASUKI_EXTERNAL_URL", hide_env_values = true, value_name = "URL")]
        external_url: String = String::new(),
        /// A JSON file that says what receivers want to see, by their role; the built-in profiles hold for
        /// roles that it does not name [default: none]
        #[arg(long, env = "TASUKI_PROFILES", hide_env_values = true, value_name = "FILE")]
        profiles: PathBuf,
        /// Which log lines to write, such as `warn` or `info,tasuki_store=debug` [default: info]
        #[arg(long, env = "TASUKI_LOG", hide_env_values = true, value_name = "FILTER")]
        log: String = "info".into(),
        /// The form of log lines [default: human]
        #[arg(long, env = "TASUKI_LOG_FORMAT", hide_env_values = true, value_name = "FORMAT")]
        log_format: LogFormat = LogFormat::Human,
        /// Whether a commit waits for the disk. For measuring only: `off` loses acknowledged work in a
        /// power cut [default: full]
        #[arg(long, env = "TASUKI_SYNC", hide_env_values = true, value_name = "MODE")]
        sync: SyncMode = SyncMode::Full,
        /// How long a handoff may take from offer to end, in milliseconds [default: 86400000]
        #[arg(long, env = "TASUKI_EXPIRES_IN_MS", hide_env_values = true, value_name = "MS")]
        expires_in_ms: u64 = Settings::default().expires_in_ms,
        ..terms: TermKeys,
        ..breakers: BreakerKeys,
        ..limits: LimitKeys,
    }

    /// The terms of handoffs whose offer names none.
    #[command(next_help_heading = "Terms of handoffs whose offer names none")]
    struct TermKeys {
        /// How long a claim holds without a heartbeat, in milliseconds [default: 30000]
        #[arg(
            id = "terms.lease_ms",
            long = "terms-lease-ms",
            env = "TASUKI_TERMS_LEASE_MS",
            hide_env_values = true,
            value_name = "MS"
        )]
        lease_ms: u64 = Terms::default().lease_ms,
        /// How long one attempt may take in all, in milliseconds [default: 3600000]
        #[arg(
            id = "terms.work_ms",
            long = "terms-work-ms",
            env = "TASUKI_TERMS_WORK_MS",
            hide_env_values = true,
            value_name = "MS"
        )]
        work_ms: u64 = Terms::default().work_ms,
        /// How many attempts may fail before a handoff is dead-lettered [default: 3]
        #[arg(
            id = "terms.attempts",
            long = "terms-attempts",
            env = "TASUKI_TERMS_ATTEMPTS",
            hide_env_values = true,
            value_name = "N"
        )]
        attempts: u32 = Terms::default().attempts,
        /// How many leases in a row may be lost before a handoff is quarantined [default: 3]
        #[arg(
            id = "terms.losses",
            long = "terms-losses",
            env = "TASUKI_TERMS_LOSSES",
            hide_env_values = true,
            value_name = "N"
        )]
        losses: u32 = Terms::default().losses,
        /// The longest pause before a retry, in milliseconds [default: 30000]
        #[arg(
            id = "terms.backoff_ms",
            long = "terms-backoff-ms",
            env = "TASUKI_TERMS_BACKOFF_MS",
            hide_env_values = true,
            value_name = "MS"
        )]
        backoff_ms: u64 = Terms::default().backoff_ms,
    }

    /// When nothing more goes to an agent that fails.
    #[command(next_help_heading = "Breakers of agents that fail")]
    struct BreakerKeys {
        /// How many handoffs in a row must use up their tries before nothing more goes to an agent
        /// [default: 3]
        #[arg(
            id = "breakers.failures",
            long = "breakers-failures",
            env = "TASUKI_BREAKERS_FAILURES",
            hide_env_values = true,
            value_name = "N"
        )]
        failures: u32 = Breakers::default().failures,
        /// How long nothing goes to it then, in milliseconds [default: 60000]
        #[arg(
            id = "breakers.open_ms",
            long = "breakers-open-ms",
            env = "TASUKI_BREAKERS_OPEN_MS",
            hide_env_values = true,
            value_name = "MS"
        )]
        open_ms: u64 = Breakers::default().open_ms,
    }

    /// What one client may ask of the broker.
    #[command(next_help_heading = "Limits")]
    struct LimitKeys {
        /// The largest request body, in bytes [default: 1048576]
        #[arg(
            id = "limits.body_bytes_max",
            long = "limits-body-bytes-max",
            env = "TASUKI_LIMITS_BODY_BYTES_MAX",
            hide_env_values = true,
            value_name = "BYTES"
        )]
        body_bytes_max: usize = Limits::default().body_bytes_max,
        /// How many requests one address may send in a second; 0 is no limit [default: 0]
        #[arg(
            id = "limits.requests_per_second",
            long = "limits-requests-per-second",
            env = "TASUKI_LIMITS_REQUESTS_PER_SECOND",
            hide_env_values = true,
            value_name = "N"
        )]
        requests_per_second: u32 = Limits::default().requests_per_second,
        /// How many connections there may be at once [default: 10000]
        #[arg(
            id = "limits.connections_max",
            long = "limits-connections-max",
            env = "TASUKI_LIMITS_CONNECTIONS_MAX",
            hide_env_values = true,
            value_name = "N"
        )]
        connections_max: usize = Places::default().max,
        /// How many connections one address may have at once, where it is not of this machine and no
        /// proxy is declared; 0 is no limit of its own [default: 1000]
        #[arg(
            id = "limits.connections_per_address",
            long = "limits-connections-per-address",
            env = "TASUKI_LIMITS_CONNECTIONS_PER_ADDRESS",
            hide_env_values = true,
            value_name = "N"
        )]
        connections_per_address: usize = Places::default().per_address,
        /// How many connections one agent may have at once [default: 1024]
        #[arg(
            id = "limits.connections_per_agent",
            long = "limits-connections-per-agent",
            env = "TASUKI_LIMITS_CONNECTIONS_PER_AGENT",
            hide_env_values = true,
            value_name = "N"
        )]
        connections_per_agent: usize = Places::default().per_agent,
        /// How many connections one tenant may have at once [default: 8192]
        #[arg(
            id = "limits.connections_per_tenant",
            long = "limits-connections-per-tenant",
            env = "TASUKI_LIMITS_CONNECTIONS_PER_TENANT",
            hide_env_values = true,
            value_name = "N"
        )]
        connections_per_tenant: usize = Places::default().per_tenant,
        /// How many waits and streams one agent may have at once [default: 1024]
        #[arg(
            id = "limits.waits_per_agent",
            long = "limits-waits-per-agent",
            env = "TASUKI_LIMITS_WAITS_PER_AGENT",
            hide_env_values = true,
            value_name = "N"
        )]
        waits_per_agent: usize = WaitLimits::default().per_agent,
        /// How many waits and streams one tenant may have at once [default: 8192]
        #[arg(
            id = "limits.waits_per_tenant",
            long = "limits-waits-per-tenant",
            env = "TASUKI_LIMITS_WAITS_PER_TENANT",
            hide_env_values = true,
            value_name = "N"
        )]
        waits_per_tenant: usize = WaitLimits::default().per_tenant,
        /// How many waits and streams one address may have at once; 0 is no limit of its own [default: 0]
        #[arg(
            id = "limits.waits_per_address",
            long = "limits-waits-per-address",
            env = "TASUKI_LIMITS_WAITS_PER_ADDRESS",
            hide_env_values = true,
            value_name = "N"
        )]
        waits_per_address: usize = WaitLimits::default().per_address,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LogFormat {
    Human,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SyncMode {
    Full,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AuthMode {
    Required,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TlsMode {
    Off,
    SelfSigned,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SecretsPolicy {
    Block,
    Warn,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DecisionsPolicy {
    Bind,
    Tell,
}

impl From<DecisionsPolicy> for ProjectDecisions {
    fn from(policy: DecisionsPolicy) -> Self {
        match policy {
            DecisionsPolicy::Bind => Self::Bind,
            DecisionsPolicy::Tell => Self::Tell,
        }
    }
}

impl From<SecretsPolicy> for secrets::Policy {
    fn from(policy: SecretsPolicy) -> Self {
        match policy {
            SecretsPolicy::Block => Self::Block,
            SecretsPolicy::Warn => Self::Warn,
            SecretsPolicy::Off => Self::Off,
        }
    }
}

/// Everything settled.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) data: PathBuf,
    /// A PostgreSQL, and how it is used.
    pub(crate) store: Option<String>,
    pub(crate) store_ca: Option<PathBuf>,
    pub(crate) row_key: Option<PathBuf>,
    /// What the URL does not say.
    store_password: Option<String>,
    pub(crate) store_pooler: bool,
    pub(crate) store_connections: usize,
    pub(crate) store_retain_days: u32,
    pub(crate) listen: SocketAddr,
    pub(crate) tls_files: Option<tls::Files>,
    pub(crate) self_signed: bool,
    pub(crate) behind_proxy: bool,
    pub(crate) log: String,
    pub(crate) log_format: LogFormat,
    pub(crate) sync: Sync,
    pub(crate) pipelines: Option<PathBuf>,
    pub(crate) settings: Settings,
    pub(crate) limits: Limits,
}

impl Keys {
    /// Only where the data is kept; everything else is left to the file and the defaults.
    pub(crate) fn on(data: PathBuf) -> Self {
        Self { data: Some(data), ..Self::default() }
    }

    /// Puts the sources together; `self` is flags and environment.
    pub(crate) fn resolve(self, file: Option<&Path>) -> Result<Config, Failure> {
        self.or(Self::read(file)?).alone()
    }

    /// What a broker for trying things out says by itself.
    pub(crate) fn for_trying(data: PathBuf, port: u16, log: String) -> Self {
        let listen = Some(SocketAddr::from(([127, 0, 0, 1], port)));
        Self { data: Some(data), listen, log: Some(log), ..Self::default() }
    }

    /// What holds with these settings and the defaults, whatever files there are.
    pub(crate) fn alone(self) -> Result<Config, Failure> {
        let keys = self.or(Self::defaults());
        let guard = guard(keys.webhook_allow.as_deref().unwrap_or_default())?;
        let profiles = keys.profiles.clone();
        let tls_files = tls_files(keys.tls_cert.clone(), keys.tls_key.clone())?;
        let store_password = store_password(keys.store_password_file.as_deref())?;
        let mut config = keys.complete().expect("the defaults have every key");
        config.settings.guard = guard;
        config.store_password = store_password;
        config.tls_files = tls_files;
        if let Some(path) = profiles {
            config.settings.profiles = Arc::new(read_profiles(&path)?);
        }
        config.checked()
    }

    /// The file that was named, or the one in this directory if there is one.
    fn read(file: Option<&Path>) -> Result<Self, Failure> {
        let path = match file {
            Some(path) => path,
            None if Path::new(FILE).exists() => Path::new(FILE),
            None => return Ok(Self::default()),
        };
        let name = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| {
            let hint = "name a file that can be read with --config, or leave it out";
            Failure::usage(format!("cannot read the configuration file {name}: {error}"), hint)
        })?;
        let keys: Self = toml::from_str(&text).map_err(|error| {
            let message = format!("the configuration file {name} has a mistake: {error}");
            Failure::usage(
                message.trim_end(),
                "docs/reference/configuration.md describes every key; `tasuki serve --help` too",
            )
        })?;
        if keys.store.as_deref().is_some_and(|url| password_in(url).is_some()) {
            check_secret(path)?;
        }
        Ok(keys)
    }

    fn complete(self) -> Option<Config> {
        let terms = Terms {
            lease_ms: self.terms.lease_ms?,
            work_ms: self.terms.work_ms?,
            attempts: self.terms.attempts?,
            losses: self.terms.losses?,
            backoff_ms: self.terms.backoff_ms?,
            ack_ms: None,
        };
        Some(Config {
            data: self.data?,
            store: self.store,
            store_ca: self.store_ca,
            row_key: self.row_key,
            store_password: None,
            store_pooler: self.store_pooler?,
            store_connections: self.store_connections?,
            store_retain_days: self.store_retain_days?,
            listen: self.listen?,
            tls_files: None,
            self_signed: self.tls? == TlsMode::SelfSigned,
            behind_proxy: self.behind_proxy?,
            log: self.log?,
            log_format: self.log_format?,
            sync: match self.sync? {
                SyncMode::Full => Sync::Full,
                SyncMode::Off => Sync::Off,
            },
            pipelines: self.pipelines,
            settings: Settings {
                terms,
                breakers: Breakers {
                    failures: self.breakers.failures?,
                    open_ms: self.breakers.open_ms?,
                },
                expires_in_ms: self.expires_in_ms?,
                open: self.auth? == AuthMode::Off,
                secrets: self.secrets?.into(),
                project_decisions: self.project_decisions?.into(),
                hops_max: self.hops_max?,
                webhooks: Webhooks {
                    urls: self.alert_webhooks?,
                    external_url: self.external_url?.trim_end_matches('/').to_owned(),
                },
                ..Settings::default()
            },
            limits: Limits {
                body_bytes_max: self.limits.body_bytes_max?,
                requests_per_second: self.limits.requests_per_second?,
                connections: Places {
                    max: self.limits.connections_max?,
                    per_address: self.limits.connections_per_address?,
                    per_agent: self.limits.connections_per_agent?,
                    per_tenant: self.limits.connections_per_tenant?,
                },
                waits: WaitLimits {
                    per_agent: self.limits.waits_per_agent?,
                    per_tenant: self.limits.waits_per_tenant?,
                    per_address: self.limits.waits_per_address?,
                },
                hosts: self.hosts?,
            },
        })
    }
}

/// A certificate and its key come together.
fn tls_files(
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
) -> Result<Option<tls::Files>, Failure> {
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(Some(tls::Files { certificate, key })),
        (None, None) => Ok(None),
        (Some(_), None) => Err(Failure::usage("tls_cert is there and tls_key is not", "give both")),
        (None, Some(_)) => Err(Failure::usage("tls_key is there and tls_cert is not", "give both")),
    }
}

/// The password for PostgreSQL, from a file or the environment.
pub(crate) fn store_password(file: Option<&Path>) -> Result<Option<String>, Failure> {
    let Some(path) = file else { return Ok(std::env::var(STORE_PASSWORD).ok()) };
    check_secret(path)?;
    let text = std::fs::read_to_string(path).map_err(|error| {
        let message = format!("cannot read the password in {}: {error}", path.display());
        Failure::usage(message, "name a file that can be read with --store-password-file")
    })?;
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}

/// A URL of PostgreSQL with the password that the environment has for it.
pub(crate) fn store_url(url: &str) -> String {
    match std::env::var(STORE_PASSWORD) {
        Ok(password) => with_password(url, &password),
        Err(_) => url.to_owned(),
    }
}

fn check_secret(path: &Path) -> Result<(), Failure> {
    tasuki_store::private::check_secret(path).map_err(|error| {
        let hint = format!("chmod 600 {}", path.display());
        Failure::new(crate::exit::Exit::Refused, error.to_string(), hint)
    })
}

fn guard(allowed: &[String]) -> Result<Guard, Failure> {
    let parse = |text: &String| {
        text.trim().parse().map_err(|error| {
            let problem = format!("webhook_allow: {text:?}: {error}");
            Failure::usage(problem, "correct it and start again")
        })
    };
    Ok(Guard::allowing(allowed.iter().map(parse).collect::<Result<_, _>>()?))
}

/// Reads what roles want to see. Every mistake in the file is told at once.
fn read_profiles(path: &Path) -> Result<Profiles, Failure> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        let hint = "name a file that can be read with --profiles, or leave it out";
        Failure::usage(format!("cannot read the profiles in {name}: {error}"), hint)
    })?;
    let profiles = Profiles::from_json(&text).map_err(|faults| {
        let told: Vec<String> = faults
            .iter()
            .map(|fault| match fault.path.as_str() {
                "" => fault.problem.clone(),
                path => format!("{path}: {}", fault.problem),
            })
            .collect();
        let message = format!("the profiles in {name} have mistakes:\n  {}", told.join("\n  "));
        Failure::usage(message, "docs/guides/envelopes.md shows what a profile looks like")
    })?;
    Ok(profiles.over_standard())
}

impl Config {
    /// Where the work is kept, if not in the data directory.
    pub(crate) fn store_url(&self) -> Option<String> {
        let url = self.store.as_ref()?;
        Some(match &self.store_password {
            Some(password) => with_password(url, password),
            None => url.clone(),
        })
    }

    fn checked(self) -> Result<Self, Failure> {
        let wrong = |problem: String| Failure::usage(problem, "correct it and start again");
        let webhooks = &self.settings.webhooks.urls;
        if webhooks.len() > WEBHOOKS_MAX {
            return Err(wrong(format!("alert_webhooks has more than {WEBHOOKS_MAX} URLs")));
        }
        for url in webhooks {
            let parsed = tasuki_core::address::Endpoint::parse(url);
            parsed.map_err(|problem| wrong(format!("alert_webhooks: {url:?}: {problem}")))?;
        }
        self.settings.terms.check().map_err(|problem| wrong(format!("terms.{problem}")))?;
        let breakers = self.settings.breakers.check();
        breakers.map_err(|problem| wrong(format!("breakers.{problem}")))?;
        let waits = self.limits.waits;
        if waits.per_agent == 0 || waits.per_tenant == 0 {
            return Err(wrong(
                "limits.waits_per_agent and waits_per_tenant must be 1 or more".into(),
            ));
        }
        let places = self.limits.connections;
        if places.per_agent == 0 || places.per_tenant == 0 {
            return Err(wrong(
                "limits.connections_per_agent and connections_per_tenant must be 1 or more".into(),
            ));
        }
        let connections = places.max;
        if !(1..=CONNECTIONS_MAX).contains(&connections) {
            let problem = format!("is {connections}, expected 1 to {CONNECTIONS_MAX}");
            return Err(wrong(format!("limits.connections_max {problem}")));
        }
        if !(4..=1000).contains(&self.store_connections) {
            let problem = format!("is {}, expected 4 to 1000", self.store_connections);
            return Err(wrong(format!("store_connections {problem}")));
        }
        if self.settings.expires_in_ms == 0 {
            return Err(wrong("expires_in_ms is 0, expected at least 1".into()));
        }
        if !(1..=HOPS_MAX).contains(&self.settings.hops_max) {
            let problem = format!("is {}, expected 1 to {HOPS_MAX}", self.settings.hops_max);
            return Err(wrong(format!("hops_max {problem}")));
        }
        Ok(self)
    }
}

/// Beyond this the way of a chain would take more room than what it carries.
const HOPS_MAX: u32 = 1000;

/// The data directory, for commands that work on one without a broker.
#[derive(Debug, Args)]
pub(crate) struct Directory {
    /// The data directory [default: what the configuration says, or ./tasuki-data]
    #[arg(long, env = "TASUKI_DATA", hide_env_values = true, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}

impl Directory {
    /// The directory, whether or not there is one.
    pub(crate) fn path(&self) -> Result<PathBuf, Failure> {
        if let Some(data) = &self.data {
            return Ok(data.clone());
        }
        let file = std::env::var_os("TASUKI_CONFIG").map(PathBuf::from);
        Ok(Keys::default().resolve(file.as_deref())?.data)
    }

    /// The directory, which must hold a database.
    pub(crate) fn existing(&self) -> Result<PathBuf, Failure> {
        let path = self.path()?;
        if path.join(tasuki_store::FILE).exists() {
            return Ok(path);
        }
        Err(Failure::new(
            crate::exit::Exit::NotFound,
            format!("there is no data in {}", path.display()),
            "name the data directory of the broker with --data",
        ))
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Which of the hosts in a URL is the primary. An old primary that comes back takes writes like any
//! other, so being reachable and writable says nothing: the one with the highest timeline is it, and one
//! on a lower timeline than was seen before is passed by for the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use deadpool_postgres::Connect;
use futures::future::BoxFuture;
use tokio::task::JoinHandle;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, Error};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::db::query;
use super::error::Fault;

/// A server's timeline, or none of a standby.
const TIMELINE: &str = "
    SELECT CASE WHEN pg_is_in_recovery() THEN NULL ELSE
        ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int8 END";

pub(super) struct Hosts {
    each: Vec<Config>,
    tls: MakeRustlsConnect,
    /// The highest timeline that was seen.
    highest: Arc<AtomicI64>,
}

impl Hosts {
    pub(super) fn of(config: &Config, tls: MakeRustlsConnect, highest: Arc<AtomicI64>) -> Self {
        Self { each: each(config), tls, highest }
    }

    async fn open(&self, config: &Config) -> Result<(Client, JoinHandle<()>), Error> {
        let (client, connection) = config.connect(self.tls.clone()).await?;
        // Not watched: whoever uses the connection notices its end.
        let driver = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to the database ended");
            }
        });
        Ok((client, driver))
    }

    /// Asks all hosts, and remembers the highest timeline among those that answer.
    pub(super) async fn ask_all(&self) {
        if self.each.len() < 2 {
            return;
        }
        for config in &self.each {
            if let Ok((client, driver)) = self.open(config).await {
                if let Ok(Some(timeline)) = timeline(&client).await {
                    self.highest.fetch_max(timeline, Ordering::AcqRel);
                }
                driver.abort();
            }
        }
    }
}

/// The timeline of a server that takes writes.
pub(super) async fn timeline(client: &Client) -> Result<Option<i64>, Fault> {
    let found = query(client, TIMELINE, &[]).await?;
    Ok(found.first().map(|row| row.try_get(0)).transpose()?.flatten())
}

impl Connect for Hosts {
    /// Connects to the first host that may be the primary. If there is none, to one that answers: what
    /// is wrong with it is found out there.
    fn connect(&self, _: &Config) -> BoxFuture<'_, Result<(Client, JoinHandle<()>), Error>> {
        Box::pin(async move {
            let mut other = None;
            let mut failure = None;
            for config in &self.each {
                match self.open(config).await {
                    Ok(open) if self.each.len() == 1 => return Ok(open),
                    Ok(open) => match timeline(&open.0).await {
                        Ok(Some(found)) if found >= self.highest.load(Ordering::Acquire) => {
                            return Ok(open);
                        }
                        _ => other = Some(open),
                    },
                    Err(error) => failure = Some(error),
                }
            }
            other.ok_or_else(|| failure.expect("there is a host, and it did not answer"))
        })
    }
}

/// The same way to each host alone.
fn each(config: &Config) -> Vec<Config> {
    let (hosts, ports, addresses) =
        (config.get_hosts(), config.get_ports(), config.get_hostaddrs());
    let count = hosts.len().max(addresses.len());
    if count < 2 {
        return vec![config.clone()];
    }
    let port = |place| ports.get(place).or_else(|| ports.first()).copied();
    let one = |place| alone(config, hosts.get(place), addresses.get(place), port(place));
    (0..count).map(one).collect()
}

fn alone(
    config: &Config,
    host: Option<&Host>,
    address: Option<&std::net::IpAddr>,
    port: Option<u16>,
) -> Config {
    let mut one = Config::new();
    match host {
        Some(Host::Tcp(name)) => one.host(name),
        Some(Host::Unix(path)) => one.host_path(path),
        None => &mut one,
    };
    if let Some(address) = address {
        one.hostaddr(*address);
    }
    if let Some(port) = port {
        one.port(port);
    }
    if let Some(user) = config.get_user() {
        one.user(user);
    }
    if let Some(password) = config.get_password() {
        one.password(password);
    }
    if let Some(name) = config.get_dbname() {
        one.dbname(name);
    }
    if let Some(options) = config.get_options() {
        one.options(options);
    }
    if let Some(name) = config.get_application_name() {
        one.application_name(name);
    }
    if let Some(time) = config.get_connect_timeout() {
        one.connect_timeout(*time);
    }
    if let Some(time) = config.get_tcp_user_timeout() {
        one.tcp_user_timeout(*time);
    }
    if let Some(time) = config.get_keepalives_interval() {
        one.keepalives_interval(time);
    }
    if let Some(count) = config.get_keepalives_retries() {
        one.keepalives_retries(count);
    }
    one.ssl_mode(config.get_ssl_mode());
    one.ssl_negotiation(config.get_ssl_negotiation());
    one.keepalives(config.get_keepalives());
    one.keepalives_idle(config.get_keepalives_idle());
    one.target_session_attrs(config.get_target_session_attrs());
    one.channel_binding(config.get_channel_binding());
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_is_reached_as_the_url_says() {
        let url =
            "postgres://me:secret@a:1,b:2,c/work?target_session_attrs=read-write&sslmode=disable";
        let config: Config = url.parse().unwrap();
        let each = each(&config);
        let hosts: Vec<_> = each.iter().map(|one| (one.get_hosts(), one.get_ports())).collect();
        let tcp = |name: &str| Host::Tcp(name.into());
        assert_eq!(
            hosts,
            [
                (&[tcp("a")][..], &[1][..]),
                (&[tcp("b")], &[2]),
                (&[tcp("c")], &config.get_ports()[2..3])
            ]
        );
        for one in &each {
            assert_eq!(one.get_user(), Some("me"));
            assert_eq!(one.get_password(), Some(&b"secret"[..]));
            assert_eq!(one.get_dbname(), Some("work"));
            assert_eq!(one.get_ssl_mode(), config.get_ssl_mode());
            assert_eq!(one.get_target_session_attrs(), config.get_target_session_attrs());
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! The way to a broker: one request, one answer, or a failure that says what to do.

mod exchange;
mod key_file;
mod proof;
mod tls;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
pub use reqwest::Method;
use reqwest::{Request, RequestBuilder, Response};
use serde::Serialize;
use tasuki_core::ids::KeyId;
use tasuki_protocol::{Health, Problem};
use tokio::sync::OnceCell;

pub use self::exchange::Sent;
pub use self::key_file::KeyFile;
use self::proof::Proof;
pub use self::tls::Pin;
use self::tls::Trust;
use crate::COMMON;
use crate::exit::{Exit, Failure};

pub const DEFAULT_URL: &str = "http://127.0.0.1:8788";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an answer may take beyond the time the broker was asked to wait.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the broker waits at most in one call; a longer wait is made of several.
const WAIT_MS_MAX: u64 = 50_000;
/// Nobody waits longer than this: a year.
const LONGEST_MS: u64 = 365 * 24 * 60 * 60 * 1000;
/// An answer this much before its time did not wait for the time.
const EARLY: Duration = Duration::from_millis(500);
/// How often a request is signed before the broker's word that it is too early is passed on.
const SIGNED_MAX: u32 = 3;

/// Which broker to talk to, and as whom.
#[derive(Clone, Args)]
pub struct Connect {
    /// The broker's URL
    #[arg(
        long,
        env = "TASUKI_URL",
        hide_env_values = true,
        default_value = DEFAULT_URL,
        global = true,
        help_heading = COMMON,
        value_name = "URL"
    )]
    pub url: String,
    /// A token that shows who asks; the environment is a better place for it than a command line
    #[arg(
        long,
        env = "TASUKI_TOKEN",
        hide_env_values = true,
        global = true,
        help_heading = COMMON,
        value_name = "TOKEN"
    )]
    token: Option<String>,
    /// The file with the secret key that every request is signed with; counts before a token
    #[arg(
        long,
        env = "TASUKI_KEY",
        hide_env_values = true,
        global = true,
        help_heading = COMMON,
        value_name = "FILE"
    )]
    key: Option<PathBuf>,
    /// A named profile instead of the current one: a broker, an agent, and what shows who that is
    #[arg(
        long,
        env = crate::profile::NAMED,
        hide_env_values = true,
        global = true,
        help_heading = COMMON,
        value_name = "NAME"
    )]
    profile: Option<String>,
    /// The id of the broker's key, which invitations and /healthz show: what is signed is for no other.
    /// Without it the one in the key file counts, and else the one that the broker says it has
    #[arg(
        long,
        env = "TASUKI_BROKER",
        hide_env_values = true,
        global = true,
        help_heading = COMMON,
        value_name = "KEY_ID"
    )]
    broker: Option<KeyId>,
    /// The fingerprint of the broker's certificate, as `tasuki serve --tls self-signed` prints it: no
    /// other is believed
    #[arg(
        long,
        env = "TASUKI_TLS_PIN",
        hide_env_values = true,
        global = true,
        help_heading = COMMON,
        value_name = "SHA256"
    )]
    tls_pin: Option<Pin>,
    /// A file with certificates of authorities that vouch for the broker, instead of the system's
    #[arg(
        long,
        env = "TASUKI_TLS_CA",
        hide_env_values = true,
        global = true,
        help_heading = COMMON,
        value_name = "FILE"
    )]
    tls_ca: Option<PathBuf>,
}

pub struct Client {
    http: reqwest::Client,
    url: String,
    proof: Proof,
    pin: Option<Pin>,
    /// The key of the broker that signed requests are for, and none where it has none.
    audience: OnceCell<Option<KeyId>>,
}

impl Connect {
    /// To a broker that asks nobody who it is.
    pub fn to(url: String) -> Self {
        Self {
            url,
            token: None,
            key: None,
            profile: None,
            broker: None,
            tls_pin: None,
            tls_ca: None,
        }
    }

    pub fn client(&self) -> anyhow::Result<Client> {
        self.client_as(match (&self.key, &self.token) {
            (Some(path), _) => Proof::Key(KeyFile::read(path)?.into()),
            (None, Some(token)) => Proof::of_token(token)?,
            (None, None) => self.profiles()?,
        })
    }

    /// What the profile has to show. It is for the profile's own broker and for no other.
    fn profiles(&self) -> anyhow::Result<Proof> {
        let same = |url: &str| url.trim_end_matches('/') == self.url.trim_end_matches('/');
        let Some(profile) = crate::profile::used().filter(|it| same(&it.url)) else {
            return Ok(Proof::Nothing);
        };
        Ok(match (&profile.key, &profile.token) {
            (Some(path), _) => Proof::Key(KeyFile::read(path)?.into()),
            (None, Some(token)) => Proof::of_token(token)?,
            (None, None) => Proof::Nothing,
        })
    }

    /// A client that does not say who it is.
    pub fn stranger(&self) -> anyhow::Result<Client> {
        self.client_as(Proof::Nothing)
    }

    fn client_as(&self, proof: Proof) -> anyhow::Result<Client> {
        let trust = Trust { pin: self.tls_pin, ca: self.tls_ca.clone() };
        let url = self.url.trim_end_matches('/').to_owned();
        let is_secure = url.starts_with("https://");
        if !is_secure && (trust.pin.is_some() || trust.ca.is_some()) {
            let hint = "give a URL that begins with https://, or leave --tls-pin and --tls-ca out";
            let message = format!("{url} is reached without TLS, so no certificate can be checked");
            return Err(Failure::usage(message, hint).into());
        }
        if !is_secure && !url.starts_with("http://") {
            let hint =
                "give a URL that begins with http:// or https://, as `tasuki serve` prints it";
            return Err(Failure::usage(format!("{url:?} is no broker's URL"), hint).into());
        }
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(trust.config(is_secure)?)
            .connect_timeout(CONNECT_TIMEOUT)
            // The broker is near; a proxy for the rest of the world would only be in the way.
            .no_proxy()
            // What shows who asks is meant for this broker and for nobody it could point to.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .context("cannot set up HTTP")?;
        let named = match &proof {
            Proof::Key(file) => self.broker.or(file.broker),
            Proof::Token(_) | Proof::Nothing => self.broker,
        };
        let audience = OnceCell::new_with(named.map(Some));
        Ok(Client { http, url, proof, pin: self.tls_pin, audience })
    }

    /// Whether a broker was asked for by name.
    pub fn is_default(&self) -> bool {
        self.url == DEFAULT_URL
    }
}

pub type Query<'q> = [(&'q str, Option<String>)];

impl Client {
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The key that requests are signed with.
    pub fn key(&self) -> Option<&KeyFile> {
        match &self.proof {
            Proof::Key(file) => Some(file),
            Proof::Token(_) | Proof::Nothing => None,
        }
    }

    /// What a program that this one starts finds in its environment, so that it talks to the same
    /// broker. A token is left out: whoever wants to pass one on puts it there.
    pub fn environment(&self) -> Vec<(&'static str, OsString)> {
        let mut environment = vec![("TASUKI_URL", self.url.clone().into())];
        let key = self.key().and_then(|file| std::path::absolute(&file.path).ok());
        environment.extend(key.map(|path| ("TASUKI_KEY", path.into())));
        environment.extend(self.pin.map(|pin| ("TASUKI_TLS_PIN", pin.to_string().into())));
        environment
    }

    /// A command that continues with the same broker and as the same agent. A token is left out:
    /// it would be on the screen, and then in a shell's history.
    pub fn command(&self, words: &str) -> String {
        let key = self.key().map(|file| file.path.as_path());
        self.command_with(words, key)
    }

    /// A command that continues with the same broker, and with this key.
    pub fn command_with(&self, words: &str, key: Option<&Path>) -> String {
        let mut command = format!("tasuki {words}");
        let profile = crate::profile::used();
        let known = std::env::var("TASUKI_URL").ok().or(profile.map(|it| it.url.clone()));
        let known = known.unwrap_or_else(|| DEFAULT_URL.into());
        if known.trim_end_matches('/') != self.url {
            command += &format!(" --url {}", self.url);
        }
        let known = std::env::var_os("TASUKI_KEY").map(PathBuf::from);
        let known = known.or(profile.and_then(|it| it.key.clone()));
        if let Some(path) = key.filter(|path| known.as_deref() != Some(*path)) {
            command += &format!(" --key {}", quoted(&path.display().to_string()));
        }
        if let Some(pin) = self.pin.filter(|_| std::env::var_os("TASUKI_TLS_PIN").is_none()) {
            command += &format!(" --tls-pin {pin}");
        }
        command
    }

    pub async fn get(&self, path: &str, query: &Query<'_>) -> anyhow::Result<String> {
        let request = self.read(path, query).timeout(ANSWER_TIMEOUT);
        self.text(request).await
    }

    /// Gets what the broker may need any amount of time for.
    pub async fn get_slowly(&self, path: &str) -> anyhow::Result<String> {
        self.text(self.read(path, &[])).await
    }

    pub async fn post<T: Serialize>(&self, path: &str, body: &T) -> anyhow::Result<String> {
        self.post_waiting(path, body, 0).await
    }

    /// Sends a body with another method than POST.
    pub async fn send_body<T: Serialize>(
        &self,
        method: Method,
        path: &str,
        body: &T,
    ) -> anyhow::Result<String> {
        let request = self.http.request(method, self.at(path)).json(body).timeout(ANSWER_TIMEOUT);
        self.text(request).await
    }

    /// Posts what the broker may take this much time to answer.
    pub async fn post_waiting<T: Serialize>(
        &self,
        path: &str,
        body: &T,
        wait_ms: u64,
    ) -> anyhow::Result<String> {
        let timeout = ANSWER_TIMEOUT + Duration::from_millis(wait_ms);
        let request = self.http.post(self.at(path)).json(body).timeout(timeout);
        self.text(request).await
    }

    /// An answer that comes piece by piece and takes as long as it takes.
    pub async fn stream(&self, path: &str, query: &Query<'_>) -> anyhow::Result<Response> {
        self.send(self.read(path, query)).await
    }

    fn read(&self, path: &str, query: &Query<'_>) -> RequestBuilder {
        let mut url = self.at(path);
        let given = query.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        for (number, (name, value)) in given.enumerate() {
            url.push(if number == 0 { '?' } else { '&' });
            url.push_str(name);
            url.push('=');
            url.push_str(&escaped(value));
        }
        self.http.get(url)
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    async fn text(&self, request: RequestBuilder) -> anyhow::Result<String> {
        let answer = self.send(request).await?;
        Ok(answer.text().await.map_err(|error| self.unreachable(&error))?)
    }

    /// The status and the text of an answer, whatever the status.
    pub async fn probe(&self, path: &str) -> Result<(u16, String), Failure> {
        let request = self.read(path, &[]).timeout(ANSWER_TIMEOUT).build();
        let request = request.map_err(|error| self.unreachable(&error))?;
        let answer = self.send_once(&request).await?;
        let status = answer.status().as_u16();
        let text = answer.text().await.map_err(|error| self.unreachable(&error))?;
        Ok((status, text))
    }

    async fn send(&self, request: RequestBuilder) -> anyhow::Result<Response> {
        let request = request.build().map_err(|error| self.unreachable(&error))?;
        let mut signed = 0;
        loop {
            let answer = self.send_once(&request).await?;
            let status = answer.status();
            if status.is_success() {
                return Ok(answer);
            }
            let text = answer.text().await.map_err(|error| self.unreachable(&error))?;
            signed += 1;
            if signed >= SIGNED_MAX || !is_too_early(&text) {
                return Err(Failure::refused(status.as_u16(), text).into());
            }
            tokio::time::sleep(proof::next_second()).await;
        }
    }

    async fn send_once(&self, request: &Request) -> Result<Response, Failure> {
        let mut request = request.try_clone().expect("no request of ours streams its body");
        let audience = match &self.proof {
            Proof::Key(_) => self.audience().await?,
            Proof::Token(_) | Proof::Nothing => None,
        };
        self.proof.show(&mut request, audience)?;
        self.http.execute(request).await.map_err(|error| self.unreachable(&error))
    }

    /// The key of the broker: the one that was named, or else the one that it says it has, asked once.
    pub async fn audience(&self) -> Result<Option<KeyId>, Failure> {
        self.audience.get_or_try_init(|| self.asked_for_its_key()).await.copied()
    }

    async fn asked_for_its_key(&self) -> Result<Option<KeyId>, Failure> {
        let request = self.http.get(self.at("/healthz")).timeout(ANSWER_TIMEOUT);
        let answer = request.send().await.map_err(|error| self.unreachable(&error))?;
        let text = answer.text().await.map_err(|error| self.unreachable(&error))?;
        // A broker of before has none, and takes signatures that name none.
        let health = serde_json::from_str::<Health>(&text).ok();
        Ok(health.and_then(|health| health.broker_key_id))
    }

    pub fn unreachable(&self, error: &reqwest::Error) -> Failure {
        let url = &self.url;
        if error.is_builder() {
            let hint = "give a URL such as http://127.0.0.1:8788";
            return Failure::usage(format!("{url:?} is no broker's URL"), hint);
        }
        let why = innermost(error);
        if error.is_connect() {
            return Failure::new(
                Exit::Unavailable,
                format!("no broker answers at {url} ({why})"),
                "start one with `tasuki serve`, or name another with --url",
            )
            .next("tasuki serve");
        }
        // The request may have been carried out all the same.
        Failure::new(
            Exit::Unavailable,
            format!("the broker at {url} did not finish its answer ({why})"),
            "check it, then repeat the command; what has a key or a claim is safe to repeat",
        )
        .next(self.command("doctor"))
    }
}

/// Asks again and again, each time with how long the broker may wait, until the answer is what was
/// waited for, the time is up, or the broker ends the wait early because it is going away.
pub async fn until<T>(
    wait_ms: u64,
    mut ask: impl AsyncFnMut(u64) -> anyhow::Result<T>,
    is_enough: impl Fn(&T) -> bool,
) -> anyhow::Result<T> {
    let end = Instant::now() + Duration::from_millis(wait_ms.min(LONGEST_MS));
    loop {
        let asked = Instant::now();
        let left = end.saturating_duration_since(asked);
        let slice_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX).min(WAIT_MS_MAX);
        let answer = ask(slice_ms).await?;
        let cut_short = asked.elapsed() + EARLY < Duration::from_millis(slice_ms);
        if is_enough(&answer) || cut_short || Instant::now() >= end {
            return Ok(answer);
        }
    }
}

/// Signatures are dated by the second, and a broker takes none that may be older than itself: just
/// after its start it asks for another. Nothing was done then, so any request can be repeated.
fn is_too_early(answer: &str) -> bool {
    serde_json::from_str::<Problem>(answer)
        .is_ok_and(|problem| problem.code == "signature_too_early")
}

fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// A value as it may stand in a path or in a query.
pub fn escaped(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte);
    value
        .bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// A word as it may stand in a shell's line.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-._~:@/,=+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_where_a_shell_would_take_it_apart() {
        assert_eq!(["a.key", "/x/a@b:1.key"].map(quoted), ["a.key", "/x/a@b:1.key"]);
        assert_eq!(
            ["my key", "it's", "", "$x"].map(quoted),
            ["'my key'", r"'it'\''s'", "''", "'$x'"]
        );
    }

    #[test]
    fn a_name_with_its_tenant_is_one_part_of_a_path() {
        assert_eq!(escaped("acme/a@b:1"), "acme%2Fa%40b:1");
    }
}

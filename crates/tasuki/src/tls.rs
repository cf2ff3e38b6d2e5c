// SPDX-License-Identifier: Apache-2.0
//! The broker's certificate: from files that are read again when they change, or made here for trying
//! out, with a fingerprint that clients pin. Also certificates of agents' keys.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_ED25519, SanType};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tasuki_cli::client::Pin;
use tasuki_http::{Identity, Tls};

use crate::config::Config;
use crate::exit::{Exit, Failure};

/// In the data directory: what `--tls self-signed` made at the first start.
const CERTIFICATE: &str = "tls.pem";
const KEY: &str = "tls.key";
/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Where the broker's certificate is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Files {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Files {
    fn read(&self) -> Result<Identity, Failure> {
        let wrong = |path: &Path, why: String| {
            let message = format!("cannot use {} for TLS: {why}", path.display());
            let hint = "give a certificate with its chain and its key, each in PEM form";
            Failure::usage(message, hint)
        };
        tasuki_store::private::check_secret(&self.key).map_err(|error| {
            let hint = format!("chmod 600 {}", self.key.display());
            Failure::new(Exit::Refused, error.to_string(), hint)
        })?;
        let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(&self.certificate)
            .map_err(|error| wrong(&self.certificate, error.to_string()))?
            .collect();
        let chain = chain.map_err(|error| wrong(&self.certificate, error.to_string()))?;
        if chain.is_empty() {
            return Err(wrong(&self.certificate, "it holds no certificate".into()));
        }
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|error| wrong(&self.key, error.to_string()))?;
        Ok(Identity { chain, key })
    }

    fn changed(&self) -> [Option<SystemTime>; 2] {
        let at = |path: &Path| std::fs::metadata(path).and_then(|it| it.modified()).ok();
        [at(&self.certificate), at(&self.key)]
    }
}

/// What the broker serves with, and the fingerprint of its certificate.
pub(crate) struct Secured {
    pub(crate) tls: Arc<Tls>,
    pub(crate) pin: Pin,
    files: Files,
}

/// Reads the certificate, or makes one if that was asked for.
pub(crate) fn open(config: &Config) -> Result<Option<Secured>, Failure> {
    let files = match (&config.tls_files, config.self_signed) {
        (Some(files), _) => files.clone(),
        (None, true) => own(config)?,
        (None, false) => return Ok(None),
    };
    let identity = files.read()?;
    let pin = Pin::of(&identity.chain[0]);
    let tls = Tls::new(identity).map_err(|error| unusable(&files, &error))?;
    Ok(Some(Secured { tls: Arc::new(tls), pin, files }))
}

fn unusable(files: &Files, error: &rustls::Error) -> Failure {
    let (certificate, key) = (files.certificate.display(), files.key.display());
    let message = format!("{certificate} and {key} cannot be used for TLS: {error}");
    Failure::usage(message, "give a certificate and the key that belongs to it")
}

/// Shows the certificate anew whenever its files change. Files with mistakes change nothing; what is
/// wrong with them stands in the log.
pub(crate) async fn follow(tls: std::sync::Weak<Tls>, secured_by: Files) {
    let mut last = secured_by.changed();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let now = secured_by.changed();
        if now == last {
            continue;
        }
        last = now;
        let Some(tls) = tls.upgrade() else { return };
        match secured_by.read() {
            Ok(identity) => match tls.replace(identity) {
                Ok(()) => tracing::info!("the certificate was read anew"),
                Err(error) => tracing::error!(%error, "the certificate stays as it was"),
            },
            Err(failure) => {
                tracing::error!(error = failure.message, "the certificate stays as it was")
            }
        }
    }
}

impl Secured {
    pub(crate) fn follow(&self) -> impl Future<Output = ()> + Send + use<> {
        follow(Arc::downgrade(&self.tls), self.files.clone())
    }
}

/// The certificate in the data directory, which is made once: its fingerprint stays.
fn own(config: &Config) -> Result<Files, Failure> {
    let files = Files { certificate: config.data.join(CERTIFICATE), key: config.data.join(KEY) };
    if files.certificate.exists() && files.key.exists() {
        return Ok(files);
    }
    let failed = |why: String| {
        let message = format!("cannot make a certificate in {}: {why}", config.data.display());
        Failure::new(
            Exit::Io,
            message,
            "check the data directory, or give --tls-cert and --tls-key",
        )
    };
    let mut names = vec!["localhost".to_owned()];
    names.extend(config.limits.hosts.iter().filter(|host| *host != "*").cloned());
    let mut params = CertificateParams::default();
    params.distinguished_name = named("tasuki broker");
    for name in names {
        params.subject_alt_names.push(match name.parse::<IpAddr>() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => SanType::DnsName(
                name.try_into().map_err(|error: rcgen::Error| failed(error.to_string()))?,
            ),
        });
    }
    for address in [IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])] {
        params.subject_alt_names.push(SanType::IpAddress(address));
    }
    let listen = config.listen.ip();
    if !listen.is_unspecified() && !listen.is_loopback() {
        params.subject_alt_names.push(SanType::IpAddress(listen));
    }
    let made = KeyPair::generate().and_then(|key| Ok((params.self_signed(&key)?, key)));
    let (certificate, key) = made.map_err(|error| failed(error.to_string()))?;
    let written = tasuki_store::private::directory(&config.data)
        .and_then(|()| crate::private_file(&files.key, &key.serialize_pem()))
        .and_then(|()| crate::private_file(&files.certificate, &certificate.pem()));
    written.map_err(|error| failed(error.to_string()))?;
    Ok(files)
}

fn named(name: &str) -> DistinguishedName {
    let mut named = DistinguishedName::new();
    named.push(DnType::CommonName, name);
    named
}

/// A certificate of an agent's key, for clients that show one instead of signing: the certificate and
/// the key, each in PEM form.
pub(crate) fn of_agent(name: &str, seed: &[u8; 32]) -> Result<(String, String), rcgen::Error> {
    // RFC 8410: the 32 bytes of the key, wrapped.
    let mut der = vec![
        0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04,
        0x20,
    ];
    der.extend_from_slice(seed);
    let pkcs8 = rustls::pki_types::PrivatePkcs8KeyDer::from(der);
    let key = KeyPair::from_pkcs8_der_and_sign_algo(&pkcs8, &PKCS_ED25519)?;
    let mut params = CertificateParams::default();
    params.distinguished_name = named(name);
    let certificate = params.self_signed(&key)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

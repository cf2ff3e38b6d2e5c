// SPDX-License-Identifier: Apache-2.0
//! Encryption between broker and database, by the URL's `sslmode`: `disable` uses none, `prefer`
//! (without one) encrypts where the server can but asks for no proof of who it is, `require`
//! encrypts and believes only a certificate that the system's authorities, or one of our own,
//! vouch for.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::PostgresError;

pub(super) fn connector(
    config: &Config,
    ca: Option<&Path>,
) -> Result<MakeRustlsConnect, PostgresError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let tls = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| PostgresError::Tls(error.to_string()))?;
    let tls = if config.get_ssl_mode() == SslMode::Require || ca.is_some() {
        tls.with_root_certificates(authorities(ca)?)
    } else {
        tls.dangerous().with_custom_certificate_verifier(Arc::new(Anybody(provider)))
    };
    Ok(MakeRustlsConnect::new(tls.with_no_client_auth()))
}

fn authorities(ca: Option<&Path>) -> Result<RootCertStore, PostgresError> {
    let mut roots = RootCertStore::empty();
    let Some(path) = ca else {
        // Certificates that cannot be read vouch for nobody; the others do.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return Ok(roots);
    };
    let wrong = |error: String| PostgresError::Tls(format!("{}: {error}", path.display()));
    let found = CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))?;
    for certificate in found {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(wrong("holds no certificate".into()));
    }
    Ok(roots)
}

/// Believes whoever answers: encrypted against listeners, not against impostors.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

// SPDX-License-Identifier: Apache-2.0
//! TLS at the door. The certificate can be replaced while connections are served. A client may show
//! a certificate of its own: it counts as the Ed25519 key in it, which an agent has enrolled, and
//! says nothing else. Who vouches for it and when it ends does not matter, because keys are enrolled
//! and revoked here.

use std::io;
use std::path::Path;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tasuki_core::identity::PublicKey;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::client::danger::HandshakeSignatureValid;
use tokio_rustls::rustls::crypto::{
    CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::server::{NoServerSessionStorage, ParsedCertificate};
use tokio_rustls::rustls::{
    DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme,
};
use tokio_rustls::server::TlsStream;

/// How long a client may take to come to terms.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// What stands before the 32 bytes of an Ed25519 key in a certificate (RFC 8410).
const ED25519_HEAD: [u8; 12] =
    [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0];

/// How connections are secured.
#[derive(Debug)]
pub struct Tls {
    config: RwLock<Arc<ServerConfig>>,
}

/// A certificate with those that vouch for it, and its secret key.
#[derive(Debug)]
pub struct Identity {
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
}

impl Identity {
    /// From files in PEM form.
    pub fn read(chain: &Path, key: &Path) -> Result<Self, String> {
        let wrong = |path: &Path, why: &dyn std::fmt::Display| {
            format!("cannot use {} for TLS: {why}", path.display())
        };
        let read = CertificateDer::pem_file_iter(chain).map_err(|error| wrong(chain, &error))?;
        let read: Result<Vec<_>, _> = read.collect();
        let read = read.map_err(|error| wrong(chain, &error))?;
        if read.is_empty() {
            return Err(wrong(chain, &"it holds no certificate"));
        }
        let key = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
        Ok(Self { chain: read, key })
    }
}

impl Tls {
    /// # Errors
    /// If certificate and key do not belong together.
    pub fn new(identity: Identity) -> Result<Self, Error> {
        Ok(Self { config: RwLock::new(config(identity)?) })
    }

    /// Shows another certificate from now on. Connections that are there go on.
    ///
    /// # Errors
    /// If certificate and key do not belong together; then everything stays as it was.
    pub fn replace(&self, identity: Identity) -> Result<(), Error> {
        let config = config(identity)?;
        *self.config.write().expect("no holder of this lock panics") = config;
        Ok(())
    }

    /// Secures a connection. Returns the key that the client has shown, too.
    pub(crate) async fn accept<S>(&self, stream: S) -> io::Result<(TlsStream<S>, Option<PublicKey>)>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let config = self.config.read().expect("no holder of this lock panics").clone();
        let accepted = TlsAcceptor::from(config).accept(stream);
        let stream = tokio::time::timeout(HANDSHAKE_MAX, accepted)
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        let shown = stream.get_ref().1.peer_certificates();
        let key = shown.and_then(|chain| chain.first()).and_then(agent_key);
        Ok((stream, key))
    }
}

fn config(identity: Identity) -> Result<Arc<ServerConfig>, Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(Arc::new(AgentKeys(provider)))
        .with_single_cert(identity.chain, identity.key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // A resumed session would be let in by what was shown before.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// The Ed25519 key in a certificate, if it has one.
fn agent_key(certificate: &CertificateDer<'_>) -> Option<PublicKey> {
    let parsed = ParsedCertificate::try_from(certificate).ok()?;
    let info = parsed.subject_public_key_info();
    let key = info.as_ref().strip_prefix(&ED25519_HEAD)?;
    PublicKey::from_bytes(key.try_into().ok()?).ok()
}

/// Takes any certificate whose key the client has. Which keys count is the registry's business.
#[derive(Debug)]
struct AgentKeys(Arc<CryptoProvider>);

impl ClientCertVerifier for AgentKeys {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

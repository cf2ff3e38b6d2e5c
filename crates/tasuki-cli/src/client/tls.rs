// SPDX-License-Identifier: Apache-2.0
//! TLS on the way to a broker: by the authorities that the system trusts, by one's own, or by the
//! fingerprint of the one certificate that the broker has.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use sha2::{Digest, Sha256};

use crate::exit::Failure;

/// The SHA-256 of a certificate, as `tasuki serve` prints it: `sha256:` and 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pin([u8; 32]);

impl Pin {
    #[must_use]
    pub fn of(certificate: &[u8]) -> Self {
        Self(Sha256::digest(certificate).into())
    }
}

impl std::fmt::Display for Pin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::str::FromStr for Pin {
    type Err = String;

    /// Colons between the bytes and capital letters will do, as other programs print them.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "expected sha256: and 64 hexadecimal digits".to_owned();
        let digits = text.strip_prefix("sha256:").ok_or_else(wrong)?.replace(':', "");
        if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (number, byte) in bytes.iter_mut().enumerate() {
            let pair = &digits[2 * number..2 * number + 2];
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

/// Whom to believe that it is the broker.
#[derive(Debug, Clone, Default)]
pub(super) struct Trust {
    pub(super) pin: Option<Pin>,
    pub(super) ca: Option<PathBuf>,
}

impl Trust {
    /// How to secure connections. The system's authorities are read only where they are needed.
    pub(super) fn config(&self, is_secure: bool) -> Result<ClientConfig, Failure> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .expect("the provider knows the versions that are safe");
        let config = match (self.pin, &self.ca) {
            (Some(pin), _) => {
                let pinned = Arc::new(Pinned { pin, provider });
                config.dangerous().with_custom_certificate_verifier(pinned)
            }
            (None, Some(path)) => config.with_root_certificates(authorities(path)?),
            (None, None) => {
                let mut roots = RootCertStore::empty();
                if is_secure {
                    // Certificates that cannot be read vouch for nobody; the others do.
                    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                }
                config.with_root_certificates(roots)
            }
        };
        Ok(config.with_no_client_auth())
    }
}

fn authorities(path: &Path) -> Result<RootCertStore, Failure> {
    let wrong = |why: String| {
        let message = format!("cannot use the authorities in {}: {why}", path.display());
        Failure::usage(message, "name a file with certificates in PEM form with --tls-ca")
    };
    let mut roots = RootCertStore::empty();
    let found = CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))?;
    for certificate in found {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(wrong("it holds no certificate".into()));
    }
    Ok(roots)
}

/// Believes the one certificate that was pinned, whoever vouches for it and whatever it is named.
#[derive(Debug)]
struct Pinned {
    pin: Pin,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let found = Pin::of(certificate);
        if found == self.pin {
            return Ok(ServerCertVerified::assertion());
        }
        Err(rustls::Error::General(format!("the broker shows another certificate: {found}")))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_reads_back_in_the_forms_that_programs_print() {
        let pin = Pin::of(b"certificate");
        let text = pin.to_string();
        assert_eq!(text.parse(), Ok(pin));
        let digits = text.strip_prefix("sha256:").unwrap();
        let pairs: Vec<_> = (0..32).map(|n| digits[2 * n..2 * n + 2].to_uppercase()).collect();
        assert_eq!(format!("sha256:{}", pairs.join(":")).parse(), Ok(pin));
        for wrong in ["", "sha256:", digits, "sha1:00", "sha256:zz"] {
            assert!(wrong.parse::<Pin>().is_err(), "{wrong}");
        }
    }
}

//! How a request shows who it is from.

use std::{
    io::Write as _,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result};
use tasuki_core::{
    identity::{PublicKey, Request, SecretKey, digest, message},
    ids::KeyId,
};

/// How long a signature counts. A request arrives at once or not at all.
const VALIDITY_S: i64 = 30;

#[derive(Clone)]
pub(crate) enum Proof {
    Nothing,
    Bearer(String),
    Signature(Arc<Signer>),
}

/// An agent's key, with what it takes never to use a nonce twice.
pub(crate) struct Signer {
    secret: SecretKey,
    nonces: AtomicU64,
    /// The broker that requests are for, once it was asked.
    audience: OnceLock<KeyId>,
}

impl Signer {
    /// A key of this number. It guards nothing but a benchmark, so anybody may guess it.
    pub(crate) fn new(number: u16) -> Self {
        let mut seed = *b"the seed of a benchmark's key   ";
        seed[30..].copy_from_slice(&number.to_be_bytes());
        Self {
            secret: SecretKey::from_seed(seed),
            nonces: AtomicU64::new(0),
            audience: OnceLock::new(),
        }
    }

    pub(crate) fn public(&self) -> PublicKey {
        self.secret.public()
    }

    /// Learns for which broker requests are.
    pub(crate) fn meet(&self, broker: KeyId) {
        self.audience.get_or_init(|| broker);
    }
}

impl Proof {
    /// Writes the headers that a request needs.
    pub(crate) fn write(
        &self,
        method: &str,
        host: &str,
        target: &str,
        body: &[u8],
        to: &mut Vec<u8>,
    ) -> Result<()> {
        match self {
            Self::Nothing => Ok(()),
            Self::Bearer(token) => Ok(write!(to, "authorization: Bearer {token}\r\n")?),
            Self::Signature(signer) => signer.write(method, host, target, body, to),
        }
    }
}

impl Signer {
    fn write(
        &self,
        method: &str,
        host: &str,
        target: &str,
        body: &[u8],
        to: &mut Vec<u8>,
    ) -> Result<()> {
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        let digest = (!body.is_empty()).then(|| digest::of(body));
        let content_digest = digest.as_deref();
        let authority = &message::authority(host, 80);
        let request = Request { method, authority, path, query, content_digest };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).context("this is before 1970")?;
        let now = i64::try_from(now.as_secs())?;
        let nonce = format!("{:016x}", self.nonces.fetch_add(1, Ordering::Relaxed));
        let audience = self.audience.get().copied();
        let (input, signature) =
            message::sign(&request, &self.secret, now, now + VALIDITY_S, &nonce, audience)
                .context("cannot sign a request")?;
        if let Some(digest) = content_digest {
            write!(to, "content-digest: {digest}\r\n")?;
        }
        Ok(write!(to, "signature-input: {input}\r\nsignature: {signature}\r\n")?)
    }
}

#[cfg(test)]
mod tests {
    use tasuki_core::{Timestamp, identity::Presented};

    use super::*;

    #[test]
    fn what_is_signed_is_what_is_sent() {
        let signer = Signer::new(7);
        let mut headers = Vec::new();
        signer.write("POST", "127.0.0.1:1", "/v1/x?y=z", b"{}", &mut headers).unwrap();
        let headers = String::from_utf8(headers).unwrap();
        let value = |name: &str| {
            let value = |line: &str| line.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned);
            headers.lines().find_map(value).unwrap()
        };
        let presented = Presented::parse(&value("signature-input"), &value("signature")).unwrap();
        let digest = value("content-digest");
        let request = Request {
            method: "POST",
            authority: "127.0.0.1:1",
            path: "/v1/x",
            query: Some("y=z"),
            content_digest: Some(&digest),
        };
        let now = Timestamp(presented.created() * 1000);
        assert_eq!(presented.verify(&request, &signer.public(), now, 0), Ok(()));
    }
}

//! A connection to a broker on behalf of one caller. It costs little: what it takes is taken from
//! the broker, which has the same cores.

use std::{io::Write as _, net::SocketAddr};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::{proof::Proof, wire::Wire};

pub(crate) struct Http {
    wire: Wire,
    host: String,
    proof: Proof,
    request: Vec<u8>,
}

impl Http {
    pub(crate) async fn connect(address: SocketAddr, proof: &Proof) -> Result<Self> {
        let (wire, host) = (Wire::connect(address).await?, address.to_string());
        let mut http = Self { wire, host, proof: Proof::Nothing, request: Vec::new() };
        if let Proof::Signature(signer) = proof {
            let health: Value = serde_json::from_slice(http.get("/healthz").await?)?;
            let broker = health["broker_key_id"].as_str().context("the broker has no key")?;
            signer.meet(broker.parse()?);
        }
        http.proof = proof.clone();
        Ok(http)
    }

    pub(crate) async fn get(&mut self, target: &str) -> Result<&[u8]> {
        done("GET", target, self.ask("GET", target, &[]).await?)
    }

    pub(crate) async fn post(&mut self, target: &str, body: &[u8]) -> Result<&[u8]> {
        done("POST", target, self.ask("POST", target, body).await?)
    }

    /// The status of the reply and its body, whatever they are.
    pub(crate) async fn ask(
        &mut self,
        method: &str,
        target: &str,
        body: &[u8],
    ) -> Result<(u16, &[u8])> {
        let (request, host) = (&mut self.request, &self.host);
        request.clear();
        write!(request, "{method} {target} HTTP/1.1\r\nhost: {host}\r\n")?;
        if !body.is_empty() {
            let bytes = body.len();
            write!(request, "content-type: application/json\r\ncontent-length: {bytes}\r\n")?;
        }
        self.proof.write(method, host, target, body, request)?;
        request.extend_from_slice(b"\r\n");
        request.extend_from_slice(body);
        self.wire.send(request).await?;
        let (status, bytes) = self.head().await?;
        Ok((status, self.wire.exactly(bytes).await?))
    }

    /// The body of the last reply, once more.
    pub(crate) fn last(&self) -> &[u8] {
        self.wire.last()
    }

    /// The status of a reply and how many bytes its body has.
    async fn head(&mut self) -> Result<(u16, usize)> {
        let line = self.wire.line().await?;
        let status = line.strip_prefix("HTTP/1.1 ").and_then(|line| line.get(..3)?.parse().ok());
        let status = status.with_context(|| format!("this is no HTTP: {line}"))?;
        let mut bytes = None;
        loop {
            let line = self.wire.line().await?;
            if line.is_empty() {
                return Ok((status, bytes.context("the reply does not say how long it is")?));
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                bytes = Some(value.trim().parse()?);
            }
        }
    }
}

fn done<'r>(method: &str, target: &str, (status, body): (u16, &'r [u8])) -> Result<&'r [u8]> {
    if (200..300).contains(&status) {
        return Ok(body);
    }
    bail!("{method} {target} answered {status}: {}", String::from_utf8_lossy(body))
}

//! A broker, those who are known to it, and the processor time it takes.

use std::{
    fs,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
};

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Stage, worker::CAPABILITY};
use crate::{
    http::Http,
    proof::{Proof, Signer},
    tasuki::Tasuki,
};

/// The unit of processor times in `/proc`, which is the same on every Linux that runs this.
const TICKS_PER_SECOND: f64 = 100.0;

pub(super) struct Broker {
    tasuki: Tasuki,
    administrator: Proof,
    enrolled: AtomicU16,
}

/// By what an agent shows who it is.
#[derive(Clone, Copy)]
pub(super) enum By {
    Token,
    Key,
}

#[derive(Clone)]
pub(super) struct Agent {
    /// Without its tenant.
    pub(super) name: String,
    pub(super) proof: Proof,
}

impl Broker {
    /// One that serves whoever is on this machine.
    pub(super) async fn open(stage: &Stage<'_>, name: &str) -> Result<Self> {
        let tasuki = Tasuki::start(&stage.program, stage.scratch, name, &[]).await?;
        Ok(Self { tasuki, administrator: Proof::Nothing, enrolled: AtomicU16::new(0) })
    }

    /// One that asks everybody who it is.
    pub(super) async fn closed(stage: &Stage<'_>, name: &str) -> Result<Self> {
        let arguments = ["--auth", "required"];
        let tasuki = Tasuki::start(&stage.program, stage.scratch, name, &arguments).await?;
        let token = stage.scratch.path().join(name).join("admin.token");
        let token = fs::read_to_string(token).context("cannot read the administrator's token")?;
        let administrator = Proof::Bearer(token.trim().to_owned());
        Ok(Self { tasuki, administrator, enrolled: AtomicU16::new(0) })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.tasuki.address()
    }

    pub(super) async fn administrator(&self) -> Result<Http> {
        Http::connect(self.address(), &self.administrator).await
    }

    /// Makes agents known that may send, claim and complete within their tenant.
    pub(super) async fn enroll(
        &self,
        by: By,
        tenant: Option<&str>,
        count: u16,
    ) -> Result<Vec<Agent>> {
        let mut administrator = self.administrator().await?;
        let mut agents = Vec::new();
        // No two agents of a broker may have the same key, whatever their tenants.
        let first = self.enrolled.fetch_add(count, Ordering::Relaxed);
        for number in first..first + count {
            let name = format!("client-{number}");
            let full = tenant.map_or_else(|| name.clone(), |tenant| format!("{tenant}/{name}"));
            let enrolled = enroll(&mut administrator, by, &full, number).await;
            let proof = enrolled.with_context(|| format!("cannot enroll {full}"))?;
            agents.push(Agent { name, proof });
        }
        Ok(agents)
    }

    /// Says what a tenant may use; nothing in `quotas` is everything.
    pub(super) async fn set_quotas(&self, tenant: &str, quotas: &Value) -> Result<()> {
        let mut administrator = self.administrator().await?;
        let target = format!("/v1/tenants/{tenant}");
        administrator.post(&target, quotas.to_string().as_bytes()).await?;
        Ok(())
    }

    /// The processor time that the broker took since it began.
    pub(super) fn cpu_seconds(&self) -> Result<f64> {
        cpu_seconds(&self.tasuki.pid().to_string())
    }
}

async fn enroll(administrator: &mut Http, by: By, agent: &str, number: u16) -> Result<Proof> {
    #[derive(Deserialize)]
    struct Issued {
        text: String,
    }

    // Whoever shows who it is takes only what its manifest names. Once it has a key it would have to sign it.
    let manifest = json!({ "agent_id": agent, "capabilities": [{ "name": CAPABILITY }] });
    let manifest = json!({ "manifest": manifest }).to_string();
    administrator.post("/v1/agents", manifest.as_bytes()).await?;
    let rules = json!([{ "permissions": ["send", "claim", "complete"] }]);
    let signer = Signer::new(number);
    let body = json!({ "key": signer.public(), "rules": rules }).to_string();
    let target = format!("/v1/agents/{}/keys", agent.replace('/', "%2F"));
    administrator.post(&target, body.as_bytes()).await?;
    match by {
        By::Key => Ok(Proof::Signature(Arc::new(signer))),
        By::Token => {
            let body = json!({ "purpose": "bearer", "agent_id": agent, "rules": rules });
            let reply = administrator.post("/v1/tokens", body.to_string().as_bytes()).await?;
            let issued: Issued = serde_json::from_slice(reply)?;
            Ok(Proof::Bearer(issued.text))
        }
    }
}

/// The processor time that this program took since it began.
pub(super) fn own_cpu_seconds() -> Result<f64> {
    cpu_seconds("self")
}

fn cpu_seconds(process: &str) -> Result<f64> {
    let path = format!("/proc/{process}/stat");
    let stat = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let ticks = ticks(&stat).with_context(|| format!("{path} is not as expected"))?;
    Ok(ticks as f64 / TICKS_PER_SECOND)
}

/// The ticks spent in the program and in the system for it, from a line as in `proc_pid_stat(5)`.
fn ticks(stat: &str) -> Option<u64> {
    // The name may contain anything; it ends with the last parenthesis.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_that_of_program_and_system() {
        let stat = "7 (a) name) S 1 7 7 0 -1 4194560 900 0 0 0 123 45 6 7 20 0 9 0 100 1 2";
        assert_eq!(ticks(stat), Some(168));
        assert!(own_cpu_seconds().is_ok());
    }
}

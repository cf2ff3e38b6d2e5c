// SPDX-License-Identifier: Apache-2.0
//! `tasuki tenant`: parties that share a broker and see nothing of each other.

use clap::{Args, Subcommand};
use tasuki_core::ids::TenantId;
use tasuki_core::registry::Quotas;
use tasuki_protocol as wire;

use crate::client::{Client, Connect};
use crate::exit::Exit;
use crate::output::{Output, bytes, table};

#[derive(Args)]
pub(crate) struct Tenant {
    #[command(flatten)]
    connect: Connect,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List tenants and what they may use
    List,
    /// Say all that a tenant may use; what is left out is without limit
    Set(Set),
}

#[derive(Args)]
struct Set {
    /// The tenant
    name: TenantId,
    /// How many handoffs may be under way at once
    #[arg(long, value_name = "N")]
    in_flight: Option<u64>,
    /// How many bytes of envelopes, results and other bodies may be kept
    #[arg(long, value_name = "N")]
    stored_bytes: Option<u64>,
    /// How many requests may come in a second
    #[arg(long, value_name = "N")]
    requests_per_second: Option<u32>,
}

impl Tenant {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        let client = &self.connect.client()?;
        match self.verb {
            Verb::List => {
                let reply = client.get("/v1/tenants", &[]).await?;
                output.reply(&reply, |listed: wire::Tenants| text(&listed.tenants))?;
            }
            Verb::Set(set) => set.run(client, output).await?,
        }
        Ok(Exit::Done)
    }
}

impl Set {
    async fn run(self, client: &Client, output: Output) -> anyhow::Result<()> {
        let body = Quotas {
            in_flight: self.in_flight,
            stored_bytes: self.stored_bytes,
            requests_per_second: self.requests_per_second,
        };
        let reply = client.post(&format!("/v1/tenants/{}", self.name), &body).await?;
        output.reply(&reply, |tenant: wire::TenantInfo| text(&[tenant]))
    }
}

fn text(tenants: &[wire::TenantInfo]) -> String {
    let limit = |number: Option<String>| number.unwrap_or_else(|| "no limit".into());
    let rows = tenants.iter().map(|tenant| {
        let quotas = &tenant.quotas;
        [
            tenant.tenant_id.to_string(),
            limit(quotas.in_flight.map(|number| number.to_string())),
            limit(quotas.stored_bytes.map(bytes)),
            limit(quotas.requests_per_second.map(|number| number.to_string())),
        ]
    });
    table(["tenant", "in flight", "stored", "requests per second"], rows)
}

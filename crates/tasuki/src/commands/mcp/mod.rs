// SPDX-License-Identifier: Apache-2.0
//! `tasuki mcp`: the MCP door over standard input and output, in front of a running broker or of one
//! that this process has for itself.

mod client;
mod config;
mod edit;
mod remote;

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};
use tasuki_core::AgentId;
use tasuki_engine::{Engine, SystemIds};
use tasuki_mcp::{AtEnd, Broker, Embedded, serve_stdio};
use tokio::signal::unix::{SignalKind, signal};

use self::config::Configure;
use self::remote::Remote;
use super::serve;
use crate::client::Connect;
use crate::config::Keys;
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Serve one MCP client over standard input and output, as `tasuki serve` does at /mcp.
#[derive(Args)]
pub(crate) struct Mcp {
    #[command(flatten)]
    connect: Connect,
    #[command(flatten)]
    stdio: Stdio,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Args)]
struct Stdio {
    /// The agent that the client speaks for
    #[arg(long, value_name = "NAME")]
    agent: Option<AgentId>,
    /// Run without a server, on the data in this directory, which nobody else may use meanwhile
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// What becomes of work that the client holds when it goes away
    #[arg(long, value_name = "WHAT", default_value = "release")]
    at_end: Ends,
}

#[derive(Clone, Copy, ValueEnum)]
enum Ends {
    /// It is given back for others at once
    Release,
    /// It is kept until its lease ends, 10 minutes by default
    Keep,
}

#[derive(Subcommand)]
enum Verb {
    /// Print the configuration that makes a client use this broker, or write it
    Config(Configure),
}

impl Mcp {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        let Self { connect, stdio, verb } = self;
        if let Some(Verb::Config(configure)) = verb {
            return configure.run(&connect, output);
        }
        let Some(agent) = stdio.agent else {
            let hint = "say with --agent for which agent the client speaks";
            return Err(Failure::usage("no agent was named", hint)
                .next("tasuki mcp --agent coder")
                .into());
        };
        let at_end = match stdio.at_end {
            Ends::Release => AtEnd::Release,
            Ends::Keep => AtEnd::Keep,
        };
        match stdio.data {
            Some(dir) => embedded(dir, agent, at_end).await?,
            None => {
                let remote: Arc<dyn Broker> = Arc::new(Remote::new(connect.client()?, &agent));
                serve_stdio(remote, at_end, ended()?).await?;
            }
        }
        Ok(Exit::Done)
    }
}

/// Serves from a broker of this process's own. Nobody else reaches it, so nobody has to say who it is.
async fn embedded(dir: PathBuf, agent: AgentId, at_end: AtEnd) -> anyhow::Result<()> {
    let mut config = Keys::on(dir).resolve(None)?;
    config.settings.open = true;
    let ended = ended()?;
    let store = serve::open(&config).await?;
    let engine = Engine::start(store, Arc::new(SystemIds), config.settings.clone());
    let broker = Embedded::new(engine.clone(), agent.to_string());
    let served = serve_stdio(broker, at_end, ended).await;
    engine.close().await;
    Ok(served?)
}

/// When the process is told to end.
fn ended() -> std::io::Result<impl Future<Output = ()> + Send> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

//! Our own server, and its own benchmark as the load.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::Signal;

use crate::{
    load::{Load, Measured},
    scratch::Scratch,
    server::{self, Server},
    wire::Wire,
};

pub(crate) struct Tasuki {
    bench: Bench,
    server: Server,
}

/// What drives one server; it may outlive it. The program is the one beside the server's.
#[derive(Clone)]
pub(crate) struct Bench {
    program: PathBuf,
    address: SocketAddr,
}

impl Tasuki {
    pub(crate) fn version(program: &Path) -> Result<String> {
        server::version(program, "--version")
    }

    /// Starts a server that keeps its data in the directory `name`.
    pub(crate) async fn start(
        program: &Path,
        scratch: &Scratch,
        name: &str,
        arguments: &[&str],
    ) -> Result<Self> {
        let address = server::free_address()?;
        let data = scratch.make(name)?;
        let mut command = Command::new(program);
        command
            .args(["serve", "--listen", &address.to_string(), "--data"])
            .arg(&data)
            .args(arguments);
        let log = scratch.path().join(name).with_extension("log");
        let server = Server::start(name, &mut command, log, Signal::TERM)?;
        let mut tasuki = Self {
            bench: Bench { program: program.with_file_name("tasuki-tools"), address },
            server,
        };
        tasuki.wait_until_ready().await?;
        Ok(tasuki)
    }

    pub(crate) async fn wait_until_ready(&mut self) -> Result<()> {
        let address = self.bench.address;
        self.server.wait_until(async || is_ready(address).await.is_ok()).await
    }

    /// Ends it in the middle of whatever it does.
    pub(crate) async fn kill(&mut self) -> Result<()> {
        self.server.stop(Signal::KILL).await
    }

    pub(crate) fn bench(&self) -> &Bench {
        &self.bench
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.bench.address
    }

    pub(crate) fn pid(&self) -> u32 {
        self.server.pid()
    }
}

impl Bench {
    pub(crate) async fn run(&self, load: &Load, batch: u32) -> Result<Measured> {
        let bench = tokio::process::Command::new(&self.program)
            .args(["bench", "--json", "--url", &format!("http://{}", self.address)])
            .args(["--clients", &load.clients.to_string()])
            .args(["--payload", &load.payload.len().to_string()])
            .args(["--batch", &batch.to_string()])
            .args(["--seconds", &load.seconds.to_string()])
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = tokio::time::timeout(load.seconds_max(), bench)
            .await
            .context("tasuki-tools bench is stuck")?
            .context("cannot run tasuki-tools bench")?;
        if !output.status.success() {
            bail!("tasuki-tools bench: {}", String::from_utf8_lossy(&output.stderr));
        }
        serde_json::from_slice(&output.stdout).context("tasuki-tools bench printed something else")
    }
}

async fn is_ready(address: SocketAddr) -> Result<()> {
    let mut wire = Wire::connect(address).await?;
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    wire.send(request.as_bytes()).await?;
    let status = wire.line().await?;
    ensure!(status.starts_with("HTTP/1.1 200"), "not ready: {status}");
    Ok(())
}

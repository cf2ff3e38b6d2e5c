// SPDX-License-Identifier: Apache-2.0
//! `tasuki dev`: a broker for trying things out. Its data lies in a temporary folder and is gone when it ends, and
//! what is configured for other brokers does not count.

use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use clap::Args;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;

use super::serve::{self, Greeting, Signals};
use crate::config::Keys;
use crate::exit::{Exit, Failure};
use crate::output::{Facts, Output, print};
use crate::scratch::{self, Scratch};

/// Where clients look if nothing tells them otherwise.
const PORT: u16 = 8788;

#[derive(Args)]
pub(crate) struct Dev {
    /// The port to listen on; without it 8788, or a free one if that is taken or for a command
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Which log lines to write, such as `info`
    #[arg(long, value_name = "FILTER", default_value = "warn")]
    log: String,
    /// A command that finds the broker in TASUKI_URL; the broker ends with it, and ends as it did
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Dev {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        let folder = Scratch::new("dev").map_err(|error| {
            let hint = "name another place for temporary files in TMPDIR";
            Failure::new(Exit::Refused, format!("cannot make a temporary folder: {error}"), hint)
        })?;
        let port = match (self.port, self.command.is_empty()) {
            (Some(port), _) => port,
            (None, true) if is_free(PORT) => PORT,
            (None, _) => 0,
        };
        let config = Keys::for_trying(folder.path().join("data"), port, self.log).alone()?;
        serve::start_log(&config)?;
        if self.command.is_empty() {
            let signals = Signals::listen(None)?;
            return serve::run(config, signals, |greeting| banner(output, greeting)).await;
        }
        let state = folder.path().join("state");
        let (end, ended) = oneshot::channel();
        let code = Arc::new(AtomicI32::new(Exit::Refused as i32));
        let told = code.clone();
        let mut failed = None;
        let started = |greeting: &Greeting| match start(&self.command, greeting, state.into()) {
            // Not watched: its end ends the broker, whatever it is.
            Ok(child) => drop(tokio::spawn(watch(child, end, told))),
            // Dropped, `end` ends the broker.
            Err(error) => failed = Some(error),
        };
        serve::run(config, Signals::listen(Some(ended))?, started).await?;
        drop(folder);
        if let Some(failure) = failed {
            return Err(failure.into());
        }
        match code.load(Ordering::SeqCst) {
            0 => Ok(Exit::Done),
            code => {
                scratch::sweep();
                std::process::exit(code)
            }
        }
    }
}

fn start(command: &[OsString], greeting: &Greeting, state: OsString) -> Result<Child, Failure> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Failure::usage("there is no command", ""));
    };
    let url = greeting.api.trim_end_matches("/v1");
    let mut command = Command::new(program);
    command.args(arguments).env("TASUKI_URL", url).env("TASUKI_STATE", state).kill_on_drop(true);
    command.spawn().map_err(|error| {
        let message = format!("cannot start {}: {error}", program.display());
        Failure::usage(message, "name a program in PATH, or one by its path")
    })
}

/// Ends the broker when the command ends, and keeps how it did.
async fn watch(mut child: Child, end: oneshot::Sender<()>, code: Arc<AtomicI32>) {
    use std::os::unix::process::ExitStatusExt;
    if let Ok(status) = child.wait().await {
        // What a shell says of a process that a signal ended.
        let ended = status.code().or(status.signal().map(|signal| 128 + signal));
        code.store(ended.unwrap_or(Exit::Refused as i32), Ordering::SeqCst);
    }
    let _ = end.send(());
}

fn is_free(port: u16) -> bool {
    std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

fn banner(output: Output, greeting: &Greeting) {
    let url = greeting.api.trim_end_matches("/v1");
    let text = || {
        let facts = Facts::default()
            .with("API", &greeting.api)
            .with("dashboard", format!("{url}/"))
            .with("MCP", &greeting.mcp)
            .with("docs", &greeting.docs)
            .with("data", "in a temporary folder, and gone when this ends (Ctrl-C)")
            .text();
        let elsewhere = match url.ends_with(&format!(":{PORT}")) {
            true => String::new(),
            false => format!("  export TASUKI_URL={url}\n"),
        };
        format!(
            "tasuki {}: a broker for trying things out\n{facts}\nIn a second terminal, some work and \
             an agent that does it:\n{elsewhere}  tasuki handoff offer --from me --to shouter --intent \
             'say it loud'\n  tasuki work --agent shouter -- tr a-z A-Z\n\nready\n",
            greeting.version
        )
    };
    // A broker whose stdout is closed serves all the same.
    let _ = match output.json {
        true => output.found(greeting, |_| String::new()),
        false => print(&text()),
    };
}

// SPDX-License-Identifier: Apache-2.0
//! A broker of the demo's own: this same binary as a child process, which can be killed.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;

use crate::exit::{Exit, Failure};

/// How long a broker may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(15);
const DATA: &str = "data";
const LOG: &str = "broker.log";

/// Where the demo keeps its data.
pub(super) struct Home {
    path: PathBuf,
    /// Whether nobody wants it afterwards.
    temporary: bool,
}

impl Home {
    /// The directory that somebody named, or one that is gone afterwards.
    pub(super) fn make(wanted: Option<PathBuf>) -> anyhow::Result<Self> {
        let temporary = wanted.is_none();
        let path = match wanted {
            Some(path) => path,
            None => {
                let mut random = [0_u8; 8];
                getrandom::fill(&mut random).context("cannot draw a random name")?;
                let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
                std::env::temp_dir().join(format!("tasuki-demo-{name}"))
            }
        };
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| {
            let message = format!("cannot make the directory {}: {error}", path.display());
            Failure::new(Exit::Refused, message, "name a directory that is not there yet")
        })?;
        let path = std::path::absolute(&path)?;
        Ok(Self { path, temporary })
    }

    /// What a broker can be started on again.
    pub(super) fn data(&self) -> PathBuf {
        self.path.join(DATA)
    }

    pub(super) fn is_kept(&self) -> bool {
        !self.temporary
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if self.temporary {
            // What cannot be removed is in the system's directory for such things.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// A running broker. It ends with this value, however the demo ends.
pub(super) struct Broker {
    child: Child,
    address: String,
}

#[derive(Deserialize)]
struct Greeting {
    api: String,
}

impl Broker {
    /// Starts a broker on any free port, and waits until it is ready.
    pub(super) async fn start(home: &Home) -> anyhow::Result<Self> {
        Self::start_at(home, "127.0.0.1:0").await
    }

    async fn start_at(home: &Home, listen: &str) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let log = std::fs::File::options().create(true).append(true).open(home.path.join(LOG))?;
        let mut command = Command::new(program);
        // What is set for other brokers is not meant for this one, and neither is a file beside us.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("TASUKI_") {
                command.env_remove(name);
            }
        }
        let serve = ["serve", "--json", "--log", "warn", "--listen", listen, "--data", DATA];
        // Held open by this process alone, so that the broker does not outlive it whatever ends it.
        command.args(serve).arg("--until-stdin-closes").current_dir(&home.path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().context("cannot start a broker")?;
        let stdout = child.stdout.take().context("the broker has no stdout")?;
        // From here on it ends when this does not go on.
        let mut broker = Self { child, address: String::new() };
        let greeting = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            BufReader::new(stdout).read_line(&mut line).map(|_| line)
        });
        let greeting = tokio::time::timeout(PATIENCE, greeting).await;
        let greeting = greeting.context("the broker did not start in time")???;
        let Ok(greeting) = serde_json::from_str::<Greeting>(&greeting) else {
            return Err(did_not_start(&home.path).into());
        };
        let address = greeting.api.strip_prefix("http://").unwrap_or(&greeting.api);
        address.trim_end_matches("/v1").clone_into(&mut broker.address);
        Ok(broker)
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Kills the broker in the middle of whatever it does: it hears nothing and saves nothing.
    pub(super) fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill().context("cannot kill the broker")?;
        self.child.wait()?;
        Ok(())
    }

    /// A broker on the same data and the same port.
    pub(super) async fn start_again(&mut self, home: &Home) -> anyhow::Result<()> {
        *self = Self::start_at(home, &self.address.clone()).await?;
        Ok(())
    }

    /// Ends the broker as an administrator would. Whether it ended well, and in time.
    pub(super) async fn end(mut self) -> anyhow::Result<bool> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.context("the broker has no id")?, Signal::TERM)?;
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status.success());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(false)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn did_not_start(home: &Path) -> Failure {
    let log = std::fs::read_to_string(home.join(LOG)).unwrap_or_default();
    let last: Vec<_> = log.lines().rev().take(3).collect();
    let said = last.into_iter().rev().collect::<Vec<_>>().join("\n");
    Failure::new(
        Exit::Unavailable,
        format!("the demo's broker did not start: {said}"),
        "try to start one by yourself, and see what it says",
    )
    .next("tasuki serve --data \"$(mktemp -d)\" --listen 127.0.0.1:0")
}

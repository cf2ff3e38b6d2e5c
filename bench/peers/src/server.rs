//! A server process that this program started, and its end.

use std::{
    fs::File,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

const START_SECONDS_MAX: u64 = 30;
const STOP_SECONDS_MAX: u64 = 10;
/// A database writes everything out first.
const ORDERLY_STOP_SECONDS_MAX: u64 = 120;
const LOG_LINES_SHOWN_MAX: usize = 20;
const PAUSE: Duration = Duration::from_millis(20);

/// Ends the process when dropped, by its own id: politely first, then for certain.
pub(crate) struct Server {
    name: String,
    child: Child,
    log: PathBuf,
    stop_signal: Signal,
}

impl Server {
    /// Starts the command with its output in `log`, after what an earlier start left there.
    pub(crate) fn start(
        name: &str,
        command: &mut Command,
        log: PathBuf,
        stop_signal: Signal,
    ) -> Result<Self> {
        let output = File::options().create(true).append(true).open(&log);
        let output = output.context("cannot make a log file")?;
        let child = command
            .stdin(Stdio::null())
            .stderr(output.try_clone()?)
            .stdout(output)
            // A Ctrl-C at the terminal must reach this program alone, which then ends the servers.
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        Ok(Self { name: name.to_owned(), child, log, stop_signal })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal and waits until the process has ended of it.
    pub(crate) async fn stop(&mut self, signal: Signal) -> Result<()> {
        self.signal(signal);
        let deadline = Instant::now() + Duration::from_secs(ORDERLY_STOP_SECONDS_MAX);
        while self.child.try_wait()?.is_none() {
            ensure!(Instant::now() < deadline, "{} does not end", self.name);
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    fn signal(&mut self, signal: Signal) {
        // Until it is waited for, the id stays with this child and can name no other process.
        if let Ok(None) = self.child.try_wait() {
            let _ = kill_process(Pid::from_child(&self.child), signal);
        }
    }

    /// Waits until the probe says yes.
    pub(crate) async fn wait_until(&mut self, mut probe: impl AsyncFnMut() -> bool) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(START_SECONDS_MAX);
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended at once ({status}):\n{}", self.name, last_lines(&self.log));
            }
            // A probe may hang on a server that accepts and does not answer.
            if let Ok(true) = tokio::time::timeout(Duration::from_secs(1), probe()).await {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("{} does not become ready:\n{}", self.name, last_lines(&self.log));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.signal(self.stop_signal);
        let deadline = Instant::now() + Duration::from_secs(STOP_SECONDS_MAX);
        while let Ok(None) = self.child.try_wait() {
            if Instant::now() > deadline {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            thread::sleep(PAUSE);
        }
    }
}

/// A port that was free a moment ago. Another process could take it before the server does; the
/// server then fails to start and says so.
pub(crate) fn free_address() -> Result<SocketAddr> {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot find a free port")?;
    Ok(listener.local_addr()?)
}

/// The first line that a program says about its version.
pub(crate) fn version(program: &Path, flag: &str) -> Result<String> {
    let output = Command::new(program)
        .arg(flag)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

fn last_lines(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES_SHOWN_MAX)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(script: &str, directory: &Path) -> Server {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Server::start("a server", &mut command, directory.join("log"), Signal::TERM).unwrap()
    }

    #[test]
    fn a_dropped_server_has_ended() {
        let directory = tempfile::tempdir().unwrap();
        let server = start("exec sleep 600", directory.path());
        let pid = Pid::from_child(&server.child);
        drop(server);
        assert!(rustix::process::test_kill_process(pid).is_err());
    }

    #[tokio::test]
    async fn a_server_that_cannot_start_is_reported_with_its_last_words() {
        let directory = tempfile::tempdir().unwrap();
        let mut server = start("echo no room >&2; exit 3", directory.path());
        let error = server.wait_until(async || false).await.unwrap_err();
        assert!(error.to_string().contains("no room"), "{error}");
    }
}

// SPDX-License-Identifier: Apache-2.0
//! One run of the command: what it reads, what it writes, and how it is asked to stop.

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use super::outcome::End;
use crate::output::tell;

/// How much of stdout is read; the broker takes less than that.
const STDOUT_BYTES_MAX: usize = 8 << 20;
/// How much of the end of stderr goes into a failure.
const STDERR_BYTES_MAX: usize = 4 << 10;
/// A line on stderr is passed on in pieces of this size at most.
const LINE_BYTES_MAX: usize = 8 << 10;
/// How long others may hold the command's stdout open after it has ended.
const LINGER: Duration = Duration::from_secs(2);

/// What to run.
pub(super) struct Run {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
    pub(super) environment: Vec<(&'static str, OsString)>,
    pub(super) stdin: Option<File>,
    /// What stands before each line of its stderr.
    pub(super) name: String,
}

pub(super) struct Running {
    child: Child,
    group: Option<Pid>,
    stdout: JoinHandle<Option<Vec<u8>>>,
    stderr: JoinHandle<String>,
}

impl Run {
    pub(super) fn start(self) -> std::io::Result<Running> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .envs(self.environment)
            .stdin(self.stdin.map_or_else(Stdio::null, Stdio::from))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own: what it started ends with it, and Ctrl-C is for us to pass on.
            .process_group(0)
            .kill_on_drop(true);
        let mut child = command.spawn()?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let stdout = child.stdout.take().map(read_all);
        let stderr = child.stderr.take().map(|stderr| pass_on(stderr, self.name));
        // Not watched: it is waited for, with what it read.
        let stdout = tokio::spawn(async move {
            match stdout {
                Some(reading) => reading.await,
                None => Some(Vec::new()),
            }
        });
        // Not watched: it is waited for, with what it read.
        let stderr = tokio::spawn(async move {
            match stderr {
                Some(reading) => reading.await,
                None => String::new(),
            }
        });
        Ok(Running { child, group, stdout, stderr })
    }
}

impl Running {
    /// Waits for its end. May be given up and called again.
    pub(super) async fn ended(&mut self) -> std::io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// What it wrote, once it has ended.
    pub(super) async fn said(mut self, status: ExitStatus) -> End {
        // What it left running may hold its pipes open, and is given a moment to finish.
        let both = async { (&mut self.stdout).await.ok().zip((&mut self.stderr).await.ok()) };
        let said = tokio::time::timeout(LINGER, both).await;
        let (stdout, stderr) = match said {
            Ok(Some(said)) => said,
            Ok(None) => (None, String::new()),
            Err(_) => {
                self.signal(Signal::KILL);
                let stdout = tokio::time::timeout(LINGER, &mut self.stdout).await;
                let stderr = tokio::time::timeout(LINGER, &mut self.stderr).await;
                let stderr = stderr.ok().and_then(Result::ok).unwrap_or_default();
                (stdout.ok().and_then(Result::ok).flatten(), stderr)
            }
        };
        End { status, stdout, stderr }
    }

    /// Asks it to end, and ends it after `grace`, or when `hurry` says so.
    pub(super) async fn stop(mut self, grace: Duration, hurry: impl Future<Output = ()>) {
        self.signal(Signal::TERM);
        let ended = tokio::select! {
            ended = self.child.wait() => ended.is_ok(),
            () = tokio::time::sleep(grace) => false,
            () = hurry => false,
        };
        // Whoever still holds its pipes is of its group.
        let silent = tokio::time::timeout(Duration::from_millis(100), &mut self.stdout);
        if !ended || silent.await.is_err() {
            self.signal(Signal::KILL);
        }
        // What no signal ends, nothing here can end.
        let _ = tokio::time::timeout(LINGER, self.child.wait()).await;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // It may be gone already.
            let _ = kill_process_group(group, signal);
        }
    }
}

/// Reads everything, and keeps nothing if that is too much.
async fn read_all(mut from: impl AsyncRead + Unpin) -> Option<Vec<u8>> {
    let mut all = Some(Vec::new());
    let mut piece = vec![0; 16 << 10];
    while let Ok(read @ 1..) = from.read(&mut piece).await {
        all = all.filter(|all| all.len() + read <= STDOUT_BYTES_MAX);
        if let Some(all) = &mut all {
            all.extend_from_slice(&piece[..read]);
        }
    }
    all
}

/// Passes lines on to our stderr, and keeps the last ones.
async fn pass_on(mut from: impl AsyncRead + Unpin, name: String) -> String {
    let mut tail = Vec::new();
    let mut line = Vec::new();
    let mut piece = vec![0; 4 << 10];
    let say = |line: &[u8]| tell(&format!("{name}| {}", String::from_utf8_lossy(line)));
    while let Ok(read @ 1..) = from.read(&mut piece).await {
        tail.extend_from_slice(&piece[..read]);
        let over = tail.len().saturating_sub(STDERR_BYTES_MAX);
        tail.drain(..over);
        for byte in &piece[..read] {
            if *byte == b'\n' || line.len() >= LINE_BYTES_MAX {
                say(&line);
                line.clear();
            }
            if *byte != b'\n' {
                line.push(*byte);
            }
        }
    }
    if !line.is_empty() {
        say(&line);
    }
    String::from_utf8_lossy(&tail).into_owned()
}

// SPDX-License-Identifier: Apache-2.0
//! The shell that the examples run in, the broker they talk to, and the folder they may litter.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

/// How long one example may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// The first start may have to build the broker.
const BUILD_PATIENCE: Duration = Duration::from_secs(3600);
/// How long a broker may take to end.
const END_PATIENCE: Duration = Duration::from_secs(30);
/// Ends the output of each example; its status follows.
const MARK: &str = "=====example-ended=====";
/// What a broker says last when it starts.
const READY: &str = "ready";
/// Where the documents say that the data is.
const DATA: &str = "./tasuki-data";

/// A folder that is gone afterwards.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn make() -> anyhow::Result<Self> {
        let name = format!("tasuki-readme-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // Left over from a process that had the same id and was killed.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// An output as it would be for somebody who followed the document.
    pub(super) fn unnamed(&self, output: &str) -> String {
        let here = self.0.display().to_string();
        let at = |text: &str| text.find("127.0.0.1:").map(|at| at + "127.0.0.1:".len());
        let mut told = String::new();
        let mut rest = output;
        while let Some(end) = at(rest) {
            let (head, tail) = rest.split_at(end);
            let digits = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
            told.push_str(head);
            told.push_str("8788");
            rest = &tail[digits..];
        }
        told.push_str(rest);
        told.replace(&format!("{here}/tasuki-data"), DATA).replace(&here, ".")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that stays behind does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A command that sees what an example should see, and nothing of this machine's settings.
fn command(program: &str, binaries: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TASUKI_") {
            command.env_remove(name);
        }
    }
    let mut path = std::ffi::OsString::from(binaries);
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    command.env("PATH", path).env("LC_ALL", "C.UTF-8");
    // A group of its own, so that whatever an example leaves running can be ended with it.
    command.process_group(0);
    command
}

fn end_group(child: &Child, signal: &str) {
    let group = format!("-{}", child.id());
    // A group that has ended already needs no end.
    let _ = Command::new("kill").args([signal, "--", &group]).stderr(Stdio::null()).status();
}

/// Lines as they come, without waiting for ever.
fn lines_of(from: impl Read + Send + 'static) -> Receiver<String> {
    let (tell, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
            if tell.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    lines
}

pub(super) struct Shell {
    bash: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Shell {
    pub(super) fn start(folder: &Path, binaries: &Path) -> anyhow::Result<Self> {
        let mut bash = command("bash", binaries)
            .args(["--noprofile", "--norc"])
            .current_dir(folder)
            // What is remembered from command to command is not mixed with the user's own.
            .env("TASUKI_STATE", folder.join(".state"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot run bash")?;
        let input = bash.stdin.take().context("bash has no stdin")?;
        let lines = lines_of(bash.stdout.take().context("bash has no stdout")?);
        let mut shell = Self { bash, input, lines };
        shell.run("trap 'failed=$?' ERR")?;
        Ok(shell)
    }

    /// What some commands print on either stream, and the status of the last one that failed.
    pub(super) fn run(&mut self, script: &str) -> anyhow::Result<(String, i32)> {
        // Braces, because a subshell would keep its variables to itself.
        let script = script.trim_end();
        let (open, close) = ("failed=0; {", "} </dev/null 2>&1; printf");
        writeln!(self.input, "{open}\n{script}\n{close} '\\n{MARK} %s\\n' $failed")
            .context("bash has ended")?;
        let mut output = String::new();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                bail!("no end after {} s; so far it printed\n{output}", PATIENCE.as_secs());
            };
            if let Some(status) = line.strip_prefix(MARK) {
                let status = status.trim().parse().context("bash told no status")?;
                return Ok((output.trim_end().to_owned() + "\n", status));
            }
            output.push_str(&line);
            output.push('\n');
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        end_group(&self.bash, "-KILL");
        let _ = self.bash.wait();
    }
}

pub(super) struct Broker {
    process: Child,
    pub(super) url: String,
}

impl Broker {
    /// Starts a broker by the very command that a document shows, and waits until it is ready. Where
    /// it listens and what it writes to is told by the environment.
    pub(super) fn start(
        folder: &Path,
        data: &Path,
        binaries: &Path,
        script: &str,
    ) -> anyhow::Result<(Self, String)> {
        let mut process = command("bash", binaries)
            .args(["--noprofile", "--norc", "-c", script])
            .current_dir(folder)
            .env("TASUKI_DATA", data)
            .env("TASUKI_LISTEN", "127.0.0.1:0")
            .env("TASUKI_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot run bash")?;
        let lines = lines_of(process.stdout.take().context("the broker has no stdout")?);
        let mut broker = Self { process, url: String::new() };
        let mut greeting = String::new();
        loop {
            let Ok(line) = lines.recv_timeout(BUILD_PATIENCE) else {
                bail!("the broker did not start; it said\n{greeting}");
            };
            greeting.push_str(&line);
            greeting.push('\n');
            if line.trim() == READY {
                break;
            }
        }
        let url = greeting.split_whitespace().find_map(|word| word.strip_suffix("/v1"));
        broker.url = url.context("the broker did not tell its URL")?.to_owned();
        Ok((broker, greeting))
    }

    /// Asks it to end, as a person would, and sees that it ends well.
    pub(super) fn end(mut self) -> anyhow::Result<()> {
        end_group(&self.process, "-INT");
        let deadline = Instant::now() + END_PATIENCE;
        while Instant::now() < deadline {
            if let Some(status) = self.process.try_wait().context("cannot wait")? {
                if !status.success() {
                    bail!("the broker ended with {status}");
                }
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        bail!("the broker did not end within {} s", END_PATIENCE.as_secs())
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if matches!(self.process.try_wait(), Ok(None)) {
            end_group(&self.process, "-KILL");
            let _ = self.process.wait();
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! A scratch directory, brokers that end with the test, and commands with what they said.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

pub struct Stage {
    dir: TempDir,
}

/// A command that ended.
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Default for Stage {
    fn default() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }
}

impl Stage {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// `tasuki` in this directory, with nothing in its environment that is ours.
    pub fn command<S: AsRef<std::ffi::OsStr>>(&self, arguments: &[S]) -> Command {
        self.program("tasuki", arguments)
    }

    /// `tasuki-tools`, the same way.
    pub fn tools<S: AsRef<std::ffi::OsStr>>(&self, arguments: &[S]) -> Command {
        self.program("tasuki-tools", arguments)
    }

    fn program<S: AsRef<std::ffi::OsStr>>(&self, name: &str, arguments: &[S]) -> Command {
        let mut command = Command::new(program(name));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("TASUKI_") {
                command.env_remove(name);
            }
        }
        // What commands remember is remembered here and not where this user's own is.
        command.env("TASUKI_STATE", self.path("state"));
        command.current_dir(self.dir.path()).args(arguments).stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments))
    }

    /// A broker on `data` and a port of its own.
    pub fn broker(&self, data: &str) -> Broker {
        self.broker_with(data, &[])
    }

    pub fn broker_with(&self, data: &str, more: &[&str]) -> Broker {
        let serve = ["serve", "--listen", "127.0.0.1:0", "--data", data];
        Broker::start(self.command(&[&serve, more].concat()))
    }
}

impl Ran {
    pub fn of(mut command: Command) -> Self {
        let output = command.output().unwrap();
        Self {
            code: output.status.code().expect("no signal ended it"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// What it said, if it did what it was asked.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, 0, "{}{}", self.out, self.err);
        self.out
    }

    /// Checks how it ended and that it said all of this.
    #[track_caller]
    pub fn ends(self, code: i32, said: &[&str]) -> Self {
        let text = format!("{}{}", self.out, self.err);
        assert_eq!(self.code, code, "{text}");
        for part in said {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert!(!text.contains("panicked"), "{text}");
        self
    }

    #[track_caller]
    pub fn json(self) -> Value {
        let text = self.ok();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in\n{text}"))
    }
}

/// A running broker. It is killed when the test ends, however the test ends.
pub struct Broker {
    child: Child,
    pub greeting: String,
    pub url: String,
    stdout: BufReader<ChildStdout>,
    stderr: BufReader<ChildStderr>,
}

impl Broker {
    pub fn start(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut greeting = String::new();
        while !greeting.ends_with("ready\n") {
            if stdout.read_line(&mut greeting).unwrap() == 0 {
                let said = std::io::read_to_string(stderr).unwrap();
                panic!("it ended before it was ready: {greeting}{said}");
            }
        }
        let url = greeting.lines().find_map(|line| line.strip_prefix("API:")).unwrap();
        let url = url.trim().strip_suffix("/v1").unwrap().to_owned();
        Self { child, greeting, url, stdout, stderr }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where it listens, without the scheme.
    pub fn address(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Reads the log until a line has this in it.
    pub fn wait_for_log(&mut self, part: &str) {
        let mut line = String::new();
        while !line.contains(part) {
            line.clear();
            assert_ne!(self.stderr.read_line(&mut line).unwrap(), 0, "no line has {part:?}");
        }
    }

    /// Waits for its end; all it said after being ready comes with it.
    pub fn end(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        let mut said = String::new();
        for line in (&mut self.stdout).lines().chain((&mut self.stderr).lines()) {
            said += &line.unwrap();
            said.push('\n');
        }
        (status, said)
    }

    pub fn stop(self) {
        self.signal(Signal::TERM);
        let (status, said) = self.end();
        assert!(status.success(), "{status}: {said}");
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Commands that talk to one broker.
pub struct Talk<'s> {
    pub stage: &'s Stage,
    pub broker: &'s Broker,
}

impl Talk<'_> {
    pub fn command(&self, line: &str) -> Command {
        let mut command = self.stage.command(&split(line));
        command.env("TASUKI_URL", &self.broker.url);
        command
    }

    /// Runs a line as one would type it; words in single quotes stay together.
    pub fn run(&self, line: &str) -> Ran {
        Ran::of(self.command(line))
    }

    pub fn json(&self, line: &str) -> Value {
        self.run(&format!("{line} --json")).json()
    }

    /// Offers some work and returns the handoff's id.
    pub fn offer(&self, more: &str) -> String {
        let line = format!(
            "handoff offer --from coder --to reviewer --intent 'look at it' \
             --payload '{{\"type\":\"code\"}}' {more}"
        );
        text(&self.json(&line)["handoff_id"])
    }

    /// Claims for the reviewer: the handoff's id, and the arguments that show the claim.
    pub fn claim(&self) -> (String, String) {
        let claims = self.json("handoff claim --agent reviewer");
        let claim = &claims["claims"][0];
        let proof = format!("--claim {} --fence {}", text(&claim["claim_id"]), claim["fence"]);
        (text(&claim["handoff_id"]), proof)
    }
}

/// A binary of this workspace. Cargo puts tests into a folder beside it, but makes it only with the
/// tests of its own crate.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let mut near = test.ancestors().skip(1).take(2).map(|folder| folder.join(name));
    let program = near.find(|program| program.exists()).unwrap_or_default();
    assert!(program.exists(), "{name} is not there: `cargo build -p {name}` makes it");
    program
}

#[must_use]
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// The words of a line. Single quotes keep words together, as in a shell.
pub fn split(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for (number, part) in line.trim_start_matches("tasuki ").split('\'').enumerate() {
        if number % 2 == 1 {
            words.last_mut().unwrap().push_str(part);
            continue;
        }
        for (number, word) in part.split(' ').enumerate() {
            if number > 0 {
                words.push(String::new());
            }
            words.last_mut().unwrap().push_str(word);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

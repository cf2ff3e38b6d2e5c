// SPDX-License-Identifier: Apache-2.0
//! A command as an agent.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tasuki_testing::stage::{Broker, Ran, Stage, Talk};

/// `tasuki work` with a script, and what else is said on its command line.
fn worker(talk: &Talk<'_>, more: &[&str], script: &str) -> Command {
    let mut words = vec!["work", "--agent", "reviewer"];
    words.extend(more);
    words.extend(["--", "sh", "-c", script]);
    let mut command = talk.stage.command(&words);
    command.env("TASUKI_URL", &talk.broker.url).env("TMPDIR", talk.stage.path(""));
    command
}

fn attempt(talk: &Talk<'_>, handoff: &str) -> Value {
    let shown = talk.json(&format!("handoff show {handoff}"));
    shown["attempts"].as_array().unwrap().last().unwrap().clone()
}

/// A worker that goes on while the test does something else.
struct Working {
    child: Child,
    stderr: BufReader<ChildStderr>,
    said: String,
}

impl Working {
    fn start(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stderr, said: String::new() }
    }

    /// Reads until a line has this in it.
    fn until(&mut self, part: &str) {
        loop {
            let begin = self.said.len();
            let read = self.stderr.read_line(&mut self.said).unwrap();
            assert_ne!(read, 0, "no line has {part:?}:\n{}", self.said);
            if self.said[begin..].contains(part) {
                return;
            }
        }
    }

    fn terminate(&self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
    }

    fn ends(mut self) -> (ExitStatus, String) {
        self.said += &std::io::read_to_string(&mut self.stderr).unwrap();
        (self.child.wait().unwrap(), std::mem::take(&mut self.said))
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_a_command_reads_is_the_prompt_and_what_it_writes_is_the_result() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    let handoff = talk.offer("");
    let script = "grep -q 'look at it' && grep -q '\"type\":\"code\"' $TASUKI_PAYLOAD_FILE && \
                  grep -q claim_id $TASUKI_CLAIM_FILE && echo \"{\\\"for\\\":\\\"$TASUKI_FROM\\\"}\"";
    let ran = Ran::of(worker(&talk, &["--once", "--json"], script)).ends(0, &["took", "done"]);
    let line: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (&line["handoff_id"], &line["ended"]),
        (&handoff.as_str().into(), &"completed".into())
    );
    let shown = talk.json(&format!("handoff show {handoff}"));
    assert_eq!(shown["output"]["payload"], serde_json::json!({"type": "result", "for": "coder"}));

    let handoff = talk.offer("");
    let script = "echo noise; cat > $TASUKI_RESULT_FILE";
    Ran::of(worker(&talk, &["--once", "--stdin", "payload"], script)).ends(0, &[]);
    let shown = talk.json(&format!("handoff show {handoff}"));
    assert_eq!(shown["output"]["payload"], serde_json::json!({"type": "code"}));
    // What was laid out for commands is gone.
    let left = std::fs::read_dir(stage.path("")).unwrap().map(|it| it.unwrap().file_name());
    assert!(left.into_iter().all(|it| !it.to_string_lossy().starts_with("tasuki-work")));
}

#[test]
fn exit_codes_are_classes_of_failures_and_stderr_says_why() {
    let stage = Stage::new();
    let broker = stage.broker_with("data", &["--breakers-failures", "100"]);
    let talk = Talk { stage: &stage, broker: &broker };
    let check = |more: &[&str], script: &str, ended: &str| {
        let handoff = talk.offer("--attempts 1");
        Ran::of(worker(&talk, &[&["--once"], more].concat(), script)).ends(1, &["failed"]);
        assert_eq!(attempt(&talk, &handoff)["ended"], ended, "{script}");
        talk.run(&format!("dead-letter show {handoff}")).ok()
    };
    check(&[], "exit 75", "failed_retryable");
    check(&[], "exit 65", "failed_permanent");
    check(&[], "exit 1", "failed_unknown");
    check(&["--permanent", "1,75"], "exit 75", "failed_permanent");
    check(&["--retryable", "9"], "exit 9", "failed_retryable");
    check(&["--otherwise", "permanent"], "kill -9 $$", "failed_permanent");
    let letter =
        check(&[], "echo half a result; echo no such branch >&2; exit 1", "failed_unknown");
    assert!(letter.contains("sh ended with exit code 1: no such branch"), "{letter}");
    // A secret in it is not stored, and the failure is.
    let key = "echo AKIAIOSFODNN7REALKEY -----BEGIN RSA PRIVATE KEY----- >&2; exit 1";
    check(&[], key, "failed_unknown");
    // A result that is refused stays refused.
    check(&[], "echo '{\"type\": 7}'", "failed_permanent");
}

#[test]
fn a_command_whose_claim_is_over_is_asked_to_stop_and_then_stopped() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    let lease = ["--once", "--lease", "600ms"];
    let handoff = talk.offer("");
    let script = "trap 'echo asked > asked; exit 0' TERM; echo up >&2; sleep 600 & wait";
    let mut working = Working::start(worker(&talk, &lease, script));
    working.until("| up");
    talk.run(&format!("handoff cancel {handoff} --by coder --reason enough")).ok();
    let (status, said) = working.ends();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("lost ") && stage.path("asked").exists(), "{said}");

    // Who does not listen is ended, with whatever it started.
    let handoff = talk.offer("");
    let script = "trap '' TERM; echo up >&2; sleep 600 & wait; wait";
    let stubborn = [&lease[..], &["--grace", "100ms"]].concat();
    let mut working = Working::start(worker(&talk, &stubborn, script));
    working.until("| up");
    talk.run(&format!("handoff cancel {handoff} --by coder --reason enough")).ok();
    let (_, said) = working.ends();
    assert!(said.contains("lost "), "{said}");
}

#[test]
fn a_worker_that_is_asked_to_stop_gives_its_work_back() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    let handoff = talk.offer("");
    let script = "trap 'echo asked > asked; exit 0' TERM; echo up >&2; sleep 600 & wait";
    let mut working = Working::start(worker(&talk, &["--concurrency", "3"], script));
    working.until("| up");
    working.terminate();
    let (status, said) = working.ends();
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(said.contains("released ") && stage.path("asked").exists(), "{said}");
    assert_eq!(attempt(&talk, &handoff)["ended"], "released");
    assert_eq!(talk.json(&format!("handoff show {handoff}"))["state"], "pending");

    // One without work is in the middle of a long wait, and ends it.
    talk.run(&format!("handoff cancel {handoff} --by coder --reason next")).ok();
    let mut idle = Working::start(worker(&talk, &[], "true"));
    idle.until("works with");
    idle.terminate();
    assert_eq!(idle.ends().0.code(), Some(0));
}

#[test]
fn a_command_goes_on_while_the_broker_is_killed_and_its_result_arrives() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    let handoff = talk.offer("");
    let script = "echo up >&2; until [ -e go ]; do sleep 0.05; done; echo ended >&2; echo fine";
    let mut working = Working::start(worker(&talk, &["--once"], script));
    working.until("| up");
    let address = broker.address().to_owned();
    broker.signal(Signal::KILL);
    broker.end();
    stage.write("go", "");
    // It ends while nobody can be told.
    working.until("| ended");
    let again = stage.command(&["serve", "--listen", &address, "--data", "data"]);
    let broker = Broker::start(again);
    let (status, said) = working.ends();
    assert_eq!(status.code(), Some(0), "{said}");
    let talk = Talk { stage: &stage, broker: &broker };
    let shown = talk.json(&format!("handoff show {handoff}"));
    assert_eq!(shown["output"]["payload"]["text"], "fine");
    assert_eq!(shown["attempts"].as_array().unwrap().len(), 1);
}

#[test]
fn several_commands_run_at_a_time() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    let both = [talk.offer(""), talk.offer("")];
    // None of them ends before both have begun.
    let script = "touch $TASUKI_HANDOFF.up; until [ $(ls *.up | wc -l) = 2 ]; do sleep 0.05; done";
    Ran::of(worker(&talk, &["--concurrency", "2", "--wait", "0s"], script)).ends(0, &[]);
    for handoff in both {
        assert_eq!(talk.json(&format!("handoff show {handoff}"))["state"], "completed");
    }
}

#[test]
fn a_command_reports_with_other_commands_that_know_its_claim() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    let tasuki = env!("CARGO_BIN_EXE_tasuki");
    let handoff = talk.offer("");
    let script = format!(
        "{tasuki} handoff progress --percent 50 --note half >&2 && \
         echo '{{\"input_tokens\": 900, \"output_tokens\": 300, \"cost\": 0.02}}' > $TASUKI_USAGE_FILE"
    );
    Ran::of(worker(&talk, &["--once"], &script)).ends(0, &[]);
    talk.run(&format!("task tree {handoff}")).ends(0, &["1200 tokens, cost 0.02"]);

    // One that asks gives the claim up, and that is no failure.
    let handoff = talk.offer("");
    let script = format!("{tasuki} handoff ask --text 'which branch?' >&2");
    Ran::of(worker(&talk, &["--once"], &script)).ends(0, &["reported", "asked"]);
    assert_eq!(talk.json(&format!("handoff show {handoff}"))["state"], "input_required");
}

#[test]
fn a_worker_without_work_or_without_a_program_says_so() {
    let stage = Stage::new();
    let broker = stage.broker("data");
    let talk = Talk { stage: &stage, broker: &broker };
    Ran::of(worker(&talk, &["--wait", "0s"], "true")).ends(5, &["reviewer works with sh"]);
    let named = |program: &str| talk.run(&format!("work --agent reviewer -- {program}"));
    named("is-not-there-at-all").ends(2, &["there is no program is-not-there-at-all"]);
    stage.write("review.sh", "#!/bin/sh\n");
    named("./review.sh").ends(2, &["./review.sh cannot be executed", "chmod +x"]);
    talk.run("work --agent reviewer").ends(2, &["Usage: tasuki work"]);
}

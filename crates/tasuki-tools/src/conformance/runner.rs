// SPDX-License-Identifier: Apache-2.0
//! Carries checks out against a server. Every wait has an end, whatever the server does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::compare::{cut, shown};
use super::matcher::{Expect, Found};
use super::report::{Failed, Outcome};
use super::suite::{Check, Operation, Step, Suite};
use super::value::{Scope, resolve, text_with};
use tasuki_cli::client::{Client, Method, Sent, escaped};

/// How long a step that is repeated rests in between.
const PAUSE: Duration = Duration::from_millis(50);

pub(crate) struct Runner {
    pub(crate) suite: Suite,
    pub(crate) client: Client,
    /// How long an answer may take beyond what a step asks the server to wait.
    pub(crate) timeout: Duration,
    /// What tells this run's names from those of others.
    pub(crate) run: String,
}

impl Runner {
    /// Runs the chosen checks, some at a time, and gives their outcomes in the suite's order.
    pub(crate) async fn run(self: Arc<Self>, chosen: &[usize], at_a_time: usize) -> Vec<Outcome> {
        let turns = Arc::new(Semaphore::new(at_a_time));
        let mut running = JoinSet::new();
        for &number in chosen {
            let (runner, turns) = (self.clone(), turns.clone());
            running.spawn(async move {
                let _turn = turns.acquire_owned().await;
                let check = &runner.suite.checks[number];
                let began = Instant::now();
                let failed = runner.check(number, check).await.err();
                Outcome { number, failed, took: began.elapsed() }
            });
        }
        let mut outcomes = Vec::new();
        while let Some(ended) = running.join_next().await {
            // A check that is not carried out to its end must not look as if it were not there.
            outcomes.push(ended.unwrap_or_else(|bug| std::panic::resume_unwind(bug.into_panic())));
        }
        outcomes.sort_by_key(|outcome| outcome.number);
        outcomes
    }

    async fn check(&self, number: usize, check: &Check) -> Result<(), Failed> {
        let unique = Value::String(format!("{}-{number}", self.run));
        let mut scope = Scope::from([("u".to_owned(), unique)]);
        for (number, step) in check.steps.iter().enumerate() {
            self.step(step, &mut scope).await.map_err(|mut failed| {
                failed.step = number + 1;
                failed
            })?;
        }
        Ok(())
    }

    async fn step(&self, step: &Step, scope: &mut Scope) -> Result<(), Failed> {
        for (name, value) in &step.set {
            let value = resolve(value, scope).map_err(Failed::of)?;
            scope.insert(name.clone(), value);
        }
        let found = match (&step.operation, &step.value) {
            (Some(name), _) => {
                let operation = &self.suite.operations[name];
                let place = format!("{} {}", operation.method, operation.path);
                let answered = self.until_expected(operation, step, scope).await;
                answered.map_err(|failed| Failed { request: Some(place), ..failed })?
            }
            (None, Some(value)) => {
                let answer = Answer { status: None, body: resolve(value, scope)? };
                self.expected(step, &answer, scope)?;
                answer
            }
            (None, None) => return Ok(()),
        };
        for (name, pointer) in &step.save {
            let pointer = text_with(pointer, scope)?;
            let Some(part) = found.body.pointer(&pointer) else {
                let what = format!("{pointer}: nothing is there, and it is needed as {name}");
                return Err(Failed { came: Some(shown(&found.body)), ..Failed::of(what) });
            };
            scope.insert(name.clone(), part.clone());
        }
        Ok(())
    }

    async fn until_expected(
        &self,
        operation: &Operation,
        step: &Step,
        scope: &Scope,
    ) -> Result<Answer, Failed> {
        let until = Instant::now() + Duration::from_millis(step.within_ms.unwrap_or(0));
        loop {
            let answer = match step.at_once {
                Some(times) => self.at_once(operation, step, scope, times).await?,
                None => self.call(Call::of(operation, step, scope)?).await?,
            };
            match self.expected(step, &answer, scope) {
                Ok(()) => return Ok(answer),
                Err(failed) if Instant::now() >= until => return Err(failed),
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// The same call many times at the same time. What comes back is a list, by status.
    async fn at_once(
        &self,
        operation: &Operation,
        step: &Step,
        scope: &Scope,
        times: u32,
    ) -> Result<Answer, Failed> {
        let mut calls = Vec::new();
        for number in 0..times {
            let mut scope = scope.clone();
            scope.insert("n".to_owned(), number.into());
            calls.push(self.call(Call::of(operation, step, &scope)?));
        }
        let mut replies = Vec::new();
        for answer in futures::future::join_all(calls).await {
            let answer = answer?;
            replies.push((answer.status, json!({ "status": answer.status, "body": answer.body })));
        }
        replies.sort_by_key(|(status, _)| *status);
        let body = replies.into_iter().map(|(_, reply)| reply).collect();
        Ok(Answer { status: None, body })
    }

    async fn call(&self, call: Call) -> Result<Answer, String> {
        let sent = Sent {
            method: call.method,
            path: &call.path,
            query: &call.query,
            body: call.body,
            timeout: self.timeout + call.wait,
        };
        let answer = self.client.exchange(sent).await;
        let (status, bytes) = answer.map_err(|why| format!("no answer: {}", cut(&why)))?;
        let body = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
        Ok(Answer { status: Some(status), body })
    }

    fn expected(&self, step: &Step, answer: &Answer, scope: &Scope) -> Result<(), Failed> {
        let Some(expect) = &step.expect else { return Ok(()) };
        let expect = Expect::read(&resolve(expect, scope)?)?;
        let found = Found { status: answer.status, body: &answer.body };
        let findings = expect.findings(&found, &self.suite.schemas);
        if findings.is_empty() {
            return Ok(());
        }
        let status = answer.status.map(|status| format!("{status} ")).unwrap_or_default();
        let came = Some(format!("{status}{}", shown(&answer.body)));
        Err(Failed { findings, came, ..Failed::default() })
    }
}

struct Answer {
    status: Option<u16>,
    body: Value,
}

/// A request with nothing left to look up.
struct Call {
    method: Method,
    path: String,
    query: Vec<(String, String)>,
    body: Option<Vec<u8>>,
    /// How long the server was asked to wait.
    wait: Duration,
}

impl Call {
    fn of(operation: &Operation, step: &Step, scope: &Scope) -> Result<Self, String> {
        let mut path = operation.path.clone();
        for (name, value) in texts(&step.path, scope)? {
            path = path.replace(&format!("{{{name}}}"), &escaped(&value));
        }
        let query = texts(&step.query, scope)?;
        let body = step.body.as_ref().map(|body| resolve(body, scope)).transpose()?;
        let asked = |name| body.as_ref().and_then(|body| body.get(name)?.as_u64());
        let in_query = query.iter().find(|(name, _)| name == "wait_ms");
        let wait_ms = asked("wait_ms")
            .or_else(|| asked("timeout_ms"))
            .or_else(|| in_query.and_then(|(_, value)| value.parse().ok()));
        let raw = step.raw.as_ref().map(|raw| text_with(raw, scope)).transpose()?;
        // Everything but a read has a body, and be it an empty object.
        let empty = (operation.method != "GET").then(|| "{}".to_owned());
        let body = raw.or_else(|| body.map(|body| body.to_string())).or(empty);
        Ok(Self {
            method: operation.method.parse().map_err(|_| "no such method".to_owned())?,
            path,
            query,
            body: body.map(String::into_bytes),
            wait: Duration::from_millis(wait_ms.unwrap_or(0).min(60_000)),
        })
    }
}

fn texts(members: &Map<String, Value>, scope: &Scope) -> Result<Vec<(String, String)>, String> {
    let text = |(name, value): (&String, &Value)| match resolve(value, scope)? {
        Value::String(text) => Ok((name.clone(), text)),
        other => Ok((name.clone(), other.to_string())),
    };
    members.iter().map(text).collect()
}

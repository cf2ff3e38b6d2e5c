// SPDX-License-Identifier: Apache-2.0
//! Starting the real binary and talking to it.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_tasuki");

/// A running broker; killed when it is dropped.
pub(crate) struct Broker {
    pub(crate) child: Child,
    pub(crate) url: String,
    stderr: Arc<Mutex<String>>,
    /// Reads what it says until its end.
    reader: Option<std::thread::JoinHandle<()>>,
}

impl Broker {
    pub(crate) fn start(data: &Path) -> Self {
        Self::start_with(data, |_| Command::new(BINARY), &[])
    }

    /// Starts the binary by way of another command, such as strace, which gets it as its argument.
    pub(crate) fn start_with(
        data: &Path,
        command: impl FnOnce(&str) -> Command,
        arguments: &[&str],
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        drop(listener);
        let mut command = command(BINARY);
        command
            .args(["serve", "--listen", &address, "--data"])
            .arg(data)
            .args(arguments)
            .env_remove("TASUKI_CONFIG")
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr = Arc::new(Mutex::new(String::new()));
        let mut errors = child.stderr.take().unwrap();
        let kept = stderr.clone();
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = errors.read(&mut bytes) {
                kept.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..read]));
            }
        });
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = lines.by_ref().map_while(Result::ok).any(|line| line.trim() == "ready");
        // Somebody has to read on, or a full pipe would stop the broker.
        std::thread::spawn(move || lines.for_each(drop));
        let url = format!("http://{address}");
        let broker = Self { child, url, stderr, reader: Some(reader) };
        assert!(ready, "the broker did not get ready: {}", broker.stderr());
        broker
    }

    pub(crate) fn stderr(&self) -> String {
        self.stderr.lock().unwrap().clone()
    }

    /// Ends the whole group: a tracer that is killed alone would leave the broker behind.
    pub(crate) fn kill(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.child.wait();
    }

    /// Waits for the broker to end by itself, and for its last words.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let status = self.child.wait().unwrap();
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        status
    }

    pub(crate) fn client(&self) -> Client {
        Client {
            http: reqwest::Client::builder()
                .timeout(Duration::from_secs(60))
                .no_proxy()
                .build()
                .unwrap(),
            url: self.url.clone(),
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.kill();
    }
}

#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    url: String,
}

/// What a broker answered: the status and the body.
pub(crate) type Answer = Result<(u16, Value), reqwest::Error>;

impl Client {
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        let response = self.http.post(format!("{}{path}", self.url)).json(body).send().await?;
        let status = response.status().as_u16();
        Ok((status, response.json().await?))
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        let response = self.http.get(format!("{}{path}", self.url)).send().await?;
        let status = response.status().as_u16();
        Ok((status, response.json().await?))
    }

    pub(crate) async fn offer(&self, key: &str, text: &str) -> Answer {
        self.offer_on(key, text, json!({})).await
    }

    pub(crate) async fn offer_on(&self, key: &str, text: &str, terms: Value) -> Answer {
        let body = json!({
            "from_agent": "sender",
            "to": { "capability": "work" },
            "intent": "survive",
            "payload": { "type": "text", "text": text },
            "terms": terms,
            "idempotency_key": key,
        });
        self.post("/v1/handoffs", &body).await
    }

    pub(crate) async fn claim(&self, agent: &str, request: &str, wait_ms: u64) -> Answer {
        let body = json!({
            "agent": agent,
            "capabilities": ["work"],
            "wait_ms": wait_ms,
            "request_id": request,
        });
        self.post("/v1/claims", &body).await
    }

    pub(crate) async fn complete(&self, claim: &Value, result: &str) -> Answer {
        let id = claim["handoff_id"].as_str().unwrap();
        let body = json!({
            "claim_id": claim["claim_id"],
            "fence": claim["fence"],
            "payload": { "type": "result", "text": result },
        });
        self.post(&format!("/v1/handoffs/{id}/complete"), &body).await
    }

    pub(crate) async fn heartbeat(&self, claim: &Value) -> Answer {
        let id = claim["handoff_id"].as_str().unwrap();
        let body = json!({ "claim_id": claim["claim_id"], "fence": claim["fence"] });
        self.post(&format!("/v1/handoffs/{id}/heartbeat"), &body).await
    }

    pub(crate) async fn handoff(&self, id: &str) -> Value {
        let (status, handoff) = self.get(&format!("/v1/handoffs/{id}")).await.unwrap();
        assert_eq!(status, 200, "{handoff}");
        handoff
    }

    /// Every event of the log, as lines of the export.
    pub(crate) async fn log(&self) -> Vec<Value> {
        let url = format!("{}/v1/audit/export", self.url);
        let text = self.http.get(url).send().await.unwrap().text().await.unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

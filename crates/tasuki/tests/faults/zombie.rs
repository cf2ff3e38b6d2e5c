// SPDX-License-Identifier: Apache-2.0
//! A worker that is stopped past its lease and then continued: somebody else has done the work, and
//! the zombie's result is refused.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::broker::{BINARY, Broker};

/// Claims, says so, waits for a line on its standard input, completes.
const WORKER: &str = r#"
set -eu
claim=$("$BINARY" handoff claim --agent slow --capability work --json)
field() { printf '%s' "$claim" | sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p"; }
echo claimed
read -r _
exec "$BINARY" --json handoff complete "$(field handoff_id)" --claim "$(field claim_id)" \
    --fence "$(field fence)" --payload '{"type":"result","text":"by the zombie"}'
"#;

#[tokio::test]
async fn a_worker_that_comes_back_after_its_lease_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let broker = Broker::start(scratch.path());
    let client = broker.client();
    let (_, offered) = client.offer_on("one", "x", json!({ "lease_ms": 300 })).await.unwrap();
    let id = offered["handoff_id"].as_str().unwrap();

    let mut worker = Command::new("sh")
        .args(["-c", WORKER])
        .env("BINARY", BINARY)
        .env("TASUKI_URL", &broker.url)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = [0; 8];
    std::io::Read::read_exact(worker.stdout.as_mut().unwrap(), &mut said).unwrap();
    signal(worker.id(), "STOP");

    // Waits for the event, not for time: the lease is lost and the work is there again.
    let (_, claims) = client.claim("quick", "one", 30_000).await.unwrap();
    let claim = &claims["claims"][0];
    assert_eq!(claim["handoff_id"], id);
    assert_eq!(claim["attempt"], 2);
    assert_eq!(client.complete(claim, "by the quick one").await.unwrap().0, 200);

    signal(worker.id(), "CONT");
    std::io::Write::write_all(worker.stdin.as_mut().unwrap(), b"go on\n").unwrap();
    let ended = worker.wait_with_output().unwrap();
    let complaint = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(4), "409 is exit code 4: {complaint}");
    assert!(complaint.contains("stale_claim"), "{complaint}");

    let handoff = client.handoff(id).await;
    assert_eq!(handoff["output"]["payload"]["text"], "by the quick one");
    assert_eq!(handoff["attempts"][0]["late"], true);
    assert_eq!(handoff["attempts"][0]["ended"], "lost_silence");
}

fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().unwrap();
    assert!(sent.success());
}

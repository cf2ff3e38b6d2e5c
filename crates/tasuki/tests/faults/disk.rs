// SPDX-License-Identifier: Apache-2.0
//! A disk that fails to sync, and one that fills up.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::broker::Broker;

#[tokio::test]
async fn a_failed_sync_ends_the_process_and_nothing_acknowledged_is_lost() {
    let data = tempfile::tempdir().unwrap();
    let strace = |binary: &str| {
        let mut strace = Command::new("strace");
        // The start-up syncs a few times; the fault comes in the middle of the work.
        let fault = "inject=fsync,fdatasync:error=EIO:when=40+";
        strace.args(["-f", "-qq", "-e", "trace=fsync,fdatasync", "-e", fault]);
        strace.args(["-e", "signal=none", "-o", "/dev/null"]).arg(binary);
        strace
    };
    let mut broker = Broker::start_with(data.path(), strace, &[]);
    let client = broker.client();
    let mut acknowledged = Vec::new();
    let refused = loop {
        assert!(acknowledged.len() < 1000, "the fault never came");
        match client.offer(&acknowledged.len().to_string(), "x").await {
            Ok((201, offered)) => {
                acknowledged.push(offered["handoff_id"].as_str().unwrap().to_owned());
            }
            other => break other,
        }
    };
    if let Ok((status, body)) = refused {
        assert_eq!(status, 503, "{body}");
    }
    let status = broker.ended();
    assert_eq!(status.code(), Some(74), "{}", broker.stderr());
    assert!(broker.stderr().contains("cannot commit to the data directory"), "{}", broker.stderr());
    assert!(!acknowledged.is_empty());
    let again = Broker::start(data.path());
    for id in &acknowledged {
        assert_eq!(again.client().handoff(id).await["state"], "pending");
    }
}

#[tokio::test]
async fn a_full_disk_refuses_new_work_and_still_takes_the_end_of_old_work() {
    let scratch = tempfile::tempdir().unwrap();
    let mount = scratch.path().join("small");
    std::fs::create_dir(&mount).unwrap();
    let mut broker =
        Broker::start_with(&mount.join("data"), |binary| on_small_disk(&mount, binary), &[]);
    let client = broker.client();
    client.offer("first", "x").await.unwrap();
    let (_, claims) = client.claim("worker", "only", 0).await.unwrap();
    let claim = &claims["claims"][0];

    let big = "x".repeat(200 * 1024);
    let mut stored = 0;
    let refused = loop {
        assert!(stored < 1000, "the disk never filled up");
        match client.offer(&format!("fill-{stored}"), &big).await.unwrap() {
            (201, _) => stored += 1,
            other => break other,
        }
    };
    assert_eq!(refused.0, 507, "{}", refused.1);
    assert_eq!(refused.1["code"], "disk_full");
    assert_eq!(refused.1["retryable"], true);
    let (_, stats) = client.get("/v1/stats").await.unwrap();
    assert_eq!(stats["disk_full"], true);

    assert_eq!(client.heartbeat(claim).await.unwrap().0, 200);
    let (status, answer) = client.complete(claim, "done").await.unwrap();
    assert_eq!(status, 200, "{answer}");
    let first = client.handoff(claim["handoff_id"].as_str().unwrap()).await;
    assert_eq!(first["state"], "completed");

    // Room comes back: the broker goes on by itself.
    std::fs::remove_file(inside(&broker, &mount).join("ballast")).unwrap();
    let mut tries = 0;
    while client.offer("after", "x").await.unwrap().0 != 201 {
        tries += 1;
        assert!(tries < 10_000, "the broker did not notice that there is room again");
    }
    let (_, verdict) = client.get("/v1/audit/verify").await.unwrap();
    assert_eq!(verdict["intact"], true, "{verdict}");
    assert_eq!(client.post("/v1/handoffs", &json!({})).await.unwrap().0, 400);
    broker.kill();
}

/// Runs a command where `mount` is a small file system of its own, half of it taken.
fn on_small_disk(mount: &Path, binary: &str) -> Command {
    let mut shell = Command::new("unshare");
    let script = "mount -t tmpfs -o size=120m tmpfs \"$1\" && \
                  head -c 56M /dev/zero > \"$1/ballast\" && shift && exec \"$@\"";
    shell.args(["--mount", "--map-root-user", "sh", "-c", script, "sh"]).arg(mount).arg(binary);
    shell
}

/// The mount as the broker sees it.
fn inside(broker: &Broker, mount: &Path) -> PathBuf {
    let root = PathBuf::from(format!("/proc/{}/root", broker.child.id()));
    root.join(mount.strip_prefix("/").unwrap())
}

// SPDX-License-Identifier: Apache-2.0
//! A power cut loses what was written and not synced. `kill -9` cannot show that, so this looks at
//! the order of system calls: no reply may leave before the log it promises was synced. The same
//! check finds fault with a broker whose sync is switched off.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::broker::Broker;

const OFFERS: usize = 30;

#[tokio::test]
async fn no_reply_leaves_before_its_log_is_synced() {
    let replies = replies_traced(&["--sync", "full"]).await;
    assert!(replies.len() >= OFFERS * 3, "only {} replies seen", replies.len());
    let early = replies.iter().filter(|reply| reply.synced_writes == 0).count();
    assert_eq!(early, 0, "{early} replies left before what they promise was synced");
    let bare = replies.iter().filter(|reply| reply.log_writes == 0).count();
    assert_eq!(bare, 0, "{bare} replies without a write to the log before them: not traced right");
}

#[tokio::test]
async fn the_check_finds_fault_with_a_broker_that_does_not_sync() {
    let replies = replies_traced(&["--sync", "off"]).await;
    assert!(replies.iter().any(|reply| reply.synced_writes == 0));
}

/// What happened to the log between one reply and the next. The client asks for one thing at a time, so
/// what a reply promises was written and synced in between. The broker may have begun to write something
/// of its own after that sync, which is nothing that the reply promises.
struct Reply {
    log_writes: usize,
    synced_writes: usize,
}

async fn replies_traced(arguments: &[&str]) -> Vec<Reply> {
    let scratch = tempfile::tempdir().unwrap();
    let trace = scratch.path().join("trace");
    let data = scratch.path().join("data");
    let strace = |binary: &str| {
        let mut strace = Command::new("strace");
        let calls = "trace=pwrite64,write,writev,sendto,sendmsg,fsync,fdatasync";
        strace.args(["-f", "-y", "-s", "16", "-e", calls, "-e", "signal=none", "-o"]);
        strace.arg(&trace).arg(binary);
        strace
    };
    let mut broker = Broker::start_with(&data, strace, arguments);
    let client = broker.client();
    for number in 0..OFFERS {
        let (status, _) = client.offer(&number.to_string(), "x").await.unwrap();
        assert_eq!(status, 201);
        let (_, claims) = client.claim("worker", &number.to_string(), 0).await.unwrap();
        let (status, _) = client.complete(&claims["claims"][0], "done").await.unwrap();
        assert_eq!(status, 200);
    }
    // One that is refused needs no sync and must not confuse the count.
    let (status, _) = client.post("/v1/handoffs", &json!({})).await.unwrap();
    assert_eq!(status, 400);
    broker.kill();
    read_trace(&trace)
}

/// Goes through the calls in the order in which they ended. A sync counts when it returned 0.
fn read_trace(trace: &Path) -> Vec<Reply> {
    let text = std::fs::read_to_string(trace).unwrap();
    let mut unfinished = std::collections::HashMap::new();
    let mut replies = Vec::new();
    let (mut log_writes, mut synced_writes) = (0, 0);
    for line in text.lines() {
        let (pid, call) = line.split_once(' ').unwrap_or_default();
        let call = call.trim_start();
        let whole = if let Some(head) = call.strip_suffix("<unfinished ...>") {
            // What is written may be on its way from here on.
            if !head.contains("sync(") {
                let reply = head.contains("HTTP/1.1 2");
                if !reply {
                    unfinished.insert(pid, head.to_owned());
                    continue;
                }
                head.to_owned()
            } else {
                unfinished.insert(pid, head.to_owned());
                continue;
            }
        } else if call.starts_with("<...") {
            let head = unfinished.remove(pid).unwrap_or_default();
            format!("{head}{}", call.split_once("resumed>").map_or("", |(_, rest)| rest))
        } else {
            call.to_owned()
        };
        let on_log = whole.contains("tasuki.db-wal>");
        if on_log && whole.starts_with("pwrite64") {
            log_writes += 1;
        } else if on_log && whole.contains("sync(") && whole.trim_end().ends_with("= 0") {
            synced_writes = log_writes;
        } else if whole.contains("HTTP/1.1 2") {
            replies.push(Reply { log_writes, synced_writes });
            (log_writes, synced_writes) = (0, 0);
        }
    }
    replies
}

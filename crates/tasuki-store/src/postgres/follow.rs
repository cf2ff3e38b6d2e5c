// SPDX-License-Identifier: Apache-2.0
//! What was committed, told to this broker's subscribers in the order of the log, whichever broker
//! committed it. What this broker committed itself is told from memory; the rest is read. Others
//! are told by a coalesced `NOTIFY` on a connection of its own; where that does not get through (a
//! pooler, a broken connection), polling finds it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Poll, ready};
use std::time::Duration;

use tasuki_core::Event;
use tasuki_core::event::Sealed;
use tasuki_core::registry::Registry;
use tokio_postgres::AsyncMessage;

use super::batch::{Due, Written};
use super::error::Fault;
use super::{Node, Told};
use crate::Committed;
use crate::clock;
use crate::live::Appended;

/// How many events are read at a time.
const READ_MAX: usize = 1000;
/// How often the log is looked at when notifications get through, and when they do not.
const POLL_SELDOM: Duration = Duration::from_secs(1);
const POLL_OFTEN: Duration = Duration::from_millis(50);
/// How long notifications are waited for to make up one.
const COALESCE: Duration = Duration::from_millis(10);
const RECONNECT: Duration = Duration::from_secs(1);
const CHANNEL: &str = "tasuki";

impl Node {
    /// Passes on what a transaction of this broker did.
    pub(super) fn tell(&self, written: Written) {
        // Who sees that nothing is due any more also sees who is known since.
        if let Some(registry) = &written.registry {
            self.learn(registry);
        }
        self.tell_due(written.due);
        if written.batch.is_empty() {
            return;
        }
        self.remember(&written);
        let failovers = written.failovers;
        let Written { batch, ready, timings, .. } = written;
        let changes = batch.into_iter().map(Appended::into_change).collect();
        let news = Committed { changes, ready, missed: false, timings };
        if !self.publish(news, failovers) {
            self.news.notify_one();
        }
        self.commits.notify_one();
    }

    /// Passes on what is due. One after another: what was told since the database was asked counts.
    pub(super) fn tell_due(&self, news: Due) {
        if matches!(news, Due::Same) {
            return;
        }
        self.next_due.send_if_modified(|known| {
            let due = news.after(*known, self.due_told.fetch_add(1, Ordering::AcqRel));
            std::mem::replace(known, due) != due
        });
    }

    /// Keeps bodies at hand, unless the commit was lost in a failover since: then its positions
    /// belong to others.
    fn remember(&self, written: &Written) {
        let told = self.told.lock().expect("no holder of this lock panics");
        for appended in written.batch.iter().filter(|_| told.failovers == written.failovers) {
            if let Some(body) = &appended.body {
                self.cache.put(body.hash, body.clone());
            }
        }
        self.forget_erased(written.batch.iter().map(|appended| &appended.sealed));
    }

    /// What was erased is not served from memory either, whichever broker erased it.
    fn forget_erased<'e>(&self, events: impl Iterator<Item = &'e Sealed>) {
        for sealed in events {
            if let Event::Erased(erased) = &sealed.record.event {
                self.cache.remove(erased.body);
            }
        }
    }

    /// Keeps the latest of what is known: another broker's change may have been read meanwhile.
    pub(super) fn learn(&self, registry: &Arc<Registry>) {
        self.registry.send_if_modified(|known| {
            if registry.last_pos <= known.last_pos {
                return false;
            }
            // Who is known is news to everybody; what stands in the way of work is looked up.
            let news = registry.changed_pos != known.changed_pos;
            known.clone_from(registry);
            news
        });
    }

    /// Reads what others changed, or everything after a failover. Until that has worked, what was
    /// known before counts.
    async fn reload_registry(&self) -> Result<(), Fault> {
        let lost = self.registry_lost.load(Ordering::Acquire);
        let mut registry = if lost { Arc::default() } else { self.registry.borrow().clone() };
        let db = self.db().await?;
        self.read_registry(db.client(), &mut registry).await?;
        if lost {
            self.registry_lost.store(false, Ordering::Release);
            self.registry.send_replace(registry);
        } else {
            self.learn(&registry);
        }
        Ok(())
    }

    /// Tells subscribers what follows on what they know. False if something lies between.
    fn publish(&self, mut news: Committed, failovers: u64) -> bool {
        let mut told = self.told.lock().expect("no holder of this lock panics");
        if told.failovers != failovers {
            return false;
        }
        let Some(last) = news.changes.last().map(|change| change.sealed.position) else {
            return true;
        };
        // Positions are given in the order of commits, so everything up to here is committed.
        self.head.fetch_max(last.0, Ordering::AcqRel);
        news.changes.retain(|change| change.sealed.position > told.last);
        match news.changes.first() {
            None => true,
            Some(first) if first.sealed.position.0 == told.last.0 + 1 => {
                told.last = last;
                // Without subscribers there is nobody to tell.
                let _ = self.committed.send(Arc::new(news));
                true
            }
            Some(_) => false,
        }
    }

    pub(super) fn told(&self) -> Told {
        *self.told.lock().expect("no holder of this lock panics")
    }
}

pub(super) async fn follow(node: Arc<Node>) {
    // Behind a pooler of transactions nobody announces anything.
    let seldom = if node.prepared { POLL_SELDOM } else { POLL_OFTEN };
    let mut poll = seldom;
    loop {
        tokio::select! {
            biased;
            () = node.news.notified() => {
                poll = seldom;
                read_on(&node).await;
            }
            () = clock::pause(poll) => {
                // Somebody committed and we did not hear of it: notifications do not get through.
                let unheard = read_on(&node).await;
                poll = if unheard { POLL_OFTEN } else { (poll * 2).min(seldom) };
            }
        }
    }
}

/// What another broker committed may be due before anything that this one knows of.
fn note_due(node: &Node, news: &Committed) {
    let changed = news.changes.iter().filter_map(|change| change.handoff.as_ref());
    let soonest = changed.filter_map(|handoff| handoff.due_at());
    if let Some(soonest) = soonest.min() {
        node.tell_due(Due::Perhaps(soonest));
    }
}

/// Reads what is in the log after what was told, and tells it. Says whether there was anything.
async fn read_on(node: &Node) -> bool {
    let mut any = false;
    loop {
        let told = node.told();
        match node.news_after(told.last, READ_MAX).await {
            Ok(news) => {
                node.reached();
                note_due(node, &news);
                node.forget_erased(news.changes.iter().map(|change| &change.sealed));
                let known = node.registry.borrow().clone();
                let changed = news.changes.iter().any(|change| known.is_changed_by(&change.sealed));
                let lost = node.registry_lost.load(Ordering::Acquire);
                if (changed || lost)
                    && let Err(fault) = node.reload_registry().await
                {
                    tracing::warn!(error = %fault, "who is known could not be read");
                    node.registry_lost.store(true, Ordering::Release);
                }
                let count = news.changes.len();
                any |= count > 0;
                node.publish(news, told.failovers);
                if count < READ_MAX {
                    return any;
                }
            }
            Err(fault) => {
                node.missed(&fault.to_string());
                return any;
            }
        }
    }
}

/// Tells other brokers that there is something new, and listens to them. The connection is its
/// own: a notification in the transaction itself would make all commits wait for each other. Not
/// for behind a pooler of transactions: nobody would hear, and nothing would be heard.
pub(super) async fn announce(node: Arc<Node>) {
    loop {
        if let Err(reason) = on_the_air(&node).await {
            tracing::debug!(%reason, "notifications pause; polling goes on");
        }
        clock::pause(RECONNECT).await;
    }
}

async fn on_the_air(node: &Node) -> Result<(), String> {
    let (db, mut connection) = node.way.connect().await.map_err(|error| error.to_string())?;
    // Our own notifications come back to us.
    let me = format!("{:016x}", rand_id());
    let talk = async {
        db.batch_execute(&format!("LISTEN {CHANNEL}")).await?;
        node.news.notify_one();
        // Losing a notification costs a moment; waiting for the disk would cost more. Never for the
        // session: a pooler that nobody told us of would pass the setting on to real commits.
        let notify =
            format!("BEGIN; SET LOCAL synchronous_commit = off; NOTIFY {CHANNEL}, '{me}'; COMMIT");
        loop {
            node.commits.notified().await;
            db.batch_execute(&notify).await?;
            clock::pause(COALESCE).await;
        }
    };
    let listen = std::future::poll_fn(|context| {
        loop {
            match ready!(connection.poll_message(context)) {
                None => return Poll::Ready("the connection ended".to_owned()),
                Some(Err(error)) => return Poll::Ready(error.to_string()),
                Some(Ok(AsyncMessage::Notification(news))) if news.payload() != me => {
                    node.news.notify_one();
                }
                Some(Ok(_)) => {}
            }
        }
    });
    tokio::select! {
        ended = talk => {
            let ended: Result<(), tokio_postgres::Error> = ended;
            ended.map_err(|error| error.to_string())
        }
        reason = listen => Err(reason),
    }
}

fn rand_id() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    u64::from_le_bytes(bytes)
}

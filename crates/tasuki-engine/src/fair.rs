// SPDX-License-Identifier: Apache-2.0
//! Fairness between tenants: while more than one has commands on their way, each has only so many
//! on their way at once. A flood then waits behind itself, and the batches that a quiet tenant
//! shares stay small. One tenant alone is not held back.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use tasuki_core::Timestamp;
use tokio::sync::oneshot;

/// How many calls of one tenant are on their way while others have some, too.
const SHARE: usize = 8;
/// How long a tenant counts as there after its last call.
const THERE_MS: u64 = 1000;

#[derive(Default)]
pub(crate) struct Fair {
    lines: Mutex<HashMap<String, Line>>,
}

struct Line {
    /// When it was last heard of: somebody who comes and goes is there in between, too.
    heard: Timestamp,
    running: usize,
    waiting: VecDeque<oneshot::Sender<()>>,
}

impl Line {
    fn new(now: Timestamp) -> Self {
        Self { heard: now, running: 0, waiting: VecDeque::new() }
    }

    fn is_there(&self, now: Timestamp) -> bool {
        self.running > 0 || !self.waiting.is_empty() || now.ms_after(self.heard) < THERE_MS
    }
}

/// A place on the way; giving it up lets the next one of the same tenant go.
pub(crate) struct Turn {
    fair: Arc<Fair>,
    tenant: String,
    /// Whether it counts as running.
    came: bool,
    /// When it was asked for.
    since: Timestamp,
}

impl Fair {
    /// Waits for a turn.
    pub(crate) async fn turn(self: &Arc<Self>, tenant: &str, now: Timestamp) -> Turn {
        let waiting = {
            let mut lines = self.lines.lock().expect("no holder of this lock panics");
            if !lines.contains_key(tenant) {
                lines.retain(|_, line| line.is_there(now));
                lines.insert(tenant.to_owned(), Line::new(now));
            }
            let others = lines.iter().any(|(name, line)| name != tenant && line.is_there(now));
            let line = lines.get_mut(tenant).expect("it was just put there");
            line.heard = line.heard.max(now);
            if (others && line.running >= SHARE) || !line.waiting.is_empty() {
                let (go, gone) = oneshot::channel();
                line.waiting.push_back(go);
                Some(gone)
            } else {
                line.running += 1;
                None
            }
        };
        let turn = Turn {
            fair: self.clone(),
            tenant: tenant.to_owned(),
            came: waiting.is_none(),
            since: now,
        };
        match waiting {
            None => turn,
            Some(gone) => {
                let mut pending = Pending { turn, gone };
                // Its sender is dropped only with the whole gate.
                let _ = (&mut pending.gone).await;
                pending.turn.came = true;
                pending.come()
            }
        }
    }
}

/// A turn that has not come yet.
struct Pending {
    turn: Turn,
    gone: oneshot::Receiver<()>,
}

impl Pending {
    fn come(mut self) -> Turn {
        let Turn { fair, tenant, came, since } = &mut self.turn;
        let tenant = std::mem::take(tenant);
        let turn = Turn { fair: fair.clone(), tenant, came: *came, since: *since };
        *came = false;
        turn
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // It may have come in this very moment; then it is passed on.
        self.gone.close();
        self.turn.came |= self.gone.try_recv().is_ok();
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.came {
            return;
        }
        let mut lines = self.fair.lines.lock().expect("no holder of this lock panics");
        let there = |line: &Line| line.is_there(self.since);
        let others = lines.iter().any(|(name, line)| *name != self.tenant && there(line));
        let Some(line) = lines.get_mut(&self.tenant) else { return };
        line.running -= 1;
        // While others wait it is one for one; alone, the whole line may go.
        while (!others || line.running < SHARE)
            && let Some(next) = line.waiting.pop_front()
        {
            // Who went away while it waited has no use for it.
            if next.send(()).is_ok() {
                line.running += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const NOW: Timestamp = Timestamp(0);

    #[tokio::test]
    async fn one_tenant_alone_is_not_held_back() {
        let fair = Arc::new(Fair::default());
        let mut turns = Vec::new();
        for _ in 0..100 {
            turns.push(fair.turn("flood", NOW).now_or_never().unwrap());
        }
    }

    #[tokio::test]
    async fn a_flood_waits_behind_itself_while_others_are_there() {
        let fair = Arc::new(Fair::default());
        let quiet = fair.turn("quiet", NOW).now_or_never().unwrap();
        let mut turns: Vec<_> =
            (0..SHARE).map(|_| fair.turn("flood", NOW).now_or_never()).collect();
        assert!(turns.iter().all(Option::is_some));
        let mut next = Box::pin(fair.turn("flood", NOW));
        assert!((&mut next).now_or_never().is_none());
        assert!(fair.turn("quiet", NOW).now_or_never().is_some());
        turns.pop();
        let came = next.await;
        drop((came, turns, quiet));
        let lines = fair.lines.lock().unwrap();
        assert!(lines.values().all(|line| line.running == 0 && line.waiting.is_empty()));
    }

    #[tokio::test]
    async fn who_goes_away_while_it_waits_holds_nobody_up() {
        let fair = Arc::new(Fair::default());
        let _quiet = fair.turn("quiet", NOW).await;
        let mut turns = Vec::new();
        for _ in 0..SHARE {
            turns.push(fair.turn("flood", NOW).await);
        }
        let mut gone = Box::pin(fair.turn("flood", NOW));
        assert!((&mut gone).now_or_never().is_none());
        let mut stays = Box::pin(fair.turn("flood", NOW));
        assert!((&mut stays).now_or_never().is_none());
        drop(gone);
        turns.pop();
        let kept = stays.now_or_never();
        assert!(kept.is_some());
        // It came, and its owner goes away before it looks.
        let mut unaware = Box::pin(fair.turn("flood", NOW));
        assert!((&mut unaware).now_or_never().is_none());
        turns.pop();
        drop(unaware);
        let came = fair.turn("flood", NOW).now_or_never();
        assert!(came.is_some(), "nothing is lost");
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Reacting to what was committed. A [`Fold`] takes one change after another and makes something of
//! them; the one driver below knows how to begin where it stopped, to catch up, to go on after a
//! gap, and to save. A fold may rely on the order of each task's changes and on nothing else.

mod circles;
pub(crate) mod epochs;
pub(crate) mod follower;
pub(crate) mod metering;
pub(crate) mod observer;
pub(crate) mod presence;
pub(crate) mod traces;
pub(crate) mod waiters;
pub(crate) mod waking;

use std::ops::ControlFlow;
use std::sync::Arc;

use async_trait::async_trait;
use tasuki_core::cursor::{Epochs, Lost};
use tasuki_core::handoff::{Handoff, StateName};
use tasuki_core::{Cursor, Position, Target, Timestamp};
use tasuki_store::{Change, Committed, HandoffFilter, PAGE_MAX, Store, Timings};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// How often what a fold knows is saved.
const SAVE_EVERY_MS: u64 = 10_000;
/// How many changes are read at a time, and how many in all after a restart.
const READ_MAX: usize = 1000;
const BEHIND_MAX: u64 = 200_000;
/// How long to leave alone what could not be done.
pub(crate) const AGAIN_MS: u64 = 5_000;

/// Whether a fold goes on.
pub(crate) type Flow = ControlFlow<()>;
pub(crate) const GO_ON: Flow = ControlFlow::Continue(());

#[async_trait]
pub(crate) trait Fold: Send {
    /// What it is saved as. A fold without a name knows nothing that would have to be caught up
    /// with: it begins with what is committed next, and starts over where something was missed.
    fn name(&self) -> Option<&'static str> {
        None
    }

    /// Whether it is the same wherever it is computed: it takes every event of the log, from the first
    /// one on, and looks at nothing else. What was saved of it may be of no use.
    fn is_exact(&self) -> bool {
        false
    }

    fn can_load(&self, _saved: &str) -> bool {
        true
    }

    /// How long a batch took that this broker committed, and how many events it had.
    fn time(&mut self, _timings: &Timings, _events: usize) {}

    /// Everything that there was is taken by now; what comes next is new.
    async fn caught_up(&mut self) -> Flow {
        GO_ON
    }

    /// Takes up what was saved of it, before the changes that came since.
    async fn load(&mut self, _saved: Option<String>) -> Flow {
        GO_ON
    }

    /// Takes changes, each once, and what became claimable with them, where that is known.
    async fn apply(&mut self, changes: &[Change], ready: &[Target]) -> Flow;

    /// What lies between is not to be known any more; go on from how things are.
    async fn start_over(&mut self) -> Flow {
        GO_ON
    }

    /// What to save of it, unless it has to be found as it was saved last.
    fn save(&self) -> Option<String> {
        None
    }

    /// When it has something to do even if nothing is committed.
    fn wake_at(&self) -> Option<Timestamp> {
        None
    }

    async fn wake(&mut self) -> Flow {
        GO_ON
    }
}

/// Goes through all handoffs in a state.
pub(crate) async fn each_in(
    store: &dyn Store,
    state: StateName,
    mut take: impl FnMut(&Handoff) + Send,
) -> Result<(), tasuki_store::Error> {
    let mut before = None;
    loop {
        let state = Some(state);
        let filter = HandoffFilter { state, before, max: PAGE_MAX, ..HandoffFilter::default() };
        let page = store.list_handoffs(filter).await?;
        page.iter().for_each(|handoff| take(handoff));
        before = page.last().map(|handoff| handoff.id);
        if page.len() < PAGE_MAX {
            return Ok(());
        }
    }
}

/// Drives folds side by side: each batch goes to the first of them first. Ends when the store is
/// closed or a fold wants no more.
pub(crate) async fn drive(
    store: Arc<dyn Store>,
    mut news: broadcast::Receiver<Arc<Committed>>,
    folds: Vec<Box<dyn Fold>>,
) {
    let mut driven = Vec::with_capacity(folds.len());
    for fold in folds {
        match Driven::begin(fold, &*store).await {
            Some(fold) => driven.push(fold),
            None => return,
        }
    }
    loop {
        let wake_at = driven.iter().filter_map(|driven| driven.fold.wake_at()).min();
        let told = match wake_at {
            None => news.recv().await,
            Some(at) => tokio::select! {
                biased;
                told = news.recv() => told,
                () = store.clock().sleep_until(at) => Ok(Arc::default()),
            },
        };
        if told.as_ref().is_err_and(|error| *error == RecvError::Closed) {
            return;
        }
        for fold in &mut driven {
            if fold.hear(&told, &*store).await.is_break() {
                return;
            }
        }
        for fold in &mut driven {
            fold.save(&*store).await;
        }
    }
}

struct Driven {
    fold: Box<dyn Fold>,
    /// Everything up to here was applied.
    at: Position,
    epochs: Epochs,
    save_at: Timestamp,
}

/// What was saved of a fold, up to where it is in it, and whether some of that was lost since.
#[derive(Default)]
struct Saved {
    at: Position,
    text: Option<String>,
    lost: bool,
}

impl Saved {
    async fn find(name: &'static str, store: &dyn Store, epochs: &Epochs) -> Self {
        let (at, text) = match store.load_fold(name).await {
            Ok(Some((at, text))) => (at, text),
            Ok(None) => return Self::default(),
            Err(error) => {
                tracing::debug!(%error, fold = name, "what was saved of a fold is not known");
                return Self { at: store.head(), ..Self::default() };
            }
        };
        // The cursor is in the first line; what was saved before there were cursors has none.
        let with_cursor = text.split_once('\n').and_then(|(cursor, text)| {
            let cursor: Cursor = cursor.parse().ok()?;
            Some((cursor, text.to_owned()))
        });
        let bare = Cursor { epoch: None, position: at };
        let (cursor, text) = with_cursor.unwrap_or((bare, text));
        match epochs.place(cursor) {
            Ok(at) => Self { at, text: Some(text), lost: false },
            Err(Lost::Cut { after }) => Self { at: after, text: Some(text), lost: true },
            Err(Lost::Unknown) => Self::default(),
        }
    }
}

impl Driven {
    /// Goes on where it stopped.
    async fn begin(mut fold: Box<dyn Fold>, store: &dyn Store) -> Option<Self> {
        let (epochs, saved) = match fold.name() {
            // Everything that it is told was committed after it began to listen.
            None => (Epochs::default(), Saved::default()),
            Some(name) => {
                let epochs = store.epochs().await.unwrap_or_default();
                let mut saved = Saved::find(name, store, &epochs).await;
                if fold.is_exact() {
                    let usable = saved.text.as_deref().is_some_and(|text| fold.can_load(text));
                    if saved.lost || !usable {
                        saved = Saved::default();
                    }
                } else {
                    saved.at = saved.at.max(Position(store.head().0.saturating_sub(BEHIND_MAX)));
                }
                (epochs, saved)
            }
        };
        let mut flow = fold.load(saved.text).await;
        if saved.lost && flow.is_continue() {
            flow = fold.start_over().await;
        }
        let save_at = store.clock().now().plus_ms(SAVE_EVERY_MS);
        let mut driven = Self { fold, at: saved.at, epochs, save_at };
        if flow.is_break()
            || driven.catch_up(store).await.is_break()
            || driven.fold.caught_up().await.is_break()
        {
            return None;
        }
        Some(driven)
    }

    async fn hear(&mut self, told: &Result<Arc<Committed>, RecvError>, store: &dyn Store) -> Flow {
        if self.fold.wake_at().is_some_and(|at| at <= store.clock().now()) {
            self.fold.wake().await?;
        }
        match told {
            Ok(batch) if batch.missed => {
                self.epochs = store.epochs().await.unwrap_or_default();
                let kept = self.epochs.kept_until().unwrap_or_else(|| store.head());
                // What is the same everywhere cannot take back what it took.
                self.at = if self.fold.is_exact() { Position(0) } else { self.at.min(kept) };
                self.fold.start_over().await?;
                self.catch_up(store).await?;
                self.fold.caught_up().await
            }
            Ok(batch) => {
                self.fold.time(&batch.timings, batch.changes.len());
                self.take(batch, store).await
            }
            Err(_) if self.fold.name().is_none() => {
                self.at = store.head();
                self.fold.start_over().await
            }
            Err(_) => self.catch_up(store).await,
        }
    }

    async fn take(&mut self, batch: &Committed, store: &dyn Store) -> Flow {
        let begins = batch.changes.first().map(|change| change.sealed.position);
        if begins.is_some_and(|begins| begins.0 > self.at.0 + 1) {
            self.catch_up(store).await?;
            // What could not be read is missing, and must not be.
            if self.fold.is_exact() && begins.is_some_and(|begins| begins.0 > self.at.0 + 1) {
                return GO_ON;
            }
        }
        let known = batch.changes.partition_point(|change| change.sealed.position <= self.at);
        let changes = &batch.changes[known..];
        if changes.is_empty() && batch.ready.is_empty() {
            return GO_ON;
        }
        self.fold.apply(changes, &batch.ready).await?;
        changes.iter().for_each(|change| self.epochs.note(&change.sealed));
        self.at = changes.last().map_or(self.at, |last| last.sealed.position);
        GO_ON
    }

    /// Reads what it has not taken yet. What cannot be read now is read before the next change.
    async fn catch_up(&mut self, store: &dyn Store) -> Flow {
        if self.fold.name().is_none() {
            return GO_ON;
        }
        loop {
            let whole = !self.fold.is_exact();
            let Ok(changes) = read(store, self.at, whole).await else { return GO_ON };
            let Some(last) = changes.last().map(|change| change.sealed.position) else {
                return GO_ON;
            };
            self.fold.apply(&changes, &[]).await?;
            changes.iter().for_each(|change| self.epochs.note(&change.sealed));
            self.at = last;
            if changes.len() < READ_MAX {
                return GO_ON;
            }
        }
    }

    /// What is not saved is read from the log again, so a failure loses nothing.
    async fn save(&mut self, store: &dyn Store) {
        let now = store.clock().now();
        let Some(name) = self.fold.name().filter(|_| now >= self.save_at) else { return };
        let Some(text) = self.fold.save() else { return };
        self.save_at = now.plus_ms(SAVE_EVERY_MS);
        let text = format!("{}\n{text}", self.epochs.cursor(self.at));
        if let Err(error) = store.save_fold(name, self.at, text).await {
            tracing::debug!(%error, fold = name, "a fold is saved later");
        }
    }
}

/// The next changes, whole or as events alone, which need nothing of what they are about.
async fn read(
    store: &dyn Store,
    after: Position,
    whole: bool,
) -> Result<Vec<Change>, tasuki_store::Error> {
    if whole {
        return store.changes(after, READ_MAX).await;
    }
    let bare = |sealed| Change { sealed, task: None, handoff: None };
    let entries = store.events(after, READ_MAX).await?;
    Ok(entries.into_iter().map(|entry| bare(entry.sealed)).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tasuki_core::Command;
    use tasuki_core::commands::RaiseEpoch;
    use tasuki_store::{ManualClock, Volatile};

    use super::*;

    /// Writes down what it is told.
    struct Listener(Arc<Mutex<Vec<u64>>>);

    #[async_trait]
    impl Fold for Listener {
        fn name(&self) -> Option<&'static str> {
            Some("listener")
        }

        async fn apply(&mut self, changes: &[Change], _ready: &[Target]) -> Flow {
            let positions = changes.iter().map(|change| change.sealed.position.0);
            self.0.lock().unwrap().extend(positions);
            GO_ON
        }
    }

    /// Positions are given a second time from where the epoch was raised.
    #[tokio::test]
    async fn after_a_failover_a_fold_takes_everything_from_where_the_log_was_cut() {
        let store = Volatile::new(ManualClock::at(Timestamp(0)));
        for epoch in [2, 3] {
            store.execute(vec![Command::of_broker(RaiseEpoch { epoch })]).await.unwrap();
        }
        let taken = Arc::default();
        let fold = Box::new(Listener(Arc::clone(&taken)));
        let epochs = Epochs::default();
        let mut driven = Driven { fold, at: Position(7), epochs, save_at: Timestamp(0) };
        let missed = Committed { missed: true, ..Committed::default() };
        let _ = driven.hear(&Ok(Arc::new(missed)), &store).await;
        assert_eq!(*taken.lock().unwrap(), [2], "the last raise and what follows on it");
        assert_eq!(driven.at, Position(2));
    }

    #[tokio::test]
    async fn a_fold_that_was_saved_before_a_failover_goes_back_to_where_the_log_was_cut() {
        let store = Volatile::new(ManualClock::at(Timestamp(0)));
        let raise = |epoch| store.execute(vec![Command::of_broker(RaiseEpoch { epoch })]);
        for epoch in [2, 3] {
            raise(epoch).await.unwrap();
        }
        for (saved, taken_after) in [("2-1\n", vec![2]), ("2-9\n", vec![2]), ("3-2\n", vec![])] {
            let at = Position(saved.trim()[2..].parse().unwrap());
            store.save_fold("listener", at, saved.to_owned()).await.unwrap();
            let taken = Arc::default();
            let driven = Driven::begin(Box::new(Listener(Arc::clone(&taken))), &store).await;
            assert_eq!(*taken.lock().unwrap(), taken_after, "{saved}");
            assert_eq!(driven.unwrap().at, Position(2));
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Knows where the epochs begin, so that positions can be told as cursors.

use std::sync::Arc;

use async_trait::async_trait;
use tasuki_core::cursor::Epochs;
use tasuki_core::{Event, Target, Timestamp};
use tasuki_store::{Change, Store};
use tokio::sync::watch;

use super::{AGAIN_MS, Flow, Fold, GO_ON};

pub(crate) struct Turning {
    store: Arc<dyn Store>,
    /// Nothing as long as it is not known.
    known: watch::Sender<Option<Arc<Epochs>>>,
    /// When to read it again, if that was not possible.
    again_at: Option<Timestamp>,
}

impl Turning {
    pub(crate) fn new(store: Arc<dyn Store>, known: watch::Sender<Option<Arc<Epochs>>>) -> Self {
        Self { store, known, again_at: None }
    }
}

#[async_trait]
impl Fold for Turning {
    async fn load(&mut self, _: Option<String>) -> Flow {
        self.start_over().await
    }

    async fn apply(&mut self, changes: &[Change], _: &[Target]) -> Flow {
        let raises =
            |change: &Change| matches!(change.sealed.record.event, Event::EpochRaised { .. });
        for raised in changes.iter().filter(|change| raises(change)) {
            self.known.send_modify(|known| {
                if let Some(known) = known {
                    Arc::make_mut(known).note(&raised.sealed);
                }
            });
        }
        GO_ON
    }

    async fn start_over(&mut self) -> Flow {
        match self.store.epochs().await {
            Ok(epochs) => {
                self.again_at = None;
                self.known.send_replace(Some(Arc::new(epochs)));
            }
            Err(error) => {
                tracing::debug!(%error, "where the epochs begin is read later");
                self.known.send_replace(None);
                self.again_at = Some(self.store.clock().now().plus_ms(AGAIN_MS));
            }
        }
        GO_ON
    }

    fn wake_at(&self) -> Option<Timestamp> {
        self.again_at
    }

    async fn wake(&mut self) -> Flow {
        self.start_over().await
    }
}

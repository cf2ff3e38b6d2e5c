// SPDX-License-Identifier: Apache-2.0
//! Follows what is committed and says which spans are over. Nobody waits for it, and what it tells goes
//! into a buffer with an end.

use std::sync::Arc;

use async_trait::async_trait;
use tasuki_core::trace::{Mode, Tracer};
use tasuki_core::{Target, Timestamp};
use tasuki_store::{Change, Store};

use super::{Flow, Fold, GO_ON};
use crate::traces::{Dropped, Spans};

/// What is saved of when it began.
const BEGUN: &str = "traces begun";

pub(crate) struct Tracing {
    store: Arc<dyn Store>,
    spans: Arc<Spans>,
    mode: Mode,
    tracer: Tracer,
}

impl Tracing {
    pub(crate) fn new(store: Arc<dyn Store>, spans: Arc<Spans>, mode: Mode) -> Self {
        let tracer = Tracer::new(mode, store.clock().now());
        Self { store, spans, mode, tracer }
    }

    /// When traces were recorded first: what was offered earlier is not told, and what was offered later
    /// is, also if the broker ended before anything was sent.
    async fn begun(&self) -> Timestamp {
        let now = self.store.clock().now();
        if let Ok(Some((_, text))) = self.store.load_fold(BEGUN).await
            && let Ok(at) = text.parse()
        {
            return Timestamp(at);
        }
        let at = self.store.head();
        if let Err(error) = self.store.save_fold(BEGUN, at, now.0.to_string()).await {
            tracing::debug!(%error, "when traces were recorded first is not known after a restart");
        }
        now
    }
}

#[async_trait]
impl Fold for Tracing {
    fn name(&self) -> Option<&'static str> {
        Some("traces")
    }

    async fn load(&mut self, saved: Option<String>) -> Flow {
        let saved = saved.and_then(|saved| Tracer::restored(self.mode, &saved));
        self.tracer = match saved {
            Some(saved) => saved,
            None => Tracer::new(self.mode, self.begun().await),
        };
        GO_ON
    }

    async fn apply(&mut self, changes: &[Change], _: &[Target]) -> Flow {
        let mut told = Vec::new();
        changes.iter().for_each(|change| self.tracer.note(&change.sealed, &mut told));
        let given_up = std::mem::take(&mut self.tracer.given_up);
        let now = self.store.clock().now();
        self.spans.drop_some(Dropped::NotFollowed, given_up, now);
        self.spans.push(told, now);
        GO_ON
    }

    /// Only when all is sent that follows from the log up to here, so that the rest is told again after
    /// a restart.
    fn save(&self) -> Option<String> {
        self.spans.is_done().then(|| self.tracer.saved()).flatten()
    }
}

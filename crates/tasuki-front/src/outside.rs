// SPDX-License-Identifier: Apache-2.0
//! Requests that a door makes to servers elsewhere. Who carries them out checks each address first, and
//! follows no redirect.

use std::sync::Arc;

use axum::http::{HeaderMap, Method};
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

use crate::tls::Identity;

/// Carries requests out.
pub trait Outside: Send + Sync + 'static {
    /// Ends when the head of the answer is there.
    fn ask(&self, asked: Outgoing) -> BoxFuture<'_, Result<Incoming, String>>;
}

pub struct Outgoing {
    pub method: Method,
    pub url: String,
    /// There may be credentials among them.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The certificate to show, if one is to be shown.
    pub identity: Option<Arc<Identity>>,
}

pub struct Incoming {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: BoxStream<'static, Result<Vec<u8>, String>>,
}

impl Incoming {
    /// The whole answer, if it is not larger than that.
    pub async fn whole(mut self, bytes_max: usize) -> Result<Vec<u8>, String> {
        let mut whole = Vec::new();
        while let Some(piece) = self.body.next().await {
            whole.extend(piece?);
            if whole.len() > bytes_max {
                return Err(format!("the answer has more than {bytes_max} bytes"));
            }
        }
        Ok(whole)
    }
}

// SPDX-License-Identifier: Apache-2.0
//! The door over standard input and output: one client, for as long as the process lives.

use std::sync::Arc;

use rmcp::serve_server;
use rmcp::transport::stdio;

use crate::broker::Broker;
use crate::door::{Asker, Door};
use crate::holding::Holding;

/// What becomes of what the process holds when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtEnd {
    /// It is given back, for others to take at once.
    Release,
    /// It is kept until its lease ends: whoever comes back with the handle goes on.
    Keep,
}

/// Why a client could not be served.
#[derive(Debug)]
pub struct NotServed(String);

impl std::fmt::Display for NotServed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot serve MCP over standard input and output: {}", self.0)
    }
}

impl std::error::Error for NotServed {}

/// Serves the client at the other end of standard input until it goes away, or until `ended`.
pub async fn serve_stdio(
    broker: Arc<dyn Broker>,
    at_end: AtEnd,
    ended: impl Future<Output = ()> + Send,
) -> Result<(), NotServed> {
    let holding = Arc::new(Holding::remembering());
    let asker = Asker { broker: broker.clone(), granted: holding.clone() };
    let door = Door::over_stdio(asker);
    let served = async {
        let running = serve_server(door, stdio()).await.map_err(|error| error.to_string())?;
        running.waiting().await.map_err(|error| error.to_string())?;
        Ok(())
    };
    let served = tokio::select! {
        served = served => served,
        () = ended => Ok(()),
    };
    if at_end == AtEnd::Release {
        holding.give_back(broker).await;
    }
    served.map_err(NotServed)
}

// SPDX-License-Identifier: Apache-2.0
//! Accepting connections, with bounds on how many there are and how long they may take, and a
//! graceful end.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::extract::connect_info::ConnectInfo;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tower::ServiceExt;

use crate::attended::Attended;

/// How long a client may take to send a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long requests under way may take to finish when the broker ends.
const GRACE: Duration = Duration::from_secs(10);
/// How long to wait after accepting failed, for want of file descriptors or the like.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until `end` resolves; then lets requests under way finish.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    connections_max: usize,
    end: impl Future<Output = ()>,
) {
    let places = Arc::new(Semaphore::new(connections_max));
    let graceful = GracefulShutdown::new();
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).pipeline_flush(true);
    tokio::pin!(end);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut end => break,
            accepted = accept(&listener, &places) => accepted,
        };
        let Some((stream, place)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // Small requests and replies must not wait for each other.
        let _ = stream.set_nodelay(true);
        let from = stream.peer_addr().ok();
        let router = router.clone();
        let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
            let mut request: Request = request.map(axum::body::Body::new);
            if let Some(from) = from {
                request.extensions_mut().insert(ConnectInfo(from));
            }
            router.clone().oneshot(request)
        });
        let connection = http.serve_connection(TokioIo::new(Attended::new(stream)), service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            // A client that goes away is no news.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(GRACE, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not finish in time and were cut off");
    }
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, place)),
        Err(error) => {
            tracing::warn!(%error, "cannot accept a connection");
            None
        }
    }
}

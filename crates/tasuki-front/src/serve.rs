// SPDX-License-Identifier: Apache-2.0
//! Accepting connections, with bounds on how many there are and how long they may take, and a
//! graceful end.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::extract::connect_info::ConnectInfo;
use axum::http::{Version, header};
use axum::response::IntoResponse;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulConnection, GracefulShutdown};
use tasuki_core::identity::PublicKey;
use tasuki_protocol::Problem;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tower::ServiceExt;

use crate::attended::Attended;
use crate::error::Failed;
use crate::seats::{Elapsed, Full, Place, Places, Seat, Seats, Serving};
use crate::tls::Tls;

/// How long a client may take to send a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long requests under way may take to finish when the broker ends.
const GRACE: Duration = Duration::from_secs(10);
/// How much of a request's head, or of a reply that the client has not taken yet, is held.
const HELD_BYTES_MAX: usize = 408 * 1024;
/// How long to wait after accepting failed, for want of file descriptors or the like.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How connections are taken in.
pub struct Doorway {
    pub places: Places,
    pub tls: Option<Arc<Tls>>,
    /// By what the time is told that a stranger's request takes.
    pub now: Elapsed,
}

impl Doorway {
    /// Without TLS, by the time that passes.
    #[must_use]
    pub fn of(places: Places) -> Self {
        let began = tokio::time::Instant::now();
        Self { places, tls: None, now: Arc::new(move || began.elapsed()) }
    }
}

/// Serves until `end` resolves; then lets requests under way finish.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    connections_max: usize,
    end: impl Future<Output = ()>,
) {
    let places = Places { max: connections_max, ..Places::default() };
    serve_by(Doorway::of(places), listener, router, end).await;
}

/// The same, with bounds of one's own and perhaps with TLS.
pub async fn serve_by(
    doorway: Doorway,
    listener: TcpListener,
    router: Router,
    end: impl Future<Output = ()>,
) {
    let seats = Seats::new(doorway.places, doorway.now.clone());
    let graceful = GracefulShutdown::new();
    tokio::pin!(end);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut end => break,
            accepted = accept(&listener, &seats) => accepted,
        };
        let Some((stream, place)) = accepted else { continue };
        // Small requests and replies must not wait for each other.
        let _ = stream.set_nodelay(true);
        let about = About { from: stream.peer_addr().ok(), ..About::new(place.seat.clone()) };
        let (router, tls, watcher) = (router.clone(), doorway.tls.clone(), graceful.watcher());
        // Not watched: a panic ends this connection and no other.
        tokio::spawn(async move {
            let seat = place.seat.clone();
            let serving = async {
                // A client that goes away is no news.
                let _ = match tls {
                    None => watcher.watch(connection(stream, router, about)).await,
                    Some(tls) => {
                        let Ok((stream, key)) = tls.accept(stream).await else { return };
                        let about = About { secure: true, key, ..about };
                        watcher.watch(connection(stream, router, about)).await
                    }
                };
            };
            tokio::select! {
                // What was begun to be sent goes out first.
                biased;
                () = serving => {}
                () = seat.is_taken() => {}
            }
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(GRACE, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not finish in time and were cut off");
    }
}

/// What is known of a connection.
#[derive(Clone)]
struct About {
    from: Option<SocketAddr>,
    seat: Arc<Seat>,
    secure: bool,
    key: Option<PublicKey>,
}

impl About {
    fn new(seat: Arc<Seat>) -> Self {
        Self { from: None, seat, secure: false, key: None }
    }
}

/// What a request came by.
#[derive(Debug, Clone)]
pub(crate) struct CameBy {
    pub(crate) seat: Arc<Seat>,
    /// Whether TLS ends here.
    pub(crate) secure: bool,
    /// The key in the certificate that the client showed.
    pub(crate) key: Option<PublicKey>,
}

/// The body of a reply. While it is being taken, the request is being served.
struct Served {
    body: Body,
    _serving: Option<Serving>,
}

impl HttpBody for Served {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Serves one connection. A reply is produced as the client takes it, and the next request is begun
/// when the last reply was taken: hyper's `pipeline_flush` would hold whole replies, and any number of
/// them, for a client that does not read.
fn connection<S>(
    stream: S,
    router: Router,
    about: About,
) -> impl GracefulConnection<Error = hyper::Error> + Send
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let mut request: Request = request.map(Body::new);
        let About { from, seat, secure, key } = about.clone();
        if let Some(from) = from {
            request.extensions_mut().insert(ConnectInfo(from));
        }
        request.extensions_mut().insert(CameBy { seat: seat.clone(), secure, key });
        let router = router.clone();
        async move {
            // RFC 9112, 3.2: without it nobody can say for whom the request is.
            let nameless = !request.headers().contains_key(header::HOST)
                && request.uri().authority().is_none();
            if nameless && request.version() >= Version::HTTP_11 {
                let problem = Problem::invalid("Host", "the header is missing");
                let reply = Failed::from(problem).into_response();
                return Ok(reply.map(|body| Served { body, _serving: None }));
            }
            let serving = seat.begins();
            let Ok(reply) = router.oneshot(request).await;
            Ok::<_, Infallible>(reply.map(|body| Served { body, _serving: Some(serving) }))
        }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(HELD_BYTES_MAX);
    http.serve_connection(TokioIo::new(Attended::new(stream)), service)
}

async fn accept(listener: &TcpListener, seats: &Arc<Seats>) -> Option<(TcpStream, Place)> {
    let (stream, from) = match listener.accept().await {
        Ok(accepted) => accepted,
        Err(error) => {
            tracing::warn!(%error, "cannot accept a connection");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            return None;
        }
    };
    loop {
        let freed = seats.freed.notified();
        match seats.take(Some(from.ip())) {
            Ok(place) => return Some((stream, place)),
            // Others must not wait behind it.
            Err(Full::OfAddress) => return None,
            Err(Full::All) => freed.await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::routing::get;
    use futures::{StreamExt, stream};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const PIECE: usize = 64 * 1024;
    const PIECES: usize = 1000;
    /// What is held of a reply, and the piece that was produced before that was noticed.
    const PRODUCED_MAX: usize = HELD_BYTES_MAX + 2 * PIECE;

    /// A long reply that counts what is produced of it.
    fn long(produced: &Arc<AtomicUsize>) -> Body {
        let produced = produced.clone();
        Body::from_stream(stream::iter(0..PIECES).map(move |_| {
            produced.fetch_add(PIECE, Ordering::Relaxed);
            Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; PIECE]))
        }))
    }

    /// A broker that counts what it produces, and a client's end of a connection to it.
    fn served(
        produced: &Arc<AtomicUsize>,
    ) -> (impl Future<Output = Result<(), hyper::Error>>, tokio::io::DuplexStream) {
        let counted = produced.clone();
        let router = Router::new().route("/long", get(move || std::future::ready(long(&counted))));
        let (ours, theirs) = tokio::io::duplex(4096);
        let Doorway { places, now, .. } = Doorway::of(Places::default());
        let seat = Seats::new(places, now).take(None).unwrap().seat.clone();
        (connection(ours, router, About::new(seat)), theirs)
    }

    /// The clock of the runtime jumps to the next timer when nothing else is to be done.
    #[tokio::test(start_paused = true)]
    async fn a_reply_is_produced_only_as_it_is_taken_and_a_stalled_client_is_hung_up_on() {
        let produced = Arc::default();
        let (serving, mut client) = served(&produced);
        client.write_all(b"GET /long HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        let ended = serving.await;
        assert!(ended.is_err(), "a client that takes nothing is hung up on");
        let produced = produced.load(Ordering::Relaxed);
        assert!(produced <= PRODUCED_MAX, "{produced} bytes were produced for nobody");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_behind_a_reply_that_is_not_taken_is_not_begun() {
        let produced = Arc::default();
        let (serving, mut client) = served(&produced);
        let many = "GET /long HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(50);
        client.write_all(many.as_bytes()).await.unwrap();
        assert!(serving.await.is_err());
        let produced = produced.load(Ordering::Relaxed);
        assert!(produced <= PRODUCED_MAX, "{produced} bytes were produced for nobody");
    }

    #[tokio::test]
    async fn a_client_that_reads_gets_all_of_it() {
        let produced = Arc::default();
        let (serving, mut client) = served(&produced);
        let asking = async {
            let close = b"GET /long HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
            client.write_all(close).await.unwrap();
            let mut read = Vec::new();
            client.read_to_end(&mut read).await.unwrap();
            read.iter().filter(|byte| **byte == b'x').count()
        };
        let (served, read) = tokio::join!(serving, asking);
        served.unwrap();
        assert_eq!(read, PIECE * PIECES);
    }
}

// SPDX-License-Identifier: Apache-2.0
//! A network between broker and database that can be cut, at the worst moment too.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What the network does.
pub(crate) const PASS: u8 = 0;
/// Lets a commit through to the server and cuts the connection before its answer.
pub(crate) const CUT_AFTER_COMMIT: u8 = 1;
/// Cuts the connection instead of letting a commit through.
pub(crate) const CUT_BEFORE_COMMIT: u8 = 2;

pub(crate) struct Proxy {
    pub(crate) url: String,
    mode: Arc<AtomicU8>,
    cuts: Arc<AtomicUsize>,
    severed: watch::Sender<u32>,
}

impl Proxy {
    /// A way to the database of a URL.
    pub(crate) async fn to(url: &str) -> Self {
        let (head, database) = url.rsplit_once('/').unwrap();
        let server = head.rsplit_once('@').unwrap().1.to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (mode, cuts) = (Arc::new(AtomicU8::new(PASS)), Arc::new(AtomicUsize::new(0)));
        let severed = watch::Sender::new(0);
        let shared = (mode.clone(), cuts.clone(), severed.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (mode, cuts, severed) = shared.clone();
                let Ok(server) = TcpStream::connect(&server).await else { continue };
                let mut severed = severed.subscribe();
                tokio::spawn(async move {
                    tokio::select! {
                        () = carry(client, server, &mode, &cuts) => {}
                        _ = severed.changed() => {}
                    }
                });
            }
        });
        let url = format!("postgres://postgres@127.0.0.1:{port}/{database}");
        Self { url, mode, cuts, severed }
    }

    pub(crate) fn set(&self, mode: u8) {
        self.mode.store(mode, Ordering::SeqCst);
    }

    /// Cuts every connection there is.
    pub(crate) fn sever(&self) {
        self.severed.send_modify(|count| *count += 1);
    }

    pub(crate) fn cuts(&self) -> usize {
        self.cuts.load(Ordering::SeqCst)
    }
}

/// One cut at a time: whoever comes next gets through.
fn once(mode: &AtomicU8, cut: u8) -> bool {
    mode.compare_exchange(cut, PASS, Ordering::SeqCst, Ordering::SeqCst).is_ok()
}

async fn carry(client: TcpStream, server: TcpStream, mode: &AtomicU8, cuts: &AtomicUsize) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let up = async {
        let mut bytes = vec![0; 1 << 20];
        loop {
            let Ok(read @ 1..) = from_client.read(&mut bytes).await else { return };
            let piece = &bytes[..read];
            let commits = piece.windows(7).any(|seven| seven == b"COMMIT\0");
            if commits && once(mode, CUT_BEFORE_COMMIT) {
                cuts.fetch_add(1, Ordering::SeqCst);
                return;
            }
            if to_server.write_all(piece).await.is_err() {
                return;
            }
        }
    };
    let down = async {
        let mut bytes = vec![0; 1 << 20];
        loop {
            let Ok(read @ 1..) = from_server.read(&mut bytes).await else { return };
            let answered = bytes[..read].windows(7).any(|seven| seven == b"COMMIT\0");
            if answered && once(mode, CUT_AFTER_COMMIT) {
                cuts.fetch_add(1, Ordering::SeqCst);
                return;
            }
            if to_client.write_all(&bytes[..read]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = up => {}
        () = down => {}
    }
}

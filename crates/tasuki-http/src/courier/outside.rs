// SPDX-License-Identifier: Apache-2.0
//! Any request to a server elsewhere, held to the same rules as a delivery: checked addresses, no
//! redirects. The connection lives as long as somebody reads from it.

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper::{Request, header};
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use tasuki_core::address::Endpoint;
use tasuki_front::{Identity, Incoming, Outgoing, Outside};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;

use super::{HEAD_BYTES_MAX, Poster, broken, builder, secured};

impl Outside for Poster {
    fn ask(&self, asked: Outgoing) -> BoxFuture<'_, Result<Incoming, String>> {
        Box::pin(self.open(asked))
    }
}

impl Poster {
    async fn open(&self, asked: Outgoing) -> Result<Incoming, String> {
        let endpoint = Endpoint::parse(&asked.url)?;
        let mut request = Request::builder()
            .method(asked.method)
            .uri(endpoint.target())
            .header(header::HOST, endpoint.authority())
            .header(header::USER_AGENT, concat!("tasuki/", env!("CARGO_PKG_VERSION")))
            .header(header::CONNECTION, "close");
        for (name, value) in asked.headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(Bytes::from(asked.body)));
        // What does not fit may be a credential, so it is not repeated.
        let request = request.map_err(|_| "a header of the request does not fit".to_owned())?;
        let stream = self.connect(&endpoint).await?;
        if !endpoint.tls {
            return begun(stream, request).await;
        }
        let tls = match &asked.identity {
            None => self.tls.clone(),
            Some(identity) => self.with_identity(identity)?,
        };
        begun(secured(&tls, &endpoint, stream).await?, request).await
    }

    fn with_identity(&self, identity: &Identity) -> Result<TlsConnector, String> {
        let (chain, key) = (identity.chain.clone(), identity.key.clone_key());
        let config: ClientConfig = builder(&self.roots)
            .with_client_auth_cert(chain, key)
            .map_err(|error| format!("the certificate cannot be shown: {error}"))?;
        Ok(TlsConnector::from(Arc::new(config)))
    }
}

/// Ends what drives a connection with whoever reads from it.
struct Driving(JoinHandle<()>);

impl Drop for Driving {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn begun<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    request: Request<Full<Bytes>>,
) -> Result<Incoming, String> {
    let mut client = http1::Builder::new();
    client.max_buf_size(HEAD_BYTES_MAX);
    let opened = client.handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = opened.map_err(|error| broken(&error))?;
    // Not watched: how it ends is told where the answer is read.
    let driving = Driving(tokio::spawn(async move {
        let _ = connection.await;
    }));
    let response = sender.send_request(request).await.map_err(|error| broken(&error))?;
    let (parts, body) = response.into_parts();
    let read = stream::unfold((body, driving, sender), |(mut body, driving, sender)| async move {
        loop {
            let piece = match body.frame().await? {
                Ok(frame) => match frame.into_data() {
                    Ok(data) => Ok(data.to_vec()),
                    // Trailers say nothing that anybody reads.
                    Err(_) => continue,
                },
                Err(error) => Err(broken(&error)),
            };
            return Some((piece, (body, driving, sender)));
        }
    });
    let status = parts.status.as_u16();
    Ok(Incoming { status, headers: parts.headers, body: Box::pin(read) })
}

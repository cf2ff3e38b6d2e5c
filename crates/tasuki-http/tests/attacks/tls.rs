// SPDX-License-Identifier: Apache-2.0
//! The wall around the wire: who shows a certificate is the agent that has enrolled its key, and
//! nobody else.

use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore};
use serde_json::json;
use tasuki_core::identity::SecretKey;
use tasuki_http::{Doorway, Identity, Places, Tls};
use tokio::sync::oneshot;

use crate::support::{Stage, in_time, may, new_key, on_durable_stores};

on_durable_stores! { closed:
    a_certificate_counts_as_its_agent_only_while_its_key_does
    without_tls_nobody_is_answered_and_a_new_certificate_is_shown_at_once
}

fn own_certificate() -> (Identity, rustls::pki_types::CertificateDer<'static>) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap().der().clone();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    (Identity { chain: vec![certificate.clone()], key }, certificate)
}

struct Secured {
    tls: Arc<Tls>,
    url: String,
    end: oneshot::Sender<()>,
}

async fn secured(stage: &Stage, identity: Identity) -> Secured {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let tls = Arc::new(Tls::new(identity).unwrap());
    let doorway = Doorway { tls: Some(tls.clone()), ..Doorway::of(Places::default()) };
    let (end, ended) = oneshot::channel();
    let serving = tasuki_http::serve_by(doorway, listener, stage.router.clone(), async {
        let _ = ended.await;
    });
    tokio::spawn(serving);
    Secured { tls, url, end }
}

/// A client that believes one certificate, and shows one of a key if it has one.
fn client(
    believed: &rustls::pki_types::CertificateDer<'static>,
    key: Option<&SecretKey>,
) -> reqwest::Client {
    let mut roots = RootCertStore::empty();
    roots.add(believed.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match key {
        None => config.with_no_client_auth(),
        Some(key) => {
            let mut der = vec![
                0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22,
                0x04, 0x20,
            ];
            der.extend_from_slice(&*key.seed());
            let pkcs8 = PrivatePkcs8KeyDer::from(der);
            let pair = KeyPair::from_pkcs8_der_and_sign_algo(&pkcs8, &PKCS_ED25519).unwrap();
            let certificate = CertificateParams::default().self_signed(&pair).unwrap();
            let key = PrivateKeyDer::Pkcs8(pkcs8);
            config.with_client_auth_cert(vec![certificate.der().clone()], key).unwrap()
        }
    };
    reqwest::Client::builder().no_proxy().tls_backend_preconfigured(config).build().unwrap()
}

async fn stats(client: &reqwest::Client, url: &str) -> (u16, serde_json::Value) {
    let reply = in_time(client.get(format!("{url}/v1/stats")).send()).await.unwrap();
    (reply.status().as_u16(), reply.json().await.unwrap())
}

async fn a_certificate_counts_as_its_agent_only_while_its_key_does(stage: Stage) {
    let admin = stage.administrator().await;
    let coder = admin.enroll("coder", may(&["read"])).await;
    let (identity, certificate) = own_certificate();
    let secured = secured(&stage, identity).await;
    let known = client(&certificate, Some(coder.key()));
    assert_eq!(stats(&known, &secured.url).await.0, 200);
    // It may do what its agent may do, and no more.
    let rules = json!({ "rules": may(&["administer"]) });
    let path = format!("{}/v1/agents/coder/rules", secured.url);
    let reply = in_time(known.post(path).json(&rules).send()).await.unwrap();
    assert_eq!(reply.status().as_u16(), 403);
    let stranger = client(&certificate, Some(&new_key()));
    let (status, body) = stats(&stranger, &secured.url).await;
    assert_eq!((status, &body["code"]), (401, &json!("certificate_unknown")));
    let nobody = client(&certificate, None);
    let (status, body) = stats(&nobody, &secured.url).await;
    assert_eq!((status, &body["code"]), (401, &json!("unauthenticated")));
    // On the connection that is there already.
    let revoke = format!("/v1/agents/coder/keys/{}/revoke", coder.key_id());
    admin.post(&revoke, json!({})).await.done();
    let (status, body) = stats(&known, &secured.url).await;
    assert_eq!((status, &body["code"]), (401, &json!("certificate_unknown")));
    secured.end.send(()).unwrap();
}

async fn without_tls_nobody_is_answered_and_a_new_certificate_is_shown_at_once(stage: Stage) {
    let (identity, first) = own_certificate();
    let secured = secured(&stage, identity).await;
    let plain = crate::support::client();
    let url = secured.url.replace("https://", "http://");
    assert!(in_time(plain.get(format!("{url}/healthz")).send()).await.is_err());
    let health = format!("{}/healthz", secured.url);
    assert!(in_time(client(&first, None).get(&health).send()).await.is_ok());
    let (identity, second) = own_certificate();
    assert!(in_time(client(&second, None).get(&health).send()).await.is_err());
    secured.tls.replace(identity).unwrap();
    assert!(in_time(client(&second, None).get(&health).send()).await.is_ok());
    assert!(in_time(client(&first, None).get(&health).send()).await.is_err());
    secured.end.send(()).unwrap();
}

// SPDX-License-Identifier: Apache-2.0
//! How a request shows who it is from: by a signature (RFC 9421), by a token, or not at all.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Body, Request, Url};
use tasuki_core::identity::{self, digest, message};
use tasuki_core::ids::KeyId;

use super::KeyFile;
use crate::exit::{Exit, Failure};

/// How long a signature is valid, in seconds. It has to outlive the way to the broker, not the
/// answer: a long wait is checked when it begins.
const VALIDITY_S: i64 = 30;

pub(super) enum Proof {
    Nothing,
    Token(HeaderValue),
    Key(Box<KeyFile>),
}

impl Proof {
    pub(super) fn of_token(token: &str) -> Result<Self, Failure> {
        let token = token.trim();
        // The failure does not repeat what may be a secret with one letter too many.
        let whole = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        let header = HeaderValue::try_from(format!("Bearer {token}")).ok().filter(|_| whole);
        let mut header = header.ok_or_else(|| {
            let hint = "give the token as `tasuki token issue` printed it, or leave it out";
            Failure::usage("what --token or TASUKI_TOKEN says is no token", hint)
        })?;
        header.set_sensitive(true);
        Ok(Self::Token(header))
    }

    /// Adds the headers that show who asks, for the broker with this key.
    pub(super) fn show(
        &self,
        request: &mut Request,
        audience: Option<KeyId>,
    ) -> Result<(), Failure> {
        match self {
            Self::Nothing => {}
            Self::Token(header) => {
                request.headers_mut().insert(AUTHORIZATION, header.clone());
            }
            Self::Key(file) => {
                let headers = signature(file, request, audience).map_err(|why| {
                    Failure::new(Exit::Refused, format!("cannot sign the request: {why}"), "")
                })?;
                request.headers_mut().extend(headers);
            }
        }
        Ok(())
    }
}

fn signature(
    file: &KeyFile,
    request: &Request,
    audience: Option<KeyId>,
) -> Result<HeaderMap, String> {
    let body = request.body().map(Body::as_bytes);
    let body = body.map(|bytes| bytes.ok_or("its body is not at hand")).transpose()?;
    let digest = body.filter(|bytes| !bytes.is_empty()).map(digest::of);
    let url = request.url();
    let signed = identity::Request {
        method: request.method().as_str(),
        authority: &authority(url),
        path: url.path(),
        query: url.query(),
        content_digest: digest.as_deref(),
    };
    let mut nonce = [0; 16];
    getrandom::fill(&mut nonce).map_err(|error| error.to_string())?;
    let nonce = format!("{:032x}", u128::from_ne_bytes(nonce));
    let created_s = i64::try_from(since_1970().as_secs()).map_err(|error| error.to_string())?;
    let expires_s = created_s + VALIDITY_S;
    let (input, signature) =
        message::sign(&signed, &file.secret, created_s, expires_s, &nonce, audience)
            .map_err(|fault| fault.to_string())?;
    let headers = [
        ("content-digest", digest),
        ("signature-input", Some(input)),
        ("signature", Some(signature)),
    ];
    let headers = headers.into_iter().filter_map(|(name, value)| Some((name, value?)));
    headers
        .map(|(name, value)| {
            let value = HeaderValue::try_from(value).map_err(|error| error.to_string())?;
            Ok((HeaderName::from_static(name), value))
        })
        .collect()
}

/// The `Host` header as the HTTP library makes it: a URL does not keep its scheme's own port.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// How long it is until signatures are dated by another second.
pub(super) fn next_second() -> Duration {
    Duration::from_secs(1) - Duration::from_nanos(u64::from(since_1970().subsec_nanos()))
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use tasuki_core::Timestamp;
    use tasuki_core::identity::Presented;

    use super::*;

    fn header<'r>(request: &'r Request, name: &str) -> Option<&'r str> {
        request.headers().get(name).map(|value| value.to_str().unwrap())
    }

    /// Signs a request and has it verified as the broker would, with what goes over the wire.
    #[track_caller]
    fn check(url: &str, body: Option<&str>, authority: &str, path: &str, query: Option<&str>) {
        let dir = tempfile::tempdir().unwrap();
        let file = KeyFile::create(&dir.path().join("k"), None).unwrap();
        let public = file.public();
        let mut request = Request::new(reqwest::Method::POST, Url::parse(url).unwrap());
        *request.body_mut() = body.map(|text| Body::from(text.to_owned()));
        Proof::Key(file.into()).show(&mut request, Some(KeyId(7))).unwrap();
        let input = header(&request, "signature-input").unwrap();
        let presented = Presented::parse(input, header(&request, "signature").unwrap()).unwrap();
        let digest = header(&request, "content-digest");
        assert_eq!(digest::covering(digest, body.unwrap_or_default().as_bytes()), Ok(digest));
        let sent =
            identity::Request { method: "POST", authority, path, query, content_digest: digest };
        let now = Timestamp(presented.created() * 1000);
        assert_eq!(presented.verify(&sent, &public, now, 0), Ok(()), "{url}");
        assert_eq!(presented.expires() - presented.created(), VALIDITY_S);
        assert_eq!(presented.nonce().len(), 32);
        assert_eq!(presented.audience(), Some(KeyId(7)));
    }

    #[test]
    fn a_request_is_signed_as_it_goes_over_the_wire() {
        check("http://127.0.0.1:8788/v1/join", Some("{}"), "127.0.0.1:8788", "/v1/join", None);
        check("http://Broker:80/a%2Fb?x=%20&y", None, "broker", "/a%2Fb", Some("x=%20&y"));
        check("http://[::1]:1/", Some(""), "[::1]:1", "/", None);
    }

    #[test]
    fn no_two_requests_have_the_same_nonce() {
        let dir = tempfile::tempdir().unwrap();
        let proof = Proof::Key(KeyFile::create(&dir.path().join("k"), None).unwrap().into());
        let mut request =
            Request::new(reqwest::Method::GET, Url::parse("http://localhost/").unwrap());
        let mut inputs = std::collections::BTreeSet::new();
        for _ in 0..3 {
            proof.show(&mut request, None).unwrap();
            assert_eq!(request.headers().get_all("signature-input").iter().count(), 1);
            inputs.insert(header(&request, "signature-input").unwrap().to_owned());
        }
        assert_eq!(inputs.len(), 3);
    }

    #[test]
    fn what_is_no_token_is_refused_and_not_repeated() {
        for wrong in ["", " ", "tsk_a b", "tsk_\u{e4}", "tsk_a\nb"] {
            let failure = Proof::of_token(wrong).err().unwrap();
            assert_eq!(failure.exit, Exit::Usage);
            assert!(!failure.to_string().contains("tsk_"), "{failure}");
        }
        assert!(matches!(Proof::of_token(" tsk_a\n"), Ok(Proof::Token(_))));
    }
}

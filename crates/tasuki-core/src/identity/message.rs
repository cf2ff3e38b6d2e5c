// SPDX-License-Identifier: Apache-2.0
//! Signed requests: HTTP message signatures (RFC 9421), cut down to one algorithm and one list of
//! covered components. Whatever the RFC leaves to choose is a chance for signer and verifier to
//! mean different things, so nothing is left to choose but the order of the parameters.
//!
//! A verified signature says that the key's holder sent this request within the last minute. It
//! does not say that the request arrived once: the caller has to remember the nonce until
//! [`Presented::expires`]. Nor does it say that it was meant for this broker: the caller compares
//! [`Presented::audience`]. Nor does it look at the body: [`super::digest::covering`] does.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::field::{self, Bare, Member};
use super::{Fault, PublicKey, SecretKey, Signature};
use crate::ids::{KeyId, Timestamp};

/// What tells our signatures from others that a request may carry, and which version they are.
pub const TAG: &str = "tasuki-v1";
/// The label under which [`sign`] puts its signature. When reading, any label will do.
pub const LABEL: &str = "tasuki";
/// How long a signature may be valid, in seconds; it bounds how many nonces are worth remembering.
pub const VALIDITY_S_MAX: i64 = 60;
pub const NONCE_CHARS_MIN: usize = 16;
pub const NONCE_CHARS_MAX: usize = 64;

const ALGORITHM: &str = "ed25519";
/// What every signature covers, in this order; the last one if and only if there is a body.
const COMPONENTS: [&str; 5] = ["@method", "@authority", "@path", "@query", "content-digest"];
const COMPONENTS_WITHOUT_BODY: usize = 4;
/// The largest integer that fits a structured header.
const INTEGER_MAX: i64 = 999_999_999_999_999;

/// What a signature covers of a request, each part as it goes over the wire.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// As sent: methods are case-sensitive.
    pub method: &'a str,
    /// Host and port without the scheme's default port, see [`authority`]. Case does not matter.
    pub authority: &'a str,
    /// As sent, still percent-encoded. An empty one means `/`.
    pub path: &'a str,
    /// What follows the question mark, if there is one, still percent-encoded.
    pub query: Option<&'a str>,
    /// The header value; several lines of it are joined with `, `. It has to be there if and only
    /// if there is a body, and nothing here can see whether there is: see
    /// [`super::digest::covering`].
    pub content_digest: Option<&'a str>,
}

impl Request<'_> {
    fn base(&self, params: &str) -> Result<String, Fault> {
        let authority = self.authority.to_ascii_lowercase();
        let path = if self.path.is_empty() { "/" } else { self.path };
        let query = format!("?{}", self.query.unwrap_or_default());
        // Whitespace around a field's value is not part of it (RFC 9421, 2.1).
        let digest = self.content_digest.map(|value| value.trim_matches([' ', '\t']));
        let values = [self.method, &authority, path, &query, digest.unwrap_or_default()];
        let lines: Vec<_> = COMPONENTS.into_iter().zip(values).collect();
        signature_base(&lines[..components(digest.is_some()).len()], params)
    }
}

fn components(with_body: bool) -> &'static [&'static str] {
    if with_body { &COMPONENTS } else { &COMPONENTS[..COMPONENTS_WITHOUT_BODY] }
}

/// The authority as it is signed (RFC 9421, 2.2.3): in lower case, and without the port if that is
/// the scheme's default (443 for https, 80 for http) or empty. `host` is the `Host` header or
/// `:authority`. Behind a proxy that ends TLS the port to name is that of the outside.
#[must_use]
pub fn authority(host: &str, default_port: u16) -> String {
    let host = host.to_ascii_lowercase();
    match host.rsplit_once(':') {
        Some((name, port)) if port.is_empty() || port.parse() == Ok(default_port) => name.into(),
        Some(_) | None => host,
    }
}

/// The text that is signed (RFC 9421, 2.5): a line for each component, then the line that names
/// them with `params`, the parameters as they stand behind the list, e.g. `;created=1;keyid="k"`.
/// Refuses whatever could be read as the end of a line, because then two requests could have the
/// same text.
pub fn signature_base(components: &[(&str, &str)], params: &str) -> Result<String, Fault> {
    let plain = |text: &str| text.bytes().all(|b| matches!(b, b' '..=b'~' | b'\t'));
    let is_name = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"@-_".contains(&b);
    let mut base = String::with_capacity(512);
    let mut names = String::with_capacity(64);
    for (name, value) in components {
        if !name.bytes().all(is_name) || !plain(value) {
            return Err(Fault::SignatureComponents("a component is not printable ASCII"));
        }
        base.extend(["\"", name, "\": ", value, "\n"]);
        names.extend([if names.is_empty() { "\"" } else { " \"" }, name, "\""]);
    }
    if !plain(params) {
        return Err(malformed("parameters are not printable ASCII"));
    }
    base.extend(["\"@signature-params\": (", &names, ")", params]);
    Ok(base)
}

/// Signs a request. Returns the values of `Signature-Input` and `Signature`. Refuses what
/// [`Presented::parse`] or [`Presented::verify`] would refuse; a nonce must never be used twice.
/// `audience` is the key of the broker that the request is for; what a broker delivers has none.
pub fn sign(
    request: &Request<'_>,
    secret: &SecretKey,
    created_s: i64,
    expires_s: i64,
    nonce: &str,
    audience: Option<KeyId>,
) -> Result<(String, String), Fault> {
    check_validity(created_s, expires_s)?;
    check_nonce(nonce)?;
    let key = secret.public().id();
    let mut params = format!(
        r#";created={created_s};expires={expires_s};nonce="{nonce}";keyid="{key}";tag="{TAG}""#
    );
    if let Some(audience) = audience {
        params += &format!(r#";audience="{audience}""#);
    }
    let base = request.base(&params)?;
    let signature = STANDARD.encode(secret.sign(base.as_bytes()).0);
    let names = components(request.content_digest.is_some()).join("\" \"");
    Ok((format!("{LABEL}=(\"{names}\"){params}"), format!("{LABEL}=:{signature}:")))
}

/// A signature that came with a request: well-formed, and nothing more is known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Presented {
    key_id: KeyId,
    audience: Option<KeyId>,
    nonce: String,
    created_s: i64,
    expires_s: i64,
    covers_body: bool,
    /// The parameters written anew, in the order received: what was signed is their value, not
    /// the spaces between them.
    params: String,
    signature: Signature,
}

impl Presented {
    /// Reads the values of `Signature-Input` and `Signature`; several lines of one are joined with
    /// `, `. Exactly one signature must have our tag; those with another are left alone.
    pub fn parse(signature_input: &str, signature: &str) -> Result<Self, Fault> {
        let read = |header| field::dictionary(header).map_err(malformed);
        let inputs = read(signature_input)?;
        let mut ours = inputs.iter().filter(|member| {
            field::param(&member.params, "tag").is_some_and(|tag| text(tag) == Some(TAG))
        });
        let input = ours.next().ok_or(Fault::SignatureMissing)?;
        if ours.next().is_some() {
            return Err(malformed("two signatures have the tag tasuki-v1"));
        }
        let signatures = read(signature)?;
        let signature = signatures.iter().find(|member| member.key == input.key);
        let signature = signature.ok_or_else(|| malformed("its label is not in Signature"))?;
        let Some(Bare::ByteSequence(bytes)) = &signature.item else {
            return Err(malformed("Signature is not a byte sequence"));
        };
        let bytes = bytes.as_slice().try_into();
        let bytes = bytes.map_err(|_| malformed("Signature does not have 64 bytes"))?;
        Self::from_parts(input, Signature(bytes))
    }

    fn from_parts(input: &Member<'_>, signature: Signature) -> Result<Self, Fault> {
        let covers_body = covers_body(input)?;
        let [mut created_s, mut expires_s, mut nonce, mut key_id, mut audience] =
            [const { None }; 5];
        let mut params = String::with_capacity(192);
        for (name, value) in &input.params {
            let seen = match *name {
                "created" => &mut created_s,
                "expires" => &mut expires_s,
                "nonce" => &mut nonce,
                "keyid" => &mut key_id,
                "audience" => &mut audience,
                "alg" if text(value) != Some(ALGORITHM) => return Err(Fault::SignatureAlgorithm),
                "alg" | "tag" => &mut None,
                _ => return Err(malformed("it has a parameter that is not known")),
            };
            *seen = Some(value);
            write_param(name, value, &mut params)?;
        }
        let integer = |value: Option<&Bare<'_>>| value?.as_integer().map(i64::from);
        let created_s = integer(created_s).ok_or_else(|| malformed("created is not an integer"))?;
        let expires_s = integer(expires_s).ok_or_else(|| malformed("expires is not an integer"))?;
        check_validity(created_s, expires_s)?;
        let nonce = nonce.and_then(text).unwrap_or_default();
        check_nonce(nonce)?;
        let key_id = key_id.and_then(text).and_then(|id| id.parse().ok());
        let key_id = key_id.ok_or_else(|| malformed("keyid is not the id of a key"))?;
        let audience = audience.map(|named| text(named).and_then(|id| id.parse().ok()));
        let audience = match audience {
            Some(None) => return Err(malformed("audience is not the id of a key")),
            Some(named) => named,
            None => None,
        };
        let nonce = nonce.to_owned();
        Ok(Self { key_id, audience, nonce, created_s, expires_s, covers_body, params, signature })
    }

    /// The key that is said to have signed, for the caller to look up.
    #[must_use]
    pub fn key_id(&self) -> KeyId {
        self.key_id
    }

    /// The key of the broker that the request is for. That it is named says nothing yet: who reads
    /// it has to compare.
    #[must_use]
    pub fn audience(&self) -> Option<KeyId> {
        self.audience
    }

    /// What the signer promises to use only once.
    #[must_use]
    pub fn nonce(&self) -> &str {
        &self.nonce
    }

    /// When it was signed, in seconds since 1970.
    #[must_use]
    pub fn created(&self) -> i64 {
        self.created_s
    }

    /// Until when it is valid, in seconds since 1970.
    #[must_use]
    pub fn expires(&self) -> i64 {
        self.expires_s
    }

    /// Refuses a signature that is not of this request, by this key, and valid now. `skew_s` is how
    /// far the signer's clock may be ahead of ours. One that is behind gets nothing: it would make
    /// signatures live longer than they say, and nonces with them.
    pub fn verify(
        &self,
        request: &Request<'_>,
        key: &PublicKey,
        now: Timestamp,
        skew_s: i64,
    ) -> Result<(), Fault> {
        self.check(request, now, skew_s)?;
        let base = request.base(&self.params)?;
        if self.key_id != key.id() || !key.verify(base.as_bytes(), &self.signature) {
            return Err(Fault::SignatureWrong);
        }
        Ok(())
    }

    /// Everything that can be said without a key. Asked first, it answers a stranger the same
    /// whether or not the key is known.
    pub fn check(&self, request: &Request<'_>, now: Timestamp, skew_s: i64) -> Result<(), Fault> {
        let [created, expires] = [self.created_s, self.expires_s].map(|s| Timestamp(s * 1000));
        if created.0 > now.0.saturating_add(skew_s.saturating_mul(1000)) {
            return Err(Fault::SignatureNotYetValid { created, now });
        }
        if now > expires {
            return Err(Fault::SignatureExpired { expires, now });
        }
        match (self.covers_body, request.content_digest.is_some()) {
            (false, true) => {
                return Err(Fault::SignatureComponents("content-digest is not among them"));
            }
            (true, false) => return Err(Fault::SignatureComponents("there is no content-digest")),
            (true, true) | (false, false) => {}
        }
        request.base(&self.params).map(drop)
    }
}

/// Whether the list of covered components is the one for a request with a body.
fn covers_body(input: &Member<'_>) -> Result<bool, Fault> {
    if input.item.is_some() {
        return Err(malformed("Signature-Input is not a list of components"));
    }
    // A parameter would make the component mean something else, e.g. the request's of a response.
    if input.list.iter().any(|part| !part.params.is_empty()) {
        return Err(Fault::SignatureComponents("a component has parameters"));
    }
    let is = |names: &[&str]| {
        input.list.iter().map(|part| text(&part.item)).eq(names.iter().map(|name| Some(*name)))
    };
    match (is(components(true)), is(components(false))) {
        (true, _) => Ok(true),
        (_, true) => Ok(false),
        (false, false) => Err(Fault::SignatureComponents(
            "in this order @method @authority @path @query and, with a body, content-digest",
        )),
    }
}

/// Only integers and strings without anything to escape get through, as all known parameters are.
fn write_param(name: &str, value: &Bare<'_>, to: &mut String) -> Result<(), Fault> {
    let written = match (value, text(value)) {
        (Bare::Integer(value), _) => write!(to, ";{name}={value}"),
        (_, Some(text)) if !text.contains(['"', '\\']) => write!(to, ";{name}=\"{text}\""),
        _ => return Err(malformed("a parameter is neither an integer nor a plain string")),
    };
    written.map_err(|_| malformed("a parameter cannot be written"))
}

fn check_validity(created_s: i64, expires_s: i64) -> Result<(), Fault> {
    if created_s < 0 || expires_s > INTEGER_MAX {
        return Err(malformed("created or expires is out of range"));
    }
    match expires_s.checked_sub(created_s) {
        Some(1..=VALIDITY_S_MAX) => Ok(()),
        Some(_) | None => Err(malformed("expires is not 1 to 60 seconds after created")),
    }
}

fn check_nonce(nonce: &str) -> Result<(), Fault> {
    let fits = (NONCE_CHARS_MIN..=NONCE_CHARS_MAX).contains(&nonce.len());
    if fits && nonce.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)) {
        return Ok(());
    }
    Err(malformed("nonce is not 16 to 64 letters, digits, _ or -"))
}

fn text<'m>(value: &'m Bare<'_>) -> Option<&'m str> {
    value.as_string().map(|text| text.as_str())
}

fn malformed(why: impl Into<std::borrow::Cow<'static, str>>) -> Fault {
    Fault::SignatureMalformed(why.into())
}

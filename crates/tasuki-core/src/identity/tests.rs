// SPDX-License-Identifier: Apache-2.0
//! Signed requests, from both sides.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use super::message::{authority, sign, signature_base};
use super::{Fault, Presented, PublicKey, Request, SecretKey, Signature, statement};
use crate::ids::{Hash, KeyId, Timestamp};

const CREATED: i64 = 1_800_000_000;
const EXPIRES: i64 = CREATED + 60;
const NONCE: &str = "n0nce_n0nce-n0nce";
const DIGEST: &str = "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:";
const REQUEST: Request<'_> = Request {
    method: "POST",
    authority: "broker.example",
    path: "/v1/tasks",
    query: Some("a=1"),
    content_digest: Some(DIGEST),
};
const BARE: Request<'_> = Request { query: None, content_digest: None, ..REQUEST };

fn secret() -> SecretKey {
    SecretKey::from_seed([7; 32])
}

fn now() -> Timestamp {
    Timestamp(CREATED * 1000)
}

fn signed(request: &Request<'_>) -> (String, String) {
    sign(request, &secret(), CREATED, EXPIRES, NONCE, None).unwrap()
}

/// What becomes of a request that arrives with these headers.
fn received(request: &Request<'_>, input: &str, signature: &str) -> Result<(), Fault> {
    Presented::parse(input, signature)?.verify(request, &secret().public(), now(), 0)
}

/// Signs with our key whatever parameters an adversary (or another library) may choose.
fn received_with(params: &str) -> Result<(), Fault> {
    let values = [("@method", "POST"), ("@authority", "broker.example"), ("@path", "/v1/tasks")];
    let base = signature_base(&[&values[..], &[("@query", "?")]].concat(), params).unwrap();
    let signature = STANDARD.encode(secret().sign(base.as_bytes()).0);
    let input = format!(r#"x=("@method" "@authority" "@path" "@query"){params}"#);
    received(&BARE, &input, &format!("x=:{signature}:"))
}

fn params() -> String {
    let key = secret().public().id();
    format!(r#";created={CREATED};expires={EXPIRES};nonce="{NONCE}";keyid="{key}";tag="tasuki-v1""#)
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, Fault>, code: &str) {
    assert_eq!(result.unwrap_err().code(), code);
}

#[test]
fn the_ed25519_example_of_rfc_9421_holds() {
    let components = [
        ("date", "Tue, 20 Apr 2021 02:07:55 GMT"),
        ("@method", "POST"),
        ("@path", "/foo"),
        ("@authority", "example.com"),
        ("content-type", "application/json"),
        ("content-length", "18"),
    ];
    let base = signature_base(&components, r#";created=1618884473;keyid="test-key-ed25519""#);
    let base = base.unwrap();
    let expected = [
        r#""date": Tue, 20 Apr 2021 02:07:55 GMT"#,
        r#""@method": POST"#,
        r#""@path": /foo"#,
        r#""@authority": example.com"#,
        r#""content-type": application/json"#,
        r#""content-length": 18"#,
        concat!(
            r#""@signature-params": ("date" "@method" "@path" "@authority" "content-type" "#,
            r#""content-length");created=1618884473;keyid="test-key-ed25519""#,
        ),
    ];
    assert_eq!(base, expected.join("\n"));

    let key: PublicKey = "ed25519:JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs".parse().unwrap();
    let text = "ed25519-secret:n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU";
    let secret = SecretKey::from_text(text).unwrap();
    let signature =
        "wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==";
    let signature = Signature(STANDARD.decode(signature).unwrap().try_into().unwrap());
    assert!(key.verify(base.as_bytes(), &signature));
    assert_eq!(secret.sign(base.as_bytes()), signature);
}

#[test]
fn what_is_signed_is_accepted_and_readable() {
    for request in [REQUEST, BARE] {
        let (input, signature) = signed(&request);
        assert_eq!(received(&request, &input, &signature), Ok(()));
        let presented = Presented::parse(&input, &signature).unwrap();
        assert_eq!(presented.key_id(), secret().public().id());
        assert_eq!(presented.nonce(), NONCE);
        assert_eq!((presented.created(), presented.expires()), (CREATED, EXPIRES));
    }
}

#[test]
fn another_implementation_signs_the_same() {
    // Made with Python's cryptography package, from the text of the RFC.
    let (input, signature) = signed(&REQUEST);
    let components = r#"("@method" "@authority" "@path" "@query" "content-digest")"#;
    assert_eq!(secret().public().id().to_string(), "key_48qapp73knmyz14tg643c1npz9");
    assert_eq!(input, format!("tasuki={components}{}", params()));
    let expected = concat!(
        "tasuki=:L1Z7Z6OvHLdHbWk+kbkH9PkhjKlyDdAd6KxPAvElAfWB",
        "Nt1+wFcPxLtyMGWqNp16uoylyiPBWue8Pj0WPwJxDQ==:",
    );
    assert_eq!(signature, expected);
}

#[test]
fn a_request_altered_in_any_covered_part_is_refused() {
    let (input, signature) = signed(&REQUEST);
    for altered in [
        Request { method: "PUT", ..REQUEST },
        Request { method: "post", ..REQUEST },
        Request { authority: "broker.example:8080", ..REQUEST },
        Request { authority: "other.example", ..REQUEST },
        Request { path: "/v1/tasks/", ..REQUEST },
        Request { path: "/v1/Tasks", ..REQUEST },
        Request { path: "/v1/%74asks", ..REQUEST },
        Request { query: None, ..REQUEST },
        Request { query: Some("a=2"), ..REQUEST },
        Request { query: Some("?a=1"), ..REQUEST },
        Request { content_digest: Some("sha-256=:AAAA:"), ..REQUEST },
    ] {
        refused(received(&altered, &input, &signature), "signature_wrong");
    }
    let other = SecretKey::from_seed([8; 32]);
    let presented = Presented::parse(&input, &signature).unwrap();
    refused(presented.verify(&REQUEST, &other.public(), now(), 0), "signature_wrong");
}

#[test]
fn spellings_that_http_holds_equal_are_equal() {
    let (input, signature) = signed(&BARE);
    for same in
        [Request { authority: "Broker.EXAMPLE", ..BARE }, Request { query: Some(""), ..BARE }]
    {
        assert_eq!(received(&same, &input, &signature), Ok(()));
    }
    let root = Request { path: "/", ..REQUEST };
    let (input, signature) = signed(&root);
    let spaced = format!(" {DIGEST}\t");
    let same = Request { path: "", content_digest: Some(&spaced), ..REQUEST };
    assert_eq!(received(&same, &input, &signature), Ok(()));

    for (host, port, expected) in [
        ("Broker.Example:443", 443, "broker.example"),
        ("broker.example:443", 80, "broker.example:443"),
        ("broker.example:", 443, "broker.example"),
        ("[::1]:80", 80, "[::1]"),
        ("[::80]", 80, "[::80]"),
        ("broker.example", 80, "broker.example"),
    ] {
        assert_eq!(authority(host, port), expected, "{host}");
    }
}

#[test]
fn parameters_may_come_in_any_order_and_spacing() {
    let (_, rest) =
        params().split_once(";expires").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let reordered = format!(";expires{rest};created={CREATED}");
    assert_eq!(received_with(&reordered), Ok(()));

    let (input, signature) = signed(&BARE);
    let spaced = input.replace(';', ";  ").replace("(\"", "(  \"").replace("\" \"", "\"   \"");
    assert_ne!(spaced, input);
    assert_eq!(received(&BARE, &spaced, &signature), Ok(()));
    // The order is signed, too: moving a parameter afterwards breaks the signature.
    let moved = input.replace(&params(), &reordered);
    assert_ne!(moved, input);
    refused(received(&BARE, &moved, &signature), "signature_wrong");
}

#[test]
fn only_ed25519_may_be_named_as_the_algorithm() {
    assert_eq!(received_with(&params()), Ok(()));
    assert_eq!(received_with(&format!(r#"{};alg="ed25519""#, params())), Ok(()));
    for alg in ["\"hmac-sha256\"", "\"Ed25519\"", "\"none\"", "\"\"", "ed25519", "1", "?1"] {
        refused(received_with(&format!("{};alg={alg}", params())), "signature_algorithm");
    }
}

#[test]
fn a_parameter_that_is_missing_unknown_repeated_or_misshapen_is_refused() {
    for name in ["created", "expires", "nonce", "keyid"] {
        let mut kept: Vec<_> = params().split(';').map(str::to_owned).collect();
        kept.retain(|param| !param.starts_with(name));
        refused(received_with(&kept.join(";")), "signature_malformed");
    }
    refused(received_with(&params().replace("tasuki-v1", "tasuki-v2")), "signature_missing");
    refused(received_with(&params().replace("\"tasuki-v1\"", "tasuki-v1")), "signature_missing");
    for more in [";x=1", ";created=1800000000", ";tag=\"tasuki-v1\"", ";tag=\"other\"", ";req"] {
        refused(received_with(&(params() + more)), "signature_malformed");
    }
    let key = secret().public().id().to_string();
    for (good, bad) in [
        (CREATED.to_string(), "1800000000.0"),
        (CREATED.to_string(), "\"1800000000\""),
        (CREATED.to_string(), "@1800000000"),
        (CREATED.to_string(), "-5"),
        (EXPIRES.to_string(), "1800000000060000"),
        (NONCE.to_owned(), "fifteen-chars-0"),
        (NONCE.to_owned(), &"n".repeat(65)),
        (NONCE.to_owned(), "n0nce n0nce n0nce"),
        (NONCE.to_owned(), r"n0nce\\n0nce\\n0nce"),
        (key.clone(), "test-key-ed25519"),
        (key.clone(), &key.to_uppercase()),
        (key, ""),
    ] {
        let params = params();
        assert!(params.contains(&good));
        refused(received_with(&params.replacen(&good, bad, 1)), "signature_malformed");
    }
}

#[test]
fn a_signature_covers_exactly_what_it_must() {
    let (input, signature) = signed(&REQUEST);
    let components = r#""@method" "@authority" "@path" "@query" "content-digest""#;
    for other in [
        "",
        r#""@method""#,
        r#""@authority" "@method" "@path" "@query" "content-digest""#,
        r#""@method" "@authority" "@path" "content-digest""#,
        r#""@method" "@authority" "@path" "@query" "content-digest" "date""#,
        r#""@method" "@authority" "@path" "@query" "content-digest" "content-digest""#,
        r#""@method" "@authority" "@path" "@query" "Content-Digest""#,
        r#""@method" "@authority" "@path" "@query" content-digest"#,
        r#""@method";req "@authority" "@path" "@query" "content-digest""#,
        r#""@method" "@authority" "@path" "@query" "content-digest";sf"#,
        r#""@method" "@authority" "@path" "@query" "content-digest";bs"#,
    ] {
        let input = input.replace(components, other);
        refused(received(&REQUEST, &input, &signature), "signature_components");
    }
    // The list is right for another request than this.
    refused(received(&BARE, &input, &signature), "signature_components");
    let (input, signature) = signed(&BARE);
    refused(received(&REQUEST, &input, &signature), "signature_components");
}

#[test]
fn a_value_that_could_end_a_line_is_refused_by_both_sides() {
    let (input, signature) = signed(&BARE);
    for value in ["/a\n\"@query\": ?b", "/a\rb", "/ä", "/a\0"] {
        let forged = Request { path: value, ..BARE };
        refused(sign(&forged, &secret(), CREATED, EXPIRES, NONCE, None), "signature_components");
        refused(received(&forged, &input, &signature), "signature_components");
    }
}

#[test]
fn a_signature_names_the_broker_it_is_for_and_the_name_is_covered() {
    let (here, there) = (secret().public().id(), KeyId(7));
    let signed = sign(&BARE, &secret(), CREATED, EXPIRES, NONCE, Some(here));
    let (input, signature) = signed.unwrap();
    assert_eq!(received(&BARE, &input, &signature), Ok(()));
    assert_eq!(Presented::parse(&input, &signature).unwrap().audience(), Some(here));
    let named = format!(r#";audience="{here}""#);
    assert!(input.contains(&named), "{input}");
    for other in [String::new(), format!(r#";audience="{there}""#)] {
        refused(received(&BARE, &input.replace(&named, &other), &signature), "signature_wrong");
    }
    for nobody in [r#""broker""#, "1", r#""""#, "?1"] {
        let params = format!("{};audience={nobody}", params());
        refused(received_with(&params), "signature_malformed");
    }
}

#[test]
fn a_signature_is_valid_from_created_until_expires() {
    let (input, signature) = signed(&BARE);
    let presented = Presented::parse(&input, &signature).unwrap();
    let at = |ms, skew_s| presented.verify(&BARE, &secret().public(), Timestamp(ms), skew_s);
    assert_eq!(at(CREATED * 1000, 0), Ok(()));
    assert_eq!(at(EXPIRES * 1000, 0), Ok(()));
    refused(at(EXPIRES * 1000 + 1, 0), "signature_expired");
    refused(at(EXPIRES * 1000 + 1, 30), "signature_expired");
    refused(at(CREATED * 1000 - 1, 0), "signature_not_yet_valid");
    assert_eq!(at(CREATED * 1000 - 5000, 5), Ok(()));
    refused(at(CREATED * 1000 - 5001, 5), "signature_not_yet_valid");
    refused(at(i64::MAX, i64::MAX), "signature_expired");
    refused(at(i64::MIN, i64::MIN), "signature_not_yet_valid");
}

#[test]
fn a_validity_that_is_too_long_or_not_positive_is_refused_by_both_sides() {
    for expires in [CREATED + 61, CREATED, CREATED - 1, i64::MAX, i64::MIN] {
        refused(sign(&BARE, &secret(), CREATED, expires, NONCE, None), "signature_malformed");
    }
    for expires in [CREATED + 61, CREATED, CREATED - 1] {
        let params = params().replace(&EXPIRES.to_string(), &expires.to_string());
        refused(received_with(&params), "signature_malformed");
    }
    refused(sign(&BARE, &secret(), -1, 59, NONCE, None), "signature_malformed");
    refused(sign(&BARE, &secret(), CREATED, EXPIRES, "short", None), "signature_malformed");
}

#[test]
fn other_signatures_are_ignored_but_ours_must_be_one() {
    let (input, signature) = signed(&BARE);
    let (proxy, proxied) = (r#"proxy=("date";sf);alg="rsa-pss-sha512";tag="cdn""#, "proxy=:AAAA:");
    let both = (format!("{proxy}, {input}"), format!("{proxied}, {signature}"));
    assert_eq!(received(&BARE, &both.0, &both.1), Ok(()));
    refused(received(&BARE, proxy, proxied), "signature_missing");
    refused(received(&BARE, "", ""), "signature_missing");

    let second = (input.replace("tasuki=", "again="), signature.replace("tasuki=", "again="));
    let two = (format!("{input}, {}", second.0), format!("{signature}, {}", second.1));
    refused(received(&BARE, &two.0, &two.1), "signature_malformed");
    // The same label twice, where readers disagree on which one counts.
    refused(received(&BARE, &format!("{input}, {input}"), &signature), "signature_malformed");
    refused(received(&BARE, &input, &format!("{signature}, {signature}")), "signature_malformed");
    let swapped = proxy.replace("proxy=", "tasuki=");
    refused(received(&BARE, &format!("{swapped}, {input}"), &signature), "signature_malformed");
}

#[test]
fn a_signature_that_is_not_64_bytes_under_the_same_label_is_refused() {
    let (input, signature) = signed(&BARE);
    for bad in [
        "",
        "tasuki",
        "tasuki=::",
        "tasuki=:AAAA:",
        "tasuki=\"AAAA\"",
        &signature.replace("tasuki=", "other="),
        &signature.replace("=:", "=(:").replace("==:", "==:)"),
        &signature[..signature.len() - 1],
        &format!("{signature}, x=\"{}\"", "a".repeat(4096)),
    ] {
        refused(received(&BARE, &input, bad), "signature_malformed");
    }
    let long = format!("{input}, x=\"{}\"", "a".repeat(4096));
    refused(received(&BARE, &long, &signature), "signature_malformed");
    let item = format!("tasuki=1{}", params());
    refused(received(&BARE, &item, &signature), "signature_malformed");
}

#[test]
fn a_signed_statement_is_no_signed_request() {
    let (input, signature) = signed(&BARE);
    let base = signature_base(&[], "").unwrap();
    assert!(base.starts_with('"') && !statement::envelope(Hash::ZERO).starts_with(b"\""));
    let statement = secret().sign(&statement::envelope(Hash::ZERO));
    let passed_off = format!("tasuki=:{}:", STANDARD.encode(statement.0));
    assert_ne!(passed_off, signature);
    refused(received(&BARE, &input, &passed_off), "signature_wrong");
}

proptest! {
    #[test]
    fn garbage_is_refused_without_a_panic(
        input in "\\PC*", signature in "\\PC*", structured in "[a-z\"();=:, @0-9.?%\\\\-]{0,80}",
    ) {
        prop_assert!(Presented::parse(&input, &signature).is_err());
        prop_assert!(Presented::parse(&structured, &signature).is_err());
        let ours = format!(r#"{structured};tag="tasuki-v1""#);
        prop_assert!(Presented::parse(&ours, &structured).is_err());
        let _ = super::digest::check(&structured, b"");
    }

    #[test]
    fn headers_with_a_changed_character_are_refused_or_mean_the_same(
        place in any::<prop::sample::Index>(), to in any::<char>(), kind in 0..3,
    ) {
        let (input, signature) = signed(&REQUEST);
        let original = Presented::parse(&input, &signature).unwrap();
        let both: Vec<char> = format!("{input}\n{signature}").chars().collect();
        let mut changed = both.clone();
        let place = place.index(both.len());
        match kind {
            0 => changed[place] = to,
            1 => changed.insert(place, to),
            _ => drop(changed.remove(place)),
        }
        let changed: String = changed.into_iter().collect();
        let (input, signature) = changed.split_once('\n').unwrap_or((&changed, ""));
        if let Ok(presented) = Presented::parse(input, signature)
            && presented.verify(&REQUEST, &secret().public(), now(), 0).is_ok()
        {
            prop_assert_eq!(presented, original);
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! What a URL in a manifest looks like. A parser of our own, because only the form is checked and
//! the core has no other use for one.

use std::net::Ipv6Addr;

use super::URL_BYTES_MAX;

/// Looks at the form only. Whether the broker may call it is for the one who calls: names resolve
/// to other addresses later.
pub(super) fn check(url: &str) -> Result<&str, &'static str> {
    if url.len() > URL_BYTES_MAX {
        return Err("longer than 2048 bytes");
    }
    if !url.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("expected a URL of visible ASCII characters");
    }
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err("expected a URL with http:// or https://");
    };
    if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return Err("expected a URL with http:// or https://");
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // A manifest is read by everyone.
    if authority.contains('@') {
        return Err("a URL in a manifest carries no user name or password");
    }
    let (host, port) = match authority.strip_prefix('[').and_then(|v6| v6.split_once(']')) {
        Some((v6, port)) if v6.parse::<Ipv6Addr>().is_ok() => (v6, port),
        Some(_) => return Err("the URL's host is no IPv6 address"),
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let port_fits =
        |port: &str| port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    if !port.is_empty() && !port_fits(port) {
        return Err("the URL's port is no number up to 65535");
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
    if host.is_empty() || !host.bytes().all(plain) {
        return Err("the URL's host is missing or no host name");
    }
    Ok(url)
}

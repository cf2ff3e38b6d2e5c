// SPDX-License-Identifier: Apache-2.0
//! Where the broker may connect to on somebody's word. A manifest names a URL, and whoever wrote it
//! must not reach by way of the broker what it could not reach itself: this machine, the network
//! around it, or a cloud's metadata service. So only public addresses are allowed, unless the
//! operator says otherwise. Names are resolved by the one who connects; every address that comes out
//! is held against [`Guard::check`], and the connection goes to that very address.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::ids::Malformed;

/// A range of addresses, such as `10.0.0.0/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Net {
    address: IpAddr,
    prefix: u8,
}

impl Net {
    const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Self {
        Self { address: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix }
    }

    const fn v6(first: u16, second: u16, third: u16, prefix: u8) -> Self {
        let address = Ipv6Addr::new(first, second, third, 0, 0, 0, 0, 0);
        Self { address: IpAddr::V6(address), prefix }
    }

    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(net), IpAddr::V4(address)) => {
                let shift = 32 - u32::from(self.prefix);
                let head = |bits: u32| bits.checked_shr(shift).unwrap_or(0);
                head(net.to_bits()) == head(address.to_bits())
            }
            (IpAddr::V6(net), IpAddr::V6(address)) => {
                let shift = 128 - u32::from(self.prefix);
                let head = |bits: u128| bits.checked_shr(shift).unwrap_or(0);
                head(net.to_bits()) == head(address.to_bits())
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl FromStr for Net {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let wrong = || Malformed("expected an address or a range such as 10.0.0.0/8".into());
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let max = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Ok(max), |prefix| prefix.parse().map_err(|_| wrong()))?;
        if prefix > max {
            return Err(wrong());
        }
        Ok(Self { address, prefix })
    }
}

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// Addresses that are nobody's on the public Internet, each with the word for it.
const CLOSED: &[(Net, &str)] = &[
    (Net::v4(0, 0, 0, 0, 8), "unspecified"),
    (Net::v4(10, 0, 0, 0, 8), "private"),
    (Net::v4(100, 64, 0, 0, 10), "shared by a carrier"),
    (Net::v4(127, 0, 0, 0, 8), "loopback"),
    (Net::v4(169, 254, 0, 0, 16), "link-local, where metadata services are"),
    (Net::v4(172, 16, 0, 0, 12), "private"),
    (Net::v4(192, 0, 0, 0, 24), "reserved"),
    (Net::v4(192, 0, 2, 0, 24), "for documentation"),
    (Net::v4(192, 88, 99, 0, 24), "reserved"),
    (Net::v4(192, 168, 0, 0, 16), "private"),
    (Net::v4(198, 18, 0, 0, 15), "for benchmarks"),
    (Net::v4(198, 51, 100, 0, 24), "for documentation"),
    (Net::v4(203, 0, 113, 0, 24), "for documentation"),
    (Net::v4(224, 0, 0, 0, 4), "multicast"),
    (Net::v4(240, 0, 0, 0, 4), "reserved or broadcast"),
    (Net::v6(0, 0, 0, 8), "unspecified, loopback or reserved"),
    (Net::v6(0x0064, 0xff9b, 1, 48), "for translation in one network"),
    (Net::v6(0x0100, 0, 0, 64), "discarded"),
    (Net::v6(0x2001, 0, 0, 23), "reserved or a tunnel"),
    (Net::v6(0x2001, 0x0db8, 0, 32), "for documentation"),
    (Net::v6(0x3fff, 0, 0, 20), "for documentation"),
    (Net::v6(0x5f00, 0, 0, 16), "reserved"),
    (Net::v6(0xfc00, 0, 0, 7), "private, where metadata services are"),
    (Net::v6(0xfe80, 0, 0, 10), "link-local"),
    (Net::v6(0xfec0, 0, 0, 10), "private"),
    (Net::v6(0xff00, 0, 0, 8), "multicast"),
];

/// Which addresses are allowed besides the public ones.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    allowed: Vec<Net>,
}

impl Guard {
    #[must_use]
    pub fn allowing(allowed: Vec<Net>) -> Self {
        Self { allowed }
    }

    /// Refuses an address that is not public and not allowed, with what is wrong about it. An IPv4
    /// address inside an IPv6 one counts as what it is.
    pub fn check(&self, address: IpAddr) -> Result<(), String> {
        let inner = embedded(address);
        let named = |address: IpAddr| self.allowed.iter().any(|net| net.contains(address));
        if named(address) || inner.is_some_and(|inner| named(IpAddr::V4(inner))) {
            return Ok(());
        }
        let closed = |address: IpAddr| CLOSED.iter().find(|(net, _)| net.contains(address));
        // What is mapped lies in a reserved range of its own, so the inner one is looked at first:
        // it says more.
        let found = inner.and_then(|inner| closed(IpAddr::V4(inner)));
        let found = found.or_else(|| closed(address).filter(|_| inner.is_none()));
        match found {
            Some((_, why)) => Err(format!("{address} is {why}")),
            None => Ok(()),
        }
    }

    /// Refuses a host that is an address, or a name that always stands for one.
    pub fn check_host(&self, host: &Host) -> Result<(), String> {
        match host {
            Host::Address(address) => self.check(*address),
            Host::Name(name) => {
                let name = name.strip_suffix('.').unwrap_or(name);
                let local = name == "localhost" || name.ends_with(".localhost");
                let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
                if local { self.check(loopback) } else { Ok(()) }
            }
        }
    }
}

/// The IPv4 address that an IPv6 address stands for: mapped, compatible, translated (NAT64) or by
/// 6to4.
fn embedded(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else { return None };
    let bits = address.to_bits();
    let low = Ipv4Addr::from_bits(u32::try_from(bits & 0xffff_ffff).unwrap_or(0));
    let segments = address.segments();
    match segments {
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => Some(low),
        // `::` and `::1` are IPv6's own.
        [0, 0, 0, 0, 0, 0, ..] if bits > 1 => Some(low),
        [0x2002, high, middle, ..] => {
            let [a, b] = high.to_be_bytes();
            let [c, d] = middle.to_be_bytes();
            Some(Ipv4Addr::new(a, b, c, d))
        }
        _ => None,
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    Name(String),
    Address(IpAddr),
}

/// A URL that the broker may post to, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub tls: bool,
    pub host: Host,
    /// The host as it stands in the URL, in lower case.
    pub host_text: String,
    pub port: u16,
    /// Beginning with a slash, still percent-encoded.
    pub path: String,
    pub query: Option<String>,
}

impl Endpoint {
    pub fn parse(url: &str) -> Result<Self, &'static str> {
        if !url.bytes().all(|byte| byte.is_ascii_graphic()) || url.contains('\\') {
            return Err("expected a URL of visible ASCII characters");
        }
        let (scheme, rest) = url.split_once("://").ok_or("expected a URL with http or https")?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err("expected a URL with http or https"),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err("a URL carries no user name or password");
        }
        let (host_text, port) = match authority.strip_prefix('[') {
            Some(v6) => {
                let (v6, port) = v6.split_once(']').ok_or("the host is no IPv6 address")?;
                (format!("[{v6}]"), port)
            }
            None => {
                let (host, port) =
                    authority.split_at(authority.find(':').unwrap_or(authority.len()));
                (host.to_ascii_lowercase(), port)
            }
        };
        let port = match port.strip_prefix(':').filter(|port| !port.is_empty()) {
            Some(port) => port.parse().map_err(|_| "the port is no number up to 65535")?,
            None if tls => 443,
            None => 80,
        };
        let host = host_of(&host_text)?;
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (target, None),
        };
        let path = if path.is_empty() { "/" } else { path }.to_owned();
        Ok(Self { tls, host, host_text, port, path, query })
    }

    /// Host and port as they stand in a `Host` header.
    #[must_use]
    pub fn authority(&self) -> String {
        let usual = if self.tls { 443 } else { 80 };
        match self.port {
            port if port == usual => self.host_text.clone(),
            port => format!("{}:{port}", self.host_text),
        }
    }

    /// What stands behind the method in a request.
    #[must_use]
    pub fn target(&self) -> String {
        match &self.query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path.clone(),
        }
    }

    /// Where it goes, without the query, which may hold what is nobody's business.
    #[must_use]
    pub fn shown(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority(), self.path)
    }
}

/// Other ways to write an address (`127.1`, `0x7f000001`, `2130706433`) are refused: what one
/// reader takes for a name another takes for this machine.
fn host_of(text: &str) -> Result<Host, &'static str> {
    if let Some(v6) = text.strip_prefix('[').and_then(|v6| v6.strip_suffix(']')) {
        let address: Ipv6Addr = v6.parse().map_err(|_| "the host is no IPv6 address")?;
        return Ok(Host::Address(IpAddr::V6(address)));
    }
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Ok(Host::Address(IpAddr::V4(address)));
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if text.is_empty() || !text.bytes().all(plain) {
        return Err("the host is missing or no host name");
    }
    let last = text.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    let hex = last.strip_prefix("0x").is_some_and(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
    if last.is_empty() || hex || last.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("the host is a number and not an address as it is usually written");
    }
    Ok(Host::Name(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(guard: &Guard, address: &str) -> bool {
        guard.check(address.parse().unwrap()).is_ok()
    }

    #[test]
    fn only_public_addresses_are_allowed() {
        let guard = Guard::default();
        for address in [
            "127.0.0.1",
            "127.255.0.9",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "100.127.255.255",
            "169.254.169.254",
            "224.0.0.1",
            "255.255.255.255",
            "198.18.0.1",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:7f00:1::1",
            "2002:a9fe:a9fe::",
            "2001::1",
            "fd00:ec2::254",
            "fc00::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001:db8::1",
        ] {
            assert!(!allowed(&guard, address), "{address}");
        }
        for address in [
            "1.1.1.1",
            "172.32.0.1",
            "100.128.0.1",
            "169.253.0.1",
            "192.167.1.1",
            "2606:4700::1111",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
            "2002:101:101::1",
        ] {
            assert!(allowed(&guard, address), "{address}");
        }
    }

    #[test]
    fn what_the_operator_names_is_allowed_and_nothing_beside_it() {
        let nets = ["127.0.0.0/8", "10.1.0.0/16", "fd00::/8"];
        let guard = Guard::allowing(nets.map(|net| net.parse().unwrap()).to_vec());
        for address in ["127.0.0.1", "10.1.200.3", "fd00:ec2::254", "::ffff:127.0.0.1"] {
            assert!(allowed(&guard, address), "{address}");
        }
        for address in ["10.2.0.1", "169.254.169.254", "::1", "fe80::1", "::ffff:10.2.0.1"] {
            assert!(!allowed(&guard, address), "{address}");
        }
        let everything = Guard::allowing(vec!["0.0.0.0/0".parse().unwrap()]);
        assert!(allowed(&everything, "10.0.0.1"));
        for wrong in ["", "10.0.0.0/33", "::/129", "10.0.0.0/x", "example.org/8"] {
            assert!(wrong.parse::<Net>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_url_is_taken_apart_and_odd_ones_are_refused() {
        let parsed = Endpoint::parse("HTTPS://Hooks.Example.org/in?x=1#f").unwrap();
        assert_eq!(parsed.authority(), "hooks.example.org");
        assert_eq!((parsed.tls, parsed.port, &*parsed.target()), (true, 443, "/in?x=1"));
        assert_eq!(parsed.shown(), "https://hooks.example.org/in");
        let parsed = Endpoint::parse("http://[::1]:8080").unwrap();
        assert_eq!((&*parsed.authority(), &*parsed.target()), ("[::1]:8080", "/"));
        assert_eq!(parsed.host, Host::Address("::1".parse().unwrap()));
        for url in [
            "ftp://a/",
            "javascript:x",
            "http://",
            "http://u:p@a/",
            "http://a:99999/",
            "http://[::g]/",
            "http://127.1/",
            "http://0x7f000001/",
            "http://0177.0.0.1/",
            "http://2130706433/",
            "http://a.0x7f/",
            "http://127.0.0.1./",
            "http://a\\@b/",
            "http://a b/",
            "http://ä/",
        ] {
            assert!(Endpoint::parse(url).is_err(), "{url}");
        }
        let local = Endpoint::parse("http://x.localhost./").unwrap();
        assert!(Guard::default().check_host(&local.host).is_err());
    }
}

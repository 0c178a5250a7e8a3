//! Addresses and names that count as internal: this machine, its network, its cluster, and the cloud's metadata
//! service.
//!
//! The only address that this module reads from the environment is the API server's. The ranges are those of IANA's
//! special-purpose registries (RFC 6890 and successors): every address that is not global is internal.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Azure's host agent: a public address that only the host of the virtual machine answers.
const AZURE_HOST: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

/// The addresses to which a client may connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Any address, for host names from a trusted party.
    Anywhere,
    /// Only external addresses, for host names from an untrusted party.
    Outside,
}

/// Whether `address` is internal. IPv4 addresses that are embedded in IPv6 addresses are checked too.
pub fn is_inside(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => v4_is_inside(address),
        IpAddr::V6(address) => v6_is_inside(address),
    }
}

/// Whether `name` is internal, whatever its address is: names in a cluster or on a machine, and names without a dot.
pub fn is_inside_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.parse::<IpAddr>().is_ok() {
        return false;
    }
    let Some((_, last)) = name.rsplit_once('.') else { return true };
    // No domain ends in a number: this is an address in one of the old spellings, such as `127.1`.
    if last.starts_with(|char: char| char.is_ascii_digit()) {
        return true;
    }
    ["localhost", "local", "internal", "svc", "localdomain", "lan", "home", "corp", "intranet"]
        .iter()
        .any(|inside| last.eq_ignore_ascii_case(inside))
}

fn v4_is_inside(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || a == 0
        // Carrier-grade NAT (RFC 6598), also used for pods.
        || a == 100 && (64..128).contains(&b)
        // IETF protocol assignments, 6to4 relays, benchmarks.
        || a == 192 && b == 0 && c == 0
        || a == 192 && b == 88 && c == 99
        || a == 198 && (18..20).contains(&b)
        // Multicast, reserved, broadcast.
        || a >= 224
        || address == AZURE_HOST
        || api_server() == Some(IpAddr::V4(address))
}

fn v6_is_inside(address: Ipv6Addr) -> bool {
    let pieces = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        v4_is_inside(Ipv4Addr::new(a, b, c, d))
    };
    match pieces {
        // IPv4-mapped (::ffff:0:0/96), translated (::ffff:0:0:0/96), NAT64 with the well-known prefix (RFC 6052), 6to4 (RFC 3056).
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => embedded(high, low),
        // Outside 2000::/3 nothing is global: loopback, unspecified, unique-local, link- and site-local, multicast,
        // local NAT64.
        [first, ..] if first & 0xe000 != 0x2000 => true,
        // IETF protocol assignments with Teredo (2001::/23), documentation.
        [0x2001, second, ..] if second < 0x200 || second == 0xdb8 => true,
        [0x3fff, second, ..] if second < 0x1000 => true,
        _ => api_server() == Some(IpAddr::V6(address)),
    }
}

/// The API server's address. Service addresses of a cluster may be public; this process knows only the API server's.
fn api_server() -> Option<IpAddr> {
    std::env::var("KUBERNETES_SERVICE_HOST").ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for inside in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.8.9.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "168.63.129.16",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.1.2.3",
            "::127.0.0.1",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::a00:1",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "100::1",
            "::ffff:0:127.0.0.1",
            "3fff::1",
            "5f00::1",
        ] {
            assert!(is_inside(inside.parse().unwrap()), "{inside}");
        }
        for outside in [
            "1.1.1.1",
            "100.63.255.255",
            "100.128.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
            "2002:101:101::",
            "2a00:1450::1",
        ] {
            assert!(!is_inside(outside.parse().unwrap()), "{outside}");
        }
    }

    #[test]
    fn names() {
        for inside in [
            "localhost",
            "a.localhost",
            "kubernetes",
            "kubernetes.default.svc",
            "metadata.google.internal",
            "x.ns.svc.cluster.local",
            "printer.LOCAL",
            "auth.",
            "127.1",
            "0x7f.0.0.0x1",
        ] {
            assert!(is_inside_name(inside), "{inside}");
        }
        for outside in ["auth.docker.io", "auth.docker.io.", "1.1.1.1", "::1"] {
            assert!(!is_inside_name(outside), "{outside}");
        }
    }
}

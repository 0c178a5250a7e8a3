//! The CEL functions for IP addresses and networks (Kubernetes documentation, "Kubernetes IP address library" and "CIDR
//! library").
//!
//! Addresses and networks are parsed as strictly as in a real API server: no zones, no leading zeros, no IPv4 inside
//! IPv6.

use std::net::IpAddr;

/// A network: an IP address and the length of its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cidr {
    pub address: IpAddr,
    pub length: u8,
}

/// Why a text is not an IP address or network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("IP Address {0:?} parse error during conversion from string: IPv4-mapped IPv6 address is not allowed")]
    Mapped(String),
    #[error("IP Address {0:?} parse error during conversion from string: IP address with zone value is not allowed")]
    Zone(String),
    #[error("IP Address {0:?} parse error during conversion from string: ParseAddr({0:?}): unable to parse IP")]
    Address(String),
    #[error("network address parse error during conversion from string: netip.ParsePrefix({0:?})")]
    Network(String),
}

pub(super) fn read_ip(text: &str) -> Result<IpAddr, Error> {
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => Err(Error::Mapped(text.to_owned())),
        Ok(address) => Ok(address),
        Err(_) if text.contains('%') => Err(Error::Zone(text.to_owned())),
        Err(_) => Err(Error::Address(text.to_owned())),
    }
}

pub(super) fn read_cidr(text: &str) -> Result<Cidr, Error> {
    let wrong = || Error::Network(text.to_owned());
    let (address, length) = text.rsplit_once('/').ok_or_else(wrong)?;
    let plain = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    let plain = plain && (length == "0" || !length.starts_with('0'));
    let address = read_ip(address).map_err(|_| wrong())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let length = length.parse().ok().filter(|length| plain && *length <= most).ok_or_else(wrong)?;
    Ok(Cidr { address, length })
}

impl Cidr {
    pub(crate) fn masked(self) -> Self {
        let address = match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.length)).unwrap_or(0);
                IpAddr::from((u32::from(address) & mask).to_be_bytes())
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.length)).unwrap_or(0);
                IpAddr::from((u128::from(address) & mask).to_be_bytes())
            }
        };
        Self { address, length: self.length }
    }

    pub(crate) fn contains_ip(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && Self { address, length: self.length }.masked().address == self.masked().address
    }

    pub(crate) fn contains_cidr(self, other: Self) -> bool {
        self.length <= other.length && self.contains_ip(other.address)
    }

    pub(crate) fn shown(self) -> String {
        format!("{}/{}", self.address, self.length)
    }
}

/// The result of the address function `name`, such as `isLoopback`; `None` if there is no such function.
pub(super) fn is(name: &str, address: IpAddr) -> Option<bool> {
    let link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    let local_group = match address {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.octets()[0] == 0xff && address.octets()[1] & 0x0f == 2,
    };
    let everybody = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    Some(match name {
        "isUnspecified" => address.is_unspecified(),
        "isLoopback" => address.is_loopback(),
        "isLinkLocalMulticast" => local_group,
        "isLinkLocalUnicast" => link_local,
        "isGlobalUnicast" => {
            !(everybody || address.is_unspecified() || address.is_loopback() || address.is_multicast() || link_local)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks() {
        for (text, masked) in [
            ("192.168.1.7/16", "192.168.0.0/16"),
            ("10.1.2.3/32", "10.1.2.3/32"),
            ("10.1.2.3/0", "0.0.0.0/0"),
            ("fd00::1/8", "fd00::/8"),
            ("::1/0", "::/0"),
            ("::1/128", "::1/128"),
        ] {
            assert_eq!(read_cidr(text).map(|cidr| cidr.masked().shown()).unwrap(), masked);
        }
        for text in
            ["10.0.0.0", "10.0.0.0/33", "::/129", "10.0.0.0/08", "10.0.0.0/+8", "01.0.0.0/8", "::ffff:1.2.3.4/96", "/8"]
        {
            assert!(read_cidr(text).is_err(), "{text}");
        }
        let cidr = |text: &str| read_cidr(text).unwrap();
        assert!(cidr("10.0.0.0/8").contains_cidr(cidr("10.1.0.0/16")));
        assert!(!cidr("10.1.0.0/16").contains_cidr(cidr("10.0.0.0/8")));
        assert!(!cidr("10.0.0.0/16").contains_cidr(cidr("10.0.0.0/8")));
        assert!(!cidr("10.1.0.0/16").contains_cidr(cidr("10.2.0.0/24")));
        assert!(!cidr("0.0.0.0/0").contains_ip(read_ip("::1").unwrap()));
    }

    #[test]
    fn kinds_of_addresses() {
        let said = |name: &str, text: &str| is(name, read_ip(text).unwrap()).unwrap();
        for (name, yes, no) in [
            ("isUnspecified", ["0.0.0.0", "::"], ["1.1.1.1", "::1"]),
            ("isLoopback", ["127.0.0.1", "::1"], ["10.0.0.1", "fd00::1"]),
            ("isLinkLocalMulticast", ["224.0.0.1", "ff02::1"], ["224.0.1.1", "ff05::1"]),
            ("isLinkLocalUnicast", ["169.254.0.1", "fe80::1"], ["169.253.0.1", "fd00::1"]),
            ("isGlobalUnicast", ["10.0.0.1", "fd00::1"], ["255.255.255.255", "ff00::1"]),
        ] {
            for text in yes {
                assert!(said(name, text), "{name} {text}");
            }
            for text in no {
                assert!(!said(name, text), "{name} {text}");
            }
        }
        for text in ["1.2.3", "1.2.3.04", "fe80::1%eth0", "::ffff:1.2.3.4", ""] {
            assert!(read_ip(text).is_err(), "{text}");
        }
    }
}

//! Parses and prints `host:port` of images, URLs and configurations, without I/O.
//!
//! An invalid port is an error and never becomes another port.

use std::fmt;
use std::net::Ipv6Addr;

/// Longest host name, in bytes (RFC 1035). IP addresses are shorter.
const HOST_BYTES_MAX: usize = 253;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// Host name or IP address in lower case, without brackets.
    pub host: String,
    /// A port from 1 to 65535; `None` if the text has none.
    pub port: Option<u16>,
}

/// Why a text is not `host` or `host:port`. The error leaves out the text, because anybody may have chosen it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AuthorityError {
    /// The host is missing, or has bytes that no host name has.
    #[error("not a host")]
    Host,
    #[error("the port is not a number from 1 to 65535")]
    Port,
}

impl Authority {
    /// Parses `host`, `host:port`, `[v6]` or `[v6]:port`. User names are refused.
    pub fn parse(text: &str) -> Result<Self, AuthorityError> {
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (address, rest) = rest.split_once(']').ok_or(AuthorityError::Host)?;
            let address: Ipv6Addr = address.parse().map_err(|_| AuthorityError::Host)?;
            let port = match rest.strip_prefix(':') {
                None if rest.is_empty() => None,
                None => return Err(AuthorityError::Host),
                Some(port) => Some(port),
            };
            (address.to_string(), port)
        } else {
            let (host, port) = text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
            if !is_name(host) {
                return Err(AuthorityError::Host);
            }
            (host.to_ascii_lowercase(), port)
        };
        Ok(Self { host, port: port.map(self::port).transpose()? })
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(out, "[{}]", self.host)?;
        } else {
            out.write_str(&self.host)?;
        }
        self.port.map_or(Ok(()), |port| write!(out, ":{port}"))
    }
}

/// The three host names of Docker Hub. Tools in Go write the second name; requests go to the last name.
const HUB: [&str; 3] = ["docker.io", "index.docker.io", "registry-1.docker.io"];

/// A registry's canonical name, equal for all spellings: lower case, no default HTTPS port, shortest form of an
/// address. Docker Hub gets the name that Go tools write (decision 060). Everything stored per registry uses this name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OneName(String);

impl OneName {
    /// The canonical name of `host`. A text that is no host name is only turned into lower case.
    pub fn parse(host: &str) -> Self {
        Authority::parse(host).map_or_else(|_| Self(host.to_ascii_lowercase()), |authority| Self::of(&authority))
    }

    /// The canonical name of the registry at `authority`.
    pub fn of(authority: &Authority) -> Self {
        let mut named = authority.clone();
        named.host.make_ascii_lowercase();
        named.port = named.port.filter(|&port| port != 443);
        if named.port.is_none() && HUB.contains(&named.host.as_str()) {
            HUB[1].clone_into(&mut named.host);
        }
        Self(named.to_string())
    }

    /// The canonical name of a registry that speaks HTTP without TLS. The default port of HTTP is left out too.
    pub fn of_plain(authority: &Authority) -> Self {
        let port = authority.port.filter(|&port| port != 80);
        Self::of(&Authority { host: authority.host.clone(), port })
    }

    /// The host as it begins an image reference. A host without dot and port has an upper-case letter; otherwise it
    /// would read as a path at Docker Hub.
    pub fn before_path(&self) -> String {
        let is_plain = !self.0.contains(['.', ':']) && self.0 != "localhost";
        if is_plain { self.0.to_ascii_uppercase() } else { self.0.clone() }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for OneName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

pub fn port(text: &str) -> Result<u16, AuthorityError> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|&port| digits && port != 0).ok_or(AuthorityError::Port)
}

fn is_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    !text.is_empty() && text.len() <= HOST_BYTES_MAX && text.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name() {
        for (spelled, name) in [
            ("Registry.corp:443", "registry.corp"),
            ("registry.corp:5000", "registry.corp:5000"),
            ("Docker.io", "index.docker.io"),
            ("registry-1.docker.io:443", "index.docker.io"),
            ("[0:0::1]:443", "[::1]"),
            ("registry.corp:80", "registry.corp:80"),
            ("No Host", "no host"),
        ] {
            assert_eq!(OneName::parse(spelled).as_str(), name, "{spelled}");
        }
        let plain = Authority { host: "Registry.corp".into(), port: Some(80) };
        assert_eq!(OneName::of_plain(&plain).as_str(), "registry.corp");
    }

    #[test]
    fn spellings() {
        let parsed = |text: &str| Authority::parse(text).map(|authority| (authority.host, authority.port));
        assert_eq!(parsed("Registry.io"), Ok(("registry.io".into(), None)));
        assert_eq!(parsed("a:65535"), Ok(("a".into(), Some(65535))));
        assert_eq!(parsed("[::1]:5000"), Ok(("::1".into(), Some(5000))));
        for port in ["a:", "a:0", "a:65536", "a:99999", "a:+1", "a:1:2", "[::1]:", "a:18446744073709551616"] {
            assert_eq!(parsed(port), Err(AuthorityError::Port), "{port}");
        }
        for host in ["", ":1", "u:p@h", "u@h", "a b", "[::1", "[::1]x", "[x]", "h/p", "h\n", "ü"] {
            assert!(parsed(host).is_err(), "{host}");
        }
        assert!(parsed(&"a".repeat(254)).is_err());
        assert_eq!(Authority::parse("[0:0::1]:1").unwrap().to_string(), "[::1]:1");
    }
}

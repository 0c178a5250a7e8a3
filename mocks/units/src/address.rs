//! Addresses in configurations and flags: their ports, and how they are printed without secrets.
//!
//! This module checks the port of an address, because URL parsers treat an invalid port as absent and use the default.
//! Load for port 99999 would then go to port 443, where another program may listen.

/// Why an address cannot be used. The message continues the words "failed to parse" and contains no password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("`{text}` is no port: write a number from 1 to 65535, or leave `:{text}` out")]
    Port { text: String },
    #[error("it has a user or password before the host: leave out everything up to the `@`")]
    User,
}

/// The port of `host[:port]`; `default` if the text has no port.
pub fn port(authority: &str, default: u16) -> Result<u16, AddressError> {
    if authority.contains('@') {
        return Err(AddressError::User);
    }
    // The colons of an IPv6 address are inside brackets.
    let rest = authority.rsplit_once(']').map_or(authority, |(_, rest)| rest);
    match rest.rsplit_once(':') {
        None | Some((_, "")) => Ok(default),
        Some((_, text)) => match text.parse() {
            Ok(port @ 1..) => Ok(port),
            Ok(_) | Err(_) => Err(AddressError::Port { text: text.to_owned() }),
        },
    }
}

/// The address without secrets: user and password before the host become `***`. Invalid addresses are accepted too,
/// because error messages show them.
pub fn masked(url: &str) -> String {
    let start = url.find("://").map_or(0, |at| at + "://".len());
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    let (authority, last) = (&url[start..end], url.rfind('@'));
    // A password may contain characters that end an authority: the text before them is then no host with a port.
    match last.filter(|_| authority.contains('@') || port(authority, 1).is_err()) {
        Some(at) if at >= start => format!("{}***{}", &url[..start], &url[at..]),
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_one_or_is_refused() {
        for (authority, expected) in
            [("a", 443), ("a:", 443), ("a:1", 1), ("a:65535", 65535), ("[::1]", 443), ("[::1]:8443", 8443)]
        {
            assert_eq!(port(authority, 443), Ok(expected), "{authority}");
        }
        for (authority, text) in [
            ("a:65536", "65536"),
            ("a:99999", "99999"),
            ("a:0", "0"),
            ("[::1]:70000", "70000"),
            ("a:b", "b"),
            ("a:-1", "-1"),
        ] {
            assert_eq!(port(authority, 443), Err(AddressError::Port { text: text.to_owned() }), "{authority}");
        }
        assert_eq!(port("user:pw@a:1", 443), Err(AddressError::User));
    }

    #[test]
    fn users_and_passwords_are_not_shown() {
        for (url, shown) in [
            ("https://a:1/x", "https://a:1/x"),
            ("https://a/x@y", "https://a/x@y"),
            ("https://user:pw@a:1/x", "https://***@a:1/x"),
            ("https://user:p@w@a/x@y", "https://***@y"),
            ("https://user:p/w@a", "https://***@a"),
            ("user:pw@a", "***@a"),
            ("https://token@a", "https://***@a"),
            ("nonsense", "nonsense"),
        ] {
            assert_eq!(masked(url), shown);
        }
    }
}

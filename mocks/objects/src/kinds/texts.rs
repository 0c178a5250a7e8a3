//! The checks of texts in objects: names of ports, variables, keys and headers, addresses and paths.
//!
//! Owns rules for texts that several kinds share. The rules of names and labels are in `mock_cel::formats`.

use std::net::Ipv6Addr;

use super::at::At;
use super::causes::Refuse;
use crate::status::Cause;

/// The errors in the name of a port (RFC 6335, but only lower-case letters).
pub(crate) fn port_name(text: &str) -> Vec<String> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let faults = [
        (text.len() > 15, "must be no more than 15 characters"),
        (
            text.is_empty() || !text.bytes().all(plain),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (!text.bytes().any(|byte| byte.is_ascii_lowercase()), "must contain at least one letter (a-z)"),
        (text.contains("--"), "must not contain consecutive hyphens"),
        (text.starts_with('-') || text.ends_with('-'), "must not begin or end with a hyphen"),
    ];
    reasons(&faults)
}

/// The errors in the name of an environment variable, which may be any printable text without `=`.
pub(crate) fn variable_name(text: &str) -> Vec<String> {
    let printable = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'=';
    reasons(&[
        (text.is_empty(), "environment variable name must be non-empty"),
        (
            !text.bytes().all(printable),
            "a valid environment variable name must consist only of printable ASCII characters other than '='",
        ),
    ])
}

/// The errors in a key of a `ConfigMap` or `Secret`.
pub(crate) fn key(text: &str) -> Vec<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    reasons(&[
        (text.len() > 253, "must be no more than 253 characters"),
        (
            text.is_empty() || !text.bytes().all(plain),
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or \
             'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
        ),
        (text == ".", "must not be '.'"),
        (text == "..", "must not be '..'"),
        (text.starts_with("..") && text != "..", "must not start with '..'"),
    ])
}

pub(crate) fn header_name(text: &str) -> Vec<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    reasons(&[(
        text.is_empty() || !text.bytes().all(plain),
        "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for \
         validation is '[-A-Za-z0-9]+')",
    )])
}

fn reasons(faults: &[(bool, &str)]) -> Vec<String> {
    faults.iter().filter(|(is, _)| *is).map(|(_, why)| (*why).to_owned()).collect()
}

/// Whether a text is an IP address. Leading zeros are allowed, because the real server allows them in old fields.
pub(crate) fn is_address(text: &str) -> bool {
    let number = |part: &str| {
        let digits = part.trim_start_matches('0');
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && (digits.is_empty() || digits.parse::<u8>().is_ok())
    };
    if text.contains(':') {
        return text.parse::<Ipv6Addr>().is_ok();
    }
    text.split('.').count() == 4 && text.split('.').all(number)
}

pub(crate) fn no_backsteps(path: &str, at: At<'_>, causes: &mut Vec<Cause>) {
    if climbs(path) {
        causes.invalid_text(at, path, "must not contain '..'");
    }
}

/// Whether a path has a segment `..`.
pub(crate) fn climbs(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

/// Requires a relative path without `..`.
pub(crate) fn descending(path: &str, at: At<'_>, causes: &mut Vec<Cause>) {
    if path.starts_with('/') {
        causes.invalid_text(at, path, "must be a relative path");
    }
    no_backsteps(path, at, causes);
}

/// Refuses a name that begins with `..`, because kubelets use such names for atomic writes.
pub(crate) fn not_reserved(path: &str, at: At<'_>, causes: &mut Vec<Cause>) {
    descending(path, at, causes);
    if path.starts_with("..") && !path.starts_with("../") {
        causes.invalid_text(at, path, "must not start with '..'");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_pods_are_checked() {
        let fine: Vec<String> = Vec::new();
        assert_eq!(
            [port_name("http-1"), variable_name("a b"), key("a.B_c"), header_name("X-A")],
            [(); 4].map(|()| fine.clone())
        );
        assert_eq!(port_name("80").len(), 1);
        assert_eq!(port_name("").len(), 2);
        assert_eq!(port_name("-a--b-").len(), 2);
        assert_eq!(variable_name("a=b").len(), 1);
        assert_eq!([key("..").len(), key("..a").len(), key("").len(), header_name("a_b").len()], [1; 4]);
        for (text, right) in
            [("1.2.3.4", true), ("01.2.3.004", true), ("1.2.3", false), ("256.1.1.1", false), ("::1", true)]
        {
            assert_eq!(is_address(text), right, "{text}");
        }
    }

    #[test]
    fn paths_stay_below_their_place() {
        let count = |check: fn(&str, At<'_>, &mut Vec<Cause>), path: &str| {
            let mut causes = Vec::new();
            check(path, At::from("p"), &mut causes);
            causes.len()
        };
        assert_eq!([count(descending, "a/b"), count(descending, "/a"), count(descending, "/../a")], [0, 1, 2]);
        assert_eq!([count(not_reserved, "..a"), count(not_reserved, "../a"), count(not_reserved, "a/..b")], [1, 1, 0]);
        assert_eq!([count(no_backsteps, "/a/../b"), count(no_backsteps, "/a..")], [1, 0]);
    }
}

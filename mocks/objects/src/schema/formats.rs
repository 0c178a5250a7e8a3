//! The formats of texts and numbers in schemas: the keyword `format` (Kubernetes documentation, "Custom Resources:
//! validation", the formats that are checked).
//!
//! Owns the names of formats and the checks of texts with a format. The module `rules` declares formats that are
//! separate types in CEL.

use std::net::IpAddr;

use base64::Engine as _;

use mock_cel::formats::is_uuid;
use mock_cel::{is_uri, read_date, read_duration, read_time};

/// A format that the server checks; all other formats are only documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    DateTime,
    Date,
    Duration,
    Byte,
    /// The format `int32` of numbers.
    Int32,
    Ipv4,
    Ipv6,
    Cidr,
    Mac,
    Uri,
    Hostname,
    Email,
    HexColor,
    Uuid,
    Uuid3,
    Uuid4,
    Uuid5,
}

const NAMES: &[(&str, Format)] = &[
    ("date-time", Format::DateTime),
    ("date", Format::Date),
    ("duration", Format::Duration),
    ("byte", Format::Byte),
    ("int32", Format::Int32),
    ("ipv4", Format::Ipv4),
    ("ipv6", Format::Ipv6),
    ("cidr", Format::Cidr),
    ("mac", Format::Mac),
    ("uri", Format::Uri),
    ("hostname", Format::Hostname),
    ("email", Format::Email),
    ("hexcolor", Format::HexColor),
    ("uuid", Format::Uuid),
    ("uuid3", Format::Uuid3),
    ("uuid4", Format::Uuid4),
    ("uuid5", Format::Uuid5),
];

impl Format {
    pub(super) fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
    }

    pub(super) fn name(self) -> &'static str {
        NAMES.iter().find(|(_, format)| *format == self).map_or("", |(name, _)| name)
    }

    pub(super) fn is(self, text: &str) -> bool {
        match self {
            Self::DateTime => read_time(&text.to_ascii_uppercase()).is_some(),
            Self::Date => read_date(text).is_some(),
            Self::Duration => read_duration(text).is_some(),
            // Empty bytes are refused.
            Self::Byte => !text.is_empty() && base64::engine::general_purpose::STANDARD.decode(text).is_ok(),
            Self::Int32 => true,
            // An IPv4 address within IPv6 is both.
            Self::Ipv4 => text.contains('.') && text.parse::<IpAddr>().is_ok(),
            Self::Ipv6 => text.contains(':') && text.parse::<IpAddr>().is_ok(),
            Self::Cidr => is_cidr(text),
            Self::Mac => is_mac(text),
            Self::Uri => is_uri(text),
            Self::Hostname => is_hostname(text),
            Self::Email => is_email(text),
            Self::HexColor => is_color(text),
            Self::Uuid => is_uuid(text, None),
            Self::Uuid3 => is_uuid(text, Some('3')),
            Self::Uuid4 => is_uuid(text, Some('4')),
            Self::Uuid5 => is_uuid(text, Some('5')),
        }
    }
}

fn is_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && is_hex(digits)
}

/// Whether a text is an IP network; the check is less strict than that of CEL.
fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let most = address.parse::<IpAddr>().map(|address| if address.is_ipv4() { 32 } else { 128 });
    let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    digits && length.parse::<u32>().is_ok_and(|length| most.is_ok_and(|most| length <= most))
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a text is a MAC address of 6, 8 or 20 bytes: `00:00:5e:00:53:01`, with dashes, or `0000.5e00.5301`.
fn is_mac(text: &str) -> bool {
    let groups = |by: char, digits: usize| {
        let groups: Vec<&str> = text.split(by).collect();
        let right = groups.iter().all(|group| group.len() == digits && is_hex(group));
        right && matches!(groups.len() * digits / 2, 6 | 8 | 20)
    };
    groups(':', 2) || groups('-', 2) || groups('.', 4)
}

/// Whether a text is a host by the real server's rule: a name with dots, or one label with a dash only as its second
/// character.
fn is_hostname(text: &str) -> bool {
    // Symbols are allowed, but no punctuation.
    let is_member = |c: char| c.is_alphanumeric() || "$+<=>^`|~".contains(c) || (!c.is_ascii() && !c.is_whitespace());
    let labels: Vec<&str> = text.split('.').collect();
    if text.len() > 255 || labels.iter().any(|label| label.is_empty() || label.len() > 63) {
        return false;
    }
    let ends = |label: &str| label.starts_with(is_member) && label.ends_with(is_member);
    match labels[..] {
        [only] => {
            let mut letters = only.chars();
            let first = letters.next().is_some_and(is_member);
            let rest = letters.as_str();
            first && rest.strip_prefix('-').unwrap_or(rest).chars().all(is_member)
        }
        [ref before @ .., top] => {
            before.iter().all(|label| ends(label) && label.chars().all(|c| c == '-' || is_member(c)))
                && top.chars().count() > 1
                && top.chars().all(char::is_alphabetic)
        }
        [] => false,
    }
}

/// Whether a text is an e-mail address: `a@b`, or `Name <a@b>` (RFC 5322).
fn is_email(text: &str) -> bool {
    let text = text.trim();
    let address = text.strip_suffix('>').map_or(Some(text), |named| Some(named.rsplit_once('<')?.1));
    let Some((local, domain)) = address.and_then(|address| address.rsplit_once('@')) else { return false };
    let is_atom = |part: &str| {
        let fits = |c: char| c.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c);
        !part.is_empty() && part.chars().all(fits)
    };
    let quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
    let literal = domain.starts_with('[') && domain.ends_with(']');
    (quoted || local.split('.').all(is_atom)) && (literal || domain.split('.').all(is_atom))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_know_their_texts() {
        let uuid = "00000000-0000-4000-8000-000000000000";
        let (uuid3, plain) = (uuid.replacen("-4", "-3", 1), uuid.replace('-', ""));
        let long = format!("{}.example.com", "a".repeat(64));
        let cases: &[(&str, &[&str], &[&str])] = &[
            ("date-time", &["2024-01-01T00:00:00Z", "2024-01-01t00:00:00.5z"], &["2024-01-01 00:00:00Z", "2024-01-01"]),
            ("date", &["2024-02-29"], &["2024-02-30", "2024-2-9"]),
            ("duration", &["1h30m", "3 days", "22 ns"], &["days", "5"]),
            ("byte", &["aGVsbG8="], &["", "a", "a b="]),
            ("ipv4", &["10.0.0.1", "::ffff:1.2.3.4"], &["10.0.0", "::1", "10.0.0.256"]),
            ("ipv6", &["::1", "::ffff:1.2.3.4"], &["10.0.0.1", ":::"]),
            ("cidr", &["10.0.0.1/8", "fd00::/8", "10.0.0.0/08"], &["10.0.0.1", "10.0.0.0/33", "10.0.0.0/", "::/+8"]),
            (
                "mac",
                &["00:00:5e:00:53:01", "02-00-5e-10-00-00-00-01", "0000.5E00.5301"],
                &["00:00:5e:00:53", "00:00:5e:00-53:01", "g0:00:5e:00:53:01", ""],
            ),
            ("uri", &["https://a.b/c?d=e", "/path", "urn:x"], &["a.b/c", "", "http://a b/"]),
            (
                "hostname",
                &["localhost", "a-b", "example.com", "my-host.example.com", "1.example.com"],
                &["", "my-host", "a_b.com", "a..com", "-a.com", "a-.com", "a.c", "a.1com", "a.com.", &long],
            ),
            (
                "email",
                &["a@b", "A <a.b+c@example.com>", "\"x y\"@b"],
                &["a", "@b", "a@", "a b@c", "a..b@c", "a@b.", "a@b>"],
            ),
            ("hexcolor", &["#fff", "00FF00"], &["#ffff", "#ggg", ""]),
            ("uuid", &[uuid, &uuid3, &plain], &["", "00000000-0000-4000-8000-00000000000g", &plain[1..]]),
            ("uuid4", &[uuid, &plain], &[&uuid3]),
            ("uuid3", &[&uuid3], &[uuid]),
            ("int32", &["anything"], &[]),
        ];
        for (name, right, wrong) in cases {
            let format = Format::named(name).unwrap();
            assert_eq!(format.name(), *name);
            for text in *right {
                assert!(format.is(text), "{name} {text}");
            }
            for text in *wrong {
                assert!(!format.is(text), "{name} {text}");
            }
        }
        assert_eq!(Format::named("password"), None);
    }
}

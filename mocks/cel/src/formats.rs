//! The named formats of strings in CEL (Kubernetes documentation, "Kubernetes format library").
//!
//! Owns the names of the formats and the messages for strings that do not match. The rules of these formats also apply
//! to names of Kubernetes objects.

use base64::Engine as _;

use super::{time, url};

/// A named format; the text is its name in CEL expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Format(&'static str);

const NAMES: &[&str] = &[
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
];

/// The message for a text that is no DNS label.
pub const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
                     end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
                     '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
/// The message for a text that is no DNS subdomain.
pub const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
                         start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
                         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
                          character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
                          validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
/// The message for a qualified name whose name part is invalid.
pub const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                         alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                         '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
/// The message for a text that is no label value.
pub const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start \
                     and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
                     validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

impl Format {
    pub(crate) fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|known| **known == name).map(|name| Self(name))
    }

    /// The errors in a text that must have this format; empty if it matches.
    pub(crate) fn check(self, text: &str) -> Vec<String> {
        let said = |right: bool, why: &str| if right { Vec::new() } else { vec![why.to_owned()] };
        match self.0 {
            "dns1123Label" => label(text),
            "dns1123LabelPrefix" => label(&masked(text)),
            "dns1123Subdomain" => subdomain(text),
            "dns1123SubdomainPrefix" => subdomain(&masked(text)),
            "dns1035Label" => label_1035(text),
            "dns1035LabelPrefix" => label_1035(&masked(text)),
            "qualifiedName" => qualified_name(text),
            "labelValue" => label_value(text),
            "uri" => url::Url::read(text).err().map(|why| why.to_string()).into_iter().collect(),
            "uuid" => said(is_uuid(text, None), "does not match the UUID format"),
            "byte" => said(base64::engine::general_purpose::STANDARD.decode(text).is_ok(), "invalid base64"),
            "date" => said(time::read_date(text).is_some(), "invalid date"),
            _ => said(time::read(text).is_some(), "invalid datetime"),
        }
    }
}

/// Replaces a dash at the end of the text by a letter. A name prefix may end with a dash, because a generated name
/// continues after it.
fn masked(text: &str) -> String {
    text.strip_suffix('-')
        .filter(|start| !start.is_empty())
        .map_or_else(|| text.to_owned(), |start| format!("{start}a"))
}

fn bounded(text: &str, most: usize) -> Vec<String> {
    if text.len() <= most { Vec::new() } else { vec![format!("must be no more than {most} characters")] }
}

/// Whether a text consists of lower-case letters, digits and dashes, with no dash at either end; the length may be any.
pub fn is_label(text: &str) -> bool {
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(plain)
        && bytes.last().is_some_and(plain)
        && bytes.iter().all(|byte| plain(byte) || *byte == b'-')
}

/// The errors in a text that must be a DNS label, as messages.
pub fn label(text: &str) -> Vec<String> {
    let mut wrong = bounded(text, 63);
    if !is_label(text) {
        wrong.push(LABEL.to_owned());
    }
    wrong
}

pub fn label_value(text: &str) -> Vec<String> {
    let mut wrong = bounded(text, 63);
    if !text.is_empty() && !is_name(text) {
        wrong.push(VALUE.to_owned());
    }
    wrong
}

fn label_1035(text: &str) -> Vec<String> {
    let mut wrong = bounded(text, 63);
    if !is_label(text) || text.starts_with(|first: char| first.is_ascii_digit()) {
        wrong.push(LABEL_1035.to_owned());
    }
    wrong
}

/// The errors in a text that must be a DNS subdomain, as messages.
pub fn subdomain(text: &str) -> Vec<String> {
    let mut wrong = bounded(text, 253);
    if !text.split('.').all(is_label) {
        wrong.push(SUBDOMAIN.to_owned());
    }
    wrong
}

/// Whether a text of any length consists of letters, digits and `-_.`, and begins and ends with a letter or digit.
pub fn is_name(text: &str) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

/// The errors in a text that must be a name with an optional domain before it, such as the key of a label.
pub fn qualified_name(text: &str) -> Vec<String> {
    let parts: Vec<&str> = text.splitn(3, '/').collect();
    let (mut wrong, name) = match parts[..] {
        [name] => (Vec::new(), name),
        ["", name] => (vec!["prefix part must be non-empty".to_owned()], name),
        [prefix, name] => (subdomain(prefix).into_iter().map(|why| format!("prefix part {why}")).collect(), name),
        _ => {
            let why = "a qualified name must consist of alphanumeric characters, '-', '_' or '.', with an optional DNS subdomain \
                       prefix and '/' (e.g. 'example.com/MyName')";
            return vec![why.to_owned()];
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else {
        wrong.extend(bounded(name, 63).into_iter().map(|why| format!("name part {why}")));
    }
    if !is_name(name) {
        wrong.push(NAME_PART.to_owned());
    }
    wrong
}

/// Whether a text is a UUID with all, some or none of its dashes. If `version` is given, the UUID must have this
/// version and, from version 4 on, the variant of RFC 9562.
pub fn is_uuid(text: &str, version: Option<char>) -> bool {
    let mut rest = text;
    let mut groups = Vec::new();
    for length in [8, 4, 4, 4, 12] {
        if !groups.is_empty() {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((group, after)) = rest.split_at_checked(length) else { return false };
        groups.push(group);
        rest = after;
    }
    let is_variant = |group: &str| group.starts_with(['8', '9', 'a', 'b', 'A', 'B']);
    rest.is_empty()
        && groups.iter().all(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit()))
        && version.is_none_or(|version| groups[2].starts_with(version) && (version == '3' || is_variant(groups[3])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_know_their_texts() {
        for (name, right, wrong) in [
            ("dns1123Label", "a-1", "a.b"),
            ("dns1123LabelPrefix", "a-", "-"),
            ("dns1123Subdomain", "a.1b", "a..b"),
            ("dns1123SubdomainPrefix", "a.b-", "a."),
            ("dns1035Label", "a1", "1a"),
            ("dns1035LabelPrefix", "a-", "1-"),
            ("qualifiedName", "example.com/My_name", "Example.com/x"),
            ("qualifiedName", "x", "a/b/c"),
            ("qualifiedName", "a/b", "/b"),
            ("labelValue", "", "-a"),
            ("uri", "https://a/b", "a/b"),
            ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567-e89b-12d3-a456-42661417400g"),
            ("byte", "aGVsbG8=", "a"),
            ("date", "2021-01-01", "2021-13-01"),
            ("datetime", "2021-01-01T00:00:00Z", "noon"),
        ] {
            let format = Format::named(name).unwrap();
            assert_eq!(format.check(right), Vec::<String>::new(), "{name} {right}");
            assert_eq!(format.check(wrong).len(), 1, "{name} {wrong}");
        }
        let long = "a".repeat(64);
        assert_eq!(Format::named("dns1123Label").unwrap().check(&long), ["must be no more than 63 characters"]);
        assert_eq!(Format::named("labelValue").unwrap().check(&long), ["must be no more than 63 characters"]);
        assert_eq!(Format::named("qualifiedName").unwrap().check("a/").len(), 2);
        assert_eq!(Format::named("DNS1123Label"), None);
    }
}

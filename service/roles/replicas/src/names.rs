//! Checks names of Kubernetes objects.

/// Longest DNS label, in bytes (RFC 1123).
const LABEL_BYTES_MAX: usize = 63;
/// Longest DNS subdomain, in bytes (RFC 1123).
const SUBDOMAIN_BYTES_MAX: usize = 253;

/// Whether a text has only lower-case letters, digits and dashes, with a letter or digit at both ends.
pub fn is_label(text: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    bytes.len() <= LABEL_BYTES_MAX
        && ends.iter().all(|end| end.is_some_and(|byte| alphanumeric(*byte)))
        && bytes.iter().all(|byte| alphanumeric(*byte) || *byte == b'-')
}

/// Whether a text consists of DNS labels between dots. A label may be as long as the whole text (Kubernetes'
/// `IsDNS1123Subdomain`).
pub fn is_subdomain(text: &str) -> bool {
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_part = |part: &str| {
        let bytes = part.as_bytes();
        bytes.first().is_some_and(alphanumeric)
            && bytes.last().is_some_and(alphanumeric)
            && bytes.iter().all(|byte| alphanumeric(byte) || *byte == b'-')
    };
    text.len() <= SUBDOMAIN_BYTES_MAX && text.split('.').all(is_part)
}

/// Whether namespace and name are valid. The names in a cursor are checked like the names in a path.
pub fn are_names(namespace: &str, name: &str) -> bool {
    is_label(namespace) && is_subdomain(name)
}

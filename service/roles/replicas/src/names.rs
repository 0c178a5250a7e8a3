//! The validity of Kubernetes' names.

/// Longest label (RFC 1123).
const LABEL_BYTES_MAX: usize = 63;
/// Longest subdomain.
const SUBDOMAIN_BYTES_MAX: usize = 253;

/// Lower-case letters, digits and dashes, beginning and ending with a letter or digit.
pub fn is_label(text: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    bytes.len() <= LABEL_BYTES_MAX
        && ends.iter().all(|end| end.is_some_and(|byte| alphanumeric(*byte)))
        && bytes.iter().all(|byte| alphanumeric(*byte) || *byte == b'-')
}

/// Labels between dots; each may be as long as the whole (Kubernetes' `IsDNS1123Subdomain`).
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

/// Whether both are valid; the content of a cursor is checked like a path.
pub fn are_names(namespace: &str, name: &str) -> bool {
    is_label(namespace) && is_subdomain(name)
}

//! The default pull policy of an image.
//!
//! To find the pull policy, an image name is parsed; an invalid name counts as a name without a tag.

/// `Always` for an image with the tag `latest`, which can change, else `IfNotPresent`.
pub(super) fn pull_policy(image: &str) -> &'static str {
    if tag(image) == Some("latest") { "Always" } else { "IfNotPresent" }
}

/// The tag of an image name; `latest` if the name has neither a tag nor a digest; `None` if the name is invalid.
fn tag(image: &str) -> Option<&str> {
    let (name, digest) = image.split_once('@').map_or((image, None), |(name, digest)| (name, Some(digest)));
    if digest.is_some_and(|digest| !is_digest(digest)) {
        return None;
    }
    let (name, tag) = match name.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (name, None),
    };
    let is_whole_digest =
        image.len() == 64 && image.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    if is_whole_digest || !is_repository(name) || tag.is_some_and(|tag| !is_tag(tag)) {
        return None;
    }
    tag.or(if digest.is_none() { Some("latest") } else { None })
}

fn is_tag(tag: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let bytes = tag.as_bytes();
    bytes.len() <= 128
        && bytes.first().is_some_and(|first| word(*first))
        && bytes.iter().all(|byte| word(*byte) || b".-".contains(byte))
}

fn is_digest(digest: &str) -> bool {
    let Some((algorithm, hex)) = digest.split_once(':') else { return false };
    let part = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphabetic())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let of_length = match algorithm {
        "sha256" => hex.len() == 64,
        "sha384" => hex.len() == 96,
        "sha512" => hex.len() == 128,
        _ => false,
    };
    algorithm.split(['-', '_', '+', '.']).all(part)
        && of_length
        && hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Whether a text is a repository such as `registry:5000/path/name`; only the first segment may be a host.
fn is_repository(name: &str) -> bool {
    let mut parts: Vec<&str> = name.split('/').collect();
    let first = parts[0];
    let is_host = first.contains(['.', ':']) || first == "localhost" || first.to_lowercase() != first;
    if parts.len() > 1 && is_host {
        parts.remove(0);
        let (host, port) = first.split_once(':').map_or((first, None), |(host, port)| (host, Some(port)));
        let label = |label: &str| {
            let bytes = label.as_bytes();
            bytes.first().is_some_and(u8::is_ascii_alphanumeric)
                && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
                && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
        };
        let port_fits = port.is_none_or(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()));
        if !host.split('.').all(label) || !port_fits {
            return false;
        }
    }
    name.len() <= 255 && parts.into_iter().all(is_path)
}

/// Whether a text has only lower-case letters and digits, separated by one dot, one or two underscores, or any number
/// of dashes.
fn is_path(part: &str) -> bool {
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = part.as_bytes();
    let between = |run: &[u8]| match run.first() {
        None => true,
        Some(b'-') => run.iter().all(|byte| *byte == b'-'),
        Some(b'.') => run == b".",
        Some(b'_') => run == b"_" || run == b"__",
        Some(_) => false,
    };
    bytes.first().is_some_and(plain) && bytes.last().is_some_and(plain) && bytes.split(plain).all(between)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_change_is_pulled_always() {
        let digest = format!("sha256:{}", "a".repeat(64));
        for (image, policy) in [
            ("nginx", "Always"),
            ("nginx:latest", "Always"),
            ("nginx:1.2", "IfNotPresent"),
            ("registry:5000/a/b", "Always"),
            ("registry:5000/a/b:2", "IfNotPresent"),
            ("Registry/a", "Always"),
            ("a/Registry", "IfNotPresent"),
            ("Nginx", "IfNotPresent"),
            ("", "IfNotPresent"),
            (" nginx", "IfNotPresent"),
            ("a__b/c.d-e--f", "Always"),
            ("a___b", "IfNotPresent"),
            (&format!("nginx@{digest}"), "IfNotPresent"),
            (&format!("nginx:latest@{digest}"), "Always"),
            ("nginx:latest@sha256:1", "IfNotPresent"),
        ] {
            assert_eq!(pull_policy(image), policy, "{image}");
        }
    }
}

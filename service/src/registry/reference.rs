//! Image references as people write them: `nginx`, `nginx:1.25`, `host:5000/team/app:v1`.
//!
//! Pure. The grammar is the one of the distribution project; what has no host belongs to Docker Hub.

/// Longest reference accepted: 255 for the name as the distribution project limits it, 128 for a tag, some for a host.
const REFERENCE_BYTES_MAX: usize = 512;
/// The host that images without one mean, and the host that serves it.
const DEFAULT_HOST: &str = "docker.io";
/// Longest tag (OCI distribution specification).
const TAG_BYTES_MAX: usize = 128;

/// A parsed reference without digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Host as configured, for example `docker.io` or `127.0.0.1:5000`.
    pub host: String,
    /// Repository path, for example `library/nginx`.
    pub repository: String,
    /// Tag; `latest` when none is written.
    pub tag: String,
}

/// Why a text is not a reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// Longer than any reference may be.
    #[error("an image reference has at most {REFERENCE_BYTES_MAX} bytes")]
    TooLong,
    /// The repository breaks the grammar.
    #[error("`{0}` is not a repository name: lower-case letters, digits and single separators")]
    Repository(String),
    /// The tag breaks the grammar.
    #[error("`{0}` is not a tag")]
    Tag(String),
    /// The host cannot be connected to.
    #[error("`{0}` is not a registry host")]
    Host(String),
}

impl Reference {
    /// Parses a reference that has no digest.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        if text.len() > REFERENCE_BYTES_MAX {
            return Err(ReferenceError::TooLong);
        }
        let (host, rest) = match text.split_once('/') {
            Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => (first, rest),
            _ => (DEFAULT_HOST, text),
        };
        let (name, tag) = match rest.rsplit_once(':') {
            Some((name, tag)) => (name, tag),
            None => (rest, "latest"),
        };
        let host = if host == "index.docker.io" { DEFAULT_HOST } else { host };
        if host.parse::<http::uri::Authority>().is_err() || host.contains('@') {
            return Err(ReferenceError::Host(host.to_owned()));
        }
        if !name.split('/').all(is_component) {
            return Err(ReferenceError::Repository(name.to_owned()));
        }
        if !is_tag(tag) {
            return Err(ReferenceError::Tag(tag.to_owned()));
        }
        let repository =
            if host == DEFAULT_HOST && !name.contains('/') { format!("library/{name}") } else { name.to_owned() };
        Ok(Self { host: host.to_owned(), repository, tag: tag.to_owned() })
    }

    /// One text for all spellings of the same image.
    pub fn canonical(&self) -> String {
        format!("{}/{}:{}", self.host, self.repository, self.tag)
    }
}

/// Alphanumeric runs joined by one `.`, one or two `_`, or any number of `-`.
fn is_component(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    if !bytes.first().is_some_and(|&byte| plain(byte)) || !bytes.last().is_some_and(|&byte| plain(byte)) {
        return false;
    }
    let mut separators = bytes.split(|&byte| plain(byte)).filter(|run| !run.is_empty());
    separators.all(|run| matches!(run, b"." | b"_" | b"__") || run.iter().all(|&byte| byte == b'-'))
}

fn is_tag(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut bytes = text.bytes();
    text.len() <= TAG_BYTES_MAX
        && bytes.next().is_some_and(word)
        && bytes.all(|byte| word(byte) || byte == b'.' || byte == b'-')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spellings() {
        for (text, expected) in [
            ("nginx", "docker.io/library/nginx:latest"),
            ("nginx:1.25", "docker.io/library/nginx:1.25"),
            ("team/app", "docker.io/team/app:latest"),
            ("index.docker.io/library/nginx", "docker.io/library/nginx:latest"),
            ("localhost/app:v1", "localhost/app:v1"),
            ("127.0.0.1:5000/a/b-c/d__e:V1.0-x", "127.0.0.1:5000/a/b-c/d__e:V1.0-x"),
            ("127.0.0.1:5000/app", "127.0.0.1:5000/app:latest"),
            ("[::1]:5000/app", "[::1]:5000/app:latest"),
        ] {
            assert_eq!(Reference::parse(text).unwrap().canonical(), expected, "{text}");
        }
        for text in ["", "Nginx", "a//b", "a/../b", "nginx:", "nginx:-x", "a__._b", "host.io/", "/a", "a b", "x:y:z"] {
            assert!(Reference::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        /// No text panics, and what is accepted is accepted again in its canonical form and means the same.
        #[test]
        fn canonical_is_stable(text in "[a-z0-9./:_@A-Z-]{0,40}") {
            if let Ok(reference) = Reference::parse(&text) {
                prop_assert_eq!(Reference::parse(&reference.canonical()), Ok(reference));
            }
        }
    }
}

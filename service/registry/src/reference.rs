//! Image references as users write them: `nginx`, `nginx:1.25`, `host:5000/team/app:v1@sha256:…`.
//!
//! The grammar is that of the distribution project, which container runtimes use too. A name without host belongs to
//! Docker Hub. An `@` pins an image only if a valid digest follows.

use std::fmt;

use service_core::authority::OneName;

/// Longest image name with host, in bytes (distribution project).
const NAME_BYTES_MAX: usize = 255;
/// Longest tag, in bytes (OCI distribution specification).
const TAG_BYTES_MAX: usize = 128;
/// Longest reference, in bytes: name, tag, `sha512:` with its digits, and two separators.
const REFERENCE_BYTES_MAX: usize = NAME_BYTES_MAX + TAG_BYTES_MAX + 7 + 128 + 2;
/// The host of references without a host.
const DEFAULT_HOST: &str = "docker.io";
/// The former name of Docker Hub's host, which Go tools still write.
const LEGACY_DEFAULT_HOST: &str = "index.docker.io";
/// The prefix of full names at Docker Hub.
const HUB: &str = "index.docker.io/";
const OFFICIAL: &str = "library/";
/// Maximum number of bytes of an invalid component of a reference in a message.
const SHOWN_BYTES_MAX: usize = 128;
/// Digest algorithms that the OCI image specification registers and runtimes support, with their number of hex digits.
const ALGORITHMS: [(&str, usize); 2] = [("sha256", 64), ("sha512", 128)];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The host with its port, for example `docker.io` or `127.0.0.1:5000`.
    pub host: String,
    /// The repository, for example `library/nginx`.
    pub repository: String,
    /// The tag; `None` if the reference has no tag.
    pub tag: Option<String>,
    /// The digest with its algorithm; `None` if the reference has no digest.
    pub digest: Option<String>,
}

/// A reference by tag, whose digest a registry can look up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    pub host: String,
    pub repository: String,
    /// The tag; `latest` if the reference has no tag.
    pub tag: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    #[error("an image reference has at most {REFERENCE_BYTES_MAX} bytes")]
    TooLong,
    #[error("host and repository have together at most {NAME_BYTES_MAX} bytes")]
    NameTooLong,
    #[error("`{0}` is not a repository name: lower-case letters, digits and single separators")]
    Repository(String),
    #[error("`{0}` is not a tag: letters, digits, `_`, `.` and `-`, at most 128")]
    Tag(String),
    #[error("`{0}` is not a registry host: write a name or address, and a port from 1 to 65535 if it needs one")]
    Host(String),
    #[error("`{0}` is not a digest: write sha256: and 64, or sha512: and 128 lower-case hex digits")]
    Digest(String),
    #[error("the reference has a digest already")]
    Pinned,
}

impl Image {
    /// Parses a reference with or without a digest.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        if text.len() > REFERENCE_BYTES_MAX {
            return Err(ReferenceError::TooLong);
        }
        let (rest, digest) = match text.split_once('@') {
            Some((_, digest)) if !is_digest(digest) => return Err(ReferenceError::Digest(shown(digest))),
            Some((rest, digest)) => (rest, Some(digest.to_owned())),
            None => (text, None),
        };
        let (host, rest) = match rest.split_once('/') {
            Some((first, rest)) if names_a_host(first) => (first, rest),
            _ => (DEFAULT_HOST, rest),
        };
        let (name, tag) = match rest.rsplit_once(':') {
            Some((name, tag)) => (name, Some(tag)),
            None => (rest, None),
        };
        let host = if host == LEGACY_DEFAULT_HOST { DEFAULT_HOST } else { host };
        if !is_host(host) {
            return Err(ReferenceError::Host(shown(host)));
        }
        // 64 hex digits alone are the id of a local image for every runtime, never a name at a registry.
        let is_id = host == DEFAULT_HOST && name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_id || !name.split('/').all(is_component) {
            return Err(ReferenceError::Repository(shown(name)));
        }
        if let Some(tag) = tag.filter(|tag| !is_tag(tag)) {
            return Err(ReferenceError::Tag(shown(tag)));
        }
        let repository =
            if host == DEFAULT_HOST && !name.contains('/') { format!("library/{name}") } else { name.to_owned() };
        if host.len() + 1 + repository.len() > NAME_BYTES_MAX {
            return Err(ReferenceError::NameTooLong);
        }
        Ok(Self { host: host.to_owned(), repository, tag: tag.map(str::to_owned), digest })
    }

    /// The canonical name of the image, equal for all spellings. The host is the registry's canonical name; Docker Hub
    /// gets the name that Go tools write. Patterns of policies are matched against the full name.
    pub fn full_name(&self) -> String {
        let mut name = OneName::parse(&self.host).before_path();
        name.push('/');
        // The host may have been written by another of its names: an image with one part belongs to Docker Hub's own.
        if name == HUB && !self.repository.contains('/') {
            name.push_str(OFFICIAL);
        }
        name.push_str(&self.repository);
        let tag = self.tag.as_deref().or(if self.digest.is_none() { Some("latest") } else { None });
        for (mark, part) in [(':', tag), ('@', self.digest.as_deref())] {
            if let Some(part) = part {
                name.push(mark);
                name.push_str(part);
            }
        }
        name
    }

    /// The reference for a lookup; an error if the image has a digest, which needs no lookup.
    pub fn into_reference(self) -> Result<Reference, ReferenceError> {
        if self.digest.is_some() {
            return Err(ReferenceError::Pinned);
        }
        let tag = self.tag.unwrap_or_else(|| "latest".to_owned());
        Ok(Reference { host: self.host, repository: self.repository, tag })
    }
}

impl Reference {
    /// Parses a reference that has no digest.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        Image::parse(text)?.into_reference()
    }

    /// The reference as text for a lookup. The host keeps its spelling, because the request is sent to it.
    pub fn as_asked(&self) -> String {
        format!("{}/{}:{}", self.host, self.repository, self.tag)
    }

    pub fn full_name(&self) -> FullName {
        let Self { host, repository, tag } = self.clone();
        FullName(Image { host, repository, tag: Some(tag), digest: None }.full_name())
    }
}

/// An image's full name ([`Image::full_name`]), equal for all spellings of the image. Everything that is stored per
/// image uses [`FullName`] as key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FullName(String);

impl fmt::Display for FullName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// The beginning of `text` for a message, because an invalid component may be very long.
fn shown(text: &str) -> String {
    let end = (0..=SHOWN_BYTES_MAX.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    if end == text.len() { text.to_owned() } else { format!("{}…", &text[..end]) }
}

/// Whether the component before the first `/` is a host, and not the beginning of a path at Docker Hub.
fn names_a_host(first: &str) -> bool {
    first == "localhost" || first.contains(['.', ':']) || first.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// Whether a text is a host name or address with an optional port, without other parts of a URL.
fn is_host(text: &str) -> bool {
    let (name, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, rest)) => {
            if address.parse::<std::net::Ipv6Addr>().is_err() {
                return false;
            }
            match rest.strip_prefix(':') {
                None => return rest.is_empty(),
                Some(port) => ("localhost", Some(port)),
            }
        }
        None => match text.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (text, None),
        },
    };
    let label = |label: &str| {
        let word = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let bytes = label.as_bytes();
        word(bytes.first()) && word(bytes.last()) && bytes.iter().all(|byte| word(Some(byte)) || *byte == b'-')
    };
    name.split('.').all(label) && port.is_none_or(is_port)
}

/// Whether a text has only digits; the number parser alone would accept a sign.
fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok_and(|port| port != 0)
}

/// Whether a path component consists of letters and digits in groups that are joined by one `.`, one or two `_`, or any
/// number of `-`.
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

fn is_digest(text: &str) -> bool {
    let Some((algorithm, digits)) = text.split_once(':') else { return false };
    let known = ALGORITHMS.iter().find(|(name, _)| *name == algorithm);
    let lower_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    known.is_some_and(|(_, length)| digits.len() == *length) && digits.bytes().all(lower_hex)
}

#[cfg(test)]
mod tests;

//! Credentials from docker configurations, by registry and repository.
//!
//! A key matches by the kubelet's rules (`URLsMatch` and `Add` in kubernetes/pkg/credentialprovider/keyring.go): the
//! scheme is ignored, each component of the host name is a glob, the port is equal, the path is a prefix. The kubelet
//! sorts keys in reverse order of their text. In this module, longer paths come first, then hosts without globs, then
//! longer hosts; for keys of which one is a prefix of the other, this order equals the kubelet's. Credential helpers
//! are not run.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv6Addr;
use std::sync::Arc;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::STANDARD as BASE64;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use service_core::authority::{self, Authority};

/// Base64 with or without padding: Docker writes padding, some tools write none, and the kubelet accepts either form.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
/// Largest docker configuration, in bytes; usual configurations have some kilobytes.
pub const TEXT_BYTES_MAX: usize = 256 << 10;
/// Maximum number of entries of one docker configuration or Secret; a cluster has fewer registries.
const ENTRIES_MAX: usize = 256;
/// Longest user name, password or token, in bytes; an ECR password has some 2,400.
const SECRET_BYTES_MAX: usize = 16 << 10;
/// The user name in `docker login` that marks the password as an identity token.
const TOKEN_USER: &str = "<token>";

/// A user name, its password or token, and the name of the source of both.
#[derive(PartialEq, Eq)]
pub struct Credential {
    pub user: String,
    /// The password or token, which is never shown.
    pub proof: Proof,
    /// The source's name for people, such as `pull secret team/regcred`.
    pub source: Arc<str>,
}

#[derive(PartialEq, Eq)]
pub enum Proof {
    /// A password for the registry or its token service.
    Password(String),
    /// A refresh token (OAuth 2.0), which is sent only to the token service.
    IdentityToken(String),
}

impl Credential {
    /// The value of a Basic `Authorization` header; `None` for a token.
    pub fn basic(&self) -> Option<String> {
        match &self.proof {
            Proof::Password(password) => Some(format!("Basic {}", BASE64.encode(format!("{}:{password}", self.user)))),
            Proof::IdentityToken(_) => None,
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Credential({})", self.source)
    }
}

/// Credentials, each with a pattern of registries and repositories.
#[derive(Debug, Clone, Default)]
pub struct Keyring {
    /// Patterns with their credentials, the most specific pattern first.
    keys: Vec<(Pattern, Arc<Credential>)>,
}

/// Why a text contains no credentials. The error does not show the parsed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyringError {
    #[error("not a docker configuration")]
    Shape,
    #[error("a docker configuration of more than {TEXT_BYTES_MAX} bytes")]
    TooLong,
    #[error("more than {ENTRIES_MAX} registries in one docker configuration")]
    TooMany,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern {
    host: Vec<String>,
    port: Option<u16>,
    path: String,
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    auths: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    auth: Option<String>,
    #[serde(default)]
    username: Option<String>,
    #[serde(default)]
    password: Option<String>,
    #[serde(default)]
    identitytoken: Option<String>,
}

impl Keyring {
    /// Parses docker's `config.json`, which is also the format of Secrets of type `kubernetes.io/dockerconfigjson`.
    pub fn docker_config(text: &[u8], source: &Arc<str>) -> Result<Self, KeyringError> {
        let file: File = read(text)?;
        Self::of(file.auths, source)
    }

    /// Parses the older format without the key `auths`, which is also the format of Secrets of type
    /// `kubernetes.io/dockercfg`.
    pub fn dockercfg(text: &[u8], source: &Arc<str>) -> Result<Self, KeyringError> {
        Self::of(read(text)?, source)
    }

    fn of(entries: BTreeMap<String, Entry>, source: &Arc<str>) -> Result<Self, KeyringError> {
        if entries.len() > ENTRIES_MAX {
            return Err(KeyringError::TooMany);
        }
        let key = |(key, entry): (String, Entry)| {
            let (user, proof) = entry.login()?;
            Some((Pattern::parse(&key)?, Arc::new(Credential { user, proof, source: Arc::clone(source) })))
        };
        Ok(Self { keys: entries.into_iter().filter_map(key).collect() }.sorted())
    }

    /// The keys in docker's spelling with their credentials, the most specific key first.
    pub fn keys(&self) -> impl Iterator<Item = (String, &Credential)> {
        self.keys.iter().map(|(pattern, credential)| (pattern.to_string(), &**credential))
    }

    /// A keyring of keys in docker's spelling; invalid keys are left out.
    pub fn of_keys(
        keys: impl IntoIterator<Item = (String, String, Proof)>,
        source: &Arc<str>,
    ) -> Result<Self, KeyringError> {
        let key = |(key, user, proof): (String, String, Proof)| {
            Some((Pattern::parse(&key)?, Arc::new(Credential { user, proof, source: Arc::clone(source) })))
        };
        let keys: Vec<_> = keys.into_iter().filter_map(key).collect();
        if keys.len() > ENTRIES_MAX { Err(KeyringError::TooMany) } else { Ok(Self { keys }.sorted()) }
    }

    /// Joins keyrings into one keyring. Of equally specific patterns, the pattern of the earlier keyring comes first.
    pub fn united<'r>(rings: impl IntoIterator<Item = &'r Self>) -> Self {
        Self { keys: rings.into_iter().flat_map(|ring| ring.keys.iter().cloned()).collect() }.sorted()
    }

    fn sorted(mut self) -> Self {
        self.keys.sort_by_key(|(pattern, _)| pattern.rank());
        self
    }

    /// The credentials for `repository` at `host`, the most specific credential first.
    pub fn fitting(&self, host: &Authority, repository: &str) -> impl Iterator<Item = &Arc<Credential>> {
        let fits = move |(pattern, _): &&(Pattern, _)| pattern.fits(host, repository);
        self.keys.iter().filter(fits).map(|(_, credential)| credential)
    }

    /// The credentials of this keyring that match any of `places`, which are hosts with a repository each.
    #[must_use]
    pub fn narrowed(&self, places: &[(Authority, String)]) -> Self {
        let fits = |pattern: &Pattern| places.iter().any(|(host, repository)| pattern.fits(host, repository));
        Self { keys: self.keys.iter().filter(|(pattern, _)| fits(pattern)).cloned().collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The sources of the credentials, without repetition.
    pub fn sources(&self) -> Vec<&Arc<str>> {
        let mut sources = Vec::new();
        for (_, credential) in &self.keys {
            if !sources.contains(&&credential.source) {
                sources.push(&credential.source);
            }
        }
        sources
    }

    /// A hash that is equal for keyrings with the same credentials in the same order, whatever their sources. A result
    /// that the holder of one such keyring got may be shown to holders of an equal keyring. The result is `None` for an
    /// empty keyring.
    pub fn fingerprint(&self) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let mut hash = Sha256::new();
        let mut part = |text: &str| {
            // Each part is preceded by its length, so that it cannot be read as two.
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        };
        for (pattern, credential) in &self.keys {
            part(&format!("{pattern:?}"));
            part(&credential.user);
            let (kind, text) = match &credential.proof {
                Proof::Password(text) => ("password", text),
                Proof::IdentityToken(text) => ("token", text),
            };
            part(kind);
            part(text);
        }
        Some(hex::encode(hash.finalize()))
    }
}

fn read<'t, T: Deserialize<'t>>(text: &'t [u8]) -> Result<T, KeyringError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(KeyringError::TooLong);
    }
    // A list would be read as well, field by field.
    let object = text.trim_ascii_start().starts_with(b"{");
    serde_json::from_slice(text).ok().filter(|_| object).ok_or(KeyringError::Shape)
}

impl Entry {
    fn login(self) -> Option<(String, Proof)> {
        let some = |text: Option<String>| text.filter(|text| !text.is_empty());
        let (user, password) = match self.auth.as_deref().map(str::trim).filter(|auth| !auth.is_empty()) {
            Some(auth) => {
                let text = String::from_utf8(LENIENT.decode(auth).ok()?).ok()?;
                // Docker pads with zeros.
                let (user, password) = text.trim_end_matches('\0').split_once(':')?;
                (Some(user.to_owned()), Some(password.to_owned()))
            }
            None => (self.username, self.password),
        };
        let (user, password) = (some(user), some(password));
        let proof = match (some(self.identitytoken), &user, password) {
            (Some(token), ..) => Proof::IdentityToken(token),
            (None, Some(user), Some(password)) if user == TOKEN_USER => Proof::IdentityToken(password),
            (None, Some(_), Some(password)) => Proof::Password(password),
            (None, ..) => return None,
        };
        let user = user.unwrap_or_else(|| TOKEN_USER.to_owned());
        let (Proof::Password(text) | Proof::IdentityToken(text)) = &proof;
        (user.len() <= SECRET_BYTES_MAX && text.len() <= SECRET_BYTES_MAX).then_some((user, proof))
    }
}

impl Pattern {
    /// Parses a key such as `https://index.docker.io/v1/`, `*.corp:5000` or `ghcr.io/team`.
    fn parse(key: &str) -> Option<Self> {
        let key = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key);
        let (place, path) = key.find('/').map_or((key, ""), |at| key.split_at(at));
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !place.ends_with(']') => (host, Some(authority::port(port).ok()?)),
            _ => (place, None),
        };
        let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')?.parse::<Ipv6Addr>().ok());
        let host = address.map_or_else(|| host.to_ascii_lowercase(), |address| address.to_string());
        if host.is_empty() || host.contains('@') {
            return None;
        }
        // The versions of the API that old tools wrote into the key mean the whole registry.
        let path = ["/v1/", "/v2/"].iter().find(|version| path.starts_with(**version)).map_or(path, |_| &path[3..]);
        let path = if path == "/" { "" } else { path };
        Some(Self { host: parts(hub(&host)), port, path: path.to_owned() })
    }

    fn rank(&self) -> impl Ord + use<> {
        let globs = self.host.iter().any(|part| part.contains(['*', '?', '[']));
        let host_bytes: usize = self.host.iter().map(|part| part.len() + 1).sum();
        (Reverse(self.path.len()), globs, Reverse(host_bytes))
    }

    fn fits(&self, host: &Authority, repository: &str) -> bool {
        let parts = parts(hub(&host.host));
        self.port == host.port
            && self.host.len() == parts.len()
            && self.host.iter().zip(&parts).all(|(glob, part)| fits(glob.as_bytes(), part.as_bytes()))
            && self.path.strip_prefix('/').is_none_or(|path| repository.starts_with(path))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.host.join(".");
        if host.contains(':') { write!(out, "[{host}]") } else { out.write_str(&host) }?;
        if let Some(port) = self.port {
            write!(out, ":{port}")?;
        }
        out.write_str(&self.path)
    }
}

fn hub(host: &str) -> &str {
    if matches!(host, "index.docker.io" | "registry-1.docker.io") { "docker.io" } else { host }
}

/// The components of `host` between dots; an address with colons is one component.
fn parts(host: &str) -> Vec<String> {
    host.split('.').map(str::to_owned).collect()
}

/// Matches a glob with `*` (any text), `?` (any character) and `[a-z]` (a character class), as Go's `filepath.Match`.
/// The time is at most linear in the product of the lengths of glob and text.
fn fits(glob: &[u8], text: &[u8]) -> bool {
    let (mut at_glob, mut at_text) = (0, 0);
    let mut star = None;
    while at_text < text.len() {
        if glob.get(at_glob) == Some(&b'*') {
            star = Some((at_glob, at_text));
            at_glob += 1;
        } else if let Some(length) = one(&glob[at_glob..], text[at_text]) {
            at_glob += length;
            at_text += 1;
        } else if let Some((after, from)) = star {
            at_glob = after + 1;
            at_text = from + 1;
            star = Some((after, from + 1));
        } else {
            return false;
        }
    }
    glob[at_glob..].iter().all(|&byte| byte == b'*')
}

/// The length of the first element of `glob` (character, `?` or class) if it matches `byte`.
fn one(glob: &[u8], byte: u8) -> Option<usize> {
    match *glob.first()? {
        b'?' => Some(1),
        b'[' => {
            let end = glob.iter().skip(2).position(|&byte| byte == b']')? + 2;
            let (class, negated) = match &glob[1..end] {
                [b'^', class @ ..] => (class, true),
                class => (class, false),
            };
            let mut rest = class;
            let mut found = false;
            while let [first, after @ ..] = rest {
                if let [b'-', last, after @ ..] = after {
                    found |= (*first..=*last).contains(&byte);
                    rest = after;
                } else {
                    found |= *first == byte;
                    rest = after;
                }
            }
            (found != negated).then_some(end + 1)
        }
        plain => (plain == byte).then_some(1),
    }
}

#[cfg(test)]
mod tests;

//! The connection to one instance: its address, the trusted authorities, and the certificate of this client. This
//! module reads changed certificate files again.
//!
//! After a change of the files, open calls stay on their connections. If new files cannot be used, the former files
//! stay in use.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::Uri;
use parking_lot::RwLock;
use rustls::ClientConfig;
use service_core::wire::{
    Client, Identity, Limits, Origin, Protocol, TlsError, Trust, certificates_from_pem, client_config, key_from_pem,
    pair,
};
use sha2::{Digest as _, Sha256};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// PEM file with the authorities that are trusted for the server; `None` means the system's authorities.
    pub ca: Option<PathBuf>,
    /// PEM files of this client's certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("`{url}` is no address: write https://host:port")]
    Address { url: String },
    #[error("{}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{}: {source}", path.display())]
    Content { path: PathBuf, source: TlsError },
}

pub struct Link {
    base: String,
    origin: Origin,
    protocol: Protocol,
    limits: Limits,
    files: Files,
    now: RwLock<(Arc<Client>, [u8; 32])>,
}

impl Link {
    /// A connection to `url`, whose scheme must be `https`.
    pub fn open(url: &str, files: &Files, protocol: Protocol, limits: Limits) -> Result<Self, LinkError> {
        let (mut origin, base) = address(url)?;
        let read = Read::new(files)?;
        let seen = read.seen();
        origin.tls = Some(Arc::new(read.config(files)?));
        let client = Arc::new(Client::new(origin.clone(), protocol, limits));
        Ok(Self { base, origin, protocol, limits, files: files.clone(), now: RwLock::new((client, seen)) })
    }

    pub fn client(&self) -> Arc<Client> {
        Arc::clone(&self.now.read().0)
    }

    /// The prefix of every request's path.
    pub fn base(&self) -> &str {
        &self.base
    }

    pub fn authority(&self) -> String {
        self.origin.authority()
    }

    /// Reads the certificate files again; returns whether the files changed. After an error, the former files stay in
    /// use.
    pub fn look(&self) -> Result<bool, LinkError> {
        let read = Read::new(&self.files)?;
        let seen = read.seen();
        if self.now.read().1 == seen {
            return Ok(false);
        }
        let mut origin = self.origin.clone();
        origin.tls = Some(Arc::new(read.config(&self.files)?));
        *self.now.write() = (Arc::new(Client::new(origin, self.protocol, self.limits)), seen);
        Ok(true)
    }
}

/// Host, port and path of an address.
pub fn address(url: &str) -> Result<(Origin, String), LinkError> {
    let wrong = || LinkError::Address { url: url.to_owned() };
    let uri: Uri = url.parse().map_err(|_| wrong())?;
    let authority = uri.authority().filter(|authority| !authority.as_str().contains('@')).ok_or_else(wrong)?;
    if uri.scheme_str() != Some("https") || uri.query().is_some() {
        return Err(wrong());
    }
    let host = authority.host().trim_matches(['[', ']']).to_owned();
    let port = authority.port_u16().unwrap_or(443);
    let base = uri.path().trim_end_matches('/').to_owned();
    Ok((Origin { host, port, tls: None, server_name: None }, base))
}

/// The content of the files with authorities and this client's certificate.
struct Read {
    ca: Option<Vec<u8>>,
    identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl Read {
    fn new(files: &Files) -> Result<Self, LinkError> {
        let read = |path: &Path| std::fs::read(path).map_err(|source| LinkError::Read { path: path.into(), source });
        let ca = files.ca.as_deref().map(read).transpose()?;
        let pair = |(certificate, key): &(PathBuf, PathBuf)| Ok::<_, LinkError>((read(certificate)?, read(key)?));
        Ok(Self { ca, identity: files.identity.as_ref().map(pair).transpose()? })
    }

    fn seen(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        let identity = self.identity.iter().flat_map(|(certificate, key)| [certificate, key]);
        for content in self.ca.iter().chain(identity) {
            hash.update(Sha256::digest(content));
        }
        hash.finalize().into()
    }

    fn config(&self, files: &Files) -> Result<ClientConfig, LinkError> {
        let at = |path: Option<&PathBuf>| {
            let path = path.cloned().unwrap_or_default();
            move |source: TlsError| LinkError::Content { path, source }
        };
        let paths = files.identity.as_ref();
        let identity = match &self.identity {
            None => None,
            Some((certificate, key)) => {
                let chain = certificates_from_pem(certificate).map_err(at(paths.map(|(path, _)| path)))?;
                let key = key_from_pem(key).map_err(at(paths.map(|(_, path)| path)))?;
                // Half of a rotation: the pair does not fit yet.
                pair(chain.clone(), key.clone_key()).map_err(at(paths.map(|(_, path)| path)))?;
                Some(Identity { chain, key })
            }
        };
        let trust = self.ca.as_deref().map_or(Trust::System, Trust::Pem);
        client_config(trust, identity).map_err(at(files.ca.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { open_max: 1, idle_max: 1 };

    #[test]
    fn addresses_are_https_without_a_user_or_a_query() {
        for url in ["http://h", "https://u@h", "https://h/?q", "h:1", "https://", ""] {
            assert!(address(url).is_err(), "{url}");
        }
        let (origin, base) = address("https://[::1]:8443/under/").unwrap();
        assert_eq!((&*origin.host, origin.port, &*base), ("::1", 8443, "/under"));
    }

    #[test]
    fn new_files_make_a_new_client_and_half_of_a_pair_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let write = |key: bool| {
            let made = rcgen::generate_simple_self_signed(["a".to_owned()]).unwrap();
            std::fs::write(path("crt"), made.cert.pem()).unwrap();
            if key {
                std::fs::write(path("key"), made.signing_key.serialize_pem()).unwrap();
            }
        };
        write(true);
        let files = Files { ca: Some(path("crt")), identity: Some((path("crt"), path("key"))) };
        let link = Link::open("https://127.0.0.1:1", &files, Protocol::Http2, LIMITS).unwrap();
        let first = link.client();
        assert!(!link.look().unwrap());
        write(false);
        assert!(link.look().is_err(), "the key is of another certificate");
        assert!(Arc::ptr_eq(&first, &link.client()));
        write(true);
        assert!(link.look().unwrap());
        assert!(!Arc::ptr_eq(&first, &link.client()));
    }
}

//! Files that are read again while the process runs: trusted authorities, passwords and docker configurations.
//!
//! This module keeps the last good content of each file. An unusable file causes only a log line and a count.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::ClientConfig;
use sha2::{Digest as _, Sha256};

use crate::keychain::Keyring;
use crate::lock::Lock;
use service_core::wire::{self, Trust};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// The content is the same as before, good or bad.
    Same,
    /// The content is new and in use now.
    Replaced,
    /// The content is new but unusable, with the reason; the former content stays in use.
    Refused(String),
}

/// A file whose last good content is in use.
pub(super) struct Followed<T> {
    path: PathBuf,
    read: Reader<T>,
    state: Mutex<State<T>>,
}

type Reader<T> = fn(&[u8]) -> Result<T, String>;

struct State<T> {
    value: Arc<T>,
    /// Hash of the content that was last read, or of the reason why the file could not be read.
    seen: [u8; 32],
}

pub(super) type Authorities = Followed<ClientConfig>;
pub(super) type LockFile = Followed<Lock>;
pub(super) type DockerConfig = Followed<Keyring>;

impl Authorities {
    pub fn load(path: &Path) -> Result<Self, String> {
        Self::first(path, |pem| wire::client_config(Trust::Pem(pem), None).map_err(|error| error.to_string()))
    }
}

impl DockerConfig {
    pub fn load(path: &Path) -> Result<Self, String> {
        Self::first(path, |text| {
            Keyring::docker_config(text, &"docker config".into()).map_err(|error| error.to_string())
        })
    }
}

impl LockFile {
    pub fn load(path: &Path) -> Result<Self, String> {
        Self::first(path, |text| {
            let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
            Lock::parse(text).map_err(|error| error.to_string())
        })
    }
}

impl<T> Followed<T> {
    fn first(path: &Path, read: Reader<T>) -> Result<Self, String> {
        let (seen, value) = content(path, read);
        Ok(Self { path: path.into(), read, state: Mutex::new(State { value: Arc::new(value?), seen }) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn value(&self) -> Arc<T> {
        Arc::clone(&self.state.lock().value)
    }

    /// Reads the file again. The content is compared and not the file's metadata, because a mounted Secret keeps its
    /// times and changes its links.
    pub fn look(&self) -> Look {
        let (seen, value) = content(&self.path, self.read);
        let mut state = self.state.lock();
        if state.seen == seen {
            return Look::Same;
        }
        state.seen = seen;
        match value {
            Ok(value) => {
                state.value = Arc::new(value);
                Look::Replaced
            }
            Err(what) => Look::Refused(what),
        }
    }
}

fn content<T>(path: &Path, read: Reader<T>) -> ([u8; 32], Result<T, String>) {
    match std::fs::read(path) {
        Ok(content) => (Sha256::digest(&content).into(), read(&content)),
        Err(error) => (Sha256::digest(error.to_string()).into(), Err(error.to_string())),
    }
}

/// A password file, which is read each time the password is needed.
#[derive(Default)]
pub(super) struct Password {
    known: Mutex<Option<Arc<str>>>,
}

impl Password {
    /// The password in `path`, without a final newline. If the file cannot be read, the last read password is returned
    /// with the error.
    pub fn read(&self, path: &Path) -> std::io::Result<(Arc<str>, Option<std::io::Error>)> {
        let mut known = self.known.lock();
        match std::fs::read_to_string(path) {
            Ok(text) => Ok((Arc::clone(known.insert(text.trim_end_matches(['\r', '\n']).into())), None)),
            Err(error) => match &*known {
                Some(password) => Ok((Arc::clone(password), Some(error))),
                None => Err(error),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pem(name: &str) -> String {
        rcgen::generate_simple_self_signed([name.to_owned()]).unwrap().cert.pem()
    }

    #[test]
    fn authorities_follow_their_file_and_keep_the_last_good_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.crt");
        std::fs::write(&path, pem("first")).unwrap();
        let authorities = Authorities::load(&path).unwrap();
        let first = authorities.value();
        assert_eq!(authorities.look(), Look::Same);
        std::fs::write(&path, "half").unwrap();
        assert!(matches!(authorities.look(), Look::Refused(_)));
        assert_eq!(authorities.look(), Look::Same, "said once");
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(authorities.look(), Look::Refused(_)));
        assert!(Arc::ptr_eq(&authorities.value(), &first));
        std::fs::write(&path, pem("second")).unwrap();
        assert_eq!(authorities.look(), Look::Replaced);
        assert!(!Arc::ptr_eq(&authorities.value(), &first));
    }

    #[test]
    fn a_password_that_cannot_be_read_is_the_last_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pw");
        let password = Password::default();
        assert!(password.read(&path).is_err());
        std::fs::write(&path, "one\r\n").unwrap();
        assert_eq!(&*password.read(&path).unwrap().0, "one");
        std::fs::write(&path, "two").unwrap();
        assert_eq!(&*password.read(&path).unwrap().0, "two");
        std::fs::remove_file(&path).unwrap();
        let (last, error) = password.read(&path).unwrap();
        assert!(&*last == "two" && error.is_some());
    }
}

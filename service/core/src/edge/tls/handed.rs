//! A server certificate that another part of the process hands over, instead of files.
//!
//! Owns the pair as it is now and why there is no newer one. Where it comes from, the edge does not know.

use parking_lot::Mutex;
use rustls::sign::CertifiedKey;
use tokio::sync::watch;

/// The place of the certificate.
#[derive(Debug)]
pub struct Handed {
    source: String,
    pair: Mutex<Option<CertifiedKey>>,
    trouble: Mutex<Option<String>>,
    changes: watch::Sender<u64>,
}

impl Handed {
    /// An empty place; `source` says to a person where its certificate will come from.
    pub fn new(source: String) -> Self {
        Self { source, pair: Mutex::new(None), trouble: Mutex::new(None), changes: watch::Sender::new(0) }
    }

    /// Takes the place of the one before. New connections get it at once, open ones stay.
    pub fn replace(&self, pair: CertifiedKey) {
        *self.pair.lock() = Some(pair);
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Says why there is no newer one, or that nothing is wrong.
    pub fn say(&self, trouble: Option<String>) {
        *self.trouble.lock() = trouble;
    }

    pub(super) fn source(&self) -> &str {
        &self.source
    }

    pub(super) fn pair(&self) -> Option<CertifiedKey> {
        self.pair.lock().clone()
    }

    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble.lock().clone()
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

//! A server certificate that another part of the process provides, instead of files.
//!
//! This module owns the present pair and the reason why there is no newer one. It does not know the certificate's
//! source.

use parking_lot::Mutex;
use rustls::sign::CertifiedKey;
use tokio::sync::watch;

#[derive(Debug)]
pub struct Handed {
    source: String,
    pair: Mutex<Option<CertifiedKey>>,
    trouble: Mutex<Option<String>>,
    changes: watch::Sender<u64>,
}

impl Handed {
    /// An empty place; `source` names the certificate's source for people.
    pub fn new(source: String) -> Self {
        Self { source, pair: Mutex::new(None), trouble: Mutex::new(None), changes: watch::Sender::new(0) }
    }

    /// Replaces the pair. New connections use it at once; open ones stay.
    pub fn replace(&self, pair: CertifiedKey) {
        *self.pair.lock() = Some(pair);
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Sets the reason why there is no newer pair; `None` if nothing is wrong.
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

//! A server certificate that another module of the process provides, instead of files.
//!
//! This module owns the present certificate with its key, and the reason why there is no newer certificate. The module
//! does not know where the certificate comes from.

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
    /// A holder without a certificate yet; `source` names the source in messages.
    pub fn new(source: String) -> Self {
        Self { source, pair: Mutex::new(None), trouble: Mutex::new(None), changes: watch::Sender::new(0) }
    }

    /// Replaces certificate and key. New connections use the new certificate at once; open connections keep the former
    /// one.
    pub fn replace(&self, pair: CertifiedKey) {
        *self.pair.lock() = Some(pair);
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Sets the reason why no newer certificate was made; `None` if there is no problem.
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

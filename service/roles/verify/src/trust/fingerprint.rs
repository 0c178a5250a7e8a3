//! The fingerprint of trusted keys, by which caches notice a change.

use std::fmt;

use aws_lc_rs::digest::{Context, SHA256};

use super::{Accepts, TrustRoot};
use crate::authority::{Authority, Certifier, Log, Period};

/// A hash of trust: equal for equal trust, different for any other trust. The hash covers keys, certificates, names and
/// periods in the order of the configuration, but not how they are written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

pub(super) fn of(roots: &[TrustRoot], authorities: &[Authority]) -> Fingerprint {
    let mut writer = Writer(Context::new(&SHA256));
    writer.count(roots.len());
    for root in roots {
        writer.text(&root.name);
        match &root.accepts {
            Accepts::Key(key) => {
                writer.text("key");
                writer.bytes(key.spki());
            }
            Accepts::Keyless { issuer, subject } => {
                for (form, text) in [issuer.identity(), subject.identity()] {
                    writer.text(form);
                    writer.text(text);
                }
            }
        }
        writer.count(root.authorities.len());
        root.authorities.iter().for_each(|place| writer.count(*place));
    }
    writer.count(authorities.len());
    for authority in authorities {
        writer.text(&authority.name);
        writer.certifiers(&authority.certifiers);
        writer.logs(&authority.logs);
        writer.logs(&authority.ct_logs);
        writer.certifiers(&authority.timestampers);
    }
    let mut value = [0; 32];
    value.copy_from_slice(writer.0.finish().as_ref());
    Fingerprint(value)
}

/// A hash of values. Each value has its length before it, so that different lists of values give different bytes.
struct Writer(Context);

impl Writer {
    fn count(&mut self, count: usize) {
        self.0.update(&(count as u64).to_be_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.update(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn period(&mut self, period: Period) {
        for end in [period.start, period.end] {
            self.0.update(&[u8::from(end.is_some())]);
            self.0.update(&end.map_or(0, |time| time.0).to_be_bytes());
        }
    }

    fn certifiers(&mut self, certifiers: &[Certifier]) {
        self.count(certifiers.len());
        for certifier in certifiers {
            self.count(certifier.roots.len());
            certifier.roots.iter().for_each(|root| self.bytes(&root.certificate.der));
            self.count(certifier.intermediates.len());
            certifier.intermediates.iter().for_each(|der| self.bytes(der));
            self.count(certifier.leaves.len());
            certifier.leaves.iter().for_each(|leaf| self.bytes(&leaf.der));
            self.period(certifier.period);
        }
    }

    fn logs(&mut self, logs: &[Log]) {
        self.count(logs.len());
        for log in logs {
            self.bytes(&log.id);
            self.bytes(log.key.spki());
            self.period(log.period);
        }
    }
}

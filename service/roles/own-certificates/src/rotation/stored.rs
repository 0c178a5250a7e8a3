//! Parses and writes the content of the Secret.
//!
//! An invalid value in the Secret counts as absent and is replaced by a new value. The memory of private keys is
//! overwritten on drop.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::CertificateDer;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

use service_core::wire::{Facts, certificates_from_pem, facts, key_from_pem, pair, verifies};

/// The keys of the Secret that this module writes. `ca.crt` has the authorities that the webhook configurations trust,
/// for people and other callers.
const KEYS: [&str; 9] = [
    "authority.crt",
    "authority.key",
    "next.crt",
    "next.key",
    "previous.crt",
    "tls.crt",
    "tls.key",
    "ca.crt",
    "state.json",
];
/// Prefix of the names of authorities that this program makes.
pub const AUTHORITY: &str = "longhaul-webhook authority ";
/// Maximum number of former authorities that stay trusted; a larger number is an error.
const PREVIOUS_MAX: usize = 8;

/// A certificate chain and its key as PEM, with the facts of the first certificate.
#[derive(Debug, Clone)]
pub struct Pair {
    /// The certificate as PEM, or a chain with the leaf first.
    pub certificate: String,
    pub key: Zeroizing<String>,
    pub chain: Vec<CertificateDer<'static>>,
    pub facts: Facts,
}

#[derive(Debug, Clone, Default)]
pub struct StoredCertificates {
    /// `metadata.resourceVersion` of the Secret that was read.
    pub version: Option<String>,
    pub authority: Option<Pair>,
    /// The next authority, which signs certificates after a later step.
    pub next: Option<Pair>,
    /// Former authorities that are still trusted; the newest is last.
    pub previous: Vec<Previous>,
    /// The certificate that replicas use.
    pub leaf: Option<Pair>,
    /// The time from which every webhook configuration trusts `next`, in seconds since 1970.
    pub confirmed: Option<u64>,
}

/// An authority that signs nothing any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Previous {
    pub certificate: CertificateDer<'static>,
    /// The time at which trust in the authority ends, in seconds since 1970: when its last certificate expires, or when
    /// it expires itself.
    pub until: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Times {
    confirmed: Option<u64>,
    /// Seconds since 1970 at which trust in each certificate of `previous.crt` ends.
    previous_until: Vec<u64>,
}

#[derive(Deserialize)]
struct Secret {
    metadata: Meta,
    #[serde(default)]
    data: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    resource_version: String,
}

impl Pair {
    /// Parses a certificate and its key; `None` if they do not belong together.
    pub fn read(certificate: String, key: Zeroizing<String>) -> Option<Self> {
        let chain = certificates_from_pem(certificate.as_bytes()).ok()?;
        pair(chain.clone(), key_from_pem(key.as_bytes()).ok()?).ok()?;
        let facts = facts(chain.first()?)?;
        Some(Self { certificate, key, chain, facts })
    }

    pub fn ends(&self) -> SystemTime {
        self.facts.not_after
    }
}

impl Previous {
    /// An authority that is trusted until `until`, or until it expires.
    pub fn new(certificate: CertificateDer<'static>, until: u64) -> Self {
        // Its last second counts (RFC 5280, section 4.1.2.5).
        let over = facts(&certificate).map_or(0, |facts| seconds(facts.not_after).saturating_add(1));
        Self { certificate, until: until.min(over) }
    }
}

impl StoredCertificates {
    pub fn read(body: &[u8]) -> Result<Self, serde_json::Error> {
        let secret: Secret = serde_json::from_slice(body)?;
        let text = |key: &str| {
            let bytes = STANDARD.decode(secret.data.get(key)?.as_str()?).ok()?;
            String::from_utf8(bytes).ok()
        };
        let pair =
            |name: &str| Pair::read(text(&format!("{name}.crt"))?, Zeroizing::new(text(&format!("{name}.key"))?));
        let times: Times = text("state.json").and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let previous =
            text("previous.crt").and_then(|pem| certificates_from_pem(pem.as_bytes()).ok()).unwrap_or_default();
        // A certificate without a stored end is trusted until its own end.
        let untils = times.previous_until.into_iter().chain(std::iter::repeat(u64::MAX));
        let mut previous: Vec<_> =
            previous.into_iter().zip(untils).map(|(one, until)| Previous::new(one, until)).collect();
        // The newest ones are still in use.
        previous.drain(..previous.len().saturating_sub(PREVIOUS_MAX));
        Ok(Self {
            version: Some(secret.metadata.resource_version),
            authority: pair("authority").filter(is_made_here),
            next: pair("next").filter(is_made_here),
            previous,
            leaf: pair("tls"),
            confirmed: times.confirmed,
        })
    }

    /// The merge patch that replaces the content of the Secret if the Secret still has the version that was read.
    pub fn patch(&self) -> Value {
        json!({"metadata": {"resourceVersion": self.version}, "data": self.data()})
    }

    pub fn object(&self, name: &str) -> Value {
        let mut data = self.data();
        data.retain(|_, value| !value.is_null());
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data,
            "metadata": {"name": name, "labels": {"app.kubernetes.io/part-of": "longhaul"}},
        })
    }

    fn data(&self) -> Map<String, Value> {
        let mut data: Map<String, Value> = KEYS.into_iter().map(|key| (key.to_owned(), Value::Null)).collect();
        let mut put = |key: String, text: &str| data.insert(key, STANDARD.encode(text).into());
        for (name, pair) in [("authority", &self.authority), ("next", &self.next), ("tls", &self.leaf)] {
            if let Some(pair) = pair {
                put(format!("{name}.crt"), &pair.certificate);
                put(format!("{name}.key"), &pair.key);
            }
        }
        if !self.previous.is_empty() {
            put("previous.crt".into(), &pem(self.previous.iter().map(|previous| &previous.certificate)));
        }
        put("ca.crt".into(), &pem(&self.bundle()));
        let previous_until = self.previous.iter().map(|previous| previous.until).collect();
        // Plain numbers always have a JSON form.
        put("state.json".into(), &json!(Times { confirmed: self.confirmed, previous_until }).to_string());
        data
    }

    /// Whether one of the stored authorities has signed the certificate, without a check of times. Clocks may be wrong,
    /// but a certificate of an unknown authority is never valid.
    pub fn vouches_for(&self, leaf: &Pair) -> bool {
        let name = leaf.facts.names.last();
        name.is_some_and(|name| verifies(&self.bundle(), &leaf.chain, name, leaf.ends()).is_ok())
    }

    /// The authorities that the webhook configurations must trust.
    pub fn bundle(&self) -> Vec<CertificateDer<'static>> {
        let ours = [&self.authority, &self.next].into_iter().flatten().filter_map(|pair| pair.chain.first());
        let mut bundle: Vec<CertificateDer<'static>> = Vec::new();
        for one in ours.chain(self.previous.iter().map(|previous| &previous.certificate)) {
            if !bundle.contains(one) {
                bundle.push(one.clone());
            }
        }
        bundle
    }
}

/// Whether this program made the authority. A certificate and key of unknown origin may belong together although the
/// certificate is no authority. Callers would refuse certificates that the key of such a pair signs.
fn is_made_here(pair: &Pair) -> bool {
    pair.chain.len() == 1 && pair.facts.names.first().is_some_and(|name| name.starts_with(AUTHORITY))
}

pub fn pem<'c>(certificates: impl IntoIterator<Item = &'c CertificateDer<'c>>) -> String {
    let mut text = String::new();
    for certificate in certificates {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let encoded = STANDARD.encode(certificate);
        for line in encoded.as_bytes().chunks(64) {
            // Base64 is ASCII.
            text.extend(line.iter().map(|byte| char::from(*byte)));
            text.push('\n');
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}

pub fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The time at `seconds` since 1970; if the clock cannot represent this time, a time in the far future.
pub fn moment(seconds: u64) -> SystemTime {
    let latest = Duration::from_secs(u64::from(u32::MAX) * 4);
    UNIX_EPOCH + Duration::from_secs(seconds).min(latest)
}

#[cfg(test)]
mod tests;

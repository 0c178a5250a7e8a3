//! The state of the certificate rotation, for the health endpoint.
//!
//! This state never makes a replica unready: a replica whose certificate cannot be renewed serves until its certificate
//! expires, and the health check `certificate` reports the expiry.

use parking_lot::Mutex;
use serde_json::json;

use super::stored::{StoredCertificates, seconds};
use service_core::edge::Probe;

#[derive(Debug, Default)]
pub struct State(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    holds: bool,
    trouble: Option<String>,
    page: Option<String>,
}

impl State {
    pub fn holds(&self, holds: bool) {
        let mut known = self.0.lock();
        known.holds = holds;
        if !holds {
            known.trouble = None;
        }
    }

    /// Records the present problem, if there is a problem. Returns whether the problem differs from the former problem.
    pub fn trouble(&self, trouble: Option<String>) -> bool {
        let mut known = self.0.lock();
        let new = trouble.is_some() && known.trouble != trouble;
        known.trouble = trouble;
        new
    }

    /// Records the content of the Secret, without keys.
    pub fn show(&self, held: &StoredCertificates) {
        let ends = |pair: &Option<super::stored::Pair>| pair.as_ref().map(|pair| seconds(pair.ends()));
        let page = json!({
            "authorityEnds": ends(&held.authority),
            "nextAuthorityEnds": ends(&held.next),
            "certificateEnds": ends(&held.leaf),
            "previousAuthoritiesUntil": held.previous.iter().map(|previous| previous.until).collect::<Vec<_>>(),
            "nextTrustedSince": held.confirmed,
        });
        self.0.lock().page = Some(page.to_string());
    }
}

impl Probe for State {
    fn name(&self) -> &'static str {
        "certificates"
    }

    fn note(&self) -> Option<String> {
        self.0.lock().trouble.clone()
    }

    /// The state of the holder as JSON: times in seconds since 1970, and no key.
    fn page(&self) -> Option<String> {
        let known = self.0.lock();
        let waits = || json!({"holder": false}).to_string();
        Some(known.page.clone().filter(|_| known.holds).unwrap_or_else(waits))
    }
}

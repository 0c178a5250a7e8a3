//! The section `admission`: the webhook listener and its limits.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;

use super::quantity::Size;
use super::{Checker, Error};

/// etcd limits an object to 1.5 MiB; a review carries two of them, escaped, and some overhead.
const MAX_BODY_BYTES: u64 = 8 << 20;
/// Above this a single review could hold more memory than the whole service should need.
const MAX_BODY_BYTES_MOST: u64 = 64 << 20;
/// kube-apiserver allows itself 200 mutating requests in flight by default; twice that serves two of them.
const MAX_IN_FLIGHT: usize = 400;

/// The webhook listener.
#[derive(Debug, Clone)]
pub struct Admission {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// PEM file of the certificate chain.
    pub certificate: PathBuf,
    /// PEM file of the private key.
    pub key: PathBuf,
    /// Largest accepted review, bytes.
    pub max_body_bytes: usize,
    /// Reviews in work at one time; more are shed with 429.
    pub max_in_flight: usize,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawAdmission {
    pub listen: SocketAddr,
    pub certificate: PathBuf,
    pub key: PathBuf,
    pub max_body_bytes: Option<Size>,
    pub max_in_flight: Option<usize>,
}

impl Checker<'_> {
    pub(super) fn admission(&self, raw: RawAdmission) -> Result<Admission, Error> {
        let max_body_bytes = raw.max_body_bytes.map_or(MAX_BODY_BYTES, |size| size.0);
        let most = MAX_BODY_BYTES_MOST;
        let max_body_bytes = self.within("admission.maxBodyBytes", max_body_bytes, 1024, most)?;
        let in_flight = raw.max_in_flight.unwrap_or(MAX_IN_FLIGHT);
        self.within("admission.maxInFlight", in_flight as u64, 1, 100_000)?;
        Ok(Admission {
            listen: raw.listen,
            certificate: self.folder.join(raw.certificate),
            key: self.folder.join(raw.key),
            max_body_bytes,
            max_in_flight: in_flight,
        })
    }
}

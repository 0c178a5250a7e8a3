//! Checks entries of transparency logs: whether a log really contains an entry, and since when.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::authority::{Log, Period};
use crate::entry::{self, KindVersion, Logged};
use crate::merkle::Proof;
use crate::time::UnixTime;

/// Longest body of a log entry, in bytes. The body of an entry contains a certificate, a hash and a signature.
const BODY_BYTES_MAX: usize = 128 << 10;

/// A received log entry, which is not trusted.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) log_id: Vec<u8>,
    pub(crate) index: u64,
    pub(crate) integrated: Option<UnixTime>,
    pub(crate) body: Vec<u8>,
    pub(crate) stated: Option<KindVersion>,
    /// The signed entry timestamp, by which the log promises to contain the entry.
    pub(crate) promise: Option<Vec<u8>>,
    pub(crate) proof: Option<Proof>,
}

/// The facts that a verified log entry proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) index: u64,
    /// The time of the log entry. The time is `None` without a promise, because only a promise states a time; Rekor v2
    /// makes no promises.
    pub(crate) time: Option<UnixTime>,
    /// The period in which the log is trusted. A caller that knows the signing time from another source must check that
    /// the time lies in this period.
    pub(crate) period: Period,
}

#[derive(Deserialize)]
struct RawBundle {
    #[serde(rename = "SignedEntryTimestamp")]
    promise: String,
    #[serde(rename = "Payload")]
    payload: RawPayload,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPayload {
    body: String,
    integrated_time: i64,
    log_index: u64,
    #[serde(rename = "logID")]
    log_id: String,
}

impl Entry {
    /// Parses the annotation `dev.sigstore.cosign/bundle`.
    pub(crate) fn from_annotation(text: &str) -> Result<Self, String> {
        let raw: RawBundle =
            serde_json::from_str(text).map_err(|error| format!("its log entry cannot be read: {error}"))?;
        let decode = |text: &str| STANDARD.decode(text).map_err(|_| "its log entry is not base64".to_owned());
        Ok(Self {
            log_id: hex::decode(&raw.payload.log_id).map_err(|_| "its log entry names no log".to_owned())?,
            index: raw.payload.log_index,
            integrated: Some(UnixTime(raw.payload.integrated_time)),
            body: decode(&raw.payload.body)?,
            stated: None,
            promise: Some(decode(&raw.promise)?),
            proof: None,
        })
    }

    /// Checks that one of `logs` contains this entry, and that the entry is about the signature in `logged`.
    pub(crate) fn check<'a>(&self, logs: impl Iterator<Item = &'a Log>, logged: Logged<'_>) -> Result<Found, String> {
        if self.body.len() > BODY_BYTES_MAX {
            return Err(format!("a log entry of {} bytes, at most {BODY_BYTES_MAX} are read", self.body.len()));
        }
        let mut failure = None;
        for log in logs.filter(|log| log.id == self.log_id) {
            match self.is_in(log) {
                Ok(found) => {
                    entry::check(&self.body, self.stated.as_ref(), logged)?;
                    return Ok(found);
                }
                Err(cause) => failure = Some(cause),
            }
        }
        Err(failure.unwrap_or_else(|| "its entry is in a log that is not trusted".to_owned()))
    }

    /// Checks that `log` promised or proves to contain the entry. Returns the index and time from a promise, or the
    /// index from a proof. An index that is stated beside the entry counts only with a promise, whose signature covers
    /// the index.
    fn is_in(&self, log: &Log) -> Result<Found, String> {
        if let Some(proof) = &self.proof {
            proof.check(&self.body, log)?;
        }
        let promise = match (&self.promise, &self.proof) {
            (Some(promise), _) => promise,
            (None, Some(proof)) => return Ok(Found { index: proof.index, time: None, period: log.period }),
            (None, None) => return Err("its log entry comes with neither promise nor proof".to_owned()),
        };
        let time = self.integrated.ok_or("its log entry says not when it was made")?;
        if !log.key.verifies(self.promised(time).as_bytes(), promise) {
            return Err("the promise of its log entry is not signed by the log".to_owned());
        }
        if !log.period.holds(time) {
            return Err(format!("its log is not to be believed at {time}"));
        }
        Ok(Found { index: self.index, time: Some(time), period: log.period })
    }

    /// The text that a log signs as its promise: canonical JSON (RFC 8785) with four fields, of which none needs an
    /// escape.
    fn promised(&self, time: UnixTime) -> String {
        format!(
            r#"{{"body":"{}","integratedTime":{},"logID":"{}","logIndex":{}}}"#,
            STANDARD.encode(&self.body),
            time.0,
            hex::encode(&self.log_id),
            self.index
        )
    }
}

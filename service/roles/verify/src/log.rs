//! Entries of transparency logs: whether a log really has an entry, and since when.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::authority::{Log, Period};
use crate::entry::{self, KindVersion, Logged};
use crate::merkle::Proof;
use crate::time::UnixTime;

/// Longest body of an entry that is read: it holds a certificate, a hash and a signature.
const BODY_BYTES_MAX: usize = 128 << 10;

/// An entry as received. None of it is trusted.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) log_id: Vec<u8>,
    pub(crate) index: u64,
    pub(crate) integrated: Option<UnixTime>,
    pub(crate) body: Vec<u8>,
    pub(crate) stated: Option<KindVersion>,
    /// Signed entry timestamp: the log's promise.
    pub(crate) promise: Option<Vec<u8>>,
    pub(crate) proof: Option<Proof>,
}

/// The facts of a verified entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) index: u64,
    /// Only a promise states the time; Rekor v2 makes none.
    pub(crate) time: Option<UnixTime>,
    /// The period in which the log is valid. A caller that knows the signing time by other means must compare it with
    /// this.
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
    /// Reads the annotation `dev.sigstore.cosign/bundle`.
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

    /// Checks that one of `logs` has this entry, and that the entry is about `logged`.
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

    /// Checks that `log` promised or proves the entry; returns the index and time of the promise, or the index of the
    /// proof. Only a promise binds the index stated next to them.
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

    /// The text that a log signs as its promise: canonical JSON (RFC 8785) of four fields, none of which needs an
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

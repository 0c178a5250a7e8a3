//! Decides whether a trust root accepts a signature: checks every link from the root's key or authorities to the
//! signature.
//!
//! The module [`crate::claim`] checks the content of the signature.

use crate::authority::Purpose;
use crate::certificate::Certificate;
use crate::claim::shown;
use crate::entry::{Logged, Verifier};
use crate::key::PublicKey;
use crate::log::Found;
use crate::pattern::Pattern;
use crate::piece::Piece;
use crate::requirement::{Requirement, Timestamps};
use crate::sct;
use crate::time::UnixTime;
use crate::timestamp;
use crate::trust::{Accepts, Trust, TrustRoot};
use crate::verdict::{EvidenceKind, Identity};

/// Tolerated number of seconds by which an authority's clock is ahead of this machine's clock.
const SKEW_SECONDS: i64 = 300;

#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) requirement: &'a Requirement,
    pub(crate) trust: &'a Trust,
    pub(crate) now: UnixTime,
}

/// An accepted signer, and the facts about the signing time.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) identity: Identity,
    pub(crate) log_index: Option<u64>,
    pub(crate) time: Option<UnixTime>,
}

/// Why a root does not accept a signature.
#[derive(Debug)]
pub(crate) struct Unaccepted {
    /// The link between root and signature at which the check failed. If several roots refuse a signature, the cause at
    /// the latest link is the most helpful.
    pub(crate) step: Step,
    pub(crate) cause: String,
}

/// The links between a root and a signature, in the order of the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// The signature is not by a key or authority of the root.
    Signer,
    /// The certificate belongs to another identity than the trusted identity.
    Identity,
    Signature,
    /// The entry in the transparency log is missing or invalid.
    Log,
    /// The signing time is unproved or invalid.
    Time,
    Chain,
    /// The certificate has no valid timestamp of a certificate transparency log.
    CertificateLog,
}

impl Context<'_> {
    pub(crate) fn accept(self, root: &TrustRoot, piece: &Piece) -> Result<Accepted, Unaccepted> {
        match &root.accepts {
            Accepts::Key(key) => self.accept_key(root, key, piece),
            Accepts::Keyless { issuer, subject } => self.accept_certificate(root, issuer, subject, piece),
        }
    }

    fn accept_key(self, root: &TrustRoot, key: &PublicKey, piece: &Piece) -> Result<Accepted, Unaccepted> {
        if !key.verifies(&piece.message, &piece.signature) {
            return Err(Step::Signer.fails("it was not made by the key"));
        }
        // A bundle states the form of its verification; sigstore's own clients follow it.
        let is_bundle = matches!(piece.kind, EvidenceKind::Bundle | EvidenceKind::BundleAttestation);
        if is_bundle && piece.certificate.is_some() {
            return Err(Step::Signer.fails("it says that the holder of a certificate made it, not a key"));
        }
        let logged = self.logged(root, piece, Verifier::Key(key))?;
        let needs_stamp = self.requirement.timestamps == Timestamps::Required;
        let stamps = self.stamps(root, piece, needs_stamp)?;
        self.believed_then(logged, &stamps)?;
        // A timestamp that nothing demands is checked and not reported: a relay of the piece could leave it out.
        let stamped = stamps.first().copied().filter(|_| needs_stamp);
        let time = logged.and_then(|found| found.time).or(stamped);
        let identity = Identity::Key(key.fingerprint().hex());
        Ok(Accepted { identity, log_index: logged.map(|found| found.index), time })
    }

    fn accept_certificate(
        self,
        root: &TrustRoot,
        issuer: &Pattern,
        subject: &Pattern,
        piece: &Piece,
    ) -> Result<Accepted, Unaccepted> {
        let certificate =
            piece.certificate.as_ref().ok_or_else(|| Step::Signer.fails("no certificate came with it"))?;
        let identity = identity_of(certificate, issuer, subject).map_err(|cause| Step::Identity.fails(cause))?;
        if !certificate.key.verifies(&piece.message, &piece.signature) {
            return Err(Step::Signature.fails("it was not made by the key of its certificate"));
        }
        let logged = self.logged(root, piece, Verifier::Certificate(certificate))?;
        let logged_time = logged.and_then(|found| found.time);
        // A promise of the log dates the signature; without one a timestamp must.
        let needs_stamp = logged_time.is_none() || self.requirement.timestamps == Timestamps::Required;
        let stamps = self.stamps(root, piece, needs_stamp)?;
        self.believed_then(logged, &stamps)?;
        // Every time of the signature must fall into the few minutes of the certificate's life.
        let mut time = None;
        for moment in logged_time.into_iter().chain(stamps) {
            self.certified(root, piece, certificate, moment)?;
            time = time.or(Some(moment));
        }
        let time = time.ok_or_else(|| Step::Time.fails("nothing says when it was signed"))?;
        Ok(Accepted { identity, log_index: logged.map(|found| found.index), time: Some(time) })
    }

    /// The verified entry in a transparency log; `None` if the requirement needs no entry.
    fn logged(self, root: &TrustRoot, piece: &Piece, verifier: Verifier<'_>) -> Result<Option<Found>, Unaccepted> {
        if !self.requirement.transparency_log {
            return Ok(None);
        }
        let logged = Logged {
            message: &piece.message,
            envelope_payload: piece.envelope_payload(),
            envelope: piece.envelope,
            signature: &piece.signature,
            verifier,
        };
        let mut failure = "it is in no transparency log: no entry came with it".to_owned();
        for entry in &piece.entries {
            let logs = self.trust.authorities(root).flat_map(|authority| &authority.logs);
            match entry.check(logs, logged) {
                Ok(found) => {
                    self.not_of_the_future(found.time)?;
                    return Ok(Some(found));
                }
                Err(cause) => failure = cause,
            }
        }
        Err(Step::Log.fails(failure))
    }

    /// The times at which timestamp authorities of `root` signed timestamps for the signature. If `needed` is false,
    /// timestamps may be missing; but if the root has timestamp authorities, existing timestamps must be valid.
    fn stamps(self, root: &TrustRoot, piece: &Piece, needed: bool) -> Result<Vec<UnixTime>, Unaccepted> {
        let authorities = || self.trust.authorities(root).flat_map(|authority| &authority.timestampers);
        if !needed && (piece.timestamps.is_empty() || authorities().next().is_none()) {
            return Ok(Vec::new());
        }
        let mut failure =
            "no timestamp came with it, and nothing else that is trusted says when it was made".to_owned();
        let mut stamps = Vec::new();
        for response in &piece.timestamps {
            match timestamp::check(response, piece.timestamped(), authorities()) {
                Ok(time) => {
                    self.not_of_the_future(Some(time))?;
                    stamps.push(time);
                }
                Err(cause) => failure = cause,
            }
        }
        if stamps.is_empty() { Err(Step::Time.fails(failure)) } else { Ok(stamps) }
    }

    /// Checks that a log whose entry states no time was trusted at the times of the timestamps, or is trusted now if
    /// the signature has no timestamps.
    fn believed_then(self, logged: Option<Found>, stamps: &[UnixTime]) -> Result<(), Unaccepted> {
        let Some(Found { time: None, period, .. }) = logged else { return Ok(()) };
        let now = [self.now];
        let moments = if stamps.is_empty() { &now } else { stamps };
        match moments.iter().find(|moment| !period.holds(**moment)) {
            Some(moment) => Err(Step::Log.fails(format!("its log is not to be believed at {moment}"))),
            None => Ok(()),
        }
    }

    /// Checks that an authority of `root` certified the signer at `time`, and published the certificate if the
    /// requirement demands it.
    fn certified(
        self,
        root: &TrustRoot,
        piece: &Piece,
        certificate: &Certificate,
        time: UnixTime,
    ) -> Result<(), Unaccepted> {
        let mut failure = Step::Chain.fails("no certificate authority is trusted");
        for certifier in self.trust.authorities(root).flat_map(|authority| &authority.certifiers) {
            let issuer = match certifier.certifies(certificate, &piece.further, time, Purpose::CodeSigning) {
                Ok(issuer) => issuer,
                Err(cause) if failure.step == Step::Chain => {
                    failure = Step::Chain.fails(cause);
                    continue;
                }
                Err(_) => continue,
            };
            if !self.requirement.certificate_timestamp {
                return Ok(());
            }
            let logs = self.trust.authorities(root).flat_map(|authority| &authority.ct_logs);
            match sct::check(certificate, &issuer, &logs) {
                Ok(()) => return Ok(()),
                Err(cause) => failure = Step::CertificateLog.fails(cause),
            }
        }
        Err(failure)
    }

    fn not_of_the_future(self, time: Option<UnixTime>) -> Result<(), Unaccepted> {
        match time.filter(|time| time.0 > self.now.0.saturating_add(SKEW_SECONDS)) {
            Some(time) => Err(Step::Time.fails(format!("it is dated {time}, which is still to come"))),
            None => Ok(()),
        }
    }
}

impl Step {
    fn fails(self, cause: impl Into<String>) -> Unaccepted {
        Unaccepted { step: self, cause: cause.into() }
    }
}

/// The identity in the certificate, if `issuer` and `subject` match it.
fn identity_of(certificate: &Certificate, issuer: &Pattern, subject: &Pattern) -> Result<Identity, String> {
    let (stated_subject, stated_issuer) = match (certificate.subject(), certificate.issuer()) {
        (Ok(subject), Ok(issuer)) => (subject, issuer),
        (Err(error), _) | (_, Err(error)) => return Err(format!("its certificate: {error}")),
    };
    if !issuer.accepts(&stated_issuer) {
        return Err(format!("its certificate's issuer is `{}`", shown(&stated_issuer)));
    }
    if !subject.accepts(&stated_subject) {
        return Err(format!("its certificate is of `{}`", shown(&stated_subject)));
    }
    Ok(Identity::Certificate { subject: stated_subject, issuer: stated_issuer })
}

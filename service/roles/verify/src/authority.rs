//! Compiled authorities of a configuration: issuers of signers' certificates, logs and timestamp authorities.
//!
//! rustls (webpki) checks chains: signatures, validity, basic constraints, path length and critical extensions. This
//! module also checks the configured period of each root certificate, and the purpose that the signer's certificate
//! must state.

use rustls_pki_types::{CertificateDer, TrustAnchor, UnixTime as PkiTime};
use std::time::Duration;
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage, anchor_from_trusted_cert};
use x509_cert::der::asn1::ObjectIdentifier;

use crate::certificate::Certificate;
use crate::key::PublicKey;
use crate::time::UnixTime;

/// The object identifier `id-kp-codeSigning`.
pub(crate) const CODE_SIGNING: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.3");
/// The object identifier `id-kp-timeStamping`.
pub(crate) const TIME_STAMPING: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.8");
/// The object identifier `id-kp-codeSigning` in DER, for webpki.
const CODE_SIGNING_DER: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 3];
const TIME_STAMPING_DER: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 8];
/// Maximum number of logs of one kind (signatures or certificates) in one authority.
pub(crate) const LOGS_MAX: usize = 32;
/// Maximum number of certificate authorities of one kind (for signers or for timestamps) in one sigstore authority.
pub(crate) const CERTIFIERS_MAX: usize = 32;

#[derive(Debug, Clone, Default)]
pub(crate) struct Authority {
    pub(crate) name: String,
    pub(crate) certifiers: Vec<Certifier>,
    pub(crate) logs: Vec<Log>,
    pub(crate) ct_logs: Vec<Log>,
    pub(crate) timestampers: Vec<Certifier>,
    /// Descriptions of unknown content in the authority's file, each with its position.
    pub(crate) left_out: Vec<String>,
}

/// A certificate authority, for signers or for a timestamp authority.
#[derive(Debug, Clone)]
pub(crate) struct Certifier {
    pub(crate) roots: Vec<Root>,
    pub(crate) intermediates: Vec<CertificateDer<'static>>,
    /// A timestamp authority's certificates, for timestamp tokens that contain no certificate.
    pub(crate) leaves: Vec<Certificate>,
    pub(crate) period: Period,
}

#[derive(Debug, Clone)]
pub(crate) struct Root {
    pub(crate) anchor: TrustAnchor<'static>,
    pub(crate) certificate: Certificate,
}

/// A transparency log of signatures or of certificates.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    /// The log's id, which log entries name: SHA-256 of its key, or the value in a `trusted_root.json`.
    pub(crate) id: Vec<u8>,
    pub(crate) key: PublicKey,
    pub(crate) period: Period,
}

/// The period in which a key or certificate of an authority is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Period {
    pub(crate) start: Option<UnixTime>,
    pub(crate) end: Option<UnixTime>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    CodeSigning,
    TimeStamping,
}

impl Period {
    pub(crate) fn holds(self, time: UnixTime) -> bool {
        self.start.is_none_or(|start| start <= time) && self.end.is_none_or(|end| time <= end)
    }
}

impl Root {
    /// A root certificate as a trust anchor; `None` if the certificate is not a root.
    pub(crate) fn of(certificate: Certificate) -> Option<Self> {
        let anchor = anchor_from_trusted_cert(&certificate.der).ok()?.to_owned();
        Some(Self { anchor, certificate })
    }

    fn is_valid(&self, time: UnixTime) -> bool {
        let (first, last) = self.certificate.validity();
        first <= time && time <= last
    }
}

impl Certifier {
    /// Sorts the certificates of a chain, in any order, into roots, intermediates and leaves; the error is the chain's
    /// fault.
    pub(crate) fn of(chain: Vec<Certificate>, period: Period) -> Result<Self, &'static str> {
        let mut certifier = Self { roots: Vec::new(), intermediates: Vec::new(), leaves: Vec::new(), period };
        for certificate in chain {
            if certificate.is_root() {
                certifier.roots.push(Root::of(certificate).ok_or("a root certificate that cannot be used as one")?);
            } else if certificate.is_authority() {
                certifier.intermediates.push(certificate.der);
            } else {
                certifier.leaves.push(certificate);
            }
        }
        if certifier.roots.is_empty() {
            return Err(
                "no root among these certificates (one that is its own issuer): add the one at the end of the chain",
            );
        }
        Ok(certifier)
    }

    /// Checks that a chain leads from `leaf` to one of the roots, in which every certificate is valid at `time` and fit
    /// for `purpose`. `further` are intermediate certificates that came with the signature: the chain may contain them,
    /// but they are not trusted. Returns the public key of the leaf's issuer.
    pub(crate) fn certifies(
        &self,
        leaf: &Certificate,
        further: &[CertificateDer<'static>],
        time: UnixTime,
        purpose: Purpose,
    ) -> Result<PublicKey, String> {
        if !self.period.holds(time) {
            return Err(format!("its authority is not to be believed at {time}"));
        }
        purpose.is_of(leaf)?;
        let seconds = u64::try_from(time.0).map_err(|_| "it was signed before 1970".to_owned())?;
        let at = PkiTime::since_unix_epoch(Duration::from_secs(seconds));
        let end =
            EndEntityCert::try_from(&leaf.der).map_err(|error| format!("its certificate cannot be read: {error}"))?;
        let intermediates: Vec<_> = self.intermediates.iter().chain(further).cloned().collect();
        let mut failure = "none of the authority's roots was valid then".to_owned();
        for root in self.roots.iter().filter(|root| root.is_valid(time)) {
            let anchors = std::slice::from_ref(&root.anchor);
            let usage = KeyUsage::required_if_present(purpose.der());
            match end.verify_for_usage(ALL_VERIFICATION_ALGS, anchors, &intermediates, at, usage, None, None) {
                Ok(path) => {
                    let issuer = path.intermediate_certificates().next();
                    return match issuer {
                        Some(issuer) => PublicKey::from_spki(&issuer.subject_public_key_info())
                            .map_err(|error| format!("its issuer's key cannot be used: {error}")),
                        None => Ok(root.certificate.key.clone()),
                    };
                }
                Err(error) => failure = error.to_string(),
            }
        }
        Err(format!("its certificate does not lead to a root of the authority: {failure}"))
    }
}

impl Purpose {
    fn der(self) -> &'static [u8] {
        match self {
            Self::CodeSigning => CODE_SIGNING_DER,
            Self::TimeStamping => TIME_STAMPING_DER,
        }
    }

    /// Whether the signer's certificate states the purpose. For timestamps, the certificate must state no other
    /// purpose, and the extension must be critical (RFC 3161, section 2.3).
    fn is_of(self, leaf: &Certificate) -> Result<(), String> {
        let (critical, purposes) = leaf.purposes().unwrap_or_default();
        let (is_of, name) = match self {
            Self::CodeSigning => (purposes.contains(&CODE_SIGNING), "to sign code"),
            Self::TimeStamping => (critical && purposes == [TIME_STAMPING], "to state times alone"),
        };
        if is_of { Ok(()) } else { Err(format!("its certificate is not one {name} (extended key usage)")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use x509_cert::der::Encode as _;

    #[test]
    fn purposes_are_the_same_in_both_spellings() {
        for (id, der) in [(CODE_SIGNING, CODE_SIGNING_DER), (TIME_STAMPING, TIME_STAMPING_DER)] {
            assert_eq!(&id.to_der().unwrap()[2..], der);
        }
    }

    #[test]
    fn a_period_has_both_its_ends() {
        let period = Period { start: Some(UnixTime(10)), end: Some(UnixTime(20)) };
        assert!(period.holds(UnixTime(10)) && period.holds(UnixTime(20)));
        assert!(!period.holds(UnixTime(9)) && !period.holds(UnixTime(21)));
        assert!(Period::default().holds(UnixTime(0)));
    }
}

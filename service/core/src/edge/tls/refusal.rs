//! The reasons for refusing a client: a closed list, each with one label for metrics and logs and one sentence for
//! people.
//!
//! Pure. This module translates the library's errors; it decides nothing.

use rustls::CertificateError;

use super::verifier::LongLived;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    NoCertificate,
    Expired,
    NotYetValid,
    Revoked,
    /// No trusted authority has signed the certificate.
    UnknownIssuer,
    /// The certificate's signature or that of the handshake is not valid.
    BadSignature,
    /// The bytes are no X.509 certificate, or it has critical parts that are not understood.
    BadEncoding,
    /// The certificate is not for clients (extended key usage).
    Purpose,
    /// The list of revoked certificates is out of date.
    ListExpired,
    /// A list of revoked certificates is required and missing.
    NoList,
    /// The certificate is valid for longer than the rules allow.
    LongLived,
    /// None of its names is an accepted one.
    Name,
    /// Any other error of the library.
    Other,
}

impl Refusal {
    pub const ALL: [Self; 13] = [
        Self::NoCertificate,
        Self::Expired,
        Self::NotYetValid,
        Self::Revoked,
        Self::UnknownIssuer,
        Self::BadSignature,
        Self::BadEncoding,
        Self::Purpose,
        Self::ListExpired,
        Self::NoList,
        Self::LongLived,
        Self::Name,
        Self::Other,
    ];

    pub fn label(self) -> &'static str {
        match self {
            Self::NoCertificate => "no-certificate",
            Self::Expired => "expired",
            Self::NotYetValid => "not-yet-valid",
            Self::Revoked => "revoked",
            Self::UnknownIssuer => "unknown-issuer",
            Self::BadSignature => "bad-signature",
            Self::BadEncoding => "bad-encoding",
            Self::Purpose => "purpose",
            Self::ListExpired => "list-expired",
            Self::NoList => "no-list",
            Self::LongLived => "long-lived",
            Self::Name => "name",
            Self::Other => "other",
        }
    }

    pub fn text(self) -> &'static str {
        match self {
            Self::NoCertificate => "a client certificate is needed",
            Self::Expired => "the client certificate has expired",
            Self::NotYetValid => "the client certificate is not valid yet",
            Self::Revoked => "the client certificate was revoked",
            Self::UnknownIssuer => "the client certificate is from an unknown authority",
            Self::BadSignature => "a signature of the client certificate does not verify",
            Self::BadEncoding => "the client certificate cannot be read",
            Self::Purpose => "the certificate is not for clients",
            Self::ListExpired => "the list of revoked certificates is out of date",
            Self::NoList => "there is no list of revoked certificates for this authority",
            Self::LongLived => "the client certificate is valid for longer than is allowed",
            Self::Name => "none of the certificate's names is allowed to call",
            Self::Other => "the client certificate was refused",
        }
    }

    /// The refusal for the library's error about a client's certificate; `None` if the error is about something else.
    pub fn of(error: &rustls::Error) -> Option<Self> {
        match error {
            rustls::Error::NoCertificatesPresented => Some(Self::NoCertificate),
            rustls::Error::InvalidCertificate(error) => Some(Self::of_certificate(error)),
            _ => None,
        }
    }

    fn of_certificate(error: &CertificateError) -> Self {
        match error {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Self::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Self::NotYetValid,
            CertificateError::Revoked => Self::Revoked,
            CertificateError::UnknownIssuer => Self::UnknownIssuer,
            CertificateError::BadEncoding | CertificateError::UnhandledCriticalExtension => Self::BadEncoding,
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => Self::Purpose,
            CertificateError::ExpiredRevocationList | CertificateError::ExpiredRevocationListContext { .. } => {
                Self::ListExpired
            }
            CertificateError::UnknownRevocationStatus => Self::NoList,
            CertificateError::ApplicationVerificationFailure => Self::Name,
            CertificateError::Other(other) if other.0.is::<LongLived>() => Self::LongLived,
            CertificateError::BadSignature
            | CertificateError::UnsupportedSignatureAlgorithmContext { .. }
            | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => Self::BadSignature,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_reason_has_a_label_of_its_own() {
        let labels: BTreeSet<_> = Refusal::ALL.iter().map(|reason| reason.label()).collect();
        assert_eq!(labels.len(), Refusal::ALL.len());
    }
}

//! Certificates of signers: their identity and key. The module [`crate::authority`] decides whether a certificate is
//! trusted.

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use x509_cert::Certificate as X509;
use x509_cert::der::asn1::{ObjectIdentifier, Utf8StringRef};
use x509_cert::der::{Decode as _, Encode as _};
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{BasicConstraints, ExtendedKeyUsage, SubjectAltName};

use crate::key::{PublicKey, bounded};
use crate::time::UnixTime;

/// The extension with the identity's issuer as bare text. Fulcio's documentation calls this extension deprecated, but
/// Fulcio still writes it.
const ISSUER_V1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.57264.1.1");
/// The extension with the identity's issuer as a `UTF8String`.
const ISSUER_V2: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.57264.1.8");
/// The type of a user name in an `otherName` of the subject alternative name.
const USER_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.57264.1.7");

/// Largest certificate, in bytes: Fulcio's certificates have 800 bytes, certificates of RSA authorities with many
/// extensions 4,000.
const CERTIFICATE_BYTES_MAX: usize = 16 << 10;
/// Maximum number of certificates of one chain.
const CHAIN_MAX: usize = 10;
const NAMES_MAX: usize = 16;

/// A parsed certificate, which is not trusted yet.
#[derive(Debug, Clone)]
pub(crate) struct Certificate {
    pub(crate) der: CertificateDer<'static>,
    pub(crate) parsed: X509,
    pub(crate) key: PublicKey,
}

/// Why bytes are not a usable certificate. The text of the error becomes the cause of a rejected signature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CertificateError {
    #[error("{0}")]
    Pem(String),
    #[error("no PEM block `CERTIFICATE`")]
    NoBlock,
    #[error("{0} certificates, at most {CHAIN_MAX} make a chain")]
    TooMany(usize),
    #[error("not an X.509 certificate")]
    Encoding,
    #[error("its key cannot be used: {0}")]
    Key(String),
    #[error("it has no identity that could be compared: no mail address, URI or name in its subject alternative name")]
    NoName,
    #[error("{0} identities in its subject alternative name: which of them signed?")]
    Names(usize),
    #[error("it does not say who issued the identity (extension 1.3.6.1.4.1.57264.1.8)")]
    NoIssuer,
    #[error("it names two different issuers of the identity")]
    Issuers,
}

impl Certificate {
    pub(crate) fn from_der(der: &[u8]) -> Result<Self, CertificateError> {
        if der.len() > CERTIFICATE_BYTES_MAX {
            return Err(CertificateError::Encoding);
        }
        let parsed = X509::from_der(der).map_err(|_| CertificateError::Encoding)?;
        let spki = parsed.tbs_certificate.subject_public_key_info.to_der().map_err(|_| CertificateError::Encoding)?;
        let key = PublicKey::from_spki(&spki).map_err(|error| CertificateError::Key(error.to_string()))?;
        Ok(Self { der: CertificateDer::from(der.to_vec()), parsed, key })
    }

    /// Parses the first certificate in `pem`, and the certificates after it.
    pub(crate) fn from_pem(pem: &str) -> Result<(Self, Vec<Self>), CertificateError> {
        let mut all = Self::all_from_pem(pem)?;
        let first = all.remove(0);
        Ok((first, all))
    }

    /// Parses all certificates in `pem`; at least one must exist.
    pub(crate) fn all_from_pem(pem: &str) -> Result<Vec<Self>, CertificateError> {
        let pem = bounded(pem).map_err(|error| CertificateError::Pem(error.to_string()))?;
        let blocks = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>();
        let blocks = blocks.map_err(|error| CertificateError::Pem(format!("not PEM: {error}")))?;
        match blocks.len() {
            0 => Err(CertificateError::NoBlock),
            1..=CHAIN_MAX => blocks.iter().map(|der| Self::from_der(der)).collect(),
            count => Err(CertificateError::TooMany(count)),
        }
    }

    /// Whether the certificate names itself as its issuer.
    pub(crate) fn is_root(&self) -> bool {
        self.parsed.tbs_certificate.issuer == self.parsed.tbs_certificate.subject
    }

    /// Whether the certificate may sign other certificates.
    pub(crate) fn is_authority(&self) -> bool {
        let constraints = self.parsed.tbs_certificate.get::<BasicConstraints>().ok().flatten();
        constraints.is_some_and(|(_, constraints)| constraints.ca)
    }

    /// Start and end of the certificate's validity.
    pub(crate) fn validity(&self) -> (UnixTime, UnixTime) {
        let validity = &self.parsed.tbs_certificate.validity;
        let seconds = |time: &x509_cert::time::Time| {
            UnixTime(i64::try_from(time.to_unix_duration().as_secs()).unwrap_or(i64::MAX))
        };
        (seconds(&validity.not_before), seconds(&validity.not_after))
    }

    /// The purposes to which the certificate is restricted, and whether the restriction is critical; `None` without a
    /// restriction.
    pub(crate) fn purposes(&self) -> Option<(bool, Vec<ObjectIdentifier>)> {
        let (critical, usage) = self.parsed.tbs_certificate.get::<ExtendedKeyUsage>().ok().flatten()?;
        Some((critical, usage.0))
    }

    /// The identity of the signer: a mail address, URI or name. A certificate must have exactly one identity, because
    /// the signer would otherwise be ambiguous.
    pub(crate) fn subject(&self) -> Result<String, CertificateError> {
        let names = self.parsed.tbs_certificate.get::<SubjectAltName>().map_err(|_| CertificateError::Encoding)?;
        let names = names.map(|(_, names)| names.0).unwrap_or_default();
        if names.len() > NAMES_MAX {
            return Err(CertificateError::Names(names.len()));
        }
        let mut texts: Vec<String> = names.iter().filter_map(text_of).collect();
        match (texts.len(), names.len()) {
            (1, 1) => Ok(texts.remove(0)),
            (0, _) => Err(CertificateError::NoName),
            (_, count) => Err(CertificateError::Names(count)),
        }
    }

    /// URL of the issuer of the signer's identity.
    pub(crate) fn issuer(&self) -> Result<String, CertificateError> {
        let bare = self.extension(ISSUER_V1)?.map(|bytes| String::from_utf8(bytes.to_vec()));
        let bare = bare.transpose().map_err(|_| CertificateError::Encoding)?;
        let typed = self.extension(ISSUER_V2)?.map(|bytes| Utf8StringRef::from_der(bytes).map(|text| text.to_string()));
        let typed = typed.transpose().map_err(|_| CertificateError::Encoding)?;
        match (bare, typed) {
            (None, None) => Err(CertificateError::NoIssuer),
            (Some(bare), Some(typed)) if bare != typed => Err(CertificateError::Issuers),
            (Some(text), _) | (None, Some(text)) => Ok(text),
        }
    }

    /// Value of the extension `id`; an error if the extension is repeated.
    fn extension(&self, id: ObjectIdentifier) -> Result<Option<&[u8]>, CertificateError> {
        let all = self.parsed.tbs_certificate.extensions.as_deref().unwrap_or_default();
        let mut found = all.iter().filter(|extension| extension.extn_id == id);
        match (found.next(), found.next()) {
            (None, _) => Ok(None),
            (Some(one), None) => Ok(Some(one.extn_value.as_bytes())),
            (Some(_), Some(_)) => Err(CertificateError::Encoding),
        }
    }
}

fn text_of(name: &GeneralName) -> Option<String> {
    match name {
        GeneralName::Rfc822Name(text) | GeneralName::DnsName(text) | GeneralName::UniformResourceIdentifier(text) => {
            Some(text.to_string())
        }
        GeneralName::OtherName(other) if other.type_id == USER_NAME => {
            other.value.decode_as::<Utf8StringRef<'_>>().ok().map(|text| text.to_string())
        }
        _ => None,
    }
}

//! Public keys: which kinds are accepted, and how they check signatures.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P384_SHA256_ASN1, ECDSA_P384_SHA384_ASN1, ECDSA_P521_SHA256_ASN1,
    ECDSA_P521_SHA512_ASN1, ED25519, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256, VerificationAlgorithm,
};
use rustls_pki_types::pem::{PemObject as _, SectionKind};
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::der::{AnyRef, Decode as _, Encode as _};
use x509_cert::spki::SubjectPublicKeyInfoRef;

use crate::digest::Digest;

const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
const P521: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.35");
const EDWARDS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");

/// The y coordinates of all Ed25519 points whose order divides eight. Some encodings exceed the field size, which RFC
/// 8032, section 5.1.3, forbids but some libraries accept. As a key, such a point would accept a signature over any
/// message. The last bit of an encoding is the sign of x.
const SMALL_ORDER: [[u8; 32]; 7] = [
    small(0x00, 0x00, 0x00),
    small(0x01, 0x00, 0x00),
    [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5, 0xdf,
        0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
    ],
    [
        0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a, 0x20,
        0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a,
    ],
    small(0xec, 0xff, 0x7f),
    small(0xed, 0xff, 0x7f),
    small(0xee, 0xff, 0x7f),
];

const fn small(first: u8, middle: u8, last: u8) -> [u8; 32] {
    let mut bytes = [middle; 32];
    (bytes[0], bytes[31]) = (first, last);
    bytes
}

/// First byte of an uncompressed point, the form that all tools write (SEC 1, section 2.3.3).
const UNCOMPRESSED: u8 = 4;
/// Longest encoding of a key, in bytes: a key of RSA with 8192 bits has 1,062 bytes.
const KEY_BYTES_MAX: usize = 2048;
/// Longest PEM text with keys or certificates, in bytes: enough for some hundred blocks.
pub(crate) const PEM_BYTES_MAX: usize = 256 << 10;

/// A public key that checks signatures. A clone costs little.
#[derive(Clone)]
pub(crate) struct PublicKey(Arc<Inner>);

struct Inner {
    algorithm: KeyAlgorithm,
    spki: Vec<u8>,
    fingerprint: Digest,
    /// The parsed keys, one for each hash function that tools use with this kind of key.
    ways: Vec<ParsedPublicKey>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum KeyAlgorithm {
    P256,
    P384,
    P521,
    Ed25519,
    Rsa,
}

/// Why bytes are not a usable key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyError {
    #[error("no PEM block `PUBLIC KEY`: paste the text of cosign.pub, from -----BEGIN to END-----")]
    NoBlock,
    #[error("a PEM block that is no public key ({0}): paste the text of cosign.pub")]
    OtherBlock(&'static str),
    #[error("{0} public keys where one is expected: make a trust root of each")]
    Several(usize),
    #[error("not PEM: {0}")]
    Pem(String),
    #[error("not a public key in the form SubjectPublicKeyInfo (PKIX)")]
    Encoding,
    #[error("a key of a kind that is not used for signatures of images: P-256, P-384, P-521, Ed25519 and RSA are")]
    Kind,
    #[error("not a valid {0} key; RSA keys have 2048 to 8192 bits")]
    Value(&'static str),
}

impl KeyAlgorithm {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::P256 => "P-256",
            Self::P384 => "P-384",
            Self::P521 => "P-521",
            Self::Ed25519 => "Ed25519",
            Self::Rsa => "RSA",
        }
    }
}

impl PublicKey {
    /// Parses the only `PUBLIC KEY` in `pem`.
    pub(crate) fn from_pem(pem: &str) -> Result<Self, KeyError> {
        let mut keys = Self::all_from_pem(pem)?;
        match keys.len() {
            1 => Ok(keys.remove(0)),
            count => Err(KeyError::Several(count)),
        }
    }

    /// Parses all `PUBLIC KEY` blocks in `pem`, at least one. PEM blocks of other types are an error.
    pub(crate) fn all_from_pem(pem: &str) -> Result<Vec<Self>, KeyError> {
        let mut keys = Vec::new();
        for block in <(SectionKind, Vec<u8>)>::pem_slice_iter(bounded(pem)?.as_bytes()) {
            match block.map_err(|error| KeyError::Pem(error.to_string()))? {
                (SectionKind::PublicKey, der) => keys.push(Self::from_spki(&der)?),
                (SectionKind::Certificate, _) => return Err(KeyError::OtherBlock("a certificate")),
                (SectionKind::PrivateKey | SectionKind::RsaPrivateKey | SectionKind::EcPrivateKey, _) => {
                    return Err(KeyError::OtherBlock("a private key, which belongs nowhere near here"));
                }
                _ => return Err(KeyError::OtherBlock("something else")),
            }
        }
        if keys.is_empty() { Err(KeyError::NoBlock) } else { Ok(keys) }
    }

    /// Parses a `SubjectPublicKeyInfo` in DER.
    pub(crate) fn from_spki(der: &[u8]) -> Result<Self, KeyError> {
        if der.len() > KEY_BYTES_MAX {
            return Err(KeyError::Encoding);
        }
        let info = SubjectPublicKeyInfoRef::from_der(der).map_err(|_| KeyError::Encoding)?;
        // A key must have one encoding, because its bytes are compared and fingerprinted below.
        if info.to_der().map_err(|_| KeyError::Encoding)? != der {
            return Err(KeyError::Encoding);
        }
        let curve = info.algorithm.parameters_oid().ok();
        // RSA has NULL as its parameters (RFC 3279, 2.3.1) and Ed25519 has none (RFC 8410, 3): otherwise one key would
        // have two encodings, and count twice.
        let is_one_encoding = match info.algorithm.oid {
            RSA => info.algorithm.parameters.is_some_and(AnyRef::is_null),
            EDWARDS => info.algorithm.parameters.is_none(),
            _ => true,
        };
        if !is_one_encoding {
            return Err(KeyError::Encoding);
        }
        let (algorithm, ways): (_, &[&'static dyn VerificationAlgorithm]) = match (info.algorithm.oid, curve) {
            (EC, Some(P256)) => (KeyAlgorithm::P256, &[&ECDSA_P256_SHA256_ASN1]),
            // cosign 2 signs with SHA-256 for every curve, cosign 3 with the hash of the curve's strength.
            (EC, Some(P384)) => (KeyAlgorithm::P384, &[&ECDSA_P384_SHA384_ASN1, &ECDSA_P384_SHA256_ASN1]),
            (EC, Some(P521)) => (KeyAlgorithm::P521, &[&ECDSA_P521_SHA512_ASN1, &ECDSA_P521_SHA256_ASN1]),
            (EDWARDS, None) => (KeyAlgorithm::Ed25519, &[&ED25519]),
            (RSA, None) => (KeyAlgorithm::Rsa, &[&RSA_PKCS1_2048_8192_SHA256]),
            _ => return Err(KeyError::Kind),
        };
        let bits = info.subject_public_key.as_bytes().ok_or(KeyError::Encoding)?;
        if info.algorithm.oid == EC && bits.first() != Some(&UNCOMPRESSED) {
            return Err(KeyError::Encoding);
        }
        if info.algorithm.oid == EDWARDS && is_of_small_order(bits) {
            return Err(KeyError::Value(algorithm.name()));
        }
        let ways = ways.iter().map(|way| ParsedPublicKey::new(*way, bits)).collect::<Result<Vec<_>, _>>();
        let ways = ways.map_err(|_| KeyError::Value(algorithm.name()))?;
        Ok(Self(Arc::new(Inner { algorithm, spki: der.to_vec(), fingerprint: Digest::of(der), ways })))
    }

    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        self.0.ways.iter().any(|way| way.verify_sig(message, signature).is_ok())
    }

    pub(crate) fn algorithm(&self) -> KeyAlgorithm {
        self.0.algorithm
    }

    pub(crate) fn spki(&self) -> &[u8] {
        &self.0.spki
    }

    pub(crate) fn fingerprint(&self) -> Digest {
        self.0.fingerprint
    }
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.spki == other.0.spki
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} key {}", self.algorithm().name(), self.fingerprint())
    }
}

fn is_of_small_order(point: &[u8]) -> bool {
    let Ok(mut y) = <[u8; 32]>::try_from(point) else { return false };
    y[31] &= 0x7f;
    SMALL_ORDER.contains(&y)
}

/// Returns `pem` if it is not too long.
pub(crate) fn bounded(pem: &str) -> Result<&str, KeyError> {
    if pem.len() > PEM_BYTES_MAX {
        return Err(KeyError::Pem(format!("{} bytes, at most {PEM_BYTES_MAX} are read", pem.len())));
    }
    Ok(pem)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEhyQCx0E9wQWSFI9ULGwy3BuRklnt\nIqozONbbdbqz11hlRJy9c7SG+hdcFl9jE9uE/dwtuwU2MqU9T/cN0YkWww==\n-----END PUBLIC KEY-----\n";

    #[test]
    fn a_message_says_what_was_pasted_instead_of_a_key() {
        assert_eq!(PublicKey::from_pem("cosign.pub"), Err(KeyError::NoBlock));
        assert_eq!(PublicKey::from_pem(""), Err(KeyError::NoBlock));
        let private = GOOD.replace("PUBLIC", "PRIVATE");
        assert!(matches!(PublicKey::from_pem(&private), Err(KeyError::OtherBlock(text)) if text.contains("private")));
        let certificate = GOOD.replace("PUBLIC KEY", "CERTIFICATE");
        assert!(matches!(PublicKey::from_pem(&certificate), Err(KeyError::OtherBlock("a certificate"))));
        assert_eq!(PublicKey::from_pem(&format!("{GOOD}{GOOD}")), Err(KeyError::Several(2)));
        assert_eq!(PublicKey::from_pem(&GOOD.replace("9wQW", "9wQX")), Err(KeyError::Value("P-256")));
        assert!(matches!(PublicKey::from_pem(&"-".repeat(300 << 10)), Err(KeyError::Pem(_))));
        assert_eq!(PublicKey::from_pem(GOOD).unwrap().algorithm(), KeyAlgorithm::P256);
    }

    /// A key in compressed form is refused, because one key in two encodings would have two fingerprints.
    #[test]
    fn a_compressed_point_is_not_read() {
        let good = PublicKey::from_pem(GOOD).unwrap();
        let (head, point) = good.spki().split_at(good.spki().len() - 65);
        let mut compressed = [head, &[2 + (point[64] & 1)], &point[1..33]].concat();
        // The lengths of the whole, and of the bits.
        (compressed[1], compressed[24]) = (0x39, 0x22);
        assert_eq!(PublicKey::from_spki(good.spki()), Ok(good.clone()));
        assert_eq!(PublicKey::from_spki(&compressed), Err(KeyError::Encoding));
    }

    fn ed25519(parameters: &[u8], point: [u8; 32]) -> Vec<u8> {
        let length = |bytes: usize| u8::try_from(bytes).unwrap();
        let algorithm = [&[0x06, 0x03, 0x2b, 0x65, 0x70], parameters].concat();
        let bits = [&[0x03, 0x21, 0x00], &point[..]].concat();
        let head = [0x30, length(2 + algorithm.len() + bits.len()), 0x30, length(algorithm.len())];
        [&head, &algorithm[..], &bits].concat()
    }

    /// The public key of RFC 8032, section 7.1, test 1.
    const POINT: [u8; 32] = [
        0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7, 0xd5, 0x4b, 0xfe, 0xd3, 0xc9, 0x64, 0x07, 0x3a, 0x0e, 0xe1,
        0x72, 0xf3, 0xda, 0xa6, 0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07, 0x51, 0x1a,
    ];

    /// A key with unusual algorithm parameters is refused, because the same key with usual parameters would count as
    /// another signer.
    #[test]
    fn a_key_has_one_encoding_of_its_parameters() {
        assert!(PublicKey::from_spki(&ed25519(&[], POINT)).is_ok());
        assert_eq!(PublicKey::from_spki(&ed25519(&[0x05, 0x00], POINT)), Err(KeyError::Encoding));
    }

    /// The identity point is refused as a key, because a signature of zeros would be valid for any message.
    #[test]
    fn a_point_of_small_order_is_no_key() {
        for mut point in SMALL_ORDER {
            for sign in [0x00, 0x80] {
                point[31] = (point[31] & 0x7f) | sign;
                assert_eq!(PublicKey::from_spki(&ed25519(&[], point)), Err(KeyError::Value("Ed25519")), "{point:x?}");
            }
        }
    }
}

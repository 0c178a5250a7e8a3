//! The key that signs tokens: P-256 or RSA, generated or read like kube-apiserver's
//! `--service-account-signing-key-file`.
//!
//! Owns the differences between P-256 and RSA keys. Keys on curves other than P-256 are refused.

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_SHA256, UnparsedPublicKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Value, json};

/// The bytes before the curve point of a P-256 key in a `SubjectPublicKeyInfo` (RFC 5480).
const SPKI_PREFIX: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// Why tokens cannot be signed.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error("it is no private key in PEM")]
    Pem(#[source] rustls_pki_types::pem::Error),
    #[error("it is neither an RSA key nor one of the curve P-256")]
    Kind,
    #[error("the cryptographic library refused it")]
    Library(#[from] aws_lc_rs::error::Unspecified),
}

pub(super) enum Key {
    Curve(Box<EcdsaKeyPair>),
    Rsa(Box<rsa::KeyPair>),
}

impl Key {
    pub fn generate() -> Result<Self, Unusable> {
        Ok(Self::Curve(Box::new(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING)?)))
    }

    /// Reads a PEM key: PKCS#8, PKCS#1 or SEC 1.
    pub fn read(pem: &str) -> Result<Self, Unusable> {
        let der = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(Unusable::Pem)?;
        let der = der.secret_der();
        let curve = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der)
            .or_else(|_| EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_FIXED_SIGNING, der));
        if let Ok(curve) = curve {
            return Ok(Self::Curve(Box::new(curve)));
        }
        let rsa = rsa::KeyPair::from_pkcs8(der).or_else(|_| rsa::KeyPair::from_der(der)).map_err(|_| Unusable::Kind)?;
        Ok(Self::Rsa(Box::new(rsa)))
    }

    pub fn algorithm(&self) -> &'static str {
        match self {
            Self::Curve(_) => "ES256",
            Self::Rsa(_) => "RS256",
        }
    }

    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Unusable> {
        let random = SystemRandom::new();
        match self {
            Self::Curve(key) => Ok(key.sign(&random, message)?.as_ref().to_vec()),
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)?;
                Ok(signature)
            }
        }
    }

    pub fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), Unusable> {
        match self {
            Self::Curve(key) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.public_key().as_ref())
                    .verify(message, signature)?;
            }
            Self::Rsa(key) => {
                UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.public_key().as_ref())
                    .verify(message, signature)?;
            }
        }
        Ok(())
    }

    /// The public key as `SubjectPublicKeyInfo` (RFC 5280); its hash is the name of the key.
    pub fn spki(&self) -> Vec<u8> {
        match self {
            Self::Curve(key) => [SPKI_PREFIX, key.public_key().as_ref()].concat(),
            Self::Rsa(key) => {
                let der: Result<PublicKeyX509Der<'_>, _> = key.public_key().as_der();
                der.map(|der| der.as_ref().to_vec()).unwrap_or_default()
            }
        }
    }

    /// The parameters of the public key in a JSON web key.
    pub fn public(&self) -> Value {
        match self {
            Self::Curve(key) => {
                // An uncompressed point (SEC 1, 2.3.3): 4, then both coordinates.
                let (x, y) = key.public_key().as_ref()[1..].split_at(32);
                json!({"kty": "EC", "crv": "P-256", "x": BASE64URL.encode(x), "y": BASE64URL.encode(y)})
            }
            Self::Rsa(key) => {
                // `RSAPublicKey` (RFC 8017, A.1.1): a sequence of two numbers.
                let numbers = value(key.public_key().as_ref()).map(|(numbers, _)| numbers);
                let (n, rest) = numbers.and_then(value).unwrap_or_default();
                let (e, _) = value(rest).unwrap_or_default();
                let number = |bytes: &[u8]| BASE64URL.encode(bytes.strip_prefix(&[0]).unwrap_or(bytes));
                json!({"kty": "RSA", "n": number(n), "e": number(e)})
            }
        }
    }
}

/// The first value in some DER (X.690, 8.1), and the bytes after that value.
fn value(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = der.get(1..)?.split_first()?;
    let (length, rest) = match usize::from(length) {
        short @ 0..=0x7f => (short, rest),
        long => {
            let (digits, rest) = rest.split_at_checked(long & 0x7f).filter(|(digits, _)| digits.len() <= 4)?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
    };
    rest.split_at_checked(length)
}

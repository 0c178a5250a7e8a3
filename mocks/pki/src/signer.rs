//! A key that signs data other than certificates: an image, an entry of a log.

use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, SigningKey as _};

use super::Error;

/// A P-256 key, as `cosign generate-key-pair` makes it. The private half never leaves memory.
pub struct Signer {
    key: KeyPair,
    public_pem: String,
}

impl Signer {
    /// Makes a fresh key; `name` is for messages.
    pub fn generate(name: &str) -> Result<Self, Error> {
        let issue = |source| Error::Issue { name: name.to_owned(), source };
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(issue)?;
        Ok(Self { public_pem: key.public_key_pem(), key })
    }

    /// The public key as PEM (SPKI).
    pub fn public_pem(&self) -> &str {
        &self.public_pem
    }

    /// ECDSA over the SHA-256 of `bytes`, as DER (RFC 3279). No two signatures of the same bytes are equal.
    pub fn sign(&self, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        self.key.sign(bytes).map_err(|source| Error::Issue { name: "a signature".to_owned(), source })
    }
}

impl std::fmt::Debug for Signer {
    /// Prints no private key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signer").field("public_pem", &self.public_pem).finish_non_exhaustive()
    }
}

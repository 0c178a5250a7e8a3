//! A key that signs data other than certificates, such as images and log entries.

use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, SigningKey as _};

use super::Error;

/// A P-256 key, as made by `cosign generate-key-pair`. The private key is only in memory.
pub struct Signer {
    key: KeyPair,
    public_pem: String,
}

impl Signer {
    /// Makes a new key; `name` is used in error messages.
    pub fn generate(name: &str) -> Result<Self, Error> {
        let issue = |source| Error::Issue { name: name.to_owned(), source };
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(issue)?;
        Ok(Self { public_pem: key.public_key_pem(), key })
    }

    /// The public key as PEM (SPKI).
    pub fn public_pem(&self) -> &str {
        &self.public_pem
    }

    /// An ECDSA signature over the SHA-256 of `bytes`, as DER (RFC 3279). Two signatures of the same bytes differ.
    pub fn sign(&self, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        self.key.sign(bytes).map_err(|source| Error::Issue { name: "a signature".to_owned(), source })
    }
}

impl std::fmt::Debug for Signer {
    /// Leaves the private key out.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signer").field("public_pem", &self.public_pem).finish_non_exhaustive()
    }
}

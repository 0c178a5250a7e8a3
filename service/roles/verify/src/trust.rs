//! The trusted keys and identities of a configuration. Trust is compiled when the configuration is loaded, so that a
//! wrong key is found before the first image is verified.

mod compile;
mod fingerprint;
mod trusted_root;

use crate::authority::Authority;
use crate::key::PublicKey;
use crate::pattern::Pattern;

pub use fingerprint::Fingerprint;

/// The trusted keys and identities as text.
#[derive(Debug, Clone, Default)]
pub struct TrustSpec {
    /// Trust roots, at most 64, with different names.
    pub roots: Vec<RootSpec>,
    /// Certificate authorities, logs and timestamp authorities to which roots refer: at most 16, with different names.
    pub authorities: Vec<AuthoritySpec>,
}

#[derive(Debug, Clone)]
pub struct RootSpec {
    /// The root's name in rules and verdicts.
    pub name: String,
    pub kind: RootKind,
    /// Names of the authorities whose certificates, logs and timestamps the root trusts. A root with a key needs no
    /// authority if no log entry is demanded.
    pub authorities: Vec<String>,
}

#[derive(Debug, Clone)]
pub enum RootKind {
    /// A public key as PEM (`PUBLIC KEY`): P-256, P-384, P-521, Ed25519, or RSA of 2048 to 8192 bits.
    Key { pem: String },
    /// Any signer with this issuer and subject, certified by the root's authorities.
    Keyless {
        /// URL of the `OpenID` issuer, for example `https://token.actions.githubusercontent.com`.
        issuer: Pattern,
        /// The signer's mail address, URI or name.
        subject: Pattern,
    },
}

/// A sigstore instance: certificate authorities, logs and timestamp authorities.
#[derive(Debug, Clone)]
pub struct AuthoritySpec {
    /// The authority's name, to which roots refer.
    pub name: String,
    pub text: AuthorityText,
}

#[derive(Debug, Clone)]
pub enum AuthorityText {
    /// A `trusted_root.json` (`application/vnd.dev.sigstore.trustedroot+json;version=0.1` or `0.2`).
    TrustedRoot {
        json: String,
    },
    Listed(Listed),
}

/// Keys and certificates of an authority as separate texts. Each text is PEM and may have several blocks.
#[derive(Debug, Clone, Default)]
pub struct Listed {
    /// Roots and intermediates of the certificate authority. A certificate that is its own issuer is a root.
    pub certificate_authorities: Vec<String>,
    /// Public keys of transparency logs (Rekor v1).
    pub log_keys: Vec<String>,
    /// Public keys of certificate transparency logs.
    pub ct_log_keys: Vec<String>,
    /// Certificate chains of timestamp authorities: roots, intermediates, and leaves for timestamps that contain no
    /// certificate.
    pub timestamp_authorities: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct Trust {
    fingerprint: Fingerprint,
    roots: Vec<TrustRoot>,
    authorities: Vec<Authority>,
}

#[derive(Debug, Clone)]
pub(crate) struct TrustRoot {
    pub(crate) name: String,
    pub(crate) accepts: Accepts,
    /// The root's authorities, as indices into [`Trust::authorities`].
    authorities: Vec<usize>,
}

#[derive(Debug, Clone)]
pub(crate) enum Accepts {
    Key(PublicKey),
    Keyless { issuer: Pattern, subject: Pattern },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {cause}")]
pub struct TrustError {
    /// The position of the error in [`TrustSpec`], such as `roots[release]` or `authorities[public].log_keys[0]`.
    pub place: String,
    /// The reason for the error, and how to fix it.
    pub cause: String,
}

impl Trust {
    /// Parses and checks all keys, certificates and patterns in `spec`, and computes the fingerprint.
    pub fn compile(spec: &TrustSpec) -> Result<Self, TrustError> {
        compile::compile(spec)
    }

    /// The fingerprint of this trust: equal for equal trust, different for any other trust.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Names of the roots, in the order of the configuration.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.roots.iter().map(|root| root.name.as_str())
    }

    /// Descriptions of unknown content in authorities' files, each with position and cause. Unknown content is not
    /// trusted.
    pub fn left_out(&self) -> impl Iterator<Item = &str> {
        self.authorities.iter().flat_map(|authority| authority.left_out.iter().map(String::as_str))
    }

    pub(crate) fn roots(&self) -> &[TrustRoot] {
        &self.roots
    }

    pub(crate) fn authorities<'a>(&'a self, root: &'a TrustRoot) -> impl Iterator<Item = &'a Authority> + Clone {
        root.authorities.iter().filter_map(|place| self.authorities.get(*place))
    }
}

impl TrustError {
    fn new(place: impl Into<String>, cause: impl Into<String>) -> Self {
        Self { place: place.into(), cause: cause.into() }
    }
}

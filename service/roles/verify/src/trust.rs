//! The trust of a configuration, compiled once: a wrong key is found when the configuration is loaded, not at the first
//! image.

mod compile;
mod fingerprint;
mod trusted_root;

use crate::authority::Authority;
use crate::key::PublicKey;
use crate::pattern::Pattern;

pub use fingerprint::Fingerprint;

/// All trust of a configuration, as text.
#[derive(Debug, Clone, Default)]
pub struct TrustSpec {
    /// Trust roots; their names are distinct. At most 64.
    pub roots: Vec<RootSpec>,
    /// Authorities that roots name: certificate authorities, logs, timestamp authorities; their names are distinct. At
    /// most 16.
    pub authorities: Vec<AuthoritySpec>,
}

#[derive(Debug, Clone)]
pub struct RootSpec {
    /// Its name, which rules use and verdicts show.
    pub name: String,
    /// The key or identity that it trusts.
    pub kind: RootKind,
    /// Names of the authorities whose certificates, logs and timestamps it trusts. A key that need not be in a log
    /// needs none.
    pub authorities: Vec<String>,
}

#[derive(Debug, Clone)]
pub enum RootKind {
    /// A public key as PEM (`PUBLIC KEY`): P-256, P-384, P-521, Ed25519, or RSA of 2048 to 8192 bits.
    Key { pem: String },
    /// Any signer certified by the root's authorities with this issuer and subject.
    Keyless {
        /// URL of the `OpenID` issuer, for example `https://token.actions.githubusercontent.com`.
        issuer: Pattern,
        /// Mail address, URI or name.
        subject: Pattern,
    },
}

/// A sigstore instance: certificate authorities, logs and timestamp authorities.
#[derive(Debug, Clone)]
pub struct AuthoritySpec {
    /// Its name, which roots use.
    pub name: String,
    pub text: AuthorityText,
}

/// Keys and certificates of an authority.
#[derive(Debug, Clone)]
pub enum AuthorityText {
    /// A `trusted_root.json` (`application/vnd.dev.sigstore.trustedroot+json;version=0.1` or `0.2`).
    TrustedRoot {
        json: String,
    },
    Listed(Listed),
}

/// Keys and certificates listed one by one. Each text is PEM and may hold several blocks.
#[derive(Debug, Clone, Default)]
pub struct Listed {
    /// Roots and intermediates of the certificate authority. A certificate that is its own issuer is a root.
    pub certificate_authorities: Vec<String>,
    /// Public keys of transparency logs (Rekor v1).
    pub log_keys: Vec<String>,
    /// Public keys of certificate transparency logs.
    pub ct_log_keys: Vec<String>,
    /// Chains of timestamp authorities: roots, intermediates, and leaves for timestamps that carry none.
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
    /// Indices into [`Trust::authorities`].
    authorities: Vec<usize>,
}

/// Signers that a root accepts.
#[derive(Debug, Clone)]
pub(crate) enum Accepts {
    Key(PublicKey),
    Keyless { issuer: Pattern, subject: Pattern },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {cause}")]
pub struct TrustError {
    /// The place: `roots[release]` or `authorities[public].log_keys[0]`, as [`TrustSpec`] is laid out.
    pub place: String,
    /// The reason and the remedy.
    pub cause: String,
}

impl Trust {
    /// Reads, checks and fingerprints everything.
    pub fn compile(spec: &TrustSpec) -> Result<Self, TrustError> {
        compile::compile(spec)
    }

    /// The trust generation: equal for equal trust, different for any other.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Names of the roots, in the order of the configuration.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.roots.iter().map(|root| root.name.as_str())
    }

    /// The unknown parts of authorities' files, each with its place and cause: they are left out, and nothing that
    /// depends on them alone is proved.
    pub fn left_out(&self) -> impl Iterator<Item = &str> {
        self.authorities.iter().flat_map(|authority| authority.left_out.iter().map(String::as_str))
    }

    pub(crate) fn roots(&self) -> &[TrustRoot] {
        &self.roots
    }

    /// The authorities that `root` trusts.
    pub(crate) fn authorities<'a>(&'a self, root: &'a TrustRoot) -> impl Iterator<Item = &'a Authority> + Clone {
        root.authorities.iter().filter_map(|place| self.authorities.get(*place))
    }
}

impl TrustError {
    fn new(place: impl Into<String>, cause: impl Into<String>) -> Self {
        Self { place: place.into(), cause: cause.into() }
    }
}

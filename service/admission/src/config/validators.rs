//! The section `validators`: the validators of images, and the keys that they trust.
//!
//! This module owns how validators and trust roots are written, which is Connaisseur's format. This module keeps keys
//! and certificates as texts or file names; the validators read and check them.

mod remote;
mod trust_root;

use std::path::PathBuf;

use serde::Deserialize;

use super::{Checker, Error};
pub(super) use remote::RawRemote;
pub use remote::{Form, Provider, Remote, Way};
pub(super) use trust_root::RawTrustRoot;
use trust_root::one_of;
pub use trust_root::{Constraint, Root, TrustRoot};

/// The validator of rules that name no validator.
pub const DEFAULT: &str = "default";
/// Maximum number of validators. Each validator is compiled and kept in memory; also, people cannot oversee more
/// validators.
const VALIDATORS_MAX: usize = 100;
/// Maximum number of trust roots of one validator, because each signature is compared with each root.
const ROOTS_MAX: usize = 64;

/// A configured validator, which decides whether an image may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validator {
    pub name: String,
    pub kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Gives the same verdict for every image.
    Static { approve: bool },
    /// Verifies signatures in the formats of cosign.
    Cosign(Cosign),
    /// Asks another process of this service, or another server that implements docs/contract.md.
    Remote(Remote),
    /// Asks a provider for Gatekeeper's external data.
    ExternalData(Provider),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cosign {
    /// The trust roots; at least one, with unique names.
    pub roots: Vec<TrustRoot>,
    /// Sigstore's `trusted_root.json`: authorities, logs and timestamp authorities.
    pub trusted_root: Option<PathBuf>,
    /// The public key of the transparency log.
    pub rekor_pubkey: Option<Text>,
    /// The authority (Fulcio) that issues signers' certificates.
    pub fulcio_cert: Option<Text>,
    /// The public key of the certificate transparency log.
    pub ct_log_pubkey: Option<Text>,
    /// Certificates of timestamp authorities, which all trust roots accept.
    pub timestamp_cert: Option<Text>,
}

/// A PEM text, or the file that contains it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text {
    Inline(String),
    File(PathBuf),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawValidator {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: RawKind,
    pub approve: Option<bool>,
    #[serde(default)]
    pub trust_roots: Vec<RawTrustRoot>,
    pub trusted_root_file: Option<PathBuf>,
    #[serde(default)]
    pub host: RawHost,
    pub remote: Option<RawRemote>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum RawKind {
    Static,
    Cosign,
    Remote,
    ExternalData,
    Notation,
    Notaryv1,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct RawHost {
    pub rekor_pubkey: Option<String>,
    pub rekor_pubkey_file: Option<PathBuf>,
    pub fulcio_cert: Option<String>,
    pub fulcio_cert_file: Option<PathBuf>,
    pub ct_log_pubkey: Option<String>,
    pub ct_log_pubkey_file: Option<PathBuf>,
    pub ts_cert: Option<String>,
    pub ts_cert_file: Option<PathBuf>,
}

impl Cosign {
    pub fn root(&self, name: &str) -> Option<&TrustRoot> {
        self.roots.iter().find(|root| root.name == name)
    }

    /// Every file that contains trusted keys or certificates.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        let texts = [&self.rekor_pubkey, &self.fulcio_cert, &self.ct_log_pubkey, &self.timestamp_cert];
        let texts = texts.into_iter().flatten().chain(self.roots.iter().flat_map(TrustRoot::texts));
        let files = texts.filter_map(|text| match text {
            Text::File(path) => Some(path),
            Text::Inline(_) => None,
        });
        files.chain(&self.trusted_root)
    }
}

impl Checker<'_> {
    pub(super) fn validators(&self, raw: Vec<RawValidator>) -> Result<Vec<Validator>, Error> {
        self.within("validators", raw.len() as u64, 0, VALIDATORS_MAX as u64)?;
        let mut validators: Vec<Validator> = Vec::with_capacity(raw.len());
        for (index, raw) in raw.into_iter().enumerate() {
            let key = format!("validators[{index}]");
            if raw.name.is_empty() {
                return Err(self.value(format!("{key}.name"), "is empty: rules name validators by it"));
            }
            if let Some(first) = validators.iter().position(|other| other.name == raw.name) {
                return Err(self.value(format!("{key}.name"), format!("is the name of validators[{first}] already")));
            }
            validators.push(self.validator(&key, raw)?);
        }
        Ok(validators)
    }

    pub(super) fn validator(&self, key: &str, raw: RawValidator) -> Result<Validator, Error> {
        let key = |name: &str| format!("{key}.{name}");
        let asks = matches!(raw.kind, RawKind::Remote | RawKind::ExternalData);
        if !asks && raw.remote.is_some() {
            return Err(self.value(key("remote"), "has an effect with `type: remote` and `type: externalData` only"));
        }
        let trusts = !raw.trust_roots.is_empty() || raw.trusted_root_file.is_some() || raw.host != RawHost::default();
        if asks && (trusts || raw.approve.is_some()) {
            let what = "asks somebody else, who has the trust: remove approve, trustRoots, host, trustedRootFile";
            return Err(self.value(key("type"), what));
        }
        let kind = match raw.kind {
            RawKind::Remote => Kind::Remote(self.remote(&key, &raw.name, raw.remote)?),
            RawKind::ExternalData => Kind::ExternalData(self.provider(&key, raw.remote)?),
            RawKind::Static => {
                if trusts {
                    return Err(
                        self.value(key("type"), "static trusts nobody: remove trustRoots, host, trustedRootFile")
                    );
                }
                let missing = || self.value(key("approve"), "is needed beside `type: static`: true or false");
                Kind::Static { approve: raw.approve.ok_or_else(missing)? }
            }
            RawKind::Notation | RawKind::Notaryv1 => {
                let name = if raw.kind == RawKind::Notation { "notation" } else { "notaryv1" };
                return Err(self.value(
                    key("type"),
                    format!("`{name}` is not built in: use cosign, static, remote or externalData"),
                ));
            }
            RawKind::Cosign if !cfg!(feature = "verify") => {
                let what = "`cosign` is not built in: this program was built without the feature `verify`";
                return Err(self.value(key("type"), what));
            }
            RawKind::Cosign if raw.approve.is_some() => {
                return Err(self.value(key("approve"), "has an effect with `type: static` only"));
            }
            RawKind::Cosign => Kind::Cosign(self.cosign(&key, raw.trust_roots, raw.trusted_root_file, raw.host)?),
        };
        Ok(Validator { name: raw.name, kind })
    }

    fn cosign(
        &self,
        key: &dyn Fn(&str) -> String,
        raw: Vec<RawTrustRoot>,
        trusted_root: Option<PathBuf>,
        host: RawHost,
    ) -> Result<Cosign, Error> {
        self.within(&key("trustRoots"), raw.len() as u64, 1, ROOTS_MAX as u64)?;
        let mut roots: Vec<TrustRoot> = Vec::with_capacity(raw.len());
        for (index, raw) in raw.into_iter().enumerate() {
            let key = key(&format!("trustRoots[{index}]"));
            let root = self.trust_root(&key, raw)?;
            if roots.iter().any(|other| other.name == root.name) {
                return Err(self.value(format!("{key}.name"), format!("`{}` is there twice", root.name)));
            }
            roots.push(root);
        }
        let text = |name: &str, inline: Option<String>, file: Option<PathBuf>| {
            one_of(self, &|name| key(&format!("host.{name}")), name, inline, file)
        };
        let cosign = Cosign {
            roots,
            trusted_root: trusted_root.map(|path| self.folder.join(path)),
            rekor_pubkey: text("rekorPubkey", host.rekor_pubkey, host.rekor_pubkey_file)?,
            fulcio_cert: text("fulcioCert", host.fulcio_cert, host.fulcio_cert_file)?,
            ct_log_pubkey: text("ctLogPubkey", host.ct_log_pubkey, host.ct_log_pubkey_file)?,
            timestamp_cert: text("tsCert", host.ts_cert, host.ts_cert_file)?,
        };
        let keyless = cosign.roots.iter().find(|root| matches!(root.root, Root::Keyless { .. }));
        if let Some(root) = keyless.filter(|_| cosign.trusted_root.is_none() && cosign.fulcio_cert.is_none()) {
            let what = format!(
                "has the keyless root `{}` and no authority that could vouch for it: name a trustedRootFile or \
                 host.fulcioCert; nothing is fetched",
                root.name
            );
            return Err(self.value(key("trustRoots"), what));
        }
        Ok(cosign)
    }
}

/// Every file that `validators` read; callers watch these files for changes.
pub fn files(validators: &[Validator]) -> Vec<PathBuf> {
    let cosign = validators.iter().filter_map(|validator| match &validator.kind {
        Kind::Cosign(cosign) => Some(cosign),
        Kind::Static { .. } | Kind::Remote(_) | Kind::ExternalData(_) => None,
    });
    cosign.flat_map(|cosign| cosign.files().cloned()).collect()
}

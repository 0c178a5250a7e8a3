//! The demands of a rule on signatures: Connaisseur's key `with`, and additions to it.

use std::collections::BTreeMap;
#[cfg(feature = "verify")]
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::validators::{Cosign, Root};
use super::super::{Checker, Error};

/// The name that stands for all trust roots of the validator.
const ALL_ROOTS: &str = "*";
/// The trust root of rules that name no trust root.
const DEFAULT_ROOT: &str = "default";
/// Maximum number of annotations, of attestations and of their fields in one rule.
const DEMANDS_MAX: usize = 32;

#[expect(clippy::struct_excessive_bools, reason = "each is a key of the configuration, and any may go with any")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct With {
    pub roots: Roots,
    /// Minimum number of different signers, from 1 to the number of trust roots.
    pub threshold: usize,
    /// Trust roots that must be among the signers.
    pub required: Vec<String>,
    /// Whether each signature must be in a transparency log.
    pub transparency_log: bool,
    /// Whether each certificate must be in a certificate transparency log.
    pub certificate_timestamp: bool,
    /// Whether each signature needs a timestamp (RFC 3161).
    pub timestamp: bool,
    /// Annotations (keys and values) that the signature of the image must contain.
    pub annotations: BTreeMap<String, String>,
    /// Whether the image itself must be signed, in addition to attestations.
    pub image_signature: bool,
    pub attestations: Vec<Attestation>,
    /// Whether the signature must name the image's repository.
    pub same_repository: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Roots {
    All,
    Named(Vec<String>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attestation {
    pub predicate_type: String,
    /// JSON pointers into the attestation's predicate, each with a glob that the text at the pointer must match.
    pub fields: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(in crate::config) struct RawWith {
    pub trust_root: Option<String>,
    pub threshold: Option<u64>,
    pub required: Vec<String>,
    pub mode: Option<Flow>,
    pub verify_in_transparency_log: Option<bool>,
    #[serde(rename = "verifySCT")]
    pub verify_sct: Option<bool>,
    pub require_timestamp: bool,
    pub annotations: BTreeMap<String, String>,
    pub image_signature: Option<bool>,
    pub attestations: Vec<RawAttestation>,
    pub same_repository: bool,
    // Keys of Connaisseur's other validators, known here only so that the refusal can explain them.
    pub delegations: Option<Vec<String>>,
    pub verification_level: Option<String>,
    pub verify_timestamp: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::config) enum Flow {
    Mutate,
    InsecureValidateOnly,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::config) struct RawAttestation {
    pub predicate_type: String,
    #[serde(default)]
    pub fields: BTreeMap<String, String>,
}

impl RawWith {
    /// The demands as JSON for another process. Equal demands give equal JSON texts.
    pub(super) fn passed(self) -> String {
        let Ok(Value::Object(mut written)) = serde_json::to_value(self) else { return String::new() };
        let says_nothing = |value: &Value| match value {
            Value::Null => true,
            Value::Array(list) => list.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        };
        // These two are absent or true; every reader treats absent as false.
        let is_default = |key: &str, value: &Value| {
            ["requireTimestamp", "sameRepository"].contains(&key) && value == &Value::Bool(false)
        };
        written.retain(|key, value| !says_nothing(value) && !is_default(key, value));
        if written.is_empty() { String::new() } else { Value::Object(written).to_string() }
    }
}

/// Checks `demands` for a process whose trust is `cosign`.
#[cfg(feature = "verify")]
pub fn demanded(demands: &str, cosign: &Cosign) -> Result<With, String> {
    let raw: RawWith = match demands {
        "" => RawWith::default(),
        demands => serde_json::from_str(demands).map_err(|error| format!("the demands of the rule: {error}"))?,
    };
    let path = Path::new("the question");
    let checker = Checker(service_core::config::Checker { path, folder: Path::new("") });
    checker.with("with", raw, cosign).map(|(with, _)| with).map_err(|error| error.to_string())
}

impl Checker<'_> {
    pub(super) fn with(&self, key: &str, raw: RawWith, cosign: &Cosign) -> Result<(With, Option<Flow>), Error> {
        let key = |name: &str| format!("{key}.{name}");
        for (name, written, whose) in [
            ("delegations", raw.delegations.is_some(), "notaryv1"),
            ("verificationLevel", raw.verification_level.is_some(), "notation"),
            ("verifyTimestamp", raw.verify_timestamp.is_some(), "notation; here it is requireTimestamp: true"),
        ] {
            if written {
                return Err(self.value(key(name), format!("is not built in, it belongs to {whose}")));
            }
        }
        let (roots, count) = self.roots(&key, raw.trust_root.as_deref().unwrap_or(DEFAULT_ROOT), cosign)?;
        for name in &raw.required {
            if cosign.root(name).is_none() || !roots.has(name) {
                let what =
                    format!("`{name}` is not among the trust roots of this rule: name one, with `trustRoot: \"*\"`");
                return Err(self.value(key("required"), what));
            }
        }
        // As in Connaisseur's code: with all roots and without other keys, all of them must have signed.
        let threshold = match (raw.threshold.filter(|&n| n > 0), raw.required.len()) {
            (Some(n), _) => self.within(&key("threshold"), n, 1, count as u64)?,
            (None, 0) => count,
            (None, required) => required,
        };
        if threshold > 1 && roots != Roots::All {
            return Err(self.value(key("threshold"), "counts signers of several roots: write `trustRoot: \"*\"`"));
        }
        self.demands(&key, &raw)?;
        let transparency_log = raw.verify_in_transparency_log.unwrap_or(true);
        let keyless = cosign.roots.iter().filter(|root| roots.has(&root.name));
        let mut keyless = keyless.filter(|root| matches!(root.root, Root::Keyless { .. }));
        if let Some(root) = keyless.next().filter(|_| !transparency_log && !raw.require_timestamp) {
            let what = format!(
                "false leaves nothing that says when `{}` signed, whose certificate lives minutes: remove it, or write \
                 requireTimestamp: true",
                root.name
            );
            return Err(self.value(key("verifyInTransparencyLog"), what));
        }
        if transparency_log && cosign.trusted_root.is_none() && cosign.rekor_pubkey.is_none() {
            let what = "needs the key of the log: name a trustedRootFile or host.rekorPubkey in the validator (nothing is \
                        fetched), or write false for signatures with keys";
            return Err(self.value(key("verifyInTransparencyLog"), what));
        }
        let attestations = raw.attestations.into_iter();
        let with = With {
            roots,
            threshold,
            required: raw.required,
            transparency_log,
            certificate_timestamp: raw.verify_sct.unwrap_or(true),
            timestamp: raw.require_timestamp,
            annotations: raw.annotations,
            image_signature: raw.image_signature.unwrap_or(true),
            attestations: attestations
                .map(|raw| Attestation { predicate_type: raw.predicate_type, fields: raw.fields })
                .collect(),
            same_repository: raw.same_repository,
        };
        Ok((with, raw.mode))
    }

    /// The trust roots that `name` selects, and their number.
    fn roots(&self, key: &dyn Fn(&str) -> String, name: &str, cosign: &Cosign) -> Result<(Roots, usize), Error> {
        if name == ALL_ROOTS {
            return Ok((Roots::All, cosign.roots.len()));
        }
        if cosign.root(name).is_none() {
            let known: Vec<_> = cosign.roots.iter().map(|root| format!("`{}`", root.name)).collect();
            let what =
                format!("the validator has no trust root `{name}`; it has {}, and `*` for all", known.join(", "));
            return Err(self.value(key("trustRoot"), what));
        }
        Ok((Roots::Named(vec![name.to_owned()]), 1))
    }

    fn demands(&self, key: &dyn Fn(&str) -> String, raw: &RawWith) -> Result<(), Error> {
        let most = DEMANDS_MAX as u64;
        self.within(&key("annotations"), raw.annotations.len() as u64, 0, most)?;
        self.within(&key("attestations"), raw.attestations.len() as u64, 0, most)?;
        if raw.image_signature == Some(false) && raw.attestations.is_empty() {
            return Err(self.value(key("imageSignature"), "false without attestations would demand nothing"));
        }
        for (index, attestation) in raw.attestations.iter().enumerate() {
            let key = |name: &str| key(&format!("attestations[{index}].{name}"));
            if attestation.predicate_type.is_empty() {
                return Err(
                    self.value(key("predicateType"), "is empty: write for example https://slsa.dev/provenance/v1")
                );
            }
            self.within(&key("fields"), attestation.fields.len() as u64, 0, most)?;
            if let Some(pointer) = attestation.fields.keys().find(|pointer| !pointer.starts_with('/')) {
                let what = format!("`{pointer}` is no JSON pointer: write for example /buildDefinition/buildType");
                return Err(self.value(key("fields"), what));
            }
        }
        Ok(())
    }
}

impl Roots {
    fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => names.iter().any(|other| other == name),
        }
    }
}

//! Checks for requirements that no image can fulfil, which are reported when a rule is loaded.

use crate::requirement::{Requirement, Roots, Timestamps};
use crate::trust::{Accepts, Trust};

/// Why no image can fulfil a requirement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequirementError {
    #[error("a threshold of 0 would let anything in: write 1 or more")]
    NoThreshold,
    #[error("a threshold of {threshold} with {roots} trust roots: each root counts once")]
    Threshold { threshold: usize, roots: usize },
    #[error("there is no trust root, so nobody's signature counts")]
    NoRoots,
    #[error("there is no trust root `{0}`")]
    UnknownRoot(String),
    #[error("the signer `{0}` is required and is not among the roots that count")]
    RequiredRoot(String),
    #[error("neither a signature of the image nor an attestation is asked for")]
    Nothing,
    #[error(
        "entries in a transparency log are demanded, and the root `{0}` trusts no log: name an authority that has one"
    )]
    NoLog(String),
    #[error("certificate timestamps are demanded, and the keyless root `{0}` trusts no certificate log")]
    NoCertificateLog(String),
    #[error(
        "timestamps are demanded, and the root `{0}` trusts no timestamp authority: name an authority that has one"
    )]
    NoTimestamper(String),
    #[error(
        "without transparency log the keyless root `{0}` needs timestamps: nothing else says when its certificates signed"
    )]
    Undated(String),
    #[error("`{0}` is no JSON pointer: it begins with `/`")]
    Pointer(String),
}

impl Requirement {
    /// Checks that some image could fulfil the requirement under `trust`.
    pub fn check(&self, trust: &Trust) -> Result<(), RequirementError> {
        let known = |name: &&String| !trust.names().any(|known| known == name.as_str());
        if let Roots::Named(names) = &self.roots
            && let Some(unknown) = names.iter().find(known)
        {
            return Err(RequirementError::UnknownRoot(unknown.clone()));
        }
        let selected = super::selected(&self.roots, trust);
        if selected.is_empty() {
            return Err(RequirementError::NoRoots);
        }
        if let Some(missing) = self.required.iter().find(|name| !selected.iter().any(|root| root.name == **name)) {
            return Err(RequirementError::RequiredRoot(missing.clone()));
        }
        match self.threshold {
            0 => return Err(RequirementError::NoThreshold),
            threshold if threshold > selected.len() => {
                return Err(RequirementError::Threshold { threshold, roots: selected.len() });
            }
            _ => {}
        }
        if !self.image_signature && self.attestations.is_empty() {
            return Err(RequirementError::Nothing);
        }
        let fields = self.attestations.iter().flat_map(|rule| &rule.fields);
        if let Some(field) = fields.clone().find(|field| !field.pointer.starts_with('/')) {
            return Err(RequirementError::Pointer(field.pointer.clone()));
        }
        for root in selected {
            let name = || root.name.clone();
            let authorities = trust.authorities(root);
            let is_keyless = matches!(root.accepts, Accepts::Keyless { .. });
            if self.transparency_log && authorities.clone().all(|authority| authority.logs.is_empty()) {
                return Err(RequirementError::NoLog(name()));
            }
            let is_stamped = self.timestamps == Timestamps::Required;
            if is_stamped && authorities.clone().all(|authority| authority.timestampers.is_empty()) {
                return Err(RequirementError::NoTimestamper(name()));
            }
            if !is_keyless {
                continue;
            }
            if !self.transparency_log && !is_stamped {
                return Err(RequirementError::Undated(name()));
            }
            if self.certificate_timestamp && authorities.clone().all(|authority| authority.ct_logs.is_empty()) {
                return Err(RequirementError::NoCertificateLog(name()));
            }
        }
        Ok(())
    }
}

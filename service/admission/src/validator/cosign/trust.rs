//! Compilation of the configured trust and demands for `service-verify`: it reads the files of keys, and errors name
//! the configuration key.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use service_verify::{
    AttestationRule, AuthoritySpec, AuthorityText, FieldRule, Listed, Pattern, PatternError, ReferenceCheck,
    Requirement, RootKind, RootSpec, Roots, Timestamps, Trust, TrustSpec,
};

use crate::config::{self, Constraint, Cosign, Root, Text};
use crate::validator::ValidatorError;

/// Largest file of keys; the public instance's `trusted_root.json` has 7 KiB.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// The name of the authority from a `trusted_root.json`.
const TRUSTED_ROOT: &str = "trustedRootFile";
/// The name of the authority from the keys listed under `host`.
const HOST: &str = "host";

/// The trust of `validators[index]`, called `name`.
pub fn compile(name: &str, index: usize, cosign: &Cosign) -> Result<Trust, ValidatorError> {
    let key = |part: &str| format!("validators[{index}] (`{name}`).{part}");
    let text = |part: &str, text: &Text| match text {
        Text::Inline(text) => Ok(text.clone()),
        Text::File(path) => read(path).map_err(|what| ValidatorError { key: key(part), what }),
    };
    let mut authorities = Vec::new();
    if let Some(path) = &cosign.trusted_root {
        let json = read(path).map_err(|what| ValidatorError { key: key(TRUSTED_ROOT), what })?;
        let text = AuthorityText::TrustedRoot { json };
        authorities.push(AuthoritySpec { name: TRUSTED_ROOT.to_owned(), text });
    }
    let listed = |part: &str, from: &Option<Text>| -> Result<Vec<String>, ValidatorError> {
        Ok(from.as_ref().map(|from| text(&format!("{HOST}.{part}"), from)).transpose()?.into_iter().collect())
    };
    let listed = Listed {
        certificate_authorities: listed("fulcioCert", &cosign.fulcio_cert)?,
        log_keys: listed("rekorPubkey", &cosign.rekor_pubkey)?,
        ct_log_keys: listed("ctLogPubkey", &cosign.ct_log_pubkey)?,
        timestamp_authorities: listed("tsCert", &cosign.timestamp_cert)?,
    };
    let Listed { certificate_authorities, log_keys, ct_log_keys, timestamp_authorities } = &listed;
    if [certificate_authorities, log_keys, ct_log_keys, timestamp_authorities].iter().any(|list| !list.is_empty()) {
        authorities.push(AuthoritySpec { name: HOST.to_owned(), text: AuthorityText::Listed(listed) });
    }
    let mut roots = Vec::with_capacity(cosign.roots.len());
    for root in &cosign.roots {
        let part = format!("trustRoots[{}]", root.name);
        let kind = match &root.root {
            Root::Key(from) => RootKind::Key { pem: text(&format!("{part}.key"), from)? },
            Root::Keyless { issuer, subject } => {
                let wrong = |error: PatternError| ValidatorError { key: key(&part), what: error.to_string() };
                RootKind::Keyless { issuer: pattern(issuer).map_err(wrong)?, subject: pattern(subject).map_err(wrong)? }
            }
        };
        let authorities = authorities.iter().map(|authority| authority.name.clone()).collect();
        roots.push(RootSpec { name: root.name.clone(), kind, authorities });
    }
    let trust = Trust::compile(&TrustSpec { roots, authorities })
        .map_err(|error| ValidatorError { key: key(&error.place), what: error.cause })?;
    for what in trust.left_out() {
        tracing::warn!(name: crate::events::TRUST_LEFT_OUT, validator = name, what, "a key is left out");
    }
    Ok(trust)
}

pub fn requirement(name: &str, with: &config::With) -> Result<Requirement, ValidatorError> {
    let mut attestations = Vec::with_capacity(with.attestations.len());
    for (index, attestation) in with.attestations.iter().enumerate() {
        let mut fields = Vec::with_capacity(attestation.fields.len());
        for (pointer, value) in &attestation.fields {
            let value = Pattern::glob(value).map_err(|error| ValidatorError {
                key: format!("{name}.with.attestations[{index}].fields.`{pointer}`"),
                what: error.to_string(),
            })?;
            fields.push(FieldRule { pointer: pointer.clone(), value });
        }
        attestations.push(AttestationRule { predicate_type: attestation.predicate_type.clone(), fields });
    }
    Ok(Requirement {
        roots: match &with.roots {
            config::Roots::All => Roots::All,
            config::Roots::Named(names) => Roots::Named(names.clone()),
        },
        threshold: with.threshold,
        required: with.required.clone(),
        annotations: with.annotations.clone(),
        image_signature: with.image_signature,
        attestations,
        transparency_log: with.transparency_log,
        certificate_timestamp: with.certificate_timestamp,
        timestamps: if with.timestamp { Timestamps::Required } else { Timestamps::IfPresent },
        reference: if with.same_repository { ReferenceCheck::Repository } else { ReferenceCheck::Ignored },
    })
}

fn pattern(constraint: &Constraint) -> Result<Pattern, PatternError> {
    match constraint {
        Constraint::Exact(text) => Pattern::exact(text),
        Constraint::Regex(text) => Pattern::regex(text),
        // A glob would interpret wildcards in the text.
        Constraint::Prefix(text) => Pattern::regex(&format!("{}(?s:.*)", escaped(text))),
    }
}

/// A regular expression that matches exactly `text`.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for char in text.chars() {
        if char.is_ascii_punctuation() {
            out.push('\\');
        }
        out.push(char);
    }
    out
}

/// Reads a file, which may be a mounted one that is being replaced.
fn read(path: &Path) -> Result<String, String> {
    let said = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut text = String::new();
    let file = File::open(path).map_err(said)?;
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(said)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("{}: larger than {FILE_BYTES_MAX} bytes", path.display()));
    }
    Ok(text)
}

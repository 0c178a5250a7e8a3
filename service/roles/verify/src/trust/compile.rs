//! Compiles trust: parses the texts of a configuration into keys and certificates that can check signatures.

use std::collections::BTreeSet;

use super::{Accepts, AuthoritySpec, AuthorityText, Listed, RootKind, RootSpec, Trust, TrustError, TrustRoot};
use super::{TrustSpec, fingerprint, trusted_root};
use crate::authority::{Authority, Certifier, LOGS_MAX, Log, Period};
use crate::certificate::Certificate;
use crate::key::PublicKey;

/// Maximum number of trust roots, because each signature is checked against each root.
const ROOTS_MAX: usize = 64;
/// Maximum number of authorities; there is one public sigstore instance, and a company may have a few more.
const AUTHORITIES_MAX: usize = 16;

pub(super) fn compile(spec: &TrustSpec) -> Result<Trust, TrustError> {
    for (place, count, max) in
        [("roots", spec.roots.len(), ROOTS_MAX), ("authorities", spec.authorities.len(), AUTHORITIES_MAX)]
    {
        if count > max {
            return Err(TrustError::new(place, format!("{count} of them, at most {max} are checked")));
        }
    }
    distinct("authorities", spec.authorities.iter().map(|authority| authority.name.as_str()))?;
    distinct("roots", spec.roots.iter().map(|root| root.name.as_str()))?;
    let authorities = spec.authorities.iter().map(authority).collect::<Result<Vec<_>, _>>()?;
    let roots = spec.roots.iter().map(|spec| root(spec, &authorities)).collect::<Result<Vec<_>, _>>()?;
    Ok(Trust { fingerprint: fingerprint::of(&roots, &authorities), roots, authorities })
}

fn distinct<'a>(place: &str, names: impl Iterator<Item = &'a str>) -> Result<(), TrustError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if name.is_empty() {
            return Err(TrustError::new(place, "an entry without a name"));
        }
        if !seen.insert(name) {
            return Err(TrustError::new(format!("{place}[{name}]"), "there are two of this name"));
        }
    }
    Ok(())
}

fn root(spec: &RootSpec, all: &[Authority]) -> Result<TrustRoot, TrustError> {
    let place = format!("roots[{}]", spec.name);
    let mut authorities = Vec::with_capacity(spec.authorities.len());
    for name in &spec.authorities {
        let found = all.iter().position(|authority| authority.name == *name);
        let missing = || TrustError::new(format!("{place}.authorities"), format!("there is no authority `{name}`"));
        let found = found.ok_or_else(missing)?;
        if !authorities.contains(&found) {
            authorities.push(found);
        }
    }
    let accepts = match &spec.kind {
        RootKind::Key { pem } => {
            let key =
                PublicKey::from_pem(pem).map_err(|error| TrustError::new(format!("{place}.key"), error.to_string()))?;
            Accepts::Key(key)
        }
        RootKind::Keyless { issuer, subject } => {
            let certifies = authorities.iter().filter_map(|at| all.get(*at)).any(|one| !one.certifiers.is_empty());
            if !certifies {
                let cause = "keyless signatures need an authority with certificates: name one that has them";
                return Err(TrustError::new(format!("{place}.authorities"), cause));
            }
            Accepts::Keyless { issuer: issuer.clone(), subject: subject.clone() }
        }
    };
    Ok(TrustRoot { name: spec.name.clone(), accepts, authorities })
}

fn authority(spec: &AuthoritySpec) -> Result<Authority, TrustError> {
    let place = format!("authorities[{}]", spec.name);
    match &spec.text {
        AuthorityText::TrustedRoot { json } => {
            trusted_root::authority(&spec.name, json, &format!("{place}.trusted_root"))
        }
        AuthorityText::Listed(listed) => listed_authority(&spec.name, listed, &place),
    }
}

fn listed_authority(name: &str, listed: &Listed, place: &str) -> Result<Authority, TrustError> {
    let certificates = |texts: &[String], what: &str| -> Result<Vec<Certifier>, TrustError> {
        let mut all = Vec::new();
        for (number, text) in texts.iter().enumerate() {
            let place = format!("{place}.{what}[{number}]");
            all.extend(Certificate::all_from_pem(text).map_err(|error| TrustError::new(place, error.to_string()))?);
        }
        if all.is_empty() {
            return Ok(Vec::new());
        }
        let certifier = Certifier::of(all, Period::default());
        Ok(vec![certifier.map_err(|cause| TrustError::new(format!("{place}.{what}"), cause))?])
    };
    let logs = |texts: &[String], what: &str| -> Result<Vec<Log>, TrustError> {
        let mut all = Vec::new();
        for (number, text) in texts.iter().enumerate() {
            let place = format!("{place}.{what}[{number}]");
            let keys = PublicKey::all_from_pem(text).map_err(|error| TrustError::new(&place, error.to_string()))?;
            all.extend(keys.into_iter().map(|key| {
                // RFC 6962, 3.2, for certificate logs; Rekor does the same.
                Log { id: key.fingerprint().as_bytes().to_vec(), key, period: Period::default() }
            }));
        }
        if all.len() > LOGS_MAX {
            let cause = format!("{} keys, at most {LOGS_MAX} are read", all.len());
            return Err(TrustError::new(format!("{place}.{what}"), cause));
        }
        Ok(all)
    };
    Ok(Authority {
        name: name.to_owned(),
        certifiers: certificates(&listed.certificate_authorities, "certificate_authorities")?,
        logs: logs(&listed.log_keys, "log_keys")?,
        ct_logs: logs(&listed.ct_log_keys, "ct_log_keys")?,
        timestampers: certificates(&listed.timestamp_authorities, "timestamp_authorities")?,
        left_out: Vec::new(),
    })
}

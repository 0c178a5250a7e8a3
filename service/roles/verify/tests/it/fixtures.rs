//! Access to the output of `fixtures/make`: signed images, trusted keys, and cosign's answer for each case.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as the tests do")]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;
use service_verify::{
    AttestationRule, AuthoritySpec, AuthorityText, Digest, Evidence, Listed, Pattern, Requirement, RootKind, RootSpec,
    Subject, Timestamps, Trust, TrustSpec, UnixTime, oci,
};

#[derive(Deserialize)]
pub struct Fixtures {
    /// The time at which the fixtures were made, in seconds since 1970.
    made: i64,
    pub cases: Vec<Case>,
}

/// A call of cosign and its answer.
#[derive(Deserialize, Clone)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Case {
    pub name: String,
    pub image: String,
    pub repository: String,
    #[serde(rename = "cosign")]
    _cosign: u8,
    pub digest: String,
    pub exit: i32,
    pub said: String,
    pub exception: Option<String>,
    #[serde(default)]
    verb: String,
    key: Option<String>,
    r#type: Option<String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    log: Option<bool>,
    sct: Option<bool>,
    stamps: Option<bool>,
    trust: Option<String>,
    certificate_identity: Option<String>,
    certificate_identity_regexp: Option<String>,
    certificate_oidc_issuer: Option<String>,
    certificate_oidc_issuer_regexp: Option<String>,
}

/// All objects of one repository of the fixtures' registry.
#[derive(Deserialize)]
pub struct Repository {
    pub tags: BTreeMap<String, String>,
    pub manifests: BTreeMap<String, String>,
    pub blobs: BTreeMap<String, String>,
}

/// The format of the texts from which trust is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    TrustedRoot,
    Listed,
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

fn text(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("fixtures/{name}: {error}"))
}

impl Fixtures {
    pub fn read() -> Self {
        serde_json::from_str(&text("cases.json")).unwrap()
    }

    pub fn now(&self) -> UnixTime {
        UnixTime(self.made)
    }
}

impl Repository {
    pub fn read(name: &str) -> Self {
        serde_json::from_str(&text(&format!("registry/{name}.json"))).unwrap()
    }

    /// All evidence for `image`, found as in a registry without the referrers API.
    pub fn evidence(&self, image: Digest) -> Vec<Evidence> {
        let mut found = Vec::new();
        let manifest = |tag: String| self.tags.get(&tag).map(|digest| self.manifests[digest].as_bytes());
        let mut layers = Vec::new();
        if let Some(bytes) = manifest(oci::signature_tag(&image)) {
            layers.push(oci::signature_layers(bytes).unwrap());
        }
        if let Some(bytes) = manifest(oci::attestation_tag(&image)) {
            layers.push(oci::attestation_layers(bytes).unwrap());
        }
        for mut part in layers {
            found.append(&mut part.unusable);
            found.extend(part.layers.into_iter().map(|layer| self.fetched(layer)));
        }
        if let Some(index) = manifest(oci::referrers_tag(&image)) {
            for referrer in oci::referrers(index).unwrap() {
                let bytes = self.manifests[&referrer.descriptor.digest.to_string()].as_bytes();
                if let Some(layer) = oci::bundle_layer(&referrer, bytes).unwrap() {
                    found.push(self.fetched(layer));
                }
            }
        }
        found
    }

    fn fetched(&self, layer: oci::Layer) -> Evidence {
        let bytes = self.blobs[&layer.descriptor.digest.to_string()].clone().into_bytes();
        layer.evidence(bytes)
    }
}

impl Case {
    pub fn subject(&self) -> Subject {
        Subject { digest: self.digest.parse().unwrap(), repository: None }
    }

    pub fn is_accepted_by_cosign(&self) -> bool {
        self.exit == 0
    }

    /// Whether the case demands a certificate identity instead of a key.
    pub fn is_keyless(&self) -> bool {
        self.key.is_none()
    }

    /// All evidence for the image of the case.
    pub fn evidence(&self) -> Vec<Evidence> {
        Repository::read(&self.repository).evidence(self.subject().digest)
    }

    pub fn requirement(&self) -> Requirement {
        let is_attestation = self.verb == "verify-attestation";
        let rule = self.r#type.iter().map(|name| AttestationRule { predicate_type: name.clone(), fields: Vec::new() });
        Requirement {
            annotations: self.annotations.clone(),
            image_signature: !is_attestation,
            attestations: if is_attestation { rule.collect() } else { Vec::new() },
            transparency_log: self.log.unwrap_or(true),
            certificate_timestamp: self.sct.unwrap_or(true),
            timestamps: if self.stamps == Some(true) { Timestamps::Required } else { Timestamps::IfPresent },
            ..Requirement::default()
        }
    }

    /// The trust of the case, compiled from texts in the format `form`. Rekor 2 cannot be trusted by its key alone.
    pub fn trust(&self, form: Form) -> Trust {
        Trust::compile(&self.trust_spec(form)).unwrap()
    }

    pub fn trust_spec(&self, form: Form) -> TrustSpec {
        let kind = match &self.key {
            Some(name) => RootKind::Key { pem: key(name) },
            None => RootKind::Keyless {
                issuer: pattern(self.certificate_oidc_issuer.as_ref(), self.certificate_oidc_issuer_regexp.as_ref()),
                subject: pattern(self.certificate_identity.as_ref(), self.certificate_identity_regexp.as_ref()),
            },
        };
        let authorities = vec!["sigstore".to_owned()];
        TrustSpec {
            roots: vec![RootSpec { name: "root".to_owned(), kind, authorities }],
            authorities: vec![authority("sigstore", self.trust.as_deref().unwrap_or("full"), form)],
        }
    }
}

pub fn key(name: &str) -> String {
    text(&format!("trust/keys/{name}.pub"))
}

fn pattern(exact: Option<&String>, regex: Option<&String>) -> Pattern {
    match (exact, regex) {
        (Some(text), None) => Pattern::exact(text),
        (None, Some(text)) => Pattern::regex(text),
        _ => panic!("neither exact nor pattern"),
    }
    .unwrap()
}

/// The authority in the fixtures' folder `directory`.
pub fn authority(name: &str, directory: &str, form: Form) -> AuthoritySpec {
    let file = |name: &str| text(&format!("trust/{directory}/{name}"));
    let text = match form {
        Form::TrustedRoot => AuthorityText::TrustedRoot { json: file("trusted_root.json") },
        Form::Listed => AuthorityText::Listed(Listed {
            certificate_authorities: vec![file("fulcio.pem")],
            log_keys: vec![file("rekor.pem")],
            ct_log_keys: vec![file("ctlog.pem")],
            timestamp_authorities: vec![file("tsa.pem")],
        }),
    };
    AuthoritySpec { name: name.to_owned(), text }
}

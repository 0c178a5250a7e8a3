//! The configuration of admission: the listener, the policy and its validators.
//!
//! This module owns these keys, their defaults and their reasons. Of the files named in the configuration it opens only
//! policies; the users of certificates and keys open those.

mod admission;
mod documents;
mod environment;
mod policy;
mod registration;
mod validators;

use std::ops::Deref;
use std::path::{Path, PathBuf};

use serde::Deserialize;
pub use service_core::config::Error;
use service_core::config::{Config as File, Environment, Kind, Kubernetes, Section, YamlError, kind, yaml};
pub use service_core::kube::Transport;
pub use service_registry::config::{MAX_CONCURRENT, Resolve};

pub use admission::Admission;
use policy::RawPolicy;
#[cfg(feature = "verify")]
pub use policy::demanded;
pub use policy::{
    Action, Attestation, Bootstrap, Mode, Namespaces, NoMatch, OnFailure, Pattern, Policy, Recheck, Resources, Roots,
    Rule, Verdicts, With,
};
pub use registration::Registration;
pub use service_own_certificates::OwnCertificates;
use validators::RawValidator;
pub use validators::{
    Constraint, Cosign, Form, Kind as ValidatorKind, Provider, Remote, Root, Text, TrustRoot, Validator, Way, files,
};

pub const KINDS: &[Kind] = &[kind::<Admission>(), kind::<Resolve>(), kind::<Images>(), kind::<Kubernetes>()];

/// The sections that admission reads, together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The webhook listener; absent when this process has none.
    pub admission: Option<Admission>,
    pub resolve: Resolve,
    /// The validators that judge images.
    pub validators: Vec<Validator>,
    pub policy: Policy,
    /// Path of a kubeconfig; when absent, `$KUBECONFIG`, then the files of a pod.
    pub kubeconfig: Option<PathBuf>,
}

impl Config {
    pub fn of(file: &File) -> Self {
        let Images { validators, policy, .. } = file.of::<Images>().clone();
        Self {
            admission: file.find::<Admission>().cloned(),
            resolve: file.of::<Resolve>().clone(),
            validators,
            policy,
            kubeconfig: file.of::<Kubernetes>().kubeconfig.clone(),
        }
    }

    /// Notes on the validators of signatures that no rule uses, one sentence each.
    pub fn unasked(&self) -> Vec<String> {
        let asked = |index: usize| self.policy.rules.iter().any(|rule| rule.validator == Some(index));
        let unasked = self.validators.iter().enumerate().filter(|(index, validator)| {
            let says_the_same_of_all = matches!(validator.kind, ValidatorKind::Static { .. });
            !says_the_same_of_all && !asked(*index)
        });
        unasked
            .map(|(_, Validator { name, .. })| {
                format!(
                    "no rule asks the validator `{name}`, so it verifies no image: write `validator: {name}` in a rule"
                )
            })
            .collect()
    }

    /// The sections of `text`, which has no others, as if it had been read from `path`.
    pub fn parse(text: &str, path: &Path) -> Result<Self, Error> {
        File::parse(text, path, KINDS).map(|file| Self::of(&file))
    }
}

/// The sections `validators` and `policy`: the validator of each image, and the action on its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Images {
    /// The validators that judge images.
    pub validators: Vec<Validator>,
    pub policy: Policy,
    /// Files and folders with separate policies, and the files of these folders.
    pub documents: Vec<PathBuf>,
}

#[doc(hidden)]
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RawFile {
    validators: Vec<RawValidator>,
    policy: RawPolicy,
}

impl Section for Images {
    const KEYS: &'static [&'static str] = &["policy", "validators"];
    type Raw = RawFile;

    fn read(text: &str) -> Result<Self::Raw, YamlError> {
        yaml(text)
    }

    fn check(mut raw: RawFile, check: &service_core::config::Checker<'_>) -> Result<Option<Self>, Error> {
        let check = Checker(*check);
        let mut validators = check.validators(raw.validators)?;
        let mut paths: Vec<PathBuf> = raw.policy.documents.iter().map(|path| check.folder.join(path)).collect();
        let documents = check.documents(&paths)?;
        paths.extend(documents.iter().map(|document| document.source.clone()));
        let (own, defaults) = (std::mem::take(&mut raw.policy.rules), raw.policy.defaults());
        let mut rules = check.rules(own, defaults, &validators)?;
        let own_rules = rules.len();
        for document in documents {
            rules.extend(check.document(document, defaults, &mut validators)?);
        }
        let policy = check.policy(raw.policy, rules, own_rules)?;
        Ok(Some(Self { validators, policy, documents: paths }))
    }

    fn overrule(raw: &mut RawFile, environment: &Environment<'_>) -> Result<(), Error> {
        environment::overrule(&mut raw.policy, environment)
    }

    fn take(&mut self, fresh: &Self) -> Vec<&'static str> {
        let mut new = Vec::new();
        if self.policy != fresh.policy {
            new.push("policy");
        }
        if self.validators != fresh.validators {
            new.push("validators");
        }
        self.clone_from(fresh);
        new
    }

    /// The policies, and the keys that validators trust.
    fn files(&self) -> Vec<PathBuf> {
        self.documents.iter().cloned().chain(files(&self.validators)).collect()
    }
}

/// Checks the values of these sections.
#[derive(Clone, Copy)]
struct Checker<'a>(service_core::config::Checker<'a>);

impl<'a> Deref for Checker<'a> {
    type Target = service_core::config::Checker<'a>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

//! The configuration of admission: listener, policy and validators.
//!
//! This module owns the keys of the sections of admission, with defaults and reasons. The module opens files with
//! policies; the code that uses certificates and keys opens those files.

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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The webhook listener; `None` if this process has none.
    pub admission: Option<Admission>,
    pub resolve: Resolve,
    pub validators: Vec<Validator>,
    pub policy: Policy,
    /// Path of a kubeconfig. Default: `$KUBECONFIG`, then the service account files of a Pod.
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

    /// Notes on signature validators that no rule uses, one sentence each.
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

    /// Parses `text`, which must have only the sections of admission. Errors name the file `path` as the source of
    /// `text`.
    pub fn parse(text: &str, path: &Path) -> Result<Self, Error> {
        File::parse(text, path, KINDS).map(|file| Self::of(&file))
    }
}

/// The sections `validators` and `policy`: which validator checks an image, and what follows from its verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Images {
    pub validators: Vec<Validator>,
    pub policy: Policy,
    /// The files and folders with policies that the configuration names, and the files in these folders.
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

    /// The files with policies, and the files with keys that validators trust.
    fn files(&self) -> Vec<PathBuf> {
        self.documents.iter().cloned().chain(files(&self.validators)).collect()
    }
}

/// Checks the values of the sections that admission reads.
#[derive(Clone, Copy)]
struct Checker<'a>(service_core::config::Checker<'a>);

impl<'a> Deref for Checker<'a> {
    type Target = service_core::config::Checker<'a>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

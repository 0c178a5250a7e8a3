//! Policies as Kubernetes objects of `kind: ImagePolicy`, in files or in a mounted `ConfigMap`.
//!
//! This module owns the format of `ImagePolicy` objects, and converts the objects to rules and validators. A mounted
//! `ConfigMap` is a folder; each of its files may contain several documents.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::policy::{Defaults, Mode, OnFailure, RawRule, RawWith, Recheck, Rule};
use super::validators::{RawHost, RawKind, RawTrustRoot, RawValidator, Validator};
use super::{Checker, Error};

const API_VERSION: &str = "longhaul.dev/v1alpha1";
/// Largest policy file, in bytes: the size limit of a `ConfigMap`.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of policy files in one folder.
const FILES_MAX: usize = 100;
/// Maximum number of policies in all files together.
const DOCUMENTS_MAX: usize = 100;
/// Maximum number of image patterns in one policy.
const IMAGES_MAX: usize = 50;

/// A policy as YAML document, and the file that contains it.
#[derive(Debug)]
pub(super) struct RawDocument {
    pub source: PathBuf,
    policy: RawImagePolicy,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawImagePolicy {
    metadata: Metadata,
    spec: RawSpec,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawSpec {
    /// Patterns of images, with the same syntax as in rules.
    images: Vec<String>,
    mode: Option<Mode>,
    recheck: Option<Recheck>,
    #[serde(default)]
    on_failure: OnFailure,
    /// The name of a configured validator. A policy must not have both `validator` and `authorities`.
    validator: Option<String>,
    /// The trust roots whose signatures are accepted, in the format of trust roots in the configuration.
    #[serde(default)]
    authorities: Vec<RawTrustRoot>,
    trusted_root_file: Option<PathBuf>,
    #[serde(default)]
    host: RawHost,
    with: Option<RawWith>,
}

impl Checker<'_> {
    #[expect(clippy::unused_self, reason = "it reads for this configuration, as the other parts are checked for it")]
    pub(super) fn documents(&self, paths: &[PathBuf]) -> Result<Vec<RawDocument>, Error> {
        let mut documents = Vec::new();
        for path in paths {
            for file in files(path)? {
                for document in split(&read(&file)?, &file)? {
                    take(document, &file, &mut documents)?;
                }
            }
        }
        Ok(documents)
    }

    /// Converts one policy to rules. The authorities of the policy become a separate validator.
    pub(super) fn document(
        &self,
        document: RawDocument,
        defaults: Defaults,
        validators: &mut Vec<Validator>,
    ) -> Result<Vec<Rule>, Error> {
        let RawDocument { source, policy: RawImagePolicy { metadata: Metadata { name }, spec } } = document;
        let name = format!("ImagePolicy {name}");
        // Its files lie next to it, and its errors name it.
        let folder = source.parent().unwrap_or(self.folder);
        let checker = Checker(service_core::config::Checker { path: &source, folder });
        checker.within(&format!("{name}: spec.images"), spec.images.len() as u64, 1, IMAGES_MAX as u64)?;
        let mut with = spec.with;
        let mut validator = spec.validator;
        if !spec.authorities.is_empty() {
            if validator.is_some() {
                return Err(
                    checker.value(format!("{name}: spec.validator"), "is there beside authorities: keep one of them")
                );
            }
            if validators.iter().any(|other| other.name == name) {
                return Err(checker.value(name, "is there twice"));
            }
            let with = with.get_or_insert_default();
            if with.trust_root.is_none() && spec.authorities.iter().all(|root| root.name != "default") {
                // One authority is enough, unless the document demands more.
                with.trust_root = Some("*".to_owned());
                with.threshold = with.threshold.or((with.required.is_empty()).then_some(1));
            }
            let raw = RawValidator {
                name: name.clone(),
                kind: RawKind::Cosign,
                approve: None,
                trust_roots: spec.authorities,
                trusted_root_file: spec.trusted_root_file,
                host: spec.host,
                remote: None,
            };
            validators.push(checker.validator(&name, raw)?);
            validator = Some(name.clone());
        }
        let mut rules = Vec::with_capacity(spec.images.len());
        for (index, pattern) in spec.images.into_iter().enumerate() {
            let raw = RawRule {
                pattern,
                mode: spec.mode,
                recheck: spec.recheck,
                on_failure: spec.on_failure,
                validator: validator.clone(),
                with: with.clone(),
            };
            rules.push(checker.rule(format!("{name}: spec.images[{index}]"), raw, defaults, validators)?);
        }
        Ok(rules)
    }
}

/// Adds one policy of `file` to `documents`.
fn take(document: Value, file: &Path, documents: &mut Vec<RawDocument>) -> Result<(), Error> {
    let text = |key: &str| document.get(key).and_then(Value::as_str).unwrap_or_default();
    match (text("apiVersion"), text("kind")) {
        ("v1", "ConfigMap") => {
            let data: BTreeMap<String, String> = document
                .get("data")
                .map(|data| serde_json::from_value(data.clone()))
                .transpose()
                .map_err(|error| wrong(file, error.to_string()))?
                .unwrap_or_default();
            for text in data.values() {
                for inner in split(text, file)? {
                    if inner.get("kind").and_then(Value::as_str) == Some("ConfigMap") {
                        return Err(wrong(file, "a ConfigMap inside of a ConfigMap"));
                    }
                    take(inner, file, documents)?;
                }
            }
            Ok(())
        }
        (API_VERSION, "ImagePolicy") => {
            if documents.len() == DOCUMENTS_MAX {
                return Err(wrong(file, format!("more than {DOCUMENTS_MAX} documents")));
            }
            let policy = serde_json::from_value(document).map_err(|error| wrong(file, error.to_string()))?;
            documents.push(RawDocument { source: file.to_owned(), policy });
            Ok(())
        }
        (version, kind) => {
            let what =
                format!("`{kind}` in `{version}` is no policy: write ImagePolicy in {API_VERSION}, or ConfigMap in v1");
            Err(wrong(file, what))
        }
    }
}

/// Returns the file at `path`, or the files of the folder at `path` sorted by name. Names with a leading dot are
/// skipped: Kubernetes uses them in mounted folders.
fn files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let read = |source| Error::Read { path: path.into(), source };
    let metadata = std::fs::metadata(path).map_err(read)?;
    if metadata.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    if !metadata.is_dir() {
        return Err(wrong(path, "neither a file nor a folder"));
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(read)? {
        let entry = entry.map_err(read)?;
        let is_file = std::fs::metadata(entry.path()).is_ok_and(|metadata| metadata.is_file());
        if is_file && !entry.file_name().to_string_lossy().starts_with('.') {
            files.push(entry.path());
        }
        if files.len() > FILES_MAX {
            return Err(wrong(path, format!("more than {FILES_MAX} files")));
        }
    }
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> Result<String, Error> {
    let failed = |source| Error::Read { path: path.into(), source };
    let mut text = String::new();
    let file = File::open(path).map_err(failed)?;
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(wrong(path, format!("larger than {FILE_BYTES_MAX} bytes")));
    }
    Ok(text)
}

fn split(text: &str, path: &Path) -> Result<Vec<Value>, Error> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(text).map_err(|error| service_core::config::parse_error(&error, path))?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

fn wrong(path: &Path, what: impl Into<String>) -> Error {
    Error::Value { path: path.into(), key: "the document".into(), what: what.into() }
}

//! What manifests of a project define: custom resources and webhooks.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// A custom resource, by its definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Crd {
    pub(crate) file: PathBuf,
    pub(crate) group: String,
    /// The stored version.
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) kind: String,
    /// Whether its status has the field in which a controller repeats the generation that it handled.
    pub(crate) observes: bool,
}

impl Crd {
    /// As `churn.resource` writes it.
    pub(crate) fn resource(&self) -> String {
        format!("{}.{}/{}", self.plural, self.group, self.version)
    }
}

/// A webhook, by its registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hook {
    pub(crate) file: PathBuf,
    pub(crate) is_mutating: bool,
    pub(crate) path: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Manifest {
    kind: String,
    spec: Option<Spec>,
    webhooks: Vec<Webhook>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Spec {
    group: String,
    names: Names,
    versions: Vec<Version>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Names {
    plural: String,
    kind: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Version {
    name: String,
    storage: bool,
    schema: serde_json::Value,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Webhook {
    client_config: ClientConfig,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ClientConfig {
    service: Service,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Service {
    path: String,
}

/// Where the generation is repeated, below `schema`.
const OBSERVED: &str = "/openAPIV3Schema/properties/status/properties/observedGeneration";
const CRD: &str = "CustomResourceDefinition";
const MUTATING: &str = "MutatingWebhookConfiguration";
const VALIDATING: &str = "ValidatingWebhookConfiguration";

/// Whether a file may hold manifests.
pub(super) fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml")
}

/// What a file defines. A file of other things defines nothing, and need not even be YAML (charts are templates).
///
/// # Errors
///
/// A file that names one of the kinds, and cannot be read.
pub(super) fn read(file: &Path, text: &str) -> Result<(Vec<Crd>, Vec<Hook>), String> {
    let (mut crds, mut hooks) = (Vec::new(), Vec::new());
    for document in documents(text) {
        if ![CRD, MUTATING, VALIDATING].iter().any(|kind| document.contains(&format!("kind: {kind}"))) {
            continue;
        }
        if document.contains("{{") {
            return Err("it is a template: render it, for example with `helm template`, and try again".to_owned());
        }
        let manifest: Manifest = serde_saphyr::from_str(&document).map_err(|error| first_line(&error.to_string()))?;
        match manifest.kind.as_str() {
            CRD => crds.extend(manifest.spec.and_then(|spec| crd(file, spec))),
            kind @ (MUTATING | VALIDATING) => {
                let paths = manifest.webhooks.into_iter().map(|hook| hook.client_config.service.path);
                hooks.extend(paths.filter(|path| path.starts_with('/')).map(|path| Hook {
                    file: file.to_owned(),
                    is_mutating: kind == MUTATING,
                    path,
                }));
            }
            _ => {}
        }
    }
    Ok((crds, hooks))
}

fn crd(file: &Path, spec: Spec) -> Option<Crd> {
    let version = spec.versions.into_iter().find(|version| version.storage)?;
    Some(Crd {
        file: file.to_owned(),
        group: spec.group,
        plural: spec.names.plural,
        kind: spec.names.kind,
        observes: version.schema.pointer(OBSERVED).is_some(),
        version: version.name,
    })
}

fn documents(text: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for line in text.lines() {
        if line.trim_end() == "---" {
            documents.push(String::new());
        } else if let Some(last) = documents.last_mut() {
            last.push_str(line);
            last.push('\n');
        }
    }
    documents
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "
apiVersion: v1
kind: Namespace
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec:
  group: cache.example.com
  scope: Namespaced
  names: {plural: memcacheds, kind: Memcached}
  versions:
    - {name: v1beta1, storage: false}
    - name: v1
      storage: true
      schema: {openAPIV3Schema: {properties: {status: {properties: {observedGeneration: {type: integer}}}}}}
---
kind: ValidatingWebhookConfiguration
webhooks:
  - clientConfig: {service: {path: /validate}}
";

    #[test]
    fn the_stored_version_counts() {
        let (crds, hooks) = read(Path::new("a.yaml"), FILE).unwrap();
        assert_eq!(crds[0].resource(), "memcacheds.cache.example.com/v1");
        assert!(crds[0].observes);
        assert_eq!(hooks, [Hook { file: "a.yaml".into(), is_mutating: false, path: "/validate".into() }]);
    }

    #[test]
    fn templates_and_broken_files_are_told_only_where_they_matter() {
        let template = "{{- if .Values.crds }}\nkind: CustomResourceDefinition\n";
        assert!(read(Path::new("a.yaml"), template).unwrap_err().contains("helm template"));
        assert_eq!(read(Path::new("a.yaml"), "{{ nothing: of ours").unwrap(), (Vec::new(), Vec::new()));
        assert!(read(Path::new("a.yaml"), "kind: CustomResourceDefinition\nspec: [").is_err());
    }
}

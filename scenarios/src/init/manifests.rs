//! The custom resources and webhooks in the project's manifests.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::crd::{Crd, Hook};
use super::sample::{self, Sample};
use super::yaml;

#[derive(Debug, Default, PartialEq)]
pub(super) struct Defined {
    pub(super) crds: Vec<Crd>,
    pub(super) hooks: Vec<Hook>,
    pub(super) samples: Vec<Sample>,
    /// `CustomResourceDefinition`s and webhook configurations as the file contains them.
    pub(super) objects: Vec<Value>,
    /// Custom resources in any folder, used as samples if a kind has no samples in a sample folder.
    pub(super) shown: Vec<Sample>,
    /// Objects in sample folders that samples may need.
    pub(super) companions: Vec<Value>,
    /// Workloads, and the objects that workloads need.
    pub(super) deployed: Vec<Value>,
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
    scope: String,
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
    schema: Value,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Webhook {
    client_config: ClientConfig,
    rules: Vec<Rule>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Rule {
    api_groups: Vec<String>,
    resources: Vec<String>,
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

/// JSON pointer, below `schema`, to the observed generation in the status.
const OBSERVED: &str = "/openAPIV3Schema/properties/status/properties/observedGeneration";
/// JSON pointer, below `schema`, to the observed generation in conditions.
const CONDITIONS: &str = "/openAPIV3Schema/properties/status/properties/conditions/items/properties/observedGeneration";
const SPEC: &str = "/openAPIV3Schema/properties/spec";
/// Maximum length of a message: three lines of a terminal.
const LINE_MAX: usize = 240;
pub(super) const CRD: &str = "CustomResourceDefinition";
const MUTATING: &str = "MutatingWebhookConfiguration";
const VALIDATING: &str = "ValidatingWebhookConfiguration";

/// The message about a template of a chart, which is skipped.
pub(super) const TEMPLATE: &str = "it is a template: render it, for example with `helm template`, and try again";

/// Whether a `CustomResourceDefinition` has template braces outside its schemas: in a name, an annotation or a path.
pub(super) fn has_template(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("{{"),
        Value::Array(items) => items.iter().any(has_template),
        Value::Object(parts) => parts
            .iter()
            .any(|(key, part)| key.contains("{{") || (key != "schema" && key != "description" && has_template(part))),
        _ => false,
    }
}

/// Whether a file may contain Kubernetes manifests, by its name.
pub(super) fn is_manifest(path: &Path) -> bool {
    // A kustomization names kinds that it changes, and defines none.
    let is_other = path.file_stem().is_some_and(|stem| stem == "kustomization");
    !is_other && path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml")
}

/// Whether a text outside comments names a kind of definition, with or without quotes. Java generators write quotes.
fn names_one(text: &str) -> bool {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#') && line.contains("kind"));
    lines.into_iter().any(|line| [CRD, MUTATING, VALIDATING].iter().any(|kind| line.contains(kind)))
}

/// Whether a text looks like an object of a custom group.
fn shows(text: &str) -> bool {
    let group = text.lines().find_map(|line| line.strip_prefix("apiVersion:")?.trim().split_once('/'));
    let is_own = |group: &str| group.contains('.') && !group.ends_with(".k8s.io") && !text.contains("{{");
    group.is_some_and(|(group, _)| is_own(group.trim_matches('"')))
        && text.lines().any(|line| line.starts_with("spec:"))
}

/// Whether a text names a kind of workload, or a kind that workloads need.
fn deploys(text: &str) -> bool {
    let kinds = ["Deployment", "StatefulSet", "DaemonSet", "Namespace", "ConfigMap", "Secret", "ServiceAccount"];
    let lines = text.lines().filter_map(|line| line.strip_prefix("kind:"));
    lines.map(|kind| kind.trim().trim_matches('"')).any(|kind| kinds.contains(&kind))
}

/// Whether an object is a `CustomResourceDefinition` or a webhook configuration.
pub(super) fn is_definition(object: &Value) -> bool {
    [CRD, MUTATING, VALIDATING].iter().any(|kind| object["kind"] == *kind)
}

/// Parses the definitions in a file. A file without definitions need not be YAML, because templates of charts are not
/// YAML.
///
/// # Errors
///
/// Fails if the file names a kind of definition and cannot be parsed.
pub(super) fn read(file: &Path, text: &str) -> Result<Defined, String> {
    let mut defined = Defined::default();
    let is_sample = sample::is_sample(file);
    for document in documents(text) {
        let is_named = names_one(&document);
        if is_sample && !is_named {
            // Samples may contain anything.
            let Ok(object) = yaml::object(&document) else { continue };
            match sample::read(file, &object) {
                Some(sample) => defined.samples.push(sample),
                None if sample::is_whole(&object) => defined.companions.push(object),
                None => {}
            }
        }
        if !is_named {
            if !is_sample && shows(&document) {
                defined.shown.extend(yaml::object(&document).ok().and_then(|object| sample::read(file, &object)));
            }
            if !is_sample && deploys(&document) {
                // Helm renders objects that have template braces.
                defined.deployed.extend(yaml::object(&document).ok().filter(|object| !has_template(object)));
            }
            continue;
        }
        // A description may explain templates. Only a document that is no YAML, or has braces in place of a name, is a
        // template.
        let fail = |error: &dyn std::fmt::Display| {
            if document.contains("{{") { TEMPLATE.to_owned() } else { first_line(&error.to_string()) }
        };
        let object: Value = yaml::object(&document).map_err(|error| fail(&error))?;
        if has_template(&object) {
            return Err(TEMPLATE.to_owned());
        }
        defined.take(file, object).map_err(|error| fail(&error))?;
    }
    Ok(defined)
}

impl Defined {
    pub(super) fn take(&mut self, file: &Path, object: Value) -> Result<(), serde_json::Error> {
        if !is_definition(&object) {
            return Ok(());
        }
        let manifest: Manifest = serde_json::from_value(object.clone())?;
        let before = self.crds.len() + self.hooks.len();
        match manifest.kind.as_str() {
            CRD => self.crds.extend(manifest.spec.and_then(|spec| crd(file, spec, &object)).filter(Crd::is_fine)),
            kind => {
                let hooks = manifest.webhooks.into_iter().map(|hook| Hook {
                    file: file.to_owned(),
                    is_mutating: kind == MUTATING,
                    path: hook.client_config.service.path,
                    asked: hook.rules.into_iter().map(|rule| (rule.api_groups, rule.resources)).collect(),
                });
                self.hooks.extend(hooks.filter(|hook| is_path(&hook.path)));
            }
        }
        // Patches of a kustomization name the kinds as well, and define nothing.
        if self.crds.len() + self.hooks.len() > before {
            self.objects.push(object);
        }
        Ok(())
    }
}

/// Whether a text is a plain path of a URL.
fn is_path(path: &str) -> bool {
    path.starts_with('/') && path.len() <= 1000 && path.chars().all(|c| c.is_ascii_graphic() && !"'\"\\`".contains(c))
}

fn crd(file: &Path, spec: Spec, object: &Value) -> Option<Crd> {
    let version = spec.versions.into_iter().find(|version| version.storage)?;
    Some(Crd {
        file: file.to_owned(),
        group: spec.group,
        plural: spec.names.plural,
        kind: spec.names.kind,
        observes: version.schema.pointer(OBSERVED).is_some(),
        has_conditions: version.schema.pointer(CONDITIONS).is_some(),
        spec: version.schema.pointer(SPEC).cloned().unwrap_or_default(),
        version: version.name,
        is_structural: version.schema.pointer("/openAPIV3Schema/type").is_some(),
        is_cluster_wide: spec.scope == "Cluster",
        definition: object.clone(),
    })
}

pub(super) fn documents(text: &str) -> Vec<String> {
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

/// The first line of a message, shortened to fit a terminal.
pub(super) fn first_line(text: &str) -> String {
    yaml::printable(&text.lines().next().unwrap_or_default().chars().take(LINE_MAX).collect::<String>())
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
    rules: [{apiGroups: [cache.example.com], apiVersions: [v1], operations: [CREATE], resources: [memcacheds]}]
";

    #[test]
    fn the_stored_version_counts() {
        let Defined { crds, hooks, .. } = read(Path::new("a.yaml"), FILE).unwrap();
        assert_eq!(crds[0].resource(), "memcacheds.cache.example.com/v1");
        assert!(crds[0].observes);
        let quoted = FILE.replace("kind: CustomResourceDefinition", "kind: \"CustomResourceDefinition\"");
        assert_eq!(read(Path::new("a.yaml"), &quoted).unwrap().crds.len(), 1);
        let comment = "# kind: CustomResourceDefinition\n- {{ not: ours\n";
        assert_eq!(read(Path::new("a.yaml"), comment).unwrap(), Defined::default());
        assert_eq!((hooks[0].path.as_str(), hooks[0].is_mutating), ("/validate", false));
        assert!(hooks[0].is_about(&crds[0]) && !hooks[0].is_about(&Crd { plural: "others".into(), ..crds[0].clone() }));
    }

    /// A definition with template braces in the description of a field is not treated as a template.
    #[test]
    fn a_description_of_a_template_is_none() {
        let schema = "{openAPIV3Schema: {description: 'such as {{ .cluster.name }}-{{ .random }}', properties: ";
        let text = FILE.replace("{openAPIV3Schema: {properties: ", schema);
        assert_eq!(read(Path::new("a.yaml"), &text).unwrap().crds.len(), 1);
    }

    /// Names that an API server would refuse are skipped, because such names could break a line of the scenario or
    /// control a terminal.
    #[test]
    fn names_that_are_none_are_left_out() {
        let crd = |kind: &str, group: &str| {
            let object = serde_json::json!({
                "kind": "CustomResourceDefinition",
                "spec": {"group": group, "names": {"plural": "a", "kind": kind}, "versions": [{"name": "v1", "storage": true}]},
            });
            read(Path::new("a.yaml"), &format!("kind: CustomResourceDefinition\nspec: {}\n", object["spec"]))
                .unwrap()
                .crds
                .len()
        };
        assert_eq!(crd("Shop", "a.example.com"), 1);
        assert_eq!(crd("Shop\nfaults: x", "a.example.com"), 0);
        assert_eq!(crd("Shop", "a\u{1b}[2J"), 0);
        let hook =
            "kind: ValidatingWebhookConfiguration\nwebhooks: [{clientConfig: {service: {path: \"/a\\nb: c\"}}}]\n";
        assert_eq!(read(Path::new("a.yaml"), hook).unwrap().hooks.len(), 0);
    }

    #[test]
    fn samples_are_objects_that_say_something() {
        let text = "apiVersion: a.example.com/v1\nkind: Shop\nspec: {size: 1}\n---\nkind: Shop\nspec:\n  # nothing\n";
        assert_eq!(read(Path::new("config/samples/a.yaml"), text).unwrap().samples.len(), 1);
        assert_eq!(read(Path::new("config/a.yaml"), text).unwrap().samples.len(), 0);
    }

    #[test]
    fn templates_and_broken_files_are_told_only_where_they_matter() {
        let template = "{{- if .Values.crds }}\nkind: CustomResourceDefinition\n";
        assert!(read(Path::new("a.yaml"), template).unwrap_err().contains("helm template"));
        for braces in ["group: '{{ .Values.group }}'", "group: {{ .Values.group }}"] {
            let template = FILE.replace("group: cache.example.com", braces);
            assert!(read(Path::new("a.yaml"), &template).unwrap_err().contains("helm template"), "{braces}");
        }
        assert_eq!(read(Path::new("a.yaml"), "{{ nothing: of ours").unwrap(), Defined::default());
        assert!(read(Path::new("a.yaml"), "kind: CustomResourceDefinition\nspec: [").is_err());
    }
}

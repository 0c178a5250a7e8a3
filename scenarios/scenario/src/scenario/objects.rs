//! The objects that the load generator sends directly to a project's own webhooks. By default these are the churned
//! objects. If no webhook reviews a churned object, one object is generated for each kind in the webhooks' rules, from
//! the schema in the kind's definition.

use loadgen::admission::{Hook as Asked, Operation, Own};
use loadgen::churn::{self, Expect};
use serde_json::Value;

use super::manifests::Manifest;
use super::webhook::Configuration;
use super::{Scenario, parts};

const OPERATIONS: [(Operation, &str); 3] =
    [(Operation::Create, "CREATE"), (Operation::Update, "UPDATE"), (Operation::Delete, "DELETE")];

/// All objects that the load generator sends, each with the webhooks that review it.
pub(super) fn of(scenario: &Scenario, manifests: &[Manifest], configurations: &[Configuration]) -> Vec<Own> {
    let mut all = Vec::new();
    for config in scenario.churn.iter() {
        let hooks = reviewers(configurations, &config.resource);
        if hooks.is_empty() {
            continue;
        }
        let schema = schema(manifests, &config.resource);
        let mut add = |object: &Value, expect, called: Option<&String>| {
            let mut object = object.clone();
            if let Some(schema) = schema {
                churn::fill(schema, &mut object);
            }
            all.push(Own {
                resource: config.resource.clone(),
                object,
                scope: config.scope,
                expect,
                made: config.made,
                called: called.cloned(),
                hooks: hooks.clone(),
            });
        };
        if let Some(template) = &config.template {
            add(template, Expect::Allowed, None);
        }
        for sample in &config.templates {
            if let Some(object) = &sample.object {
                add(object, sample.expect, sample.file.as_ref());
            }
        }
    }
    if !all.is_empty() {
        return all;
    }
    for definition in manifests.iter().filter(|one| one.is_definition()) {
        let Some(resource) = resource(&definition.object) else { continue };
        let hooks = reviewers(configurations, &resource);
        if hooks.is_empty() {
            continue;
        }
        let version = resource.rsplit('/').next().unwrap_or_default();
        // An object that cannot be generated is sent once the user writes it down.
        let Ok((object, scope)) = churn::generate(&definition.object, version) else { continue };
        let scope = Some(scope);
        all.push(Own { resource, object, scope, expect: Expect::Allowed, made: true, called: None, hooks });
    }
    all
}

/// The webhooks that review objects of this resource, each with the reviewed operations.
fn reviewers(configurations: &[Configuration], resource: &str) -> Vec<Asked> {
    let Some((group, version, plural)) = parts(resource) else { return Vec::new() };
    let hooks = configurations.iter().flat_map(Configuration::hooks);
    let asked = hooks.map(|hook| {
        let covered = OPERATIONS.into_iter().filter(|(_, name)| hook.covers(name, &group, &version, &plural));
        let operations = covered.map(|(operation, _)| operation).collect();
        Asked { path: hook.path(), mutating: hook.mutating, operations }
    });
    asked.filter(|hook| !hook.operations.is_empty()).collect()
}

/// The schema of a resource, if one of the manifests defines it.
fn schema<'a>(manifests: &'a [Manifest], resource: &str) -> Option<&'a Value> {
    let (name, watch) = churn::names(resource)?;
    let version = watch.rsplit('/').next()?;
    let definition =
        manifests.iter().find(|one| one.is_definition() && one.object["metadata"]["name"] == name.as_str())?;
    let versions = definition.object["spec"]["versions"].as_array()?;
    versions.iter().find(|one| one["name"] == version)?.pointer("/schema/openAPIV3Schema")
}

/// The first served version of a custom resource: `caches.cache.example.com/v1`.
fn resource(definition: &Value) -> Option<String> {
    let versions = definition["spec"]["versions"].as_array()?;
    let version = versions.iter().find(|version| version["served"] != false)?["name"].as_str()?;
    Some(format!("{}/{version}", definition["metadata"]["name"].as_str()?))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::scenario::Source;

    const CRD: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: caches.cache.example.com}
spec:
  group: cache.example.com
  scope: Namespaced
  names: {kind: Cache, plural: caches}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, minimum: 1, maximum: 5}
              mode: {type: string, default: fast, enum: [fast, safe]}
";
    const WEBHOOKS: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: m}
webhooks:
- {name: m.kb.io, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {service: {name: s, namespace: n, path: /mutate}}, rules: [{operations: [CREATE, UPDATE], apiGroups: [cache.example.com], apiVersions: [v1], resources: [caches]}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: v}
webhooks:
- {name: v.kb.io, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {service: {name: s, namespace: n, path: /validate}}, rules: [{operations: [CREATE], apiGroups: [cache.example.com], apiVersions: [v1], resources: [caches]}]}
";

    fn read(folder: &Path, churn: &str) -> Result<Scenario, String> {
        std::fs::write(folder.join("crd.yaml"), CRD).unwrap();
        std::fs::write(folder.join("webhooks.yaml"), WEBHOOKS).unwrap();
        std::fs::write(folder.join("bad.yaml"), "kind: Cache\nspec: {size: 5}\n").unwrap();
        let text = format!(
            "apiVersion: longhaul/v1\nname: x\ndescription: y\nphases: {{warmUp: 1s, steady: 2s, drain: 1s}}\ncontrolPlane: {{kind: mock, \
             manifests: [crd.yaml]}}\nsubject: {{command: [x], witness: {{kind: http}}, install: {{webhooks: \
             webhooks.yaml}}}}\nadmission: {{rate: 100/s}}\n{churn}"
        );
        Source::parse(&text, "test", folder).map(|source| source.scenario).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_churned_is_what_is_sent() {
        let folder = tempfile::tempdir().unwrap();
        let churn = "churn: {resource: caches.cache.example.com/v1, population: 5, rate: 1/s, templates: [{object: {kind: Cache, spec: {size: \
                     2}}}, {file: bad.yaml, expect: denied}]}\n";
        let scenario = read(folder.path(), churn).unwrap();
        let objects = &scenario.admission.as_ref().unwrap().objects;
        assert_eq!(objects.iter().map(|own| own.expect).collect::<Vec<_>>(), [Expect::Allowed, Expect::Denied]);
        assert_eq!(
            objects[0].object["spec"],
            json!({"size": 2, "mode": "fast"}),
            "with the defaults of the definition"
        );
        assert_eq!(objects[1].called.as_deref(), Some("bad.yaml"));
        let paths: Vec<&str> = objects[0].hooks.iter().map(|hook| &*hook.path).collect();
        assert_eq!(paths, ["/mutate", "/validate"]);
        assert_eq!(objects[0].hooks[1].operations, [Operation::Create]);
    }

    /// If the webhooks review objects that the user wrote, no objects are generated from definitions of other kinds. A
    /// webhook checks more than a definition states, so a refusal of generated objects would prove nothing.
    #[test]
    fn what_is_only_defined_is_not_sent_beside_what_is_churned() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("others.yaml"), CRD.replace("caches", "others").replace("Cache", "Other"))
            .unwrap();
        std::fs::write(folder.path().join("all.yaml"), WEBHOOKS.replace("resources: [caches]", "resources: ['*/*']"))
            .unwrap();
        let churn = |section: &str| {
            let text = format!(
                "apiVersion: longhaul/v1\nname: x\ndescription: y\nphases: {{warmUp: 1s, steady: 2s, drain: 1s}}\ncontrolPlane: {{kind: mock, \
                 manifests: [crd.yaml, others.yaml]}}\nsubject: {{command: [x], witness: {{kind: http}}, install: {{webhooks: \
                 all.yaml}}}}\nadmission: {{rate: 100/s}}\n{section}"
            );
            std::fs::write(folder.path().join("crd.yaml"), CRD).unwrap();
            let scenario = Source::parse(&text, "test", folder.path()).unwrap().scenario;
            let objects = scenario.admission.unwrap().objects;
            objects.into_iter().map(|own| (own.resource, own.made)).collect::<Vec<_>>()
        };
        let caches = ("caches.cache.example.com/v1".to_owned(), false);
        let given = "churn: {resource: caches.cache.example.com/v1, population: 5, rate: 1/s, template: {kind: Cache, spec: {size: 2}}}\n";
        assert_eq!(churn(given), std::slice::from_ref(&caches));
        // Without a template, churned objects are generated from the definition as well.
        let left = "churn: {resource: caches.cache.example.com/v1, population: 5, rate: 1/s}\n";
        assert_eq!(churn(left), [(caches.0.clone(), true)]);
        assert_eq!(churn("").len(), 2);
    }

    /// If a resource is not churned, or churned without a template, an object is generated from its definition. For a
    /// resource without a definition no object is sent.
    #[test]
    fn what_is_defined_is_sent_as_well() {
        let folder = tempfile::tempdir().unwrap();
        let scenario = read(folder.path(), "").unwrap();
        let objects = &scenario.admission.as_ref().unwrap().objects;
        assert_eq!((objects.len(), &*objects[0].resource), (1, "caches.cache.example.com/v1"));
        assert!(objects[0].made, "whether it has to be let in nobody knows");
        std::fs::write(folder.path().join("other.yaml"), WEBHOOKS.replace("caches", "others")).unwrap();
        let text = "apiVersion: longhaul/v1\nname: x\ndescription: y\nphases: {warmUp: 1s, steady: 2s, drain: 1s}\nsubject: \
            {command: [x], witness: {kind: http}, install: {webhooks: other.yaml}}\nadmission: {rate: 100/s}\n";
        let error = Source::parse(text, "test", folder.path()).unwrap_err().to_string();
        assert!(error.contains("no webhook in") && error.contains("is asked about anything that"), "{error}");
    }
}

//! The contents of a script's writes: whole objects at creation, merge patches at updates. Pure: no I/O.

use std::collections::BTreeMap;

use base64::Engine as _;
use serde_json::{Value, json};

use crate::churn::resource::{Resource, Shape};
use crate::churn::template::{ObjectName, Template};
use crate::churn::version::{LABEL, Version};
use crate::seed;

/// The annotation for a step's `text` and `size` in objects of a template, which may have no other field for them.
const PAYLOAD: &str = "longhaul.dev/payload";

/// The contents of one version of an object. Every write of a script has its own number, so every write changes the
/// object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Content<'a> {
    pub labels: &'a BTreeMap<String, String>,
    pub seed: u64,
    pub number: u64,
    pub text: &'a str,
    pub bytes: u64,
}

/// The data from which objects are made: their resource, and a template if there is one.
#[derive(Clone, Copy)]
pub(super) struct Look<'a> {
    pub resource: &'a Resource,
    pub template: Option<&'a Template>,
}

impl Look<'_> {
    pub(super) fn create(&self, namespace: &str, name: &str, content: Content<'_>) -> Value {
        let Some(template) = self.template else { return create(self.resource, namespace, name, content) };
        let place = ObjectName { namespace: if self.resource.is_namespaced { namespace } else { "" }, name };
        let mut object = template.create(&self.resource.api_version(), place, content.version());
        // Churn identifies its own objects by this label.
        if let Some(labels) = object["metadata"]["labels"].as_object_mut() {
            labels.remove(LABEL);
        }
        json_patch::merge(&mut object, &content.beside());
        object
    }

    /// A JSON merge patch (RFC 7386) that changes only the object's contents, and its labels if the step has any.
    pub(super) fn update(&self, namespace: &str, name: &str, content: Content<'_>) -> Value {
        let Some(template) = self.template else { return update(self.resource, content) };
        let mut patch = template.update(ObjectName { namespace, name }, content.version());
        json_patch::merge(&mut patch, &content.beside());
        patch
    }
}

fn create(resource: &Resource, namespace: &str, name: &str, content: Content<'_>) -> Value {
    let mut object = json!({
        "apiVersion": resource.api_version(),
        "kind": resource.kind,
        "metadata": {"name": name, "namespace": namespace},
    });
    match resource.shape {
        Shape::Package => object["spec"] = json!({"network": {"allow": []}}),
        Shape::ConfigMap | Shape::Template => {}
        Shape::Secret => object["type"] = json!("Opaque"),
        Shape::Deployment => {
            // No replicas: no Pods are needed.
            let labels = json!({"app": name});
            object["spec"] = json!({
                "replicas": 0,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "app", "image": "registry.k8s.io/pause:3.10"}]}
                }
            });
        }
    }
    json_patch::merge(&mut object, &update(resource, content));
    object
}

/// A JSON merge patch (RFC 7386) that changes only the object's contents, and its labels if the step has any.
fn update(resource: &Resource, content: Content<'_>) -> Value {
    let payload = content.payload();
    let mut patch = match resource.shape {
        Shape::Package => json!({"spec": {"payload": payload}}),
        Shape::ConfigMap | Shape::Template => json!({"data": {"payload": payload}}),
        Shape::Secret => {
            json!({"data": {"payload": base64::engine::general_purpose::STANDARD.encode(payload)}})
        }
        Shape::Deployment => {
            json!({"spec": {"template": {"metadata": {"annotations": {"longhaul.dev/payload": payload}}}}})
        }
    };
    if !content.labels.is_empty() {
        patch["metadata"] = json!({"labels": content.labels});
    }
    patch
}

impl Content<'_> {
    fn version(&self) -> Version {
        Version { seed: self.seed, section: 0, child: false, object: self.number, revision: self.number }
    }

    /// The fields that are added to a template: the labels, and an annotation with the number of the write, so that
    /// every write differs.
    fn beside(self) -> Value {
        let mut metadata = json!({"annotations": {PAYLOAD: self.payload()}});
        if !self.labels.is_empty() {
            metadata["labels"] = json!(self.labels);
        }
        json!({ "metadata": metadata })
    }

    fn payload(self) -> String {
        let mut payload = format!("{} {}", self.number, self.text);
        let missing = usize::try_from(self.bytes).unwrap_or(usize::MAX).saturating_sub(payload.len());
        if missing > 0 {
            payload.push_str(&seed::suffix(&mut seed::stream(self.seed, &format!("script {}", self.number)), missing));
        }
        payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_write_changes_something_and_keeps_text_and_size() {
        for spelled in ["packages.longhaul.dev/v1alpha1", "configmaps/v1", "secrets/v1", "deployments.apps/v1"] {
            let resource = Resource::parse(spelled).unwrap();
            let labels = BTreeMap::new();
            let content =
                |number| Content { labels: &labels, seed: 1, number, text: "žluťoučký 漢字 🚀", bytes: 4096 };
            let object = create(&resource, "n", "a", content(1));
            let mut changed = object.clone();
            json_patch::merge(&mut changed, &update(&resource, content(2)));
            assert_ne!(object, changed, "{spelled}");
            assert_eq!(object["metadata"], changed["metadata"], "{spelled}");
            assert!(changed.to_string().len() > 4096, "{spelled}");
            if resource.shape != Shape::Secret {
                assert!(changed.to_string().contains("žluťoučký 漢字 🚀"), "{spelled}");
            }
        }
    }

    /// Objects of a project's own kind come from a template. Each write has its own number, and the objects lack the
    /// labels that churn adds.
    #[test]
    fn a_template_is_filled_and_every_write_changes_something() {
        let template =
            json!({"kind": "Cache", "spec": {"size": "${random 1..2}"}, "metadata": {"labels": {"app": "x"}}});
        let template = Template::new(&template, &[]).unwrap();
        let labels = BTreeMap::from([("burst".to_owned(), "yes".to_owned())]);
        let content = |number| Content { labels: &labels, seed: 1, number, text: "漢", bytes: 100 };
        for (is_namespaced, namespace) in [(true, json!("n")), (false, Value::Null)] {
            let resource = Resource::any("caches.cache.example.com/v1", "Cache", is_namespaced).unwrap();
            let look = Look { resource: &resource, template: Some(&template) };
            let object = look.create("n", "a", content(1));
            assert_eq!((&object["kind"], &object["apiVersion"]), (&json!("Cache"), &json!("cache.example.com/v1")));
            assert_eq!((&object["metadata"]["name"], &object["metadata"]["namespace"]), (&json!("a"), &namespace));
            assert_eq!(object["metadata"]["labels"], json!({"app": "x", "burst": "yes"}));
            let mut versions = vec![object];
            for number in 2..20 {
                let mut next = versions[versions.len() - 1].clone();
                json_patch::merge(&mut next, &look.update("n", "a", content(number)));
                assert_ne!(next, versions[versions.len() - 1]);
                versions.push(next);
            }
            assert!(versions.iter().any(|one| one["spec"] != versions[0]["spec"]), "what varies does");
            assert!(versions[3]["metadata"]["annotations"][PAYLOAD].as_str().unwrap().starts_with("4 漢"));
        }
    }

    #[test]
    fn labels_are_put_beside_the_content() {
        let labels = BTreeMap::from([("burst".to_owned(), "yes".to_owned())]);
        let resource = Resource::parse("configmaps/v1").unwrap();
        let content = Content { labels: &labels, seed: 1, number: 1, text: "", bytes: 0 };
        let object = create(&resource, "n", "a", content);
        assert_eq!(object["metadata"], json!({"name": "a", "namespace": "n", "labels": {"burst": "yes"}}));
        assert_eq!(update(&resource, content)["metadata"], json!({"labels": {"burst": "yes"}}));
    }
}

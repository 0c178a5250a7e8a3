//! The contents of writes: whole objects at creation, merge patches at updates. Pure: the same seed, object and
//! revision give the same bytes, so no contents have to be remembered.

use base64::Engine as _;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::resource::{Resource, Shape};
use super::template::{ObjectName, Template};
use super::version::{LABEL, Version};
use crate::{Size, seed};

/// Bytes of filler in objects if the scenario sets no size.
const FILLER_BYTES: usize = 256;
#[derive(Debug, Clone)]
pub(crate) struct Content {
    pub size: Option<Size>,
    /// Templates of resources without built-in contents; each object is made from one of them.
    pub templates: Vec<Template>,
    /// Templates that must be refused, with their names.
    pub refused: Vec<(String, Template)>,
}

impl Content {
    fn template(&self, version: Version) -> Option<&Template> {
        let number = usize::try_from(version.object % self.templates.len().max(1) as u64).unwrap_or(0);
        self.templates.get(number)
    }

    /// The fields that updates of an object change.
    pub(super) fn varies(&self, version: Version) -> Vec<String> {
        self.template(version).map(|template| template.varies().to_vec()).unwrap_or_default()
    }

    /// Keeps only these fields among those that updates change.
    pub(super) fn keep(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.templates.iter_mut().for_each(|template| template.keep(&is_kept));
    }

    /// An object that must be refused, with the name of its template.
    pub(super) fn refused(
        &self,
        resource: &Resource,
        place: ObjectName<'_>,
        version: Version,
    ) -> Option<(&str, Value)> {
        let number = usize::try_from(version.revision % self.refused.len().max(1) as u64).unwrap_or(0);
        let (name, template) = self.refused.get(number)?;
        Some((name, template.create(&resource.api_version(), place, version)))
    }

    pub(super) fn create(&self, resource: &Resource, place: ObjectName<'_>, version: Version) -> Value {
        match self.template(version) {
            Some(template) => template.create(&resource.api_version(), place, version),
            None => create(resource, place.namespace, place.name, self.size, version),
        }
    }

    /// A merge patch of fields to which a reconciler reacts.
    pub(super) fn update(&self, resource: &Resource, place: ObjectName<'_>, version: Version) -> Value {
        match self.template(version) {
            Some(template) => template.update(place, version),
            None => update(resource, self.size, version),
        }
    }

    /// A merge patch of the same fields at each write, for a writer that uses server-side apply.
    pub(super) fn fields(&self, resource: &Resource, place: ObjectName<'_>, version: Version) -> Value {
        match resource.shape {
            Shape::Package => {
                let mut rng = version.rng();
                let bytes = filler_bytes(self.size, &mut rng);
                json!({"spec": {"payload": filler(&mut rng, bytes)}})
            }
            _ => self.update(resource, place, version),
        }
    }

    /// A merge patch of the status, for the operation `mix.status`.
    pub(super) fn status(&self, place: ObjectName<'_>, version: Version) -> Value {
        self.template(version).map(|template| template.status(place, version)).unwrap_or_default()
    }
}

/// A merge patch of only labels, or only annotations.
pub(super) fn marked(what: &'static str, version: Version) -> Value {
    json!({"metadata": {what: {"longhaul.dev/mark": version.revision.to_string()}}})
}

fn create(resource: &Resource, namespace: &str, name: &str, size: Option<Size>, version: Version) -> Value {
    let mut rng = version.rng();
    let bytes = filler_bytes(size, &mut rng);
    let mut object = json!({
        "apiVersion": resource.api_version(),
        "kind": resource.kind,
        "metadata": {"name": name, "namespace": namespace, "labels": {LABEL: version.tag()}},
    });
    match resource.shape {
        Shape::Package => {
            object["spec"] = json!({"network": {"allow": allow(&mut rng)}, "payload": filler(&mut rng, bytes)});
        }
        // A template makes its objects itself.
        Shape::Template => {}
        Shape::ConfigMap => object["data"] = data(&mut rng, bytes, version, str::to_owned),
        Shape::Secret => {
            object["type"] = json!("Opaque");
            // base64 makes four bytes of three.
            object["data"] = data(&mut rng, bytes / 4 * 3, version, base64);
        }
        Shape::Deployment => {
            // No replicas: on a real cluster the Deployment is watched and cached but needs no Pods.
            let labels = json!({"app": name});
            object["spec"] = json!({
                "replicas": 0,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels, "annotations": {"longhaul.dev/payload": filler(&mut rng, bytes)}},
                    "spec": {"containers": [{"name": "app", "image": "registry.k8s.io/pause:3.10"}]}
                }
            });
        }
    }
    object
}

/// A JSON merge patch (RFC 7386) that changes spec or data, and leaves fields of other writers unchanged, such as
/// status and finalizers.
fn update(resource: &Resource, size: Option<Size>, version: Version) -> Value {
    let mut rng = version.rng();
    let bytes = filler_bytes(size, &mut rng);
    match resource.shape {
        // One in two changes fields on which a reconciler acts, the other only fields that it stores.
        Shape::Package if rng.random_bool(0.5) => json!({"spec": {"network": {"allow": allow(&mut rng)}}}),
        Shape::Package => json!({"spec": {"payload": filler(&mut rng, bytes)}}),
        Shape::Template => json!({}),
        Shape::ConfigMap => json!({"data": data(&mut rng, bytes, version, str::to_owned)}),
        Shape::Secret => json!({"data": data(&mut rng, bytes / 4 * 3, version, base64)}),
        Shape::Deployment => {
            let annotations = json!({"longhaul.dev/payload": filler(&mut rng, bytes)});
            json!({"spec": {"template": {"metadata": {"annotations": annotations}}}})
        }
    }
}

/// One to three random entries of a list. Number and contents of these entries decide the objects that a reconciler
/// must create.
fn allow(rng: &mut ChaCha8Rng) -> Vec<Value> {
    let entry = |rng: &mut ChaCha8Rng| {
        let port = rng.random_range(1024..65_536);
        let direction = if rng.random_bool(0.5) { "Ingress" } else { "Egress" };
        json!({
            "description": format!("{direction} on {port}, {}", seed::suffix(rng, 6)),
            "direction": direction,
            "podLabels": {"app": seed::suffix(rng, 5)},
            "remoteNamespace": format!("team-{}", rng.random_range(0..20)),
            "port": port,
        })
    };
    (0..rng.random_range(1..=3)).map(|_| entry(rng)).collect()
}

fn data(rng: &mut ChaCha8Rng, bytes: usize, version: Version, encode: impl Fn(&str) -> String) -> Value {
    json!({"revision": encode(&version.revision.to_string()), "payload": encode(&filler(rng, bytes))})
}

fn base64(text: &str) -> String {
    base64::engine::general_purpose::STANDARD.encode(text)
}

fn filler(rng: &mut ChaCha8Rng, bytes: usize) -> String {
    seed::suffix(rng, bytes)
}

fn filler_bytes(size: Option<Size>, rng: &mut ChaCha8Rng) -> usize {
    size.map_or(FILLER_BYTES, |size| usize::try_from(size.draw(rng)).unwrap_or(FILLER_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPELLED: [&str; 4] = ["packages.longhaul.dev/v1alpha1", "v1/configmaps", "v1/secrets", "apps/v1/deployments"];

    fn version(object: u64, revision: u64) -> Version {
        Version { seed: 7, section: 0, child: false, object, revision }
    }

    #[test]
    fn the_same_version_is_the_same_and_every_update_changes_something() {
        for spelled in SPELLED {
            let resource = Resource::parse(spelled).unwrap();
            let object = create(&resource, "n", "o", None, version(1, 0));
            assert_eq!(object, create(&resource, "n", "o", None, version(1, 0)));
            assert!(object["spec"].is_object() || object["data"].is_object(), "{spelled}");
            let mut changed = object.clone();
            for revision in 1..20 {
                let before = changed.clone();
                json_patch::merge(&mut changed, &update(&resource, None, version(1, revision)));
                assert_ne!(changed, before, "{spelled}");
                assert_eq!(changed["metadata"], object["metadata"], "{spelled}: only spec or data");
            }
        }
    }

    #[test]
    fn packages_have_one_to_three_entries_of_the_documented_form() {
        let resource = Resource::parse(SPELLED[0]).unwrap();
        let mut lengths = std::collections::BTreeSet::new();
        for object in 0..50 {
            let package = create(&resource, "n", "o", None, version(object, 0));
            let entries = package["spec"]["network"]["allow"].as_array().unwrap().clone();
            lengths.insert(entries.len());
            for entry in entries {
                assert!(["Ingress", "Egress"].contains(&entry["direction"].as_str().unwrap()));
                assert!(entry["port"].as_u64().unwrap() < 65_536);
                let text = |field: &str| !entry[field].as_str().unwrap().is_empty();
                assert!(text("description") && text("remoteNamespace") && entry["podLabels"].is_object());
            }
        }
        assert_eq!(lengths.into_iter().collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn sizes_are_kept() {
        let size = Size { median: units::Bytes(10_000), max: units::Bytes(10_000) };
        for spelled in SPELLED {
            let resource = Resource::parse(spelled).unwrap();
            let length = create(&resource, "n", "o", Some(size), version(1, 0)).to_string().len();
            assert!((9_990..11_200).contains(&length), "{spelled}: {length}");
        }
    }
}

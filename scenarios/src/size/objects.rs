//! Objects as real clusters hold them: labels, owners, kubectl's annotation, `managedFields`, Helm's Secrets.
//!
//! Owns the shape and the exact size of the objects. The same seed gives the same bytes. Clients can
//! decode the objects, but the images and hosts in them do not exist.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mock_kube::KindOf;
use serde_json::{Map, Value, json};

/// Number of objects in a namespace, as in a cluster with many tenants.
pub(crate) const PER_NAMESPACE: u64 = 100;
const TEAMS: [&str; 6] = ["payments", "search", "identity", "billing", "platform", "mobile"];
const APPS: [&str; 8] = ["api", "worker", "frontend", "cache", "gateway", "scheduler", "exporter", "proxy"];
/// Every n-th Secret belongs to a release of Helm.
const HELM_EVERY: u64 = 4;
/// Annotation of `kubectl apply` with the object as it was applied.
const APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The annotation of kubectl gets the padding divided by this number, if the object has a `data` field for the rest.
const APPLIED_SHARE: usize = 4;
/// Maximum size of all annotations together (`TotalAnnotationSizeLimitB` of apimachinery).
const ANNOTATIONS_MAX: usize = 200 << 10;

/// A source of objects of one kind.
pub(crate) struct Maker<'a> {
    pub(crate) kind: &'a KindOf,
    pub(crate) seed: u64,
    /// Wanted size of an object as JSON, in bytes.
    pub(crate) bytes: u64,
}

impl Maker<'_> {
    /// The namespace of the object with this number; `None` for cluster-scoped kinds.
    pub(crate) fn namespace(&self, number: u64) -> Option<String> {
        self.kind.is_namespaced.then(|| namespace(number / PER_NAMESPACE))
    }

    /// The object with this number. `owner` is the uid of the owner in its namespace.
    pub(crate) fn object(&self, number: u64, owner: Option<&str>) -> Value {
        let mut random = Random::new(self.seed ^ (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let (team, app) = (TEAMS[random.below(TEAMS.len())], APPS[random.below(APPS.len())]);
        let name = format!("{app}-{number:06}");
        let manager = if random.below(3) == 0 { "helm" } else { "kubectl-client-side-apply" };
        let mut metadata = json!({
            "name": name,
            "labels": {
                "app.kubernetes.io/name": app,
                "app.kubernetes.io/instance": format!("{app}-{team}"),
                "app.kubernetes.io/managed-by": if manager == "helm" { "Helm" } else { "kubectl" },
                "app.kubernetes.io/version": format!("{}.{}.{}", random.below(5), random.below(20), random.below(30)),
                "example.com/team": team,
            },
            "annotations": {APPLIED: ""},
            "managedFields": [{
                "manager": manager,
                "operation": "Update",
                "apiVersion": self.kind.api_version,
                "time": "2026-03-01T10:00:00Z",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:metadata": {
                    "f:annotations": {".": {}, format!("f:{APPLIED}"): {}},
                    "f:labels": {".": {}, "f:app.kubernetes.io/name": {}, "f:app.kubernetes.io/instance": {}, "f:example.com/team": {}},
                }},
            }],
        });
        if let Some(namespace) = self.namespace(number) {
            metadata["namespace"] = namespace.into();
        }
        if let Some(uid) = owner {
            metadata["ownerReferences"] =
                json!([{"apiVersion": "v1", "kind": "ServiceAccount", "name": OWNER, "uid": uid}]);
        }
        let mut object = json!({"apiVersion": self.kind.api_version, "kind": self.kind.kind, "metadata": metadata});
        self.body(&mut object, number, app);
        self.pad(&mut object, number, &mut random);
        object
    }

    /// Adds the fields that clients expect of well-known kinds.
    fn body(&self, object: &mut Value, number: u64, app: &str) {
        let template = json!({
            "metadata": {"labels": {"app.kubernetes.io/name": app}},
            "spec": {"containers": [{
                "name": app,
                "image": format!("registry.example/{app}:1.2.3"),
                "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                "env": [{"name": "LOG_LEVEL", "value": "info"}],
                "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
            }]},
        });
        let selector = json!({"matchLabels": {"app.kubernetes.io/name": app}});
        match (self.kind.api_version.as_str(), self.kind.kind.as_str()) {
            ("v1", "Secret") => {
                let is_helm = number.is_multiple_of(HELM_EVERY);
                object["type"] = if is_helm { "helm.sh/release.v1" } else { "Opaque" }.into();
                object["data"] = json!({});
                if is_helm {
                    let labels = &mut object["metadata"]["labels"];
                    (labels["owner"], labels["status"]) = ("helm".into(), "deployed".into());
                    labels["version"] = "1".into();
                }
            }
            ("v1", "ConfigMap") => object["data"] = json!({}),
            ("v1", "Pod") => {
                object["spec"] = template["spec"].clone();
                object["spec"]["nodeName"] = format!("node-{}", number % 50).into();
                object["status"] = json!({
                    "phase": "Running",
                    "podIP": format!("10.{}.{}.{}", number >> 16 & 255, number >> 8 & 255, number & 255),
                    "conditions": [{"type": "Ready", "status": "True"}, {"type": "PodScheduled", "status": "True"}],
                });
            }
            ("apps/v1", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet") => {
                object["spec"] = json!({"selector": selector, "template": template});
            }
            ("batch/v1", "Job") => {
                object["spec"] = json!({"template": template, "suspend": true});
                object["spec"]["template"]["spec"]["restartPolicy"] = "Never".into();
            }
            ("batch/v1", "CronJob") => {
                object["spec"] =
                    json!({"schedule": "0 0 1 1 *", "suspend": true, "jobTemplate": {"spec": {"template": template}}});
            }
            ("v1", "Service") => {
                object["spec"] =
                    json!({"selector": {"app.kubernetes.io/name": app}, "ports": [{"port": 80, "targetPort": 8080}]});
            }
            ("v1", "Node") => {
                object["status"] = json!({
                    "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
                    "conditions": [{"type": "Ready", "status": "True"}],
                });
            }
            ("discovery.k8s.io/v1", "EndpointSlice") => {
                object["addressType"] = "IPv4".into();
                object["endpoints"] = json!([{"addresses": ["10.0.0.1"], "conditions": {"ready": true}}]);
                object["ports"] = json!([{"port": 8080, "protocol": "TCP", "name": "http"}]);
            }
            _ => {
                for (field, value) in self.generated(object) {
                    object[field] = value;
                }
            }
        }
    }

    /// The fields of a custom object that its schema requires, and its `spec`. An empty `spec` if the schema does not
    /// describe a required field enough.
    fn generated(&self, object: &Value) -> Map<String, Value> {
        let Some(definition) = &self.kind.definition else { return Map::new() };
        let version = self.kind.api_version.rsplit('/').next().unwrap_or_default();
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let generated = loadgen::churn::generate(definition, version).ok().and_then(|(template, _)| {
            loadgen::churn::example(&template, &self.kind.api_version, text("namespace"), text("name")).ok()
        });
        let Some(Value::Object(mut fields)) = generated else {
            return Map::from_iter([("spec".to_owned(), json!({}))]);
        };
        fields.retain(|field, _| !["apiVersion", "kind", "metadata", "status"].contains(&field.as_str()));
        fields
    }

    /// Pads the object to its size: with the annotation of kubectl, and with data if its kind has a `data` field.
    fn pad(&self, object: &mut Value, number: u64, random: &mut Random) {
        let wanted = usize::try_from(self.bytes).unwrap_or(usize::MAX);
        let missing = wanted.saturating_sub(object.to_string().len());
        let (is_secret, has_data) = (object["kind"] == "Secret", object["data"].is_object());
        let applied = if has_data { missing / APPLIED_SHARE } else { missing }.min(ANNOTATIONS_MAX);
        object["metadata"]["annotations"][APPLIED] = settings(applied, random).into();
        if !has_data {
            return;
        }
        let rest = wanted.saturating_sub(object.to_string().len());
        let key = match (is_secret, number.is_multiple_of(HELM_EVERY)) {
            (true, true) => "release",
            (true, false) => "tls.key",
            (false, _) => "config.properties",
        };
        // The key, its quotes and its colon.
        let rest = rest.saturating_sub(key.len() + 5);
        let text = if is_secret {
            let bytes: Vec<u8> = (0..rest / 4 * 3).map(|_| random.byte()).collect();
            STANDARD.encode(bytes)
        } else {
            settings(rest, random)
        };
        object["data"][key] = text.into();
    }
}

/// The name of the `ServiceAccount` in each namespace that owns objects.
pub(crate) const OWNER: &str = "release";

/// The name of the namespace with this number.
pub(crate) fn namespace(number: u64) -> String {
    format!("tenant-{number:05}")
}

/// Text of this length that looks like settings of a program, without characters that JSON escapes.
fn settings(bytes: usize, random: &mut Random) -> String {
    let mut text = String::with_capacity(bytes + 40);
    while text.len() < bytes {
        let (app, team) = (APPS[random.below(APPS.len())], TEAMS[random.below(TEAMS.len())]);
        text.push_str(app);
        text.push('.');
        text.push_str(team);
        text.push('=');
        let _ = write!(text, "{:x}", random.next());
        text.push(';');
    }
    text.truncate(bytes);
    text
}

/// xorshift64 (Marsaglia 2003).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap_or_default() % limit.max(1)
    }

    fn byte(&mut self) -> u8 {
        self.next().to_be_bytes()[1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(api_version: &str, kind: &str, is_namespaced: bool) -> KindOf {
        KindOf { api_version: api_version.to_owned(), kind: kind.to_owned(), is_namespaced, definition: None }
    }

    /// Objects have the wanted size, whatever their kind, and differ from each other.
    #[test]
    fn objects_have_their_size_and_differ() {
        let kinds = [
            kind("v1", "Secret", true),
            kind("v1", "ConfigMap", true),
            kind("v1", "Pod", true),
            kind("apps/v1", "Deployment", true),
            kind("v1", "Node", false),
            kind("rbac.authorization.k8s.io/v1", "Role", true),
        ];
        for kind in &kinds {
            let maker = Maker { kind, seed: 7, bytes: 10 << 10 };
            let [one, other] = [0, 1].map(|number| maker.object(number, Some("u")));
            for object in [&one, &other] {
                let size = object.to_string().len();
                assert!((10_000..=10_240).contains(&size), "{} has {size} bytes", kind.kind);
            }
            assert_ne!(one["metadata"]["annotations"], other["metadata"]["annotations"], "{}", kind.kind);
            assert_eq!(one, maker.object(0, Some("u")), "the same seed gives the same object");
            assert_eq!(one["metadata"]["namespace"].is_string(), kind.is_namespaced);
        }
    }

    /// A custom object has the fields that its schema requires, because a program may rely on them.
    #[test]
    fn custom_objects_have_their_required_fields() {
        let spec = json!({"type": "object", "required": ["image"], "properties": {"image": {"type": "string", "minLength": 3}}});
        let schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": spec}});
        let definition = json!({"spec": {
            "group": "example.com",
            "names": {"kind": "Widget", "plural": "widgets"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        }});
        let kind = KindOf { definition: Some(definition), ..kind("example.com/v1", "Widget", true) };
        let object = Maker { kind: &kind, seed: 7, bytes: 10 << 10 }.object(3, None);
        assert!(object["spec"]["image"].as_str().is_some_and(|image| image.len() >= 3), "{object:#}");
        assert!((10_000..=10_240).contains(&object.to_string().len()));
        assert_eq!(object["metadata"]["name"].as_str().map(|name| name.ends_with("000003")), Some(true));
    }

    /// A quarter of the Secrets are releases of Helm, with labels by which a selector finds them.
    #[test]
    fn some_secrets_are_of_helm() {
        let kind = kind("v1", "Secret", true);
        let maker = Maker { kind: &kind, seed: 7, bytes: 1 << 10 };
        let helm =
            (0..100).filter(|number| maker.object(*number, None)["metadata"]["labels"]["owner"] == "helm").count();
        assert_eq!(helm, 25);
    }
}

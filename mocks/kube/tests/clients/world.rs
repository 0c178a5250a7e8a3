//! A server, the harness's own client (kube-rs), and the record of the subject's requests, for all tests of clients.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use mock_faults::{Fault, FaultId, Name};
use mock_kube::{Config, Server, User};
use mock_pki::Authority;
use serde_json::{Value, json};
use units::Span;

/// Longest wait of a test: a client's longest pause before it connects again (5 s), with a margin for a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(40);
/// Interval at which a waiting test checks its condition.
pub const GLANCE: Duration = Duration::from_millis(20);

/// The full name of the custom resource in all tests of clients.
pub const PACKAGES: &str = "packages.longhaul.dev";

pub struct World {
    pub server: Server,
    pub harness: kube::Client,
    next_fault: u32,
}

impl World {
    pub async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub async fn with(adapt: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::new();
        config.users = vec![User::admin("subject", "subject-token"), User::admin("harness", "harness-token")];
        config.crds = vec![package_definition()];
        adapt(&mut config);
        let server = Server::start(config, &Authority::generate("test").unwrap()).await.unwrap();
        server.faults().target_users(["subject"]);
        let harness = client(&server, "harness").await;
        Self { server, harness, next_fault: 0 }
    }

    /// A kube-rs client with the subject's user.
    pub async fn subject(&self) -> kube::Client {
        client(&self.server, "subject").await
    }

    /// The packages in the namespace `default`, through the harness's client.
    pub fn packages(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.harness.clone(), "default", &package_resource())
    }

    pub async fn create(&self, name: &str) {
        let object = package(name);
        self.packages().create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    }

    /// Writes a new version of a package.
    pub async fn change(&self, name: &str, image: &str) {
        let patch = Patch::Merge(json!({"spec": {"image": image}}));
        self.packages().patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    pub async fn delete(&self, name: &str) {
        self.packages().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// The name and revision of each package in the namespace, as stored by the server.
    pub async fn truth(&self) -> BTreeMap<String, String> {
        let list = self.packages().list(&ListParams::default()).await.unwrap();
        let meta = |object: DynamicObject| (object.metadata.name.unwrap(), object.metadata.resource_version.unwrap());
        list.into_iter().map(meta).collect()
    }

    pub async fn get(&self, name: &str) -> Value {
        serde_json::to_value(self.packages().get(name).await.unwrap()).unwrap()
    }

    /// Waits until the subject has at least one open watch.
    pub async fn watched(&self) {
        until("the subject has an open watch", async || self.server.traffic("subject").watches_open > 0).await;
    }

    /// Begins a fault of watches of `resource`; returns its id, which its hits contain. The fault `reset` is momentary,
    /// because with a duration it would also reset every new watch.
    pub fn begin(&mut self, name: Name, resource: &str, adapt: impl FnOnce(&mut Fault)) -> FaultId {
        self.next_fault += 1;
        let id = FaultId(self.next_fault);
        let mut fault = Fault { resource: Some(resource.to_owned()), ..Fault::new(name, Span::default()) };
        adapt(&mut fault);
        self.server.faults().begin(id, &fault).unwrap();
        if name == Name::WatchReset {
            self.server.faults().end(id);
        }
        id
    }

    /// The subject's requests without the first `skip` ones, one line for each. A watch is listed after its end.
    pub fn story(&self, skip: usize) -> Vec<String> {
        let requests = self.server.requests();
        let subject = requests.iter().filter(|request| &*request.user == "subject");
        let line = |request: &mock_kube::RequestRecord| {
            let query = if request.query.is_empty() { String::new() } else { format!("?{}", request.query) };
            let at_ms = request.at_us / 1000;
            let version = request.http_version;
            format!("{at_ms} ms h{version} {} {}{query} -> {}", request.method, request.path, request.status)
        };
        subject.skip(skip).map(line).collect()
    }

    pub fn kubeconfig(&self) -> String {
        self.server.kubeconfig("subject").unwrap()
    }
}

pub async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let look = async {
        while !so().await {
            tokio::time::sleep(GLANCE).await;
        }
    };
    tokio::time::timeout(PATIENCE, look).await.unwrap_or_else(|_| panic!("waited {PATIENCE:?} in vain: {what}"));
}

pub fn package(name: &str) -> Value {
    json!({"apiVersion": "longhaul.dev/v1", "kind": "Package", "metadata": {"name": name}, "spec": {"image": "a:1"}})
}

pub fn package_resource() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("longhaul.dev", "v1", "Package"))
}

async fn client(server: &Server, user: &str) -> kube::Client {
    let file = Kubeconfig::from_yaml(&server.kubeconfig(user).unwrap()).unwrap();
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    kube::Client::try_from(config).unwrap()
}

/// The definition of `packages.longhaul.dev`, with a status, a scale, and columns.
fn package_definition() -> Value {
    let text = json!({"type": "string", "description": "Where the image is."});
    let replicas = json!({"type": "integer"});
    let spec = json!({"type": "object", "properties": {"image": text, "replicas": replicas}});
    let status = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let properties = json!({"spec": spec, "status": status});
    let schema = json!({"openAPIV3Schema": {"type": "object", "description": "A package.", "properties": properties}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": PACKAGES},
        "spec": {
            "group": "longhaul.dev", "scope": "Namespaced",
            "names": {"plural": "packages", "singular": "package", "kind": "Package", "shortNames": ["pkg"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": schema,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
                "selectableFields": [{"jsonPath": ".spec.image"}],
                "additionalPrinterColumns": [{"name": "Image", "type": "string", "jsonPath": ".spec.image"}],
            }],
        },
    })
}

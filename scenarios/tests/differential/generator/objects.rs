//! The objects in random sequences of requests: one small body for each kind, with valid and invalid changes.
//!
//! The parameter `variant` selects one of a few values, so that writes of one sequence affect each other.

use serde_json::{Value, json};

/// A kind of object in random sequences of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    ConfigMap,
    Secret,
    ServiceAccount,
    Pod,
    Deployment,
    NetworkPolicy,
    Lease,
    /// Events of the API `v1`.
    Event,
    /// Events of the API `events.k8s.io/v1`, which are the same objects in another form.
    NewerEvent,
    /// The custom resource that both servers have from the start.
    Widget,
}

impl Kind {
    pub const ALL: [Self; 10] = [
        Self::ConfigMap,
        Self::Secret,
        Self::ServiceAccount,
        Self::Pod,
        Self::Deployment,
        Self::NetworkPolicy,
        Self::Lease,
        Self::Event,
        Self::NewerEvent,
        Self::Widget,
    ];

    /// Plural, `apiVersion` and `kind`.
    const fn row(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::ConfigMap => ("configmaps", "v1", "ConfigMap"),
            Self::Secret => ("secrets", "v1", "Secret"),
            Self::ServiceAccount => ("serviceaccounts", "v1", "ServiceAccount"),
            Self::Pod => ("pods", "v1", "Pod"),
            Self::Deployment => ("deployments", "apps/v1", "Deployment"),
            Self::NetworkPolicy => ("networkpolicies", "networking.k8s.io/v1", "NetworkPolicy"),
            Self::Lease => ("leases", "coordination.k8s.io/v1", "Lease"),
            Self::Event => ("events", "v1", "Event"),
            Self::NewerEvent => ("events", "events.k8s.io/v1", "Event"),
            Self::Widget => ("widgets", "differential.example.com/v1", "Widget"),
        }
    }

    pub const fn plural(self) -> &'static str {
        self.row().0
    }

    pub const fn api_version(self) -> &'static str {
        self.row().1
    }

    pub const fn name(self) -> &'static str {
        self.row().2
    }

    /// The path of this kind's collection in the sequence's namespace.
    pub fn path(self) -> String {
        self.path_in("{ns}")
    }

    pub fn path_in(self, namespace: &str) -> String {
        let root = if self.api_version() == "v1" { "/api" } else { "/apis" };
        format!("{root}/{}/namespaces/{namespace}/{}", self.api_version(), self.plural())
    }

    pub fn object(self, name: &str, variant: u8) -> Value {
        let mut object = json!({
            "apiVersion": self.api_version(), "kind": self.name(),
            "metadata": {"name": name, "labels": {"tier": tier(variant), "app": "a"}},
        });
        let content = self.content(variant);
        for (key, value) in content.as_object().into_iter().flatten() {
            object[key] = value.clone();
        }
        match variant % 5 {
            1 => object["metadata"]["annotations"] = json!({"note": format!("n{variant}")}),
            2 => object["metadata"]["finalizers"] = json!(["example.com/hold"]),
            _ => {}
        }
        object
    }

    /// The fields of an object that only its kind has.
    pub fn content(self, variant: u8) -> Value {
        let number = variant % 3;
        match self {
            Self::ConfigMap => match number {
                0 => json!({"data": {"a": "1", "b": "2"}}),
                1 => json!({"data": {"a": "3"}, "binaryData": {"c": "AAEC"}}),
                _ => json!({}),
            },
            Self::Secret => match number {
                0 => json!({"data": {"a": "MQ=="}}),
                1 => json!({"stringData": {"a": "two"}, "type": "Opaque"}),
                _ => json!({"type": "example.com/own", "data": {"a": "Mw==", "b": ""}}),
            },
            Self::ServiceAccount => match number {
                0 => json!({}),
                1 => json!({"automountServiceAccountToken": false}),
                _ => json!({"imagePullSecrets": [{"name": "pull"}], "secrets": [{"name": "s"}]}),
            },
            Self::Pod => {
                let mut spec = pod_spec(variant);
                // A scheduler's field; such a pod is not deleted at once.
                if variant % 7 == 3 {
                    spec["nodeName"] = json!("n1");
                }
                if variant % 14 == 3 {
                    spec["terminationGracePeriodSeconds"] = json!(7);
                }
                json!({"spec": spec})
            }
            Self::Event => super::special::event(variant),
            Self::NewerEvent => super::special::newer_event(variant),
            Self::Widget => super::special::widget(variant),
            Self::Deployment => deployment(variant),
            Self::NetworkPolicy => match number {
                0 => json!({"spec": {"podSelector": {}}}),
                1 => json!({"spec": {
                    "podSelector": {"matchLabels": {"app": "a"}}, "policyTypes": ["Ingress"],
                    "ingress": [{"from": [{"podSelector": {"matchLabels": {"role": "b"}}}], "ports": [{"port": 80}]}],
                }}),
                _ => json!({"spec": {
                    "podSelector": {"matchLabels": {"app": "a"}}, "policyTypes": ["Egress"],
                    "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}]}],
                }}),
            },
            Self::Lease => match number {
                0 => json!({"spec": {}}),
                1 => json!({"spec": {"holderIdentity": "one", "leaseDurationSeconds": 15, "leaseTransitions": 0}}),
                _ => json!({"spec": {"holderIdentity": "two", "renewTime": "2024-02-03T04:05:06.000007Z"}}),
            },
        }
    }

    /// An object with one invalid value.
    pub fn broken(self, name: &str, flaw: u8) -> Value {
        let mut object = self.object(name, 0);
        let meta = &mut object["metadata"];
        match flaw % 18 {
            0 => meta["name"] = json!("Not_A_Name"),
            1 => meta["name"] = json!("n".repeat(254)),
            2 => meta["name"] = json!(""),
            3 => meta["name"] = json!("-a"),
            4 => meta["labels"] = json!({"bad key!": "v"}),
            5 => meta["labels"] = json!({"k": "not a value!"}),
            6 => meta["labels"] = json!({"k": "v".repeat(64)}),
            7 => meta["labels"] = json!(3),
            8 => meta["labels"] = json!({"k": 3}),
            9 => meta["namespace"] = json!("another"),
            10 => meta["resourceVersion"] = json!("5"),
            11 => meta["finalizers"] = json!(["no-domain", "bad finalizer!"]),
            12 => meta["annotations"] = json!({"bad key!": "v"}),
            13 => object["kind"] = json!("Node"),
            14 => object["apiVersion"] = json!("v2"),
            15 => meta["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "", "name": "", "uid": ""}]),
            16 => object["metadata"] = json!("text"),
            _ => self.break_content(&mut object, flaw / 18),
        }
        object
    }

    fn break_content(self, object: &mut Value, flaw: u8) {
        match (self, flaw % 6) {
            (Self::ConfigMap, 0) => object["data"] = json!({"bad key!": "v"}),
            (Self::ConfigMap, 1) => object["data"] = json!({"a": 1}),
            (Self::ConfigMap, 2) => object["data"] = json!(["a"]),
            (Self::ConfigMap, 3) => object["binaryData"] = json!({"c": "no base64!"}),
            (Self::ConfigMap, 4) => object["binaryData"] = json!({"a": "AAEC"}),
            (Self::ConfigMap, _) => object["immutable"] = json!("yes"),
            (Self::Secret, 0) => object["data"] = json!({"a": "no base64!"}),
            (Self::Secret, 1) => object["data"] = json!({"bad key!": "MQ=="}),
            (Self::Secret, 2) => object["type"] = json!("kubernetes.io/tls"),
            (Self::Secret, 3) => object["type"] = json!("kubernetes.io/dockerconfigjson"),
            (Self::Secret, _) => object["type"] = json!(4),
            (Self::ServiceAccount, 0) => object["automountServiceAccountToken"] = json!("no"),
            (Self::ServiceAccount, _) => object["secrets"] = json!({"name": "s"}),
            (Self::Pod, 0) => object["spec"] = json!({}),
            (Self::Pod, 1) => object["spec"]["containers"][0]["name"] = json!(""),
            (Self::Pod, 2) => object["spec"]["containers"][0]["image"] = Value::Null,
            (Self::Pod, 3) => object["spec"]["restartPolicy"] = json!("Sometimes"),
            (Self::Pod, 4) => object["spec"]["containers"] = json!("one"),
            (Self::Pod, _) => {
                object["spec"]["containers"] = json!([{"name": "x", "image": "i"}, {"name": "x", "image": "i"}]);
            }
            (Self::Deployment, 0) => object["spec"]["selector"] = Value::Null,
            (Self::Deployment, 1) => object["spec"]["selector"] = json!({"matchLabels": {"app": "other"}}),
            (Self::Deployment, 2) => object["spec"]["replicas"] = json!(-1),
            (Self::Deployment, 3) => object["spec"]["replicas"] = json!("three"),
            (Self::Deployment, 4) => object["spec"]["template"] = Value::Null,
            (Self::Deployment, _) => object["spec"]["template"]["spec"]["containers"] = json!([]),
            (Self::NetworkPolicy, 0) => object["spec"]["policyTypes"] = json!(["Sideways"]),
            (Self::NetworkPolicy, 1) => object["spec"]["ingress"] = json!([{"ports": [{"port": 70000}]}]),
            (Self::NetworkPolicy, 2) => object["spec"]["egress"] = json!([{"to": [{"ipBlock": {"cidr": "ten"}}]}]),
            (Self::NetworkPolicy, _) => object["spec"]["ingress"] = json!([{"from": [{}]}]),
            (Self::Lease, 0) => object["spec"]["leaseDurationSeconds"] = json!(0),
            (Self::Lease, 1) => object["spec"]["leaseTransitions"] = json!(-1),
            (Self::Lease, _) => object["spec"]["renewTime"] = json!("yesterday"),
            (Self::Event | Self::NewerEvent, flaw) => super::special::break_event(object, flaw),
            (Self::Widget, flaw) => super::special::break_widget(object, flaw),
        }
    }
}

pub fn tier(variant: u8) -> &'static str {
    ["front", "back", "front"][usize::from(variant % 3)]
}

fn pod_spec(variant: u8) -> Value {
    let image = [
        "example.com/one:1",
        "two",
        "example.com/three@sha256:0000000000000000000000000000000000000000000000000000000000000000",
    ][usize::from(variant % 3)];
    let mut spec = json!({"containers": [{"name": "main", "image": image}]});
    match variant % 4 {
        1 => {
            spec["containers"][0]["resources"] = json!({"requests": {"cpu": "100m", "memory": "64Mi"}});
            spec["containers"][0]["env"] = json!([{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]);
        }
        2 => {
            spec["containers"][0]["ports"] = json!([{"containerPort": 80}, {"containerPort": 443, "name": "tls"}]);
            spec["volumes"] = json!([{"name": "v", "configMap": {"name": "a"}}, {"name": "e", "emptyDir": {}}]);
            spec["containers"][0]["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
        }
        3 => {
            spec["initContainers"] = json!([{"name": "init", "image": "busybox:latest", "command": ["true"]}]);
            spec["containers"][0]["livenessProbe"] = json!({"httpGet": {"path": "/", "port": 80}});
            spec["restartPolicy"] = json!("Never");
        }
        _ => {}
    }
    spec
}

fn deployment(variant: u8) -> Value {
    let mut pod = pod_spec(variant);
    if let Some(pod) = pod.as_object_mut() {
        // Templates need the restart policy "Always".
        pod.remove("restartPolicy");
    }
    let mut spec = json!({
        "selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": pod},
    });
    match variant % 3 {
        1 => spec["replicas"] = json!(3),
        2 => spec["strategy"] = json!({"type": "Recreate"}),
        _ => {}
    }
    json!({"spec": spec})
}

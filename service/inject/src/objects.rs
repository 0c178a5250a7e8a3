//! The objects that contain a payload: their names, labels and content.
//!
//! The `ConfigMap` of the index owns all other objects: if it is deleted, the cluster deletes the other objects too.

use std::fmt::Write as _;

use bytes::Bytes;
use serde_json::{Value, json};
use service_seed::digest::Digest;
use service_seed::index::{Index, name as chunk_name};

use super::metadata::Metadata;
use super::place::Taint;

/// The field manager under which the objects are applied (server-side apply).
pub const FIELD_MANAGER: &str = "longhaul-inject";
pub const PORT: u16 = 5000;
/// The label with the run ([`service_seed::index::Index::run`]) to which an object belongs.
pub const RUN_LABEL: &str = "longhaul.dev/run";
/// The label with the purpose of an object: `index`, `binary`, `payload`, `seed`.
pub const PART_LABEL: &str = "longhaul.dev/part";
/// The annotation with the digest of the bytes in a `ConfigMap`.
pub const DIGEST_ANNOTATION: &str = "longhaul.dev/sha256";
const MANAGED_LABEL: &str = "app.kubernetes.io/managed-by";
const INSTANCE_LABEL: &str = "app.kubernetes.io/instance";
pub const INDEX_KEY: &str = "index";
pub const BINARY_KEY: &str = "longhaul-seed";
/// The user id of the injected program. Clusters with `RunAsAny` and clusters that forbid root accept this user id.
const USER: u32 = 65_532;
/// Grace period of the Pod in seconds; the injected program finishes open answers within fifteen seconds.
const GRACE_SECONDS: u32 = 20;
/// Additional size of the program's folder for the file system itself, beyond the unpacked files, in bytes.
const SLACK_BYTES: u64 = 16 << 20;
/// Longest name of an injection, in characters. Names of chunks have eighteen more characters, and labels may have 63.
pub const NAME_CHARS_MAX: usize = 45;

#[derive(Debug, Clone)]
pub struct Names {
    pub namespace: String,
    pub name: String,
}

#[derive(Debug, Clone)]
pub struct Owner {
    /// The name of the index's `ConfigMap`.
    pub name: String,
    pub uid: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Reach {
    /// Clients use a node port, which container runtimes need.
    NodePort,
    /// Clients inside the cluster use a Service.
    ClusterIp,
}

#[derive(Debug, Clone)]
pub struct Run {
    /// The image in whose file system the injected program runs.
    pub image: String,
    /// The node of the Pod; if `None`, the scheduler chooses a node.
    pub node: Option<String>,
    /// The required architecture, if the scheduler chooses the node.
    pub architecture: String,
    pub tolerations: Vec<Taint>,
}

impl Names {
    pub fn index(&self) -> String {
        format!("{}-index", self.name)
    }

    pub fn binary(&self) -> String {
        format!("{}-binary", self.name)
    }

    pub fn chunk(&self, number: u32) -> String {
        format!("{}-payload-{}", self.name, chunk_name(number))
    }

    /// The API path of a namespaced resource of the core group, or of one object of this resource.
    pub fn path(&self, resource: &str, name: &str) -> String {
        let slash = if name.is_empty() { "" } else { "/" };
        format!("/api/v1/namespaces/{}/{resource}{slash}{name}", self.namespace)
    }

    /// The API path of a server-side apply. If another field manager owns a field, the request fails with a conflict.
    pub fn applied(&self, resource: &str, name: &str) -> String {
        format!("{}?fieldManager={FIELD_MANAGER}", self.path(resource, name))
    }

    pub fn selector(&self) -> String {
        format!("labelSelector={MANAGED_LABEL}%3D{FIELD_MANAGER},{INSTANCE_LABEL}%3D{}", self.name)
    }

    /// Whether an object belongs to this injection, by field manager, instance label and owner. Labels alone prove
    /// nothing: an object of another program may have the same labels or name.
    pub fn owns(&self, metadata: &Metadata) -> bool {
        let has = |label: &str, value: &str| metadata.labels.get(label).is_some_and(|found| found == value);
        let is_index = metadata.name == self.index();
        let is_owned = || metadata.owners.iter().any(|owner| owner.kind == "ConfigMap" && owner.name == self.index());
        has(MANAGED_LABEL, FIELD_MANAGER) && has(INSTANCE_LABEL, &self.name) && (is_index || is_owned())
    }

    /// Whether this injection uses an object of the type `resource` with the name `name`.
    pub fn wants(&self, resource: &str, name: &str) -> bool {
        match resource {
            "configmaps" => {
                let chunk = name.strip_prefix(&self.name).and_then(|rest| rest.strip_prefix("-payload-"));
                name == self.index()
                    || name == self.binary()
                    || chunk.is_some_and(|chunk| chunk.len() >= 5 && chunk.bytes().all(|byte| byte.is_ascii_digit()))
            }
            _ => name == self.name,
        }
    }

    /// A query that selects the chunks of this injection.
    pub fn payload_selector(&self) -> String {
        format!("{},{PART_LABEL}%3Dpayload", self.selector())
    }

    fn metadata(&self, name: &str, run: &str, part: &str, owner: Option<&Owner>) -> Value {
        let mut metadata = json!({
            "name": name,
            "namespace": self.namespace,
            "labels": {MANAGED_LABEL: FIELD_MANAGER, INSTANCE_LABEL: self.name, RUN_LABEL: run, PART_LABEL: part},
        });
        if let Some(owner) = owner {
            let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": owner.name, "uid": owner.uid});
            metadata["ownerReferences"] = json!([reference]);
        }
        metadata
    }

    /// The index's `ConfigMap`, which owns all other objects.
    pub fn index_object(&self, index: &Index) -> Value {
        let text = index.to_text();
        let mut metadata = self.metadata(&self.index(), &index.run, "index", None);
        metadata["annotations"] = json!({DIGEST_ANNOTATION: Digest::of(text.as_bytes()).to_string()});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "immutable": true, "data": {INDEX_KEY: text}})
    }

    pub fn binary_object(&self, run: &str, binary: &[u8], owner: &Owner) -> Bytes {
        let mut metadata = self.metadata(&self.binary(), run, "binary", Some(owner));
        metadata["annotations"] = json!({DIGEST_ANNOTATION: Digest::of(binary).to_string()});
        carrying(&metadata, BINARY_KEY, binary)
    }

    pub fn chunk_object(&self, index: &Index, place: usize, bytes: &[u8], owner: &Owner) -> Bytes {
        let chunk = index.chunks[place];
        let mut metadata = self.metadata(&self.chunk(chunk.number), &index.run, "payload", Some(owner));
        metadata["annotations"] = json!({DIGEST_ANNOTATION: chunk.digest.to_string()});
        carrying(&metadata, &chunk.name(), bytes)
    }

    pub fn service_object(&self, run: &str, reach: Reach, owner: &Owner) -> Value {
        let kind = if reach == Reach::NodePort { "NodePort" } else { "ClusterIP" };
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": self.metadata(&self.name, run, "seed", Some(owner)),
            "spec": {
                "type": kind,
                "selector": {MANAGED_LABEL: FIELD_MANAGER, INSTANCE_LABEL: self.name, PART_LABEL: "seed"},
                "ports": [{"name": "registry", "port": PORT, "targetPort": PORT, "protocol": "TCP"}],
            },
        })
    }

    /// The Pod of the injected program. The Pod has no rights, no token, and only one writable folder.
    pub fn pod_object(&self, index: &Index, run: &Run, owner: &Owner) -> Value {
        let digest = Digest::of(index.to_text().as_bytes()).to_string();
        let groups = index.chunks.chunks(index.group as usize);
        let chunks: Vec<Value> = groups.enumerate().map(|(group, chunks)| self.projected(group, chunks)).collect();
        let mounts = (0..chunks.len()).map(|group| {
            let folder = format!("{group:05}");
            json!({"name": format!("chunks-{folder}"), "mountPath": format!("/longhaul/chunks/{folder}"), "readOnly": true})
        });
        let mut volumes = vec![
            // Readable and executable for everybody: the user owns no file.
            json!({"name": "binary", "configMap": {"name": self.binary(), "defaultMode": 0o555}}),
            json!({"name": "index", "configMap": {"name": self.index()}}),
            json!({"name": "out", "emptyDir": {"sizeLimit": (index.unpacked_bytes + SLACK_BYTES).to_string()}}),
        ];
        volumes.extend(chunks);
        let mut volume_mounts = vec![
            json!({"name": "binary", "mountPath": "/longhaul/bin", "readOnly": true}),
            json!({"name": "index", "mountPath": "/longhaul/index", "readOnly": true}),
            json!({"name": "out", "mountPath": "/longhaul/out"}),
        ];
        volume_mounts.extend(mounts);
        let command = [
            "/longhaul/bin/longhaul-seed",
            "--index",
            "/longhaul/index/index",
            "--index-sha256",
            &digest,
            "--chunks",
            "/longhaul/chunks",
            "--out",
            "/longhaul/out",
            "--listen",
            &format!("[::]:{PORT}"),
        ];
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": self.metadata(&self.name, &index.run, "seed", Some(owner)),
            "spec": {
                "restartPolicy": "Never",
                "automountServiceAccountToken": false,
                "enableServiceLinks": false,
                "terminationGracePeriodSeconds": GRACE_SECONDS,
                "securityContext": {
                    "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "containers": [{
                    "name": "seed",
                    "image": run.image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": command,
                    "ports": [{"name": "registry", "containerPort": PORT, "protocol": "TCP"}],
                    "readinessProbe": {"httpGet": {"path": "/v2/", "port": PORT}, "periodSeconds": 2, "failureThreshold": 10},
                    "resources": {
                        "requests": {"cpu": "500m", "memory": "64Mi"},
                        "limits": {"cpu": "1", "memory": "256Mi"},
                    },
                    "securityContext": {
                        "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true,
                        "capabilities": {"drop": ["ALL"]},
                    },
                    "terminationMessagePolicy": "FallbackToLogsOnError",
                    "volumeMounts": volume_mounts,
                }],
                "volumes": volumes,
            },
        });
        let spec = &mut pod["spec"];
        match &run.node {
            Some(node) => spec["nodeName"] = node.as_str().into(),
            None => spec["nodeSelector"] = json!({"kubernetes.io/os": "linux", "kubernetes.io/arch": run.architecture}),
        }
        if !run.tolerations.is_empty() {
            spec["tolerations"] = run.tolerations.iter().map(Taint::tolerating).collect();
        }
        pod
    }

    /// A projected volume for several chunks, because a Pod with one volume per chunk would have thousands of volumes.
    fn projected(&self, group: usize, chunks: &[service_seed::index::Chunk]) -> Value {
        let sources: Vec<Value> =
            chunks.iter().map(|chunk| json!({"configMap": {"name": self.chunk(chunk.number)}})).collect();
        json!({"name": format!("chunks-{group:05}"), "projected": {"sources": sources}})
    }
}

/// A `ConfigMap` that contains `bytes`. The JSON is written by hand, because a JSON library would copy the bytes twice
/// more. The `ConfigMap` is immutable, so that the kubelet need not watch it and no user changes it by mistake.
fn carrying(metadata: &Value, key: &str, bytes: &[u8]) -> Bytes {
    let encoding = base64_simd::STANDARD;
    let mut text = String::with_capacity(encoding.encoded_length(bytes.len()) + 1_024);
    let _ = write!(
        text,
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{metadata},"immutable":true,"binaryData":{{"{key}":""#
    );
    let text = encoding.encode_append_to(bytes, text);
    (text + "\"}}").into()
}

trait EncodeAppend {
    fn encode_append_to(&self, bytes: &[u8], text: String) -> String;
}

impl EncodeAppend for base64_simd::Base64 {
    fn encode_append_to(&self, bytes: &[u8], mut text: String) -> String {
        self.encode_append(bytes, &mut text);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        Names { namespace: "default".to_owned(), name: "seed".to_owned() }
    }

    fn index(count: u32) -> Index {
        let chunk = |number| service_seed::index::Chunk { number, bytes: 4, digest: Digest::of(b"aaaa") };
        Index {
            run: "0123456789abcdef".to_owned(),
            payload_bytes: 4 * u64::from(count),
            payload_digest: Digest::of(b""),
            unpacked_bytes: 1,
            files: 1,
            window_bytes: 1,
            group: 32,
            chunks: (0..count).map(chunk).collect(),
        }
    }

    fn owner() -> Owner {
        Owner { name: "seed-index".to_owned(), uid: "u".to_owned() }
    }

    #[test]
    fn only_what_has_manager_instance_and_owner_is_ours() {
        let of = |object: &Value| serde_json::from_value::<Metadata>(object["metadata"].clone()).unwrap();
        let names = names();
        let chunk = serde_json::from_slice::<Value>(&names.chunk_object(&index(3), 2, b"aaaa", &owner())).unwrap();
        let right = [&names.index_object(&index(1)), &chunk, &names.service_object("r", Reach::NodePort, &owner())];
        assert!(right.iter().all(|object| names.owns(&of(object))));
        for (pointer, value) in [
            ("/metadata/labels/app.kubernetes.io~1managed-by", json!("Helm")),
            ("/metadata/labels/app.kubernetes.io~1instance", json!("another")),
            ("/metadata/ownerReferences/0/name", json!("another-index")),
            ("/metadata/ownerReferences", json!([])),
        ] {
            let mut theirs = chunk.clone();
            *theirs.pointer_mut(pointer).unwrap() = value;
            assert!(!names.owns(&of(&theirs)), "{pointer}");
        }
        for (resource, name, wanted) in [
            ("configmaps", "seed-index", true),
            ("configmaps", "seed-binary", true),
            ("configmaps", "seed-payload-00002", true),
            ("configmaps", "seed-payload-list", false),
            ("configmaps", "seed", false),
            ("pods", "seed", true),
            ("services", "seed-index", false),
        ] {
            assert_eq!(names.wants(resource, name), wanted, "{resource}/{name}");
        }
    }

    #[test]
    fn a_chunk_is_an_immutable_config_map_of_its_run() {
        let object = names().chunk_object(&index(3), 2, b"aaaa", &owner());
        let object: Value = serde_json::from_slice(&object).unwrap();
        assert_eq!(object["metadata"]["name"], "seed-payload-00002");
        assert_eq!(object["metadata"]["labels"][RUN_LABEL], "0123456789abcdef");
        assert_eq!(object["metadata"]["ownerReferences"][0]["uid"], "u");
        assert_eq!(object["metadata"]["annotations"][DIGEST_ANNOTATION], Digest::of(b"aaaa").to_string());
        assert_eq!((&object["immutable"], &object["binaryData"]), (&true.into(), &json!({"00002": "YWFhYQ=="})));
    }

    /// The largest chunk fits into a `ConfigMap`, and the request with this `ConfigMap` into the 3 MiB that
    /// kube-apiserver reads.
    #[test]
    fn the_largest_chunk_fits() {
        let bytes = vec![0; service_seed::index::CHUNK_BYTES_MAX as usize];
        let mut large = index(1);
        large.chunks[0].number = u32::MAX;
        let object = names().chunk_object(&large, 0, &bytes, &owner());
        assert!(object.len() < 3 << 20, "{}", object.len());
    }

    /// A `ConfigMap` is less than forty per cent larger than its chunk: base64 adds a third, and the other fields are
    /// small.
    #[test]
    fn a_chunk_costs_less_than_forty_percent() {
        let bytes = vec![7; 512 << 10];
        let object = names().chunk_object(&index(1), 0, &bytes, &owner());
        assert!(object.len() * 100 < bytes.len() * 134, "{}", object.len());
    }

    /// The Pod with the maximum number of chunks stays below etcd's limit of 1.5 MiB, even with fields that the server
    /// adds.
    #[test]
    fn the_pod_of_the_most_chunks_fits_etcd() {
        let names = Names { namespace: "n".repeat(63), name: "n".repeat(NAME_CHARS_MAX) };
        let run = Run { image: "i".repeat(255), node: None, architecture: "amd64".to_owned(), tolerations: Vec::new() };
        let pod = names.pod_object(&index(12_000), &run, &owner()).to_string();
        // The same fields once more under `managedFields` are a few hundred bytes: lists of sources are owned as a whole.
        assert!(pod.len() < 1_400_000, "{}", pod.len());
    }

    #[test]
    fn the_pod_has_no_rights() {
        let run = Run {
            image: "busybox:1".to_owned(),
            node: Some("a".to_owned()),
            architecture: "amd64".to_owned(),
            tolerations: vec![super::super::place::toleration("k")],
        };
        let pod = names().pod_object(&index(70), &run, &owner());
        let spec = &pod["spec"];
        assert_eq!(spec["automountServiceAccountToken"], false);
        assert_eq!(spec["securityContext"]["runAsNonRoot"], true);
        assert_eq!(spec["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
        let container = &spec["containers"][0]["securityContext"];
        assert_eq!(container["capabilities"]["drop"], json!(["ALL"]));
        assert_eq!(
            (&container["readOnlyRootFilesystem"], &container["allowPrivilegeEscalation"]),
            (&true.into(), &false.into())
        );
        assert_eq!((&spec["nodeName"], &spec["tolerations"][0]["key"]), (&"a".into(), &"k".into()));
        // Seventy chunks are three volumes beside the program, the index and the folder.
        assert_eq!(spec["volumes"].as_array().unwrap().len(), 6);
        assert_eq!(spec["volumes"][5]["projected"]["sources"].as_array().unwrap().len(), 6);
        assert_eq!(spec["containers"][0]["volumeMounts"][5]["mountPath"], "/longhaul/chunks/00002");
    }
}

//! How the project's manifests deploy its program: arguments, environment variables, service account and namespace, and
//! the objects that the program reads. Does no I/O.
//!
//! Owns the choice of the program's workload, and of the settings that also work outside a cluster.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Maximum number of workloads of a project that are kept.
const WORKLOADS_MAX: usize = 100;
/// Maximum number of other objects of a project that are kept.
const OBJECTS_MAX: usize = 200;
const WORKLOADS: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];
/// Kinds of objects that a program reads or needs in its cluster.
const BESIDE: [&str; 4] = ["Namespace", "ConfigMap", "Secret", "ServiceAccount"];
/// Usual names of the container with a controller.
const USUAL: [&str; 3] = ["manager", "operator", "controller"];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Deployed {
    pub(crate) file: PathBuf,
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    pub(crate) account: Option<String>,
    /// `command` and `args` of the container.
    pub(crate) command: Vec<String>,
    pub(crate) arguments: Vec<String>,
    pub(crate) variables: Vec<(String, Given)>,
    /// The path and the name of each Secret that is mounted.
    pub(crate) secrets: Vec<(String, String)>,
    pub(super) container: String,
    /// The whole Pod spec as text, to find the names of objects that the Pods read.
    pub(super) spec: String,
}

/// Where the value of an environment variable comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Given {
    Value(String),
    Namespace,
    Name,
    Account,
    Key {
        kind: &'static str,
        name: String,
        key: String,
    },
    /// A value that exists only in a cluster, such as a Pod's IP.
    Unknown,
}

#[derive(Debug, Default)]
pub(crate) struct Workloads {
    all: Vec<Deployed>,
    objects: Vec<(PathBuf, Value)>,
}

impl Workloads {
    pub(super) fn take(&mut self, file: &Path, object: &Value) {
        let kind = object["kind"].as_str().unwrap_or_default();
        if BESIDE.contains(&kind) && self.objects.len() < OBJECTS_MAX && object["metadata"]["name"].is_string() {
            self.objects.push((file.to_owned(), object.clone()));
        }
        if !WORKLOADS.contains(&kind) {
            return;
        }
        let spec = &object["spec"]["template"]["spec"];
        for container in spec["containers"].as_array().into_iter().flatten() {
            if self.all.len() < WORKLOADS_MAX {
                self.all.push(deployed(file, object, spec, container));
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Replaces the workloads of plain files by the workloads of a built kustomization, which have prefixes and
    /// namespaces.
    pub(super) fn replace(&mut self, built: Self) {
        if !built.all.is_empty() {
            *self = built;
        }
    }

    /// Removes objects of unwanted files, unless no object would remain.
    pub(super) fn prefer(&mut self, is_wanted: &dyn Fn(&Path) -> bool) {
        if self.all.iter().any(|one| is_wanted(&one.file)) {
            self.all.retain(|one| is_wanted(&one.file));
        }
    }

    pub(super) fn own(&self, program: &str) -> Option<&Deployed> {
        let rank = |one: &&Deployed| {
            let starts = one.command.first().is_some_and(|word| word.rsplit('/').next() == Some(program));
            let is_usual = USUAL.iter().any(|usual| one.container.contains(usual));
            let is_named = USUAL.iter().any(|usual| one.name.contains(usual));
            (!starts, !is_usual, !is_named, one.file.components().count())
        };
        self.all.iter().filter(|one| !one.container.contains("proxy")).min_by_key(rank)
    }

    /// The objects that a container reads, from the namespace of its workload.
    pub(super) fn objects(&self, of: &Deployed) -> Vec<&Value> {
        let names: Vec<(&str, &str)> = of
            .variables
            .iter()
            .filter_map(|(_, given)| match given {
                Given::Key { kind, name, .. } => Some((*kind, name.as_str())),
                _ => None,
            })
            .collect();
        let wanted = |object: &&Value| {
            let (kind, name) = (object["kind"].as_str().unwrap_or_default(), object["metadata"]["name"].as_str());
            let is_volume = name.is_some_and(|name| of.spec.contains(&format!("\"{name}\"")));
            let is_read = names.iter().any(|(of, named)| *of == kind && Some(*named) == name);
            is_read
                || (["ConfigMap", "Secret"].contains(&kind) && is_volume)
                || (kind == "ConfigMap" && of.arguments.iter().any(|word| name.is_some_and(|name| word.contains(name))))
        };
        self.objects.iter().map(|(_, object)| object).filter(wanted).collect()
    }

    /// The value of a key in a `Secret` or `ConfigMap`.
    fn key(&self, kind: &str, name: &str, key: &str) -> Option<String> {
        let is_it = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
        let object = self.objects.iter().map(|(_, object)| object).find(is_it)?;
        let plain = object["data"].get(key).or(object["stringData"].get(key)).filter(|_| kind == "ConfigMap");
        plain.or(object["stringData"].get(key)).and_then(Value::as_str).map(str::to_owned)
    }

    /// The value that an environment variable gets outside a cluster; `None` if the value exists only in a cluster.
    pub(super) fn value(&self, of: &Deployed, given: &Given) -> Option<String> {
        match given {
            Given::Value(text) => Some(text.clone()),
            Given::Namespace => Some(of.namespace.clone().unwrap_or_else(|| "default".to_owned())),
            Given::Name => Some(format!("{}-0", of.name)),
            Given::Account => Some(of.account.clone().unwrap_or_else(|| "default".to_owned())),
            Given::Key { kind, name, key } => self.key(kind, name, key),
            Given::Unknown => None,
        }
    }
}

/// Whether an object is a workload with a Pod template.
pub(super) fn is_workload(object: &Value) -> bool {
    WORKLOADS.iter().any(|kind| object["kind"] == *kind)
}

fn deployed(file: &Path, object: &Value, spec: &Value, container: &Value) -> Deployed {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let words = |key: &str| container[key].as_array().into_iter().flatten().filter_map(text).collect();
    let variables = container["env"].as_array().into_iter().flatten();
    Deployed {
        file: file.to_owned(),
        name: text(&object["metadata"]["name"]).unwrap_or_default(),
        namespace: text(&object["metadata"]["namespace"]),
        account: text(&spec["serviceAccountName"]),
        command: words("command"),
        arguments: words("args"),
        variables: variables.filter_map(|one| Some((text(&one["name"])?, given(one)))).collect(),
        secrets: secrets(spec, container),
        container: text(&container["name"]).unwrap_or_default(),
        spec: spec.to_string(),
    }
}

fn secrets(spec: &Value, container: &Value) -> Vec<(String, String)> {
    let volumes = spec["volumes"].as_array();
    let secret = |volume: &str| {
        let volume = volumes?.iter().find(|one| one["name"] == volume)?;
        volume["secret"]["secretName"].as_str().map(str::to_owned)
    };
    let mounts = container["volumeMounts"].as_array().into_iter().flatten().filter(|mount| mount["subPath"].is_null());
    mounts
        .filter_map(|mount| Some((mount["mountPath"].as_str()?.to_owned(), secret(mount["name"].as_str()?)?)))
        .collect()
}

fn given(variable: &Value) -> Given {
    let from = &variable["valueFrom"];
    if from.is_null() {
        return Given::Value(variable["value"].as_str().unwrap_or_default().to_owned());
    }
    for (at, kind) in [("secretKeyRef", "Secret"), ("configMapKeyRef", "ConfigMap")] {
        if let (Some(name), Some(key)) = (from[at]["name"].as_str(), from[at]["key"].as_str()) {
            return Given::Key { kind, name: name.to_owned(), key: key.to_owned() };
        }
    }
    match from["fieldRef"]["fieldPath"].as_str() {
        Some("metadata.namespace") => Given::Namespace,
        Some("metadata.name") => Given::Name,
        Some("spec.serviceAccountName") => Given::Account,
        _ => Given::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(name: &str, containers: &Value) -> Value {
        json!({"kind": "Deployment", "metadata": {"name": name, "namespace": "shop-system"}, "spec": {"template": {"spec": {
            "serviceAccountName": "shop", "containers": containers}}}})
    }

    #[test]
    fn mounted_secrets_have_a_path() {
        let spec = json!({"volumes": [{"name": "cert", "secret": {"secretName": "hook-cert"}}, {"name": "tmp", "emptyDir": {}}]});
        let container = json!({"volumeMounts": [{"name": "cert", "mountPath": "/certs"}, {"name": "tmp", "mountPath": "/tmp"},
            {"name": "cert", "mountPath": "/a", "subPath": "tls.crt"}]});
        assert_eq!(secrets(&spec, &container), [("/certs".to_owned(), "hook-cert".to_owned())]);
    }

    #[test]
    fn the_container_of_the_program_is_found_among_others() {
        let mut workloads = Workloads::default();
        workloads.take(Path::new("a.yaml"), &deployment("redis", &json!([{"name": "redis"}])));
        let containers = json!([
            {"name": "kube-rbac-proxy", "args": ["--upstream"]},
            {"name": "manager", "command": ["/manager"], "args": ["--leader-elect", "--config=shop-config"], "env": [
                {"name": "MODE", "value": "fast"},
                {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
                {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "login", "key": "token"}}},
                {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            ]},
        ]);
        workloads.take(Path::new("b.yaml"), &deployment("shop-controller-manager", &containers));
        let secret = json!({"kind": "Secret", "metadata": {"name": "login"}, "stringData": {"token": "t"}});
        let config = json!({"kind": "ConfigMap", "metadata": {"name": "shop-config"}, "data": {}});
        let other = json!({"kind": "ConfigMap", "metadata": {"name": "other"}, "data": {}});
        for object in [&secret, &config, &other] {
            workloads.take(Path::new("b.yaml"), object);
        }
        let own = workloads.own("manager").unwrap();
        assert_eq!((own.name.as_str(), own.account.as_deref()), ("shop-controller-manager", Some("shop")));
        let values: Vec<Option<String>> = own.variables.iter().map(|(_, given)| workloads.value(own, given)).collect();
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(values, [text("fast"), text("shop-system"), text("t"), None]);
        assert_eq!(workloads.objects(own), [&secret, &config]);
    }
}

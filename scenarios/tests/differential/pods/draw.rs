//! Draws random objects that create Pods, with any field of their types and mostly with consistent values.
//!
//! This module decides how often each field is set, which fields exclude each other, and which values are made invalid.

use serde_json::{Map, Value, json};

use super::dice::Dice;
use super::schema::{Holds, Types};
use super::words;

/// The kinds with a Pod or Pod template: `(path of the collection, API version, kind, path of the template)`.
pub const KINDS: [(&str, &str, &str, &str); 9] = [
    ("/api/v1/namespaces/{ns}/pods", "v1", "Pod", ""),
    ("/api/v1/namespaces/{ns}/podtemplates", "v1", "PodTemplate", "/template"),
    ("/api/v1/namespaces/{ns}/replicationcontrollers", "v1", "ReplicationController", "/spec/template"),
    ("/apis/apps/v1/namespaces/{ns}/deployments", "apps/v1", "Deployment", "/spec/template"),
    ("/apis/apps/v1/namespaces/{ns}/replicasets", "apps/v1", "ReplicaSet", "/spec/template"),
    ("/apis/apps/v1/namespaces/{ns}/statefulsets", "apps/v1", "StatefulSet", "/spec/template"),
    ("/apis/apps/v1/namespaces/{ns}/daemonsets", "apps/v1", "DaemonSet", "/spec/template"),
    ("/apis/batch/v1/namespaces/{ns}/jobs", "batch/v1", "Job", "/spec/template"),
    ("/apis/batch/v1/namespaces/{ns}/cronjobs", "batch/v1", "CronJob", "/spec/jobTemplate/spec/template"),
];

/// Types in which exactly one of several fields is set. The fields listed after a type may be set in addition.
const ONE_OF: [(&str, &[&str]); 8] = [
    ("Volume", &["name"]),
    ("EnvFromSource", &["prefix"]),
    ("PodResourceClaim", &["name"]),
    ("DownwardAPIVolumeFile", &["mode", "path"]),
    ("EnvVarSource", &[]),
    ("VolumeProjection", &[]),
    ("LifecycleHandler", &[]),
    ("Lifecycle", &[]),
];
/// Sources of volumes and of environment variables that Kubernetes switches off by default.
const OFF: [&str; 4] = ["clusterTrustBundle", "fileKeyRef", "image", "podCertificate"];
/// Fields whose lists are never drawn empty.
const FILLED: [&str; 6] = ["accessModes", "command", "containers", "monitors", "nodeSelectorTerms", "sources"];
const HANDLERS: [&str; 4] = ["exec", "grpc", "httpGet", "tcpSocket"];
const DEPTH_MAX: usize = 12;
/// Percentage of objects that are meant to be valid, and percentage of all objects in which one value is then made
/// invalid.
const CAREFUL: usize = 75;
const SPOILED: usize = 45;

pub struct Drawn {
    pub path: &'static str,
    pub object: Value,
}

/// Draws a random object from a seed.
pub fn draw(types: &Types, seed: u64) -> Drawn {
    let mut dice = Dice::new(seed);
    let (path, api_version, kind, at) = KINDS[usize::try_from(seed).unwrap() % KINDS.len()];
    let careful = dice.percent(CAREFUL);
    let mut drawing = Drawing { types, dice: &mut dice, careful };
    let mut object = drawing.of_type(kind, 0);
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    object["metadata"] = json!({"name": "drawn"});
    object.as_object_mut().unwrap().remove("status");
    if kind == "CronJob" {
        object["spec"]["jobTemplate"]["spec"]["template"] = drawing.of_type("PodTemplateSpec", 0);
    } else if kind == "Pod" {
        object["spec"] = drawing.of_type("PodSpec", 0);
        object["metadata"]["labels"] = json!({"a": "b"});
    } else {
        *object.pointer_mut(at).unwrap_or(&mut Value::Null) = drawing.of_type("PodTemplateSpec", 0);
    }
    fit(&mut object, kind, at, &mut dice);
    if dice.percent(SPOILED) {
        for _ in 0..=dice.below(3) {
            spoil(&mut object, &mut dice);
        }
        object["metadata"]["name"] = json!("drawn");
        object["apiVersion"] = json!(api_version);
        object["kind"] = json!(kind);
    }
    unbroken(&mut object);
    Drawn { path, object }
}

/// Draws a random value of the type `name` that is meant to be valid.
pub fn value_of(types: &Types, name: &str, dice: &mut Dice) -> Value {
    Drawing { types, dice, careful: true }.of_type(name, 0)
}

/// Removes values that the tests do not compare.
///
/// - A real server does not answer for a Job that has a success policy but no completions: its handler panics.
/// - For the mock, an empty list or map is the same as an absent one. A real server distinguishes them in three places:
///   it refuses `claims` of a whole Pod, `overhead`, and some fields of ephemeral containers.
pub fn unbroken(object: &mut Value) {
    without_empty(object);
    for at in ["/spec", "/spec/jobTemplate/spec"] {
        if let Some(Value::Object(spec)) = object.pointer_mut(at)
            && !spec.get("completions").is_some_and(Value::is_number)
        {
            spec.remove("successPolicy");
        }
    }
}

fn without_empty(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, inner| {
                without_empty(inner);
                let is_amounts = ["limits", "requests", "overhead"].contains(&key.as_str());
                inner.as_array().is_none_or(|items| !items.is_empty())
                    && !(is_amounts && inner.as_object().is_some_and(Map::is_empty))
            });
        }
        Value::Array(items) => items.iter_mut().for_each(without_empty),
        _ => {}
    }
}

struct Drawing<'a> {
    types: &'a Types,
    dice: &'a mut Dice,
    /// Whether the object is meant to be valid.
    careful: bool,
}

impl Drawing<'_> {
    fn of_type(&mut self, name: &str, depth: usize) -> Value {
        let mut fields = Map::new();
        if depth > DEPTH_MAX {
            return Value::Object(fields);
        }
        let mut known = self.types.fields(name);
        if name == "ObjectMeta" {
            known.retain(|(field, ..)| ["labels", "annotations"].contains(&field.as_str()));
        }
        if let Some((_, beside)) = ONE_OF.iter().find(|(of, _)| *of == name)
            && self.dice.percent(97)
        {
            let choices: Vec<_> =
                known.iter().filter(|(field, ..)| !beside.contains(&field.as_str())).cloned().collect();
            let on: Vec<_> = choices.iter().filter(|(field, ..)| !OFF.contains(&field.as_str())).cloned().collect();
            let choices = if self.careful && !on.is_empty() { on } else { choices };
            let one = self.dice.of(&choices);
            known.retain(|(field, ..)| beside.contains(&field.as_str()) || *field == one.0);
        } else if name == "Probe" && self.dice.percent(97) {
            let one = self.dice.of(&HANDLERS);
            known.retain(|(field, ..)| !HANDLERS.contains(&field.as_str()) || field == one);
        }
        let narrow = known.len() <= 3 || ONE_OF.iter().any(|(of, _)| *of == name);
        for (field, holds, required) in known {
            let chance = match field.as_str() {
                _ if required => 99,
                "containers" | "spec" | "template" | "image" | "name" | "volumeClaimTemplates" | "key" | "operator" => {
                    98
                }
                "volumes" | "volumeMounts" | "resources" | "securityContext" | "env" => 60,
                "ephemeralContainers" | "hostUsers" | "os" | "gitRepo" | "activeDeadlineSeconds" => 4,
                "runtimeClassName" | "overhead" | "priorityClassName" | "priority" => 2,
                "hostNetwork" | "hostPID" | "hostIPC" | "windowsOptions" | "nodeName" | "selector" => 8,
                _ if narrow => 90,
                _ if HANDLERS.contains(&field.as_str()) => 100,
                _ if depth > 5 => 60,
                _ => 22,
            };
            if self.dice.percent(chance) {
                let value = self.value(name, &field, &holds, depth);
                fields.insert(field, value);
            }
        }
        let mut drawn = Value::Object(fields);
        if self.careful {
            mend(name, &mut drawn, self.dice);
        }
        drawn
    }

    fn value(&mut self, of: &str, field: &str, holds: &Holds, depth: usize) -> Value {
        match holds {
            Holds::Type(name) => self.of_type(name, depth + 1),
            Holds::List(item) => {
                let least = usize::from(FILLED.contains(&field));
                let count = least + self.dice.below(if depth < 4 { 3 } else { 2 });
                (0..count).map(|_| self.value(of, field, item, depth)).collect()
            }
            Holds::Map(value) => {
                let count = self.dice.below(3);
                let keys: Vec<_> = (0..count).map(|_| words::key(self.dice, field).to_owned()).collect();
                keys.into_iter().map(|key| (key, self.value(of, field, value, depth))).collect()
            }
            Holds::Text => words::text(self.dice, of, field).into(),
            Holds::Number => words::number(self.dice, of, field).into(),
            Holds::Flag => self.dice.percent(50).into(),
            Holds::Quantity => words::amount(self.dice).into(),
            Holds::Either => match self.dice.below(4) {
                0 if field != "port" => "25%".into(),
                0 => "http".into(),
                1 if field != "port" => 0.into(),
                _ => words::number(self.dice, of, "port").into(),
            },
            Holds::Time => Value::Null,
            Holds::Json => json!({}),
        }
    }
}

/// Removes fields of a value that conflict with other fields.
fn mend(name: &str, value: &mut Value, dice: &mut Dice) {
    let Some(fields) = value.as_object_mut() else { return };
    let mut drop = |keys: &[&str], chance: usize| {
        for key in keys {
            if dice.percent(chance) {
                fields.remove(*key);
            }
        }
    };
    match name {
        "SeccompProfile" | "AppArmorProfile" => drop(&["localhostProfile"], 100),
        "ResourceRequirements" => drop(&["claims", "limits"], 90),
        "Probe" => drop(&["terminationGracePeriodSeconds"], 90),
        "VolumeMount" => drop(&["mountPropagation", "recursiveReadOnly", "subPathExpr"], 80),
        "NodeSelectorTerm" => drop(&["matchFields"], 95),
        "SecurityContext" => drop(&["procMount", "windowsOptions", "capabilities"], 85),
        "PodSecurityContext" => drop(&["seLinuxChangePolicy", "windowsOptions", "sysctls"], 85),
        "Container" | "EphemeralContainer" => drop(&["volumeDevices", "resizePolicy"], 90),
        "ContainerPort" => drop(&["name", "hostPort"], 70),
        "PodSpec" => drop(&["resources", "dnsConfig", "resourceClaims", "hostUsers", "readinessGates"], 80),
        "ResourceFieldSelector" => drop(&["divisor"], 80),
        "PodAffinityTerm" | "TopologySpreadConstraint" => {
            drop(&["matchLabelKeys", "mismatchLabelKeys", "minDomains"], 90);
        }
        "LabelSelector" => drop(&["matchExpressions"], 70),
        "ObjectMeta" => drop(&["annotations"], 90),
        "JobSpec" => drop(
            &[
                "successPolicy",
                "podFailurePolicy",
                "selector",
                "manualSelector",
                "backoffLimitPerIndex",
                "maxFailedIndexes",
            ],
            85,
        ),
        "DaemonSetSpec" | "DeploymentSpec" | "StatefulSetSpec" => drop(&["updateStrategy", "strategy"], 60),
        _ => {}
    }
    match name {
        "SeccompProfile" | "AppArmorProfile" if fields.get("type") == Some(&json!("Localhost")) => {
            fields.insert("localhostProfile".to_owned(), json!("profile"));
        }
        // The values that fit an operator.
        "LabelSelectorRequirement" | "NodeSelectorRequirement" => {
            let values = match fields.get("operator").and_then(Value::as_str) {
                Some("Exists" | "DoesNotExist") => json!([]),
                Some("Gt" | "Lt") => json!(["1"]),
                _ => json!(["a"]),
            };
            fields.insert("values".to_owned(), values);
        }
        "Toleration" if fields.get("operator") == Some(&json!("Exists")) => {
            fields.remove("value");
        }
        "Toleration" => {
            fields.insert("key".to_owned(), json!("a"));
        }
        "PodSpec" if fields.get("dnsPolicy") == Some(&json!("None")) => {
            fields.remove("dnsPolicy");
        }
        "ExecAction" => {
            fields.insert("command".to_owned(), json!(["a"]));
        }
        _ => {}
    }
    if ["Toleration"].contains(&name) && fields.contains_key("tolerationSeconds") {
        fields.insert("effect".to_owned(), json!("NoExecute"));
    }
}

/// In most objects, makes separately drawn values consistent with each other.
fn fit(object: &mut Value, kind: &str, at: &str, dice: &mut Dice) {
    let Some(template) = object.pointer_mut(at) else { return };
    if kind != "Pod" && dice.percent(97) {
        template["metadata"]["labels"]["a"] = json!("b");
    }
    if let Some(spec) = template.get_mut("spec") {
        fit_pod(spec, dice);
        if dice.percent(95) {
            spec["restartPolicy"] = match kind {
                "Job" | "CronJob" => json!("Never"),
                "Pod" | "PodTemplate" => spec["restartPolicy"].clone(),
                _ => json!("Always"),
            };
        }
    }
    if ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"].contains(&kind) && dice.percent(95) {
        object["spec"]["selector"] = json!({"matchLabels": {"a": "b"}});
    }
    if kind == "ReplicationController" && dice.percent(95) {
        object["spec"]["selector"] = json!({"a": "b"});
    }
    if kind == "StatefulSet"
        && let Some(claims) = object["spec"]["volumeClaimTemplates"].as_array_mut()
    {
        for (index, claim) in claims.iter_mut().enumerate().filter(|_| dice.percent(95)) {
            claim["metadata"] = json!({"name": format!("v{}", index + 2)});
            fit_claim(&mut claim["spec"]);
            claim.as_object_mut().unwrap().remove("status");
        }
    }
}

fn fit_claim(spec: &mut Value) {
    spec["accessModes"] = json!(["ReadWriteOnce"]);
    spec["resources"]["requests"] = json!({"storage": "1Gi"});
}

fn fit_pod(spec: &mut Value, dice: &mut Dice) {
    let mut number = 0;
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            if dice.percent(97) {
                container["name"] = json!(format!("c{number}"));
            }
            number += 1;
            fit_container(container, list, dice);
        }
        if spec[list].is_null() {
            spec.as_object_mut().unwrap().remove(list);
        }
    }
    let mut volumes: Vec<Value> = spec["volumes"].as_array().cloned().unwrap_or_default();
    for (index, volume) in volumes.iter_mut().enumerate() {
        volume["name"] = json!(format!("v{index}"));
        if let Some(claim) = volume.pointer_mut("/ephemeral/volumeClaimTemplate").filter(|_| dice.percent(90)) {
            fit_claim(&mut claim["spec"]);
        }
    }
    // Mounts refer to the first four.
    while volumes.len() < 4 && dice.percent(98) {
        volumes.push(json!({"name": format!("v{}", volumes.len()), "emptyDir": {}}));
    }
    spec["volumes"] = Value::from(volumes);
}

fn fit_container(container: &mut Value, list: &str, dice: &mut Dice) {
    for (key, path) in [("volumeMounts", "mountPath"), ("volumeDevices", "devicePath")] {
        for (index, mount) in container[key].as_array_mut().into_iter().flatten().enumerate() {
            mount["name"] = json!(format!("v{}", dice.below(4)));
            if dice.percent(95) {
                mount[path] = json!(format!("/{key}/{index}"));
            }
        }
    }
    for key in ["livenessProbe", "startupProbe"] {
        if container[key].is_object() && dice.percent(90) {
            container[key]["successThreshold"] = json!(1);
        }
    }
    for variable in container["env"].as_array_mut().into_iter().flatten() {
        let drop = if dice.percent(50) { "value" } else { "valueFrom" };
        variable.as_object_mut().unwrap().remove(drop);
    }
    let fields = container.as_object_mut().unwrap();
    if list == "initContainers" && fields.get("restartPolicy") != Some(&json!("Always")) {
        for key in ["livenessProbe", "readinessProbe", "startupProbe", "lifecycle"] {
            if dice.percent(95) {
                fields.remove(key);
            }
        }
    }
    if dice.percent(95)
        && let Some(Value::Object(resources)) = fields.get_mut("resources")
    {
        if dice.percent(70) {
            resources.remove("claims");
        }
        resources.remove(if dice.percent(50) { "limits" } else { "requests" });
    }
    fields.retain(|_, value| !value.is_null());
}

/// Makes one value of an object invalid, or at least unusual.
pub fn spoil(object: &mut Value, dice: &mut Dice) {
    let mut places = Vec::new();
    list_places(object, String::new(), &mut places);
    places.retain(|place| !place.is_empty());
    let place = dice.of(&places);
    let Some(value) = object.pointer_mut(&place) else { return };
    match value {
        Value::String(text) => *text = words::odd(dice),
        Value::Number(_) => *value = json!(dice.of(&[-1_i64, 0, 1, 300, 70_000, 2_147_483_647])),
        Value::Bool(flag) => *flag = !*flag,
        Value::Array(items) if !items.is_empty() && dice.percent(70) => {
            let again = items[dice.below(items.len())].clone();
            items.push(again);
        }
        Value::Array(items) => items.clear(),
        Value::Object(fields) if !fields.is_empty() => {
            let keys: Vec<String> = fields.keys().cloned().collect();
            fields.remove(&dice.of(&keys));
        }
        _ => {}
    }
}

/// Collects the JSON pointers of all values in `value`.
pub fn list_places(value: &Value, at: String, places: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, inner) in fields {
                list_places(inner, format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), places);
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                list_places(inner, format!("{at}/{index}"), places);
            }
        }
        _ => {}
    }
    places.push(at);
}

//! The checks of regular, init and ephemeral containers.

use std::collections::BTreeSet;

use mock_cel::formats::label;
use serde_json::Value;

use super::super::super::at::At;
use super::super::super::causes::Refuse;
use super::super::super::texts::port_name;
use super::resources::Claims;
use super::volumes::Known;
use super::{Pod, check_pull_policy, environment, handlers, has, items, mounts, resources, security, text};
use crate::status::Cause;

/// Fields that an ephemeral container may not have.
const NOT_EPHEMERAL: [&str; 8] = [
    "ports",
    "resources",
    "livenessProbe",
    "readinessProbe",
    "lifecycle",
    "startupProbe",
    "resizePolicy",
    "restartPolicy",
];

pub(super) fn check(pod: Pod<'_>, known: &Known<'_>, claims: &Claims<'_>, causes: &mut Vec<Cause>) {
    let around = Around { pod, known, claims };
    let (containers, list) = (items(pod.spec, "containers"), pod.at.field("containers"));
    if containers.is_empty() {
        causes.required(list, "");
    }
    let mut names = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        let at = list.item(index);
        around.common(container, at, causes);
        let name = text(container, "name");
        if !names.insert(name) {
            causes.duplicate(at.field("name"), name);
        }
        handlers::check(pod, container, at, causes);
    }
    host_ports(containers, list, causes);
    let list = pod.at.field("initContainers");
    let init = items(pod.spec, "initContainers");
    for (index, container) in init.iter().enumerate() {
        let at = list.item(index);
        around.common(container, at, causes);
        let name = text(container, "name");
        if names.contains(name) {
            causes.duplicate(at.field("name"), name);
        } else if !name.is_empty() {
            names.insert(name);
        }
        // The ports of each init container are checked alone, and causes name it as if it were the only one.
        host_ports(&init[index..=index], list, causes);
        if text(container, "restartPolicy") == "Always" {
            handlers::check(pod, container, at, causes);
        } else {
            for key in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                if has(container, key) {
                    let why = "may not be set for init containers without restartPolicy=Always";
                    causes.forbidden(at.field(key), why);
                }
            }
        }
    }
    ephemeral(&around, names, causes);
}

fn ephemeral<'a>(around: &Around<'a>, mut names: BTreeSet<&'a str>, causes: &mut Vec<Cause>) {
    let pod = around.pod;
    let list = pod.at.field("ephemeralContainers");
    let lasting = names.clone();
    for (index, container) in items(pod.spec, "ephemeralContainers").iter().enumerate() {
        let at = list.item(index);
        around.common(container, at, causes);
        trimmed(container, at, causes);
        let (name, target) = (text(container, "name"), text(container, "targetContainerName"));
        if !names.insert(name) {
            causes.duplicate(at.field("name"), name);
        }
        if !target.is_empty() && !lasting.contains(target) {
            causes.not_found(at.field("targetContainerName"), target);
        }
        let is_set = |key: &&&str| match &container[**key] {
            Value::Null => false,
            Value::Object(fields) if **key == "resources" => !fields.is_empty(),
            _ => true,
        };
        let why = "cannot be set for an Ephemeral Container";
        for key in NOT_EPHEMERAL.iter().filter(is_set) {
            causes.forbidden(at.field(key), why);
        }
        for (number, mount) in items(container, "volumeMounts").iter().enumerate() {
            for key in ["subPath", "subPathExpr"].into_iter().filter(|key| !text(mount, key).is_empty()) {
                let mounts = at.field("volumeMounts");
                causes.forbidden(mounts.item(number).field(key), why);
            }
        }
    }
}

/// Refuses blanks around an image name in a pod; templates may have them.
pub(super) fn trimmed(container: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    let image = text(container, "image");
    if image.trim() != image {
        causes.invalid_text(at.field("image"), image, "must not have leading or trailing whitespace");
    }
}

/// Refuses two containers that use the same port of the node.
fn host_ports(containers: &[Value], list: At<'_>, causes: &mut Vec<Cause>) {
    let mut taken = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        for (number, port) in items(container, "ports").iter().enumerate() {
            let outside = port["hostPort"].as_i64().unwrap_or(0);
            let whole = format!("{}/{}/{outside}", text(port, "protocol"), text(port, "hostIP"));
            if outside != 0 && !taken.insert(whole.clone()) {
                let at = list.item(index);
                causes.duplicate(at.field("ports").item(number).field("hostPort"), &whole);
            }
        }
    }
}

/// The volumes and resource claims of a pod, to which the pod's containers can refer.
struct Around<'a> {
    pod: Pod<'a>,
    known: &'a Known<'a>,
    claims: &'a Claims<'a>,
}

impl Around<'_> {
    /// Checks the rules that apply to all containers.
    fn common(&self, container: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
        let name = causes.text_in(container, "name", at);
        if !name.is_empty() {
            causes.faults(at.field("name"), name, label(name));
        }
        causes.text_in(container, "image", at);
        let policies = ["File", "FallbackToLogsOnError"];
        causes.one_of(&container["terminationMessagePolicy"], at.field("terminationMessagePolicy"), &policies);
        ports(items(container, "ports"), at.field("ports"), causes);
        environment::check(container, at, causes);
        mounts::check(container, self.known, at, causes);
        check_pull_policy(container, "imagePullPolicy", at, causes);
        resources::check(&container["resources"], self.claims, at.field("resources"), causes);
        self.resizing(container, at.field("resizePolicy"), causes);
        security::check(&container["securityContext"], self.pod, at.field("securityContext"), causes);
    }

    /// Checks `resizePolicy` of a container; as in a real server, some causes name the list instead of the invalid
    /// item.
    fn resizing(&self, container: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
        let mut seen = BTreeSet::new();
        for (index, one) in items(container, "resizePolicy").iter().enumerate() {
            let (resource, policy) = (text(one, "resourceName"), text(one, "restartPolicy"));
            if !seen.insert(resource) {
                causes.duplicate(at.item(index), resource);
            }
            for (given, known) in [(resource, ["cpu", "memory"]), (policy, ["NotRequired", "RestartContainer"])] {
                if given.is_empty() {
                    causes.required(at, "");
                } else if !known.contains(&given) {
                    causes.unsupported(at, given, &known);
                }
            }
            if text(self.pod.spec, "restartPolicy") == "Never" && policy != "NotRequired" {
                causes.invalid_text(at, policy, "must be 'NotRequired' when `restartPolicy` is 'Never'");
            }
        }
    }
}

fn ports(ports: &[Value], list: At<'_>, causes: &mut Vec<Cause>) {
    let mut names = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let at = list.item(index);
        let name = text(port, "name");
        if !name.is_empty() {
            let faults = port_name(name);
            if faults.is_empty() && !names.insert(name) {
                causes.duplicate(at.field("name"), name);
            }
            causes.faults(at.field("name"), name, faults);
        }
        match port["containerPort"].as_i64().unwrap_or(0) {
            0 => causes.required(at.field("containerPort"), ""),
            number => causes.within(at.field("containerPort"), Some(number), (1, 65535)),
        }
        let outside = port["hostPort"].as_i64().filter(|number| *number != 0);
        causes.within(at.field("hostPort"), outside, (1, 65535));
        causes.one_of(&port["protocol"], at.field("protocol"), &["SCTP", "TCP", "UDP"]);
    }
}

//! The checks of a pod's operating system, and of fields that the operating system does not allow.

use serde_json::Value;

use super::super::super::at::At;
use super::super::super::causes::Refuse;
use super::{Pod, has, items, text};
use crate::status::Cause;

/// Fields of the pod specification that Windows pods cannot have.
const FLAGS: [&str; 2] = ["hostPID", "hostIPC"];
const FIELDS: [&str; 2] = ["hostUsers", "shareProcessNamespace"];
const OF_POD: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
];
const OF_CONTAINERS: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

pub(super) fn check(pod: Pod<'_>, causes: &mut Vec<Cause>) {
    if !has(pod.spec, "os") {
        return;
    }
    let at = pod.at.field("os");
    match text(&pod.spec["os"], "name") {
        "" => causes.required(at.field("name"), ""),
        "linux" => linux(pod, causes),
        "windows" => windows(pod, causes),
        other => causes.unsupported(at, other, &["linux", "windows"]),
    }
}

fn linux(pod: Pod<'_>, causes: &mut Vec<Cause>) {
    contexts(pod, |_, context, at| {
        if has(context, "windowsOptions") {
            causes.forbidden(at.field("windowsOptions"), "windows options cannot be set for a linux pod");
        }
    });
}

fn windows(pod: Pod<'_>, causes: &mut Vec<Cause>) {
    let why = "cannot be set for a windows pod";
    for key in FLAGS.into_iter().filter(|key| pod.spec[key] == Value::Bool(true)) {
        causes.forbidden(pod.at.field(key), why);
    }
    for key in FIELDS.into_iter().filter(|key| has(pod.spec, key)) {
        causes.forbidden(pod.at.field(key), why);
    }
    contexts(pod, |is_pod, context, at| {
        let keys = if is_pod { OF_POD } else { OF_CONTAINERS };
        for key in keys.into_iter().filter(|key| has(context, key)) {
            causes.forbidden(at.field(key), why);
        }
        if is_pod && !items(context, "sysctls").is_empty() {
            causes.forbidden(at.field("sysctls"), why);
        }
    });
}

fn contexts(pod: Pod<'_>, mut visit: impl FnMut(bool, &Value, At<'_>)) {
    visit(true, &pod.spec["securityContext"], pod.at.field("securityContext"));
    for (list, index, container) in pod.containers() {
        let list = pod.at.field(list);
        let one = list.item(index);
        visit(false, &container["securityContext"], one.field("securityContext"));
    }
}

/// Requires that either all containers of a Windows pod are host processes or none.
pub(super) fn check_host_processes(pod: Pod<'_>, causes: &mut Vec<Cause>) {
    let mut whole = None;
    let (mut all, mut on_host) = (0, 0);
    contexts(pod, |is_pod, context, at| {
        let own = context["windowsOptions"]["hostProcess"].as_bool();
        if is_pod {
            whole = own;
            return;
        }
        all += 1;
        if let (Some(whole), Some(own)) = (whole, own)
            && whole != own
        {
            let why = format!("pod hostProcess value must be identical if both are specified, was {whole}");
            let at = at.field("windowsOptions");
            causes.invalid(at.field("hostProcess"), &own, &why);
        }
        on_host += usize::from(own.or(whole) == Some(true));
    });
    if on_host == 0 {
        return;
    }
    if on_host != all {
        let why = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        causes.invalid_text(pod.at, "", why);
    }
    if pod.spec["hostNetwork"] != Value::Bool(true) {
        let why = "hostNetwork must be true if pod contains any hostProcess containers";
        causes.invalid(pod.at.field("hostNetwork"), &false, why);
    }
}

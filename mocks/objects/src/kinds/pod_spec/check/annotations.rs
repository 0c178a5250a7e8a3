//! The checks of annotations about a pod's containers.

use mock_cel::formats::qualified_name;
use serde_json::Value;

use super::super::super::at::At;
use super::super::super::causes::Refuse;
use super::super::super::texts::descending;
use super::{Pod, entries, spread, text};
use crate::status::Cause;

const MIRROR: &str = "kubernetes.io/config.mirror";
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const SECCOMP: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_OF: &str = "container.seccomp.security.alpha.kubernetes.io/";
pub(in crate::kinds) const APP_ARMOR_OF: &str = "container.apparmor.security.beta.kubernetes.io/";
const MAX_BYTES: usize = 256 << 10;

/// Checks the keys and the total size of annotations.
pub(super) fn check_keys(metadata: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    let mut bytes = 0;
    for (key, value) in entries(metadata, "annotations") {
        causes.faults(at, key, qualified_name(&key.to_lowercase()));
        bytes += key.len() + value.as_str().map_or(0, str::len);
    }
    if bytes > MAX_BYTES {
        causes.too_long(at, MAX_BYTES);
    }
}

/// Checks the values of annotations that have a meaning for pods.
pub(super) fn check(metadata: &Value, pod: Pod<'_>, at: At<'_>, causes: &mut Vec<Cause>) {
    let all = &metadata["annotations"];
    if let Some(mirror) = all[MIRROR].as_str()
        && text(pod.spec, "nodeName").is_empty()
    {
        let why = "must set spec.nodeName if mirror pod annotation is set";
        causes.invalid_text(at.key(MIRROR), mirror, why);
    }
    let tolerations = text(all, TOLERATIONS);
    if !tolerations.is_empty() {
        match serde_json::from_str::<Vec<Value>>(tolerations) {
            Ok(list) => spread::check_tolerations(&list, at.field(TOLERATIONS), causes),
            Err(error) => causes.invalid_text(at, TOLERATIONS, &error),
        }
    }
    if let Some(cost) = all[DELETION_COST].as_str()
        && !is_cost(cost)
    {
        causes.invalid_text(at.key(DELETION_COST), cost, "must be a 32bit integer");
    }
    for (key, value) in entries(metadata, "annotations") {
        let value = value.as_str().unwrap_or_default();
        if key == SECCOMP || key.starts_with(SECCOMP_OF) {
            seccomp(value, at.field(key), causes);
        }
        if let Some(name) = key.strip_prefix(APP_ARMOR_OF) {
            if !pod.containers().any(|(.., container)| text(container, "name") == name) {
                causes.invalid_text(at.key(key), name, "container not found");
            }
            let known = ["", "runtime/default", "unconfined"].contains(&value) || value.starts_with("localhost/");
            if !known {
                causes.invalid_text(at.key(key), value, &format!("invalid AppArmor profile name: {value:?}"));
            }
        }
    }
}

/// Whether a text is an integer without a plus sign and without leading zeros.
fn is_cost(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = !text.starts_with('+') && (digits == "0" || !digits.starts_with('0'));
    plain && text != "-0" && text.parse::<i32>().is_ok()
}

fn seccomp(profile: &str, at: At<'_>, causes: &mut Vec<Cause>) {
    if let Some(path) = profile.strip_prefix("localhost/") {
        descending(path, at, causes);
    } else if !["runtime/default", "docker/default", "unconfined"].contains(&profile) {
        causes.invalid_text(at, profile, "must be a valid seccomp profile");
    }
}

/// Refuses an annotation whose value differs from the field with the same meaning.
pub(super) fn match_fields(metadata: &Value, pod: Pod<'_>, causes: &mut Vec<Cause>) {
    let all = &metadata["annotations"];
    let whole = &pod.spec["securityContext"];
    let at = pod.at.field("securityContext");
    agree(&all[SECCOMP], &whole["seccompProfile"], "seccomp", at.field("seccompProfile"), causes);
    let is_windows = pod.spec["os"]["name"] == "windows";
    for app_armor in [false, true] {
        for (list, index, container) in pod.containers() {
            let name = text(container, "name");
            let list = pod.at.field(list);
            let one = list.item(index);
            let at = one.field("securityContext");
            let context = &container["securityContext"];
            if !app_armor {
                let said = &all[format!("{SECCOMP_OF}{name}")];
                agree(said, &context["seccompProfile"], "seccomp", at.field("seccompProfile"), causes);
            } else if !is_windows {
                let own = &context["appArmorProfile"];
                let profile = if own.is_null() { &whole["appArmorProfile"] } else { own };
                let said = &all[format!("{APP_ARMOR_OF}{name}")];
                agree(said, profile, "apparmor", at.field("appArmorProfile"), causes);
            }
        }
    }
}

fn agree(said: &Value, profile: &Value, what: &str, at: At<'_>, causes: &mut Vec<Cause>) {
    let Some(said) = said.as_str().filter(|_| !profile.is_null()) else { return };
    let known: &[&str] = match text(profile, "type") {
        "Unconfined" => &["unconfined"],
        "RuntimeDefault" if what == "seccomp" => &["runtime/default", "docker/default"],
        "RuntimeDefault" => &["runtime/default"],
        "Localhost" => {
            let name = said.strip_prefix("localhost/");
            if name.is_none() {
                causes.forbidden(at.field("type"), &format!("{what} type in annotation and field must match"));
            } else if name != profile["localhostProfile"].as_str() {
                let why = format!("{what} profile in annotation and field must match");
                causes.forbidden(at.field("localhostProfile"), &why);
            }
            return;
        }
        _ => return,
    };
    if !known.contains(&said) {
        causes.forbidden(at.field("type"), &format!("{what} type in annotation and field must match"));
    }
}

//! The checks of the rights of a pod and of its containers.

use std::collections::BTreeSet;

use mock_cel::formats::subdomain;
use serde_json::Value;

use super::super::super::at::At;
use super::super::super::causes::{REPEATED_MAX, Refuse};
use super::super::super::texts::descending;
use super::{MAX, Pod, has, items, text, texts};
use crate::status::Cause;

const SYSCTL_MAX_BYTES: usize = 253;
/// `PATH_MAX` without the last byte.
const PROFILE_MAX_BYTES: usize = 4095;
const CREDENTIALS_MAX_BYTES: usize = 64 << 10;
const DOMAIN_MAX_BYTES: usize = 256;
const USER_MAX_BYTES: usize = 104;

/// Checks `securityContext` of a pod.
pub(super) fn check_pod(pod: Pod<'_>, causes: &mut Vec<Cause>) {
    let (context, at) = (&pod.spec["securityContext"], pod.at.field("securityContext"));
    for key in ["fsGroup", "runAsUser", "runAsGroup"] {
        causes.within(at.field(key), context[key].as_i64(), (0, MAX));
    }
    for (index, group) in items(context, "supplementalGroups").iter().enumerate() {
        causes.within(at.field("supplementalGroups").item(index), group.as_i64(), (0, MAX));
    }
    if pod.spec["shareProcessNamespace"] == Value::Bool(true) && pod.spec["hostPID"] == Value::Bool(true) {
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        causes.invalid(at.field("shareProcessNamespace"), &true, why);
    }
    sysctls(pod, at.field("sysctls"), causes);
    let policies = ["Always", "OnRootMismatch"];
    causes.one_of(&context["fsGroupChangePolicy"], at.field("fsGroupChangePolicy"), &policies);
    profiles(context, at, causes);
    let policies = ["Merge", "Strict"];
    causes.one_of(&context["supplementalGroupsPolicy"], at.field("supplementalGroupsPolicy"), &policies);
    causes.one_of(&context["seLinuxChangePolicy"], at.field("seLinuxChangePolicy"), &["Recursive"]);
}

/// Checks `securityContext` of a container.
pub(super) fn check(context: &Value, pod: Pod<'_>, at: At<'_>, causes: &mut Vec<Cause>) {
    for key in ["runAsUser", "runAsGroup"] {
        causes.within(at.field(key), context[key].as_i64(), (0, MAX));
    }
    causes.one_of(&context["procMount"], at.field("procMount"), &["Default", "Unmasked"]);
    if context["procMount"] == "Unmasked" && pod.shares_users() {
        causes.invalid_text(at.field("procMount"), "Unmasked", "`hostUsers` must be false to use `Unmasked`");
    }
    if context["allowPrivilegeEscalation"] == Value::Bool(false) {
        if context["privileged"] == Value::Bool(true) {
            let why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            causes.invalid(at, context, why);
        }
        let all = texts(&context["capabilities"], "add").filter(|name| *name == "CAP_SYS_ADMIN");
        for _ in all.take(REPEATED_MAX) {
            let why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
            causes.invalid(at, context, why);
        }
    }
    profiles(context, at, causes);
}

/// A pod with its own user namespace must not share other namespaces of its node.
pub(super) fn check_users(pod: Pod<'_>, causes: &mut Vec<Cause>) {
    if pod.shares_users() {
        return;
    }
    let why = "when `hostUsers` is false";
    // Names in a real server's messages.
    for (key, named) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if pod.spec[key] == Value::Bool(true) {
            causes.forbidden(pod.at.field(named), why);
        }
    }
    for (list, index, container) in pod.containers() {
        if !items(container, "volumeDevices").is_empty() {
            causes.forbidden(pod.at.field(list).item(index).field("volumeDevices"), why);
        }
    }
}

/// Checks the profiles that pods and containers can both have.
fn profiles(context: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    if has(context, "seccompProfile") {
        seccomp(&context["seccompProfile"], at.field("seccompProfile"), causes);
    }
    windows(&context["windowsOptions"], at.field("windowsOptions"), causes);
    if has(context, "appArmorProfile") {
        app_armor(&context["appArmorProfile"], at.field("appArmorProfile"), causes);
    }
}

fn seccomp(profile: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    let kind = text(profile, "type");
    if kind.is_empty() {
        causes.required(at.field("type"), "type is required when seccompProfile is set");
    } else {
        causes.one_of(&profile["type"], at.field("type"), &["Localhost", "RuntimeDefault", "Unconfined"]);
    }
    let at = at.field("localhostProfile");
    match (kind == "Localhost", profile["localhostProfile"].as_str()) {
        (true, None) => causes.required(at, "must be set when seccomp type is Localhost"),
        (true, Some(path)) => descending(path, at, causes),
        (false, Some(_)) => causes.invalid(at, profile, "can only be set when seccomp type is Localhost"),
        (false, None) => {}
    }
}

pub(super) fn app_armor(profile: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    let name = profile["localhostProfile"].as_str();
    let below = at.field("localhostProfile");
    match text(profile, "type") {
        "Localhost" => {
            let name = name.unwrap_or_default();
            if name.trim() != name {
                causes.invalid_text(below, name, "must not be padded with whitespace");
            } else if name.is_empty() {
                causes.required(below, "must be set when AppArmor type is Localhost");
            }
            if name.len() > PROFILE_MAX_BYTES {
                causes.too_long(below, PROFILE_MAX_BYTES);
            }
        }
        "RuntimeDefault" | "Unconfined" => {
            if let Some(name) = name {
                causes.invalid_text(below, name, "can only be set when AppArmor type is Localhost");
            }
        }
        "" => causes.required(at.field("type"), "type is required when appArmorProfile is set"),
        other => causes.unsupported(at.field("type"), other, &["Localhost", "RuntimeDefault", "Unconfined"]),
    }
}

fn sysctls(pod: Pod<'_>, list: At<'_>, causes: &mut Vec<Cause>) {
    let mut names = BTreeSet::new();
    for (index, one) in items(&pod.spec["securityContext"], "sysctls").iter().enumerate() {
        let name = text(one, "name");
        let at = list.item(index);
        let at = at.field("name");
        if name.is_empty() {
            causes.required(at, "");
        } else if !is_sysctl(name) {
            let why = format!(
                "must have at most {SYSCTL_MAX_BYTES} characters and match regex \
                 ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
            );
            causes.invalid_text(at, name, &why);
        } else if names.contains(name) {
            causes.duplicate(at, name);
        }
        names.insert(name);
        // If a slash comes first, dots and slashes are swapped.
        let dotted = match name.find(['.', '/']) {
            Some(first) if name[first..].starts_with('/') => name.replace('/', "."),
            _ => name.to_owned(),
        };
        let is_of = |known: &[&str], prefixes: &[&str]| {
            known.contains(&dotted.as_str()) || prefixes.iter().any(|prefix| dotted.starts_with(prefix))
        };
        let shares = |key: &str| pod.spec[key] == Value::Bool(true);
        if shares("hostNetwork") && is_of(&[], &["net."]) {
            causes.invalid_text(at, name, "may not be specified when 'hostNetwork' is true");
        } else if shares("hostIPC") && is_of(&["kernel.sem"], &["kernel.shm", "kernel.msg", "fs.mqueue."]) {
            causes.invalid_text(at, name, "may not be specified when 'hostIPC' is true");
        }
    }
}

fn is_sysctl(name: &str) -> bool {
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let segment = |part: &str| {
        let bytes = part.as_bytes();
        bytes.first().is_some_and(plain)
            && bytes.last().is_some_and(plain)
            && bytes.iter().all(|byte| plain(byte) || b"-_".contains(byte))
    };
    name.len() <= SYSCTL_MAX_BYTES && name.split(['.', '/']).all(segment)
}

/// Checks `windowsOptions`.
fn windows(options: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    if let Some(name) = options["gmsaCredentialSpecName"].as_str() {
        causes.faults(at.field("gmsaCredentialSpecName"), name, subdomain(name));
    }
    if let Some(credentials) = options["gmsaCredentialSpec"].as_str() {
        let why = match credentials.len() {
            0 => "gmsaCredentialSpec cannot be an empty string",
            1..=CREDENTIALS_MAX_BYTES => "",
            _ => "gmsaCredentialSpec size must be under 64 KiB",
        };
        if !why.is_empty() {
            causes.invalid_text(at.field("gmsaCredentialSpec"), credentials, why);
        }
    }
    if let Some(name) = options["runAsUserName"].as_str() {
        for why in not_a_user(name) {
            causes.invalid_text(at.field("runAsUserName"), name, why);
        }
    }
}

/// The errors in the name of a user, which may begin with a domain and a backslash.
fn not_a_user(name: &str) -> Vec<&'static str> {
    if name.is_empty() {
        return vec!["runAsUserName cannot be an empty string"];
    }
    if name.contains(|c: char| c.is_ascii_control()) {
        return vec!["runAsUserName cannot contain control characters"];
    }
    let (domain, user) = name.split_once('\\').map_or((None, name), |(domain, user)| (Some(domain), user));
    if user.contains('\\') {
        return vec!["runAsUserName cannot contain more than one backslash"];
    }
    let mut faults = Vec::new();
    if domain.is_some_and(|domain| domain.len() >= DOMAIN_MAX_BYTES) {
        faults.push("runAsUserName's Domain length must be under 256 characters");
    }
    if domain.is_some_and(|domain| !is_domain(domain)) {
        faults.push("runAsUserName's Domain doesn't match the NetBios nor the DNS format");
    }
    if user.is_empty() {
        faults.push("runAsUserName's User cannot be empty");
    } else if user.len() > USER_MAX_BYTES {
        faults.push("runAsUserName's User length must not be longer than 104 characters");
    }
    if !user.is_empty() && user.bytes().all(|byte| b". ".contains(&byte)) {
        faults.push("runAsUserName's User cannot contain only periods or spaces");
    }
    if user.contains(['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']']) {
        faults.push("runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]");
    }
    faults
}

/// Whether a text is a `NetBIOS` or DNS domain.
fn is_domain(domain: &str) -> bool {
    let odd = ['\\', '/', ':', '*', '?', '"', '<', '>', '|'];
    let short = (1..=15).contains(&domain.chars().count()) && !domain.starts_with('.') && !domain.contains(odd);
    let part = |part: &str| {
        let bytes = part.as_bytes();
        part.len() <= 63
            && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
    };
    short || domain.split('.').all(part)
}

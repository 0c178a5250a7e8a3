//! Explains failures of an injection, with a remedy for each.
//!
//! The functions take the API server's answers, the Pod and its events; they return findings or remedies, and do no
//! I/O.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use service_core::kube;

/// Maximum number of characters of the API server's message that are shown.
const SHOWN_CHARS_MAX: usize = 300;

/// A finding: a reason why the injected program does not serve, or the fact that it serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub what: String,
    /// How to solve the problem; empty if no solution is known.
    pub remedy: String,
    /// Whether the problem may disappear by itself.
    pub passes: bool,
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.what)?;
        if self.remedy.is_empty() { Ok(()) } else { write!(out, "\n    {}", self.remedy) }
    }
}

/// An event of the Pod, from `v1` or `events.k8s.io/v1`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Event {
    pub reason: String,
    pub message: String,
}

/// How to solve a failed request, with a leading separator; empty if no solution is known.
pub fn advice(error: &kube::Error) -> String {
    let kube::Error::Status { status, message, .. } = error else { return String::new() };
    let message = message.as_deref().unwrap_or_default();
    match refusal(status.as_u16(), message) {
        Some(remedy) => format!("\n    {remedy}"),
        None => String::new(),
    }
}

fn refusal(status: u16, message: &str) -> Option<String> {
    let has = |part: &str| message.contains(part);
    let remedy = match status {
        403 if has("exceeded quota") => {
            "a ResourceQuota of the namespace is used up: `count/configmaps` must allow one for each chunk and two more; raise it, or take \
             larger chunks with --chunk-bytes"
        }
        403 if has("serviceaccount") && has("not found") => {
            "the namespace has no service account yet: its controller makes it within seconds, or kube-controller-manager is not running"
        }
        403 if has("violates PodSecurity") => {
            "the namespace's Pod security level refuses the Pod, although it needs no privileges: see the fields in the message"
        }
        403 if has("forbidden: User") => {
            "the user of the kubeconfig lacks this right: docs/inject.md lists what is needed"
        }
        403 | 400 | 422 if has("admission webhook") => {
            "an admission webhook refused it: exempt the namespace or the label app.kubernetes.io/managed-by=longhaul-inject there"
        }
        404 if has("namespaces") && has("not found") => "the namespace does not exist: kubectl create namespace NAME",
        409 if has("Apply failed with") => {
            "an object of that name belongs to another program: use another --name or another namespace"
        }
        409 if has("being terminated") => "the namespace is being deleted: wait for its end, or take another one",
        413 => "the API server accepts no request of this size: use smaller chunks with --chunk-bytes",
        401 => "the API server does not know the user of the kubeconfig",
        _ => return None,
    };
    Some(remedy.to_owned())
}

/// Findings from the injected program's Pod and the Pod's events. The events in `events` are ordered by time.
pub fn pod(pod: &Value, events: &[Event]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let status = &pod["status"];
    let condition = |kind: &str| status["conditions"].as_array().into_iter().flatten().find(|one| one["type"] == kind);
    if condition("Ready").is_some_and(|ready| ready["status"] == "True") {
        return vec![found("the seed serves", "", false)];
    }
    if pod["metadata"]["deletionTimestamp"].is_string() {
        findings.push(found("the Pod is being deleted", "", true));
    }
    if let Some(scheduled) = condition("PodScheduled").filter(|one| one["status"] == "False") {
        let message = shown(scheduled["message"].as_str().unwrap_or_default());
        findings.push(found(
            &format!("no node accepts the Pod: {message}"),
            "make room, tolerate the taints with --tolerate, or let `inject` choose a node by leaving --node-image out",
            false,
        ));
    }
    for container in status["containerStatuses"].as_array().into_iter().flatten() {
        findings.extend(state(&container["state"]));
    }
    if status["phase"] == "Failed" && status["containerStatuses"].as_array().is_none_or(Vec::is_empty) {
        let (reason, message) = (text(&status["reason"]), text(&status["message"]));
        findings.push(found(
            &format!("the Pod failed: {reason} {message}"),
            "a node refused or evicted it: `inject apply` makes a new one",
            false,
        ));
    }
    findings.extend(events.iter().rev().find_map(mount));
    if let Some(event) = events.iter().rev().find(|event| event.reason == "Unhealthy").filter(|_| findings.is_empty()) {
        findings.push(found(
            &format!("not ready yet: {}", shown(&event.message)),
            "the payload is being assembled",
            true,
        ));
    }
    if findings.is_empty() {
        let last = events.last().map(|event| format!(": {} {}", event.reason, shown(&event.message)));
        let phase = text(&status["phase"]);
        findings.push(found(&format!("the Pod is {phase}{}", last.unwrap_or_default()), "", true));
    }
    findings
}

fn state(state: &Value) -> Option<Finding> {
    if let Some(ended) = state.get("terminated") {
        let (code, reason) = (ended["exitCode"].as_i64().unwrap_or(-1), text(&ended["reason"]));
        let message = text(&ended["message"]);
        let remedy = match (code, &*reason) {
            (_, "OOMKilled") => {
                "the seed needs 6 MB and the kernel's caches count as well: raise the namespace's limits"
            }
            (_, "ContainerCannotRun" | "StartError") => {
                "the image or the node cannot run it: name another image with --node-image"
            }
            (65 | 66, _) => "run `inject apply` again, which sends the wrong chunks once more",
            (71 | 74, _) => "the node refused: see its disk space and its limits",
            _ => "`inject apply` again makes a new Pod",
        };
        return Some(found(&format!("the seed ended with code {code} ({reason}): {message}"), remedy, false));
    }
    let waiting = state.get("waiting")?;
    let (reason, message) = (text(&waiting["reason"]), text(&waiting["message"]));
    let remedy = match &*reason {
        "" | "ContainerCreating" | "PodInitializing" => return None,
        "ErrImageNeverPull" | "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" => {
            "the node no longer has the image, or a policy always pulls it: name another one with --node-image"
        }
        "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" => {
            "the image or the node cannot run it: name another image with --node-image"
        }
        _ => "",
    };
    Some(found(&format!("the container waits: {reason} {message}"), remedy, false))
}

/// The finding that follows from an event about a failed mount.
fn mount(event: &Event) -> Option<Finding> {
    if event.reason != "FailedMount" {
        return None;
    }
    let message = shown(&event.message);
    let (remedy, passes) = if message.contains("failed to sync configmap cache") {
        ("the kubelet reads the chunks one after the other and tries again by itself", true)
    } else if message.contains("not found") || message.contains("references non-existent config key") {
        ("a chunk is missing: `inject apply` again sends it", false)
    } else if message.contains("timed out waiting for the condition") || message.contains("context deadline exceeded") {
        ("many chunks take the kubelet longer than its limit for one attempt; it tries again by itself", true)
    } else {
        ("", true)
    };
    Some(found(&format!("the chunks are not mounted: {message}"), remedy, passes))
}

fn found(what: &str, remedy: &str, passes: bool) -> Finding {
    Finding { what: what.trim().to_owned(), remedy: remedy.to_owned(), passes }
}

fn text(value: &Value) -> String {
    shown(value.as_str().unwrap_or_default())
}

/// Makes one line of a text from the API server.
fn shown(text: &str) -> String {
    let text: String =
        text.chars().map(|char| if char.is_control() { ' ' } else { char }).take(SHOWN_CHARS_MAX).collect();
    text.trim().to_owned()
}

#[cfg(test)]
mod tests;

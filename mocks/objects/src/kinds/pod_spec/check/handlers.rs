//! The checks of probes and lifecycle hooks.

use serde_json::Value;

use super::super::super::at::At;
use super::super::super::causes::Refuse;
use super::super::super::texts::{header_name, port_name};
use super::{Pod, has, items, text};
use crate::status::Cause;

/// Checks the probes and `lifecycle` of a container.
pub(super) fn check(pod: Pod<'_>, container: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    let lifecycle = at.field("lifecycle");
    for hook in ["postStart", "preStop"].into_iter().filter(|hook| has(&container["lifecycle"], hook)) {
        action(pod, &container["lifecycle"][hook], lifecycle.field(hook), causes);
    }
    for kind in ["livenessProbe", "readinessProbe", "startupProbe"].into_iter().filter(|kind| has(container, kind)) {
        let (probe, at) = (&container[kind], at.field(kind));
        action(pod, probe, at, causes);
        for key in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"] {
            causes.not_negative(at.field(key), probe[key].as_i64());
        }
        let grace = probe["terminationGracePeriodSeconds"].as_i64();
        if let Some(grace) = grace.filter(|grace| *grace <= 0) {
            causes.invalid(at.field("terminationGracePeriodSeconds"), &grace, "must be greater than 0");
        }
        let successes = &probe["successThreshold"];
        if kind == "readinessProbe" {
            if let Some(grace) = grace {
                let why = "must not be set for readinessProbes";
                causes.invalid(at.field("terminationGracePeriodSeconds"), &grace, why);
            }
        } else if successes.as_i64() != Some(1) {
            causes.invalid(at.field("successThreshold"), successes, "must be 1");
        }
    }
}

/// Requires exactly one action, and checks it.
fn action(pod: Pod<'_>, handler: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    let mut is_first = true;
    for kind in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"].into_iter().filter(|kind| has(handler, kind)) {
        let (given, at) = (&handler[kind], at.field(kind));
        if !std::mem::take(&mut is_first) {
            causes.forbidden(at, "may not specify more than 1 handler type");
            continue;
        }
        match kind {
            "exec" => {
                if items(given, "command").is_empty() {
                    causes.required(at.field("command"), "");
                }
            }
            "httpGet" => get(given, at, causes),
            "sleep" => sleep(pod, given, at, causes),
            _ => port(&given["port"], at.field("port"), causes),
        }
    }
    if is_first {
        causes.required(at, "must specify a handler type");
    }
}

fn get(given: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    causes.text_in(given, "path", at);
    port(&given["port"], at.field("port"), causes);
    causes.one_of(&given["scheme"], at.field("scheme"), &["HTTP", "HTTPS"]);
    for header in items(given, "httpHeaders") {
        let name = text(header, "name");
        causes.faults(at.field("httpHeaders"), name, header_name(name));
    }
}

fn sleep(pod: Pod<'_>, given: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    let seconds = given["seconds"].as_i64().unwrap_or(0);
    if let Some(grace) = pod.grace_s().filter(|grace| seconds < 0 || seconds > *grace) {
        let why = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        causes.invalid(at, &seconds, &why);
    }
}

fn port(port: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    match port.as_str() {
        Some(name) => causes.faults(at, name, port_name(name)),
        None => causes.within(at, Some(port.as_i64().unwrap_or(0)), (1, 65535)),
    }
}

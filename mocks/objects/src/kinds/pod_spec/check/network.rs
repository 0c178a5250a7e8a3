//! The checks of a pod's host ports, DNS servers and host aliases.

use mock_cel::formats::subdomain;
use serde_json::Value;

use super::super::super::at::At;
use super::super::super::causes::Refuse;
use super::super::super::texts::is_address;
use super::{Pod, items, text, texts};
use crate::status::Cause;

const NAMESERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
/// Longest list of DNS search domains in bytes, with the blanks between the domains.
const SEARCHES_MAX_BYTES: usize = 2048;

/// Requires equal host and container ports if the pod uses the node's network.
pub(super) fn check_host_ports(pod: Pod<'_>, causes: &mut Vec<Cause>) {
    if pod.spec["hostNetwork"] != Value::Bool(true) {
        return;
    }
    let list = pod.at.field("containers");
    for (index, container) in items(pod.spec, "containers").iter().enumerate() {
        for (number, port) in items(container, "ports").iter().enumerate() {
            let (outside, inside) =
                (port["hostPort"].as_i64().unwrap_or(0), port["containerPort"].as_i64().unwrap_or(0));
            if (pod.alone.is_some() || outside != 0) && outside != inside {
                let at = list.item(index);
                let at = at.field("ports");
                let why = "must match `containerPort` when `hostNetwork` is true";
                causes.invalid(at.item(number).field("hostPort"), &outside, why);
            }
        }
    }
}

pub(super) fn check_resolver(spec: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    let config = &spec["dnsConfig"];
    let servers = items(config, "nameservers");
    if text(spec, "dnsPolicy") == "None" {
        if config.is_null() {
            return causes.required(at, "must provide `dnsConfig` when `dnsPolicy` is None");
        }
        if servers.is_empty() {
            let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return causes.required(at.field("nameservers"), why);
        }
    }
    if servers.len() > NAMESERVERS_MAX {
        let why = format!("must not have more than {NAMESERVERS_MAX} nameservers");
        causes.invalid(at.field("nameservers"), &config["nameservers"], &why);
    }
    for (index, server) in texts(config, "nameservers").enumerate() {
        check_address(server, at.field("nameservers").item(index), causes);
    }
    let searches: Vec<&str> = texts(config, "searches").collect();
    let mut refuse = |why: &str| causes.invalid(at.field("searches"), &config["searches"], why);
    if searches.len() > SEARCHES_MAX {
        refuse(&format!("must not have more than {SEARCHES_MAX} search paths"));
    }
    if searches.join(" ").len() > SEARCHES_MAX_BYTES {
        refuse(&format!(
            "must not have more than {SEARCHES_MAX_BYTES} characters (including spaces) in the search list"
        ));
    }
    for (index, search) in searches.iter().enumerate().filter(|(_, search)| **search != ".") {
        let search = search.strip_suffix('.').unwrap_or(search);
        // Underscores count as letters here.
        causes.faults(at.field("searches").item(index), search, subdomain(&search.replace('_', "a")));
    }
    for (index, option) in items(config, "options").iter().enumerate() {
        if text(option, "name").is_empty() {
            causes.required(at.field("options").item(index), "must not be empty");
        }
    }
}

pub(super) fn check_aliases(spec: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    for (index, alias) in items(spec, "hostAliases").iter().enumerate() {
        let at = at.item(index);
        check_address(text(alias, "ip"), at.field("ip"), causes);
        for (number, name) in texts(alias, "hostnames").enumerate() {
            causes.faults(at.field("hostnames").item(number), name, subdomain(name));
        }
    }
}

fn check_address(address: &str, at: At<'_>, causes: &mut Vec<Cause>) {
    if !is_address(address) {
        causes.invalid_text(at, address, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
    }
}

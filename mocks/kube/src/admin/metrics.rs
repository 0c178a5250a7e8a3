//! The endpoint `/metrics`: the server's counters for Prometheus.

use std::fmt::Write as _;

use mock_store::Store;

use crate::cluster::Cluster;

/// All counters in Prometheus' text format. The metrics of admission have the same names as in kube-apiserver.
pub(super) fn text(cluster: &Cluster) -> String {
    let mut out = String::new();
    let mut gauge = |name: &str, help: &str, value: u64| {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}");
    };
    gauge("longhaul_mock_revision", "Newest revision of the store.", cluster.revision());
    gauge("longhaul_mock_objects", "Objects in the store.", cluster.read(Store::object_count) as u64);
    gauge("longhaul_mock_history_events", "Events kept for watches.", cluster.read(Store::history_len) as u64);
    gauge("longhaul_mock_history_bytes", "Bytes of these events.", cluster.read(Store::history_bytes) as u64);
    let now_us = cluster.now_us();
    let mut family = |name: &str, kind: &str, rows: Vec<(String, u64)>| {
        let _ = writeln!(out, "# TYPE {name} {kind}");
        for (labels, value) in rows {
            let _ = writeln!(out, "{name}{{{labels}}} {value}");
        }
    };
    let users: Vec<_> =
        cluster.audit.all().into_iter().map(|(user, audit)| (label("user", &user), audit.traffic(now_us))).collect();
    let rows = |pick: fn(&crate::Traffic) -> u64| users.iter().map(|(user, t)| (user.clone(), pick(t))).collect();
    family("longhaul_mock_requests_total", "counter", rows(|t| t.requests));
    family("longhaul_mock_watches_opened_total", "counter", rows(|t| t.watches_opened));
    family("longhaul_mock_watches_open", "gauge", rows(|t| t.watches_open));
    family("longhaul_mock_gone_total", "counter", rows(|t| t.gone_http + t.gone_stream));
    let hooks = cluster.webhooks.counters.lock().by_hook.clone();
    let rows = |pick: fn(&crate::webhooks::HookCounters) -> u64| {
        hooks.iter().map(|(name, counters)| (label("name", name), pick(counters))).collect()
    };
    family("apiserver_admission_webhook_request_total", "counter", rows(|c| c.calls));
    family("apiserver_admission_webhook_rejection_count", "counter", rows(|c| c.rejected));
    family("apiserver_admission_webhook_fail_open_count", "counter", rows(|c| c.failed_open));
    family("longhaul_mock_admission_webhook_failed_total", "counter", rows(|c| c.failed));
    family("longhaul_mock_admission_webhook_duration_us_sum", "counter", rows(|c| c.duration_us_sum));
    family("longhaul_mock_admission_webhook_duration_us_max", "gauge", rows(|c| c.duration_us_max));
    out
}

fn label(name: &str, value: &str) -> String {
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("{name}=\"{escaped}\"")
}

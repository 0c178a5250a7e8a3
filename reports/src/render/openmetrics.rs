//! A finished run as `OpenMetrics` text, for a push gateway or for the textfile collector of a node exporter.
//!
//! Owns the names of the metrics; `longhaul soak --metrics` serves the same metrics while a run is under way. The units
//! of all metrics are seconds and bytes.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::{Error, Renderer};
use crate::judge::{Judgement, Verdict};
use crate::ledger::Outcome;
use crate::record::{Phase, Process, Record, quantile_us, tag};

pub(super) const ROW: Renderer = Renderer {
    file: record::file::OPENMETRICS,
    doc: "for monitoring: verdict and totals as OpenMetrics text",
    render: openmetrics,
};

/// The quantiles of a latency that are written if it has enough samples: in parts per thousand, and as text.
const QUANTILES: [(u64, &str); 4] = [(500, "0.5"), (900, "0.9"), (990, "0.99"), (999, "0.999")];
const VERDICTS: [Verdict; 4] = [Verdict::Pass, Verdict::Fail, Verdict::Inconclusive, Verdict::Invalid];

type Labels = Vec<(&'static str, String)>;
type Gauges = Family<Labels, Gauge<f64, AtomicU64>>;

pub fn openmetrics(record: &Record, judgement: &Judgement) -> Result<String, Error> {
    let mut registry = Registry::with_prefix("longhaul");
    verdict(&mut registry, record, judgement);
    outcomes(&mut registry, record);
    latencies(&mut registry, record);
    resources(&mut registry, record);
    newest(&mut registry, record);
    growth(&mut registry, record);
    faults(&mut registry, record);
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

fn gauges(registry: &mut Registry, name: &str, help: &str) -> Gauges {
    let family = Gauges::default();
    registry.register(name, help, family.clone());
    family
}

fn gauge(registry: &mut Registry, name: &str, help: &str, value: f64) {
    let gauge = Gauge::<f64, AtomicU64>::default();
    registry.register(name, help, gauge.clone());
    gauge.set(value);
}

fn verdict(registry: &mut Registry, record: &Record, judgement: &Judgement) {
    let info = gauges(registry, "run_info", "The run; always 1");
    let labels = vec![
        ("name", judgement.name.clone()),
        ("run_id", judgement.run_id.clone()),
        ("seed", judgement.seed.to_string()),
        ("version", record.manifest.versions.longhaul.clone()),
    ];
    info.get_or_create(&labels).set(1.0);
    let told = gauges(registry, "verdict", "1 for the verdict of the run, 0 for the others");
    for verdict in VERDICTS {
        told.get_or_create(&vec![("verdict", verdict.word().to_owned())]).set(number(verdict == judgement.verdict));
    }
    let findings = gauges(registry, "budget", "1 for the verdict of each budget and condition");
    let used =
        gauges(registry, "budget_used_ratio", "Share of the limit that was used; for growth, of the upper bound");
    for finding in &judgement.findings {
        let budget = ("budget", finding.budget.clone());
        findings.get_or_create(&vec![budget.clone(), ("verdict", finding.verdict.word().to_owned())]).set(1.0);
        if let Some(pct) = finding.used_pct {
            used.get_or_create(&vec![budget]).set(f64::from(pct) / 100.0);
        }
    }
    gauge(registry, "run_length_seconds", "Time of the last recorded fact", record.length_ms() as f64 / 1000.0);
}

fn counters(registry: &mut Registry, (name, help): (&str, &str), label: &'static str, counts: &[(&str, u64)]) {
    let family: Family<Labels, Counter> = Family::default();
    registry.register(name, help, family.clone());
    for (value, count) in counts {
        family.get_or_create(&vec![(label, (*value).to_owned())]).inc_by(*count);
    }
}

type Counter = prometheus_client::metrics::counter::Counter;

fn outcomes(registry: &mut Registry, record: &Record) {
    let totals = record.totals();
    registry.register("commits", "Versions written to the control plane", ConstCounter::new(totals.commits));
    registry.register("observations", "Versions that the subject reported", ConstCounter::new(totals.observations));
    let words = Outcome::ALL.map(|outcome| outcome.words().replace(' ', "-"));
    let versions: Vec<_> =
        words.iter().map(String::as_str).zip(Outcome::ALL.map(|outcome| outcome.of(&totals))).collect();
    counters(registry, ("versions", "Versions by outcome"), "outcome", &versions);
    let rows = || record.intervals.iter().filter_map(|row| row.admission.as_ref());
    if rows().next().is_some() {
        let sum = |read: fn(&record::AdmissionRow) -> u64| rows().map(read).sum::<u64>();
        let reviews = [
            ("allowed", sum(|row| row.allowed)),
            ("denied", sum(|row| row.denied)),
            ("http-error", sum(|row| row.http_error)),
            ("timeout", sum(|row| row.timeout)),
            ("connect", sum(|row| row.connect)),
            ("tls", sum(|row| row.tls)),
            ("invalid-response", sum(|row| row.invalid_response)),
        ];
        counters(registry, ("reviews", "Admission reviews by outcome"), "outcome", &reviews);
        let wrong = ConstCounter::new(sum(|row| row.wrong_verdicts));
        registry.register("wrong_verdicts", "Valid answers with a wrong verdict", wrong);
    }
}

fn latencies(registry: &mut Registry, record: &Record) {
    let told = gauges(registry, "latency_seconds", "Quantiles of the steady phase, of lag and heal of the whole run");
    for tag in [tag::RESPONSE, tag::SERVICE, tag::LATENESS, tag::LAG, tag::HEAL] {
        let whole = [tag::LAG, tag::HEAL].contains(&tag);
        let steady = || record.latency.in_phase(tag, Phase::Steady).cloned();
        let Some(histogram) = (if whole { record.latency.whole(tag) } else { steady() }) else { continue };
        for (parts, quantile) in QUANTILES {
            if let Some(us) = quantile_us(&histogram, parts) {
                let labels = vec![("of", tag.to_owned()), ("quantile", quantile.to_owned())];
                told.get_or_create(&labels).set(us as f64 / 1e6);
            }
        }
    }
}

fn resources(registry: &mut Registry, record: &Record) {
    let mut most = |name, help, read: fn(&Process) -> u64| {
        let family = gauges(registry, name, help);
        for (process, values) in [
            ("subject", record.samples.iter().filter_map(|row| row.subject.as_ref().map(read)).max()),
            ("harness", record.samples.iter().filter_map(|row| row.harness.as_ref().map(read)).max()),
        ] {
            if let Some(value) = values {
                family.get_or_create(&vec![("process", process.to_owned())]).set(value as f64);
            }
        }
    };
    most("resident_memory_bytes_max", "The largest resident set", |process| process.rss_bytes);
    most("open_fds_max", "The most open descriptors", |process| process.fds.total());
    most("threads_max", "The most threads", |process| process.threads);
}

/// Adds metrics with the values of the record's newest interval and sample.
fn newest(registry: &mut Registry, record: &Record) {
    gauge(registry, "run_finished", "1 once the run has ended", number(record.end.is_some()));
    if let Some(row) = record.intervals.last() {
        let phase = gauges(registry, "phase", "1 for the phase that the run is in");
        for one in [Phase::WarmUp, Phase::Steady, Phase::Drain] {
            let name = match one {
                Phase::WarmUp => "warm-up",
                Phase::Steady => "steady",
                Phase::Drain => "drain",
            };
            phase.get_or_create(&vec![("phase", name.to_owned())]).set(number(row.phase == one));
        }
        gauge(registry, "pending_versions", "Versions that wait for an observation", row.pending as f64);
        gauge(registry, "live_objects", "Objects that exist", row.live_objects as f64);
        let open_watches = row.api.subject_open_watches;
        gauge(registry, "subject_open_watches", "Watches that the subject holds open", open_watches as f64);
        let active = gauges(registry, "fault_active", "1 while a fault is active");
        let now: std::collections::BTreeSet<&String> = row.faults_active.iter().collect();
        for fault in &record.manifest.faults {
            let is_active = now.contains(&fault.id);
            let told = active.get_or_create(&vec![("fault", fault.name.clone())]);
            told.set(told.get().max(number(is_active)));
        }
    }
    let Some(sample) = record.samples.last() else { return };
    let processes = [("subject", sample.subject), ("harness", sample.harness)];
    let now = |registry: &mut Registry, name, help, read: fn(&Process) -> f64| {
        let family = gauges(registry, name, help);
        for (name, process) in &processes {
            if let Some(process) = process {
                family.get_or_create(&vec![("process", (*name).to_owned())]).set(read(process));
            }
        }
    };
    now(registry, "resident_memory_bytes", "Resident set of the process tree", |process| process.rss_bytes as f64);
    now(registry, "cpu_seconds", "Processor time since the start", |process| process.cpu_ms as f64 / 1000.0);
    now(registry, "open_fds", "Open descriptors", |process| process.fds.total() as f64);
    now(registry, "threads", "Threads", |process| process.threads as f64);
    if let Some(heap) = record.metrics.iter().rev().find_map(|row| row.heap_bytes) {
        gauge(registry, "heap_bytes", "Heap in use, as the subject reports it", heap as f64);
    }
    let pressure = gauges(registry, "pressure_ratio", "Share of the last 10 s in which tasks waited");
    let machine = &sample.machine;
    for (name, pct) in
        [("cpu", machine.psi_cpu_some_pct), ("memory", machine.psi_memory_some_pct), ("io", machine.psi_io_some_pct)]
    {
        if let Some(pct) = pct {
            pressure.get_or_create(&vec![("of", name.to_owned())]).set(pct / 100.0);
        }
    }
}

/// Adds, for each budget on growth, how much longer the run needs to decide the budget.
fn growth(registry: &mut Registry, record: &Record) {
    let needed =
        gauges(registry, "growth_needed_seconds", "Length of the steady phase that decides the budget; 0 once decided");
    for interim in crate::judge::interims(record) {
        let seconds = match (interim.verdict, interim.needed_s) {
            (Verdict::Inconclusive, Some(seconds)) => seconds,
            (Verdict::Inconclusive, None) => f64::INFINITY,
            _ => 0.0,
        };
        needed.get_or_create(&vec![("budget", interim.budget)]).set(seconds);
    }
}

fn faults(registry: &mut Registry, record: &Record) {
    let mut hits: std::collections::BTreeMap<&str, u64> = std::collections::BTreeMap::new();
    for rows in record.fault_rows().values() {
        if let Some(row) = rows.iter().max_by_key(|row| row.hits) {
            *hits.entry(&row.name).or_default() += row.hits;
        }
    }
    let hits: Vec<(&str, u64)> = hits.into_iter().collect();
    counters(registry, ("fault_hits", "Real effects of each fault"), "fault", &hits);
}

fn number(is: bool) -> f64 {
    if is { 1.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::Example;

    fn text(example: &Example) -> String {
        let record = example.opened();
        openmetrics(&record, &crate::judge::judge(&record)).unwrap()
    }

    #[test]
    fn verdict_totals_and_limits_are_told_and_the_text_has_an_end() {
        let text = text(&Example::failing());
        for line in [
            "longhaul_verdict{verdict=\"fail\"} 1.0\n",
            "longhaul_verdict{verdict=\"pass\"} 0.0\n",
            "longhaul_versions_total{outcome=\"missed\"} 2\n",
            "longhaul_budget{budget=\"events.missed\",verdict=\"fail\"} 1.0\n",
            "longhaul_budget_used_ratio{budget=\"memory.ceiling\"} 1.11\n",
            "longhaul_fault_hits_total{fault=\"silent-watch\"} 3\n",
            "longhaul_wrong_verdicts_total 1\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
        assert!(text.ends_with("# EOF\n"), "{text}");
    }

    /// Text of the subject in a label cannot end the line of its metric.
    #[test]
    fn outside_text_stays_in_its_label() {
        let mut example = Example::clean();
        example.manifest.name = "a\"} 1\nlonghaul_verdict{verdict=\"pass".to_owned();
        let text = text(&example);
        assert!(text.contains(r#"name="a\"} 1\nlonghaul_verdict{verdict=\"pass""#), "{text}");
    }

    /// The Grafana dashboard of the repository uses only metrics that Longhaul writes.
    #[test]
    fn each_metric_of_the_dashboard_is_told() {
        let mut example = Example::clean();
        example.manifest.budgets =
            serde_json::from_str(r#"{"memory": {"growth": "1MiB/h", "ceiling": "1GiB"}}"#).unwrap();
        example.manifest.subject.metrics =
            Some(record::MetricsPlan { url: String::new(), every_ms: 1000, ..Default::default() });
        example.metrics = vec![record::MetricsRow { t_ms: 1000, heap_bytes: Some(1), ..Default::default() }];
        let text = text(&example);
        let dashboard = include_str!("../../../docs/grafana-dashboard.json");
        let asked = dashboard.match_indices("longhaul_").map(|(at, _)| {
            let end = dashboard[at..].find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap();
            &dashboard[at..at + end]
        });
        let mut names = 0;
        for name in asked {
            names += 1;
            assert!(text.contains(&format!("\n{name}{{")) || text.contains(&format!("\n{name} ")), "{name}: {text}");
        }
        assert!(names > 15, "{names}");
    }
}

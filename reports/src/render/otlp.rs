//! A finished run as OTLP metrics in JSON, for a collector of OpenTelemetry (`POST /v1/metrics`).
//!
//! Owns the mapping of `OpenMetrics` to OTLP: a gauge stays a gauge, a counter becomes a monotonic cumulative sum. Names,
//! labels and values are those of `metrics.txt`. The times are the start and the end of the run.
//! Source: opentelemetry-proto 1.x, `opentelemetry/proto/metrics/v1/metrics.proto`, and the JSON mapping in the
//! specification of OTLP. In this mapping, 64-bit integers are strings, and infinite numbers are `"Infinity"`.

use serde_json::{Value, json};

use super::ctrf::since_1970_ms;
use super::{Error, Renderer};
use crate::judge::Judgement;
use crate::record::{Record, file};

pub(super) const ROW: Renderer =
    Renderer { file: file::OTLP, doc: "for OpenTelemetry: the metrics of metrics.txt as OTLP in JSON", render: otlp };

/// `AGGREGATION_TEMPORALITY_CUMULATIVE` of OTLP.
const CUMULATIVE: u8 = 2;

pub fn otlp(record: &Record, judgement: &Judgement) -> Result<String, Error> {
    let start_ms = since_1970_ms(&record.manifest.started_at).unwrap_or_default();
    let end_ms = start_ms.saturating_add(i64::try_from(record.length_ms()).unwrap_or(i64::MAX));
    let times = Times { start: nanos(start_ms), end: nanos(end_ms) };
    let attributes = [
        ("service.name", "longhaul"),
        ("service.version", &record.manifest.versions.longhaul),
        ("longhaul.scenario", &judgement.name),
        ("longhaul.run.id", &judgement.run_id),
    ];
    let request = json!({"resourceMetrics": [{
        "resource": {"attributes": attributes.map(|(key, value)| attribute(key, value))},
        "scopeMetrics": [{
            "scope": {"name": "longhaul", "version": record.manifest.versions.longhaul},
            "metrics": metrics(&super::openmetrics(record, judgement)?, &times),
        }],
    }]});
    let mut text = serde_json::to_string(&request)?;
    text.push('\n');
    Ok(text)
}

/// The times of all points, in nanoseconds since 1970.
struct Times {
    start: String,
    end: String,
}

fn nanos(ms: i64) -> String {
    ms.saturating_mul(1_000_000).to_string()
}

fn attribute(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

/// The metrics of an `OpenMetrics` text that this crate wrote. Lines of other forms are skipped.
fn metrics(text: &str, times: &Times) -> Vec<Value> {
    let mut metrics: Vec<Value> = Vec::new();
    let mut help = "";
    for line in text.lines() {
        if let Some((_, said)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            help = said;
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            let data = match kind {
                "counter" => {
                    ("sum", json!({"aggregationTemporality": CUMULATIVE, "isMonotonic": true, "dataPoints": []}))
                }
                _ => ("gauge", json!({"dataPoints": []})),
            };
            metrics.push(json!({"name": name, "description": help.trim_end_matches('.'), data.0: data.1}));
        } else if let (Some(sample), Some(metric)) = (sample(line), metrics.last_mut()) {
            add(metric, &sample, times);
        }
    }
    metrics
}

fn add(metric: &mut Value, (labels, value): &(Vec<Value>, f64), times: &Times) {
    let value = if value.is_finite() {
        json!(value)
    } else {
        let text = if value.is_nan() { "NaN" } else { "Infinity" };
        json!(if *value < 0.0 { format!("-{text}") } else { text.to_owned() })
    };
    let mut point = json!({"attributes": labels, "timeUnixNano": times.end, "asDouble": value});
    let kind = if metric.get("sum").is_some() { "sum" } else { "gauge" };
    if kind == "sum" {
        point["startTimeUnixNano"] = json!(times.start);
    }
    if let Some(points) = metric[kind]["dataPoints"].as_array_mut() {
        points.push(point);
    }
}

/// Labels and value of a line such as `name{a="b"} 1`.
fn sample(line: &str) -> Option<(Vec<Value>, f64)> {
    let end = line.find(['{', ' '])?;
    let mut rest = line.get(end..)?;
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (key, after) = rest.trim_start_matches(',').split_once("=\"")?;
            let (value, after) = quoted(after)?;
            labels.push(attribute(key, &value));
            rest = after;
        }
        rest = rest.strip_prefix('}')?;
    }
    let value = match rest.trim() {
        "inf" | "+Inf" => f64::INFINITY,
        number => number.parse().ok()?,
    };
    Some((labels, value))
}

/// The text up to the closing quote, and the rest after it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::Example;

    fn read(example: &Example) -> Value {
        let record = example.opened();
        let text = otlp(&record, &crate::judge::judge(&record)).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    fn metric<'a>(request: &'a Value, name: &str) -> &'a Value {
        let metrics = request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
        metrics.iter().find(|metric| metric["name"] == name).unwrap_or_else(|| panic!("{name} is missing: {request}"))
    }

    #[test]
    fn gauges_and_counters_keep_labels_and_values() {
        let request = read(&Example::failing());
        let verdict = &metric(&request, "longhaul_verdict")["gauge"]["dataPoints"];
        let failed = verdict.as_array().unwrap().iter().find(|point| point["asDouble"] == 1.0).unwrap();
        assert_eq!(failed["attributes"], json!([{"key": "verdict", "value": {"stringValue": "fail"}}]));
        let versions = &metric(&request, "longhaul_versions")["sum"];
        assert_eq!((&versions["aggregationTemporality"], &versions["isMonotonic"]), (&json!(2), &json!(true)));
        let missed = versions["dataPoints"].as_array().unwrap();
        let missed = missed.iter().find(|point| point["attributes"][0]["value"]["stringValue"] == "missed").unwrap();
        assert_eq!(missed["asDouble"], 2.0);
        let nanos = |key: &str| missed[key].as_str().unwrap().parse::<u64>().unwrap();
        assert!(nanos("startTimeUnixNano") < nanos("timeUnixNano"), "{missed}");
    }

    /// Each sample of `metrics.txt` is a point.
    #[test]
    fn no_sample_is_left_out() {
        let record = Example::failing().opened();
        let text = super::super::openmetrics(&record, &crate::judge::judge(&record)).unwrap();
        let samples = text.lines().filter(|line| !line.starts_with('#')).count();
        let request = read(&Example::failing());
        let metrics = request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
        let points =
            |metric: &Value| ["gauge", "sum"].map(|kind| metric[kind]["dataPoints"].as_array().map_or(0, Vec::len));
        assert_eq!(metrics.iter().flat_map(points).sum::<usize>(), samples);
    }

    #[test]
    fn outside_text_stays_in_its_attribute() {
        let mut example = Example::clean();
        example.manifest.name = "a\"} 1\nlonghaul_verdict{verdict=\"pass\\".to_owned();
        let request = read(&example);
        let attributes = &metric(&request, "longhaul_run_info")["gauge"]["dataPoints"][0]["attributes"];
        assert_eq!(attributes[0]["value"]["stringValue"], json!(example.manifest.name));
    }

    #[test]
    fn infinite_numbers_are_words() {
        let metrics =
            metrics("# HELP a b.\n# TYPE a gauge\na{} inf\n", &Times { start: String::new(), end: "1".to_owned() });
        assert_eq!(metrics[0]["gauge"]["dataPoints"][0]["asDouble"], "Infinity");
        assert_eq!(metrics[0]["description"], "b");
    }
}

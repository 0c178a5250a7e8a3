//! The two formats of `/metrics`: `OpenMetrics` for clients that request it, the older Prometheus text format for other
//! clients.
//!
//! The metrics library writes only `OpenMetrics`, in which family names lack `_total` and the text ends with `# EOF`.
//! `promtool` and older scrapers refuse family names without `_total` and the line `# EOF`.

use http::{HeaderMap, header};

pub const OPEN: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Media type of the older text format.
pub const CLASSIC: &str = "text/plain; version=0.0.4; charset=utf-8";

pub fn wants_open(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|kind| {
        kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/openmetrics-text"))
    })
}

/// Converts `OpenMetrics` to the older format. Values and labels are equal in both formats.
pub fn classic(open: &str) -> String {
    let mut page = String::with_capacity(open.len());
    let mut help: Option<&str> = None;
    for line in open.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ').map(|(_, text)| text);
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                kind => ("", kind),
            };
            for (keyword, text) in [("HELP", help.take().unwrap_or_default()), ("TYPE", kind)] {
                page.extend(["# ", keyword, " ", name, suffix, " ", text, "\n"]);
            }
        } else if !line.starts_with('#') {
            page.extend([line, "\n"]);
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::gauge::Gauge;
    use prometheus_client::metrics::info::Info;
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn the_older_format_names_counters_and_facts_as_their_samples() {
        let mut registry = Registry::default();
        let counter: Counter = Counter::default();
        registry.register("calls", "Calls", counter);
        registry.register("open", "Open ones", Gauge::<i64>::default());
        registry.register("build", "What runs", Info::new(vec![("version", "1")]));
        let mut open = String::new();
        encode(&mut open, &registry).unwrap();
        assert_eq!(
            classic(&open),
            "# HELP calls_total Calls.\n# TYPE calls_total counter\ncalls_total 0\n\
             # HELP open Open ones.\n# TYPE open gauge\nopen 0\n\
             # HELP build_info What runs.\n# TYPE build_info gauge\nbuild_info{version=\"1\"} 1\n"
        );
    }

    #[test]
    fn only_who_asks_for_it_gets_openmetrics() {
        let wants = |accept: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            wants_open(&headers)
        };
        assert!(!wants_open(&HeaderMap::new()));
        assert!(!wants("text/plain;version=0.0.4;q=0.5,*/*;q=0.1"));
        assert!(wants("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"));
    }
}

//! `metrics`: the scenario's settings for reading the subject's own metrics.

use std::borrow::Cow;

use record::METRIC_SERIES_MAX;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, de};

use super::Scenario;
use crate::fetch::page_address;
use crate::metrics::Selector;

/// The placeholder for a free port, usable in the address of the metrics page and in arguments and variables of a
/// command.
pub const METRICS_PORT: &str = "${LONGHAUL_METRICS_PORT}";

/// The subject's metrics page: its address, or a mapping with further settings.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Metrics {
    /// The address of the page. The built-in service needs no address here.
    pub url: Option<String>,
    /// The series that has the heap in use, in bytes.
    pub heap: Option<String>,
    /// Series that are recorded and drawn in the report.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<String>,
}

/// `metrics:` as a mapping.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Mapping {
    /// The address of the page, over plain HTTP: `http://127.0.0.1:8080/metrics`. The built-in service needs no address
    /// here.
    #[serde(default)]
    url: Option<String>,
    /// The series that has the heap in use, in bytes, as a name with or without labels. The heap series of Go, Node.js,
    /// JVM, .NET, jemalloc and mimalloc are found without this key.
    #[serde(default)]
    heap: Option<String>,
    /// Series that are recorded and drawn in the report, in addition to those that have a budget. At most 32 series are
    /// recorded in all.
    #[serde(default)]
    series: Vec<String>,
}

impl<'de> Deserialize<'de> for Metrics {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> de::Visitor<'de> for Either {
            type Value = Metrics;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the address of a page of metrics, or a mapping with `url`, `heap` and `series`")
            }

            fn visit_str<E: de::Error>(self, url: &str) -> Result<Metrics, E> {
                Ok(Metrics { url: Some(url.to_owned()), ..Metrics::default() })
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Metrics, A::Error> {
                let Mapping { url, heap, series } = Mapping::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(Metrics { url, heap, series })
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for Metrics {
    fn schema_name() -> Cow<'static, str> {
        "Metrics".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mapping = generator.subschema_for::<Mapping>();
        schemars::json_schema!({
            "description": "The subject's page of metrics: its address, or a mapping.",
            "anyOf": [{"type": "string"}, mapping],
        })
    }
}

/// The recorded series, each once: first the series in `metrics.series`, then the series with a budget.
pub fn series(scenario: &Scenario) -> Vec<String> {
    let listed = scenario.subject.metrics.iter().flat_map(|metrics| &metrics.series);
    let mut all: Vec<String> = Vec::new();
    for one in listed.chain(scenario.budgets.metrics.keys()) {
        if !all.contains(one) {
            all.push(one.clone());
        }
    }
    all
}

/// A mistake in a scenario's settings of metrics: the section, the key in the section, and the problem.
pub(super) fn problem(scenario: &Scenario) -> Option<(&'static str, &'static str, String)> {
    let metrics = scenario.subject.metrics.as_ref();
    let subject = |text: String| Some(("subject", "metrics", text));
    let has_page = scenario.subject.profile().is_service || metrics.is_some_and(|metrics| metrics.url.is_some());
    match metrics {
        Some(_) if !has_page => {
            return subject("`metrics` has no `url`: add `url: http://127.0.0.1:8080/metrics`".to_owned());
        }
        Some(Metrics { url: Some(url), .. }) => {
            // The harness reads the page, and it does not have the subject's other variables.
            if url.replace(METRICS_PORT, "").contains("${") {
                return subject(format!(
                    "`metrics`: `{url}`: the only variable of this address is `{METRICS_PORT}`: write it in the command too"
                ));
            }
            if let Err(text) = page_address(&url.replace(METRICS_PORT, "1"), "http://127.0.0.1:8080/metrics") {
                return subject(format!("`metrics`: {text}"));
            }
        }
        _ => {}
    }
    let heap = metrics.and_then(|metrics| metrics.heap.as_ref());
    let mut listed = metrics.iter().flat_map(|metrics| &metrics.series).chain(heap);
    if let Some(text) = listed.find_map(|text| Selector::read(text).err()) {
        return subject(format!("`metrics`: {text}"));
    }
    let budgets = &scenario.budgets.metrics;
    if let Some(text) = budgets.keys().find_map(|text| Selector::read(text).err()) {
        return Some(("budgets", "metrics", text));
    }
    if !budgets.is_empty() && !has_page {
        let text = "no page of metrics is named that these series could be read from: add `metrics: http://127.0.0.1:8080/metrics` to `subject`";
        return Some(("budgets", "metrics", text.to_owned()));
    }
    if let Some((name, _)) = budgets.iter().find(|(_, limits)| limits.ceiling.is_some_and(|most| !most.is_finite())) {
        return Some(("budgets", "metrics", format!("the ceiling of `{name}` is not a finite number")));
    }
    let all = series(scenario).len();
    if all > METRIC_SERIES_MAX {
        return subject(format!("`metrics`: {all} series are followed; at most {METRIC_SERIES_MAX} are"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_an_address_or_a_mapping() {
        let read = |text: &str| serde_saphyr::from_str::<Metrics>(text).map_err(|error| error.to_string());
        let url = Some("http://127.0.0.1:1/metrics".to_owned());
        assert_eq!(read("http://127.0.0.1:1/metrics").unwrap(), Metrics { url: url.clone(), ..Metrics::default() });
        let full = read("{url: 'http://127.0.0.1:1/metrics', heap: a, series: [b]}").unwrap();
        assert_eq!(full, Metrics { url, heap: Some("a".into()), series: vec!["b".into()] });
        assert!(read("{adress: a}").unwrap_err().contains("adress"));
        assert!(read("[a]").unwrap_err().contains("the address of a page of metrics, or a mapping"));
    }
}

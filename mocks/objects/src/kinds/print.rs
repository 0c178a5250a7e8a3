//! Functions for the columns of `kubectl get` that built-in kinds share: lists, selectors, ages and absent values.

use jiff::Timestamp;
use serde_json::Value;

use crate::fields;

/// Makes a cell for each column of a kind.
pub(crate) type Cells = fn(&Row<'_>) -> Vec<Value>;

/// The cells `Name` and `Created At`, for kinds without cells of their own.
pub(crate) fn plain(row: &Row<'_>) -> Vec<Value> {
    vec![row.name(), row.created()]
}

/// Maximum number of entries that a cell lists; the number of omitted entries follows.
const LISTED: usize = 3;
/// Maximum number of characters of a load balancer's addresses in a cell; the rest is cut off.
const ADDRESS_WIDTH: usize = 16;
pub(crate) const NONE: &str = "<none>";
pub(crate) const UNSET: &str = "<unset>";

/// An object to print, and the current time.
pub(crate) struct Row<'a> {
    pub(crate) value: &'a Value,
    pub(crate) now: Timestamp,
}

impl<'a> Row<'a> {
    pub(crate) fn at(&self, pointer: &str) -> Option<&'a Value> {
        self.value.pointer(pointer)
    }

    /// The text at `pointer`; empty if the text is missing.
    pub(crate) fn text(&self, pointer: &str) -> &'a str {
        self.at(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// The text at `pointer`, or `absent` if the text is missing or empty.
    pub(crate) fn text_or(&self, pointer: &str, absent: &'static str) -> Value {
        let text = self.text(pointer);
        Value::from(if text.is_empty() { absent } else { text })
    }

    pub(crate) fn number(&self, pointer: &str) -> i64 {
        self.at(pointer).and_then(Value::as_i64).unwrap_or(0)
    }

    pub(crate) fn flag(&self, pointer: &str) -> Value {
        Value::from(self.at(pointer).and_then(Value::as_bool).unwrap_or(false))
    }

    pub(crate) fn items(
        &self,
        pointer: &str,
    ) -> impl DoubleEndedIterator<Item = &'a Value> + ExactSizeIterator + use<'a> {
        self.at(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default().iter()
    }

    pub(crate) fn name(&self) -> Value {
        Value::from(self.text("/metadata/name"))
    }

    pub(crate) fn age(&self) -> Value {
        Value::from(self.since("/metadata/creationTimestamp"))
    }

    /// The creation time of the object.
    pub(crate) fn created(&self) -> Value {
        Value::from(self.text("/metadata/creationTimestamp"))
    }

    pub(crate) fn since(&self, pointer: &str) -> String {
        age(self.text(pointer), self.now)
    }

    pub(crate) fn is_deleting(&self) -> bool {
        fields::is_deleting(self.value)
    }

    /// Whether the status has a condition of the type `kind` that is `True`.
    pub(crate) fn is_true(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|condition| condition["status"] == "True")
    }

    pub(crate) fn condition(&self, kind: &str) -> Option<&'a Value> {
        self.items("/status/conditions").find(|condition| condition["type"] == kind)
    }

    /// One field of all containers in the pod specification at `spec`, separated by commas.
    pub(crate) fn containers(&self, spec: &str, field: &str) -> Value {
        let fields = self.items(&format!("{spec}/containers")).map(|container| container[field].as_str());
        Value::from(fields.map(Option::unwrap_or_default).collect::<Vec<_>>().join(","))
    }

    /// The cells with containers and images of a workload's pod template, and with the selector of its pods.
    pub(crate) fn template(&self) -> [Value; 3] {
        let spec = "/spec/template/spec";
        [self.containers(spec, "name"), self.containers(spec, "image"), selector(self.at("/spec/selector"))]
    }
}

/// Labels as `a=b,c=d`.
pub(crate) fn labels(labels: Option<&Value>) -> Value {
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    let labels: Vec<String> =
        labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    Value::from(if labels.is_empty() { NONE.to_owned() } else { labels.join(",") })
}

/// A label selector with its expressions, sorted by key.
pub(crate) fn selector(selector: Option<&Value>) -> Value {
    let Some(selector) = selector else { return Value::from(NONE) };
    let of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let equal = selector["matchLabels"].as_object().into_iter().flatten();
    let mut terms: Vec<(String, String)> =
        equal.map(|(key, value)| (key.clone(), format!("{key}={}", of(value)))).collect();
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = of(&expression["key"]);
        let mut values: Vec<String> = expression["values"].as_array().into_iter().flatten().map(of).collect();
        values.sort();
        let values = values.join(",");
        let term = match expression["operator"].as_str().unwrap_or_default() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.clone(),
        };
        terms.push((key, term));
    }
    terms.sort();
    let terms: Vec<String> = terms.into_iter().map(|(_, term)| term).collect();
    Value::from(if terms.is_empty() { NONE.to_owned() } else { terms.join(",") })
}

/// At most three items of a list, and the number of omitted items.
pub(crate) fn some(list: impl IntoIterator<Item = String>, absent: &str) -> Value {
    let list: Vec<String> = list.into_iter().collect();
    if list.is_empty() {
        return Value::from(absent);
    }
    let shown = list[..list.len().min(LISTED)].join(",");
    Value::from(match list.len().saturating_sub(LISTED) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    })
}

/// The addresses of a load balancer: IPs or host names, cut to [`ADDRESS_WIDTH`] characters.
pub(crate) fn load_balancer(row: &Row<'_>) -> String {
    let addresses = row.items("/status/loadBalancer/ingress").filter_map(|ingress| {
        let text = |key: &str| ingress[key].as_str().filter(|text| !text.is_empty());
        text("ip").or_else(|| text("hostname"))
    });
    let joined = addresses.collect::<Vec<_>>().join(",");
    match joined.char_indices().nth(ADDRESS_WIDTH) {
        Some(_) => joined.chars().take(ADDRESS_WIDTH - 3).chain("...".chars()).collect(),
        None => joined,
    }
}

/// The cell of a number or a percentage of pods, as the object contains it.
pub(crate) fn amount(value: Option<&Value>, absent: &str) -> Value {
    match value {
        Some(Value::String(text)) => Value::from(text.as_str()),
        Some(number @ Value::Number(_)) => Value::from(number.to_string()),
        _ => Value::from(absent),
    }
}

/// The time since `since` as `kubectl` shows it: `5s`, `3m20s`, `2h`, `4d`.
pub(crate) fn age(since: &str, now: Timestamp) -> String {
    let Ok(since) = since.parse::<Timestamp>() else { return "<unknown>".to_owned() };
    duration(now.as_second() - since.as_second())
}

/// A duration, given in seconds, as `kubectl` shows it.
pub(crate) fn duration(seconds: i64) -> String {
    if seconds < 0 {
        return "0s".to_owned();
    }
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let with = |big: i64, unit: &str, small: i64, of: &str| {
        if small == 0 { format!("{big}{unit}") } else { format!("{big}{unit}{small}{of}") }
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => with(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => with(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => with(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        _ => with(days / 365, "y", days % 365, "d"),
    }
}

pub(crate) fn entries(row: &Row<'_>, pointer: &str) -> usize {
    row.at(pointer).and_then(Value::as_object).map_or(0, serde_json::Map::len)
}

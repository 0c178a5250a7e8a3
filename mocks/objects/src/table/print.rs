//! What the printers of built-in kinds share: how `kubectl get` words lists, selectors, ages and what is absent.

use jiff::Timestamp;
use serde_json::Value;

/// `(name, type, priority)`; priority 1 shows with `-o wide` only.
pub(super) type Columns = &'static [(&'static str, &'static str, i64)];

/// How one kind is shown.
pub(super) struct Printer {
    /// All columns, in order; the first one whose name is `Name` has the format `name`.
    pub(super) columns: Columns,
    /// A cell for each column.
    pub(super) cells: fn(&Row<'_>) -> Vec<Value>,
}

/// Entries that a cell lists at most; the rest is a number.
const LISTED: usize = 3;
/// Addresses of load balancers are cut to this.
const ADDRESS_WIDTH: usize = 16;
pub(super) const NONE: &str = "<none>";
pub(super) const UNSET: &str = "<unset>";

/// An object and the moment at which it is shown.
pub(super) struct Row<'a> {
    pub(super) value: &'a Value,
    pub(super) now: Timestamp,
}

impl<'a> Row<'a> {
    pub(super) fn at(&self, pointer: &str) -> Option<&'a Value> {
        self.value.pointer(pointer)
    }

    /// The text at `pointer`, or an empty one.
    pub(super) fn text(&self, pointer: &str) -> &'a str {
        self.at(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// The text at `pointer`, or `absent` when there is none or an empty one.
    pub(super) fn text_or(&self, pointer: &str, absent: &'static str) -> Value {
        let text = self.text(pointer);
        Value::from(if text.is_empty() { absent } else { text })
    }

    pub(super) fn number(&self, pointer: &str) -> i64 {
        self.at(pointer).and_then(Value::as_i64).unwrap_or(0)
    }

    pub(super) fn flag(&self, pointer: &str) -> Value {
        Value::from(self.at(pointer).and_then(Value::as_bool).unwrap_or(false))
    }

    pub(super) fn items(
        &self,
        pointer: &str,
    ) -> impl DoubleEndedIterator<Item = &'a Value> + ExactSizeIterator + use<'a> {
        self.at(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default().iter()
    }

    pub(super) fn name(&self) -> Value {
        Value::from(self.text("/metadata/name"))
    }

    pub(super) fn age(&self) -> Value {
        Value::from(self.since("/metadata/creationTimestamp"))
    }

    /// When the object was made, as a time.
    pub(super) fn created(&self) -> Value {
        Value::from(self.text("/metadata/creationTimestamp"))
    }

    pub(super) fn since(&self, pointer: &str) -> String {
        super::age(self.text(pointer), self.now)
    }

    pub(super) fn is_deleting(&self) -> bool {
        crate::object::is_deleting(self.value)
    }

    /// Whether the condition `kind` is `True`.
    pub(super) fn is_true(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|condition| condition["status"] == "True")
    }

    pub(super) fn condition(&self, kind: &str) -> Option<&'a Value> {
        self.items("/status/conditions").find(|condition| condition["type"] == kind)
    }

    /// One field of all containers of the pod specification at `spec`.
    pub(super) fn containers(&self, spec: &str, field: &str) -> Value {
        let fields = self.items(&format!("{spec}/containers")).map(|container| container[field].as_str());
        Value::from(fields.map(Option::unwrap_or_default).collect::<Vec<_>>().join(","))
    }

    /// Containers and images of a template, and the selector of its pods.
    pub(super) fn template(&self) -> [Value; 3] {
        let spec = "/spec/template/spec";
        [self.containers(spec, "name"), self.containers(spec, "image"), selector(self.at("/spec/selector"))]
    }
}

/// Labels as `a=b,c=d`.
pub(super) fn labels(labels: Option<&Value>) -> Value {
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    let labels: Vec<String> =
        labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    Value::from(if labels.is_empty() { NONE.to_owned() } else { labels.join(",") })
}

/// A label selector with its expressions, sorted by key.
pub(super) fn selector(selector: Option<&Value>) -> Value {
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

/// At most three of a list, and how many more there are.
pub(super) fn some(list: impl IntoIterator<Item = String>, absent: &str) -> Value {
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

/// The addresses of a load balancer, each its IP or its host name, cut to a width.
pub(super) fn load_balancer(row: &Row<'_>) -> String {
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

/// A number of pods or a share of them, as it was written.
pub(super) fn amount(value: Option<&Value>, absent: &str) -> Value {
    match value {
        Some(Value::String(text)) => Value::from(text.as_str()),
        Some(number @ Value::Number(_)) => Value::from(number.to_string()),
        _ => Value::from(absent),
    }
}

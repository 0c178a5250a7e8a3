//! Makes objects from a scenario's template with placeholders. Pure: the same template, object and revision give the
//! same bytes.
//!
//! `${i}` is the object's number, `${name}` and `${namespace}` are its name and namespace, and `${revision}` is the
//! number of the write. `${random 0..9}` is a whole number in that range, `${text 200}` this many letters and digits,
//! and `${one of ["a", "b"]}` one of these JSON values. A text that consists only of a number's placeholder becomes a
//! number. A text that consists only of a placeholder `one of` becomes that value. `$${` is a plain `${`.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};

use super::version::{LABEL, Version};
use crate::seed;

/// The annotation that updates change if no field of the template can change.
const REVISION: &str = "longhaul.dev/revision";
/// Maximum number of characters of `${text N}`; etcd accepts an object of 1.5 MiB.
const TEXT_MAX: usize = 1 << 20;

/// The beginning of the placeholder `one of`.
const ONE_OF: &str = "${one of ";

/// The namespace and name of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ObjectName<'a> {
    /// The namespace of the object; empty for cluster-wide objects.
    pub namespace: &'a str,
    pub name: &'a str,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Template {
    object: Map<String, Value>,
    status: Option<Value>,
    vary: Vec<String>,
}

impl Template {
    /// Checks a template and the JSON pointers to the fields that updates change. Without such pointers, updates change
    /// all fields with a placeholder whose value changes.
    pub(crate) fn new(template: &Value, vary: &[String]) -> Result<Self, String> {
        let Some(template) = template.as_object() else {
            return Err("is no object: write the object's `kind`, `spec` and so on".to_owned());
        };
        let mut object = template.clone();
        check(&Value::Object(object.clone()), "")?;
        let status = object.remove("status");
        for pointer in vary {
            if template_at(template, pointer).is_none() {
                return Err(format!(
                    "has nothing at `{pointer}`, which is to vary: write a JSON pointer such as `/spec/replicas`"
                ));
            }
            if !pointer.starts_with('/') || pointer.starts_with("/status") {
                return Err(format!(
                    "`vary: [{pointer}]`: only what is not status can vary; the weight `mix.status` writes that"
                ));
            }
        }
        let mut vary = vary.to_vec();
        if vary.is_empty() {
            for (key, value) in &object {
                changing(value, &format!("/{}", escaped(key)), &mut vary);
            }
        }
        Ok(Self { object, status, vary })
    }

    pub(crate) fn kind(&self) -> Option<&str> {
        self.object.get("kind").and_then(Value::as_str)
    }

    pub(crate) fn api_version(&self) -> Option<&str> {
        self.object.get("apiVersion").and_then(Value::as_str)
    }

    /// JSON pointers to the fields that updates change.
    pub(crate) fn varies(&self) -> &[String] {
        &self.vary
    }

    /// Keeps only these fields among those that updates change. Without any, updates change an annotation.
    pub(crate) fn keep(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.vary.retain(|pointer| is_kept(pointer));
    }

    pub(crate) fn has_status(&self) -> bool {
        self.status.is_some()
    }

    pub(crate) fn create(&self, api_version: &str, place: ObjectName<'_>, version: Version) -> Value {
        let mut object = render(&Value::Object(self.object.clone()), place, version, &mut version.rng());
        object["apiVersion"] = json!(api_version);
        if !object["metadata"].is_object() {
            object["metadata"] = json!({});
        }
        let metadata = &mut object["metadata"];
        metadata["name"] = json!(place.name);
        if !place.namespace.is_empty() {
            metadata["namespace"] = json!(place.namespace);
        }
        if !metadata["labels"].is_object() {
            metadata["labels"] = json!({});
        }
        metadata["labels"][LABEL] = json!(version.tag());
        object
    }

    /// A JSON merge patch (RFC 7386) of the fields that updates change.
    pub(crate) fn update(&self, place: ObjectName<'_>, version: Version) -> Value {
        let object = render(&Value::Object(self.object.clone()), place, version, &mut version.rng());
        let mut patch = json!({});
        for pointer in &self.vary {
            put(&mut patch, &object, pointer);
        }
        if self.vary.is_empty() {
            patch = json!({"metadata": {"annotations": {REVISION: version.revision.to_string()}}});
        }
        patch
    }

    /// A merge patch of the status; empty if the template has no status.
    pub(crate) fn status(&self, place: ObjectName<'_>, version: Version) -> Value {
        let status = self.status.as_ref().map(|status| render(status, place, version, &mut version.rng()));
        json!({ "status": status })
    }
}

/// Returns the object that the first write of a template would make, or an error if the template is invalid.
///
/// # Errors
pub fn example(template: &Value, api_version: &str, namespace: &str, name: &str) -> Result<Value, String> {
    Ok(Template::new(template, &[])?.create(api_version, ObjectName { namespace, name }, FIRST))
}

/// The object that a later object of the same template would be: other values for the same placeholders.
///
/// # Errors
///
/// The template has an error.
pub fn drawn_as(
    template: &Value,
    api_version: &str,
    namespace: &str,
    name: &str,
    object: u64,
) -> Result<Value, String> {
    let version = Version { object, ..FIRST };
    Ok(Template::new(template, &[])?.create(api_version, ObjectName { namespace, name }, version))
}

/// A template's value with the placeholders of a first write replaced; `None` if a placeholder has an error.
pub(super) fn first(value: &Value) -> Option<Value> {
    check(value, "").ok()?;
    let made = render(value, ObjectName { namespace: "", name: "" }, FIRST, &mut FIRST.rng());
    Some(as_text(&made))
}

/// A value as a template that gives exactly this value.
fn as_text(value: &Value) -> Value {
    match value {
        Value::String(text) => json!(plain(text)),
        Value::Array(items) => items.iter().map(as_text).collect(),
        Value::Object(parts) => Value::Object(parts.iter().map(|(key, part)| (key.clone(), as_text(part))).collect()),
        other => other.clone(),
    }
}

/// Returns the merge patch of a later write of an object of the template, or an error if the template is invalid.
///
/// # Errors
pub fn change(template: &Value, namespace: &str, name: &str, revision: u64) -> Result<Value, String> {
    Ok(Template::new(template, &[])?.update(ObjectName { namespace, name }, Version { revision, ..FIRST }))
}

/// The first object of a section, with the default seed.
const FIRST: Version = Version { seed: 1, section: 0, child: false, object: 0, revision: 0 };

fn template_at<'a>(template: &'a Map<String, Value>, pointer: &str) -> Option<&'a Value> {
    let (first, rest) = pointer
        .strip_prefix('/')?
        .split_once('/')
        .map_or((pointer.strip_prefix('/')?, None), |(first, rest)| (first, Some(rest)));
    let value = template.get(&first.replace("~1", "/").replace("~0", "~"))?;
    rest.map_or(Some(value), |rest| value.pointer(&format!("/{rest}")))
}

/// Copies the value at a JSON pointer into a patch. A merge patch replaces whole lists, so the first list on the path
/// is copied as a whole.
fn put(patch: &mut Value, object: &Value, pointer: &str) {
    let (mut from, mut to) = (object, patch);
    for part in pointer.split('/').skip(1) {
        let key = part.replace("~1", "/").replace("~0", "~");
        let Some(next) = from.get(&key) else { break };
        from = next;
        if !to.is_object() {
            *to = json!({});
        }
        to = &mut to[key];
        if from.is_array() {
            break;
        }
    }
    *to = from.clone();
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Collects the JSON pointers of all texts that differ between writes.
fn changing(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(parts) => {
            parts.iter().for_each(|(key, value)| changing(value, &format!("{at}/{}", escaped(key)), found));
        }
        Value::Array(items) => {
            let mut inside = Vec::new();
            for item in items {
                changing(item, "", &mut inside);
            }
            if !inside.is_empty() {
                found.push(at.to_owned());
            }
        }
        Value::String(text) if pieces(text).is_ok_and(|pieces| pieces.iter().any(Piece::changes)) => {
            found.push(at.to_owned());
        }
        _ => {}
    }
}

fn check(value: &Value, at: &str) -> Result<(), String> {
    match value {
        Value::Object(parts) => parts.iter().try_for_each(|(key, value)| check(value, &format!("{at}.{key}"))),
        Value::Array(items) => items.iter().try_for_each(|item| check(item, &format!("{at}[]"))),
        Value::String(text) => {
            pieces(text).map(drop).map_err(|problem| format!("at `{}`: {problem}", at.trim_start_matches('.')))
        }
        _ => Ok(()),
    }
}

fn render(value: &Value, place: ObjectName<'_>, version: Version, rng: &mut ChaCha8Rng) -> Value {
    match value {
        Value::Object(parts) => {
            Value::Object(parts.iter().map(|(key, value)| (key.clone(), render(value, place, version, rng))).collect())
        }
        Value::Array(items) => items.iter().map(|item| render(item, place, version, rng)).collect(),
        Value::String(text) => {
            // A broken placeholder was refused before; otherwise the unchanged text shows it.
            let Ok(pieces) = pieces(text) else { return value.clone() };
            if let [piece] = &pieces[..]
                && let Some(value) = piece.value(version, rng)
            {
                return value;
            }
            let text: String = pieces.iter().map(|piece| piece.text(place, version, rng)).collect();
            Value::String(text)
        }
        other => other.clone(),
    }
}

/// A section of a template's text: plain text or a placeholder.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece<'a> {
    Plain(&'a str),
    Object,
    Name,
    Namespace,
    Revision,
    Random(i64, i64),
    Text(usize),
    OneOf(Vec<Value>),
}

impl Piece<'_> {
    /// Whether this text or placeholder differs between writes.
    fn changes(&self) -> bool {
        match self {
            Self::Revision | Self::Text(_) => true,
            Self::Random(low, high) => low < high,
            Self::OneOf(values) => values.len() > 1,
            _ => false,
        }
    }

    /// The value of a text that consists of one placeholder, if the value is no string.
    fn value(&self, version: Version, rng: &mut ChaCha8Rng) -> Option<Value> {
        match self {
            Self::Object => Some(json!(version.object)),
            Self::Revision => Some(json!(version.revision)),
            Self::Random(low, high) => Some(json!(rng.random_range(*low..=*high))),
            Self::OneOf(values) => Some(drawn(values, rng).clone()),
            _ => None,
        }
    }

    fn text(&self, place: ObjectName<'_>, version: Version, rng: &mut ChaCha8Rng) -> String {
        match self {
            Self::Plain(text) => (*text).to_owned(),
            Self::Name => place.name.to_owned(),
            Self::Namespace => place.namespace.to_owned(),
            Self::Text(length) => seed::suffix(rng, *length),
            Self::Object => version.object.to_string(),
            Self::Revision => version.revision.to_string(),
            Self::Random(low, high) => rng.random_range(*low..=*high).to_string(),
            Self::OneOf(values) => match drawn(values, rng) {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            },
        }
    }
}

/// One of the values, drawn at random; a template with an empty list was refused before.
fn drawn<'a>(values: &'a [Value], rng: &mut ChaCha8Rng) -> &'a Value {
    values.get(rng.random_range(0..values.len().max(1))).unwrap_or(&Value::Null)
}

/// A template text that gives exactly this text, whatever it contains.
pub(super) fn plain(text: &str) -> String {
    text.replace("${", "$${")
}

/// The text of a placeholder for one of these values.
pub(super) fn one_of(values: &[Value]) -> String {
    format!("{ONE_OF}{}}}", Value::from(values.to_vec()))
}

/// Splits a template's text at its placeholders.
fn pieces(text: &str) -> Result<Vec<Piece<'_>>, String> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        if let Some(plain) = before.strip_suffix('$') {
            found.extend([Piece::Plain(plain), Piece::Plain("${")]);
            rest = &from[2..];
            continue;
        }
        if let Some(list) = from.strip_prefix(ONE_OF) {
            let (values, length) = values(list)?;
            if !before.is_empty() {
                found.push(Piece::Plain(before));
            }
            found.push(Piece::OneOf(values));
            rest = &list[length..];
            continue;
        }
        let Some(end) = from.find('}') else {
            return Err(format!("`{from}` has no end: write `${{name}}`, or `$${{` for a plain `${{`"));
        };
        if !before.is_empty() {
            found.push(Piece::Plain(before));
        }
        found.push(placeholder(&from[2..end])?);
        rest = &from[end + 1..];
    }
    if !rest.is_empty() || found.is_empty() {
        found.push(Piece::Plain(rest));
    }
    Ok(found)
}

/// The values of a placeholder `one of`, and the number of characters from the list to the placeholder's end. A value
/// in the list may contain the end mark of other placeholders.
fn values(list: &str) -> Result<(Vec<Value>, usize), String> {
    let mut read = serde_json::Deserializer::from_str(list).into_iter::<Vec<Value>>();
    match read.next() {
        Some(Ok(values)) if !values.is_empty() && list[read.byte_offset()..].starts_with('}') => {
            Ok((values, read.byte_offset() + 1))
        }
        _ => Err(format!("`{ONE_OF}{list}` is no placeholder: write values as JSON does, `{ONE_OF}[\"a\", \"b\"]}}`")),
    }
}

fn placeholder(inside: &str) -> Result<Piece<'static>, String> {
    let refuse = || {
        format!(
            "`${{{inside}}}` is no placeholder: there are `${{i}}`, `${{name}}`, `${{namespace}}`, `${{revision}}`, `${{random 0..9}}`, `${{text 200}}` and `${{one of [\"a\", \"b\"]}}`; `$${{` is a plain `${{`"
        )
    };
    match inside.split_once(' ').map_or((inside, ""), |(word, rest)| (word, rest.trim())) {
        ("i", "") => Ok(Piece::Object),
        ("name", "") => Ok(Piece::Name),
        ("namespace", "") => Ok(Piece::Namespace),
        ("revision", "") => Ok(Piece::Revision),
        ("random", range) => {
            let (low, high) = range.split_once("..").ok_or_else(refuse)?;
            match (low.trim().parse(), high.trim().parse()) {
                (Ok(low), Ok(high)) if low <= high => Ok(Piece::Random(low, high)),
                _ => Err(refuse()),
            }
        }
        ("text", length) => match length.parse() {
            Ok(length) if length <= TEXT_MAX => Ok(Piece::Text(length)),
            _ => Err(refuse()),
        },
        _ => Err(refuse()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: ObjectName<'static> = ObjectName { namespace: "team", name: "memcached-0000004" };

    fn version(revision: u64) -> Version {
        Version { seed: 7, section: 0, child: false, object: 4, revision }
    }

    fn template(vary: &[&str]) -> Template {
        let text = json!({
            "kind": "Memcached",
            "metadata": {"labels": {"team": "t-${i}"}, "finalizers": ["example.com/clean"]},
            "spec": {"size": "${random 1..5}", "note": "${name} of ${namespace}: ${text 8}", "ports": [{"port": "${random 1..9000}", "name": "p"}], "cost": "$${i}"},
            "status": {"seen": "${revision}"},
        });
        Template::new(&text, &vary.iter().map(|&text| text.to_owned()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn placeholders_become_numbers_and_texts() {
        let object = template(&[]).create("cache.example.com/v1", PLACE, version(0));
        assert_eq!(object, template(&[]).create("cache.example.com/v1", PLACE, version(0)));
        assert!((1..=5).contains(&object["spec"]["size"].as_i64().unwrap()));
        assert!(object["spec"]["note"].as_str().unwrap().starts_with("memcached-0000004 of team: "));
        assert_eq!((&object["spec"]["cost"], &object["apiVersion"]), (&json!("${i}"), &json!("cache.example.com/v1")));
        assert_eq!(object["metadata"]["labels"], json!({"team": "t-4", LABEL: "7"}));
        assert!(object.get("status").is_none());
        assert_eq!(template(&[]).status(PLACE, version(9)), json!({"status": {"seen": 9}}));
    }

    #[test]
    fn updates_change_what_varies_and_nothing_else() {
        let all = template(&[]);
        let mut object = all.create("v1", PLACE, version(0));
        for revision in 1..20 {
            let before = object.clone();
            json_patch::merge(&mut object, &all.update(PLACE, version(revision)));
            assert_ne!(object, before);
            assert_eq!(object["metadata"], before["metadata"]);
            assert_eq!(object["spec"]["ports"][0]["name"], "p", "lists are replaced as a whole");
        }
        assert_eq!(template(&["/spec/size"]).update(PLACE, version(1))["spec"].as_object().unwrap().len(), 1);
        let still = Template::new(&json!({"kind": "A", "spec": {"x": 1}}), &[]).unwrap();
        assert_eq!(still.update(PLACE, version(3)), json!({"metadata": {"annotations": {REVISION: "3"}}}));
    }

    #[test]
    fn one_of_some_values_is_any_of_them() {
        let values = [json!("a"), json!(7), json!("} ${i} \"")];
        let text = json!({"spec": {"any": one_of(&values), "in": format!("<{}>", one_of(&[json!("x"), json!(1)]))}});
        let template = Template::new(&text, &[]).unwrap();
        assert_eq!(template.vary, ["/spec/any", "/spec/in"]);
        let made: Vec<Value> = (0..40).map(|revision| template.create("v1", PLACE, version(revision))).collect();
        for value in &values {
            assert!(made.iter().any(|object| object["spec"]["any"] == *value), "{value}");
        }
        for text in ["<x>", "<1>"] {
            assert!(made.iter().any(|object| object["spec"]["in"] == text), "{text}");
        }
        let still = Template::new(&json!({"spec": {"any": one_of(&[json!(true)]), "as": plain("${i}")}}), &[]).unwrap();
        assert!(still.vary.is_empty());
        let spec = &still.create("v1", PLACE, version(0))["spec"];
        assert_eq!(*spec, json!({"any": true, "as": "${i}"}));
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        let error = |text: &str| Template::new(&json!({"spec": {"list": [text]}}), &[]).unwrap_err();
        assert!(error("${nmae}").starts_with("at `spec.list[]`: `${nmae}` is no placeholder: there are"));
        assert!(error("${random 9..1}").contains("no placeholder"));
        assert!(error("${text 99999999}").contains("no placeholder"));
        assert!(error("a ${name").contains("has no end"));
        for text in ["${one of a, b}", "${one of []}", "${one of [1]"] {
            assert!(error(text).contains("write values as JSON does"), "{text}");
        }
        let vary = Template::new(&json!({"spec": {}}), &["/spec/replicas".to_owned()]).unwrap_err();
        assert!(vary.starts_with("has nothing at `/spec/replicas`"), "{vary}");
    }
}

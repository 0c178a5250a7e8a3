//! Templates that answer a refusal: an object was refused because of one field, and each template here has something
//! else there. Pure: no I/O.
//!
//! The templates are guesses. A webhook knows more than a definition, and its message names the field, and often the
//! form that the field must have. The API server decides which template is valid.

use serde_json::{Map, Value, json};

use super::generate::{SCHEMA, VARIANTS, names, value};
use super::template::plain;

/// Maximum number of values that a message names and that are tried.
const NAMED: usize = 6;
/// Maximum length of a value that a message names.
const NAMED_CHARS: usize = 120;
/// Words in messages, and texts of the form that they ask for.
const FORMS: [(&[&str], &[&str]); 14] = [
    (&["semantic version", "semver", "version"], &["v1.30.0", "1.30.0", "v1"]),
    (&["duration"], &["10s"]),
    (&["cidr"], &["10.0.0.0/24"]),
    (&["ip address", "ipv4", " ip"], &["192.0.2.1"]),
    (&["url", "uri", "scheme"], &["https://example.com"]),
    (&["cron", "schedule"], &["*/5 * * * *"]),
    (&["quantity", "quantities"], &["100Mi", "1"]),
    (&["percent"], &["10%"]),
    (&["host", "subdomain", "domain", "fqdn"], &["example.com"]),
    (&["location", "field", "json path", "jsonpath"], &["spec.example", "metadata.labels.example", "$.spec.example"]),
    (&["label", "dns", "rfc 1123", "qualified name"], &["example"]),
    (&["path", "directory"], &["/example"]),
    (&["email"], &["a@example.com"]),
    (&["pem", "certificate"], &[""]),
];
/// Texts that are tried in any case: words that are no random letters and digits.
const USUAL: [&str; 2] = ["example", "spec.example"];
const NUMBERS: [i64; 4] = [1, 0, 3, 2];

/// The part of a refusal that is about one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause<'a> {
    /// The path of the field, such as `spec.sources[0]`.
    pub field: &'a str,
    /// The message about the field.
    pub why: &'a str,
}

/// Templates that differ from a refused one at the field of a cause, the most likely first. An optional field is left
/// out, another value takes its place, or, for an object, one of its optional fields is added. Empty if the schema has
/// no such field.
pub fn alternatives(crd: &Value, version: &str, template: &Value, cause: &Cause<'_>) -> Vec<Value> {
    let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    let found = versions.into_iter().find(|one| one["name"] == version);
    let Some(mut schema) = found.and_then(|version| version.pointer(SCHEMA)) else { return Vec::new() };
    let (mut pointer, mut parent, mut last) = (String::new(), schema, "");
    for part in cause.field.split(['.', '[']).map(|part| part.trim_end_matches(']')).filter(|part| !part.is_empty()) {
        let is_item = part.bytes().all(|byte| byte.is_ascii_digit());
        (parent, last) = (schema, part);
        schema = if is_item { &schema["items"] } else { &schema["properties"][part] };
        pointer = format!("{pointer}/{}", part.replace('~', "~0").replace('/', "~1"));
    }
    if schema.is_null() {
        return Vec::new();
    }
    let is_optional = parent["properties"].get(last).is_some() && !names(&parent["required"]).contains(&last);
    let mut all = Vec::new();
    if is_optional && pointer != "/spec" {
        all.extend(without(template, &pointer));
    }
    let values = if schema["type"] == "object" { one_of_each(schema) } else { plain_values(schema, cause) };
    all.extend(values.into_iter().filter_map(|part| put(template, &pointer, part)));
    all
}

/// The object of a schema with its required fields and one optional field, a different one in each value.
fn one_of_each(schema: &Value) -> Vec<Value> {
    let required = names(&schema["required"]);
    let least = required.iter().map(|name| Some((*name, value(&schema["properties"][*name], name, 1).ok()?)));
    let Some(least) = least.collect::<Option<Vec<_>>>() else { return Vec::new() };
    let least: Map<String, Value> = least.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let optional = schema["properties"].as_object().into_iter().flatten();
    let optional = optional.filter(|(name, _)| !required.contains(&name.as_str())).take(VARIANTS);
    let with = optional.filter_map(|(name, property)| {
        let mut one = least.clone();
        one.insert(name.clone(), value(property, name, 1).ok()?);
        Some(Value::Object(one))
    });
    with.collect()
}

/// Values for a field that is no object: those that the message names, those of the form that it asks for, and usual
/// ones.
fn plain_values(schema: &Value, cause: &Cause<'_>) -> Vec<Value> {
    let own = value(schema, cause.field, 1).ok();
    let values: Vec<Value> = match schema["type"].as_str() {
        Some("string") => {
            let lower = cause.why.to_lowercase();
            let is_asked = |words: &[&str]| words.iter().any(|word| lower.contains(word));
            let of_form =
                FORMS.iter().filter(|(words, _)| is_asked(words)).flat_map(|(_, texts)| texts.iter().copied());
            let texts = quoted(cause.why).into_iter().take(NAMED).chain(of_form).chain(USUAL);
            let allowed = |text: &&str| schema["enum"].as_array().is_none_or(|all| all.iter().any(|one| one == text));
            let first = own.into_iter().filter(|_| cause.why.contains("Required"));
            first.chain(texts.filter(allowed).map(|text| json!(plain(text)))).collect()
        }
        Some("integer" | "number") => {
            let named = cause.why.split(|c: char| !c.is_ascii_digit() && c != '-').filter_map(|text| text.parse().ok());
            let mut all: Vec<i64> = named.take(NAMED).chain(NUMBERS).collect();
            let mut seen = std::collections::BTreeSet::new();
            all.retain(|number| seen.insert(*number));
            all.into_iter().map(Value::from).collect()
        }
        Some("boolean") => vec![json!(false), json!(true)],
        _ => own.into_iter().collect(),
    };
    let mut all: Vec<Value> = Vec::new();
    for value in values {
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all
}

/// The texts in quotes in a message.
fn quoted(why: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for quote in ['"', '`', '\''] {
        found.extend(why.split(quote).skip(1).step_by(2));
    }
    found.retain(|text| !text.is_empty() && text.len() <= NAMED_CHARS && !text.contains(char::is_whitespace));
    found
}

/// The paths of the texts in an object that a message has in quotes. A webhook may name a value and no field.
pub fn fields_named(object: &Value, why: &str) -> Vec<String> {
    let mut found = Vec::new();
    let values = quoted(why);
    if !values.is_empty() {
        named_in(&object["spec"], "spec", &values, &mut found);
    }
    found
}

fn named_in(value: &Value, at: &str, values: &[&str], found: &mut Vec<String>) {
    match value {
        Value::Object(parts) => {
            parts.iter().for_each(|(key, part)| named_in(part, &format!("{at}.{key}"), values, found));
        }
        Value::Array(items) => {
            (0..)
                .zip(items)
                .for_each(|(index, item): (usize, _)| named_in(item, &format!("{at}[{index}]"), values, found));
        }
        Value::String(text) if values.contains(&text.as_str()) => found.push(at.to_owned()),
        _ => {}
    }
}

/// The template without the value at a JSON pointer; `None` if there is none.
fn without(template: &Value, pointer: &str) -> Option<Value> {
    let mut whole = template.clone();
    let (parent, name) = pointer.rsplit_once('/')?;
    whole.pointer_mut(parent)?.as_object_mut()?.remove(&name.replace("~1", "/").replace("~0", "~"))?;
    Some(whole)
}

/// The template with another value at a JSON pointer. Objects on the way that are absent are added.
fn put(template: &Value, pointer: &str, value: Value) -> Option<Value> {
    let mut whole = template.clone();
    let mut place = &mut whole;
    for part in pointer.split('/').skip(1) {
        let name = part.replace("~1", "/").replace("~0", "~");
        place = match place {
            Value::Array(items) => items.get_mut(name.parse::<usize>().ok()?)?,
            Value::Object(parts) => parts.entry(name).or_insert_with(|| json!({})),
            _ => return None,
        };
    }
    *place = value;
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd(spec: &Value) -> Value {
        json!({"spec": {"versions": [
            {"name": "v1", "served": true, "schema": {"openAPIV3Schema": {"properties": {"spec": spec}}}}]}})
    }

    fn cause<'a>(field: &'a str, why: &'a str) -> Cause<'a> {
        Cause { field, why }
    }

    fn shop() -> Value {
        let source = json!({"type": "object", "properties": {
            "inLine": {"type": "string", "maxLength": 1},
            "usesDefaults": {"type": "boolean"},
            "secret": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "maxLength": 2}}},
        }});
        crd(&json!({"type": "object", "required": ["sources", "version"], "properties": {
            "sources": {"type": "array", "minItems": 1, "items": source},
            "note": {"type": "string", "maxLength": 1},
            "version": {"type": "string"},
            "size": {"type": "integer"},
            "mode": {"type": "string", "enum": ["fast", "safe"]},
        }}))
    }

    fn specs(template: &Value, field: &str, why: &str) -> Vec<Value> {
        let made = alternatives(&shop(), "v1", template, &cause(field, why));
        made.into_iter().map(|mut one| one["spec"].take()).collect()
    }

    #[test]
    fn an_object_gets_one_optional_field_in_each_template() {
        let refused = json!({"kind": "Shop", "spec": {"sources": [{}]}});
        let made = specs(&refused, "spec.sources[0]", "exactly one of the fields");
        let sources: Vec<Value> = made.into_iter().map(|one| one["sources"][0].clone()).collect();
        assert_eq!(
            sources,
            [json!({"inLine": "${text 1}"}), json!({"secret": {"name": "${text 2}"}}), json!({"usesDefaults": true})]
        );
        let with = specs(&refused, "spec.note", "Required value");
        assert_eq!(with[0], json!({"sources": [{}], "note": "${text 1}"}));
        assert_eq!(specs(&refused, "spec.other", ""), Vec::<Value>::new());
        assert_eq!(specs(&refused, "spec.sources[7]", ""), Vec::<Value>::new());
    }

    #[test]
    fn a_field_gets_the_form_that_the_message_asks_for() {
        let refused = json!({"kind": "Shop", "spec": {"version": "vgtptgj", "note": "x", "size": 2, "mode": "fast"}});
        let made = specs(&refused, "spec.version", "Invalid value: \"vgtptgj\": must be a valid semantic version");
        assert!(made.iter().any(|spec| spec["version"] == "v1.30.0"), "{made:?}");
        assert!(made.iter().all(|spec| spec["version"].is_string()), "it is required");
        let optional = specs(&refused, "spec.note", "Forbidden: only with the gate");
        assert_eq!(optional[0].get("note"), None, "an optional field is left out first");
        let listed = specs(&refused, "spec.mode", "Unsupported value: \"fast\": supported values: \"safe\", \"other\"");
        assert_eq!(listed.iter().map(|spec| spec["mode"].clone()).collect::<Vec<_>>()[2..], [json!("safe")]);
        let odd = specs(&refused, "spec.size", "Forbidden: cannot be even, 5 would be fine");
        assert_eq!(odd[1]["size"], 5);
    }

    #[test]
    fn a_value_in_the_message_leads_to_its_field() {
        let object = json!({"spec": {"location": "924fng", "list": [{"a": "x"}], "other": "924"}});
        let why = "invalid location format `924fng` for Shop a: unexpected token INT: \"924\"";
        assert_eq!(fields_named(&object, why), ["spec.location", "spec.other"]);
        assert!(fields_named(&object, "no").is_empty());
        let crd =
            crd(&json!({"type": "object", "required": ["location"], "properties": {"location": {"type": "string"}}}));
        let template = json!({"spec": {"location": "${text 6}"}});
        let made = alternatives(&crd, "v1", &template, &cause("spec.location", why));
        assert!(made.iter().any(|one| one["spec"]["location"] == "spec.example"), "{made:?}");
    }

    #[test]
    fn absent_parents_are_added() {
        let deep = crd(&json!({"type": "object", "properties": {"a": {"type": "object", "properties": {
            "b": {"type": "object", "properties": {"c": {"type": "integer"}}}}}}}));
        let made = alternatives(&deep, "v1", &json!({"spec": {}}), &cause("spec.a.b.c", "Required value"));
        assert_eq!(made[0], json!({"spec": {"a": {"b": {"c": 1}}}}));
    }
}

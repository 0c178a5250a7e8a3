//! Small changes of one object: missing, empty, odd and huge fields, other values of the schema, other spellings of
//! images, further containers, and keys that a rule may forbid.
//!
//! A change may break the schema; the API server decides that later. Does no I/O.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::place::{self, Place};

/// Keys and values that rules are often about. A hunt has no other way to find a rule than to break it.
const WORDS: [&str; 36] = [
    "port",
    "host",
    "name",
    "image",
    "version",
    "user",
    "password",
    "path",
    "url",
    "mode",
    "type",
    "namespace",
    "token",
    "secret",
    "dir",
    "bind",
    "debug",
    "level",
    "timeout",
    "memory",
    "cpu",
    "size",
    "replicas",
    "storage",
    "class",
    "enabled",
    "config",
    "tls",
    "cert",
    "key",
    "role",
    "admin",
    "root",
    "privileged",
    "latest",
    "default",
];
/// Number of words that are tried as values of one text.
const VALUES: [&str; 5] = ["latest", "root", "admin", "default", "kube-system"];
/// Length of a huge text, in bytes.
const HUGE: usize = 4096;
/// Number of items of a huge list.
const MANY: usize = 64;
/// The longest name of most objects.
const NAME_MAX: usize = 63;
const DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

/// The kinds of changes, in the order in which a small corpus takes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    Key,
    Missing,
    Container,
    Image,
    Schema,
    Empty,
    Metadata,
    Value,
    Odd,
    Huge,
}

/// A changed object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mutation {
    pub(super) class: Class,
    /// The change: `without spec.image`.
    pub(super) about: String,
    pub(super) object: Value,
}

/// All changes of an object, in the order of their classes. `schema` is the schema of its kind, if there is one.
pub(super) fn mutations(object: &Value, schema: Option<&Value>) -> Vec<Mutation> {
    let mut all = Changes { object, made: BTreeMap::new() };
    all.keys(schema);
    for place in place::contents(object) {
        let Some(value) = place.get(object) else { continue };
        all.of_field(&place, value);
        if let Some(schema) = schema.and_then(|schema| place.schema(schema)) {
            all.of_schema(&place, value, schema);
        }
    }
    if let Some(schema) = schema {
        all.absent(schema);
    }
    all.containers();
    all.metadata();
    all.made.into_values().flatten().collect()
}

struct Changes<'a> {
    object: &'a Value,
    made: BTreeMap<Class, Vec<Mutation>>,
}

impl Changes<'_> {
    fn add(&mut self, class: Class, about: String, object: Option<Value>) {
        let known = self.made.entry(class).or_default();
        if let Some(object) = object.filter(|object| object != self.object)
            && known.iter().all(|one| one.object != object)
        {
            known.push(Mutation { class, about, object });
        }
    }

    fn set(&mut self, class: Class, place: &Place, about: &str, value: Value) {
        let changed = place.set(self.object, value);
        self.add(class, format!("{} {about}", place.describe()), changed);
    }

    /// Further keys of each map whose keys are free.
    fn keys(&mut self, schema: Option<&Value>) {
        let mut maps: Vec<(Place, Value)> = Vec::new();
        for (place, schema) in schema.map(place::of_schema).unwrap_or_default() {
            let values = &schema["additionalProperties"];
            if values.is_object() {
                maps.push((place, sample(values)));
            }
        }
        if self.object["data"].is_object() {
            maps.push((Place::of(&["data"]), json!("1")));
        }
        for word in WORDS {
            for (map, value) in &maps {
                if map.get(self.object).is_none_or(|known| known.get(word).is_none()) {
                    let changed = map.below(word).set(self.object, value.clone());
                    self.add(Class::Key, format!("{} with the key {word}", map.describe()), changed);
                }
            }
        }
    }

    fn of_field(&mut self, place: &Place, value: &Value) {
        let without = place.remove(self.object);
        self.add(Class::Missing, format!("without {}", place.describe()), without);
        match value {
            Value::String(text) => {
                self.set(Class::Empty, place, "is empty", json!(""));
                if place.last() == "image" {
                    self.images(place, text);
                }
                for word in VALUES {
                    self.set(Class::Value, place, &format!("is {word}"), json!(word));
                }
                self.set(Class::Odd, place, "is upper case", json!(text.to_uppercase()));
                self.set(Class::Odd, place, "has spaces around it", json!(format!(" {text} ")));
                self.set(Class::Odd, place, "has other letters and a line break", json!(format!("{text}é漢\n\"'")));
                self.set(Class::Huge, place, "is 4 KiB long", json!("a".repeat(HUGE)));
            }
            Value::Number(_) => {
                for number in [json!(0), json!(-1), json!(1), json!(i32::MAX)] {
                    self.set(Class::Odd, place, &format!("is {number}"), number.clone());
                }
                self.set(Class::Huge, place, "is the largest number", json!(i64::MAX));
            }
            Value::Bool(on) => self.set(Class::Value, place, &format!("is {}", !on), json!(!on)),
            Value::Array(items) => {
                self.set(Class::Empty, place, "is empty", json!([]));
                if let Some(first) = items.first() {
                    let mut twice = items.clone();
                    twice.push(first.clone());
                    self.set(Class::Odd, place, "has its first item twice", Value::Array(twice));
                    let many: Vec<Value> = (0..MANY).map(|number| renamed(first, number)).collect();
                    self.set(Class::Huge, place, &format!("has {MANY} items"), Value::Array(many));
                    let mut back = items.clone();
                    back.reverse();
                    self.set(Class::Odd, place, "is in the other order", Value::Array(back));
                }
            }
            Value::Object(_) => self.set(Class::Empty, place, "is empty", json!({})),
            Value::Null => {}
        }
    }

    /// Other spellings of an image. All of them stay at the image's own registry, so that no webhook calls another one.
    fn images(&mut self, place: &Place, image: &str) {
        let (name, _) = image.split_once('@').unwrap_or((image, ""));
        let is_tag = |tag: &&str| !tag.contains('/');
        let bare = name.rsplit_once(':').filter(|(_, tag)| is_tag(tag)).map_or(name, |(bare, _)| bare);
        let mut spellings = vec![
            bare.to_owned(),
            format!("{bare}:latest"),
            format!("{bare}:none"),
            format!("{bare}@{DIGEST}"),
            format!("{name}@{DIGEST}"),
            format!("{}:1", bare.to_uppercase()),
        ];
        let is_host = |first: &&str| first.contains(['.', ':']) || *first == "localhost";
        if let Some((host, path)) = bare.split_once('/').filter(|(first, _)| is_host(first)) {
            spellings.push(format!("{host}/none/{path}"));
        } else {
            // These name the same image.
            let library = if bare.contains('/') { String::new() } else { "library/".to_owned() };
            spellings.push(format!("docker.io/{library}{name}"));
            spellings.push(format!("index.docker.io/{library}{name}"));
        }
        for spelling in spellings {
            self.set(Class::Image, place, &format!("is {spelling}"), json!(spelling));
        }
    }

    /// Other values that the schema of a field names.
    fn of_schema(&mut self, place: &Place, value: &Value, schema: &Value) {
        for other in schema["enum"].as_array().into_iter().flatten().filter(|other| *other != value) {
            self.set(Class::Schema, place, &format!("is {other}"), other.clone());
        }
        for bound in ["minimum", "maximum"] {
            if let Some(bound) = schema[bound].as_i64() {
                self.set(Class::Schema, place, &format!("is {bound}"), json!(bound));
            }
        }
        if let Some(most) = schema["maxLength"].as_u64().and_then(|most| usize::try_from(most).ok()) {
            let text = "a".repeat(most.min(HUGE));
            self.set(Class::Schema, place, "is as long as the schema allows", json!(text));
        }
    }

    /// Optional fields that the object does not have.
    fn absent(&mut self, schema: &Value) {
        for (place, schema) in place::of_schema(schema) {
            if place.get(self.object).is_none() {
                self.set(Class::Schema, &place, "is added", sample(schema));
            }
        }
    }

    /// Further containers of a Pod, wherever the object has its containers.
    fn containers(&mut self) {
        let lists: Vec<Place> =
            place::contents(self.object).into_iter().filter(|place| place.last() == "containers").collect();
        for list in lists {
            let Some(first) = list.get(self.object).and_then(|items| items.get(0)).cloned() else { continue };
            let Some(spec) = list.parent() else { continue };
            let named = |name: &str| {
                let mut other = first.clone();
                other["name"] = name.into();
                other
            };
            let both = json!([first, named("sidecar")]);
            self.set(Class::Container, &list, "has a sidecar", both);
            self.set(Class::Container, &spec.below("initContainers"), "has one", json!([named("init")]));
            let mut stays = named("init");
            stays["restartPolicy"] = "Always".into();
            self.set(Class::Container, &spec.below("initContainers"), "has a sidecar", json!([stays]));
            let first = list.below("0");
            for (key, value) in [
                ("securityContext", json!({"privileged": true})),
                ("securityContext", json!({"runAsUser": 0})),
                ("imagePullPolicy", json!("Always")),
                ("resources", json!({"limits": {"cpu": "1", "memory": "1Gi"}})),
            ] {
                self.set(Class::Container, &first.below(key), &format!("is {value}"), value.clone());
            }
            for key in ["hostNetwork", "hostPID"] {
                self.set(Class::Container, &spec.below(key), "is true", json!(true));
            }
            let volume = json!([{"name": "host", "hostPath": {"path": "/"}}]);
            self.set(Class::Container, &spec.below("volumes"), "has a path of the host", volume);
        }
    }

    fn metadata(&mut self) {
        let at = |key: &str| Place::of(&["metadata", key]);
        let name = self.object["metadata"]["name"].as_str().unwrap_or("a").to_owned();
        self.set(Class::Metadata, &at("labels"), "is empty", json!({}));
        for word in ["app", "owner", "team", "env"] {
            self.set(Class::Metadata, &at("labels").below(word), "is added", json!(word));
        }
        self.set(Class::Metadata, &at("annotations").below("example.com/note"), "is added", json!("a note"));
        self.set(
            Class::Metadata,
            &at("annotations").below("example.com/note"),
            "is 4 KiB long",
            json!("a".repeat(HUGE)),
        );
        self.set(Class::Metadata, &at("finalizers"), "has one", json!(["example.com/longhaul"]));
        let long = format!("{name}-{}", "a".repeat(NAME_MAX)).chars().take(NAME_MAX).collect::<String>();
        self.set(Class::Metadata, &at("name"), "is as long as it may be", json!(long));
        let generated = at("name").remove(self.object);
        let generated = generated.and_then(|object| at("generateName").set(&object, json!(format!("{name}-"))));
        self.add(Class::Metadata, "with a generated name".to_owned(), generated);
    }
}

/// An item of a list under another name, because names of items are often unique.
fn renamed(item: &Value, number: usize) -> Value {
    let mut item = item.clone();
    if let Some(name) = item["name"].as_str().map(|name| format!("{name}-{number}")) {
        item["name"] = name.into();
    }
    item
}

/// A plain value of a schema.
fn sample(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|values| values.first()) {
        return first.clone();
    }
    if !schema["default"].is_null() {
        return schema["default"].clone();
    }
    match schema["type"].as_str() {
        Some("string") => json!("1"),
        Some("integer" | "number") => schema["minimum"].as_i64().map_or(json!(1), |least| json!(least)),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        _ if schema["x-kubernetes-int-or-string"] == true => json!(1),
        _ => json!({}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn abouts(object: &Value, schema: Option<&Value>, class: Class) -> Vec<String> {
        let all = mutations(object, schema).into_iter();
        all.filter(|one| one.class == class).map(|one| one.about).collect()
    }

    #[test]
    fn a_free_map_gets_keys_that_a_rule_may_forbid() {
        let schema =
            json!({"properties": {"spec": {"properties": {"settings": {"additionalProperties": {"type": "string"}}}}}});
        let object = json!({"kind": "Cache", "spec": {"settings": {"name": "a"}}});
        let keys = abouts(&object, Some(&schema), Class::Key);
        assert_eq!(keys[0], "spec.settings with the key port");
        assert_eq!(keys.len(), WORDS.len() - 1, "a key that is there is no change");
        let first = mutations(&object, Some(&schema)).remove(0);
        assert_eq!(first.object["spec"]["settings"], json!({"name": "a", "port": "1"}));
    }

    #[test]
    fn every_field_is_missing_empty_odd_and_huge_once() {
        let object = json!({"kind": "Cache", "metadata": {"name": "a"}, "spec": {"mode": "x", "size": 3, "on": true}});
        assert_eq!(
            abouts(&object, None, Class::Missing),
            ["without spec", "without spec.mode", "without spec.on", "without spec.size"]
        );
        assert_eq!(abouts(&object, None, Class::Empty), ["spec is empty", "spec.mode is empty"]);
        assert!(abouts(&object, None, Class::Odd).contains(&"spec.size is -1".to_owned()));
        assert_eq!(abouts(&object, None, Class::Huge).len(), 2);
        assert!(abouts(&object, None, Class::Metadata).contains(&"with a generated name".to_owned()));
    }

    #[test]
    fn a_schema_gives_other_values_and_absent_fields() {
        let schema = json!({"properties": {"spec": {"properties": {
            "mode": {"type": "string", "enum": ["x", "y"]}, "size": {"type": "integer", "minimum": 2, "maximum": 9}, "on": {"type": "boolean"}}}}});
        let object = json!({"spec": {"mode": "x", "size": 3}});
        let told = abouts(&object, Some(&schema), Class::Schema);
        assert_eq!(told, ["spec.mode is \"y\"", "spec.size is 2", "spec.size is 9", "spec.on is added"]);
    }

    #[test]
    fn images_and_containers_of_a_pod_vary() {
        let object =
            json!({"kind": "Pod", "spec": {"containers": [{"name": "a", "image": "r.example.com/x/app:1@sha256:00"}]}});
        let images = abouts(&object, None, Class::Image);
        assert!(images.contains(&"spec.containers[0].image is r.example.com/x/app".to_owned()), "{images:?}");
        let elsewhere = |about: &String| !about.to_lowercase().contains("is r.example.com/");
        assert!(!images.iter().any(elsewhere), "{images:?}");
        let short = json!({"kind": "Pod", "spec": {"containers": [{"name": "a", "image": "app:1"}]}});
        let images = abouts(&short, None, Class::Image);
        assert!(images.contains(&"spec.containers[0].image is docker.io/library/app:1".to_owned()), "{images:?}");
        let containers = abouts(&object, None, Class::Container);
        assert!(containers.iter().any(|about| about.starts_with("spec.initContainers has one")), "{containers:?}");
        let deployment = json!({"kind": "Deployment", "spec": {"template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}}});
        assert!(abouts(&deployment, None, Class::Container).contains(&"spec.template.spec.hostPID is true".to_owned()));
    }
}

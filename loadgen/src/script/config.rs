//! The section of a scenario for a script, with the checks of its values before the run starts.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use units::{Bytes, Span};

use super::{Error, Names};
use crate::churn::Scope;
use crate::churn::config::Look;
use crate::churn::resource::Resource;
use crate::churn::template::Template;

/// Maximum number of objects before the subject starts, and of writes of one step. More objects or writes would take
/// longer than a short run.
pub const OBJECTS_MAX: u32 = 100_000;
/// The largest size of an object in bytes; Kubernetes refuses `ConfigMap`s above 1 MiB.
const SIZE_MAX: u64 = 1 << 20;
/// The largest annotation with a payload in bytes. Kubernetes allows 256 KiB of annotations, of which other annotations
/// use some.
const ANNOTATION_MAX: u64 = 250 << 10;
/// The default namespace of objects, which every cluster has.
const NAMESPACE: &str = "default";

/// The scripted writes of a scenario.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// The resource to write: `packages.longhaul.dev/v1alpha1`, `configmaps/v1`, `secrets/v1` or `deployments.apps/v1`.
    /// Any other served resource needs a `template`, or a definition under `controlPlane.manifests` from which a
    /// template is made.
    pub resource: String,
    /// The contents of the objects, as in `churn.template`. `${revision}` is the number of the write. The annotation
    /// `longhaul.dev/payload` gets that number and the step's `text` and `size`, so that every write makes a new
    /// version.
    pub template: Option<Value>,
    /// JSON pointers of the fields that an update changes, as in `churn.vary`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vary: Vec<String>,
    /// Whether the objects are in namespaces. Default: as in the definition under `controlPlane.manifests`, or else
    /// `Namespaced`.
    pub scope: Option<Scope>,
    /// The namespace of all objects, which is created if it does not exist. Default: `default`.
    #[serde(default = "default_namespace")]
    pub namespace: String,
    /// Additional objects that exist before all others, as in `churn.with`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<Value>,
    /// Objects that exist before the subject starts.
    #[serde(default)]
    pub objects: Vec<String>,
    /// The number of additional small objects, named `p00000`, `p00001` and so on.
    #[serde(default)]
    pub objects_many: u32,
    /// The labels of these additional objects, for `deleteCollection`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The writes and their times. Steps with the same time run in the order of the file.
    #[serde(default)]
    pub steps: Vec<Step>,
}

/// One step of a script: its time, and exactly one of `create`, `update`, `delete`, `recreate`, `deleteCollection`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Step {
    /// The time of the step, counted from the start of the warm-up.
    pub at: Option<Span>,
    /// Instead of `at`: the step follows the first hit of a fault.
    pub when: Option<When>,
    /// Creates the objects with these names. With `times` each name is used that often with a number after it:
    /// `noise-1`, `noise-2`, …
    pub create: Option<Names>,
    /// Changes the contents of the objects with these names.
    pub update: Option<Names>,
    /// Deletes the objects with these names.
    pub delete: Option<Names>,
    /// Deletes these objects and creates them again at once: same name, new uid.
    pub recreate: Option<Names>,
    /// Deletes all objects of the namespace that have certain labels, in one request.
    pub delete_collection: Option<Collection>,
    /// How often the step is done. Default: once.
    pub times: Option<u32>,
    /// The time between two repetitions. Default: none.
    pub every: Option<Span>,
    /// A text in the objects, with any Unicode characters.
    pub text: Option<String>,
    /// The size of the contents, at most `1MiB`. Default: a few bytes.
    pub size: Option<Bytes>,
    /// A merge patch (RFC 7386) of the objects' contents, such as `{spec: {replicas: 0}}`.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub set: Map<String, Value>,
    /// Labels that the objects of the step get, for `deleteCollection`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Another resource than the script's, if it needs no template. Only resources that the subject watches are judged;
    /// writes of other resources only raise the revision.
    pub resource: Option<String>,
}

/// The first hit of a fault, and a time after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct When {
    /// The `id` of the fault.
    pub hit: String,
    /// The time after the hit. Default: at once.
    #[serde(default)]
    pub plus: Span,
}

/// The objects with certain labels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Collection {
    /// A label selector, such as `burst=yes` or `burst in (a, b)`.
    pub selector: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Create,
    Update,
    Delete,
    /// Deletes objects and creates them again.
    Recreate,
    /// Deletes objects by their labels.
    DeleteCollection,
}

impl Verb {
    /// The name of the verb in a scenario.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Recreate => "recreate",
            Self::DeleteCollection => "deleteCollection",
        }
    }
}

impl Step {
    /// The only verb of the step with its objects, which `deleteCollection` does not name. `None` if the step has no
    /// verb or several.
    pub fn verb(&self) -> Option<(Verb, &[String])> {
        let mut given = self.verbs();
        let only = given.pop()?;
        given.is_empty().then_some(only)
    }

    /// How often each object is written.
    pub fn times(&self) -> u32 {
        self.times.unwrap_or(1)
    }

    fn check(&self, key: &dyn Fn(&str) -> String, known: &BTreeSet<String>) -> Result<(), Error> {
        let Some((verb, names)) = self.verb() else {
            let given: Vec<_> = self.verbs().iter().map(|(verb, _)| format!("`{}`", verb.as_str())).collect();
            if given.is_empty() {
                return refuse(
                    key(""),
                    "does nothing: write one of `create`, `update`, `delete`, `recreate`, `deleteCollection`",
                );
            }
            return refuse(key(""), format!("has {}: write a step of its own for each", given.join(" and ")));
        };
        match (&self.at, &self.when) {
            (Some(_), Some(_)) => return refuse(key(""), "has both `at` and `when`: keep one"),
            (None, None) => return refuse(key(""), "has no time: write `at: 3s` or `when: {hit: ID}`"),
            _ => {}
        }
        if let Some(collection) = &self.delete_collection {
            return self.check_collection(key, collection);
        }
        if names.is_empty() {
            return refuse(key(&format!(".{}", verb.as_str())), "names no object");
        }
        labels(&key(".labels"), &self.labels)?;
        for object in names {
            name(&key(&format!(".{}", verb.as_str())), object)?;
            if verb != Verb::Create && !known.contains(object) {
                return refuse(key(&format!(".{}", verb.as_str())), unknown(object, known));
            }
        }
        let writes = u64::from(self.times()) * names.len() as u64;
        if writes == 0 || writes > u64::from(OBJECTS_MAX) {
            return refuse(key(".times"), format!("makes {writes} writes: write 1 to {OBJECTS_MAX}"));
        }
        if verb == Verb::Delete && self.times() > 1 {
            return refuse(key(".times"), "an object can be deleted once: leave it out");
        }
        if verb == Verb::Delete && self.has_content() {
            return refuse(key(""), "`text`, `size`, `set` and `labels` have no meaning for `delete`");
        }
        if self.size.is_some_and(|size| size.0 > SIZE_MAX) {
            return refuse(key(".size"), "Kubernetes refuses such objects: write at most `1MiB`");
        }
        self.resource.as_deref().map_or(Ok(()), |text| resource(&key(".resource"), text))
    }

    fn check_collection(&self, key: &dyn Fn(&str) -> String, collection: &Collection) -> Result<(), Error> {
        // An empty selector would select objects of other programs in the namespace.
        if collection.selector.trim().is_empty() || !collection.selector.is_ascii() {
            let given = &collection.selector;
            return refuse(
                key(".deleteCollection.selector"),
                format!("`{given}` selects nothing for certain: give the objects `labels` and write `burst=yes`"),
            );
        }
        if self.times() > 1 || self.has_content() {
            return refuse(
                key(""),
                "`times`, `text`, `size`, `set` and `labels` have no meaning for `deleteCollection`",
            );
        }
        self.resource.as_deref().map_or(Ok(()), |text| resource(&key(".resource"), text))
    }

    fn has_content(&self) -> bool {
        self.text.is_some() || self.size.is_some() || !self.labels.is_empty() || !self.set.is_empty()
    }

    fn verbs(&self) -> Vec<(Verb, &[String])> {
        let collection = self.delete_collection.as_ref().map(|_| (Verb::DeleteCollection, &[][..]));
        [
            (Verb::Create, &self.create),
            (Verb::Update, &self.update),
            (Verb::Delete, &self.delete),
            (Verb::Recreate, &self.recreate),
        ]
        .into_iter()
        .filter_map(|(verb, names)| names.as_ref().map(|names| (verb, names.0.as_slice())))
        .chain(collection)
        .collect()
    }
}

impl Config {
    /// Parses the resource, and the template of its objects if the resource has no built-in contents.
    pub(super) fn read(&self) -> Result<(Resource, Option<Template>), Error> {
        let Self { resource, template, vary, scope, .. } = self;
        let look = Look { resource, template: template.as_ref(), samples: &[], vary, scope: *scope };
        match look.read(None) {
            Ok((resource, content)) => Ok((resource, content.templates.into_iter().next())),
            Err(crate::churn::Error::Config { key, problem }) => {
                Err(Error::Config { key: key.to_owned(), problem: problem.replace("churned", "written") })
            }
            Err(other) => Err(other.into()),
        }
    }

    /// Refuses settings that cannot work; the error names the key and says what to write instead.
    pub fn check(&self) -> Result<(), Error> {
        let (_, template) = self.read()?;
        let is_large = |step: &Step| step.size.is_some_and(|size| size.0 > ANNOTATION_MAX);
        if let Some(index) = self.steps.iter().position(|step| template.is_some() && is_large(step)) {
            let problem = "annotations have at most 256 KiB: write `${text 1000000}` where the template is to be large";
            return refuse(format!("steps[{}].size", index + 1), problem);
        }
        name("namespace", &self.namespace)?;
        if self.objects_many > OBJECTS_MAX {
            return refuse("objectsMany", format!("is {}: write at most {OBJECTS_MAX}", self.objects_many));
        }
        for object in &self.objects {
            name("objects", object)?;
        }
        if let Some(problem) = self.with.iter().find_map(crate::churn::companions::problem) {
            return refuse("with", problem);
        }
        labels("labels", &self.labels)?;
        let known = self.names();
        for (index, step) in self.steps.iter().enumerate() {
            let key = |key: &str| format!("steps[{}]{key}", index + 1);
            step.check(&key, &known)?;
        }
        Ok(())
    }

    /// Every name that an object has at some time.
    fn names(&self) -> BTreeSet<String> {
        let mut names: BTreeSet<String> = self.objects.iter().cloned().collect();
        names.extend((0..self.objects_many).map(many));
        for step in &self.steps {
            let Some((Verb::Create, made)) = step.verb() else { continue };
            for name in made {
                match step.times() {
                    1 => _ = names.insert(name.clone()),
                    times => names.extend((0..times.min(OBJECTS_MAX)).map(|index| numbered(name, index))),
                }
            }
        }
        names
    }
}

/// The name of object number `index` of `objectsMany`.
pub(super) fn many(index: u32) -> String {
    format!("p{index:05}")
}

/// The name that repetition number `index` of a create uses.
pub(super) fn numbered(name: &str, index: u32) -> String {
    format!("{name}-{}", index + 1)
}

fn resource(key: &str, text: &str) -> Result<(), Error> {
    match Resource::parse(text) {
        Ok(_) => Ok(()),
        Err(crate::churn::Error::Config { problem, .. }) => refuse(key, problem.replace("churned", "written")),
        Err(other) => Err(other.into()),
    }
}

/// Checks a DNS label, which every kind accepts as a name (Kubernetes documentation, "Object Names and IDs").
fn name(key: &str, text: &str) -> Result<(), Error> {
    let fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let edges = !text.starts_with('-') && !text.ends_with('-');
    if text.is_empty() || text.len() > 63 || !edges || !text.bytes().all(fine) {
        return refuse(key, format!("`{text}`: a name has 1 to 63 lower-case letters, digits and `-`"));
    }
    Ok(())
}

/// Checks keys and values of labels (Kubernetes documentation, "Labels and Selectors"). The server checks further rules
/// for labels.
fn labels(key: &str, labels: &BTreeMap<String, String>) -> Result<(), Error> {
    let fine = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte));
    match labels.iter().find(|(name, value)| name.is_empty() || !fine(name) || value.len() > 63 || !fine(value)) {
        Some((name, value)) => {
            refuse(key, format!("`{name}: {value}` is no label: write for example `burst: \"yes\"`"))
        }
        None => Ok(()),
    }
}

fn unknown(object: &str, known: &BTreeSet<String>) -> String {
    let some: Vec<&str> = known.iter().take(10).map(String::as_str).collect();
    let more = if known.len() > some.len() { ", …" } else { "" };
    if some.is_empty() {
        return format!("there is no object `{object}`: name it under `objects` or create it in a step");
    }
    format!("there is no object `{object}`: known are {}{more}", some.join(", "))
}

fn refuse(key: impl Into<String>, problem: impl Into<String>) -> Result<(), Error> {
    Err(Error::Config { key: key.into(), problem: problem.into() })
}

fn default_namespace() -> String {
    NAMESPACE.to_owned()
}

#[cfg(test)]
mod tests;

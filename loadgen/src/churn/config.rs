//! The section of a scenario for churn, with the checks of its values before the run starts.

use units::Rate;

use super::lifecycle::{Also, By, Finalizers, Propagation, Tree};
use super::objects::Content;
use super::pace::Pace;
use super::resource::{Resource, Scope};
use super::samples::{Expect, Sample};
use super::template::Template;
use super::{Error, refuse};
use crate::Size;

/// The highest rate. A mock API server accepts about this many writes a second; a higher rate is a typing error.
pub const HIGHEST_RATE: f64 = 20_000.0;
/// Maximum number of objects. Creating more objects would take longer than any run that could use them.
pub const HIGHEST_POPULATION: u32 = 200_000;

/// Object churn of a scenario.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// The resource to churn: `packages.longhaul.dev/v1alpha1`, `v1/configmaps`, `v1/secrets` or `apps/v1/deployments`.
    /// Any other served resource needs a `template`, or a definition under `controlPlane.manifests` from which a
    /// template is made.
    pub resource: String,
    /// The contents of the objects: the object itself, or a YAML file beside the scenario file. Names, namespaces and
    /// the label `longhaul.dev/churn` are added. In texts, `${i}` is the object's number, `${name}` and `${namespace}`
    /// are its name and namespace, `${revision}` is the number of the write, `${random 0..9}` a whole number, `${text
    /// 200}` this many letters, `${one of ["a", "b"]}` one of these values. A text that consists only of a number's
    /// placeholder becomes a number; `$${` is a plain `${`.
    pub template: Option<serde_json::Value>,
    /// Instead of `template`: several templates. Each object is made from one of the templates. Some templates may be
    /// objects that the webhooks of the kind must refuse (`expect: denied`). Entries are names of files, or mappings
    /// with `file` or `object`, and `expect`. If all must be refused, the other objects are made from the definition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub templates: Vec<Sample>,
    /// Additional objects: names of YAML files beside the scenario file, or objects. Each namespace gets them before
    /// its first churned object, for example a Secret that all objects refer to. A cluster-wide object, such as a
    /// class, is created once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<serde_json::Value>,
    /// JSON pointers of the fields that an update changes, such as `/spec/replicas`. Default: all fields with `${random
    /// …}`, `${revision}` or `${text …}`; if the template has none, an annotation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vary: Vec<String>,
    /// Whether the objects are in namespaces. Default: as in the definition under `controlPlane.manifests`, or else
    /// `Namespaced`.
    pub scope: Option<Scope>,
    /// The only namespace of the objects, for a program that looks at one namespace. The namespace is created if it does
    /// not exist, and never deleted. Default: several namespaces, which come and go.
    pub namespace: Option<String>,
    /// The number of objects that exist at any time.
    pub population: u32,
    /// Operations per second; `0/s` only creates the first objects. With `auto`, writes follow the subject's pace in
    /// the warm-up, which shows the rate that it sustains; the rest of the run has half of that rate. The same seed
    /// gives the same operations in the same order at any rate.
    pub rate: Pace,
    /// The relative weights of the operations.
    #[serde(default = "Mix::usual")]
    pub mix: Mix,
    /// The size of the objects. Without `size` they contain 256 bytes of filler.
    pub size: Option<Size>,
    /// A finalizer that some objects have. The finalizer is removed some time after the deletion of an object.
    pub finalizers: Option<Finalizers>,
    /// Dependents that each object gets, for the control plane's garbage collector.
    pub tree: Option<Tree>,
    /// The propagation policies of deletions; the seed draws one for each deletion. Default: none is sent, so the
    /// control plane uses its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub propagation: Vec<Propagation>,
    /// Another writer that changes the same objects.
    pub also: Option<Also>,
    /// The treatment of the objects when the load ends: `keep` leaves them, `empty` deletes all of them before the
    /// drain. Default: `keep`.
    #[serde(default, skip_serializing_if = "End::is_keep")]
    pub end: End,
    /// Whether `template` was made from the definition alone, which has fewer rules than a webhook.
    #[serde(skip)]
    pub made: bool,
}

/// The treatment of the objects when the load ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum End {
    /// The objects stay.
    #[default]
    Keep,
    /// All objects are deleted, so that a run ends with as few objects as it started with.
    Empty,
}

impl End {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
    fn is_keep(&self) -> bool {
        *self == Self::Keep
    }
}

/// The relative weights of operations. The number of objects is constant, so creates and deletes happen equally often.
/// If the number would leave a narrow band around `population`, a create replaces a delete, or a delete replaces a
/// create.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Mix {
    /// A new object is created under a name that was never used before.
    pub create: u32,
    /// The spec or data of an existing object is changed.
    pub update: u32,
    /// An old object is deleted.
    pub delete: u32,
    /// A label of an existing object is changed, which gives no new generation.
    #[serde(skip_serializing_if = "is_none")]
    pub label: u32,
    /// An annotation of an existing object is changed, which gives no new generation.
    #[serde(skip_serializing_if = "is_none")]
    pub annotate: u32,
    /// The status of an existing object is written from the template, through the subresource.
    #[serde(skip_serializing_if = "is_none")]
    pub status: u32,
    /// A group of up to 50 neighbouring objects is deleted in one request, by their labels. The next operations create
    /// as many new objects as were deleted.
    #[serde(skip_serializing_if = "is_none")]
    pub delete_collection: u32,
    /// An object is created from a template with `expect: denied`. Default, if such a template exists: as often as
    /// `create`, and at least once.
    #[serde(skip_serializing_if = "is_none")]
    pub denied: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_none(weight: &u32) -> bool {
    *weight == 0
}

impl Mix {
    /// The weights that a scenario has by default, as in the documentation's example.
    pub fn usual() -> Self {
        Self { create: 2, update: 7, delete: 2, ..Self::default() }
    }

    pub(super) fn total(&self) -> u64 {
        let Self { create, update, delete, label, annotate, status, delete_collection, denied } = *self;
        let weights = [create, update, delete, label, annotate, status, delete_collection, denied];
        weights.into_iter().map(u64::from).sum()
    }
}

impl Config {
    /// Parses the resource and the contents of its objects.
    pub(super) fn read(&self) -> Result<(Resource, Content), Error> {
        let look = Look {
            resource: &self.resource,
            template: self.template.as_ref(),
            samples: &self.templates,
            vary: &self.vary,
            scope: self.scope,
        };
        look.read(self.size)
    }

    /// Parses the resource and the contents of the dependents, if the section has any.
    pub(super) fn read_tree(&self) -> Result<Option<(Resource, Content)>, Error> {
        let Some(Tree { resource, template, scope, .. }) = &self.tree else { return Ok(None) };
        let look = Look { resource, template: template.as_ref(), samples: &[], vary: &[], scope: *scope };
        let (child, content) = look.read(None).map_err(|error| match error {
            Error::Config { key: "resource", problem } => Error::Config { key: "tree.resource", problem },
            Error::Config { problem, .. } => Error::Config { key: "tree.template", problem },
            other => other,
        })?;
        if child.is_namespaced != self.read()?.0.is_namespaced {
            return Err(Error::Config {
                key: "tree.scope",
                problem: "is another than that of the parents: write dependents that are in namespaces as they are"
                    .to_owned(),
            });
        }
        Ok(Some((child, content)))
    }

    /// A configuration that creates one object at a time, of any resource.
    pub(crate) fn of_one(rate: Rate) -> Self {
        Self {
            resource: String::new(),
            template: None,
            templates: Vec::new(),
            with: Vec::new(),
            vary: Vec::new(),
            scope: None,
            population: 1,
            rate: rate.into(),
            mix: Mix::usual(),
            size: None,
            finalizers: None,
            tree: None,
            propagation: Vec::new(),
            also: None,
            end: End::Keep,
            made: false,
            namespace: None,
        }
    }

    /// Whether a template must be refused.
    pub fn expects_denials(&self) -> bool {
        self.templates.iter().any(|sample| sample.expect == Expect::Denied)
    }

    /// The weights of operations, with defaults.
    pub(super) fn weights(&self) -> Mix {
        let is_left_out = self.mix.denied == 0 && self.expects_denials();
        Mix { denied: if is_left_out { self.mix.create.max(1) } else { self.mix.denied }, ..self.mix }
    }

    /// Events in an object's life besides its own writes, each in a few words.
    pub fn lifecycle(&self) -> Vec<String> {
        let mut told = Vec::new();
        if let Some(finalizers) = &self.finalizers {
            let percent = finalizers.share * 100.0;
            told.push(format!("{percent:.0} % held by {} for {}", finalizers.name, finalizers.hold_for));
        }
        if let Some(tree) = &self.tree {
            told.push(format!("{} {} below each", tree.per, tree.resource));
        }
        if !self.propagation.is_empty() {
            let policies: Vec<&str> = self.propagation.iter().map(|policy| policy.as_str()).collect();
            told.push(format!("deleted {}", policies.join(", ")));
        }
        if let Some(also) = &self.also {
            let how = if also.by == By::Apply { "applies" } else { "updates" };
            told.push(format!("{} {how} too", also.field_manager));
        }
        told
    }

    /// Refuses settings that cannot work; the error names the key and says what to write instead.
    pub fn check(&self) -> Result<(), Error> {
        if let Some(problem) = self.with.iter().find_map(super::companions::problem) {
            return refuse("with", problem);
        }
        let (_, content) = self.read()?;
        let has_status = !content.templates.is_empty() && content.templates.iter().all(Template::has_status);
        if self.mix.denied > 0 && content.refused.is_empty() {
            return refuse(
                "mix.denied",
                "is above 0, but no object must be refused: add a template with `expect: denied`",
            );
        }
        if self.mix.status > 0 && !has_status {
            return refuse("mix.status", "is above 0, but no template has a status: add `status` to `template`");
        }
        if let Some(namespace) = self.namespace.as_deref().filter(|name| !is_label(name)) {
            return refuse(
                "namespace",
                format!("`{namespace}` is no name of a namespace: write for example `default`"),
            );
        }
        if self.namespace.is_some() && self.scope == Some(Scope::Cluster) {
            return refuse("namespace", "is not for cluster-wide objects: leave it out");
        }
        if self.population == 0 || self.population > HIGHEST_POPULATION {
            return refuse("population", format!("is {}: write 1 to {HIGHEST_POPULATION}", self.population));
        }
        if self.rate.most().as_per_second() > HIGHEST_RATE {
            return refuse("rate", format!("is {}: write at most `{HIGHEST_RATE}/s`", self.rate));
        }
        if self.mix.total() == 0 && self.also.is_none() {
            return refuse("mix", "has no weight above 0: write for example `mix: {create: 2, update: 7, delete: 2}`");
        }
        if self.mix.create > 0 && self.mix.delete == 0 && self.mix.delete_collection == 0 {
            return refuse(
                "mix.delete",
                "is 0 although `create` is not, so the population would grow: write both or none",
            );
        }
        if self.mix.delete_collection > 0 && self.mix.create == 0 {
            return refuse(
                "mix.create",
                "is 0 although `deleteCollection` is not, so the population would shrink: write both or none",
            );
        }
        if self.mix.delete > 0 && self.mix.create == 0 {
            return refuse(
                "mix.create",
                "is 0 although `delete` is not, so the population would shrink: write both or none",
            );
        }
        self.read_tree()?;
        self.tree.as_ref().map_or(Ok(()), Tree::check)?;
        self.finalizers.as_ref().map_or(Ok(()), Finalizers::check)?;
        self.also.as_ref().map_or(Ok(()), Also::check)?;
        match self.size.and_then(Size::problem) {
            Some(problem) => refuse("size", problem),
            None => Ok(()),
        }
    }
}

/// Whether a text is a DNS label, as names of namespaces are.
fn is_label(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.len() <= 63 && text.chars().all(is_inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// The configuration keys that decide the contents of objects.
pub(crate) struct Look<'a> {
    pub resource: &'a str,
    pub template: Option<&'a serde_json::Value>,
    pub samples: &'a [Sample],
    pub vary: &'a [String],
    pub scope: Option<Scope>,
}

impl Look<'_> {
    pub(crate) fn read(&self, size: Option<Size>) -> Result<(Resource, Content), Error> {
        let key = |key, problem: String| Error::Config { key, problem };
        if self.template.is_some() && self.of(Expect::Allowed).next().is_some() {
            return Err(key("templates", "cannot be used with `template`: write all templates in the list".to_owned()));
        }
        if self.template.is_none() && self.of(Expect::Allowed).next().is_none() {
            if !self.vary.is_empty() {
                return Err(key("vary", "needs templates: add `template`".to_owned()));
            }
            let resource = Resource::parse(self.resource).map_err(|error| match error {
                Error::Config { key, problem } => Error::Config {
                    key,
                    problem: format!(
                        "{problem}, add a `template`, or the file of its definition under `controlPlane.manifests`"
                    ),
                },
                other => other,
            })?;
            let refused = self.refused(&resource)?;
            return Ok((resource, Content { size, templates: Vec::new(), refused }));
        }
        if size.is_some() {
            return Err(key(
                "size",
                "is not for templates: write `${text 1024}` where the template is to be large".to_owned(),
            ));
        }
        let mut resource = None;
        let mut templates = Vec::new();
        for (name, object) in
            self.template.map(|object| ("template", object)).into_iter().chain(self.of(Expect::Allowed))
        {
            let at = if self.template.is_some() { "template" } else { "templates" };
            let template = template(name, object, self.vary, at)?;
            let Some(kind) = template.kind() else { return Err(key(at, named(name, at, "has no `kind`"))) };
            let read = Resource::any(self.resource, kind, self.scope != Some(Scope::Cluster))?;
            fits(&read, name, &template, at)?;
            resource.get_or_insert(read);
            templates.push(template);
        }
        let Some(resource) = resource else {
            return Err(key("templates", "has no object that must be accepted".to_owned()));
        };
        let refused = self.refused(&resource)?;
        Ok((resource, Content { size: None, templates, refused }))
    }

    /// The templates with the expected answer `expect`, with their names.
    fn of(&self, expect: Expect) -> impl Iterator<Item = (&'_ str, &'_ serde_json::Value)> {
        self.samples.iter().filter(move |sample| sample.expect == expect).map(|sample| {
            (sample.file.as_deref().unwrap_or("an object"), sample.object.as_ref().unwrap_or(&serde_json::Value::Null))
        })
    }

    fn refused(&self, resource: &Resource) -> Result<Vec<(String, Template)>, Error> {
        let read = |(name, object): (&str, &serde_json::Value)| {
            let template = template(name, object, &[], "templates")?;
            fits(resource, name, &template, "templates")?;
            Ok((name.to_owned(), template))
        };
        self.of(Expect::Denied).map(read).collect()
    }
}

fn template(name: &str, object: &serde_json::Value, vary: &[String], at: &'static str) -> Result<Template, Error> {
    Template::new(object, vary).map_err(|problem| Error::Config { key: at, problem: named(name, at, &problem) })
}

/// Refuses a template of another kind than the resource.
fn fits(resource: &Resource, name: &str, template: &Template, at: &'static str) -> Result<(), Error> {
    let problem = match (template.api_version(), template.kind()) {
        (Some(other), _) if other != resource.api_version() => {
            format!("has `apiVersion: {other}`, and `resource` says {}", resource.api_version())
        }
        (_, Some(other)) if other != resource.kind => format!("has `kind: {other}`, and others {}", resource.kind),
        (_, None) => "has no `kind`".to_owned(),
        _ => return Ok(()),
    };
    Err(Error::Config { key: at, problem: named(name, at, &problem) })
}

/// An error that names the template if there are several.
fn named(name: &str, at: &str, problem: &str) -> String {
    if at == "template" { problem.to_owned() } else { format!("`{name}` {problem}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_names_the_key_and_what_to_write() {
        let config = |more: &str| -> Config {
            let base = r#""resource": "v1/configmaps", "population": 5, "rate": "1/s""#;
            serde_json::from_str(&format!("{{{base}{more}}}")).unwrap()
        };
        config("").check().unwrap();
        let error = |config: Config| config.check().unwrap_err().to_string();
        assert!(error(config(r#", "mix": {}"#)).starts_with("churn.mix: has no weight above 0: write for example"));
        assert!(error(config(r#", "mix": {"create": 1}"#)).starts_with("churn.mix.delete: is 0 although"));
        assert!(error(config(r#", "mix": {"delete": 1}"#)).starts_with("churn.mix.create: is 0 although"));
        assert!(
            error(config(r#", "mix": {"deleteCollection": 1}"#))
                .starts_with("churn.mix.create: is 0 although `deleteC")
        );
        assert!(
            error(config(r#", "finalizers": {"share": 2}"#)).starts_with("churn.finalizers.share: is 2: write 0 to 1")
        );
        assert!(error(config(r#", "finalizers": {"holdFor": "2m"}"#)).contains("write at most `30s`"));
        assert!(error(config(r#", "finalizers": {"name": "hold"}"#)).contains("write it with a domain"));
        assert!(error(config(r#", "tree": {"resource": "v1/secrets", "per": 0}"#)).starts_with("churn.tree.per: is 0"));
        assert!(error(config(r#", "tree": {"resource": "v1/pods", "per": 1}"#)).starts_with("churn.tree.resource: "));
        assert!(error(config(r#", "also": {"fieldManager": "a b"}"#)).starts_with("churn.also.fieldManager: `a b`"));
        assert!(error(config(r#", "also": {"fieldManager": "a", "weight": 0}"#)).contains("so it never writes"));
        config(r#", "mix": {}, "also": {"fieldManager": "kubectl-edit"}"#).check().unwrap();
        let with = |change: fn(&mut Config)| {
            let mut config = config("");
            change(&mut config);
            error(config)
        };
        assert_eq!(with(|c| c.population = 0), "churn.population: is 0: write 1 to 200000");
        assert!(with(|c| c.rate = Rate::per_second(1e6).into()).starts_with("churn.rate: is 1000000/s: write at most"));
        assert!(with(|c| c.resource = "widgets".to_owned()).starts_with("churn.resource: `widgets`"));
    }
}

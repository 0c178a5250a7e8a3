//! The catalogue of resources: built-in resources and resources of `CustomResourceDefinition`s.
//!
//! Owns names, scopes, versions, subresources and selectable fields. A catalogue must not contain objects. A catalogue
//! never changes: a new or removed definition makes a new catalogue, so that each request sees one consistent
//! catalogue.

mod builtin;
mod conversion;
mod custom;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use mock_store::ResourceId;

use crate::builtin::{self as published, resources};
use crate::kinds::{Kind, Meaning};

pub use conversion::{Conversion, Webhook};
pub use custom::definition;

#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts of the API's own table")]
pub struct Resource {
    /// The number of the resource in the catalogue and in the store.
    pub id: ResourceId,
    /// The API group; empty for the core group.
    pub group: Arc<str>,
    /// The versions of the resource; the preferred version is first.
    pub versions: Vec<Served>,
    /// The plural name, which paths contain.
    pub plural: Arc<str>,
    /// The singular name, which `kubectl` also accepts.
    pub singular: Arc<str>,
    pub kind: Arc<str>,
    pub list_kind: Arc<str>,
    /// Short names for `kubectl`: `po` or `svc`.
    pub short_names: Vec<Arc<str>>,
    /// The categories for `kubectl get`, such as `all`.
    pub categories: Vec<Arc<str>>,
    pub namespaced: bool,
    /// Whether a `CustomResourceDefinition` defines the resource.
    pub custom: bool,
    /// The plural with the group: `packages.longhaul.dev` or `pods`.
    pub full_name: Arc<str>,
    /// The fields that field selectors may name, in addition to `metadata.name` and `metadata.namespace`.
    pub fields: Vec<Field>,
    /// Whether the server answers with the object and never stores it, as for reviews.
    pub virtual_only: bool,
    /// Whether the resource shows, converted, the objects of another built-in resource with the same `id`.
    pub mirrors: bool,
    /// The version in which objects are stored.
    pub storage: Arc<str>,
    /// Whether stored objects may lack defaults of the definition, because the objects are older than the defaults.
    pub late_defaults: bool,
    /// The conversion between versions; `None` if versions differ only in `apiVersion`.
    pub conversion: Option<Conversion>,
    /// Whether objects may be stored in another version than `storage`, because the storage version has changed.
    pub moved: bool,
    /// Number of times that the definition was replaced.
    pub edition: u64,
    /// The published names, verbs and columns of a built-in resource.
    pub published: Option<&'static published::Resource>,
    pub rules: &'static Kind,
}

#[derive(Debug, Clone)]
pub struct Served {
    /// The name of the version: `v1` or `v1beta1`.
    pub name: Arc<str>,
    /// The group and version: `longhaul.dev/v1` or `v1`.
    pub api_version: Arc<str>,
    /// Whether clients can use the version.
    pub active: bool,
    pub status: bool,
    /// The subresource `scale`, if the version has it.
    pub scale: Option<Scale>,
    /// The warning for users of the version, if it is deprecated.
    pub deprecation: Option<Arc<str>>,
    /// The columns of `kubectl get`; a definition sets them in `additionalPrinterColumns`.
    pub columns: Vec<Column>,
    /// `openAPIV3Schema` as the definition contains it.
    pub schema: Option<Arc<serde_json::Value>>,
    pub structure: Option<Arc<super::schema::Schema>>,
}

/// JSON pointers to the fields that the subresource `scale` reads and writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scale {
    /// The field with the wanted number of replicas.
    pub spec_replicas: String,
    /// The field with the current number of replicas.
    pub status_replicas: String,
    /// The field with the label selector as text.
    pub selector: Option<String>,
}

/// A column of `kubectl get`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    /// The type of the cells: `string`, `integer` or `date`.
    pub kind: String,
    /// The format of the cells, often empty.
    pub format: String,
    pub description: String,
    /// If above 0, the column is shown only with `-o wide`.
    pub priority: i64,
    /// A simple JSON path to the value: `.spec.image`, `.status.conditions[?(@.type=="Ready")].status`.
    pub path: String,
}

/// A field that a field selector may name, besides `metadata.name` and `metadata.namespace`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The name of the field in a selector.
    pub label: Arc<str>,
    /// JSON pointers to the value; the first pointer to an existing value counts.
    pub pointers: Vec<String>,
    /// The value that a selector finds if the field is absent.
    pub unset: &'static str,
}

/// An API group and version, which together with the plural identify a resource in a URL.
type GroupVersion = (Arc<str>, Arc<str>);

/// All resources that the server serves.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    resources: Vec<Option<Arc<Resource>>>,
    /// Resources that show, converted, the objects of other resources.
    mirrors: Vec<Arc<Resource>>,
    /// Resources by their plural, which few resources share.
    by_path: HashMap<Arc<str>, Vec<(GroupVersion, ResourceId)>>,
    /// The number of each resource by its full name; a number stays reserved after the resource's definition is
    /// deleted.
    numbers: BTreeMap<Arc<str>, ResourceId>,
}

impl Resource {
    #[inline]
    pub fn version(&self, name: &str) -> Option<&Served> {
        self.versions.iter().find(|version| &*version.name == name)
    }

    #[inline]
    pub fn storage_version(&self) -> &Served {
        self.version(&self.storage).unwrap_or(&self.versions[0])
    }

    pub fn stored_api_version(&self) -> &str {
        // A mirror is stored as the resource that it shows.
        if self.mirrors { "v1" } else { &self.storage_version().api_version }
    }

    /// Whether stored objects must be converted before this resource shows them.
    pub fn converts(&self) -> bool {
        let other = |conversion: &Conversion| self.moved || *conversion.stored != *self.storage_version().api_version;
        self.conversion.as_ref().is_some_and(other)
    }

    /// The resource for requests in `version`. If a webhook converts objects, `version` replaces the storage version in
    /// the returned resource.
    pub fn in_version(self: &Arc<Self>, version: &str) -> Arc<Self> {
        if self.conversion.is_none() || *self.storage == *version {
            return self.clone();
        }
        let storage = version.into();
        // A converted object has the defaults of the version it comes from.
        Arc::new(Self { storage, late_defaults: false, ..Self::clone(self) })
    }

    pub fn has(&self, subresource: &str) -> bool {
        self.published.is_some_and(|published| published.has(subresource))
    }

    /// Whether the resource has this verb; custom resources have every verb.
    pub fn allows(&self, verb: &str) -> bool {
        self.published.is_none_or(|published| published.verbs.contains(&verb))
    }

    /// The type of a built-in resource's objects in this version.
    pub fn type_in(&self, api_version: &str) -> &'static str {
        let is =
            |version: &&published::Version| api_version.rsplit('/').next().is_some_and(|name| name == version.name);
        let Some(published) = self.published else { return "" };
        published.versions.iter().find(is).unwrap_or(&published.versions[0]).of_type
    }

    /// Whether objects of this resource are `CustomResourceDefinition`s.
    pub fn is_definition(&self) -> bool {
        self.rules.meaning == Meaning::Definition
    }

    /// The `details` of an error about the object `name`, with the plural name of the resource.
    pub fn about<'a>(&'a self, name: &'a str) -> super::status::About<'a> {
        super::status::About { group: &self.group, kind: &self.plural, name }
    }

    /// The `details` of an `Invalid` error about the object `name`, with the kind instead of the plural name.
    pub fn about_kind<'a>(&'a self, name: &'a str) -> super::status::About<'a> {
        // The objects of a mirror belong to the core group.
        super::status::About { group: if self.mirrors { "" } else { &self.group }, kind: &self.kind, name }
    }
}

impl Catalogue {
    /// The built-in resources that are served by default.
    pub fn builtin() -> Self {
        Self::with(&[])
    }

    /// The built-in resources, including resources that these feature gates turn on.
    pub fn with(gates: &[String]) -> Self {
        let mut catalogue = Self::default();
        let is_on = |gate: &str| gate.is_empty() || gates.iter().any(|on| on == gate);
        for published in resources().iter().filter(|published| is_on(published.gate)) {
            let resource = builtin::resource(published);
            match &resource.rules.mirror {
                Some(mirror) => catalogue.mirror(resource, mirror.of),
                None => catalogue.insert(resource),
            }
        }
        catalogue
    }

    /// Adds a resource that shows, converted, the objects of the resource `original`.
    fn mirror(&mut self, resource: Resource, original: &str) {
        let id = *self.numbers.get(original).expect("the original stands before its mirror in the table");
        // The values of selectable fields are stored in the order of the original's fields.
        let fields = &self.by_id(id).expect("the original has this number").fields;
        let shown = |of: &Field| {
            let own = resource.fields.iter().find(|own| own.pointers == of.pointers).cloned();
            own.unwrap_or_else(|| Field { label: "".into(), ..of.clone() })
        };
        let fields = fields.iter().map(shown).collect();
        self.mirrors.push(Arc::new(Resource { id, fields, ..resource }));
    }

    /// Adds a resource. An existing resource with the same name is replaced and keeps its number.
    pub fn insert(&mut self, mut resource: Resource) {
        self.forget(&resource.full_name.clone());
        let next = u32::try_from(self.resources.len()).expect("fewer than four billion resources");
        let id = *self.numbers.entry(resource.full_name.clone()).or_insert(ResourceId(next));
        resource.id = id;
        if id.0 == next {
            self.resources.push(None);
        }
        for version in resource.versions.iter().filter(|version| version.active) {
            let path = (resource.group.clone(), version.name.clone());
            self.by_path.entry(resource.plural.clone()).or_default().push((path, id));
        }
        self.resources[id.0 as usize] = Some(Arc::new(resource));
    }

    pub fn forget(&mut self, full_name: &str) -> Option<Arc<Resource>> {
        let id = *self.numbers.get(full_name)?;
        let resource = self.resources[id.0 as usize].take()?;
        self.by_path.retain(|_, paths| {
            paths.retain(|(_, known)| *known != id);
            !paths.is_empty()
        });
        Some(resource)
    }

    #[inline]
    pub fn by_id(&self, id: ResourceId) -> Option<&Arc<Resource>> {
        self.resources.get(id.0 as usize)?.as_ref()
    }

    pub fn by_path(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        let is = |mirror: &&Arc<Resource>| *mirror.plural == *plural && *mirror.group == *group;
        if let Some(mirror) = self.mirrors.iter().find(is) {
            return mirror.version(version).is_some().then_some(mirror);
        }
        let of = |((of_group, of_version), _): &&(GroupVersion, ResourceId)| {
            **of_group == *group && **of_version == *version
        };
        self.by_id(self.by_path.get(plural)?.iter().find(of)?.1)
    }

    pub fn by_full_name(&self, full_name: &str) -> Option<&Arc<Resource>> {
        let mirror = self.mirrors.iter().find(|mirror| *mirror.full_name == *full_name);
        if mirror.is_some() {
            return mirror;
        }
        self.by_id(*self.numbers.get(full_name)?)
    }

    /// The resource with the `apiVersion` and `kind` of an owner reference.
    pub fn by_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Resource>> {
        let (group, _) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        self.iter().find(|resource| &*resource.group == group && &*resource.kind == kind)
    }

    /// All resources, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.iter().flatten().chain(&self.mirrors)
    }

    /// The resources that have objects of their own.
    pub fn originals(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.iter().flatten()
    }
}

/// The priority of a version in Kubernetes: stable before beta before alpha, higher numbers first.
pub fn version_priority(version: &str) -> (u8, u32, u32) {
    let Some(rest) = version.strip_prefix('v') else { return (0, 0, 0) };
    let number = |text: &str| text.parse().unwrap_or(0);
    if let Some((major, minor)) = rest.split_once("beta") {
        return (2, number(major), number(minor));
    }
    if let Some((major, minor)) = rest.split_once("alpha") {
        return (1, number(major), number(minor));
    }
    (3, number(rest), 0)
}

//! The catalogue of resources: the built-in ones and those of custom resource definitions.
//!
//! Owns names, scopes, versions, subresources and selectable fields. It must not hold objects. A catalogue is
//! immutable; a new or removed definition makes a new catalogue, so that a request sees one state from start to end.

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

/// One resource with all of its versions.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts of the API's own table")]
pub struct Resource {
    /// The resource's number, in the catalogue and in the store.
    pub id: ResourceId,
    /// Empty for the core group.
    pub group: Arc<str>,
    /// Most preferred first.
    pub versions: Vec<Served>,
    /// The name in paths.
    pub plural: Arc<str>,
    /// The name in the singular, which `kubectl` accepts too.
    pub singular: Arc<str>,
    pub kind: Arc<str>,
    pub list_kind: Arc<str>,
    /// For example `po` or `svc`.
    pub short_names: Vec<Arc<str>>,
    /// For example `all`.
    pub categories: Vec<Arc<str>>,
    /// Whether the objects live in namespaces.
    pub namespaced: bool,
    /// Whether a `CustomResourceDefinition` made the resource.
    pub custom: bool,
    /// For example `packages.longhaul.dev` or `pods`.
    pub full_name: Arc<str>,
    /// The fields that field selectors may name.
    pub fields: Vec<Field>,
    /// Whether the objects are only answered and never stored, as reviews are.
    pub virtual_only: bool,
    /// Whether the objects are those of the built-in resource with the same number, shown in another form.
    pub mirrors: bool,
    /// The version in which objects are stored.
    pub storage: Arc<str>,
    /// Whether objects may have been stored before their definition got its present defaults.
    pub late_defaults: bool,
    /// The conversion between versions; without one only `apiVersion` differs.
    pub conversion: Option<Conversion>,
    /// Whether objects may be stored in another version than `storage`, because the storage version has changed.
    pub moved: bool,
    /// How often the definition was replaced.
    pub edition: u64,
    /// What a client is shown of a built-in resource.
    pub published: Option<&'static published::Resource>,
    /// The special rules of the kind.
    pub rules: &'static Kind,
}

/// One version of a resource.
#[derive(Debug, Clone)]
pub struct Served {
    /// For example `v1` or `v1beta1`.
    pub name: Arc<str>,
    /// For example `longhaul.dev/v1` or `v1`.
    pub api_version: Arc<str>,
    /// Whether the version is served.
    pub active: bool,
    /// Whether the version has the subresource `status`.
    pub status: bool,
    /// The subresource `scale`, if the version has it.
    pub scale: Option<Scale>,
    /// The warning for users of the version, if it is deprecated.
    pub deprecation: Option<Arc<str>>,
    /// `additionalPrinterColumns`.
    pub columns: Vec<Column>,
    /// `openAPIV3Schema` as it was written.
    pub schema: Option<Arc<serde_json::Value>>,
    /// `openAPIV3Schema` in compiled form.
    pub structure: Option<Arc<super::schema::Schema>>,
}

/// The places of the scale subresource's numbers, as JSON pointers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scale {
    /// The wanted number.
    pub spec_replicas: String,
    /// The current number.
    pub status_replicas: String,
    /// The label selector as a text.
    pub selector: Option<String>,
}

/// A column of `kubectl get`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    /// The type: `string`, `integer`, `date`.
    pub kind: String,
    /// Often empty.
    pub format: String,
    pub description: String,
    /// Above 0 the column is shown with `-o wide` only.
    pub priority: i64,
    /// A simple JSON path: `.spec.image`, `.status.conditions[?(@.type=="Ready")].status`.
    pub path: String,
}

/// A field that a field selector may name, besides `metadata.name` and `metadata.namespace`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The name in a selector.
    pub label: Arc<str>,
    /// JSON pointers to the value; the first that is set counts.
    pub pointers: Vec<String>,
    /// The value of an absent field.
    pub unset: &'static str,
}

/// Group and version; together with the plural they name a resource in a URL.
type GroupVersion = (Arc<str>, Arc<str>);

/// All resources, by name.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    resources: Vec<Option<Arc<Resource>>>,
    /// Other APIs of existing resources.
    mirrors: Vec<Arc<Resource>>,
    /// By plural, which few resources share.
    by_path: HashMap<Arc<str>, Vec<(GroupVersion, ResourceId)>>,
    /// A number is never reused, even after its definition is gone.
    numbers: BTreeMap<Arc<str>, ResourceId>,
}

impl Resource {
    #[inline]
    pub fn version(&self, name: &str) -> Option<&Served> {
        self.versions.iter().find(|version| &*version.name == name)
    }

    /// The version in which objects are stored.
    #[inline]
    pub fn storage_version(&self) -> &Served {
        self.version(&self.storage).unwrap_or(&self.versions[0])
    }

    /// The `apiVersion` of stored objects.
    pub fn stored_api_version(&self) -> &str {
        // A mirror is stored as the resource that it shows.
        if self.mirrors { "v1" } else { &self.storage_version().api_version }
    }

    /// Whether stored objects have to be converted before they are shown in this resource's `storage` version.
    pub fn converts(&self) -> bool {
        let other = |conversion: &Conversion| self.moved || *conversion.stored != *self.storage_version().api_version;
        self.conversion.as_ref().is_some_and(other)
    }

    /// The resource for requests in `version`. A converted object is handled as if this version were the stored one.
    pub fn in_version(self: &Arc<Self>, version: &str) -> Arc<Self> {
        if self.conversion.is_none() || *self.storage == *version {
            return self.clone();
        }
        let storage = version.into();
        // A converted object has the defaults of the version it comes from.
        Arc::new(Self { storage, late_defaults: false, ..Self::clone(self) })
    }

    /// Whether a built-in resource has a subresource.
    pub fn has(&self, subresource: &str) -> bool {
        self.published.is_some_and(|published| published.has(subresource))
    }

    /// Whether a verb is one of the resource's own.
    pub fn allows(&self, verb: &str) -> bool {
        self.published.is_none_or(|published| published.verbs.contains(&verb))
    }

    /// The type of the objects in a version of a built-in resource.
    pub fn type_in(&self, api_version: &str) -> &'static str {
        let is =
            |version: &&published::Version| api_version.rsplit('/').next().is_some_and(|name| name == version.name);
        let Some(published) = self.published else { return "" };
        published.versions.iter().find(is).unwrap_or(&published.versions[0]).of_type
    }

    /// Whether objects of this resource define resources.
    pub fn is_definition(&self) -> bool {
        self.rules.meaning == Meaning::Definition
    }

    /// The subject of an error: the plural name.
    pub fn about<'a>(&'a self, name: &'a str) -> super::status::About<'a> {
        super::status::About { group: &self.group, kind: &self.plural, name }
    }

    /// The subject of an `Invalid` error: the kind.
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

    /// The built-in resources, with those of these feature gates.
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

    /// Adds another API of the objects of `original`.
    fn mirror(&mut self, resource: Resource, original: &str) {
        let id = *self.numbers.get(original).expect("the original stands before its mirror in the table");
        self.mirrors.push(Arc::new(Resource { id, ..resource }));
    }

    /// Adds a resource, or replaces the one of the same name under its old number.
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

    /// The resource with this path.
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

    /// The resource of an `apiVersion` and `kind`, as in an owner reference.
    pub fn by_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Resource>> {
        let (group, _) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        self.iter().find(|resource| &*resource.group == group && &*resource.kind == kind)
    }

    /// All resources, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.iter().flatten().chain(&self.mirrors)
    }

    /// The resources that hold objects.
    pub fn originals(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.iter().flatten()
    }
}

/// Kubernetes' order of versions: stable before beta before alpha, higher numbers first.
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

//! The built-in kinds, as a real API server publishes them.
//!
//! Owns the table that `cargo xtask kinds` writes from a running kube-apiserver: the names, versions, verbs, columns and selectable
//! fields of resources, and the fields of all types. It is unpacked at its first use. What the server does with the objects of a
//! kind stands in `kinds`.
//!
//! A line of the table begins with its sort; where a value may be missing or have spaces, tabs stand between the parts:
//!
//! - `V` the release.
//! - `K` `apiVersion`, kind and type of objects that no resource has: `Scale`, `Status`.
//! - `R` a resource: plural, group, kind, singular, scope, the lists of verbs, short names and categories, and the feature gate that
//!   serves it, if it is off by default.
//! - `S` a subresource of the last resource: name, `apiVersion` and kind of its objects, verbs.
//! - `v` a version of the last resource: name, type, storage hash, selectable fields, columns (`name:type:format:priority|…`).
//! - `T` a type: its name, `atomic` where it is one value for server-side apply, and its fields, see [`Field`].

use std::collections::HashMap;
use std::io::Read as _;
use std::sync::{LazyLock, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::read::ZlibDecoder;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// What `cargo xtask kinds` wrote.
static PACKED: &[u8] = include_bytes!("builtin/1.34.kinds");

/// The metadata of every object.
pub const OBJECT_META: &str = "meta.v1.ObjectMeta";
/// What a pod runs.
pub const POD_SPEC: &str = "core.v1.PodSpec";

/// A resource with the facts that a client is shown.
#[derive(Debug)]
pub struct Resource {
    /// Empty for the core group.
    pub group: &'static str,
    /// As paths name it.
    pub plural: &'static str,
    /// The kind of one object.
    pub kind: &'static str,
    /// As `kubectl` takes it too.
    pub singular: &'static str,
    /// Its objects live in namespaces.
    pub namespaced: bool,
    /// In the order of discovery.
    pub verbs: Vec<&'static str>,
    /// `po`, `svc`.
    pub short_names: Vec<&'static str>,
    /// `all`.
    pub categories: Vec<&'static str>,
    /// In the order of discovery.
    pub subresources: Vec<Subresource>,
    /// The feature gate that serves it; empty if it is served by default.
    pub gate: &'static str,
    /// The preferred one first.
    pub versions: Vec<Version>,
}

/// A part of an object, or something that can be done with it, under a path of its own.
#[derive(Debug)]
pub struct Subresource {
    /// As paths name it.
    pub name: &'static str,
    /// Of its objects; empty where it is that of the resource.
    pub api_version: &'static str,
    /// The kind of its objects.
    pub kind: &'static str,
    /// In the order of discovery.
    pub verbs: Vec<&'static str>,
}

/// A version of a resource.
#[derive(Debug)]
pub struct Version {
    /// `v1`.
    pub name: &'static str,
    /// The type of its objects.
    pub of_type: &'static str,
    /// `storageVersionHash` of discovery; `-` where nothing is stored.
    pub hash: &'static str,
    /// What field selectors may name besides the name and the namespace.
    pub fields: Vec<&'static str>,
    /// `(name, type, format, priority)` of the columns of `kubectl get`.
    pub columns: Vec<(&'static str, &'static str, &'static str, i64)>,
}

/// What a field holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// `s`: a text.
    Text,
    /// `i`: a whole number.
    Integer,
    /// `b`: `true` or `false`.
    Flag,
    /// `B`: bytes; base64 in JSON.
    Bytes,
    /// `T`: a time in seconds.
    Time,
    /// `U`: a time in microseconds.
    MicroTime,
    /// `Q`: a quantity.
    Quantity,
    /// `O`: a number or a text.
    IntOrText,
    /// `J`: JSON as it is.
    Json,
    /// `L`: a list of texts in a message of its own.
    Texts,
    /// `D`: a number with a fraction.
    Double,
    /// `/` before a type: the value of the one field of this type that is set. If none is set, it is `false`.
    Either(&'static str),
    /// A type by its name.
    Message(&'static str),
}

/// One field of a type: `number:name:kind`, marks, and behind semicolons the published attributes. `[k]` is a list, `{k}` a map from
/// text. The name `<inline>` puts the fields of a type into the type around it.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are the notation's own independent marks")]
pub struct Field {
    /// Its number in protobuf.
    pub number: u64,
    /// Its name in JSON.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// There may be many.
    pub list: bool,
    /// There may be many, each with a text as key.
    pub map: bool,
    /// `?`: absent and zero are not the same.
    pub optional: bool,
    /// `!`: the zero value is shown, not left out.
    pub shown: bool,
    attributes: &'static str,
    absent: OnceLock<Option<Value>>,
}

/// How the items of a list find their partners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListType {
    /// By the values of these fields.
    Map(&'static str),
    /// By their values.
    Set,
    /// Not at all: the list is one value.
    Atomic,
}

impl Field {
    fn read(spec: &'static str) -> Self {
        let (spec, attributes) = spec.split_once(';').unwrap_or((spec, ""));
        let mut parts = spec.splitn(3, ':');
        let mut part = || parts.next().expect("a field has three parts");
        let (number, name, marked) = (part(), part(), part());
        let kind = marked.trim_end_matches(['?', '!']);
        let (list, map) = (kind.starts_with('['), kind.starts_with('{'));
        Self {
            number: number.parse().expect("a field begins with its number"),
            name,
            kind: Kind::read(kind.trim_matches(['[', ']', '{', '}'])),
            list,
            map,
            optional: marked.contains('?'),
            shown: marked.contains('!'),
            attributes,
            absent: OnceLock::new(),
        }
    }

    fn attribute(&self, key: char) -> Option<&'static str> {
        self.attributes.split(';').find_map(|attribute| attribute.strip_prefix(key)?.strip_prefix('='))
    }

    fn has(&self, mark: &str) -> bool {
        self.attributes.split(';').any(|attribute| attribute == mark)
    }

    /// Published as required.
    pub fn required(&self) -> bool {
        self.has("r")
    }

    /// `int32` or `int64`.
    pub fn format(&self) -> Option<&'static str> {
        match (self.has("f"), self.has("g")) {
            (true, _) => Some("int32"),
            (_, true) => Some("int64"),
            _ => None,
        }
    }

    /// The texts that are allowed, as they are published.
    pub fn allowed(&self) -> Option<impl Iterator<Item = &'static str>> {
        self.attribute('e').map(|allowed| allowed.split(','))
    }

    /// The published default, when it is not the zero value.
    pub fn default(&self) -> Option<Value> {
        serde_json::from_str(self.attribute('d')?).ok()
    }

    /// What stands for the field where it is absent and known: its default, or the zero value if that is shown.
    pub fn absent(&'static self) -> Option<&'static Value> {
        let absent = || self.default().or_else(|| self.zero().filter(|_| self.shown));
        self.absent.get_or_init(absent).as_ref()
    }

    /// The zero value: of a Go type that is no pointer.
    pub fn zero(&self) -> Option<Value> {
        Some(match self.kind {
            _ if self.optional || self.list || self.map => return None,
            Kind::Text => Value::from(""),
            Kind::Integer | Kind::IntOrText => Value::from(0),
            Kind::Flag => Value::from(false),
            _ => return None,
        })
    }

    /// Objects in it are one value for server-side apply.
    pub fn is_one_value(&self) -> bool {
        let of_type = || matches!(self.kind, Kind::Message(of) if is_one_value(of));
        self.has("m") || (!self.list && !self.map && of_type())
    }

    /// `(strategy, key)` of a strategic merge patch.
    pub fn merge(&self) -> Option<(&'static str, Option<&'static str>)> {
        Some((self.attribute('p')?, self.attribute('k')))
    }

    /// How server-side apply merges the list.
    pub fn list_type(&self) -> ListType {
        match self.attribute('l') {
            Some("set") => ListType::Set,
            Some(keys) => keys.strip_prefix("map,").map_or(ListType::Atomic, ListType::Map),
            None => ListType::Atomic,
        }
    }
}

impl Kind {
    fn read(kind: &'static str) -> Self {
        match kind {
            "s" => Self::Text,
            "i" => Self::Integer,
            "b" => Self::Flag,
            "B" => Self::Bytes,
            "T" => Self::Time,
            "U" => Self::MicroTime,
            "Q" => Self::Quantity,
            "O" => Self::IntOrText,
            "J" => Self::Json,
            "L" => Self::Texts,
            "D" => Self::Double,
            kind => kind.strip_prefix('/').map_or(Self::Message(kind), Self::Either),
        }
    }
}

impl Resource {
    /// `cronjobs.batch`, `pods`.
    pub fn full_name(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// Whether it has a subresource.
    pub fn has(&self, subresource: &str) -> bool {
        self.subresources.iter().any(|one| one.name == subresource)
    }
}

impl Version {
    /// Whether objects are stored in this version. `kube-apiserver` publishes a digest of the stored one under all versions
    /// (`k8s.io/apiserver/pkg/endpoints/discovery/storageversionhash.go`).
    pub fn is_stored(&self, of: &Resource) -> bool {
        let digest = Sha256::digest(format!("{}/{}/{}", of.group, self.name, of.kind));
        self.hash == BASE64.encode(&digest[..8])
    }
}

/// A type: its fields are read when they are first asked for.
#[derive(Debug)]
struct Type {
    row: &'static str,
    fields: OnceLock<Vec<Field>>,
}

#[derive(Debug, Default)]
struct Table {
    version: &'static str,
    resources: Vec<Resource>,
    /// By kind: `(apiVersion, type)`.
    kinds: HashMap<&'static str, Vec<(String, &'static str)>>,
    types: HashMap<&'static str, Type>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut text = String::new();
    ZlibDecoder::new(PACKED).read_to_string(&mut text).expect("the table is what the generator wrote");
    // Names of fields and types are kept for good.
    Table::read(text.leak())
});

impl Table {
    fn read(text: &'static str) -> Self {
        let mut table = Self::default();
        for line in text.lines() {
            let (sort, rest) = line.split_once(' ').unwrap_or((line, ""));
            match sort {
                "V" => table.version = rest,
                "K" => {
                    let mut words = rest.split(' ');
                    let mut word = || words.next().unwrap_or_default();
                    let (api_version, kind, of_type) = (word(), word(), word());
                    table.kinds.entry(kind).or_default().push((api_version.to_owned(), of_type));
                }
                "R" => table.resources.push(resource(rest)),
                "S" => table.last().subresources.push(subresource(rest)),
                "v" => {
                    let version = version(rest);
                    let resource = table.last();
                    let of_kind = (api_version(resource.group, version.name), version.of_type);
                    let kind = resource.kind;
                    resource.versions.push(version);
                    table.kinds.entry(kind).or_default().push(of_kind);
                }
                _ => {
                    let (name, row) = rest.split_once(' ').unwrap_or((rest, ""));
                    table.types.insert(name, Type { row, fields: OnceLock::new() });
                }
            }
        }
        table
    }

    fn last(&mut self) -> &mut Resource {
        self.resources.last_mut().expect("a resource stands before its versions and subresources")
    }
}

fn words(list: &'static str) -> Vec<&'static str> {
    list.split(',').filter(|word| !word.is_empty()).collect()
}

fn resource(line: &'static str) -> Resource {
    let mut parts = line.split('\t');
    let mut part = || parts.next().unwrap_or_default();
    Resource {
        plural: part(),
        group: part(),
        kind: part(),
        singular: part(),
        namespaced: part() == "Namespaced",
        verbs: words(part()),
        short_names: words(part()),
        categories: words(part()),
        gate: part(),
        subresources: Vec::new(),
        versions: Vec::new(),
    }
}

fn subresource(line: &'static str) -> Subresource {
    let mut parts = line.split('\t');
    let mut part = || parts.next().unwrap_or_default();
    Subresource { name: part(), api_version: part(), kind: part(), verbs: words(part()) }
}

fn version(line: &'static str) -> Version {
    let mut parts = line.split('\t');
    let mut part = || parts.next().unwrap_or_default();
    let (name, of_type, hash, fields) = (part(), part(), part(), words(part()));
    let columns = part().split('|').filter(|column| !column.is_empty()).map(|column| {
        let mut parts = column.split(':');
        let mut part = || parts.next().unwrap_or_default();
        (part(), part(), part(), part().parse().unwrap_or(0))
    });
    Version { name, of_type, hash, fields, columns: columns.collect() }
}

/// `apps/v1`, `v1`.
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// The name of a type in OpenAPI: `io.k8s.api.core.v1.Pod`.
pub fn published_name(of: &str) -> String {
    let prefix = match of.split('.').next().unwrap_or_default() {
        "meta" => "io.k8s.apimachinery.pkg.apis",
        "apiextensions" => "io.k8s.apiextensions-apiserver.pkg.apis",
        "apiregistration" => "io.k8s.kube-aggregator.pkg.apis",
        _ => "io.k8s.api",
    };
    format!("{prefix}.{of}")
}

/// The release of Kubernetes that the table is of: `v1.34.1`.
pub fn release() -> &'static str {
    TABLE.version
}

/// All resources, in the order of discovery; those that are off by default come last.
pub fn resources() -> &'static [Resource] {
    &TABLE.resources
}

/// The fields of a type.
pub fn message(name: &str) -> Option<&'static [Field]> {
    let of = TABLE.types.get(name)?;
    let fields = || of.row.split(' ').filter(|word| word.contains(':')).map(Field::read).collect();
    Some(of.fields.get_or_init(fields))
}

/// Whether objects of a type are one value for server-side apply.
pub fn is_one_value(name: &str) -> bool {
    TABLE.types.get(name).is_some_and(|of| of.row == "atomic" || of.row.starts_with("atomic "))
}

/// The type of a kind. Options and lists come with the version of any group; kinds that nobody knows have their own name.
pub fn type_of<'a>(api_version: &str, kind: &'a str) -> &'a str {
    let table = &*TABLE;
    let of_kind = table.kinds.get(kind).into_iter().flatten().find(|(known, _)| known == api_version);
    if let Some((_, of_type)) = of_kind {
        return of_type;
    }
    let shared = format!("meta.v1.{kind}");
    table.types.get_key_value(&*shared).map_or(kind, |(name, _)| name)
}

/// Whether the objects of a type say their `apiVersion` and `kind`.
pub fn is_kind(of: &str) -> bool {
    TABLE.kinds.values().flatten().any(|(_, of_kind)| *of_kind == of)
}

/// The field of a type, also of those that it has inline.
pub fn find(of: &str, name: &str) -> Option<&'static Field> {
    message(of)?.iter().find_map(|field| match (&field.kind, field.name) {
        (Kind::Message(inner), "<inline>") => find(inner, name),
        (_, known) => (known == name).then_some(field),
    })
}

/// The field at a path of names, without indices; the name behind a map is one of its keys.
pub fn field_at(of: &str, path: &[&str]) -> Option<&'static Field> {
    let (name, below) = path.split_first()?;
    let field = find(of, name)?;
    if below.is_empty() {
        return Some(field);
    }
    let below = if field.map { &below[1..] } else { below };
    let inner = match field.kind {
        Kind::Message(inner) => inner,
        Kind::Either(either) => first(either)?,
        _ => return None,
    };
    field_at(inner, below)
}

/// Whether a type has a field at a path of names, without indices. The keys of maps and JSON as it is are not known.
pub fn declares(of: &str, path: &[&str]) -> bool {
    let Some((name, below)) = path.split_first() else { return true };
    let Some(field) = find(of, name) else { return false };
    let below = if field.map && !below.is_empty() { &below[1..] } else { below };
    match field.kind {
        Kind::Message(inner) => declares(inner, below),
        Kind::Either(either) => first(either).is_none_or(|inner| declares(inner, below)),
        Kind::Json => true,
        _ => below.is_empty(),
    }
}

/// The type that stands for one of several things in a [`Kind::Either`]: the type of its first field that has one.
pub fn first(either: &str) -> Option<&'static str> {
    message(either)?.iter().find_map(|field| match field.kind {
        Kind::Message(inner) => Some(inner),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every type that is named is there, and no number comes twice in one.
    #[test]
    fn the_table_is_whole() {
        let of_resources = resources().iter().flat_map(|resource| &resource.versions).map(|version| version.of_type);
        for name in of_resources {
            assert!(message(name).is_some(), "{name}");
        }
        for name in TABLE.types.keys() {
            let fields = message(name).unwrap();
            for field in fields {
                if let Kind::Message(inner) | Kind::Either(inner) = &field.kind {
                    assert!(message(inner).is_some(), "{name}.{} is a {inner}", field.name);
                }
                let same = fields.iter().filter(|other| other.number == field.number).count();
                assert_eq!(same, 1, "{name} has {} twice", field.number);
            }
        }
    }

    #[test]
    fn a_release_has_all_its_resources() {
        assert_eq!(release(), crate::VERSION);
        assert_eq!(resources().iter().filter(|resource| resource.gate.is_empty()).count(), 65);
        let container = find("core.v1.Container", "ports").unwrap();
        assert_eq!(container.list_type(), ListType::Map("containerPort,protocol"));
        assert_eq!(container.merge(), Some(("merge", Some("containerPort"))));
        assert!(is_one_value("meta.v1.LabelSelector") && !is_one_value(POD_SPEC));
    }
}

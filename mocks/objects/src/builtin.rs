//! The built-in kinds, as a real API server publishes them.
//!
//! Owns the table that `cargo xtask kinds` writes from a running kube-apiserver: names, versions, verbs, columns and
//! selectable fields of resources, and the fields of all types. The table is decompressed at its first use. The module
//! `kinds` owns the server's behaviour for the objects of a kind.
//!
//! Each line of the table begins with a letter. Tabs separate values that may be missing or contain spaces:
//!
//! - `V`: the release.
//! - `K`: `apiVersion`, kind and type of objects that belong to no resource, such as `Scale` and `Status`.
//! - `R`: a resource: plural, group, kind, singular, scope, the lists of verbs, short names and categories, and the
//!   feature gate that turns the resource on, if it is off by default.
//! - `S`: a subresource of the resource above: name, `apiVersion` and kind of its objects, verbs.
//! - `v`: a version of the resource above: name, type, storage hash, selectable fields, columns
//!   (`name:type:format:priority|…`).
//! - `T`: a type: its name, `atomic` if server-side apply treats its objects as one value, and its fields, see
//!   [`Field`].

use std::collections::HashMap;
use std::io::Read as _;
use std::sync::{LazyLock, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::read::ZlibDecoder;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The compressed table that `cargo xtask kinds` wrote.
static PACKED: &[u8] = include_bytes!("builtin/1.34.kinds");

/// The type of every object's metadata.
pub const OBJECT_META: &str = "meta.v1.ObjectMeta";
/// The type of a pod's specification.
pub const POD_SPEC: &str = "core.v1.PodSpec";

/// A built-in resource, with the facts that discovery and tables show to clients.
#[derive(Debug)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The plural name, which paths contain.
    pub plural: &'static str,
    /// The kind of the resource's objects.
    pub kind: &'static str,
    /// The singular name, which `kubectl` accepts too.
    pub singular: &'static str,
    /// Whether the resource's objects belong to namespaces.
    pub namespaced: bool,
    /// The verbs, in the order of discovery.
    pub verbs: Vec<&'static str>,
    /// The short names for `kubectl`, such as `po` or `svc`.
    pub short_names: Vec<&'static str>,
    /// The categories for `kubectl`, such as `all`.
    pub categories: Vec<&'static str>,
    /// The subresources, in the order of discovery.
    pub subresources: Vec<Subresource>,
    /// The feature gate that turns the resource on; empty if the resource is on by default.
    pub gate: &'static str,
    /// The versions; the first version is preferred.
    pub versions: Vec<Version>,
}

/// A subresource: some fields of an object, or an action on an object, with a path of its own.
#[derive(Debug)]
pub struct Subresource {
    /// The name of the subresource in paths.
    pub name: &'static str,
    /// The `apiVersion` of the subresource's objects; empty if the resource has the same.
    pub api_version: &'static str,
    /// The kind of the subresource's objects.
    pub kind: &'static str,
    /// The verbs, in the order of discovery.
    pub verbs: Vec<&'static str>,
}

/// A version of a resource.
#[derive(Debug)]
pub struct Version {
    /// The name of the version, such as `v1`.
    pub name: &'static str,
    /// The type of the objects in this version.
    pub of_type: &'static str,
    /// `storageVersionHash` of discovery; `-` if the objects are never stored.
    pub hash: &'static str,
    /// The fields that field selectors may name besides name and namespace.
    pub fields: Vec<&'static str>,
    /// `(name, type, format, priority)` of the columns of `kubectl get`.
    pub columns: Vec<(&'static str, &'static str, &'static str, i64)>,
}

/// The type of a field's value, with its mark in the table.
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
    /// `J`: arbitrary JSON.
    Json,
    /// `L`: a list of texts that is a protobuf message of its own.
    Texts,
    /// `D`: a number with a fraction.
    Double,
    /// `/` before the name of a type: JSON contains the value of the type's only field that is set, or `false` if none
    /// is set.
    Either(&'static str),
    /// The name of a type: an object with the fields of that type.
    Message(&'static str),
}

/// One field of a type. The table contains `number:name:kind`, marks, and the published attributes, each after a
/// semicolon. `[k]` is a list of the kind `k`, and `{k}` is a map with text keys and values of the kind `k`. A field
/// with the name `<inline>` adds the fields of its type to the surrounding type.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are the notation's own independent marks")]
pub struct Field {
    /// The field's number in protobuf.
    pub number: u64,
    /// The field's name in JSON.
    pub name: &'static str,
    /// The type of the value, or of the items of a list or map.
    pub kind: Kind,
    /// Whether the field is a list.
    pub list: bool,
    /// Whether the field is a map with text keys.
    pub map: bool,
    /// `?`: an absent value differs from zero.
    pub optional: bool,
    /// `!`: a zero value is shown in JSON, not omitted.
    pub shown: bool,
    attributes: &'static str,
    absent: OnceLock<Option<Value>>,
}

/// How server-side apply matches the items of two lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListType {
    /// Items match if these fields, separated by commas, have equal values.
    Map(&'static str),
    /// Items match if they are equal.
    Set,
    /// Items never match: the list is one value.
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

    /// Whether the published schema marks the field as required.
    pub fn required(&self) -> bool {
        self.has("r")
    }

    /// The published format, `int32` or `int64`.
    pub fn format(&self) -> Option<&'static str> {
        match (self.has("f"), self.has("g")) {
            (true, _) => Some("int32"),
            (_, true) => Some("int64"),
            _ => None,
        }
    }

    /// The allowed texts in the published schema.
    pub fn allowed(&self) -> Option<impl Iterator<Item = &'static str>> {
        self.attribute('e').map(|allowed| allowed.split(','))
    }

    /// The default in the published schema, if it is not the zero value.
    pub fn default(&self) -> Option<Value> {
        serde_json::from_str(self.attribute('d')?).ok()
    }

    /// The value of an absent field: the default, or the zero value if a zero value is shown.
    pub fn absent(&'static self) -> Option<&'static Value> {
        let absent = || self.default().or_else(|| self.zero().filter(|_| self.shown));
        self.absent.get_or_init(absent).as_ref()
    }

    /// The zero value of a text, number or boolean that is not a pointer in Go; `None` for other fields.
    pub fn zero(&self) -> Option<Value> {
        Some(match self.kind {
            _ if self.optional || self.list || self.map => return None,
            Kind::Text => Value::from(""),
            Kind::Integer | Kind::IntOrText => Value::from(0),
            Kind::Flag => Value::from(false),
            _ => return None,
        })
    }

    /// Whether server-side apply treats the objects in the field as one value.
    pub fn is_one_value(&self) -> bool {
        let of_type = || matches!(self.kind, Kind::Message(of) if is_one_value(of));
        self.has("m") || (!self.list && !self.map && of_type())
    }

    /// `(strategy, key)` for a strategic merge patch of the field.
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
    /// The full name of the resource, such as `cronjobs.batch` or `pods`.
    pub fn full_name(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// Whether the resource has this subresource.
    pub fn has(&self, subresource: &str) -> bool {
        self.subresources.iter().any(|one| one.name == subresource)
    }
}

impl Version {
    /// Whether the server stores objects in this version. kube-apiserver publishes a digest of the stored version under
    /// all versions (`k8s.io/apiserver/pkg/endpoints/discovery/storageversionhash.go`).
    pub fn is_stored(&self, of: &Resource) -> bool {
        let digest = Sha256::digest(format!("{}/{}/{}", of.group, self.name, of.kind));
        self.hash == BASE64.encode(&digest[..8])
    }
}

/// A type, whose fields are parsed at their first use.
#[derive(Debug)]
struct Type {
    row: &'static str,
    fields: OnceLock<Vec<Field>>,
}

#[derive(Debug, Default)]
struct Table {
    version: &'static str,
    resources: Vec<Resource>,
    /// `(apiVersion, type)` of each kind.
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

/// The `apiVersion` of a group and a version, such as `apps/v1` or `v1`.
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// The name of a type in OpenAPI, such as `io.k8s.api.core.v1.Pod`.
pub fn published_name(of: &str) -> String {
    let prefix = match of.split('.').next().unwrap_or_default() {
        "meta" => "io.k8s.apimachinery.pkg.apis",
        "apiextensions" => "io.k8s.apiextensions-apiserver.pkg.apis",
        "apiregistration" => "io.k8s.kube-aggregator.pkg.apis",
        _ => "io.k8s.api",
    };
    format!("{prefix}.{of}")
}

/// The release of Kubernetes from which the table was made, such as `v1.34.1`.
pub fn release() -> &'static str {
    TABLE.version
}

/// All resources, in the order of discovery. Resources that are off by default come last.
pub fn resources() -> &'static [Resource] {
    &TABLE.resources
}

/// The fields of a type.
pub fn message(name: &str) -> Option<&'static [Field]> {
    let of = TABLE.types.get(name)?;
    let fields = || of.row.split(' ').filter(|word| word.contains(':')).map(Field::read).collect();
    Some(of.fields.get_or_init(fields))
}

/// Whether server-side apply treats objects of a type as one value.
pub fn is_one_value(name: &str) -> bool {
    TABLE.types.get(name).is_some_and(|of| of.row == "atomic" || of.row.starts_with("atomic "))
}

/// The name of the type of a kind. Kinds for options and lists exist in every `apiVersion`. For an unknown kind, the
/// result is the kind itself.
pub fn type_of<'a>(api_version: &str, kind: &'a str) -> &'a str {
    let table = &*TABLE;
    let of_kind = table.kinds.get(kind).into_iter().flatten().find(|(known, _)| known == api_version);
    if let Some((_, of_type)) = of_kind {
        return of_type;
    }
    let shared = format!("meta.v1.{kind}");
    table.types.get_key_value(&*shared).map_or(kind, |(name, _)| name)
}

/// Whether objects of a type contain `apiVersion` and `kind`.
pub fn is_kind(of: &str) -> bool {
    TABLE.kinds.values().flatten().any(|(_, of_kind)| *of_kind == of)
}

/// Returns a field of a type, or of a type whose fields are inline in the type.
pub fn find(of: &str, name: &str) -> Option<&'static Field> {
    message(of)?.iter().find_map(|field| match (&field.kind, field.name) {
        (Kind::Message(inner), "<inline>") => find(inner, name),
        (_, known) => (known == name).then_some(field),
    })
}

/// Returns the field at a path of field names without indices. After the name of a map, the path has a key of the map.
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

/// Whether a type has a field at a path of field names without indices. Every key of a map and every path in arbitrary
/// JSON counts as a field.
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

/// For a type `either` of [`Kind::Either`]: the type of its first field that is an object with fields.
pub fn first(either: &str) -> Option<&'static str> {
    message(either)?.iter().find_map(|field| match field.kind {
        Kind::Message(inner) => Some(inner),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every type that the table names exists, and no type has two fields with the same number.
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

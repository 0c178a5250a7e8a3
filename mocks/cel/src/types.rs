//! The types of CEL expressions.
//!
//! Owns the names of types, their compatibility, and the fields of a request. Each object declaration in a schema is a
//! type of its own.

use std::rc::Rc;
use std::sync::Arc;

use super::decl::Decl;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Type {
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    /// The type of `type(…)`: a type as a value.
    Meta,
    List(Rc<Type>),
    Map(Rc<Type>, Rc<Type>),
    Optional(Rc<Type>),
    /// A structure with known fields, or a value type of a library; the text is its name.
    Struct(&'static str),
    /// An object that a schema declares.
    Object(Declared),
}

/// The declaration of an object. Two declared types are equal only if they come from the same declaration in a schema.
#[derive(Debug, Clone)]
pub(super) struct Declared(Arc<Decl>);

impl Declared {
    pub(crate) fn decl(&self) -> &Decl {
        &self.0
    }
}

impl PartialEq for Declared {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Declared {}

pub(super) const TIME: Type = Type::Struct("google.protobuf.Timestamp");
pub(super) const DURATION: Type = Type::Struct("google.protobuf.Duration");
pub(super) const OBJECT: Type = Type::Struct("Object");
pub(super) const JSON_PATCH: Type = Type::Struct("JSONPatch");
/// The names of types that expressions can use as values.
pub(super) const NAMES: &[&str] = &[
    "int",
    "uint",
    "double",
    "bool",
    "string",
    "bytes",
    "list",
    "map",
    "null_type",
    "type",
    "optional_type",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
];
pub(super) const REQUEST: &str = "kubernetes.AdmissionRequest";

/// `(structure, field, type of the field)` of all fields below `request` (Kubernetes documentation, "Matching requests:
/// matchConditions", and `AdmissionRequest` of admission.k8s.io/v1).
const FIELDS: &[(&str, &str, &str)] = &[
    (REQUEST, "kind", "kubernetes.GroupVersionKind"),
    (REQUEST, "resource", "kubernetes.GroupVersionResource"),
    (REQUEST, "subResource", "string"),
    (REQUEST, "requestKind", "kubernetes.GroupVersionKind"),
    (REQUEST, "requestResource", "kubernetes.GroupVersionResource"),
    (REQUEST, "requestSubResource", "string"),
    (REQUEST, "name", "string"),
    (REQUEST, "namespace", "string"),
    (REQUEST, "operation", "string"),
    (REQUEST, "userInfo", "kubernetes.UserInfo"),
    (REQUEST, "dryRun", "bool"),
    (REQUEST, "options", "dyn"),
    ("kubernetes.GroupVersionKind", "group", "string"),
    ("kubernetes.GroupVersionKind", "version", "string"),
    ("kubernetes.GroupVersionKind", "kind", "string"),
    ("kubernetes.GroupVersionResource", "group", "string"),
    ("kubernetes.GroupVersionResource", "version", "string"),
    ("kubernetes.GroupVersionResource", "resource", "string"),
    ("kubernetes.UserInfo", "username", "string"),
    ("kubernetes.UserInfo", "uid", "string"),
    ("kubernetes.UserInfo", "groups", "list(string)"),
    ("kubernetes.UserInfo", "extra", "map(string, list(string))"),
];

impl Type {
    pub(crate) fn list(of: Self) -> Self {
        Self::List(Rc::new(of))
    }

    pub(crate) fn optional(of: Self) -> Self {
        Self::Optional(Rc::new(of))
    }

    /// The type that a schema declares.
    pub(crate) fn of(decl: &Arc<Decl>) -> Self {
        match &**decl {
            Decl::Dyn => Self::Dyn,
            Decl::Bool => Self::Bool,
            Decl::Int => Self::Int,
            Decl::Double => Self::Double,
            Decl::Text => Self::Text,
            Decl::Bytes => Self::Bytes,
            Decl::Time | Decl::Date => TIME,
            Decl::Duration => DURATION,
            Decl::List { item, .. } => Self::list(Self::of(item)),
            Decl::Map(item) => Self::Map(Rc::new(Self::Text), Rc::new(Self::of(item))),
            Decl::Object(_) => Self::Object(Declared(decl.clone())),
        }
    }

    /// Whether a value of this type is accepted where `wanted` is expected.
    pub(crate) fn fits(&self, wanted: &Self) -> bool {
        match (self, wanted) {
            (Self::List(a), Self::List(b)) | (Self::Optional(a), Self::Optional(b)) => a.fits(b),
            (Self::Map(a, b), Self::Map(c, d)) => a.fits(c) && b.fits(d),
            (Self::Dyn, _) | (_, Self::Dyn) => true,
            // A type that may be absent may be compared with null.
            (Self::Null, other) | (other, Self::Null) => {
                matches!(other, Self::Null | Self::Struct(_) | Self::Optional(_) | Self::Object(_))
            }
            (a, b) => a == b,
        }
    }

    pub(crate) fn is_numeric(&self) -> bool {
        matches!(self, Self::Dyn | Self::Int | Self::Uint | Self::Double)
    }
}

impl std::fmt::Display for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::Text => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Meta => f.write_str("type"),
            Self::Object(_) => f.write_str("object"),
            Self::List(of) => write!(f, "list({of})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::Optional(of) => write!(f, "optional_type({of})"),
            Self::Struct(name) => f.write_str(name),
        }
    }
}

pub(super) fn field_of(structure: &str, field: &str) -> Option<Type> {
    let (.., kind) = FIELDS.iter().find(|(known, key, _)| *known == structure && *key == field)?;
    Some(named(kind))
}

fn named(kind: &'static str) -> Type {
    match kind {
        "string" => Type::Text,
        "bool" => Type::Bool,
        "dyn" => Type::Dyn,
        "list(string)" => Type::list(Type::Text),
        "map(string, list(string))" => Type::Map(Rc::new(Type::Text), Rc::new(Type::list(Type::Text))),
        name => Type::Struct(name),
    }
}

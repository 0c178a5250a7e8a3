//! The representations of objects and lists in answers: unchanged, as a table, or only metadata.
//!
//! Owns content negotiation (Kubernetes API concepts, "Alternate representations of resources"). An unchanged object is
//! sent as the bytes in the store; for a table or metadata, objects are parsed and encoded again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::{Method, StatusCode};
use mock_objects::catalogue::Resource;
use mock_objects::convert;
use mock_objects::object;
use mock_objects::status::Failure;
use mock_objects::table;
use mock_store::Version;
use mock_store::ordered::Ordered;
use serde_json::{Map, Value, json};

use super::call::Call;

mod list;

pub(crate) use list::{List, ListBody};

/// The fields of a list's `metadata`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListMeta {
    pub revision: u64,
    pub continue_token: Option<String>,
    pub remaining: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Object,
    /// A `Table`, with its `apiVersion` in the group `meta.k8s.io`.
    Table(&'static str),
    Metadata(&'static str),
}

/// The kinds of metadata that a client may request: of one object, or of a list.
const OF_ONE: &str = "PartialObjectMetadata";
const OF_LIST: &str = "PartialObjectMetadataList";

/// Encodes objects in the representation that a request accepts.
#[derive(Debug, Clone)]
pub(crate) struct Renderer {
    shape: Shape,
    resource: Arc<Resource>,
    api_version: Arc<str>,
    /// Whether the requested version differs from the stored version.
    converts: bool,
    /// The value of `includeObject` for tables.
    include: Include,
    /// Whether the columns were already sent: on a stream, only the first table has columns.
    headed: Option<Arc<AtomicBool>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Include {
    None,
    Metadata,
    Object,
}

impl Renderer {
    /// The renderer for the first supported representation in `Accept`.
    pub fn negotiate(call: &Call) -> Result<Self, Failure> {
        let (shape, asked_as) = shape(&call.accept).map_err(|failure| {
            // Custom resources are refused without details.
            if call.resource.custom { Failure { details: None, ..failure } } else { failure }
        })?;
        let is_collection = matches!(call.method, Method::GET | Method::DELETE) && call.target.name.is_none();
        if !call.query.watch
            && let Some(why) = unfit(asked_as, is_collection)
        {
            // The types are those of the server's program.
            let (list, package) = match (&call.resource, is_collection) {
                (resource, _) if resource.custom => ("", "unstructured"),
                (resource, list) => (if list { "List" } else { "" }, package(&resource.group)),
            };
            let kind: &str = match (call.resource.custom, is_collection) {
                (true, true) => "UnstructuredList",
                (true, false) => "Unstructured",
                (false, _) => &call.resource.kind,
            };
            let message =
                format!("you requested {asked_as}, but the requested object is {why} (*{package}.{kind}{list})");
            return Err(Failure::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message));
        }
        let include = match call.query.include_object.as_deref() {
            Some("None") => Include::None,
            Some("Object") => Include::Object,
            _ => Include::Metadata,
        };
        let has_protobuf = match shape {
            Shape::Object => !call.resource.custom,
            Shape::Metadata(_) => true,
            Shape::Table(_) => false,
        };
        if call.in_protobuf && !has_protobuf {
            return Err(Failure { details: None, ..Failure::not_acceptable("application/json") });
        }
        Ok(Self { shape, include, ..Self::plain(call) })
    }

    /// A renderer that does not change objects.
    pub fn plain(call: &Call) -> Self {
        Self {
            shape: Shape::Object,
            resource: call.resource.clone(),
            api_version: call.served().api_version.clone(),
            converts: call.resource.mirrors
                || call.resource.late_defaults
                || call.served().name != call.resource.storage,
            include: Include::Metadata,
            headed: None,
        }
    }

    pub fn streaming(self) -> Self {
        Self { headed: Some(Arc::default()), ..self }
    }

    /// Whether answers contain the exact bytes of the store.
    pub fn is_plain(&self) -> bool {
        self.shape == Shape::Object && !self.converts
    }

    /// The `apiVersion` and `kind` of the objects that a watch sends.
    pub fn type_of_one(&self) -> (&str, &str) {
        match self.shape {
            Shape::Object => (&self.api_version, &self.resource.kind),
            Shape::Table(version) => (version, "Table"),
            Shape::Metadata(version) => (version, "PartialObjectMetadata"),
        }
    }

    pub fn object(&self, version: &Version) -> Bytes {
        if self.is_plain() { version.object() } else { self.value(&version.value()) }
    }

    /// Encodes an object that is not in the store.
    pub fn value(&self, value: &Value) -> Bytes {
        let shown = match self.shape {
            Shape::Object => self.converted(value),
            Shape::Metadata(version) => metadata_only(value, version),
            Shape::Table(_) => {
                let row = self.row(value);
                let meta = json!({"resourceVersion": value["metadata"]["resourceVersion"]});
                self.table(&[row], &meta)
            }
        };
        Bytes::from(Ordered(&shown).to_bytes())
    }

    /// A bookmark for a stream: an object of the stream's type without content.
    pub fn bookmark(&self, metadata: &mut Value) -> Value {
        if let Shape::Table(_) = self.shape {
            // A table has no annotations, so the bookmark's annotations are in a row.
            let revision = json!({"resourceVersion": metadata["resourceVersion"]});
            return self.table(&[self.row(&json!({"metadata": metadata}))], &revision);
        }
        let (api_version, kind) = self.type_of_one();
        let mut object = json!({"kind": kind, "apiVersion": api_version, "metadata": metadata});
        if self.shape == Shape::Object {
            object::fill_shown(&mut object, self.resource.type_in(api_version));
        }
        object
    }

    fn converted(&self, value: &Value) -> Value {
        let mut value = value.clone();
        convert::from_stored(&mut value, &self.resource, &self.api_version);
        value
    }

    fn row(&self, value: &Value) -> Value {
        let cells = table::cells(value, &self.resource, self.columns());
        let object = match self.include {
            Include::None => Value::Null,
            Include::Metadata => metadata_only(value, self.type_of_one().0),
            Include::Object => self.converted(value),
        };
        json!({"cells": cells, "object": object})
    }

    fn table(&self, rows: &[Value], metadata: &Value) -> Value {
        let headed = self.headed.as_ref().is_some_and(|headed| headed.swap(true, Ordering::Relaxed));
        let columns = if headed { Value::Null } else { table::columns(&self.resource, self.columns()).into() };
        json!({
            "kind": "Table", "apiVersion": self.type_of_one().0, "metadata": metadata, "columnDefinitions": columns,
            "rows": rows,
        })
    }

    fn columns(&self) -> &[mock_objects::catalogue::Column] {
        let asked = self.resource.versions.iter().find(|version| version.api_version == self.api_version);
        asked.map_or(&[], |version| &version.columns)
    }
}

/// Cuts `apiVersion` and `kind` out of the items of a list without parsing them. In a real server, items of built-in
/// types lack these fields, and clients that rely on them fail. Items of custom resources have both fields.
struct TypeOfItem(Option<String>);

impl TypeOfItem {
    fn of(renderer: &Renderer) -> Self {
        if renderer.shape != Shape::Object || renderer.resource.custom {
            return Self(None);
        }
        Self(Some(format!("{{\"kind\":\"{}\",\"apiVersion\":\"{}\",", renderer.resource.kind, renderer.api_version)))
    }

    fn append_without(&self, object: &[u8], out: &mut Vec<u8>) {
        // Type fields come first (`mock_store::ordered`).
        match self.0.as_ref().and_then(|head| object.strip_prefix(head.as_bytes())) {
            Some(rest) => {
                out.push(b'{');
                out.extend_from_slice(rest);
            }
            None if self.0.is_some() => out.extend_from_slice(&reordered(object)),
            None => out.extend_from_slice(object),
        }
    }
}

/// Parses an item and encodes it without `apiVersion` and `kind`, for items from whose bytes these keys cannot be cut.
fn reordered(object: &[u8]) -> Vec<u8> {
    let Ok(mut value) = serde_json::from_slice::<Map<String, Value>>(object) else { return object.to_vec() };
    value.remove("apiVersion");
    value.remove("kind");
    Value::Object(value).to_string().into_bytes()
}

fn metadata_only(value: &Value, version: &str) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": version, "metadata": value["metadata"]})
}

/// Why an answer does not have the requested kind of metadata: the answer is a list, or is not a list.
fn unfit(asked_as: &str, is_collection: bool) -> Option<&'static str> {
    match (asked_as, is_collection) {
        (OF_ONE, true) => Some("a list"),
        (OF_LIST, false) => Some("not a list"),
        _ => None,
    }
}

/// The Go package of a group's types, for error messages.
fn package(group: &str) -> &str {
    match group.split('.').next().unwrap_or_default() {
        "" | "events" => "core",
        first => first,
    }
}

/// The first supported representation in the header `Accept`, and the requested kind of metadata, if any.
fn shape(accept: &str) -> Result<(Shape, &'static str), Failure> {
    if accept.trim().is_empty() {
        return Ok((Shape::Object, ""));
    }
    for media in accept.split(',') {
        let mut parts = media.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        if !matches!(kind, "application/json" | "application/*" | "*/*") {
            continue;
        }
        let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
        let parameter = |name: &str| parameters.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        let version = match (parameter("g"), parameter("v")) {
            (Some("meta.k8s.io"), Some("v1")) => Some("meta.k8s.io/v1"),
            (Some("meta.k8s.io"), Some("v1beta1")) => Some("meta.k8s.io/v1beta1"),
            _ => None,
        };
        match (parameter("as"), version) {
            (None, _) => return Ok((Shape::Object, "")),
            (Some("Table"), Some(version)) => return Ok((Shape::Table(version), "")),
            (Some(OF_ONE), Some(version)) => return Ok((Shape::Metadata(version), OF_ONE)),
            (Some(OF_LIST), Some(version)) => return Ok((Shape::Metadata(version), OF_LIST)),
            _ => {}
        }
    }
    Err(Failure::not_acceptable("application/json"))
}

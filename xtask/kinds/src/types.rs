//! Makes the lines for types in the table of built-in kinds: each field with its number, its kind and its published
//! attributes.
//!
//! This module writes the notation that `mocks/objects/src/builtin.rs` reads. The Go types give the shape of objects
//! and the numbers of fields; OpenAPI gives everything else.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value};

use crate::go::{Field, Modules, Type, Types};

/// Go types whose kind in the table's notation does not follow from their Go definition.
const KINDS: &[(&str, &str)] = &[
    ("string", "s"),
    ("types.UID", "s"),
    ("bool", "b"),
    ("int", "i"),
    ("int32", "i"),
    ("int64", "i"),
    ("uint8", "i"),
    ("float64", "D"),
    ("meta.v1.Time", "T"),
    ("meta.v1.MicroTime", "U"),
    ("resource.Quantity", "Q"),
    ("intstr.IntOrString", "O"),
    ("runtime.RawExtension", "J"),
    ("meta.v1.FieldsV1", "J"),
    ("apiextensions.v1.JSON", "J"),
    ("apiextensions.v1.JSONSchemaPropsOrArray", "/apiextensions.v1.JSONSchemaPropsOrArray"),
    ("apiextensions.v1.JSONSchemaPropsOrBool", "/apiextensions.v1.JSONSchemaPropsOrBool"),
    ("apiextensions.v1.JSONSchemaPropsOrStringArray", "/apiextensions.v1.JSONSchemaPropsOrStringArray"),
];
/// Maximum depth of named definitions inside named definitions.
const DEPTH_MAX: usize = 8;

/// All lines for types, by the name of the type.
pub(crate) struct Rows<'a> {
    modules: &'a Modules,
    types: Types,
    /// The schemas that OpenAPI publishes, by the name of the type.
    published: BTreeMap<String, Value>,
    written: BTreeMap<String, String>,
}

impl<'a> Rows<'a> {
    pub fn new(modules: &'a Modules, published: BTreeMap<String, Value>) -> Self {
        Self { modules, types: Types::default(), published, written: BTreeMap::new() }
    }

    /// Adds the line of a type, and the lines of all types to which the type refers.
    pub fn add(&mut self, name: &str) -> Result<()> {
        let published = self.published.get(name).cloned().unwrap_or_default();
        let mut missing = published["properties"].as_object().cloned().unwrap_or_default();
        missing.remove("apiVersion");
        missing.remove("kind");
        self.row(name, &published, &mut missing)?;
        let names: Vec<&String> = missing.keys().collect();
        ensure!(names.is_empty() || is_open(name), "{name}: {names:?} are published, and no fields of the Go type");
        Ok(())
    }

    fn row(&mut self, name: &str, published: &Value, missing: &mut Map<String, Value>) -> Result<()> {
        if self.written.contains_key(name) {
            // What is inline in several types is published in each of them.
            let names: Vec<String> = self.names(name)?;
            for field in names {
                missing.remove(&field);
            }
            return Ok(());
        }
        let Some(Type::Struct(fields)) = self.types.get(name, self.modules)? else {
            anyhow::bail!("there is no struct {name} among the Go types")
        };
        // It is there before it is done: a type may hold itself.
        self.written.insert(name.to_owned(), String::new());
        let mut row = String::new();
        if published["x-kubernetes-map-type"] == "atomic" {
            row.push_str(" atomic");
        }
        for field in &fields {
            let (kind, below) = self.kind(&field.go, DEPTH_MAX).with_context(|| format!("{name}.{}", field.json))?;
            if field.inline {
                let inner = below.with_context(|| format!("{name}: {} is inline and no struct", field.go))?;
                self.row(&inner, published, missing)?;
                write!(row, " {}:<inline>:{kind}", field.number)?;
                continue;
            }
            missing.remove(&field.json);
            write!(row, " {}:{}:{kind}{}", field.number, field.json, marks(field, &kind))?;
            let property = &published["properties"][&field.json];
            let is_required =
                published["required"].as_array().is_some_and(|all| all.contains(&Value::from(&*field.json)));
            attributes(&mut row, property, is_required)?;
            if let Some(below) = below {
                self.add(&below)?;
            }
        }
        self.written.insert(name.to_owned(), row);
        Ok(())
    }

    /// The names of all fields of a type, including the fields of inline types.
    fn names(&mut self, name: &str) -> Result<Vec<String>> {
        let Some(Type::Struct(fields)) = self.types.get(name, self.modules)? else { return Ok(Vec::new()) };
        let mut names = Vec::new();
        for field in fields {
            match self.kind(&field.go, DEPTH_MAX)?.1 {
                Some(inner) if field.inline => names.extend(self.names(&inner)?),
                _ => names.push(field.json),
            }
        }
        Ok(names)
    }

    /// The kind of a field in the table's notation, and the type that the field refers to.
    fn kind(&mut self, go: &str, depth: usize) -> Result<(String, Option<String>)> {
        ensure!(depth > 0, "`{go}` is defined by itself");
        let go = go.trim_start_matches('*');
        if let Some(value) = go.strip_prefix("map[]") {
            let (kind, below) = self.kind(value, depth - 1)?;
            let kind = if kind == "[s]" { "L".to_owned() } else { kind };
            return Ok((format!("{{{kind}}}"), below));
        }
        if go == "[]byte" {
            return Ok(("B".to_owned(), None));
        }
        if let Some(item) = go.strip_prefix("[]") {
            let (kind, below) = self.kind(item, depth - 1)?;
            return Ok((format!("[{kind}]"), below));
        }
        if let Some((_, kind)) = KINDS.iter().find(|(known, _)| *known == go) {
            let below = kind.strip_prefix('/').map(str::to_owned);
            return Ok(((*kind).to_owned(), below));
        }
        match self.types.get(go, self.modules)? {
            Some(Type::Struct(_)) => Ok((go.to_owned(), Some(go.to_owned()))),
            Some(Type::Other(other)) => self.kind(&other, depth - 1),
            None => anyhow::bail!("there is no Go type {go}"),
        }
    }

    /// The dotted paths of texts, numbers and booleans in a type; a path has at most `depth` names.
    pub fn plain_fields(&mut self, name: &str, depth: usize) -> Result<BTreeSet<String>> {
        let Some(Type::Struct(fields)) = self.types.get(name, self.modules)? else { return Ok(BTreeSet::new()) };
        let mut plain = BTreeSet::new();
        for field in fields {
            let (kind, below) = self.kind(&field.go, DEPTH_MAX)?;
            match below {
                Some(inner) if field.inline => plain.extend(self.plain_fields(&inner, depth)?),
                Some(inner) if kind == inner && depth > 1 && field.json != "metadata" => {
                    let below = self.plain_fields(&inner, depth - 1)?;
                    plain.extend(below.into_iter().map(|below| format!("{}.{below}", field.json)));
                }
                None if matches!(kind.as_str(), "s" | "i" | "b") => drop(plain.insert(field.json)),
                _ => {}
            }
        }
        Ok(plain)
    }

    /// Returns all lines as text, one for each type.
    pub fn lines(self) -> String {
        self.written.into_iter().fold(String::new(), |text, (name, row)| text + "T " + &name + &row + "\n")
    }
}

/// Whether a type has other fields in OpenAPI than in Go.
fn is_open(name: &str) -> bool {
    name.contains("JSONSchemaPropsOr")
}

/// The marks of a field in the table's notation: `?` for a pointer, and `!` if JSON shows a zero value. `omitempty`
/// never leaves out a struct, because Go never treats a struct as empty.
fn marks(field: &Field, kind: &str) -> String {
    let is_pointer = field.go.starts_with('*');
    let is_plain = kind.starts_with(['[', '{']) || matches!(kind, "s" | "i" | "b" | "B" | "D" | "L");
    let is_left_out = field.omitzero || (field.omitempty && (is_plain || is_pointer));
    format!("{}{}", if is_pointer { "?" } else { "" }, if is_left_out { "" } else { "!" })
}

/// Appends the published attributes of a field to the line of its type.
fn attributes(row: &mut String, property: &Value, is_required: bool) -> Result<()> {
    let words =
        |value: &Value| value.as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>().join(",");
    if is_required {
        row.push_str(";r");
    }
    let valued = if property["items"].is_object() { &property["items"] } else { property };
    if valued["enum"].is_array() {
        write!(row, ";e={}", words(&valued["enum"]))?;
    }
    match &property["default"] {
        Value::Null | Value::Bool(false) => {}
        Value::String(text) if text.is_empty() => {}
        Value::Number(number) if number.as_i64() == Some(0) => {}
        Value::Object(object) if object.is_empty() => {}
        other => write!(row, ";d={other}")?,
    }
    if let Some(kind) = property["x-kubernetes-list-type"].as_str().filter(|kind| *kind != "atomic") {
        write!(row, ";l={kind}")?;
        let keys = words(&property["x-kubernetes-list-map-keys"]);
        if !keys.is_empty() {
            write!(row, ",{keys}")?;
        }
    }
    if let Some(strategy) = property["x-kubernetes-patch-strategy"].as_str() {
        write!(row, ";p={strategy}")?;
    }
    if let Some(key) = property["x-kubernetes-patch-merge-key"].as_str() {
        write!(row, ";k={key}")?;
    }
    if property["x-kubernetes-map-type"] == "atomic" {
        row.push_str(";m");
    }
    if let Some(format) = valued["format"].as_str().filter(|format| matches!(*format, "int32" | "int64")) {
        row.push_str(if format == "int32" { ";f" } else { ";g" });
    }
    ensure!(!row.ends_with(' '), "an attribute has a space");
    Ok(())
}

//! The types of Pods and of kinds that create Pods, as the real server publishes them.
//!
//! This module reads the fields of each type, and the types of the fields, from `/openapi/v3`.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde_json::Value;

use crate::driver::{self, Endpoint, Raw};
use crate::sequence::{Sequence, Step};

const DOCUMENTS: [&str; 3] = ["/openapi/v3/api/v1", "/openapi/v3/apis/apps/v1", "/openapi/v3/apis/batch/v1"];

/// The types by name, such as `PodSpec`.
pub struct Types(BTreeMap<String, Value>);

/// The type of a field's value.
#[derive(Debug, Clone, PartialEq)]
pub enum Holds {
    /// An object of this type.
    Type(String),
    List(Box<Holds>),
    Map(Box<Holds>),
    Text,
    Number,
    Flag,
    Quantity,
    /// Either a number or a text.
    Either,
    Time,
    Json,
}

impl Types {
    /// Reads the types from a server.
    pub async fn of(endpoint: &Endpoint) -> anyhow::Result<Self> {
        Self::read(endpoint, &DOCUMENTS, "the-types").await
    }

    /// Reads the types from these OpenAPI documents. `namespace` must not exist on the server.
    pub async fn read(endpoint: &Endpoint, documents: &[&str], namespace: &str) -> anyhow::Result<Self> {
        let steps = documents.iter().map(|path| Step::get(*path)).collect();
        let sequence = Sequence { name: "the types".to_owned(), steps };
        let mut types = BTreeMap::new();
        for raw in driver::play(endpoint, &sequence, namespace).await? {
            let Raw::Answer { status: 200, body, .. } = raw else { anyhow::bail!("no types: {raw:?}") };
            let document: Value = serde_json::from_slice(&body)?;
            let schemas = document["components"]["schemas"].as_object().context("a document without types")?;
            types.extend(schemas.iter().map(|(name, schema)| (short(name).to_owned(), schema.clone())));
        }
        Ok(Self(types))
    }

    /// The fields of a type, sorted by name, and whether each is required.
    pub fn fields(&self, name: &str) -> Vec<(String, Holds, bool)> {
        let schema = self.0.get(name).unwrap_or(&Value::Null);
        let required = |field: &str| schema["required"].as_array().into_iter().flatten().any(|one| one == field);
        let properties = schema["properties"].as_object();
        properties
            .into_iter()
            .flatten()
            .map(|(field, schema)| (field.clone(), holds(schema), required(field)))
            .collect()
    }
}

/// The short name of a type: `PodSpec` for `io.k8s.api.core.v1.PodSpec`.
fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn holds(schema: &Value) -> Holds {
    // A reference with a default beside it stands in a list of one.
    let reference = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str());
    match (
        reference.map(|reference| short(reference.trim_start_matches("#/components/schemas/"))),
        schema["type"].as_str(),
    ) {
        (Some("Quantity"), _) => Holds::Quantity,
        (Some("IntOrString"), _) => Holds::Either,
        (Some("Time" | "MicroTime"), _) => Holds::Time,
        (Some("FieldsV1" | "RawExtension"), _) => Holds::Json,
        (Some(name), _) => Holds::Type(name.to_owned()),
        (None, Some("array")) => Holds::List(Box::new(holds(&schema["items"]))),
        (None, Some("object")) if schema["additionalProperties"].is_object() => {
            Holds::Map(Box::new(holds(&schema["additionalProperties"])))
        }
        (None, Some("string")) => Holds::Text,
        (None, Some("integer" | "number")) => Holds::Number,
        (None, Some("boolean")) => Holds::Flag,
        _ => Holds::Json,
    }
}

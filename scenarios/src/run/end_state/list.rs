//! A new list of the control plane's objects, read from the API and not from a cache.

use std::fmt::Write as _;

use anyhow::{Context, Result, bail};
use hyper::Method;
use loadgen::churn::Api;
use serde_json::Value;

use crate::run::install;

/// Objects per page of a list: 200 objects of 64 KiB fit into an answer.
const PAGE_OBJECTS: usize = 200;
/// Maximum number of objects in a list. The largest population with its children has fewer objects.
const OBJECTS_MAX: usize = 1 << 20;
/// Maximum number of starts of a list whose pages expire.
const TRIES: u32 = 3;
/// The media type for lists of metadata, which every API server supports.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::run) struct Item {
    pub(in crate::run) namespace: String,
    pub(in crate::run) name: String,
    pub(in crate::run) uid: String,
    pub(in crate::run) revision: String,
    pub(in crate::run) generation: i64,
    /// The whole object, or only its metadata.
    pub(in crate::run) object: Value,
}

impl Item {
    /// Parses an object; `None` if a needed field is missing.
    pub(in crate::run) fn of(object: Value) -> Option<Self> {
        let meta = object.get("metadata")?;
        let text = |key: &str| meta.get(key).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            namespace: text("namespace").unwrap_or_default(),
            name: text("name")?,
            uid: text("uid")?,
            revision: text("resourceVersion")?,
            generation: meta.get("generation").and_then(Value::as_i64).unwrap_or(0),
            object,
        })
    }

    /// Namespace and name of an object, for messages.
    pub(in crate::run) fn place(&self) -> String {
        if self.namespace.is_empty() { self.name.clone() } else { format!("{}/{}", self.namespace, self.name) }
    }
}

/// Lists all objects at one revision of the control plane, whole or only their metadata, sorted by namespace and name.
pub(in crate::run) async fn list(api: &Api, path: &str, whole: bool) -> Result<Vec<Item>> {
    for _ in 0..TRIES {
        if let Some(items) = pages(api, path, whole).await? {
            return Ok(items);
        }
    }
    bail!("the pages of GET {path} expired {TRIES} times")
}

/// Reads all pages of a list. `None` if the revision of the first page was compacted before the last page was read.
async fn pages(api: &Api, path: &str, whole: bool) -> Result<Option<Vec<Item>>> {
    let asked = install::Api::from(api);
    let mut items = Vec::new();
    let mut next = String::new();
    loop {
        let rest = if next.is_empty() { String::new() } else { format!("&continue={}", escaped(&next)) };
        let page = format!("{path}?limit={PAGE_OBJECTS}{rest}");
        let accept = if whole { install::JSON } else { METADATA };
        let (status, answer) = asked.ask_as(Method::GET, &page, String::new(), accept, install::JSON).await?;
        if status.as_u16() == 410 {
            return Ok(None);
        }
        if !status.is_success() {
            bail!("GET {path} answers {status}: {}", String::from_utf8_lossy(&answer[..answer.len().min(200)]));
        }
        let mut list: Value = serde_json::from_slice(&answer).with_context(|| format!("GET {path} answers no JSON"))?;
        if !list["kind"].as_str().is_some_and(|kind| kind.ends_with("List")) {
            bail!("GET {path} answers no list");
        }
        // A server written in Go may send `null` for an empty list.
        let mut page = list.get_mut("items").map(Value::take);
        for object in page.as_mut().and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default() {
            items.push(Item::of(object).with_context(|| format!("GET {path} lists something without a name or uid"))?);
        }
        if items.len() > OBJECTS_MAX {
            bail!("GET {path} lists more than {OBJECTS_MAX} objects");
        }
        list["metadata"]["continue"].as_str().unwrap_or_default().clone_into(&mut next);
        if next.is_empty() {
            items.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
            return Ok(Some(items));
        }
    }
}

/// The percent-encoding of a continue token, which may contain any character.
fn escaped(token: &str) -> String {
    token.bytes().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "%{byte:02X}");
        text
    })
}

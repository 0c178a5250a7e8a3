//! Applies the manifests in `controlPlane.manifests` with server-side apply, and waits until every
//! `CustomResourceDefinition` is served.
//!
//! Owns the order: `CustomResourceDefinition`s, then namespaces, then all other objects as written. If the API server
//! refuses an object, the run ends with the API server's message.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hyper::Method;
use serde_json::Value;

use super::install::{self, Api, JSON};
use crate::scenario::Manifest;

/// The field manager of the applied objects. Later applies by the subject's own tools get the usual conflicts with this
/// manager.
const MANAGER: &str = "longhaul";
const APPLY: &str = "application/apply-patch+yaml";

/// `quiet` is how long a `CustomResourceDefinition` must stay unchanged.
pub(super) async fn apply(api: &Api<'_>, manifests: &[Manifest], quiet: Duration) -> Result<()> {
    let mut kinds = Kinds::default();
    let (definitions, rest): (Vec<_>, Vec<_>) = manifests.iter().partition(|manifest| manifest.is_definition());
    let (namespaces, rest): (Vec<_>, Vec<_>) =
        rest.into_iter().partition(|manifest| manifest.object["kind"] == "Namespace");
    for manifest in &definitions {
        kinds.apply(api, manifest).await?;
    }
    let objects: Vec<&Value> = definitions.iter().map(|manifest| &manifest.object).collect();
    install::served(api, &objects, quiet).await?;
    for manifest in namespaces.into_iter().chain(rest) {
        kinds.apply(api, manifest).await?;
    }
    Ok(())
}

/// The kinds that each group and version serves: the plural, and whether the kind is namespaced.
#[derive(Default)]
struct Kinds(HashMap<String, HashMap<String, (String, bool)>>);

impl Kinds {
    async fn apply(&mut self, api: &Api<'_>, manifest: &Manifest) -> Result<()> {
        let at = || format!("{}: failed to apply {}", manifest.file.display(), manifest.name());
        let path = self.path(api, &manifest.object).await.with_context(at)?;
        if api.mark.is_some() {
            let (status, there) = api.ask(Method::GET, &path, String::new()).await.with_context(at)?;
            let there: Value = serde_json::from_slice(&there).unwrap_or_default();
            if status.is_success() && api.is_foreign(&there) {
                bail!(
                    "{}: the cluster has it already, and this run did not make it: delete it, or use another cluster",
                    at()
                );
            }
        }
        let path = format!("{path}?fieldManager={MANAGER}&force=true");
        let object = api.marked(&manifest.object).to_string();
        let answer = api.ask_as(Method::PATCH, &path, object, JSON, APPLY).await;
        let (status, answer) = answer.with_context(at)?;
        if !status.is_success() {
            bail!("{}: HTTP {}: {}", at(), status.as_u16(), words(&answer));
        }
        Ok(())
    }

    async fn path(&mut self, api: &Api<'_>, object: &Value) -> Result<String> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
        if name.is_empty() {
            bail!("it has no `metadata.name`");
        }
        let root = if version.contains('/') { format!("/apis/{version}") } else { format!("/api/{version}") };
        if !self.0.contains_key(version) {
            let (status, answer) = api.ask(Method::GET, &root, String::new()).await?;
            if !status.is_success() {
                bail!("nothing serves `apiVersion: {version}`: GET {root} answers {}", status.as_u16());
            }
            self.0.insert(version.to_owned(), served(&answer));
        }
        let Some((plural, is_namespaced)) = self.0.get(version).and_then(|kinds| kinds.get(kind)) else {
            bail!("`{version}` serves no kind {kind}");
        };
        if !is_namespaced {
            return Ok(format!("{root}/{plural}/{name}"));
        }
        let namespace = text("/metadata/namespace");
        let namespace = if namespace.is_empty() { "default" } else { namespace };
        Ok(format!("{root}/namespaces/{namespace}/{plural}/{name}"))
    }
}

/// The kinds of a discovery document (`APIResourceList`), without subresources.
fn served(document: &[u8]) -> HashMap<String, (String, bool)> {
    let document: Value = serde_json::from_slice(document).unwrap_or_default();
    let resources = document["resources"].as_array().into_iter().flatten();
    let kinds = resources.filter_map(|resource| {
        let plural = resource["name"].as_str().filter(|name| !name.contains('/'))?;
        Some((resource["kind"].as_str()?.to_owned(), (plural.to_owned(), resource["namespaced"] == true)))
    });
    kinds.collect()
}

/// The message of a `Status`, or the whole answer if the answer is no `Status`.
fn words(answer: &[u8]) -> String {
    let status: Value = serde_json::from_slice(answer).unwrap_or_default();
    status["message"].as_str().map_or_else(|| String::from_utf8_lossy(answer).into_owned(), str::to_owned)
}

//! `--object` and `--crd`: objects of any kind instead of the default mix, for load without a scenario.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use loadgen::admission::Own;
use loadgen::churn::{self, Expect, Scope};
use serde_json::Value;

use crate::scenario::{Ground, Manifest, read_manifests};

/// Maximum size of a file with a template or a `CustomResourceDefinition`. A template has a few KiB.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Suffix after the name of a file whose object the webhook must refuse.
const DENIED: &str = "=denied";

/// The objects to send, from files with templates and from `CustomResourceDefinition`s.
pub(super) fn objects(files: &[String], definitions: &[PathBuf]) -> Result<Vec<Own>> {
    // Any path is allowed, because the user typed it.
    let definitions = read_manifests(&Ground::looked_at(Path::new("")), definitions)
        .map_err(|text| anyhow::anyhow!("{}", text.replacen("`controlPlane.manifests`", "--crd", 1)))?;
    let definitions: Vec<&Manifest> = definitions.iter().filter(|one| one.is_definition()).collect();
    if files.is_empty() {
        return definitions.iter().map(|one| generated(&one.object)).collect();
    }
    files.iter().map(|file| of_file(file, &definitions)).collect()
}

fn generated(definition: &Value) -> Result<Own> {
    let (resource, _) = served(definition).context("--crd: the definition has no served version")?;
    let version = resource.rsplit('/').next().unwrap_or_default();
    let (object, scope) = churn::generate(definition, version)
        .map_err(|error| anyhow::anyhow!("--crd: {error}, and name it with --object"))?;
    let (scope, hooks) = (Some(scope), Vec::new());
    Ok(Own { resource, object, scope, expect: Expect::Allowed, made: true, called: None, hooks })
}

fn of_file(file: &str, definitions: &[&Manifest]) -> Result<Own> {
    let (path, expect) = match file.strip_suffix(DENIED) {
        Some(path) => (path, Expect::Denied),
        None => (file, Expect::Allowed),
    };
    let mut object = read(Path::new(path)).with_context(|| format!("--object: failed to read {path}"))?;
    let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    ensure!(!api_version.is_empty() && !kind.is_empty(), "--object: {path} has no `apiVersion` and `kind`: write both");
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
    let of_kind = |one: &&&Manifest| {
        let spec = &one.object["spec"];
        spec["names"]["kind"] == kind.as_str() && spec["group"] == group
    };
    let definition = definitions.iter().find(of_kind).map(|one| &one.object);
    if let Some(schema) = definition.and_then(|one| schema(one, version)) {
        churn::fill(schema, &mut object);
    }
    // Without a definition, the plural is formed as for most kinds.
    let plural = definition.and_then(|one| one["spec"]["names"]["plural"].as_str());
    let plural = plural.map_or_else(|| format!("{}s", kind.to_lowercase()), str::to_owned);
    let is_cluster = definition.is_some_and(|one| one["spec"]["scope"] == "Cluster");
    let dot = if group.is_empty() { "" } else { "." };
    Ok(Own {
        resource: format!("{plural}{dot}{group}/{version}"),
        object,
        scope: is_cluster.then_some(Scope::Cluster),
        expect,
        made: false,
        called: Some(path.to_owned()),
        hooks: Vec::new(),
    })
}

fn read(path: &Path) -> Result<Value> {
    let size = std::fs::metadata(path)?.len();
    ensure!(size <= FILE_BYTES_MAX, "it has {size} bytes: at most {FILE_BYTES_MAX} are read");
    Ok(serde_saphyr::from_str(&std::fs::read_to_string(path)?)?)
}

/// The resource of a `CustomResourceDefinition` in its first served version, and the schema of this version.
fn served(definition: &Value) -> Option<(String, &Value)> {
    let versions = definition["spec"]["versions"].as_array()?;
    let version = versions.iter().find(|version| version["served"] != false)?;
    Some((format!("{}/{}", definition["metadata"]["name"].as_str()?, version["name"].as_str()?), version))
}

fn schema<'a>(definition: &'a Value, version: &str) -> Option<&'a Value> {
    let versions = definition["spec"]["versions"].as_array()?;
    versions.iter().find(|one| one["name"] == version)?.pointer("/schema/openAPIV3Schema")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_read_as_their_definitions_tell() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let good = file("good.yaml", "apiVersion: cache.example.com/v1\nkind: Cache\nspec: {size: 3}\n");
        let crd = file(
            "crd.yaml",
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: cachez.cache.example.com}\nspec: {group: \
             cache.example.com, scope: Cluster, names: {kind: Cache, plural: cachez}, versions: [{name: v1, schema: {openAPIV3Schema: \
             {properties: {spec: {type: object, properties: {mode: {type: string, default: fast}}}}}}}]}\n",
        );
        let good = good.display().to_string();
        let plain = objects(&[format!("{good}=denied")], &[]).unwrap();
        assert_eq!((&*plain[0].resource, plain[0].expect), ("caches.cache.example.com/v1", Expect::Denied));
        let read = objects(&[good], std::slice::from_ref(&crd)).unwrap();
        assert_eq!((&*read[0].resource, read[0].scope), ("cachez.cache.example.com/v1", Some(Scope::Cluster)));
        assert_eq!(read[0].object["spec"], serde_json::json!({"size": 3, "mode": "fast"}));
        assert_eq!(objects(&[], &[crd]).unwrap()[0].resource, "cachez.cache.example.com/v1");
        let bare = file("bare.yaml", "spec: {}\n").display().to_string();
        assert!(objects(&[bare], &[]).unwrap_err().to_string().contains("has no `apiVersion` and `kind`"));
    }
}

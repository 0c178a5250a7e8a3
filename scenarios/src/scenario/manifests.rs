//! `controlPlane.manifests`: which objects a run finds in its control plane, and what their definitions tell of what is churned.
//!
//! Owns the reading: files and folders of plain YAML, in the order in which they are written, files of a folder by name.

use std::path::{Path, PathBuf};

use loadgen::churn;
use serde_json::Value;

/// The CRDs of the largest operators have two megabytes in one file.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Files of all folders together.
const FILES_MAX: usize = 500;
/// What a definition is.
const CRD: &str = "CustomResourceDefinition";

/// An object, and the file that it is from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Manifest {
    pub(crate) file: PathBuf,
    pub(crate) object: Value,
}

impl Manifest {
    /// Whether it defines a custom resource.
    pub(crate) fn is_definition(&self) -> bool {
        self.object["kind"] == CRD
    }

    /// `Deployment team/app`, for messages.
    pub(crate) fn name(&self) -> String {
        let text = |pointer: &str| self.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let slash = if namespace.is_empty() { "" } else { "/" };
        format!("{} {namespace}{slash}{name}", text("/kind"))
    }
}

/// Reads all of them. An error names the file and says what is wrong.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<Manifest>, String> {
    let mut files = Vec::new();
    for path in paths {
        list(path, &mut files)?;
    }
    let mut manifests = Vec::new();
    for file in files {
        let fail = |why: String| format!("`controlPlane.manifests`: {}: {why}", file.display());
        let size = file.metadata().map_err(|error| fail(error.to_string()))?.len();
        if size > FILE_BYTES_MAX {
            return Err(fail(format!("has {size} bytes: at most {FILE_BYTES_MAX} are read")));
        }
        let text = std::fs::read_to_string(&file).map_err(|error| fail(error.to_string()))?;
        let objects: Vec<Value> = serde_saphyr::from_multiple(&text).map_err(|error| fail(error.to_string()))?;
        for object in objects.into_iter().filter(|object| !object.is_null()) {
            // `kubectl get -o yaml` writes lists.
            let items = match object["kind"].as_str() {
                Some("List") => object["items"].as_array().cloned().unwrap_or_default(),
                _ => vec![object],
            };
            for object in items {
                if object["apiVersion"].as_str().is_none() || object["kind"].as_str().is_none() {
                    return Err(fail(
                        "something in it has no `apiVersion` and `kind`: name manifests only, not values or kustomizations"
                            .to_owned(),
                    ));
                }
                manifests.push(Manifest { file: file.clone(), object });
            }
        }
    }
    Ok(manifests)
}

fn list(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let fail = |error: std::io::Error| format!("`controlPlane.manifests`: {}: {error}", path.display());
    if path.metadata().map_err(fail)?.is_dir() {
        let entries = std::fs::read_dir(path).map_err(fail)?;
        let mut inside: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        inside.sort();
        for path in inside {
            let is_yaml = path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
            // A kustomization beside its resources is for another program.
            let is_other = path.file_stem().is_some_and(|stem| stem == "kustomization");
            if path.is_dir() || (is_yaml && !is_other) {
                list(&path, files)?;
            }
        }
    } else {
        files.push(path.to_owned());
    }
    if files.len() > FILES_MAX {
        return Err(format!("`controlPlane.manifests`: more than {FILES_MAX} files: name a smaller folder"));
    }
    Ok(())
}

/// Gives churn, and its dependents, what the definitions of their resources tell: the scope, and a template where the scenario has none.
pub(crate) fn complete(churn: &mut churn::Config, manifests: &[Manifest]) -> Result<(), String> {
    let churn::Config { resource, template, scope, tree, .. } = churn;
    complete_one(resource, template, scope, manifests).map_err(|error| format!("churn.template: {error}"))?;
    let Some(churn::Tree { resource, template, scope, .. }) = tree else { return Ok(()) };
    complete_one(resource, template, scope, manifests).map_err(|error| format!("churn.tree.template: {error}"))
}

/// The same of a script.
pub(crate) fn complete_script(script: &mut loadgen::script::Config, manifests: &[Manifest]) -> Result<(), String> {
    let loadgen::script::Config { resource, template, scope, .. } = script;
    complete_one(resource, template, scope, manifests).map_err(|error| format!("script.template: {error}"))
}

fn complete_one(
    resource: &str,
    template: &mut Option<Value>,
    scope: &mut Option<churn::Scope>,
    manifests: &[Manifest],
) -> Result<(), String> {
    let Some((name, watch)) = churn::names(resource) else { return Ok(()) };
    let found = manifests.iter().find(|one| one.is_definition() && one.object["metadata"]["name"] == name.as_str());
    let Some(definition) = found.map(|found| &found.object) else { return Ok(()) };
    let told = if definition["spec"]["scope"] == "Cluster" { churn::Scope::Cluster } else { churn::Scope::Namespaced };
    scope.get_or_insert(told);
    if template.is_none() && !churn::is_known(resource) {
        let version = watch.rsplit('/').next().unwrap_or_default();
        let (made, _) = churn::generate(definition, version).map_err(|error| error.to_string())?;
        *template = Some(made);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_read_in_order_and_mistakes_name_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write(
            "b.yaml",
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n---\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: b}\n",
        );
        write("a.yml", "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}]\n");
        write("kustomization.yaml", "resources: [b.yaml]\n");
        write("notes.txt", "no manifest");
        let names: Vec<String> = read(&[folder.path().to_owned()]).unwrap().iter().map(Manifest::name).collect();
        assert_eq!(names, ["ConfigMap c", "Namespace b", "Secret b/s"]);
        write("c.yaml", "replicas: 3\n");
        let error = read(&[folder.path().to_owned()]).unwrap_err();
        assert!(error.contains("c.yaml: something in it has no `apiVersion`"), "{error}");
        assert!(read(&[PathBuf::from("/nowhere")]).unwrap_err().contains("/nowhere: No such file"));
    }
}

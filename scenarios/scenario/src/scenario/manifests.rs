//! `controlPlane.manifests`: the objects that a run creates in its control plane. `CustomResourceDefinition`s among
//! these objects also give scope and schema of churned resources.
//!
//! This module reads files and folders of plain YAML in the order in which the scenario lists them. Files of a folder
//! are read in the order of their names.

use std::path::{Path, PathBuf};

use loadgen::churn;
use serde_json::Value;

use super::reach::Ground;

/// Largest size of one manifest file, in bytes. The CRDs of the largest operators are one file of two megabytes.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Largest size of all manifest files together, in bytes. The manifests of the largest operators have six megabytes.
const ALL_BYTES_MAX: usize = 64 << 20;
/// Maximum number of manifest files in all folders together.
const FILES_MAX: usize = 500;
/// Maximum number of folder entries that are examined in the search for manifests.
const ENTRIES_MAX: usize = 20_000;
/// Maximum depth of nested folders in which manifests are searched.
const DEPTH_MAX: usize = 16;
/// The kind of an object that defines a custom resource.
const CRD: &str = "CustomResourceDefinition";

/// An object from a manifest, and the file that it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    pub file: PathBuf,
    pub object: Value,
}

impl Manifest {
    pub fn is_definition(&self) -> bool {
        self.object["kind"] == CRD
    }

    pub fn is_deployment(&self) -> bool {
        self.object["kind"] == "Deployment"
    }

    /// Kind, namespace and name for messages, such as `Deployment team/app`.
    pub fn name(&self) -> String {
        let text = |pointer: &str| self.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let slash = if namespace.is_empty() { "" } else { "/" };
        format!("{} {namespace}{slash}{name}", text("/kind"))
    }
}

/// Reads all manifests in `paths`. The error names the file and the problem.
pub fn read(ground: &Ground, paths: &[PathBuf]) -> Result<Vec<Manifest>, String> {
    let mut found = Found::default();
    for path in paths {
        found.add(ground, path, 0)?;
    }
    let mut manifests = Vec::new();
    let mut left = ALL_BYTES_MAX;
    for file in found.files {
        let fail = |why: String| problem(&file, &why);
        let text = ground.text(&file, FILE_BYTES_MAX).map_err(fail)?;
        left = left.checked_sub(text.text.len()).ok_or_else(|| {
            fail(format!("with the files before it there are more than {ALL_BYTES_MAX} bytes: name fewer"))
        })?;
        let objects: Vec<Value> =
            serde_saphyr::from_multiple(&text.text).map_err(|error| fail(text.problem(&error)))?;
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

fn problem(path: &Path, why: &dyn std::fmt::Display) -> String {
    format!("`controlPlane.manifests`: {}: {why}", path.display())
}

/// The files that a search through folders has found so far.
#[derive(Default)]
struct Found {
    files: Vec<PathBuf>,
    entries: usize,
}

impl Found {
    fn add(&mut self, ground: &Ground, path: &Path, depth: usize) -> Result<(), String> {
        let fail = |why: &dyn std::fmt::Display| problem(path, why);
        let place = ground.look(path).map_err(|why| fail(&why))?;
        if !place.is_folder() {
            self.files.push(path.to_owned());
            if self.files.len() > FILES_MAX {
                return Err(format!("`controlPlane.manifests`: more than {FILES_MAX} files: name a smaller folder"));
            }
            return Ok(());
        }
        if depth == DEPTH_MAX {
            return Err(fail(&format!("is more than {DEPTH_MAX} folders deep: name a smaller folder")));
        }
        let mut inside = Vec::new();
        for entry in std::fs::read_dir(place.real()).map_err(|error| fail(&error))?.flatten() {
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                return Err(fail(&format!("has more than {ENTRIES_MAX} entries: name a smaller folder")));
            }
            let (name, path) = (entry.file_name(), path.join(entry.file_name()));
            let name = Path::new(&name);
            let is_yaml = name.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
            // A kustomization beside its resources is for another program.
            let is_other = name.file_stem().is_some_and(|stem| stem == "kustomization");
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            // A link to a folder may lead round in circles.
            let is_linked_folder = !is_folder && path_is_folder(ground, &path);
            if is_folder || (is_yaml && !is_other && !is_linked_folder) {
                inside.push(path);
            }
        }
        inside.sort();
        inside.iter().try_for_each(|path| self.add(ground, path, depth + 1))
    }
}

fn path_is_folder(ground: &Ground, path: &Path) -> bool {
    ground.look(path).is_ok_and(|place| place.is_folder())
}

/// Completes the churn of a resource and its dependents with facts from the resource's definition: the scope, and a
/// template of objects if the scenario has none.
pub fn complete(churn: &mut churn::Config, manifests: &[Manifest]) -> Result<(), String> {
    let churn::Config { resource, template, templates, scope, tree, made, .. } = churn;
    let has_template = template.is_some();
    // A template that must be refused says nothing about valid objects.
    let is_told = templates.iter().any(|sample| sample.expect == churn::Expect::Allowed);
    if is_told && template.is_none() {
        let mut none = Some(Value::Null);
        complete_one(resource, &mut none, scope, manifests).map_err(|error| format!("churn.templates: {error}"))?;
    } else {
        complete_one(resource, template, scope, manifests).map_err(|error| format!("churn.template: {error}"))?;
        *made = template.is_some() && !has_template;
    }
    let Some(churn::Tree { resource, template, scope, .. }) = tree else { return Ok(()) };
    complete_one(resource, template, scope, manifests).map_err(|error| format!("churn.tree.template: {error}"))
}

/// Completes a script with scope and templates from the definitions of its resources, as [`complete`] does for the
/// churn.
pub fn complete_script(script: &mut loadgen::script::Config, manifests: &[Manifest]) -> Result<(), String> {
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
    use super::super::reach::Reach;
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
        let ground = Ground::of(folder.path(), Reach::Folder);
        let read = |paths: &[PathBuf]| read(&ground, paths);
        let names: Vec<String> = read(&[folder.path().to_owned()]).unwrap().iter().map(Manifest::name).collect();
        assert_eq!(names, ["ConfigMap c", "Namespace b", "Secret b/s"]);
        write("c.yaml", "replicas: 3\n");
        let error = read(&[folder.path().to_owned()]).unwrap_err();
        assert!(error.contains("c.yaml: something in it has no `apiVersion`"), "{error}");
        assert!(read(&[PathBuf::from("/nowhere")]).unwrap_err().contains("/nowhere: No such file"));
    }

    /// Links in a folder are followed only to files within the scenario's reach, and never endlessly.
    #[test]
    fn links_are_followed_to_files_within_reach_only() {
        let folder = tempfile::tempdir().unwrap();
        let (inner, ground) = (folder.path().join("crds"), Ground::of(folder.path(), Reach::Folder));
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(folder.path().join("a.txt"), "{apiVersion: v1, kind: Namespace, metadata: {name: a}}").unwrap();
        for (target, link) in [("../a.txt", "a.yaml"), (".", "round.yaml"), ("..", "up")] {
            std::os::unix::fs::symlink(target, inner.join(link)).unwrap();
        }
        let names = |all: Vec<Manifest>| all.iter().map(Manifest::name).collect::<Vec<_>>();
        assert_eq!(names(read(&ground, &["crds".into()]).unwrap()), ["Namespace a"]);
        std::os::unix::fs::symlink("/proc/self/environ", inner.join("b.yaml")).unwrap();
        let error = read(&ground, &["crds".into()]).unwrap_err();
        assert!(error.starts_with("`controlPlane.manifests`: crds/b.yaml: leads out of the folder"), "{error}");
    }
}

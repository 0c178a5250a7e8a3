//! Definitions of kinds that a program asks for and its project does not have, in the modules on which it depends.
//!
//! Owns the search in the folders of Go modules that are on this machine. Downloads nothing. The number of folders,
//! files and bytes is bounded.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{manifests, yaml};

/// Maximum number of modules whose folders are looked at. A large project requires four hundred.
const MODULES_MAX: usize = 600;
/// Maximum number of entries of all folders together.
const ENTRIES_MAX: usize = 100_000;
/// Maximum depth of a folder with definitions in a module.
const DEPTH: usize = 6;
/// Maximum size of a file with definitions.
const BYTES_MAX: u64 = 4 << 20;
/// Maximum number of definitions.
const DEFINITIONS_MAX: usize = 60;
/// Parts of the paths of definitions. Other folders of a module are not opened.
const PLACES: [&str; 8] = ["crd", "config", "deploy", "manifests", "install", "charts", "bases", "definitions"];
/// Folders that have definitions for tests only.
const ASIDE: [&str; 5] = ["test", "tests", "testdata", "vendor", "hack"];

/// A definition that the program needs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Needed {
    /// The module and the file that have it.
    pub(crate) from: String,
    pub(crate) object: Value,
}

/// The definitions of groups, in the modules that the project's `go.mod` requires. `absent` are resources such as
/// `certificates.cert-manager.io`, and groups with a version such as `cert-manager.io/v1`.
pub(crate) fn definitions(project: &Path, absent: &[String]) -> Vec<Needed> {
    let groups: BTreeSet<&str> = absent.iter().filter_map(|one| group(one)).collect();
    let text = super::folder::text(project, Path::new("go.mod")).unwrap_or_default();
    let Some(cache) = cache().filter(|_| !groups.is_empty()) else { return Vec::new() };
    in_modules(&cache, &text, &groups)
}

/// The group of a resource or of a group with a version. Groups of Kubernetes itself have no definitions.
fn group(absent: &str) -> Option<&str> {
    let group = match absent.split_once('/') {
        Some((group, _)) => group,
        None => absent.split_once('.')?.1,
    };
    group.contains('.').then_some(group)
}

/// The folder in which Go keeps modules.
fn cache() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let path = || {
        let first = std::env::split_paths(&std::env::var_os("GOPATH")?).next();
        first.filter(|path| !path.as_os_str().is_empty())
    };
    let home = || variable("HOME").map(|home| home.join("go"));
    variable("GOMODCACHE").or_else(|| path().or_else(home).map(|path| path.join("pkg/mod")))
}

fn in_modules(cache: &Path, go_mod: &str, groups: &BTreeSet<&str>) -> Vec<Needed> {
    let (mut found, mut entries): (Vec<Needed>, usize) = (Vec::new(), 0);
    for (module, version) in required(go_mod).into_iter().take(MODULES_MAX) {
        let root = cache.join(format!("{}@{}", escaped(module), escaped(version)));
        let mut open = vec![(root.clone(), 0)];
        while let Some((folder, depth)) = open.pop() {
            let mut names: Vec<_> = std::fs::read_dir(&folder).into_iter().flatten().flatten().collect();
            names.sort_by_key(std::fs::DirEntry::file_name);
            for entry in names {
                entries += 1;
                if entries > ENTRIES_MAX || found.len() >= DEFINITIONS_MAX {
                    return found;
                }
                let (path, name) = (entry.path(), entry.file_name().to_string_lossy().to_lowercase());
                let Ok(kind) = entry.file_type() else { continue };
                let is_place = depth > 0 || PLACES.iter().any(|place| name.contains(place));
                if kind.is_dir() && depth < DEPTH && is_place && !ASIDE.contains(&name.as_str()) {
                    open.push((path, depth + 1));
                } else if kind.is_file() && manifests::is_manifest(&path) {
                    let file = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
                    for object in of_file(&path, groups) {
                        if found.iter().all(|known| known.object["metadata"]["name"] != object["metadata"]["name"]) {
                            found.push(Needed { from: format!("{module} {version}, {file}"), object });
                        }
                    }
                }
            }
        }
    }
    found
}

/// The definitions of these groups in a file.
fn of_file(path: &Path, groups: &BTreeSet<&str>) -> Vec<Value> {
    if path.metadata().map_or(true, |metadata| metadata.len() > BYTES_MAX) {
        return Vec::new();
    }
    let text = std::fs::read_to_string(path).unwrap_or_default();
    if !text.contains(manifests::CRD) || !groups.iter().any(|group| text.contains(group)) {
        return Vec::new();
    }
    let objects = manifests::documents(&text).into_iter().filter_map(|document| yaml::object(&document).ok());
    let is_wanted = |object: &Value| {
        let is_of_group = object["spec"]["group"].as_str().is_some_and(|group| groups.contains(group));
        object["kind"] == manifests::CRD && is_of_group && !manifests::has_template(object)
    };
    objects.filter(is_wanted).collect()
}

/// The modules that a `go.mod` requires, with their versions. Modules that other modules require come last.
fn required(go_mod: &str) -> Vec<(&str, &str)> {
    let mut all: Vec<(bool, &str, &str)> = Vec::new();
    let mut is_inside = false;
    for line in go_mod.lines().map(str::trim) {
        if is_inside && line == ")" {
            is_inside = false;
        } else if line.starts_with("require (") {
            is_inside = true;
        } else if let Some(line) = line.strip_prefix("require ").or_else(|| is_inside.then_some(line)) {
            let mut words = line.split_whitespace();
            if let (Some(module), Some(version)) = (words.next(), words.next())
                && version.starts_with('v')
                && !module.contains("..")
            {
                all.push((line.ends_with("// indirect"), module, version));
            }
        }
    }
    all.sort_by_key(|(is_indirect, ..)| *is_indirect);
    all.into_iter().map(|(_, module, version)| (module, version)).collect()
}

/// A module's path as Go writes it in its cache: a capital letter is `!` and the small letter.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for char in text.chars() {
        if char.is_ascii_uppercase() {
            escaped.push('!');
        }
        escaped.push(char.to_ascii_lowercase());
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    const GO_MOD: &str = "module example.com/shop\n\nrequire example.com/first v1.0.0\n\nrequire (\n\tgithub.com/Example/certs \
                          v2.1.0 // indirect\n\texample.com/lib v0.3.0+incompatible\n)\n";

    #[test]
    fn modules_are_read_and_named_as_go_does() {
        let lib = ("example.com/lib", "v0.3.0+incompatible");
        assert_eq!(required(GO_MOD), [("example.com/first", "v1.0.0"), lib, ("github.com/Example/certs", "v2.1.0")]);
        assert_eq!(escaped("github.com/Example/certs"), "github.com/!example/certs");
    }

    #[test]
    fn a_group_is_read_from_what_is_absent() {
        assert_eq!(group("certificates.cert-manager.io"), Some("cert-manager.io"));
        assert_eq!(group("cert-manager.io/v1"), Some("cert-manager.io"));
        assert_eq!((group("pods"), group("apps/v1")), (None, None));
    }

    #[test]
    fn the_definitions_of_a_group_are_found_in_a_dependency() {
        let cache = tempfile::tempdir().unwrap();
        let write = |path: &str, group: &str, kind: &str| {
            let path = cache.path().join("github.com/!example/certs@v2.1.0").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let text = format!(
                "kind: CustomResourceDefinition\nmetadata: {{name: {kind}s.{group}}}\nspec: {{group: {group}}}\n"
            );
            std::fs::write(path, text).unwrap();
        };
        write("deploy/crds/certs.yaml", "certs.example.com", "cert");
        write("deploy/charts/again.yaml", "certs.example.com", "cert");
        write("config/crd/bases/other.yaml", "other.example.com", "other");
        write("pkg/testdata/crd.yaml", "certs.example.com", "test");
        let found = in_modules(cache.path(), GO_MOD, &BTreeSet::from(["certs.example.com"]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].object["metadata"]["name"], "certs.certs.example.com");
        assert!(found[0].from.starts_with("github.com/Example/certs v2.1.0, deploy/"), "{}", found[0].from);
        assert!(in_modules(cache.path(), GO_MOD, &BTreeSet::from(["none.example.com"])).is_empty());
    }
}

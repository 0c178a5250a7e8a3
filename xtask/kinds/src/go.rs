//! Reads the Go types of the API for the numbers, names and pointers of fields, which OpenAPI does not publish.
//!
//! `gofmt` puts each field with its tags on a line of its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

#[derive(Debug, Clone)]
pub(crate) struct Field {
    /// The field's type as in the Go source, but with ids for the names of other packages.
    pub go: String,
    /// The field's name in JSON.
    pub json: String,
    /// The field's number in protobuf.
    pub number: u64,
    /// Whether JSON has the fields of this field's type directly in the surrounding object.
    pub inline: bool,
    /// Whether JSON leaves the field out if the value is empty.
    pub omitempty: bool,
    /// Whether JSON leaves the field out if the value is zero.
    pub omitzero: bool,
}

/// The definition of a Go type.
#[derive(Debug, Clone)]
pub(crate) enum Type {
    Struct(Vec<Field>),
    Other(String),
}

/// All types that were read, by full name, such as `core.v1.Pod`.
#[derive(Debug, Default)]
pub(crate) struct Types {
    all: BTreeMap<String, Type>,
    read: Vec<String>,
}

/// The folders of the Go modules of one Kubernetes release.
pub(crate) struct Modules {
    cache: PathBuf,
    minor: String,
}

impl Modules {
    /// `version` is a Kubernetes release, such as `1.34.1`.
    pub fn new(cache: PathBuf, version: &str) -> Result<Self> {
        let minor = version.strip_prefix("1.").with_context(|| format!("`{version}` is not a version like 1.34.1"))?;
        Ok(Self { cache, minor: minor.to_owned() })
    }

    /// The folder of the Go package with this id; `None` for a package without API objects.
    fn folder(&self, package: &str) -> Option<PathBuf> {
        let module = |name: &str| self.cache.join(format!("k8s.io/{name}@v0.{}", self.minor));
        let (group, version) = package.split_once('.')?;
        Some(match group {
            "meta" => module("apimachinery").join("pkg/apis/meta").join(version),
            "apiextensions" => module("apiextensions-apiserver").join("pkg/apis/apiextensions").join(version),
            "apiregistration" => module("kube-aggregator").join("pkg/apis/apiregistration").join(version),
            "resource" if version == "q" => return None,
            group => module("api").join(group).join(version),
        })
    }
}

/// The id of a Go package, such as `core.v1`, for its import path.
fn id(import: &str) -> Option<String> {
    let rest = ["k8s.io/api/", "k8s.io/apimachinery/pkg/apis/", "k8s.io/apiextensions-apiserver/pkg/apis/"]
        .iter()
        .chain(&["k8s.io/kube-aggregator/pkg/apis/"])
        .find_map(|prefix| import.strip_prefix(prefix))?;
    Some(rest.replace('/', "."))
}

/// The full name of a type, such as `core.v1.Pod`, for its name in OpenAPI.
pub(crate) fn published(name: &str) -> Option<String> {
    let short = name.strip_prefix("io.k8s.api.").or_else(|| name.split_once(".pkg.apis.").map(|(_, rest)| rest))?;
    Some(short.to_owned())
}

impl Types {
    /// Returns the definition of a type by its full name. If the type's Go package was not read yet, reads it first.
    pub fn get(&mut self, name: &str, modules: &Modules) -> Result<Option<Type>> {
        let Some((package, _)) = name.rsplit_once('.') else { return Ok(None) };
        if !self.read.iter().any(|known| known == package) {
            self.read.push(package.to_owned());
            let Some(folder) = modules.folder(package).filter(|folder| folder.is_dir()) else { return Ok(None) };
            self.read_package(package, &folder)?;
        }
        Ok(self.all.get(name).cloned())
    }

    fn read_package(&mut self, package: &str, folder: &Path) -> Result<()> {
        let mut files: Vec<PathBuf> = fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
        files.sort();
        for file in files.iter().filter(|file| is_source(file)) {
            let text = fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))?;
            self.read_file(package, &text).with_context(|| format!("failed to understand {}", file.display()))?;
        }
        Ok(())
    }

    fn read_file(&mut self, package: &str, text: &str) -> Result<()> {
        let imports = imports(text);
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let Some(rest) = line.strip_prefix("type ") else { continue };
            let Some((name, definition)) = rest.split_once(' ') else { continue };
            let definition = definition.split("//").next().unwrap_or_default().trim();
            let full = format!("{package}.{name}");
            if definition == "struct {}" || definition == "struct{}" {
                self.all.insert(full, Type::Struct(Vec::new()));
            } else if definition == "struct {" {
                let body = lines.by_ref().take_while(|line| *line != "}");
                let fields =
                    body.filter_map(|line| field(line, package, &imports).transpose()).collect::<Result<_>>()?;
                self.all.insert(full, Type::Struct(fields));
            } else if !definition.ends_with('{') && !name.starts_with('(') {
                self.all.insert(full, Type::Other(qualified(definition.trim_start_matches("= "), package, &imports)));
            }
        }
        Ok(())
    }
}

fn is_source(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some(stem) = name.strip_suffix(".go") else { return false };
    !stem.ends_with("_test") && !stem.starts_with("zz_") && !stem.contains("generated")
}

/// The import paths of a Go file, by the names of the packages in this file.
fn imports(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().take_while(|line| !line.starts_with("type "));
    let import = |line: &str| {
        let line = line.trim().trim_start_matches("import").trim();
        let path = line.split('"').nth(1)?;
        let alias = line.split('"').next().unwrap_or_default().trim();
        let alias = if alias.is_empty() { path.rsplit('/').next()? } else { alias };
        Some((alias.to_owned(), path.to_owned()))
    };
    lines.filter(|line| line.contains("k8s.io/")).filter_map(import).collect()
}

/// A Go type in which the names of packages are replaced by the packages' ids.
fn qualified(go: &str, package: &str, imports: &BTreeMap<String, String>) -> String {
    let base = go.trim_start_matches(['*', '[', ']']);
    let marks = &go[..go.len() - base.len()];
    if let Some((key, value)) = base.strip_prefix("map[").and_then(|rest| rest.split_once(']')) {
        let _ = key;
        return format!("{marks}map[]{}", qualified(value, package, imports));
    }
    let name = match base.split_once('.') {
        Some((alias, name)) => match imports.get(alias) {
            Some(import) => format!("{}.{name}", id(import).unwrap_or_else(|| alias.to_owned())),
            None => base.to_owned(),
        },
        None if base.starts_with(char::is_uppercase) => format!("{package}.{base}"),
        None => base.to_owned(),
    };
    format!("{marks}{name}")
}

/// Returns the field that a line declares; `None` for all other lines.
fn field(line: &str, package: &str, imports: &BTreeMap<String, String>) -> Result<Option<Field>> {
    let line = line.trim();
    if line.starts_with("//") {
        return Ok(None);
    }
    let Some((declared, tags)) = line.split_once('`') else { return Ok(None) };
    let tag = |name: &str| {
        let (_, rest) = tags.split_once(&format!("{name}:\""))?;
        rest.split('"').next()
    };
    let words: Vec<&str> = declared.split_whitespace().collect();
    let go = match words.as_slice() {
        [embedded] => *embedded,
        [_, go] => *go,
        _ => bail!("`{line}` is no field"),
    };
    if go == "metav1.TypeMeta" || go == "TypeMeta" {
        return Ok(None);
    }
    let protobuf = tag("protobuf").unwrap_or_default();
    let Some(number) = protobuf.split(',').nth(1).and_then(|number| number.parse().ok()) else { return Ok(None) };
    let named = protobuf.split(',').find_map(|part| part.strip_prefix("name=")).unwrap_or_default();
    let json = tag("json").unwrap_or(named);
    let mut parts = json.split(',');
    let name = parts.next().unwrap_or_default();
    let options: Vec<&str> = parts.collect();
    Ok(Some(Field {
        go: qualified(go, package, imports),
        json: name.to_owned(),
        number,
        inline: name.is_empty() && (options.contains(&"inline") || words.len() == 1),
        omitempty: options.contains(&"omitempty"),
        omitzero: options.contains(&"omitzero"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_struct_is_read_by_its_tags() {
        let text = "package v1\n\nimport (\n\tmetav1 \"k8s.io/apimachinery/pkg/apis/meta/v1\"\n)\n\n\
            type Thing struct {\n\tmetav1.TypeMeta `json:\",inline\"`\n\t// Old is gone.\n\
            \tSpec map[ResourceName]metav1.Time `json:\"spec,omitempty\" protobuf:\"bytes,2,opt,name=spec\"`\n\
            \tOther `json:\",inline\" protobuf:\"bytes,3,opt,name=other\"`\n\
            \tCount *int32 `json:\"count\" protobuf:\"varint,4,opt,name=count\"`\n}\n\ntype ResourceName string\n";
        let mut types = Types::default();
        types.read_file("core.v1", text).unwrap();
        let Some(Type::Struct(fields)) = types.all.get("core.v1.Thing") else { panic!("no struct") };
        let shown: Vec<String> = fields
            .iter()
            .map(|field| format!("{}:{}:{}:{}:{}", field.number, field.json, field.go, field.inline, field.omitempty))
            .collect();
        assert_eq!(
            shown,
            ["2:spec:map[]meta.v1.Time:false:true", "3::core.v1.Other:true:false", "4:count:*int32:false:false"]
        );
        assert!(matches!(types.all.get("core.v1.ResourceName"), Some(Type::Other(go)) if go == "string"));
    }
}

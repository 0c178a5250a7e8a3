//! The file `PROJECT`, in which kubebuilder and operator-sdk record the layout of a project. Does no I/O.

use serde::Deserialize;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Project {
    /// The layout, such as `go.kubebuilder.io/v4`.
    pub(crate) layout: String,
    pub(crate) is_operator_sdk: bool,
    pub(super) name: Option<String>,
    /// The kinds with a controller, as group and kind, in the order of the file.
    pub(super) controlled: Vec<(String, String)>,
    /// The number of kinds whose API the project defines.
    pub(super) apis: usize,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct File {
    domain: String,
    layout: Layout,
    plugins: serde_json::Map<String, serde_json::Value>,
    project_name: Option<String>,
    resources: Vec<Resource>,
    version: serde_json::Value,
}

/// The layout in the file `PROJECT`: a list since version 3 of the file, a string in earlier versions.
#[derive(Deserialize)]
#[serde(untagged)]
enum Layout {
    One(String),
    Several(Vec<String>),
}

impl Default for Layout {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Resource {
    api: Option<serde::de::IgnoredAny>,
    controller: bool,
    domain: String,
    group: String,
    kind: String,
}

/// The key under which operator-sdk records its plugins.
const OPERATOR_SDK: &str = "sdk.operatorframework.io";
/// The layout for version 2 of the file, which does not name its layout.
const OLD: &str = "go.kubebuilder.io/v2";

/// Parses the file; `None` if another program uses the same file name.
pub(super) fn read(text: &str) -> Option<Project> {
    let file: File = serde_saphyr::from_str(text).ok()?;
    if file.version.is_null() {
        return None;
    }
    let layouts = match file.layout {
        Layout::One(layout) => vec![layout],
        Layout::Several(layouts) => layouts,
    };
    let is_operator_sdk = file.plugins.keys().any(|plugin| plugin.contains(OPERATOR_SDK))
        || layouts.iter().any(|one| one.contains(OPERATOR_SDK));
    let full = |resource: &Resource| {
        // Since version 3 the group and its domain are separate.
        let domain = if resource.domain.is_empty() { &file.domain } else { &resource.domain };
        match (resource.group.is_empty(), domain.is_empty()) {
            (true, _) => domain.clone(),
            (_, true) => resource.group.clone(),
            _ => format!("{}.{domain}", resource.group),
        }
    };
    let controlled = file.resources.iter().filter(|resource| resource.controller);
    Some(Project {
        layout: layouts.into_iter().next().unwrap_or_else(|| OLD.to_owned()),
        is_operator_sdk,
        name: file.project_name,
        controlled: controlled.map(|resource| (full(resource), resource.kind.clone())).collect(),
        apis: file.resources.iter().filter(|resource| resource.api.is_some()).count(),
    })
}

impl Project {
    /// The name of the tool that wrote the file.
    pub(crate) fn tool(&self) -> &'static str {
        if self.is_operator_sdk { "operator-sdk" } else { "kubebuilder" }
    }

    pub(crate) fn is_go(&self) -> bool {
        self.layout.starts_with("go.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_of_all_versions_are_read() {
        let project = read(
            "domain: example.com\nlayout: [go.kubebuilder.io/v4]\nprojectName: shop\nresources:\n\
             - {api: {crdVersion: v1, namespaced: true}, controller: true, domain: example.com, group: shop, kind: Basket, version: v1}\n\
             - {controller: true, group: apps, kind: Deployment, version: v1}\nversion: \"3\"\n",
        )
        .unwrap();
        assert_eq!((project.layout.as_str(), project.name.as_deref()), ("go.kubebuilder.io/v4", Some("shop")));
        assert_eq!(project.controlled[0], ("shop.example.com".to_owned(), "Basket".to_owned()));
        assert_eq!((project.apis, project.tool(), project.is_go()), (1, "kubebuilder", true));
        let sdk = read(
            "layout: ansible.sdk.operatorframework.io/v1\nplugins:\n  manifests.sdk.operatorframework.io/v2: {}\nversion: \"3\"\n",
        )
        .unwrap();
        assert_eq!((sdk.tool(), sdk.is_go()), ("operator-sdk", false));
        assert_eq!(read("version: \"2\"\ndomain: a.b\n").unwrap().layout, "go.kubebuilder.io/v2");
    }

    #[test]
    fn another_file_of_that_name_is_none() {
        for text in ["", "My project\n==========\n", "- a\n", "name: x\n"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}

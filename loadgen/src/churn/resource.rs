//! The resources that can be churned, and how they are written. Pure: no I/O.

use std::borrow::Cow;

use super::Error;

/// The texts that name a resource in a scenario, for messages and documentation.
pub const SPELLINGS: &str = "`packages.longhaul.dev/v1alpha1` (plural.group/version), `apps/v1/deployments` \
    (group/version/plural), `v1/configmaps` or `v1/secrets` (the core group)";

/// Whether objects are in namespaces, as in a `CustomResourceDefinition`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub enum Scope {
    /// The objects are in namespaces.
    Namespaced,
    /// The objects are cluster-wide.
    Cluster,
}

/// A resource with its API path, and the source of the contents of its objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resource {
    pub group: Cow<'static, str>,
    pub version: Cow<'static, str>,
    pub plural: Cow<'static, str>,
    pub kind: Cow<'static, str>,
    pub shape: Shape,
    pub is_namespaced: bool,
}

/// How the contents of objects are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Package,
    ConfigMap,
    Secret,
    Deployment,
    /// The contents come from a template.
    Template,
}

const KNOWN: [Resource; 4] = [
    known("longhaul.dev", "v1alpha1", "packages", "Package", Shape::Package),
    known("", "v1", "configmaps", "ConfigMap", Shape::ConfigMap),
    known("", "v1", "secrets", "Secret", Shape::Secret),
    known("apps", "v1", "deployments", "Deployment", Shape::Deployment),
];

const fn known(
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    kind: &'static str,
    shape: Shape,
) -> Resource {
    Resource {
        group: Cow::Borrowed(group),
        version: Cow::Borrowed(version),
        plural: Cow::Borrowed(plural),
        kind: Cow::Borrowed(kind),
        shape,
        is_namespaced: true,
    }
}

impl Resource {
    /// Parses one of the [`SPELLINGS`].
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let (group, version, plural) = split(text).unwrap_or(("", "", text));
        let found = KNOWN.into_iter().find(|known| {
            (known.group.as_ref(), known.version.as_ref(), known.plural.as_ref()) == (group, version, plural)
        });
        found.ok_or_else(|| Error::Config {
            key: "resource",
            problem: format!("`{text}` cannot be churned: write one of {SPELLINGS}"),
        })
    }

    /// Parses any resource in one of the [`SPELLINGS`]; its objects come from a template.
    pub(crate) fn any(text: &str, kind: &str, is_namespaced: bool) -> Result<Self, Error> {
        let refuse =
            || Error::Config { key: "resource", problem: format!("`{text}` is no resource: write it as {SPELLINGS}") };
        collection_path(text).ok_or_else(refuse)?;
        let (group, version, plural) = split(text).ok_or_else(refuse)?;
        let own = |text: &str| Cow::Owned(text.to_owned());
        Ok(Self {
            group: own(group),
            version: own(version),
            plural: own(plural),
            kind: own(kind),
            shape: Shape::Template,
            is_namespaced,
        })
    }

    /// The name of the resource, such as `packages.longhaul.dev`, or `configmaps` in the core group.
    pub(crate) fn name(&self) -> String {
        if self.group.is_empty() { self.plural.to_string() } else { format!("{}.{}", self.plural, self.group) }
    }

    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_string() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The URL path of all objects of the resource, in all namespaces.
    pub(crate) fn path(&self) -> String {
        format!("{}/{}", self.root(), self.plural)
    }

    /// The URL path of the resource's objects in a namespace, or of all objects if they are cluster-wide.
    pub(crate) fn path_in(&self, namespace: &str) -> String {
        if !self.is_namespaced {
            return self.path();
        }
        format!("{}/namespaces/{namespace}/{}", self.root(), self.plural)
    }

    fn root(&self) -> String {
        if self.group.is_empty() { format!("/api/{}", self.version) } else { format!("/apis/{}", self.api_version()) }
    }
}

/// Whether this crate has built-in contents for objects of this resource.
pub fn is_known(text: &str) -> bool {
    Resource::parse(text).is_ok()
}

/// Group, version and plural name of any resource in one of the [`SPELLINGS`].
fn split(text: &str) -> Option<(&str, &str, &str)> {
    let parts: Vec<&str> = text.split('/').collect();
    match parts[..] {
        [group, version, plural] => Some((group, version, plural)),
        [version, plural] if is_version(version) => Some(("", version, plural)),
        [name, version] => {
            let (plural, group) = name.split_once('.').unwrap_or((name, ""));
            Some((group, version, plural))
        }
        _ => None,
    }
}

/// The URL path of all objects of a resource, in all namespaces; `None` if the text is not one of the [`SPELLINGS`].
pub fn collection_path(text: &str) -> Option<String> {
    let (group, version, plural) = split(text)?;
    let word =
        |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.');
    if !is_version(version) || !word(version) || !word(plural) {
        return None;
    }
    match group {
        "" => Some(format!("/api/{version}/{plural}")),
        _ if word(group) => Some(format!("/apis/{group}/{version}/{plural}")),
        _ => None,
    }
}

/// The names `packages.longhaul.dev` and `packages.longhaul.dev/v1alpha1` (`configmaps` and `configmaps/v1` in the core
/// group) of any resource; `None` if the text is not one of the [`SPELLINGS`].
pub fn names(text: &str) -> Option<(String, String)> {
    collection_path(text)?;
    let (group, version, plural) = split(text)?;
    let name = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
    let watch = format!("{name}/{version}");
    Some((name, watch))
}

fn is_version(text: &str) -> bool {
    text.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_and_paths() {
        for (text, path) in [
            ("packages.longhaul.dev/v1alpha1", "/apis/longhaul.dev/v1alpha1/namespaces/n/packages"),
            ("longhaul.dev/v1alpha1/packages", "/apis/longhaul.dev/v1alpha1/namespaces/n/packages"),
            ("v1/configmaps", "/api/v1/namespaces/n/configmaps"),
            ("configmaps/v1", "/api/v1/namespaces/n/configmaps"),
            ("deployments.apps/v1", "/apis/apps/v1/namespaces/n/deployments"),
        ] {
            assert_eq!(Resource::parse(text).unwrap().path_in("n"), path, "{text}");
        }
        assert_eq!(collection_path("v1/pods").unwrap(), "/api/v1/pods");
        assert_eq!(collection_path("jobs.batch/v1").unwrap(), "/apis/batch/v1/jobs");
        assert_eq!(names("v1/pods").unwrap(), ("pods".to_owned(), "pods/v1".to_owned()));
        let packages = ("packages.longhaul.dev".to_owned(), "packages.longhaul.dev/v1alpha1".to_owned());
        assert_eq!(names("longhaul.dev/v1alpha1/packages").unwrap(), packages);
        for text in ["", "pods", "v1/", "/v1/pods/x", "a/b/c/d", "v1/po?ds"] {
            assert_eq!(collection_path(text), None, "{text}");
        }
        for text in ["", "packages", "v1/pods", "apps/v2/deployments", "a/b/c/d"] {
            let error = Resource::parse(text).unwrap_err().to_string();
            assert!(error.contains("write one of `packages.longhaul.dev/v1alpha1`"), "{error}");
        }
    }
}

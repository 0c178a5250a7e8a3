//! `mounts` of a command: folders that a kubelet would mount into the command's container.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of mounted folders of a command. Real programs have a few mounted folders.
const MOUNTS_MAX: usize = 16;

/// The content of a mounted folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Mount {
    /// Token, authority certificate and namespace of a service account in the named namespace. The program also gets
    /// `KUBERNETES_SERVICE_HOST` and `KUBERNETES_SERVICE_PORT`, so its in-cluster configuration leads to the API server
    /// of the run.
    ServiceAccount(String),
    /// The data of the Secret `NAMESPACE/NAME`, one file for each key. A change of the Secret appears in the files
    /// within a second.
    Secret(String),
    /// The data of the `ConfigMap` `NAMESPACE/NAME`, one file for each key. A change of the `ConfigMap` appears in the
    /// files within a second.
    ConfigMap(String),
}

impl Mount {
    /// Resource, namespace and name of the object whose data is mounted; `None` for a service account.
    pub fn object(&self) -> Option<(&'static str, &str, &str)> {
        let (resource, object) = match self {
            Self::ServiceAccount(_) => return None,
            Self::Secret(object) => ("secrets", object),
            Self::ConfigMap(object) => ("configmaps", object),
        };
        object.split_once('/').map(|(namespace, name)| (resource, namespace, name))
    }
}

/// Refuses invalid paths and names of mounts.
///
/// # Errors
///
/// The error has the invalid path or name, and an example of a valid one.
pub fn check(mounts: &BTreeMap<PathBuf, Mount>) -> Result<(), String> {
    if mounts.len() > MOUNTS_MAX {
        return Err(format!("`mounts`: there are {}; at most {MOUNTS_MAX}", mounts.len()));
    }
    for (path, mount) in mounts {
        let at = path.display();
        if !is_plain(path) {
            return Err(format!(
                "`mounts`: `{at}`: a path begins with `/`, has neither `.` nor `..`, and is not `/tmp`"
            ));
        }
        if mounts.keys().any(|other| other != path && path.starts_with(other)) {
            return Err(format!("`mounts`: `{at}` lies in another one: name folders that are beside each other"));
        }
        let is_name = |text: &str| {
            !text.is_empty()
                && text.len() <= 253
                && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c))
        };
        let is_fine = match (mount, mount.object()) {
            (Mount::ServiceAccount(namespace), _) => is_name(namespace),
            (_, Some((_, namespace, name))) => is_name(namespace) && is_name(name),
            (_, None) => false,
        };
        if !is_fine {
            let form = "`{serviceAccount: NAMESPACE}`, `{secret: NAMESPACE/NAME}` or `{configMap: NAMESPACE/NAME}`";
            return Err(format!("`mounts`: `{at}`: write {form}"));
        }
    }
    Ok(())
}

fn is_plain(path: &Path) -> bool {
    let mut parts = path.components();
    parts.next() == Some(Component::RootDir)
        && path.components().count() > 1
        && path != Path::new("/tmp")
        && parts.all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(path: &str, mount: Mount) -> String {
        check(&BTreeMap::from([(PathBuf::from(path), mount)])).err().unwrap_or_default()
    }

    #[test]
    fn paths_and_names_are_checked() {
        let secret = |name: &str| Mount::Secret(name.to_owned());
        assert_eq!(refusal("/certs", secret("shop-system/hook-cert")), "");
        assert_eq!(refusal("/var/run/account", Mount::ServiceAccount("default".to_owned())), "");
        for path in ["certs", "/", "/a/../b", "/tmp"] {
            assert!(refusal(path, secret("a/b")).contains("a path begins with `/`"), "{path}");
        }
        for name in ["hook-cert", "/a", "a/", "a/b/c", "A/b"] {
            assert!(refusal("/certs", secret(name)).contains("NAMESPACE/NAME"), "{name}");
        }
        let nested = ["/a", "/a/b"].map(|path| (PathBuf::from(path), secret("a/b")));
        assert!(check(&BTreeMap::from(nested)).unwrap_err().contains("`/a/b` lies in another one"));
        assert_eq!(secret("a/b").object(), Some(("secrets", "a", "b")));
    }
}

//! Reads the files that the control planes of a suite have written.
//!
//! Groups the files by control plane, because a revision has a meaning only in its own control plane.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use mock_envtest::{CommitLine, HitLine, RequestLine, ShownLine, Summary};
use serde::de::DeserializeOwned;

#[derive(Debug, Default)]
pub(super) struct Plane {
    pub summary: Summary,
    pub requests: Vec<RequestLine>,
    pub commits: Vec<CommitLine>,
    pub shown: Vec<ShownLine>,
    pub hits: Vec<HitLine>,
}

/// All control planes of a record, in the order of their files.
pub(super) fn read(record: &Path) -> Result<Vec<Plane>> {
    let mut planes = Vec::new();
    for file in files(record, ".summary.json")? {
        let text = std::fs::read(&file).with_context(|| format!("failed to read {}", file.display()))?;
        let summary: Summary =
            serde_json::from_slice(&text).with_context(|| format!("{} is broken", file.display()))?;
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let of = |what: &str| record.join(name.replace("summary.json", what));
        planes.push(Plane {
            summary,
            requests: lines(&of("requests.jsonl"))?,
            commits: lines(&of("commits.jsonl"))?,
            shown: lines(&of("shown.jsonl"))?,
            hits: lines(&of("hits.jsonl"))?,
        });
    }
    Ok(planes)
}

fn files(record: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(record).with_context(|| format!("failed to read {}", record.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.file_name().is_some_and(|name| name.to_string_lossy().ends_with(ending)));
    files.sort();
    Ok(files)
}

/// The parsed lines of a file. If the process was killed, the last line may be incomplete.
fn lines<T: DeserializeOwned>(file: &Path) -> Result<Vec<T>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))?;
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// The object or the kind that the URL path of a request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ResourcePath<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    pub plural: &'a str,
    pub namespace: Option<&'a str>,
    pub name: Option<&'a str>,
    pub subresource: Option<&'a str>,
}

impl<'a> ResourcePath<'a> {
    /// Parses a path such as `/apis/apps/v1/namespaces/a/deployments/b/status`; `None` if the path names no resource.
    pub fn of(path: &'a str) -> Option<Self> {
        let mut parts = path.split('/').skip(1);
        let group = match parts.next()? {
            "api" => "",
            "apis" => parts.next()?,
            _ => return None,
        };
        let _version = parts.next()?;
        let rest: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        let (namespace, rest) = match rest.as_slice() {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() && !matches!(rest, ["status" | "finalize"]) => {
                (Some(*namespace), rest)
            }
            rest => (None, rest),
        };
        Some(Self {
            group,
            plural: rest.first().copied()?,
            namespace,
            name: rest.get(1).copied(),
            subresource: rest.get(2).copied(),
        })
    }

    /// Whether the path names this resource, such as `deployments.apps`.
    pub fn is_of(&self, resource: &str) -> bool {
        let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
        plural == self.plural && group == self.group
    }

    /// The resource with its group, such as `deployments.apps`.
    pub fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_about_objects() {
        let place = |path| ResourcePath::of(path).map(|place| (place.resource(), place.namespace, place.name));
        assert_eq!(
            place("/apis/apps/v1/namespaces/a/deployments/b/status"),
            Some(("deployments.apps".to_owned(), Some("a"), Some("b")))
        );
        assert_eq!(place("/api/v1/namespaces/a/pods"), Some(("pods".to_owned(), Some("a"), None)));
        assert_eq!(place("/api/v1/namespaces/a"), Some(("namespaces".to_owned(), None, Some("a"))));
        assert_eq!(place("/api/v1/namespaces/a/finalize"), Some(("namespaces".to_owned(), None, Some("a"))));
        assert_eq!(place("/healthz"), None);
        assert!(ResourcePath::of("/apis/apps/v1/deployments").unwrap().is_of("deployments.apps"));
    }
}

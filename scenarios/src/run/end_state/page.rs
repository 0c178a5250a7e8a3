//! The subject's state page: the subject's objects as JSON lines, and a checksum if the subject offers one.

use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::compare::Believed;
use super::list::Item;
use crate::fetch;

/// Timeout and size limit of an answer. The largest population with long names fits into this size.
const LIMITS: fetch::Limits = fetch::Limits { answer: Duration::from_secs(10), bytes: 64 << 20 };

/// URL paths of the state page and of its checksum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Page {
    /// Path of a page with one JSON object per line: `namespace`, `name`, `uid`, `resourceVersion`, and `resource` if
    /// the page covers several resources.
    pub(super) objects: String,
    /// Path of a page with one JSON object: `resource`, `objects` and `checksum`.
    pub(super) checksum: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Read {
    /// The number of objects in the subject's state, and their checksum.
    Checksum(u64, String),
    Objects(Vec<Believed>),
}

#[derive(Deserialize)]
struct Sum {
    resource: String,
    objects: u64,
    checksum: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(default)]
    resource: Option<String>,
    #[serde(default)]
    namespace: String,
    name: String,
    uid: String,
    resource_version: String,
}

impl Page {
    /// Reads the checksum, if the subject has a page for the checksum.
    pub(super) async fn checksum(&self, resource: &str) -> Result<Option<Read>, String> {
        let Some(url) = &self.checksum else { return Ok(None) };
        let sum: Sum = serde_json::from_slice(&get(url).await?)
            .map_err(|error| format!("GET {url} answers no page with a checksum: {error}"))?;
        if sum.resource != resource {
            return Err(format!("GET {url} lists {}, not {resource}", sum.resource));
        }
        Ok(Some(Read::Checksum(sum.objects, sum.checksum)))
    }

    pub(super) async fn objects(&self, resource: &str) -> Result<Read, String> {
        let text = get(&self.objects).await?;
        lines(&text, resource).map(Read::Objects).map_err(|error| format!("GET {}: {error}", self.objects))
    }
}

/// Parses the lines of the state page, and returns the objects of one resource.
fn lines(text: &[u8], resource: &str) -> Result<Vec<Believed>, String> {
    let mut all = Vec::new();
    for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let line: Line = serde_json::from_slice(line).map_err(|error| {
            format!("line {} is no object with `namespace`, `name`, `uid` and `resourceVersion`: {error}", number + 1)
        })?;
        if line.resource.as_deref().is_none_or(|told| told == resource) {
            all.push(Believed {
                namespace: line.namespace,
                name: line.name,
                uid: line.uid,
                revision: Some(line.resource_version),
            });
        }
    }
    Ok(all)
}

/// The checksum of objects: SHA-256, in hexadecimal, over the sorted lines `uid resourceVersion`, each with a newline.
pub(super) fn checksum(items: &[Item]) -> String {
    let mut lines: Vec<String> = items.iter().map(|item| format!("{} {}\n", item.uid, item.revision)).collect();
    lines.sort_unstable();
    hex::encode(lines.iter().fold(Sha256::new(), Sha256::chain_update).finalize())
}

async fn get(url: &str) -> Result<Bytes, String> {
    fetch::Page::new(url, LIMITS)?.get().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_other_resources_are_skipped_and_others_refused_with_their_number() {
        let text = br#"{"namespace": "n", "name": "a", "uid": "1", "resourceVersion": "7"}
{"resource": "pods", "name": "b", "uid": "2", "resourceVersion": "8"}

{"resource": "packages", "name": "c", "uid": "3", "resourceVersion": "9", "more": true}
"#;
        let names: Vec<String> = lines(text, "packages").unwrap().into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["a", "c"]);
        let error = lines(b"{\"name\": \"a\"}\n", "packages").unwrap_err();
        assert!(error.starts_with("line 1 is no object with `namespace`"), "{error}");
    }
}

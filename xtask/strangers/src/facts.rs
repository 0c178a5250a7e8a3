//! Reads facts about a published program from the record of a run. The only I/O of this module is reading the record's
//! files.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum number of bytes that are read from one file of a record.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// Resources that a program writes even if it has no objects to handle.
const BESIDE: [&str; 4] =
    ["leases.coordination.k8s.io", "events", "events.events.k8s.io", "subjectaccessreviews.authorization.k8s.io"];
/// Maximum number of kinds of objects that docs/measured/strangers.md names.
const KINDS_SHOWN: usize = 5;

/// A finding in docs/measured/strangers.md.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sentence {
    pub(crate) budget: String,
    pub(crate) text: String,
}

/// The outcome of a run with a published program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Facts {
    pub(crate) verdict: String,
    pub(crate) reason: String,
    pub(crate) failed: Vec<Sentence>,
    /// Findings of the run whose budgets stayed undecided.
    pub(crate) undecided: Vec<Sentence>,
    /// Why the run is invalid; empty if it is valid.
    pub(crate) invalid: Vec<Sentence>,
    /// The resources that the run changed, if the manifest names them.
    pub(crate) judged: Vec<String>,
    /// Number of requests by the subject.
    pub(crate) requests: u64,
    /// Number of the subject's successful lists and watches of the resources in `judged`.
    pub(crate) followed: u64,
    /// Number of the subject's successful writes by verb and resource, without Leases, Events and similar objects.
    pub(crate) writes: BTreeMap<String, u64>,
    /// Number of requests that were refused with 4xx, by verb, resource and status; 404 and 409 do not count.
    pub(crate) refused: BTreeMap<String, u64>,
    /// Number of observations by the subject's witness.
    pub(crate) observed: u64,
    /// Number of calls of the subject's webhooks.
    pub(crate) called: u64,
    /// Number of object versions that the run wrote for the subject to observe.
    pub(crate) commits: u64,
}

impl Facts {
    /// Reads a record that has a verdict.
    ///
    /// # Errors
    ///
    /// Fails if the record has no verdict.
    pub(crate) fn read(record: &Path) -> Result<Self> {
        let verdict: Value = serde_json::from_str(&text(&record.join("verdict.json"))?).context("verdict.json")?;
        let mut facts = Self {
            verdict: verdict["verdict"].as_str().unwrap_or_default().to_owned(),
            reason: verdict["reason"].as_str().unwrap_or_default().to_owned(),
            failed: sentences(&verdict, "fail"),
            undecided: sentences(&verdict, "inconclusive"),
            invalid: sentences(&verdict, "invalid"),
            ..Self::default()
        };
        if let Ok(manifest) = serde_json::from_str::<Value>(&text(&record.join("manifest.json"))?) {
            let judged = manifest["judged"].as_array().into_iter().flatten();
            facts.judged = judged.filter_map(|one| one.as_str().map(str::to_owned)).collect();
        }
        lines(&record.join("intervals.jsonl"), |row| facts.interval(row));
        lines(&record.join("requests.jsonl"), |row| facts.request(row));
        Ok(facts)
    }

    fn interval(&mut self, row: &Value) {
        let number = |pointer: &str| row.pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
        self.requests += number("/api/subjectRequests");
        self.observed += number("/events/observations");
        self.commits += number("/events/commits");
        let hooks = row["webhooks"].as_array().into_iter().flatten();
        self.called += hooks.filter_map(|hook| hook["calls"].as_u64()).sum::<u64>();
    }

    fn request(&mut self, row: &Value) {
        let word = |name: &str| row[name].as_str().unwrap_or_default();
        let (verb, resource, status) = (word("verb"), word("resource"), row["status"].as_u64().unwrap_or_default());
        if resource.is_empty() || BESIDE.contains(&resource) {
            return;
        }
        let is_answered = (200..300).contains(&status);
        match verb {
            "list" | "watch" if is_answered && self.judged.iter().any(|one| one == resource) => self.followed += 1,
            "create" | "update" | "patch" | "delete" | "delete-collection" if is_answered => {
                *self.writes.entry(format!("{verb} {resource}")).or_default() += 1;
            }
            _ => {}
        }
        if (400..500).contains(&status) && status != 404 && status != 409 {
            *self.refused.entry(format!("{verb} {resource}: {status}")).or_default() += 1;
        }
    }

    /// Whether the subject sent a request in a run that wrote objects or called a webhook.
    pub(crate) fn is_started(&self) -> bool {
        self.requests > 0 && (self.commits > 0 || self.called > 0)
    }

    /// Whether the subject wrote an object or answered a webhook call.
    pub(crate) fn is_exercised(&self) -> bool {
        self.is_started() && (!self.writes.is_empty() || self.called > 0)
    }

    /// Number of the subject's writes.
    pub(crate) fn written(&self) -> u64 {
        self.writes.values().sum()
    }

    /// The kinds of objects that the subject wrote most often, as text.
    pub(crate) fn most_written(&self) -> String {
        most(&self.writes)
    }

    /// The kinds of the subject's requests that the API server refused most often, as text.
    pub(crate) fn most_refused(&self) -> String {
        most(&self.refused)
    }
}

fn most(counts: &BTreeMap<String, u64>) -> String {
    let mut sorted: Vec<_> = counts.iter().collect();
    sorted.sort_by_key(|(name, times)| (std::cmp::Reverse(**times), (*name).clone()));
    let shown: Vec<String> = sorted.iter().take(KINDS_SHOWN).map(|(name, times)| format!("{name} ({times})")).collect();
    shown.join(", ")
}

fn sentences(verdict: &Value, word: &str) -> Vec<Sentence> {
    let findings = verdict["findings"].as_array().into_iter().flatten().filter(|finding| finding["verdict"] == word);
    let field = |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    findings.map(|one| Sentence { budget: field(one, "budget"), text: without_home(&field(one, "text")) }).collect()
}

/// Removes the path of the home folder from a text. The document is public, and a program's output may name files in
/// the home folder.
fn without_home(text: &str) -> String {
    match std::env::var("HOME") {
        Ok(home) if home.len() > 1 => text.replace(&home, "~"),
        _ => text.to_owned(),
    }
}

fn text(path: &Path) -> Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path).with_context(|| format!("there is no {}", path.display()))?;
    file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// Passes the JSON lines of a file to `take`, if the file exists; an incomplete line is left out.
fn lines(path: &Path, mut take: impl FnMut(&Value)) {
    let Ok(file) = std::fs::File::open(path) else { return };
    for line in BufReader::new(file.take(FILE_BYTES_MAX)).lines().map_while(Result::ok) {
        if let Ok(row) = serde_json::from_str::<Value>(&line) {
            take(&row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_tells_what_it_did() {
        let record = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(record.path().join(name), text).unwrap();
        write(
            "verdict.json",
            r#"{"verdict": "fail", "reason": "r", "findings": [{"verdict": "fail", "budget": "events.missed", "text": "two are missed"},
               {"verdict": "pass", "budget": "events.late", "text": "none"}]}"#,
        );
        write("manifest.json", r#"{"judged": ["shops.example.com"]}"#);
        write(
            "intervals.jsonl",
            "{\"api\": {\"subjectRequests\": 7}, \"events\": {\"commits\": 3, \"observations\": 2}}\n{\"webhooks\": [{\"name\": \"a\", \"calls\": 4}]}\n",
        );
        let rows = [
            ("list", "shops.example.com", 200),
            ("update", "shops.example.com", 200),
            ("update", "shops.example.com", 409),
            ("create", "deployments.apps", 422),
            ("create", "leases.coordination.k8s.io", 201),
        ];
        let rows = rows.map(|(verb, resource, status)| {
            serde_json::json!({"kind": "request", "verb": verb, "resource": resource, "status": status}).to_string()
        });
        write("requests.jsonl", &rows.join("\n"));
        let facts = Facts::read(record.path()).unwrap();
        assert_eq!((facts.requests, facts.commits, facts.observed, facts.called, facts.followed), (7, 3, 2, 4, 1));
        assert_eq!(facts.most_written(), "update shops.example.com (1)");
        assert_eq!(facts.most_refused(), "create deployments.apps: 422 (1)");
        assert_eq!(facts.failed[0].text, "two are missed");
        assert!(facts.is_exercised());
    }

    #[test]
    fn a_record_without_a_verdict_is_none() {
        assert!(Facts::read(tempfile::tempdir().unwrap().path()).is_err());
    }
}

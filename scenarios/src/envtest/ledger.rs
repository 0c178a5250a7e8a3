//! What the control planes of a suite left behind, put together.
//!
//! Owns what is notable: refusals, conflicts, hot loops, watches that were left open, faults without effect, and what of it belongs to which
//! test. It reads files and judges nothing but what `--judge` asks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use mock_envtest::{CommitLine, HitLine, RequestLine, Summary};
use mock_faults::Fault;
use reports::exit;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Counts;
use super::results::{self, Test};

/// So many writes of one object within a second are a loop that waits for nothing.
const HOT_WRITES: usize = 20;
/// So many equal requests within a second are one too.
const HOT_REQUESTS: usize = 60;
const SECOND_US: u64 = 1_000_000;
/// Rows of a list that are kept; suites of thousands of tests have more of some.
const ROWS_MAX: usize = 1000;

/// A suite's ledger.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Ledger {
    pub planes: usize,
    pub requests: usize,
    pub commits: usize,
    pub hits: usize,
    /// Faults that began and hit nothing, by name.
    pub without_effect: Vec<String>,
    /// Requests that were answered with 4xx or 5xx, by what they were: 404 and 409 are counted apart.
    pub refused: BTreeMap<String, u64>,
    /// Writes that were answered with 409.
    pub conflicts: BTreeMap<String, u64>,
    /// Objects and requests that came again and again within a second, and how often at most.
    pub hot: BTreeMap<String, usize>,
    /// What roles did not allow, by user.
    pub denied: BTreeMap<String, u64>,
    /// Watches that were open when their control plane ended, by user.
    pub watches_left: BTreeMap<String, u64>,
    /// The least that everybody needs, as YAML.
    pub roles: BTreeSet<String>,
    pub tests: Vec<Row>,
    pub fault_hits: Vec<HitLine>,
    pub lines_lost: u64,
    /// Files of the suite that could not be read, and why.
    pub unread: Vec<String>,
}

/// What happened while a test ran.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    pub name: String,
    pub failed: bool,
    pub took_ms: u64,
    pub requests: usize,
    pub conflicts: usize,
    /// Objects that were written.
    pub objects: usize,
    /// What faults did meanwhile.
    pub hits: Vec<String>,
}

impl Ledger {
    /// Reads what the planes of a folder wrote, and what the suite wrote of its tests.
    pub(super) fn read(record: &Path, results: &[PathBuf], faults: &[Fault]) -> Result<Self> {
        let mut ledger = Self::default();
        let (mut requests, mut commits) = (Vec::new(), Vec::new());
        for file in files(record, "summary.json")? {
            let text = std::fs::read(&file).with_context(|| format!("failed to read {}", file.display()))?;
            let summary: Summary =
                serde_json::from_slice(&text).with_context(|| format!("{} is broken", file.display()))?;
            ledger.planes += 1;
            for (user, verb, times) in summary.denied {
                *ledger.denied.entry(format!("{user} may not {verb}")).or_default() += times;
            }
            for (user, open) in summary.watches_open {
                *ledger.watches_left.entry(user).or_default() += open;
            }
            ledger.roles.insert(summary.roles);
            ledger.lines_lost += summary.lines_lost;
        }
        for file in files(record, "requests.jsonl")? {
            requests.extend(lines::<RequestLine>(&file)?);
        }
        for file in files(record, "commits.jsonl")? {
            commits.extend(lines::<CommitLine>(&file)?);
        }
        for file in files(record, "hits.jsonl")? {
            ledger.fault_hits.extend(lines::<HitLine>(&file)?);
        }
        let mut tests = Vec::new();
        for file in results {
            // A suite that did not compile wrote none.
            match std::fs::read_to_string(file) {
                Ok(text) => tests.extend(results::tests(&text)),
                Err(error) => {
                    ledger.unread.push(format!("failed to read {}, which `--results` names: {error}", file.display()));
                }
            }
        }
        ledger.count(&requests, &commits, tests, faults);
        Ok(ledger)
    }

    fn count(&mut self, requests: &[RequestLine], commits: &[CommitLine], tests: Vec<Test>, faults: &[Fault]) {
        (self.requests, self.commits, self.hits) = (requests.len(), commits.len(), self.fault_hits.len());
        let named: BTreeSet<&str> = self.fault_hits.iter().map(|hit| hit.fault.as_str()).collect();
        let unhit: BTreeSet<&str> =
            faults.iter().map(|fault| fault.name.as_str()).filter(|name| !named.contains(name)).collect();
        self.without_effect = unhit.into_iter().map(str::to_owned).collect();
        for request in requests.iter().filter(|request| request.status >= 400) {
            let what = format!("{} {} {}", request.status, request.method, template(&request.path));
            match request.status {
                404 => {}
                409 => *self.conflicts.entry(what).or_default() += 1,
                _ => *self.refused.entry(what).or_default() += 1,
            }
        }
        let written = commits.iter().filter(|commit| commit.change == "modified").map(|commit| {
            let place = [commit.resource.as_str(), &commit.namespace, &commit.name].join(" ");
            (format!("writes of {place}"), commit.at_us)
        });
        self.hot = hot(written, HOT_WRITES);
        let asked =
            requests.iter().filter(|request| request.path.starts_with("/api") && !request.query.contains("watch="));
        let asked = asked
            .map(|request| (format!("{} {} by {}", request.method, request.path, request.user_agent), request.at_us));
        self.hot.extend(hot(asked, HOT_REQUESTS));
        self.tests = tests.into_iter().take(ROWS_MAX).map(|test| self.row(&test, requests, commits)).collect();
        self.fault_hits.truncate(ROWS_MAX);
    }

    fn row(&self, test: &Test, requests: &[RequestLine], commits: &[CommitLine]) -> Row {
        let during = |at_us: u64| (test.from_us..=test.to_us).contains(&at_us);
        let asked: Vec<&RequestLine> = requests.iter().filter(|request| during(request.at_us)).collect();
        let written: BTreeSet<(&str, &str, &str)> = commits
            .iter()
            .filter(|commit| during(commit.at_us))
            .map(|commit| (commit.resource.as_str(), commit.namespace.as_str(), commit.name.as_str()))
            .collect();
        let hits =
            self.fault_hits.iter().filter(|hit| during(hit.at_us)).map(|hit| format!("{}: {}", hit.fault, hit.detail));
        Row {
            name: test.name.clone(),
            failed: test.failed,
            took_ms: test.to_us.saturating_sub(test.from_us) / 1000,
            requests: asked.len(),
            conflicts: asked.iter().filter(|request| request.status == 409).count(),
            objects: written.len(),
            hits: hits.take(20).collect(),
        }
    }

    /// What can be compared.
    pub(super) fn counts(&self) -> Counts {
        Counts {
            planes: self.planes,
            requests: self.requests,
            conflicts: self.conflicts.values().sum(),
            hot_loops: self.hot.len(),
            hits: self.hits,
        }
    }

    /// Everything in a line.
    pub(super) fn line(&self) -> String {
        let conflicts: u64 = self.conflicts.values().sum();
        format!(
            "{} control planes, {} requests, {} commits, {conflicts} conflicts, {} hot loops, {} refused by roles, {} faults hit",
            self.planes,
            self.requests,
            self.commits,
            self.hot.len(),
            self.denied.values().sum::<u64>(),
            self.hits,
        )
    }

    /// What somebody should look at, the first of each kind.
    pub(super) fn notable(&self) -> Vec<String> {
        let mut notable: Vec<String> = Vec::new();
        if self.planes == 0 {
            notable.push("no control plane was started: does the suite set paths of its own, or download programs (`DownloadBinaryAssets`)?".to_owned());
        }
        notable.extend(self.hot.iter().take(3).map(|(what, most)| format!("hot loop: {what}, {most} within a second")));
        notable
            .extend(self.denied.iter().take(3).map(|(what, times)| format!("refused by roles {times} times: {what}")));
        if !self.without_effect.is_empty() {
            notable.push(format!("faults that hit nothing: {}", self.without_effect.join(", ")));
        }
        let failed = self.tests.iter().filter(|test| test.failed && !test.hits.is_empty());
        notable.extend(failed.take(5).map(|test| format!("{} failed while {}", test.name, test.hits[0])));
        notable.extend(self.unread.iter().cloned());
        if self.lines_lost > 0 {
            notable.push(format!(
                "{} lines of the record were lost: the suite is too long for it, or the disk full",
                self.lines_lost
            ));
        }
        notable
    }

    /// The exit code of a suite that passed.
    pub(super) fn judged(&self) -> u8 {
        match () {
            () if !self.hot.is_empty() || !self.denied.is_empty() => exit::FAIL,
            () if self.planes == 0 || self.lines_lost > 0 || !self.without_effect.is_empty() => exit::INCONCLUSIVE,
            () => exit::PASS,
        }
    }

    /// Writes the ledger beside what it was made of.
    pub(super) fn write(&self, record: &Path) -> Result<()> {
        write(record, "ledger.json", &serde_json::to_string_pretty(self)?)?;
        let roles: Vec<&str> = self.roles.iter().map(String::as_str).collect();
        write(record, "least-roles.yaml", &roles.join("---\n"))
    }
}

/// Writes a file of a record.
pub(super) fn write(record: &Path, name: &str, text: &str) -> Result<()> {
    let path = record.join(name);
    std::fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))
}

/// The most that each thing came within a second, where that is too often.
fn hot(things: impl Iterator<Item = (String, u64)>, most: usize) -> BTreeMap<String, usize> {
    let mut times: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (thing, at_us) in things {
        times.entry(thing).or_default().push(at_us);
    }
    let busiest = |times: &mut Vec<u64>| {
        times.sort_unstable();
        let mut first = 0;
        let mut busiest = 0;
        for (last, at_us) in times.iter().enumerate() {
            while at_us - times[first] > SECOND_US {
                first += 1;
            }
            busiest = busiest.max(last + 1 - first);
        }
        busiest
    };
    let all = times.into_iter().map(|(thing, mut times)| (thing, busiest(&mut times)));
    all.filter(|(_, busiest)| *busiest > most).take(ROWS_MAX).collect()
}

/// A path without names: `/api/v1/namespaces/NS/pods/NAME/status`.
fn template(path: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    let start = if parts.get(1) == Some(&"apis") { 4 } else { 3 };
    let namespaced = parts.get(start) == Some(&"namespaces") && parts.len() > start + 2;
    let at = if namespaced { start + 2 } else { start };
    if namespaced {
        parts[start + 1] = "NS";
    }
    if let Some(name) = parts.get_mut(at + 1) {
        *name = "NAME";
    }
    parts.join("/")
}

fn files(record: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(record).with_context(|| format!("failed to read {}", record.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.file_name().is_some_and(|name| name.to_string_lossy().ends_with(ending)));
    files.sort();
    Ok(files)
}

/// The lines of a file; the last one of a process that was killed may be cut.
fn lines<T: DeserializeOwned>(file: &Path) -> Result<Vec<T>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))?;
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(at_us: u64, method: &str, path: &str, status: u16) -> RequestLine {
        let text = str::to_owned;
        RequestLine {
            at_us,
            method: text(method),
            path: text(path),
            query: String::new(),
            user: text("u"),
            user_agent: text("a"),
            status,
        }
    }

    fn written(at_us: u64, name: &str) -> CommitLine {
        let text = str::to_owned;
        CommitLine {
            at_us,
            revision: 1,
            change: text("modified"),
            resource: text("pods"),
            namespace: text("d"),
            name: text(name),
        }
    }

    #[test]
    fn paths_lose_their_names() {
        assert_eq!(template("/api/v1/namespaces/a/pods/b/status"), "/api/v1/namespaces/NS/pods/NAME/status");
        assert_eq!(template("/apis/apps/v1/namespaces/a/deployments"), "/apis/apps/v1/namespaces/NS/deployments");
        assert_eq!(template("/api/v1/namespaces/a"), "/api/v1/namespaces/NAME");
    }

    #[test]
    fn what_happened_belongs_to_the_test_that_ran() {
        let mut requests: Vec<RequestLine> =
            (0..70).map(|index| request(index, "GET", "/api/v1/namespaces/d/pods/x", 200)).collect();
        requests.push(request(1500, "PUT", "/api/v1/namespaces/d/pods/x", 409));
        requests.push(request(1600, "POST", "/api/v1/namespaces/d/pods", 422));
        let commits: Vec<CommitLine> =
            (0..25).map(|index| written(1000 + index, "x")).chain([written(1999, "y"), written(5000, "z")]).collect();
        let test = Test { name: "t".to_owned(), from_us: 1000, to_us: 2000, failed: true };
        let hit =
            HitLine { at_us: 1700, number: 0, fault: "watch-reset".to_owned(), detail: "watch 1 reset".to_owned() };
        let mut ledger = Ledger { planes: 1, fault_hits: vec![hit], ..Ledger::default() };
        let faults = [Fault::armed(mock_faults::Name::WatchReset), Fault::armed(mock_faults::Name::Watch410)];
        ledger.count(&requests, &commits, vec![test], &faults);
        assert_eq!(ledger.hot.values().copied().collect::<Vec<_>>(), [70, 25]);
        assert_eq!((ledger.conflicts.len(), ledger.refused.len()), (1, 1));
        let row = &ledger.tests[0];
        assert_eq!((row.requests, row.conflicts, row.objects, row.hits.len()), (2, 1, 2, 1));
        assert_eq!(ledger.without_effect, ["watch-410"]);
        assert!(ledger.notable().iter().any(|line| line == "t failed while watch-reset: watch 1 reset"));
        assert_eq!(ledger.judged(), exit::FAIL);
        assert_eq!(Ledger { planes: 1, ..Ledger::default() }.judged(), exit::PASS);
    }
}

//! Merges the records of all control planes of a suite.
//!
//! Collects refusals, conflicts, watches that stayed open, and faults without hits, with the test during which each
//! happened. The module `hot` finds hot loops, and `behind` finds writes that were based on stale reads. Only `--judge`
//! turns the collected facts into an exit code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use mock_envtest::{CommitLine, HitLine, Manager, RequestLine};
use mock_faults::Fault;
use reports::exit;
use reports::suite::Stretch;
use serde::Serialize;

use super::Counts;
use super::behind::Behind;
use super::hot::Hot;
use super::planes::{self, Plane};
use super::results::{self, Test};

/// Maximum number of entries of a list in the merged record, because some suites have thousands of tests.
const ROWS_MAX: usize = 1000;
/// Number of equal intervals into which a suite's time line is divided.
const STRETCHES: u64 = 120;

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Ledger {
    pub planes: usize,
    pub requests: usize,
    pub commits: usize,
    pub hits: usize,
    /// Names of faults that began and hit nothing.
    pub without_effect: Vec<String>,
    /// Requests with an answer 4xx or 5xx, by kind of request. Answers 404 and 409 are counted separately.
    pub refused: BTreeMap<String, u64>,
    pub conflicts: BTreeMap<String, u64>,
    /// Objects and requests that were repeated in hot loops, with the highest number per second.
    pub hot: BTreeMap<String, usize>,
    /// Frequent reads with pauses in between, which are polls of the suite.
    pub polls: BTreeMap<String, usize>,
    /// Writes that were based on stale reads.
    pub reads: Behind,
    /// Start of the first control plane, in microseconds since 1970.
    pub began_us: u64,
    #[serde(skip)]
    pub stretches: Vec<Stretch>,
    /// Number of requests that RBAC refused, by user.
    pub denied: BTreeMap<String, u64>,
    /// Number of watches that were open when their control plane stopped, by user.
    pub watches_left: BTreeMap<String, u64>,
    /// The minimal Roles of all users, as YAML.
    pub roles: BTreeSet<String>,
    pub tests: Vec<Row>,
    pub fault_hits: Vec<HitLine>,
    pub lines_lost: u64,
    /// Result files of the suite that could not be read, with the reason.
    pub unread: Vec<String>,
}

/// The requests and faults during one test.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    pub name: String,
    pub failed: bool,
    /// The message of the test, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The test's start, in microseconds since 1970.
    pub from_us: u64,
    pub to_us: u64,
    pub took_ms: u64,
    pub requests: usize,
    pub conflicts: usize,
    pub objects: usize,
    /// The first twenty hits of faults during the test.
    pub hits: Vec<String>,
    /// Number of hits of each fault during the test.
    pub met: BTreeMap<String, u64>,
}

impl Ledger {
    /// Reads the files of the control planes in a folder, and the suite's own results.
    pub(super) fn read(record: &Path, results: &[PathBuf], faults: &[Fault], manager: &Manager) -> Result<Self> {
        let mut ledger = Self::default();
        let mut tests = Vec::new();
        for file in results {
            // A suite that did not compile wrote no results.
            match std::fs::read_to_string(file) {
                Ok(text) => tests.extend(results::tests(&text)),
                Err(error) => {
                    ledger.unread.push(format!("failed to read {}, which `--results` names: {error}", file.display()));
                }
            }
        }
        ledger.add(planes::read(record)?, tests, faults, manager);
        Ok(ledger)
    }

    fn add(&mut self, planes: Vec<Plane>, tests: Vec<Test>, faults: &[Fault], manager: &Manager) {
        let mut hot = Hot::default();
        let (mut requests, mut commits) = (Vec::new(), Vec::new());
        self.began_us = planes.iter().map(|plane| plane.summary.began_us).min().unwrap_or(0);
        for plane in planes {
            hot.add(&plane, manager);
            self.reads.add(&plane, manager);
            self.planes += 1;
            for (user, verb, times) in plane.summary.denied {
                *self.denied.entry(format!("{user} may not {verb}")).or_default() += times;
            }
            for (user, open) in plane.summary.watches_open {
                *self.watches_left.entry(user).or_default() += open;
            }
            self.roles.insert(plane.summary.roles);
            self.lines_lost += plane.summary.lines_lost;
            requests.extend(plane.requests);
            commits.extend(plane.commits);
            self.fault_hits.extend(plane.hits);
        }
        (self.hot, self.polls) = (hot.loops, hot.polls);
        self.fault_hits.sort_by_key(|hit| hit.at_us);
        self.count(&requests, &commits, tests, faults);
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
        self.stretches = self.stretches(requests, commits);
        self.tests = tests.into_iter().take(ROWS_MAX).map(|test| self.row(&test, requests, commits)).collect();
        self.fault_hits.truncate(ROWS_MAX);
    }

    /// Counts requests and commits in equal intervals of the time line.
    fn stretches(&self, requests: &[RequestLine], commits: &[CommitLine]) -> Vec<Stretch> {
        let times = requests.iter().map(|one| one.at_us).chain(commits.iter().map(|one| one.at_us));
        let last_us = times.max().unwrap_or(self.began_us);
        let length_ms = (last_us.saturating_sub(self.began_us) / 1000).max(1);
        let wide_ms = length_ms.div_ceil(STRETCHES).max(50);
        let stretch =
            |number: u64| Stretch { from_ms: number * wide_ms, until_ms: (number + 1) * wide_ms, ..Stretch::default() };
        let mut stretches: Vec<Stretch> = (0..=length_ms / wide_ms).map(stretch).collect();
        let place = |at_us: u64| usize::try_from(self.ms(at_us) / wide_ms).unwrap_or(usize::MAX);
        for request in requests {
            if let Some(stretch) = stretches.get_mut(place(request.at_us)) {
                stretch.requests += 1;
                stretch.conflicts += u64::from(request.status == 409);
            }
        }
        for commit in commits {
            if let Some(stretch) = stretches.get_mut(place(commit.at_us)) {
                stretch.commits += 1;
            }
        }
        stretches
    }

    /// Milliseconds since the start of the first control plane.
    pub(super) fn ms(&self, at_us: u64) -> u64 {
        at_us.saturating_sub(self.began_us) / 1000
    }

    fn row(&self, test: &Test, requests: &[RequestLine], commits: &[CommitLine]) -> Row {
        let during = |at_us: u64| (test.from_us..=test.to_us).contains(&at_us);
        let asked: Vec<&RequestLine> = requests.iter().filter(|request| during(request.at_us)).collect();
        let written: BTreeSet<(&str, &str, &str)> = commits
            .iter()
            .filter(|commit| during(commit.at_us))
            .map(|commit| (commit.resource.as_str(), commit.namespace.as_str(), commit.name.as_str()))
            .collect();
        let meanwhile = || self.fault_hits.iter().filter(|hit| during(hit.at_us));
        let hits = meanwhile().map(|hit| format!("{}: {}", hit.fault, hit.detail));
        let mut met: BTreeMap<String, u64> = BTreeMap::new();
        for hit in meanwhile() {
            *met.entry(hit.fault.clone()).or_default() += 1;
        }
        Row {
            name: test.name.clone(),
            failed: test.failed,
            message: test.message.clone(),
            from_us: test.from_us,
            to_us: test.to_us,
            took_ms: test.to_us.saturating_sub(test.from_us) / 1000,
            requests: asked.len(),
            conflicts: asked.iter().filter(|request| request.status == 409).count(),
            objects: written.len(),
            hits: hits.take(20).collect(),
            met,
        }
    }

    /// The counts that `longhaul gate --suite` compares.
    pub(super) fn counts(&self) -> Counts {
        Counts {
            planes: self.planes,
            requests: self.requests,
            conflicts: self.conflicts.values().sum(),
            hot_loops: self.hot.len(),
            hits: self.hits,
        }
    }

    /// All counts of the suite on one line of text.
    pub(super) fn line(&self) -> String {
        let conflicts: u64 = self.conflicts.values().sum();
        format!(
            "{} control planes, {} requests, {} commits, {conflicts} conflicts, {} hot loops, {} refused by RBAC, {} faults hit",
            self.planes,
            self.requests,
            self.commits,
            self.hot.len(),
            self.denied.values().sum::<u64>(),
            self.hits,
        )
    }

    /// Lines for the first failed tests, with the hits of faults during each test.
    pub(super) fn failed(&self) -> Vec<String> {
        let failed = self.tests.iter().filter(|test| test.failed && !test.hits.is_empty());
        failed.take(5).map(|test| format!("{} failed while {}", test.name, test.hits[0])).collect()
    }

    /// Lines for facts that the user should check, with the first examples of each kind.
    pub(super) fn notable(&self) -> Vec<String> {
        let mut notable: Vec<String> = Vec::new();
        if self.planes == 0 {
            notable.push(
                "no control plane was started: does the suite set its own paths, or download programs \
                          (`DownloadBinaryAssets`)?"
                    .to_owned(),
            );
        }
        notable.extend(self.hot.iter().take(3).map(|(what, most)| format!("hot loop: {what}, {most} within a second")));
        notable
            .extend(self.denied.iter().take(3).map(|(what, times)| format!("refused by RBAC {times} times: {what}")));
        if !self.without_effect.is_empty() {
            notable.push(format!("faults that hit nothing: {}", self.without_effect.join(", ")));
        }
        notable.extend(self.unread.iter().cloned());
        if self.lines_lost > 0 {
            notable.push(format!(
                "{} lines of the record were lost: the suite is too long for it, or the disk full",
                self.lines_lost
            ));
        }
        notable
    }

    /// The exit code of `--judge` for a suite that passed.
    pub(super) fn exit_code(&self) -> u8 {
        match () {
            () if !self.hot.is_empty() || !self.denied.is_empty() => exit::FAIL,
            () if self.planes == 0 || self.lines_lost > 0 || !self.without_effect.is_empty() => exit::INCONCLUSIVE,
            () => exit::PASS,
        }
    }

    pub(super) fn write(&self, record: &Path) -> Result<()> {
        write(record, "ledger.json", &serde_json::to_string_pretty(self)?)?;
        let roles: Vec<&str> = self.roles.iter().map(String::as_str).collect();
        write(record, "least-roles.yaml", &roles.join("---\n"))
    }
}

pub(super) fn write(record: &Path, name: &str, text: &str) -> Result<()> {
    let path = record.join(name);
    std::fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))
}

/// A URL path with placeholders for names: `/api/v1/namespaces/NS/pods/NAME/status`.
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
            revision: None,
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
            (0..120).map(|index| request(index, "GET", "/api/v1/namespaces/d/pods/x", 200)).collect();
        requests.push(request(1500, "PUT", "/api/v1/namespaces/d/pods/x", 409));
        requests.push(request(1600, "POST", "/api/v1/namespaces/d/pods", 422));
        let commits: Vec<CommitLine> =
            (0..25).map(|index| written(1000 + index, "x")).chain([written(1999, "y"), written(5000, "z")]).collect();
        let test = Test { name: "t".to_owned(), from_us: 1000, to_us: 2000, failed: true, message: None };
        let hit =
            HitLine { at_us: 1700, number: 0, fault: "watch-reset".to_owned(), detail: "watch 1 reset".to_owned() };
        let mut ledger = Ledger::default();
        let faults = [Fault::armed(mock_faults::Name::WatchReset), Fault::armed(mock_faults::Name::Watch410)];
        let plane = Plane { requests, commits, hits: vec![hit], ..Plane::default() };
        ledger.add(vec![plane], vec![test], &faults, &Manager::default());
        assert_eq!(ledger.hot.values().copied().collect::<Vec<_>>(), [120, 25]);
        assert_eq!((ledger.conflicts.len(), ledger.refused.len()), (1, 1));
        let row = &ledger.tests[0];
        assert_eq!((row.requests, row.conflicts, row.objects, row.hits.len()), (2, 1, 2, 1));
        assert_eq!(ledger.stretches.iter().map(|one| one.requests).sum::<u64>(), 122);
        assert_eq!(ledger.without_effect, ["watch-410"]);
        assert!(ledger.failed().iter().any(|line| line == "t failed while watch-reset: watch 1 reset"));
        assert_eq!(ledger.exit_code(), exit::FAIL);
        assert_eq!(Ledger { planes: 1, ..Ledger::default() }.exit_code(), exit::PASS);
    }
}

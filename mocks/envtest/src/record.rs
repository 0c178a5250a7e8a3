//! The records of one control plane: lines that are written as events happen, and a summary that is replaced each time.
//!
//! Owns the files `plane-PID.{summary.json, requests.jsonl, commits.jsonl, shown.jsonl, hits.jsonl}` in a run's folder.
//! A control plane may be killed at any moment, so no record waits for its end. Every file is bounded.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use mock_faults::Hit;
use mock_kube::{Server, ShownBy, Tail};
use serde::{Deserialize, Serialize};

use super::draw::Names;

/// Maximum number of lines of one file; a suite of thousands of tests makes some hundred thousand requests.
const LINES_MAX: u64 = 500_000;
/// Maximum number of commits that the recorder reads from the server at a time.
const BATCH: usize = 4096;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestLine {
    /// Microseconds since 1970.
    pub at_us: u64,
    /// The HTTP method: `GET`, `POST`, …
    pub method: String,
    pub path: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
    pub user: String,
    pub user_agent: String,
    pub status: u16,
    /// The revision of the returned object or list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
}

/// One change of the state that a watch has shown to a client's cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownLine {
    /// Microseconds since 1970.
    pub at_us: u64,
    pub user: String,
    pub user_agent: String,
    /// The number of the watch.
    pub watch: u64,
    pub resource: String,
    /// The watched namespace; `None` means all namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The revision up to which the watch has sent all events.
    pub through: u64,
    pub by: ShownBy,
}

/// A commit: one stored version of an object.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommitLine {
    /// Microseconds since 1970.
    pub at_us: u64,
    pub revision: u64,
    /// `added`, `modified` or `deleted`.
    pub change: String,
    /// The full name of the resource: `pods` or `packages.longhaul.dev`.
    pub resource: String,
    /// The namespace; empty for cluster-scoped objects.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    pub name: String,
}

/// One effect of a fault on a request or a watch.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HitLine {
    /// Microseconds since 1970.
    pub at_us: u64,
    /// The number of the fault, from 0.
    pub number: u32,
    pub fault: String,
    pub detail: String,
}

/// The state of the control plane when the summary was last written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// The time at which the server was started, in microseconds since 1970.
    pub began_us: u64,
    /// The time of this summary, in microseconds since 1970.
    pub written_us: u64,
    pub objects: u64,
    /// The newest revision of the store.
    pub revision: u64,
    /// Number of open watches of each user.
    pub watches_open: Vec<(String, u64)>,
    /// The minimal RBAC roles for the requests of all users, as YAML.
    pub roles: String,
    /// Number of requests that RBAC refused, by user, verb, resource and namespace.
    pub denied: Vec<(String, String, u64)>,
    /// Number of lines that were dropped because a file had reached its limit.
    pub lines_lost: u64,
}

pub(crate) struct Recorder {
    server: Arc<Server>,
    names: Names,
    began_us: u64,
    tail: Tail,
    requests: Lines,
    commits: Lines,
    shown: Lines,
    hits: Lines,
    /// Number of requests that the recorder has read so far.
    seen: u64,
    summary: PathBuf,
}

struct Lines {
    file: BufWriter<File>,
    written: u64,
    lost: u64,
}

impl Recorder {
    pub fn open(folder: &Path, server: &Arc<Server>, names: Names, began: SystemTime) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let pid = std::process::id();
        let path = |what: &str| folder.join(format!("plane-{pid}.{what}"));
        server.follow_shown();
        Ok(Self {
            tail: server.tail(),
            server: server.clone(),
            names,
            began_us: micros(began),
            requests: Lines::create(&path("requests.jsonl"))?,
            commits: Lines::create(&path("commits.jsonl"))?,
            shown: Lines::create(&path("shown.jsonl"))?,
            hits: Lines::create(&path("hits.jsonl"))?,
            seen: 0,
            summary: path("summary.json"),
        })
    }

    /// Adds a hit of a fault; the server returns each hit only once.
    pub fn hit(&mut self, hit: &Hit) {
        self.hits.add(&HitLine {
            at_us: self.began_us + hit.at_us,
            number: hit.fault.0,
            fault: self.names.of(hit.fault).to_owned(),
            detail: hit.detail.clone(),
        });
    }

    /// Writes the new lines to the files. A full disk loses lines, but the suite continues.
    pub fn write(&mut self) {
        for hit in self.server.faults().take_hits() {
            self.names.note(&hit);
            self.hit(&hit);
        }
        let began_us = self.began_us;
        let (seen, lost, new) = self.server.requests_since(self.seen);
        self.seen = seen;
        self.requests.lost += lost;
        for request in new {
            self.requests.add(&RequestLine {
                at_us: began_us + request.at_us,
                method: request.method,
                path: request.path,
                query: request.query,
                user: request.user.as_ref().to_owned(),
                user_agent: request.user_agent.as_ref().to_owned(),
                status: request.status,
                revision: request.revision,
            });
        }
        let (shown, lost) = self.server.take_shown();
        self.shown.lost += lost;
        for shown in shown {
            self.shown.add(&ShownLine {
                at_us: began_us + shown.at_us,
                user: shown.user.as_ref().to_owned(),
                user_agent: shown.user_agent.as_ref().to_owned(),
                watch: shown.watch,
                resource: shown.resource.as_ref().to_owned(),
                namespace: shown.namespace,
                through: shown.through,
                by: shown.by,
            });
        }
        loop {
            match self.tail.try_batch(BATCH) {
                Ok(batch) if batch.is_empty() => break,
                Ok(batch) => {
                    for entry in batch {
                        self.commits.add(&CommitLine {
                            at_us: began_us + entry.at_us,
                            revision: entry.revision,
                            change: format!("{:?}", entry.commit.change).to_lowercase(),
                            resource: entry.commit.resource.to_string(),
                            namespace: entry.commit.namespace.to_string(),
                            name: entry.commit.name.to_string(),
                        });
                    }
                }
                Err(overrun) => self.commits.lost += overrun.lost,
            }
        }
        let lines = [&mut self.requests, &mut self.commits, &mut self.shown, &mut self.hits];
        let lost = lines.into_iter().map(Lines::flush).sum();
        let _ = self.write_summary(lost);
    }

    fn write_summary(&self, lines_lost: u64) -> io::Result<()> {
        let users = self.server.users();
        let open = users.iter().map(|user| (user.clone(), self.server.traffic(user).watches_open));
        let denied = users.iter().flat_map(|user| {
            let refused = self.server.refused(user).into_iter();
            refused.map(|(what, times)| {
                let group = if what.group.is_empty() { String::new() } else { format!(".{}", what.group) };
                let place = if what.namespace.is_empty() { String::new() } else { format!(" in {}", what.namespace) };
                (user.clone(), format!("{} {}{group}{place}", what.verb, what.resource), times)
            })
        });
        let summary = Summary {
            began_us: self.began_us,
            written_us: micros(SystemTime::now()),
            objects: self.server.object_count() as u64,
            revision: self.server.revision(),
            watches_open: open.filter(|(_, open)| *open > 0).collect(),
            roles: self.server.least_roles(),
            denied: denied.collect(),
            lines_lost,
        };
        let beside = self.summary.with_extension("new");
        std::fs::write(&beside, serde_json::to_vec(&summary).map_err(io::Error::other)?)?;
        std::fs::rename(beside, &self.summary)
    }
}

impl Lines {
    fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: BufWriter::new(File::create(path)?), written: 0, lost: 0 })
    }

    fn add(&mut self, line: &impl Serialize) {
        self.written += 1;
        let text = serde_json::to_string(line).ok().filter(|_| self.written <= LINES_MAX);
        if text.is_none_or(|text| writeln!(self.file, "{text}").is_err()) {
            self.lost += 1;
        }
    }

    fn flush(&mut self) -> u64 {
        let _ = self.file.flush();
        self.lost
    }
}

fn micros(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

//! Facts of the control plane about the subject: its number of requests, and the requests that RBAC refused.
//!
//! The mock counts all requests and refusals. A real API server writes each request into its audit log, which is read
//! while it grows, also across rotations. A log that is missing, or that was removed before it was read, is a gap. A
//! 403 that RBAC did not cause does not count, such as a 403 because a namespace is being deleted. The audit log shows
//! no connections. A killed API server writes no end of its watches, so open watches are not reported if a kill is
//! planned.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use mock_kube::Traffic;
use reports::record::{Audited, HOLES_MAX, Hole, Refused};
use serde_json::Value;

use super::plane::{HARNESS, Plane};
use super::ready::Requested;
use crate::clock::Clock;
use crate::scenario::Scenario;

/// Maximum number of lines of the audit log that are read in one batch. Lines are short, because the audit log of a run
/// has no bodies.
const LINES_MAX: usize = 100_000;

/// Maximum number of kinds of requested resources that are kept; a program requests some dozens.
const KINDS_MAX: usize = 256;

/// Refused requests since the last interval row, and all traffic since the start of the run.
#[derive(Debug, Default)]
pub(super) struct Row {
    pub(super) refused: Vec<Refused>,
    /// The subject's traffic since the start.
    pub(super) traffic: Traffic,
    /// Requests of all clients since the start.
    pub(super) requests: u64,
    /// Lists and watches of judged resources since the last row; `None` if another module counts them.
    pub(super) follows: Option<u64>,
}

#[derive(Debug, Default, Clone)]
pub(super) struct AuditedRequests {
    /// Refused requests in the audit log since the last row, by resource; a subject requests about a dozen kinds.
    refused: BTreeMap<String, u64>,
    /// Full names of judged resources.
    judged: Vec<String>,
    /// Whether some watches end without a line, because a kill of the API server is planned.
    is_killed: bool,
    /// Time at which a line about the subject was last read.
    last: Option<Instant>,
    /// The read position in the audit log, in bytes.
    offset: u64,
    inode: Option<u64>,
    read: Option<Instant>,
    /// Time since which the audit log cannot be read.
    away: Option<Instant>,
    /// Gaps in the audit log: begin, end, and the reason.
    holes: Vec<(Instant, Instant, &'static str)>,
    traffic: Traffic,
    requests: u64,
    follows: u64,
    /// Requested resources by full name, with their verbs in the audit log.
    kinds: BTreeMap<String, BTreeSet<String>>,
    /// The mock's counts of refused requests at the last row.
    mock: BTreeMap<String, u64>,
}

impl AuditedRequests {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let judged = scenario.judged_resources().into_iter().map(|(name, _)| name).collect();
        let is_killed = scenario.faults.iter().any(|fault| fault.name == mock_faults::Name::ApiserverRestart);
        Self { judged, is_killed, ..Self::default() }
    }

    /// An empty state that begins at the present end of the audit log. The log of a control plane that outlives runs
    /// also has the requests of earlier runs.
    pub(super) fn from_now(scenario: &Scenario, plane: &Plane) -> Self {
        let log = plane.audit_log().and_then(|log| log.metadata().ok());
        let (offset, inode) = log.map_or((0, None), |log| (log.len(), Some(log.ino())));
        Self { offset, inode, read: inode.map(|_| Instant::now()), ..Self::new(scenario) }
    }

    /// Gaps in the audit log since the last call.
    pub(super) fn take_holes(&mut self, clock: &Clock) -> Vec<Hole> {
        if let Some(since) = self.away.take() {
            self.hole(since, "it can no longer be read");
        }
        let hole = |(from, to, why): (Instant, Instant, &str)| Hole {
            of: Audited::Requests,
            from_ms: clock.at_ms(from),
            to_ms: clock.at_ms(to),
            detail: why.to_owned(),
        };
        std::mem::take(&mut self.holes).into_iter().map(hole).collect()
    }

    /// The subject's requests so far, as far as known. For a scenario without judged resources, a request for any
    /// resource is enough.
    pub(super) fn requests_so_far(&mut self, plane: &Plane) -> Requested {
        let user = plane.subject();
        if let Some(mock) = plane.mock() {
            let follows = |name: &String| mock.server.asked_for(user, name);
            return self.weighed(mock.server.traffic(user).requests > 0, self.judged.iter().any(follows));
        }
        let Some(log) = plane.audit_log() else { return Requested::Judged };
        self.read(&log, user);
        self.weighed(self.last.is_some(), self.follows > 0)
    }

    /// Whether the audit log could be read without gaps so far.
    pub(super) fn is_whole(&self) -> bool {
        self.holes.is_empty() && self.away.is_none()
    }

    pub(super) fn judged_resources(&self) -> &[String] {
        &self.judged
    }

    pub(super) fn judges_anything(&self) -> bool {
        !self.judged.is_empty()
    }

    /// The kinds that the subject has requested so far, by full name, with the verbs of each.
    pub(super) fn kinds_asked(&self, plane: &Plane) -> Vec<(String, Vec<String>)> {
        let mut kinds = self.kinds.clone();
        if let Some(mock) = plane.mock() {
            for access in mock.server.permissions(plane.subject()) {
                kinds.entry(full_name(&access.resource, &access.group)).or_default().insert(access.verb);
            }
        }
        kinds.into_iter().map(|(kind, verbs)| (kind, verbs.into_iter().collect())).collect()
    }

    fn weighed(&self, anything: bool, judged: bool) -> Requested {
        match () {
            () if !anything => Requested::Nothing,
            () if judged || self.judged.is_empty() => Requested::Judged,
            () => Requested::Else,
        }
    }

    /// Takes the counts and refusals since the last call.
    pub(super) fn take(&mut self, plane: &Plane) -> Row {
        if let Some(mock) = plane.mock() {
            let mut now: BTreeMap<String, u64> = BTreeMap::new();
            for (access, times) in mock.server.refused(plane.subject()) {
                *now.entry(what(&access.verb, &access.resource, &access.group)).or_default() += times;
            }
            let before = std::mem::replace(&mut self.mock, now.clone());
            let new = now.into_iter().map(|(what, times)| {
                let times = times - before.get(&what).copied().unwrap_or(0);
                Refused { what, times }
            });
            let refused = new.filter(|refused| refused.times > 0).collect();
            let traffic = mock.server.traffic(plane.subject());
            let requests = traffic.requests + mock.server.traffic(HARNESS).requests;
            return Row { refused, traffic, requests, follows: None };
        }
        let Some(log) = plane.audit_log() else { return Row::default() };
        self.read(&log, plane.subject());
        self.row()
    }

    fn row(&mut self) -> Row {
        let refused = std::mem::take(&mut self.refused).into_iter().map(|(what, times)| Refused { what, times });
        let follows = std::mem::take(&mut self.follows);
        let mut traffic = self.traffic;
        if self.is_killed {
            traffic.watches_open = 0;
        } else if traffic.watches_open == 0 {
            traffic.idle_us = self.last.map(|last| u64::try_from(last.elapsed().as_micros()).unwrap_or(u64::MAX));
        }
        Row {
            refused: refused.collect(),
            traffic,
            requests: self.requests,
            follows: (!self.judged.is_empty()).then_some(follows),
        }
    }

    /// Reads the new lines of a real API server's audit log, and of logs that were rotated meanwhile. A log that never
    /// existed gives no facts.
    fn read(&mut self, audit_log: &Path, user: &str) {
        let Some((file, inode)) = opened(audit_log) else {
            if let Some(last) = self.read {
                self.away.get_or_insert(last);
            }
            return;
        };
        let is_shorter = file.metadata().is_ok_and(|metadata| metadata.len() < self.offset);
        if self.inode.is_some_and(|known| known != inode) || is_shorter {
            self.rotated(audit_log, user);
            self.offset = 0;
        }
        self.away = None;
        self.inode = Some(inode);
        self.rest(file, user);
        self.read = Some(Instant::now());
    }

    /// Handles a rotation of the log: reads the rest of the old file, and all files up to the present one.
    fn rotated(&mut self, audit_log: &Path, user: &str) {
        let since = self.away.or(self.read).unwrap_or_else(Instant::now);
        let old = rotated(audit_log);
        let known = self.inode.and_then(|known| {
            old.iter().position(|path| path.metadata().is_ok_and(|metadata| metadata.ino() == known))
        });
        let from = known.unwrap_or_else(|| {
            self.hole(since, "it was rotated away, and gone before it was read to its end");
            old.len()
        });
        for path in &old[from..] {
            match File::open(path) {
                Ok(file) => self.rest(file, user),
                Err(_) => self.hole(since, "it was rotated away, and cannot be read"),
            }
            self.offset = 0;
        }
    }

    fn hole(&mut self, since: Instant, why: &'static str) {
        if self.holes.len() < HOLES_MAX {
            self.holes.push((since, Instant::now(), why));
        }
    }

    fn rest(&mut self, mut file: File, user: &str) {
        if file.seek(SeekFrom::Start(self.offset)).is_err() {
            return;
        }
        let mut reader = BufReader::new(file);
        let mut line = String::new();
        for _ in 0..LINES_MAX {
            line.clear();
            // A line that is still being written is read the next time.
            match reader.read_line(&mut line) {
                Ok(bytes) if line.ends_with('\n') => self.offset += bytes as u64,
                _ => return,
            }
            self.event(&line, user);
        }
    }

    fn event(&mut self, line: &str, user: &str) {
        self.requests += u64::from(line.contains(r#""stage":"ResponseComplete""#));
        // Most lines are of other users, and parsing JSON is not free.
        if !line.contains(user) {
            return;
        }
        let event: Value = serde_json::from_str(line).unwrap_or_default();
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        if text("/user/username") != user {
            return;
        }
        self.last = Some(Instant::now());
        let (verb, group) = (text("/verb"), text("/objectRef/apiGroup"));
        let mut resource = text("/objectRef/resource").to_owned();
        let code = event.pointer("/responseStatus/code").and_then(Value::as_u64).unwrap_or_default();
        let traffic = &mut self.traffic;
        // A long request has a further line for the begin of its answer.
        let ends = match text("/stage") {
            "ResponseStarted" if verb == "watch" => false,
            "ResponseComplete" | "Panic" => true,
            _ => return,
        };
        // 101 is a watch over a WebSocket, fabric8's usual way.
        let is_open = verb == "watch" && matches!(code, 101 | 200);
        if is_open {
            traffic.watches_opened += u64::from(!ends);
            traffic.watches_open = if ends { traffic.watches_open.saturating_sub(1) } else { traffic.watches_open + 1 };
        }
        let full = full_name(&resource, group);
        if !resource.is_empty() && (self.kinds.len() < KINDS_MAX || self.kinds.contains_key(&full)) {
            self.kinds.entry(full.clone()).or_default().insert(verb.to_owned());
        }
        let begins = if is_open { !ends } else { ends };
        if begins && matches!(verb, "list" | "watch") && self.judged.contains(&full) {
            self.follows += 1;
        }
        if !ends {
            return;
        }
        traffic.requests += 1;
        traffic.lists += u64::from(verb == "list");
        traffic.gone_http += u64::from(code == 410);
        // A slash in a key is written `~1` (RFC 6901).
        if text("/annotations/authorization.k8s.io~1decision") != "forbid" {
            return;
        }
        if !text("/objectRef/subresource").is_empty() {
            resource = format!("{resource}/{}", text("/objectRef/subresource"));
        }
        *self.refused.entry(what(verb, &resource, group)).or_default() += 1;
    }
}

/// Opens a log and returns it with the identity of its file.
fn opened(path: &Path) -> Option<(File, u64)> {
    let file = File::open(path).ok()?;
    let inode = file.metadata().ok()?.ino();
    Some((file, inode))
}

/// The rotated logs, oldest first by the time in their file names.
fn rotated(audit_log: &Path) -> Vec<PathBuf> {
    let stem = audit_log.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let entries = audit_log.parent().and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let is_old = |path: &PathBuf| {
        path.file_stem().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(&format!("{stem}-")))
    };
    let mut old: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_old).collect();
    old.sort();
    old
}

fn full_name(resource: &str, group: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

fn what(verb: &str, resource: &str, group: &str) -> String {
    if group.is_empty() { format!("{verb} {resource}") } else { format!("{verb} {resource} of {group}") }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn line(user: &str, verb: &str, stage: &str, code: u16, decision: &str) -> String {
        format!(
            r#"{{"stage":"{stage}","verb":"{verb}","user":{{"username":"{user}"}},"objectRef":{{"resource":"leases",
            "apiGroup":"coordination.k8s.io"}},"responseStatus":{{"code":{code}}},"annotations":{{"authorization.k8s.io/decision":"{decision}"}}}}"#
        )
        .replace('\n', "")
    }

    /// Only refusals of the subject's own requests count. Each refusal counts once, even if the end of its line is read
    /// later.
    #[test]
    fn an_audit_log_is_read_as_it_grows() {
        let mut log = tempfile::NamedTempFile::new().unwrap();
        let done = |user: &str, decision: &str| line(user, "list", "ResponseComplete", 403, decision);
        let mut told = AuditedRequests::default();
        writeln!(log, "{}", done("me", "forbid")).unwrap();
        writeln!(log, "{}", done("me", "allow")).unwrap();
        writeln!(log, "{}", done("other", "forbid")).unwrap();
        let half = done("me", "forbid");
        write!(log, "{}", &half[..40]).unwrap();
        told.read(log.path(), "me");
        writeln!(log, "{}", &half[40..]).unwrap();
        told.read(log.path(), "me");
        told.read(log.path(), "me");
        let row = told.row();
        assert_eq!(row.refused, [Refused { what: "list leases of coordination.k8s.io".to_owned(), times: 2 }]);
        assert_eq!((row.traffic.requests, row.requests), (3, 4));
        assert!(told.row().refused.is_empty());
    }

    /// A watch is open between its two lines in the audit log, even across a rotation. A refused watch was never open.
    #[test]
    fn watches_are_open_from_their_first_line_to_their_last_also_when_the_log_is_rotated() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let mut told =
            AuditedRequests { judged: vec!["leases.coordination.k8s.io".to_owned()], ..AuditedRequests::default() };
        let watch = |stage: &str, code: u16| line("me", "watch", stage, code, "allow") + "\n";
        let all = |lines: &[String]| lines.concat();
        std::fs::write(&path, all(&[watch("ResponseStarted", 200), watch("ResponseStarted", 101)])).unwrap();
        told.read(&path, "me");
        let row = told.row();
        assert_eq!((row.traffic.watches_open, row.traffic.watches_opened, row.follows), (2, 2, Some(2)));
        assert_eq!(told.weighed(true, false), Requested::Else);
        assert_eq!(
            told.kinds.iter().map(|(kind, verbs)| (kind.as_str(), verbs.len())).collect::<Vec<_>>(),
            [("leases.coordination.k8s.io", 1)]
        );
        let mut more = File::options().append(true).open(&path).unwrap();
        write!(more, "{}", all(&[watch("ResponseComplete", 200), watch("ResponseComplete", 410)])).unwrap();
        std::fs::rename(&path, folder.path().join("audit-2026-11-27T10-00-00.000.log")).unwrap();
        std::fs::write(&path, watch("ResponseStarted", 200)).unwrap();
        told.read(&path, "me");
        let row = told.row();
        assert_eq!((row.traffic.watches_open, row.traffic.watches_opened, row.follows), (2, 3, Some(2)));
        assert_eq!((row.traffic.requests, row.traffic.gone_http, row.traffic.idle_us), (2, 1, None));
        write!(File::options().append(true).open(&path).unwrap(), "{}", watch("ResponseComplete", 200).repeat(2))
            .unwrap();
        told.read(&path, "me");
        let row = told.row();
        assert!(row.traffic.watches_open == 0 && row.traffic.idle_us.is_some(), "{row:?}");
        told.is_killed = true;
        told.traffic.watches_open = 3;
        assert_eq!(told.row().traffic.watches_open, 0, "who is killed tells no end");
        assert!(told.take_holes(&Clock::default()).is_empty());
    }

    /// If a log is rotated twice between two reads, all files are read to their ends. If a file was removed before it
    /// was read, or is missing, a gap is reported.
    #[test]
    fn what_cannot_be_read_of_an_audit_log_is_a_hole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let rotate = |time: &str| {
            let old = folder.path().join(format!("audit-{time}.log"));
            std::fs::rename(&path, &old).unwrap();
            old
        };
        let list = line("me", "list", "ResponseComplete", 200, "allow") + "\n";
        let clock = Clock::default();
        let mut told = AuditedRequests::default();
        std::fs::write(&path, &list).unwrap();
        told.read(&path, "me");
        std::fs::write(&path, list.repeat(2)).unwrap();
        rotate("2026-11-27T10-00-00.000");
        std::fs::write(&path, list.repeat(3)).unwrap();
        rotate("2026-11-27T10-00-01.000");
        std::fs::write(&path, list.repeat(4)).unwrap();
        told.read(&path, "me");
        assert_eq!((told.row().traffic.requests, told.take_holes(&clock).len()), (9, 0), "each line once");
        std::fs::write(&path, list.repeat(5)).unwrap();
        let old = rotate("2026-11-27T10-00-02.000");
        std::fs::write(&path, &list).unwrap();
        std::fs::remove_file(old).unwrap();
        told.read(&path, "me");
        let holes = told.take_holes(&clock);
        assert_eq!((told.row().traffic.requests, holes.len(), holes[0].of), (10, 1, Audited::Requests));
        let away = folder.path().join("away");
        std::fs::rename(&path, &away).unwrap();
        told.read(&path, "me");
        std::fs::rename(&away, &path).unwrap();
        told.read(&path, "me");
        assert!(told.take_holes(&clock).is_empty(), "it is the same one again");
        std::fs::remove_file(&path).unwrap();
        told.read(&path, "me");
        assert_eq!(told.take_holes(&clock)[0].detail, "it can no longer be read");
    }
}

//! What the control plane refused to the subject for want of a right, counted by what was asked for.
//!
//! The mock counts them; a real API server writes them into its audit log. A 403 for any other reason is none of them: both also
//! answer so when a namespace is going away.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::Path;

use reports::record::Refused;
use serde_json::Value;

use super::plane::Plane;

/// Lines of an audit log are short: it has no bodies.
const LINES_MAX: usize = 100_000;

/// Counts since the last row.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// Read from the audit log since the last row; its users ask for a dozen things.
    counts: BTreeMap<String, u64>,
    /// How far the audit log was read.
    offset: u64,
    /// What the mock had counted by the last row.
    told: BTreeMap<String, u64>,
}

impl Refusals {
    /// What was refused to the subject since the last call.
    pub(super) fn take(&mut self, plane: &Plane) -> Vec<Refused> {
        if let Some(mock) = plane.mock() {
            let mut now: BTreeMap<String, u64> = BTreeMap::new();
            for (access, times) in mock.server.refused(plane.subject()) {
                *now.entry(what(&access.verb, &access.resource, &access.group)).or_default() += times;
            }
            let before = std::mem::replace(&mut self.told, now.clone());
            let new = now.into_iter().map(|(what, times)| {
                let times = times - before.get(&what).copied().unwrap_or(0);
                Refused { what, times }
            });
            return new.filter(|refused| refused.times > 0).collect();
        }
        if let Some(log) = plane.audit_log() {
            self.read(&log, plane.subject());
        }
        self.taken()
    }

    fn taken(&mut self) -> Vec<Refused> {
        std::mem::take(&mut self.counts).into_iter().map(|(what, times)| Refused { what, times }).collect()
    }

    /// Reads what a real API server has added to its audit log. A log that cannot be read tells nothing.
    fn read(&mut self, audit_log: &Path, user: &str) {
        let Ok(mut file) = std::fs::File::open(audit_log) else { return };
        if file.metadata().is_ok_and(|metadata| metadata.len() < self.offset) {
            // Rotated: what was in the old one since the last look is lost.
            self.offset = 0;
        }
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
        // Most lines are somebody else's, and reading JSON is not free.
        if !line.contains(user) {
            return;
        }
        let event: Value = serde_json::from_str(line).unwrap_or_default();
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        // A slash in a key of an object is written `~1` (RFC 6901).
        let decision = text("/annotations/authorization.k8s.io~1decision");
        if text("/user/username") != user || text("/stage") != "ResponseComplete" || decision != "forbid" {
            return;
        }
        let mut resource = text("/objectRef/resource").to_owned();
        if !text("/objectRef/subresource").is_empty() {
            resource = format!("{resource}/{}", text("/objectRef/subresource"));
        }
        *self.counts.entry(what(text("/verb"), &resource, text("/objectRef/apiGroup"))).or_default() += 1;
    }
}

fn what(verb: &str, resource: &str, group: &str) -> String {
    if group.is_empty() { format!("{verb} {resource}") } else { format!("{verb} {resource} of {group}") }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// Only the subject's own refusals count, each once, also when a line is read in two halves.
    #[test]
    fn an_audit_log_is_read_as_it_grows() {
        let mut log = tempfile::NamedTempFile::new().unwrap();
        let line = |user: &str, decision: &str| {
            format!(
                r#"{{"stage":"ResponseComplete","verb":"list","user":{{"username":"{user}"}},"objectRef":{{"resource":"leases",
                "apiGroup":"coordination.k8s.io"}},"annotations":{{"authorization.k8s.io/decision":"{decision}"}}}}"#
            )
            .replace('\n', "")
        };
        let mut refusals = Refusals::default();
        writeln!(log, "{}", line("me", "forbid")).unwrap();
        writeln!(log, "{}", line("me", "allow")).unwrap();
        writeln!(log, "{}", line("other", "forbid")).unwrap();
        let half = line("me", "forbid");
        write!(log, "{}", &half[..40]).unwrap();
        refusals.read(log.path(), "me");
        writeln!(log, "{}", &half[40..]).unwrap();
        refusals.read(log.path(), "me");
        refusals.read(log.path(), "me");
        let refused = refusals.taken();
        assert_eq!(refused, [Refused { what: "list leases of coordination.k8s.io".to_owned(), times: 2 }]);
        assert!(refusals.taken().is_empty());
    }
}

//! The bytes that the server sent to one user: how the newest versions were delivered, and the newest lines of watches.
//!
//! Owns a bounded queue of deliveries, a bounded queue of lines that watches sent, and the excerpts of these lines. A
//! batch that goes to a hundred watches makes one entry for each watch instead of one for each event.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use mock_faults::FaultId;
use mock_store::ResourceId;
use mock_store::batch::Batch;

use super::excerpt::excerpt;
use super::{Delivery, Sending, Wanted, WireLine};

/// Maximum number of versions per user whose delivery is remembered: at most 7 MiB.
const SENT_MAX: usize = 131_072;
/// Maximum number of stream lines per user that are kept for reports. The lines share memory with the bytes that were
/// sent.
const LINES_MAX: usize = 1024;
/// Maximum number of deliveries of one version that are returned: the earliest ones.
const SENDINGS_MAX: usize = 8;

/// Longest time, in microseconds, between the timestamp of a write and its recording in this audit.
const NOTED_WITHIN_US: u64 = 1_000_000;

#[derive(Debug, Default)]
pub(super) struct Wire {
    /// Writes to watches, oldest first.
    writes: VecDeque<Write>,
    versions: usize,
    lines: VecDeque<Lines>,
    line_count: usize,
}

#[derive(Debug)]
struct Write {
    resource: ResourceId,
    watch: u64,
    at_us: u64,
    what: WriteKind,
}

#[derive(Debug)]
enum WriteKind {
    Sent(u64),
    /// A batch that was sent completely: its revisions in ascending order.
    SentAll(Arc<[u64]>),
    Withheld(u64, FaultId),
}

#[derive(Debug)]
struct Lines {
    watch: u64,
    at_us: u64,
    of: Of,
}

#[derive(Debug)]
enum Of {
    One(u64, Bytes),
    Batch(Arc<Batch>),
}

#[derive(Debug, Clone, Copy)]
struct Line<'a> {
    watch: u64,
    at_us: u64,
    revision: u64,
    bytes: &'a [u8],
}

impl Wire {
    pub fn sent(&mut self, watch: u64, resource: ResourceId, at_us: u64, revision: u64, line: Bytes) {
        self.note(Write { resource, watch, at_us, what: WriteKind::Sent(revision) });
        self.keep(Lines { watch, at_us, of: Of::One(revision, line) });
    }

    pub fn sent_batch(&mut self, watch: u64, resource: ResourceId, at_us: u64, batch: &Arc<Batch>) {
        self.note(Write { resource, watch, at_us, what: WriteKind::SentAll(batch.revisions().clone()) });
        self.keep(Lines { watch, at_us, of: Of::Batch(batch.clone()) });
    }

    pub fn withheld(&mut self, watch: u64, resource: ResourceId, at_us: u64, revision: u64, fault: FaultId) {
        self.note(Write { resource, watch, at_us, what: WriteKind::Withheld(revision, fault) });
    }

    /// Removes writes of revisions after `to` when the store is restored to `to`, because the new timeline does not
    /// contain them.
    pub fn rewound(&mut self, to: u64) {
        for write in &mut self.writes {
            if let WriteKind::SentAll(revisions) = &mut write.what {
                let kept = revisions.partition_point(|revision| *revision <= to);
                if kept < revisions.len() {
                    *revisions = revisions[..kept].into();
                }
            }
        }
        self.writes.retain(|write| match &write.what {
            WriteKind::Sent(revision) | WriteKind::Withheld(revision, _) => *revision <= to,
            WriteKind::SentAll(revisions) => !revisions.is_empty(),
        });
        self.versions = self.writes.iter().map(|write| write.what.count()).sum();
    }

    /// The last delivery of a version; a version that was sent once and withheld once counts as sent.
    pub fn delivery(&self, resource: ResourceId, revision: u64) -> Delivery {
        let mut found = Delivery::NotSent;
        for write in self.writes.iter().rev().filter(|write| write.resource == resource) {
            let sent = match &write.what {
                WriteKind::Sent(one) => *one == revision,
                WriteKind::SentAll(revisions) => revisions.binary_search(&revision).is_ok(),
                WriteKind::Withheld(one, fault) => {
                    if *one == revision && found == Delivery::NotSent {
                        found = Delivery::Withheld { fault: *fault };
                    }
                    false
                }
            };
            if sent {
                return Delivery::Sent { watch: write.watch, at_us: write.at_us };
            }
        }
        found
    }

    /// The deliveries since `since_us` of the versions in `revisions` (ascending), oldest first; at most 8 per version.
    pub fn sendings(&self, resource: ResourceId, revisions: &[u64], since_us: u64) -> Vec<Sending> {
        let mut found = Vec::new();
        let mut times = vec![0; revisions.len()];
        // Watches that write at the same time note it in any order, but within a bounded time.
        let from = self.writes.partition_point(|write| write.at_us.saturating_add(NOTED_WITHIN_US) < since_us);
        for write in self.writes.range(from..).filter(|write| write.resource == resource) {
            let (watch, at_us) = (write.watch, write.at_us);
            let mut add = |revision: u64, fault: Option<FaultId>| {
                let Ok(index) = revisions.binary_search(&revision) else { return };
                times[index] += 1;
                if times[index] <= SENDINGS_MAX {
                    found.push(Sending { revision, watch, at_us, withheld_by: fault });
                }
            };
            match &write.what {
                WriteKind::Sent(revision) => add(*revision, None),
                WriteKind::Withheld(revision, fault) => add(*revision, Some(*fault)),
                WriteKind::SentAll(all) if all.len() < revisions.len() => all.iter().for_each(|one| add(*one, None)),
                WriteKind::SentAll(all) => {
                    revisions.iter().filter(|one| all.binary_search(one).is_ok()).for_each(|one| add(*one, None));
                }
            }
        }
        found
    }

    /// The lines of the watch that sent the wanted version, or the version nearest to it: `around` lines before and
    /// after. If several watches qualify, the watch whose line is nearest to the wanted time counts.
    pub fn lines_round(&self, wanted: &Wanted<'_>, around: usize) -> Vec<WireLine> {
        let distance = |line: &Line<'_>| (line.revision.abs_diff(wanted.revision), line.at_us.abs_diff(wanted.at_us));
        let Some(nearest) = self.each_line().min_by_key(distance) else { return Vec::new() };
        let mut lines: Vec<Line<'_>> = self.each_line().filter(|line| line.watch == nearest.watch).collect();
        // A snapshot at the start of a stream has no order.
        lines.sort_by_key(|line| line.revision);
        let middle = lines.partition_point(|line| line.revision < wanted.revision);
        let from = middle.saturating_sub(around);
        let to = (middle + around + 1).min(lines.len());
        lines[from..to].iter().map(|line| line.show(wanted)).collect()
    }

    fn each_line(&self) -> impl Iterator<Item = Line<'_>> {
        self.lines.iter().flat_map(|lines| {
            let (watch, at_us) = (lines.watch, lines.at_us);
            let (one, batch) = match &lines.of {
                Of::One(revision, bytes) => (Some((*revision, &bytes[..])), None),
                Of::Batch(batch) => (None, Some(batch.lines())),
            };
            let all = one.into_iter().chain(batch.into_iter().flatten());
            all.map(move |(revision, bytes)| Line { watch, at_us, revision, bytes })
        })
    }

    fn note(&mut self, write: Write) {
        self.versions += write.what.count();
        self.writes.push_back(write);
        while self.versions > SENT_MAX {
            let Some(oldest) = self.writes.pop_front() else { break };
            self.versions -= oldest.what.count();
        }
    }

    fn keep(&mut self, lines: Lines) {
        self.line_count += lines.of.count();
        self.lines.push_back(lines);
        // The newest write stays, however many lines it has.
        while self.line_count > LINES_MAX && self.lines.len() > 1 {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.line_count -= oldest.of.count();
        }
    }
}

impl WriteKind {
    fn count(&self) -> usize {
        match self {
            Self::Sent(_) | Self::Withheld(..) => 1,
            Self::SentAll(revisions) => revisions.len(),
        }
    }
}

impl Of {
    fn count(&self) -> usize {
        match self {
            Self::One(..) => 1,
            Self::Batch(batch) => batch.revisions().len(),
        }
    }
}

impl Line<'_> {
    fn show(&self, wanted: &Wanted<'_>) -> WireLine {
        // Only the line of that very version is about that object.
        let name = wanted.name.filter(|_| self.revision == wanted.revision);
        let text = excerpt(&String::from_utf8_lossy(self.bytes), name, self.revision);
        WireLine { watch: self.watch, at_us: self.at_us, revision: self.revision, text }
    }
}

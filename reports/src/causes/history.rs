//! Reads an anomaly's evidence: whether the version was sent, whether a watch was open, which request came next.
//!
//! Owns the queries of an anomaly's evidence and draws no conclusion from it. If the control plane does not record sent
//! events and requests, or no evidence was kept, [`History::is_told`] is false.

use facts::Change;

use crate::record::{AnomalyRow, EndedBy, Evidence, ReadOn, Step};

/// Two events closer than this, in milliseconds, have no certain order, although commits and requests have the same
/// clock.
pub(super) const SLACK_MS: u64 = 5;

#[derive(Debug)]
pub(super) struct History<'a> {
    evidence: Option<&'a Evidence>,
    steps: &'a [Step],
    /// The version as a number; none if the version is not a number.
    pub revision: Option<u64>,
    revision_text: &'a str,
    /// When the version was written; if that is unknown, when the subject first reported it.
    pub committed_ms: u64,
    pub until_ms: u64,
}

/// The sending of a version on a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sent {
    pub t_ms: u64,
    pub watch: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Listed {
    pub t_ms: u64,
    pub revision: u64,
}

/// A watch of the subject that was accepted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Watch<'a> {
    pub number: u64,
    pub t_ms: u64,
    pub from: Option<&'a str>,
    pub initial: bool,
    pub end: Option<End>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    pub t_ms: u64,
    pub by: EndedBy,
    pub through: Option<u64>,
    /// The code of the `ERROR` event that ended the watch, if such an event ended it.
    pub code: Option<u16>,
}

impl<'a> History<'a> {
    pub fn of(row: &'a AnomalyRow) -> Self {
        let evidence = row.evidence.as_ref();
        Self {
            evidence,
            steps: evidence.map_or(&[], |evidence| &evidence.steps),
            revision: row.revision.parse().ok(),
            revision_text: &row.revision,
            committed_ms: row.committed_ms.or(row.observed_ms).unwrap_or(row.t_ms),
            until_ms: evidence.map_or(row.t_ms, |evidence| evidence.until_ms),
        }
    }

    /// Whether the control plane recorded the events that it sent and the requests that it got.
    pub fn is_told(&self) -> bool {
        self.evidence.is_some_and(|evidence| evidence.wire) && self.revision.is_some()
    }

    /// The events and requests of the anomaly's evidence, in order of time.
    pub fn steps(&self) -> &'a [Step] {
        self.steps
    }

    /// The subject's reports of later versions of any object of the resource.
    pub fn read_on(&self) -> Option<ReadOn> {
        self.evidence.and_then(|evidence| evidence.read_on)
    }

    /// Whether the subject ever reported another version of this object.
    pub fn knew_the_object(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Reported { .. }))
    }

    /// Every time at which this version of the object was sent on a watch.
    pub fn sent(&self, revision: &str) -> Vec<Sent> {
        let sent = |step: &Step| match step {
            Step::Sent { t_ms, revision: of, watch } if of == revision => Some(Sent { t_ms: *t_ms, watch: *watch }),
            _ => None,
        };
        self.steps.iter().filter_map(sent).collect()
    }

    /// Every time at which the anomaly's version was sent on a watch.
    pub fn own_sent(&self) -> Vec<Sent> {
        self.sent(self.revision_text)
    }

    /// Whether any version of the object was sent on this watch.
    pub fn sent_on(&self, number: u64) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Sent { watch, .. } if *watch == number))
    }

    pub fn is_deletion(&self) -> bool {
        self.revision.is_some() && self.deletion() == self.revision
    }

    /// The first time at which a fault withheld the anomaly's version, and the fault.
    pub fn withheld(&self) -> Option<(Sent, &'a str)> {
        self.steps.iter().find_map(|step| match step {
            Step::Withheld { t_ms, revision, watch, fault } if revision == self.revision_text => {
                Some((Sent { t_ms: *t_ms, watch: *watch }, fault.as_str()))
            }
            _ => None,
        })
    }

    /// The subject's lists that were answered; equal lists appear once.
    pub fn lists(&self) -> impl Iterator<Item = Listed> + use<'a> {
        self.steps.iter().filter_map(|step| match step {
            Step::Listed { t_ms, status: 200..300, revision: Some(revision), further: false, .. } => {
                Some(Listed { t_ms: *t_ms, revision: *revision })
            }
            _ => None,
        })
    }

    /// Watches that were accepted, in order. A watch that got nothing but an `ERROR` event counts as refused.
    pub fn watches(&self) -> Vec<Watch<'a>> {
        let watch = |step: &'a Step| match step {
            Step::Watched { t_ms, watch: Some(number), from, initial, error_code, .. } => {
                let end = self.end_of(*number, *error_code);
                let refused = error_code.is_some() && end.is_none_or(|end| end.through.is_none());
                let watch = Watch { number: *number, t_ms: *t_ms, from: from.as_deref(), initial: *initial, end };
                (!refused).then_some(watch)
            }
            _ => None,
        };
        self.steps.iter().filter_map(watch).collect()
    }

    fn end_of(&self, number: u64, code: Option<u16>) -> Option<End> {
        self.steps.iter().find_map(|step| match step {
            Step::WatchEnded { t_ms, watch, by, through } if *watch == number => {
                Some(End { t_ms: *t_ms, by: *by, through: *through, code })
            }
            _ => None,
        })
    }

    pub fn watch(&self, number: u64) -> Option<Watch<'a>> {
        self.watches().into_iter().find(|watch| watch.number == number)
    }

    pub fn open_at(&self, t_ms: u64) -> Option<Watch<'a>> {
        let open = |watch: &Watch<'_>| {
            watch.t_ms <= t_ms.saturating_add(SLACK_MS) && watch.end.is_none_or(|end| end.t_ms > t_ms + SLACK_MS)
        };
        self.watches().into_iter().rev().find(open)
    }

    pub fn ended_before(&self, t_ms: u64) -> Option<(Watch<'a>, End)> {
        let ended = |watch: Watch<'a>| Some((watch, watch.end?)).filter(|(_, end)| end.t_ms <= t_ms + SLACK_MS);
        self.watches().into_iter().filter_map(ended).max_by_key(|(_, end)| end.t_ms)
    }

    /// Requests from `t_ms` on that were refused: their number and the last status.
    pub fn refused_from(&self, t_ms: u64) -> Option<(u64, u16)> {
        let accepted: Vec<u64> = self.watches().iter().map(|watch| watch.number).collect();
        let refused = self.steps.iter().filter(|step| step.t_ms() + SLACK_MS >= t_ms).filter_map(|step| match step {
            Step::Watched { watch: Some(number), .. } if accepted.contains(number) => None,
            Step::Watched { status, error_code, .. } => Some(error_code.unwrap_or(*status)),
            Step::Listed { status, .. } if !(200..300).contains(status) => Some(*status),
            _ => None,
        });
        refused.fold(None, |known, status| Some((known.map_or(1, |(times, _)| times + 1), status)))
    }

    /// Whether the subject sent any request from `t_ms` on.
    pub fn asked_from(&self, t_ms: u64) -> bool {
        let asks = |step: &Step| matches!(step, Step::Listed { .. } | Step::Watched { .. });
        self.steps.iter().any(|step| asks(step) && step.t_ms() + SLACK_MS >= t_ms)
    }

    /// The times at which the anomaly's version was reported by the subject, in order of time.
    pub fn reported(&self) -> Vec<u64> {
        let reported = |step: &Step| match step {
            Step::Reported { t_ms, revision, .. } if revision == self.revision_text => Some(*t_ms),
            _ => None,
        };
        self.steps.iter().filter_map(reported).collect()
    }

    /// The newest version that the subject reported before `before_ms`, as a number.
    pub fn newest_reported(&self, before_ms: u64) -> Option<u64> {
        let reported = |step: &Step| match step {
            Step::Reported { t_ms, revision, .. } if *t_ms <= before_ms => revision.parse::<u64>().ok(),
            _ => None,
        };
        self.steps.iter().filter_map(reported).filter(|revision| Some(*revision) != self.revision).max()
    }

    /// The revision of the object's deletion, if it was deleted.
    pub fn deletion(&self) -> Option<u64> {
        self.steps.iter().find_map(|step| match step {
            Step::Committed { change: Change::Deleted, revision, .. } => revision.parse().ok(),
            _ => None,
        })
    }

    /// The revision with which the object was created; none if it is unknown.
    pub fn creation(&self) -> Option<u64> {
        self.steps.iter().find_map(|step| match step {
            Step::Committed { change: Change::Added, revision, .. } => revision.parse().ok(),
            _ => None,
        })
    }
}

impl Watch<'_> {
    /// The revision from which the watch started, as a number; none if the request had no revision.
    pub fn start_number(&self) -> Option<u64> {
        self.from?.parse().ok().filter(|from| *from > 0)
    }
}

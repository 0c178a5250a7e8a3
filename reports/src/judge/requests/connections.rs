//! `requests.connections`: the connections that the subject holds and opens, as counted by the control plane.

use std::collections::BTreeSet;

use super::{Limit, SubjectRequests, at_most};
use crate::budgets::Connections;
use crate::judge::rule::{Budget, Findings, Name, Rule, Verdict, Word};
use crate::record::{Record, Verb};
use crate::words::{count, counted, three_digits};

/// The key of the limit on open connections, as findings name it.
const OPEN: &str = "open";
const PER_RECONNECT: &str = "perReconnect";

impl Limit for Connections {
    fn of(&self, name: Name) -> Vec<(Budget, String)> {
        let open = self.open.map(|limit| (name.below(OPEN), count(limit)));
        let each = self.per_reconnect.map(|limit| (name.below(PER_RECONNECT), limit.to_string()));
        open.into_iter().chain(each).collect()
    }
}

pub(super) struct OpenConnections;

impl Rule for OpenConnections {
    const EXAMPLE: Option<&'static str> = Some("{open: 4, perReconnect: 2}");
    const WORD: Option<Word> = Some(Word::ConnectionLeak);

    fn judge(record: &Record, asked: &SubjectRequests, limit: &Connections, findings: &mut Findings) {
        judge(record, asked, limit, findings);
    }
}

fn judge(record: &Record, asked: &SubjectRequests, limits: &Connections, findings: &mut Findings) {
    if let Some(limit) = limits.open {
        // The last row is written after the subject was stopped.
        let row = record.intervals.iter().rev().find(|row| !row.last);
        let open = row.map_or(0, |row| row.api.subject_open_connections);
        let opened: u64 = record.intervals.iter().map(|row| row.api.subject_connections).sum();
        let text =
            format!("{} of the subject open at the end, of {} in all.", counted(open, "connection"), count(opened));
        at_most(findings, Name::of::<OpenConnections>().below(OPEN), open, limit, text);
    }
    if let Some(limit) = limits.per_reconnect {
        judge_reconnects(asked, limit, findings);
    }
}

fn judge_reconnects(asked: &SubjectRequests, limit: f64, findings: &mut Findings) {
    let name = Name::of::<OpenConnections>().below(PER_RECONNECT);
    let (connections, watches) = since_first_end(asked);
    if watches == 0 {
        let text = "no watch was opened after another had ended, so there was no reconnect to judge.";
        findings.push(name, Verdict::Inconclusive, "no reconnect", limit.to_string(), text);
        return;
    }
    let ratio = connections as f64 / watches as f64;
    let text = format!(
        "{} for {} after the first one had ended.",
        counted(connections, "new connection"),
        super::watches(watches)
    );
    let verdict = if ratio > limit { Verdict::Fail } else { Verdict::Pass };
    findings.push(name, verdict, three_digits(ratio), limit.to_string(), text);
}

/// The numbers of new connections and accepted watches from the end of the first watch on.
pub(super) fn since_first_end(asked: &SubjectRequests) -> (u64, u64) {
    let accepted = |row: &&&record::RequestRow| row.verb == Verb::Watch && row.succeeded();
    let ends = asked.rows.iter().filter(accepted).filter_map(|row| row.ended_ms);
    let Some(first_end_ms) = ends.filter(|end_ms| *end_ms < asked.until_ms).min() else { return (0, 0) };
    let before = asked.rows.iter().filter(|row| row.t_ms < first_end_ms).map(|row| row.connection);
    let known: BTreeSet<u64> = before.collect();
    let after = || asked.rows.iter().filter(|row| row.t_ms >= first_end_ms);
    let new: BTreeSet<u64> = after().map(|row| row.connection).filter(|id| !known.contains(id)).collect();
    (new.len() as u64, after().filter(accepted).count() as u64)
}

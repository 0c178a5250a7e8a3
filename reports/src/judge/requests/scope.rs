//! The subject's requests, grouped by scope.
//!
//! Owns the time until which requests are judged: as long as the record has a row for every list and watch, and the
//! subject runs. For other requests, the record may have rows for only the first ones.

use std::collections::BTreeMap;
use std::fmt;

use crate::record::{Record, RequestRow};

/// The objects that one informer follows, given by a resource, a namespace or all namespaces, and selectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::judge) struct Scope<'a> {
    pub resource: &'a str,
    namespace: &'a str,
    labels: Option<&'a str>,
    fields: Option<&'a str>,
}

/// The requests of the subject in a record.
pub(in crate::judge) struct SubjectRequests<'a> {
    /// The subject's requests, in the order of arrival.
    pub rows: Vec<&'a RequestRow>,
    /// The lists and watches of each scope, in the order of arrival.
    pub scopes: BTreeMap<Scope<'a>, Vec<&'a RequestRow>>,
    /// The time after which the record has no rows of lists and watches.
    pub until_ms: u64,
}

impl<'a> SubjectRequests<'a> {
    pub fn of(record: &'a Record) -> Self {
        // The last row is written after the subject was stopped, the row before it when the drain phase ended.
        let before_stop = record.intervals.iter().rev().find(|row| !row.last).or(record.intervals.last());
        let ran_ms = before_stop.map_or(0, |row| row.end_ms);
        let until_ms = record.requests.follows_until_ms().map_or(ran_ms, |complete_ms| complete_ms.min(ran_ms));
        let rows: Vec<&RequestRow> = record.requests.rows.iter().filter(|row| row.t_ms <= until_ms).collect();
        let mut scopes: BTreeMap<Scope<'a>, Vec<&RequestRow>> = BTreeMap::new();
        for row in rows.iter().copied().filter(|row| row.follows()) {
            scopes.entry(Scope::of(row)).or_default().push(row);
        }
        Self { rows, scopes, until_ms }
    }

    /// When a request ended; for an open request, the time until which requests are judged.
    pub fn end_ms(&self, row: &RequestRow) -> u64 {
        row.ended_ms.unwrap_or(self.until_ms).min(self.until_ms)
    }
}

impl<'a> Scope<'a> {
    fn of(row: &'a RequestRow) -> Self {
        let (labels, fields) = (row.labels.as_deref(), row.fields.as_deref());
        Self { resource: &row.resource, namespace: &row.namespace, labels, fields }
    }
}

impl fmt::Display for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.resource)?;
        if !self.namespace.is_empty() {
            write!(f, " in {}", self.namespace)?;
        }
        for selector in [self.labels, self.fields].into_iter().flatten() {
            write!(f, " with {selector}")?;
        }
        Ok(())
    }
}

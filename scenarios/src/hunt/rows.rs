//! The table of disturbances for watch clients: each is a few ordinary faults at known times.
//!
//! Owns the real situation behind each row, and which rows only few clients survive. An API server, a proxy or a network
//! can do what a row does. Does no I/O.

use serde_json::{Value, json};

use super::course::{Course, FAULT_MS};

mod answers;
mod streams;

/// One row of the table.
pub(crate) struct Row {
    /// The name in reports.
    pub(crate) name: &'static str,
    /// The disturbance with its cause; `{}` is the plural of the resource.
    pub(super) situation: &'static str,
    pub(super) faults: fn(&str, u64) -> Vec<Value>,
    pub(super) course: Course,
    /// The user must ask for it, because many correct clients do not survive it.
    pub(super) rare: Option<Rare>,
    /// Whether the faults act on another watched resource than the judged one.
    pub(super) of_another: bool,
    /// How late events may be, in milliseconds, if the disturbance does not hold them.
    pub(super) on_time_ms: Option<u64>,
    /// Whether no version may be observed twice.
    pub(super) once: bool,
    /// How long a request has no answer, in milliseconds; then events may be late by less than that.
    pub(super) lasts_ms: u64,
}

/// Disturbances that many correct clients do not survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Rare {
    /// The API server loses events, and only a list from time to time shows them.
    LostEvents,
    /// The API server sends events again after a watch is resumed.
    RepeatedEvents,
    /// The store is restored from a backup.
    RestoredStore,
    /// Another watched kind is refused from the start.
    OtherKinds,
}

/// A disturbance of a watch client: the number of its table, and of its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RowId(usize, usize);

impl RowId {
    /// All rows of all tables.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        TABLES.into_iter().enumerate().flat_map(|(table, rows)| (0..rows.len()).map(move |row| Self(table, row)))
    }

    pub(super) fn row(self) -> &'static Row {
        &TABLES[self.0][self.1]
    }

    pub(crate) fn name(self) -> &'static str {
        self.row().name
    }

    pub(crate) fn course(self) -> Course {
        self.row().course
    }

    /// Whether the client has begun undisturbed.
    pub(super) fn begins_later(self) -> bool {
        self.faults("", self.row().lasts_ms).iter().all(|fault| !fault["at"].is_null())
    }

    pub(crate) fn faults(self, resource: &str, lasts_ms: u64) -> Vec<Value> {
        (self.row().faults)(resource, lasts_ms)
    }

    pub(crate) fn describe(self, resource: &str) -> String {
        self.row().situation.replace("{}", resource.split('.').next().unwrap_or_default())
    }
}

/// The usual values of a row.
const ROW: Row = Row {
    name: "",
    situation: "",
    faults: |_, _| Vec::new(),
    course: Course::Standard,
    rare: None,
    of_another: false,
    on_time_ms: None,
    once: false,
    lasts_ms: 0,
};

/// How long a request has no answer, in milliseconds.
const UNANSWERED_MS: u64 = 9000;
/// How late events may be that nothing holds, in milliseconds.
const ON_TIME_MS: u64 = 2000;
/// Events that are held before a 410, so that a list must repair a gap, in milliseconds.
const GAP_MS: u64 = 600;

/// A fault at a time in milliseconds after the usual one; a negative number is before it.
fn at(after_ms: i64, mut fault: Value) -> Value {
    let ms = i64::try_from(FAULT_MS).unwrap_or_default() + after_ms;
    fault["at"] = format!("{ms}ms").into();
    fault
}

fn lasting(ms: u64, mut fault: Value) -> Value {
    fault["for"] = format!("{ms}ms").into();
    fault
}

fn end(of: &str, after_ms: i64) -> Value {
    at(after_ms, json!({"name": "watch-end", "resource": of}))
}

/// Refuses requests of these kinds from just before the usual time on.
fn refused(of: &str, on: &Value, status: u16) -> Value {
    at(-50, json!({"name": "http-error", "resource": of, "on": on, "status": status}))
}

/// Events are held, then the history is compacted: only a list shows what happened.
fn gap(of: &str, form: &str) -> Vec<Value> {
    let held = lasting(GAP_MS, json!({"name": "silent-watch", "resource": of}));
    vec![at(0, held), at(700, json!({"name": "watch-410", "resource": of, "form": form}))]
}

fn restored(of: &str, newer: &str) -> Vec<Value> {
    vec![at(0, json!({"name": "rewind", "resource": of, "age": "1s", "newer": newer, "watches": "cut"}))]
}

/// All rows, in two tables.
const TABLES: [&[Row]; 2] = [streams::ROWS, answers::ROWS];

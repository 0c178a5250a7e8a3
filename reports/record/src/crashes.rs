//! Crashes: a process of the subject ended by itself and is started again.
//!
//! Owns the row and the number of rows written. The judge decides whether there are too many.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Crashes that have a row each. Of later ones only each doubling and the last have a row, because a subject with a
/// short back-off may crash all night.
pub const CRASH_ROWS_MAX: u64 = 1000;

/// One row of `crashes.jsonl`: a process of the subject ended by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CrashRow {
    /// When the harness saw that the process had ended.
    pub t_ms: u64,
    /// Its number among all crashes of the run, from 1.
    pub number: u64,
    /// The process, if the subject has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// The exit status or signal, for people.
    pub status: String,
    /// How long it had run, in milliseconds.
    pub ran_ms: u64,
    /// Its number among the crashes since the back-off was last reset, from 1. From the second on it is a crash loop.
    pub in_a_row: u64,
    /// Time without a process after the crash, in milliseconds.
    pub back_off_ms: u64,
    /// Its last lines of output.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_words: String,
}

impl CrashRow {
    /// Whether it always has a row of its own.
    pub fn is_told(&self) -> bool {
        self.number <= CRASH_ROWS_MAX || self.number.is_power_of_two()
    }
}

//! Crashes: a process of the subject ended by itself, and the harness started the process again.
//!
//! Owns the rows of `crashes.jsonl` and the limit of their number. A judge decides whether a run has too many crashes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of crashes of a run that each have a row. Of later crashes, only the crash at each doubling of the number and
/// the last crash have a row, because a subject with a short back-off may crash all night.
pub const CRASH_ROWS_MAX: u64 = 1000;

/// One row of `crashes.jsonl`, for one crash: a process of the subject ended by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CrashRow {
    /// When the harness saw that the process had ended.
    pub t_ms: u64,
    /// The number of this crash among all crashes of the run, from 1.
    pub number: u64,
    /// The process that ended, if the subject has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// The exit status or signal, for people.
    pub status: String,
    /// How long the process had run, in milliseconds.
    pub ran_ms: u64,
    /// The number of this crash since the back-off was last reset, from 1. From the second such crash on, the process
    /// is in a crash loop.
    pub in_a_row: u64,
    /// Time without a process after the crash, in milliseconds.
    pub back_off_ms: u64,
    /// The last lines that the process printed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_words: String,
}

impl CrashRow {
    /// Whether this crash has a row in `crashes.jsonl`, even if it is not the last crash of the run.
    pub fn is_told(&self) -> bool {
        self.number <= CRASH_ROWS_MAX || self.number.is_power_of_two()
    }
}

//! `answers.json`: how the subject's webhooks answered the same questions again.
//!
//! Owns the types of `answers.json` and the maximum number of its entries. The judge of `admission.consistent` reads it.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::files::write_whole;
use super::{Error, file};

/// Maximum number of differences that are listed.
pub const DIFFERENCES_MAX: usize = 20;

/// Answers to the same questions, first on a quiet system and then under other conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Answers {
    /// Number of questions.
    pub questions: u32,
    /// Number of answers that were compared with the answer on a quiet system.
    pub compared: u32,
    /// Differences without a reason, as sentences, the gravest first.
    pub differences: Vec<String>,
    /// Why the webhooks could not be asked; none if they were asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Answers {
    /// Writes `answers.json` into the record in `dir`, after the run; the file appears completely or not at all.
    pub fn write(&self, dir: &Path) -> Result<(), Error> {
        write_whole(&dir.join(file::ANSWERS), |bytes| {
            serde_json::to_writer_pretty(&mut *bytes, self)?;
            bytes.push(b'\n');
            Ok(())
        })
    }
}

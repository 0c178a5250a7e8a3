//! The record of a gate: one JSON line each for the comparison, for every slice and for every count, so that it can be
//! judged again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::metric::Load;
use super::slice::{Counted, Slice};

/// The version of lines and judgement.
pub const SCHEMA: &str = "longhaul.gate/v1";
/// The name of the file.
pub const FILE: &str = "slices.jsonl";
/// The most lines of a record: two sessions of forty minutes have some hundred.
const LINES_MAX: usize = 100_000;

/// The builds, and the settings of the comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Header {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// When it began, RFC 3339.
    pub started_at: String,
    /// The scenario.
    pub scenario: String,
    /// The baseline.
    pub a: Build,
    /// The build that may be worse.
    pub b: Build,
    /// The seed of the order and of the payloads.
    pub seed: u64,
    /// Requests a second; 0 if a controller only watches.
    pub rate: f64,
    /// Changes of objects a second; 0 if none are made.
    #[serde(default)]
    pub events: f64,
    /// The capacity of each build, in requests a second, measured before; the rate is at most half of the lower one.
    pub saturation: Option<[f64; 2]>,
    /// Blocks of four slices a session.
    pub blocks: u32,
    /// The measured length of a slice, in milliseconds.
    pub slice_ms: u64,
    /// The length of the load before that, in milliseconds.
    pub settle_ms: u64,
    /// The version of `longhaul`.
    pub longhaul: String,
    /// Processors of the machine.
    pub processors: usize,
    /// The command that repeats the gate.
    pub repeat: String,
}

impl Header {
    /// The load whose metrics lead: reviews, if any are sent.
    pub fn load(&self) -> Load {
        if self.rate > 0.0 { Load::Reviews } else { Load::Events }
    }
}

/// One of the builds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Build {
    /// The command line.
    pub command: String,
    /// The SHA-256 of its program, if that could be read.
    pub digest: Option<String>,
}

/// A line of the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Line {
    /// The first line.
    Header(Box<Header>),
    /// A slice. It replaces an earlier one with the same session, block and place.
    Slice(Box<Slice>),
    /// A count.
    Counted(Counted),
    /// A value that could not be measured, and why.
    Note(String),
    /// The time ran out before all blocks were played.
    Shortened(Shortened),
}

/// A session whose time ran out, with fewer blocks than planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Shortened {
    /// The number of the session.
    pub session: u32,
    /// The blocks that were played.
    pub blocks: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    pub header: Header,
    /// The slices, in their order; of repeated ones the last.
    pub slices: Vec<Slice>,
    /// Slices that were repeated and are no longer in `slices`.
    pub replaced: Vec<Slice>,
    pub counted: Vec<Counted>,
    /// Values that could not be measured, and why.
    pub notes: Vec<String>,
    /// Sessions whose time ran out.
    pub shortened: Vec<Shortened>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A line that does not belong to this version.
    #[error("line {line} of {FILE} is not one of {SCHEMA}: {source}; judge it with the version that wrote it")]
    Line {
        /// The number of the line, from 1.
        line: usize,
        source: serde_json::Error,
    },
    /// No header in the first line.
    #[error("{FILE} does not begin with its header; name the folder that `longhaul gate --out` wrote")]
    Headless,
    #[error("{FILE} has more than {LINES_MAX} lines, the most that a gate writes")]
    TooLong,
}

impl Record {
    /// A record with only its header.
    pub fn of(header: Header) -> Self {
        let (slices, replaced) = (Vec::new(), Vec::new());
        Self { header, slices, replaced, counted: Vec::new(), notes: Vec::new(), shortened: Vec::new() }
    }

    /// The blocks that a session was planned with, or that were played if its time ran out.
    pub fn blocks(&self, session: u32) -> u32 {
        let shortened = self.shortened.iter().find(|one| one.session == session);
        shortened.map_or(self.header.blocks, |one| one.blocks.min(self.header.blocks))
    }

    /// Adds a line in the form in which a reader of the record gets it, and returns the text to write: numbers that are
    /// read back may differ in their last digit, and the verdict must not.
    pub fn add(&mut self, line: &Line) -> Result<String, Error> {
        let text = line.text();
        let read = serde_json::from_str(&text).map_err(|source| Error::Line { line: 0, source })?;
        self.push(read);
        Ok(text)
    }

    fn push(&mut self, line: Line) {
        match line {
            // There is one header, the first line.
            Line::Header(_) => {}
            Line::Slice(slice) => match self.slices.iter_mut().find(|one| one.place() == slice.place()) {
                Some(before) => self.replaced.push(std::mem::replace(before, *slice)),
                None => self.slices.push(*slice),
            },
            Line::Counted(counted) => self.counted.push(counted),
            Line::Note(note) => self.notes.push(note),
            Line::Shortened(shortened) => self.shortened.push(shortened),
        }
    }

    /// Reads a record. A last line that is cut off, as after a loss of power, is left out.
    pub fn read(text: &str) -> Result<Self, Error> {
        let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n')).enumerate();
        let parse = |(at, line): (usize, &str)| {
            if at >= LINES_MAX {
                return Err(Error::TooLong);
            }
            serde_json::from_str::<Line>(line).map_err(|source| Error::Line { line: at + 1, source })
        };
        let Some(Line::Header(header)) = lines.next().map(parse).transpose()? else { return Err(Error::Headless) };
        let mut record = Self::of(*header);
        for line in lines {
            record.push(parse(line)?);
        }
        Ok(record)
    }
}

impl Line {
    /// The line in the file, with its line end.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("a line has only texts and finite numbers as keys and values") + "\n"
    }
}

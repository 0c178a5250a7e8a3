//! The record of a gate: one JSON line for the comparison, for every measurement and for every count. A gate can be
//! judged again from its record.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::metric::Load;
use super::slice::{Counted, Slice};

/// The version of the schema of the record's lines and of the judgement.
pub const SCHEMA: &str = "longhaul.gate/v1";
pub const FILE: &str = "slices.jsonl";
/// Maximum number of lines in a record; two sessions of forty minutes have a few hundred.
const LINES_MAX: usize = 100_000;

/// The two builds and the settings of the comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Header {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// When the gate began, RFC 3339.
    pub started_at: String,
    /// The name or file of the scenario.
    pub scenario: String,
    /// The baseline build.
    pub a: Build,
    /// The candidate build, which may be worse.
    pub b: Build,
    /// The seed of the measurements' order and of the payloads.
    pub seed: u64,
    /// Requests per second; 0 if a controller only watches.
    pub rate: f64,
    /// Changes of objects per second; 0 if none are made.
    #[serde(default)]
    pub events: f64,
    /// The capacity of each build in requests per second, measured before the sessions; `rate` is at most half of the
    /// lower capacity.
    pub saturation: Option<[f64; 2]>,
    /// Number of blocks of four measurements in each session.
    pub blocks: u32,
    /// The length of a measurement, in milliseconds.
    pub slice_ms: u64,
    /// The length of the load before a measurement begins, in milliseconds.
    pub settle_ms: u64,
    /// The version of `longhaul`.
    pub longhaul: String,
    /// The number of processors of the gate's machine.
    pub processors: usize,
    /// The command that repeats the gate.
    pub repeat: String,
}

impl Header {
    /// The kind of load whose metrics lead: reviews if the gate sends any, otherwise events.
    pub fn load(&self) -> Load {
        if self.rate > 0.0 { Load::Reviews } else { Load::Events }
    }
}

/// One of the two builds that a gate compares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Build {
    /// The command line of the build.
    pub command: String,
    /// The SHA-256 of the build's program, if the program could be read.
    pub digest: Option<String>,
}

/// A line of the record of a gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Line {
    /// The first line, with the settings of the comparison.
    Header(Box<Header>),
    /// A measurement, which replaces an earlier measurement with the same session, block and index.
    Slice(Box<Slice>),
    /// An exact count of one build.
    Counted(Counted),
    /// The reason why a value could not be measured.
    Note(String),
    /// A session that ended before all its blocks were measured.
    Shortened(Shortened),
}

/// A session whose time ran out after fewer blocks than planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Shortened {
    /// The number of the session.
    pub session: u32,
    /// The number of blocks that were measured in the session.
    pub blocks: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    pub header: Header,
    /// The measurements in their order, without those that were replaced later.
    pub slices: Vec<Slice>,
    /// The earlier measurements that were replaced; they are not in `slices`.
    pub replaced: Vec<Slice>,
    pub counted: Vec<Counted>,
    /// Reasons why values could not be measured.
    pub notes: Vec<String>,
    /// Sessions whose time ran out before all their blocks were measured.
    pub shortened: Vec<Shortened>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("line {line} of {FILE} is not one of {SCHEMA}: {source}; judge it with the version that wrote it")]
    Line {
        /// The number of the line, from 1.
        line: usize,
        source: serde_json::Error,
    },
    #[error("{FILE} does not begin with its header; name the folder that `longhaul gate --out` wrote")]
    Headless,
    #[error("{FILE} has more than {LINES_MAX} lines, the most that a gate writes")]
    TooLong,
}

impl Record {
    pub fn of(header: Header) -> Self {
        let (slices, replaced) = (Vec::new(), Vec::new());
        Self { header, slices, replaced, counted: Vec::new(), notes: Vec::new(), shortened: Vec::new() }
    }

    /// The planned number of blocks of a session, or the measured number if its time ran out.
    pub fn blocks(&self, session: u32) -> u32 {
        let shortened = self.shortened.iter().find(|one| one.session == session);
        shortened.map_or(self.header.blocks, |one| one.blocks.min(self.header.blocks))
    }

    /// Adds a line to the record, after reading it back from its text, and returns the text to write. Numbers that are
    /// read back may differ in their last digit, and the verdict must be the same as after reading the file.
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

    /// Reads the record of a gate. An incomplete last line, as after a loss of power, is left out.
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
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("a line has only texts and finite numbers as keys and values") + "\n"
    }
}

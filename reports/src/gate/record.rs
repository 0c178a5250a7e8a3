//! The record of a gate: one JSON line each for what was compared, for every slice and for every count, so that it can be judged again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::metric::Load;
use super::slice::{Counted, Slice};

/// The version of lines and judgement.
pub const SCHEMA: &str = "longhaul.gate/v1";
/// The name of the file.
pub const FILE: &str = "slices.jsonl";
/// A record has at most so many lines: two sessions of forty minutes have some hundred.
const LINES_MAX: usize = 100_000;

/// What was compared, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Header {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// When it began.
    pub started_at: String,
    /// The scenario.
    pub scenario: String,
    /// The first build.
    pub a: Build,
    /// The second.
    pub b: Build,
    /// Order and payloads follow from it.
    pub seed: u64,
    /// Requests a second; 0 where a controller only watches.
    pub rate: f64,
    /// Changes of objects a second; 0 where none are made.
    #[serde(default)]
    pub events: f64,
    /// What each build can take, in requests a second, as it was found before; the rate is at most half of the lower one.
    pub saturation: Option<[f64; 2]>,
    /// Blocks of four slices a session.
    pub blocks: u32,
    /// How long a slice is measured, in milliseconds.
    pub slice_ms: u64,
    /// How long load runs before that, in milliseconds.
    pub settle_ms: u64,
    /// The version of `longhaul`.
    pub longhaul: String,
    /// Processors of the machine.
    pub processors: usize,
    /// The command that plays it again.
    pub repeat: String,
}

impl Header {
    /// Which load leads: reviews, where some are sent.
    pub fn load(&self) -> Load {
        if self.rate > 0.0 { Load::Reviews } else { Load::Events }
    }
}

/// One of the builds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Build {
    /// What was started.
    pub command: String,
    /// The SHA-256 of its program, where that could be read.
    pub digest: Option<String>,
}

/// A line of the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Line {
    /// The first.
    Header(Box<Header>),
    /// A slice. One with session, block and place of another was played again, and takes its place.
    Slice(Box<Slice>),
    /// A count.
    Counted(Counted),
    /// What could not be measured, and why.
    Note(String),
    /// The time was up before all blocks were played.
    Shortened(Shortened),
}

/// A session that ended in time, with fewer blocks than it was planned with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Shortened {
    /// Which.
    pub session: u32,
    /// So many blocks were played.
    pub blocks: u32,
}

/// All of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// What was compared.
    pub header: Header,
    /// The slices, in their order; of one that was played again the last.
    pub slices: Vec<Slice>,
    /// Slices that were played again and are not among them any more.
    pub replaced: Vec<Slice>,
    /// The counts.
    pub counted: Vec<Counted>,
    /// What could not be measured.
    pub notes: Vec<String>,
    /// Sessions whose time was up.
    pub shortened: Vec<Shortened>,
}

/// Why a record could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A line that is none of this version.
    #[error("line {line} of {FILE} is not one of {SCHEMA}: {source}; judge it with the version that wrote it")]
    Line {
        /// From 1.
        line: usize,
        /// Why.
        source: serde_json::Error,
    },
    /// No header in the first line.
    #[error("{FILE} does not begin with its header; name the folder that `longhaul gate --out` wrote")]
    Headless,
    /// Too many lines.
    #[error("{FILE} has more than {LINES_MAX} lines, the most that a gate writes")]
    TooLong,
}

impl Record {
    /// A record with nothing in it yet.
    pub fn of(header: Header) -> Self {
        let (slices, replaced) = (Vec::new(), Vec::new());
        Self { header, slices, replaced, counted: Vec::new(), notes: Vec::new(), shortened: Vec::new() }
    }

    /// How many blocks a session was to have, and had where its time was up.
    pub fn blocks(&self, session: u32) -> u32 {
        let shortened = self.shortened.iter().find(|one| one.session == session);
        shortened.map_or(self.header.blocks, |one| one.blocks.min(self.header.blocks))
    }

    /// Takes a line as whoever reads the record will read it, and returns what to write: numbers that are read back may differ in their last
    /// digit, and the verdict must not.
    pub fn add(&mut self, line: &Line) -> Result<String, Error> {
        let text = line.text();
        let read = serde_json::from_str(&text).map_err(|source| Error::Line { line: 0, source })?;
        self.push(read);
        Ok(text)
    }

    fn push(&mut self, line: Line) {
        match line {
            // There is one header, the first.
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

    /// Reads what was written. A last line that is cut off, as after a loss of power, is left out.
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
    /// As it stands in the file, with its line end.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("a line has only texts and finite numbers as keys and values") + "\n"
    }
}

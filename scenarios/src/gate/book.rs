//! The folder of a gate: its record, written line by line, and its reports.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use reports::gate::record::{FILE, Line};
use reports::gate::{Header, Judgement, Record, judge, junit};
use reports::render;

use crate::private;

/// Names of the report files, which are written after judging.
const PAGES: [&str; 4] = ["gate.json", "gate.md", "gate.html", junit::FILE];
/// Maximum size of a record; two long sessions take some hundred kilobytes.
const RECORD_BYTES_MAX: u64 = 64 << 20;

pub(super) struct Book {
    record: Record,
    file: File,
    path: PathBuf,
}

impl Book {
    /// Starts the record in this folder. The folder already exists, because the started builds write logs into it.
    pub(super) fn create(folder: &Path, header: Header) -> Result<Self> {
        let path = folder.join(FILE);
        let file = File::create_new(&path).with_context(|| format!("failed to create {}", path.display()))?;
        let mut book = Self { record: Record::of(header.clone()), file, path };
        book.write(&Line::Header(Box::new(header)))?;
        Ok(book)
    }

    pub(super) fn write(&mut self, line: &Line) -> Result<()> {
        let text = self.record.add(line)?;
        let written = self.file.write_all(text.as_bytes());
        written.with_context(|| format!("failed to write {}; make room and play the gate again", self.path.display()))
    }

    pub(super) fn record(&self) -> &Record {
        &self.record
    }
}

/// Creates the folder of a gate, or accepts an existing empty folder.
pub(crate) fn open(folder: &Path) -> Result<()> {
    private::folder(folder, "--out")
}

pub(crate) fn again(folder: &Path) -> Result<Judgement> {
    Ok(judge(&read(folder)?))
}

fn read(folder: &Path) -> Result<Record> {
    let path = folder.join(FILE);
    let bytes = reports::record::file_of(folder, FILE, RECORD_BYTES_MAX)?;
    let bytes = bytes.with_context(|| format!("failed to read {}: there is no such file", path.display()))?;
    let text = String::from_utf8(bytes).with_context(|| format!("failed to read {}", path.display()))?;
    Ok(Record::read(&text)?)
}

/// Writes the reports. In a CI job with a summary, also adds the Markdown report to the summary.
pub(crate) fn conclude(folder: &Path, judgement: &Judgement) -> Result<()> {
    let record = read(folder)?;
    let markdown = render::gate::markdown(judgement);
    let json = serde_json::to_string_pretty(judgement).context("failed to write the verdict as JSON")? + "\n";
    let texts = [json, markdown.clone(), render::gate_html(&record, judgement)?, junit::junit(judgement)?];
    for (name, text) in PAGES.into_iter().zip(texts) {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))?;
    }
    summarize(&markdown);
    Ok(())
}

/// Adds text to the summary of a CI job, if the job has a summary. A failed write does not change the verdict.
pub(super) fn summarize(markdown: &str) {
    let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY") else { return };
    let open = std::fs::OpenOptions::new().create(true).append(true).open(&path);
    if let Err(error) = open.and_then(|mut out| out.write_all(markdown.as_bytes())) {
        crate::out::err!("longhaul: the summary could not be written: {error}");
    }
}

//! Renderers show a judged run on a terminal, in a pull request, to a CI system, to a program, and in a browser.
//!
//! Owns the list of files that are written after a run. Each renderer is a pure function of record and judgement: the
//! same record gives the same bytes, on any machine and at any time.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use crate::judge::{Judgement, judge};
use crate::record::{self, Record, file};

mod compare;
mod csv;
mod ctrf;
mod diff;
pub mod gate;
mod history;
mod html;
mod hunt;
mod junit;
mod markdown;
mod openmetrics;
mod otlp;
mod size;
pub(crate) mod table;
mod terminal;
#[cfg(test)]
mod tests;

pub use compare::{compare, compare_markdown};
pub use csv::{CsvError, csv};
pub use ctrf::ctrf;
pub use diff::diff;
pub use history::{history, history_svg};
pub use html::{compare_html, diff_html, gate_html, html, hunt_html, running_html, size_html, suite_html};
pub use hunt::{hunt_junit, hunt_markdown, hunt_text};
pub use junit::junit;
pub use markdown::markdown;
pub use openmetrics::openmetrics;
pub use otlp::otlp;
pub use size::{size, size_beside, size_markdown};
pub use terminal::{Colour, terminal};

/// A file that is written after a run.
struct Renderer {
    /// The file's name in the directory of the run.
    file: &'static str,
    /// The file's purpose, for the help of commands.
    doc: &'static str,
    render: fn(&Record, &Judgement) -> Result<String, Error>,
}

/// The renderers of reports, in the order in which their files are written.
const RENDERERS: [Renderer; 7] =
    [VERDICT, html::ROW, markdown::ROW, junit::ROW, ctrf::ROW, openmetrics::ROW, otlp::ROW];

/// The names of the reports in a run's directory, and the purpose of each report.
pub fn reports() -> impl Iterator<Item = (&'static str, &'static str)> {
    RENDERERS.iter().map(|renderer| (renderer.file, renderer.doc))
}

const VERDICT: Renderer =
    Renderer { file: file::VERDICT, doc: "for programs: the verdict and every finding", render: |_, it| json(it) };

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Record(#[from] record::Error),
    #[error("render {}", file::HTML)]
    Html(#[from] askama::Error),
    #[error("render {}", file::JUNIT)]
    JUnit(#[from] quick_junit::SerializeError),
    #[error("render {}", file::OPENMETRICS)]
    OpenMetrics(#[from] std::fmt::Error),
    #[error("render {}, {} or {}", file::VERDICT, file::CTRF, file::OTLP)]
    Json(#[from] serde_json::Error),
    #[error("append the report to {path}")]
    Summary {
        path: String,
        #[source]
        source: std::io::Error,
    },
}

/// Judges the record in a run's directory again, and writes every report into this directory.
pub fn write_all(dir: &Path) -> Result<Judgement, Error> {
    let record = Record::open(dir)?;
    let judgement = judge(&record);
    write_reports(dir, &record, &judgement)?;
    Ok(judgement)
}

/// Writes every report of a judged record into the record's directory.
pub fn write_reports(dir: &Path, record: &Record, judgement: &Judgement) -> Result<(), Error> {
    let texts: Vec<(&str, String)> = RENDERERS
        .iter()
        .map(|renderer| Ok((renderer.file, (renderer.render)(record, judgement)?)))
        .collect::<Result<_, Error>>()?;
    for (name, text) in texts {
        record::write_whole(&dir.join(name), |out| {
            out.extend_from_slice(text.as_bytes());
            Ok(())
        })?;
    }
    Ok(())
}

/// The names of the report files, as text for the help of a command.
pub fn files() -> String {
    let lines: Vec<String> =
        RENDERERS.iter().map(|renderer| format!("  {:13} {}", renderer.file, renderer.doc)).collect();
    format!("Reports:\n{}", lines.join("\n"))
}

/// Appends the Markdown report to a shared file, such as the one that `$GITHUB_STEP_SUMMARY` names.
pub fn append_summary(path: &Path, record: &Record, judgement: &Judgement) -> Result<(), Error> {
    let text = markdown(record, judgement);
    let open = OpenOptions::new().create(true).append(true).open(path);
    open.and_then(|mut out| out.write_all(text.as_bytes()))
        .map_err(|source| Error::Summary { path: path.display().to_string(), source })
}

pub fn json(judgement: &Judgement) -> Result<String, Error> {
    let mut text = serde_json::to_string_pretty(judgement)?;
    text.push('\n');
    Ok(text)
}

//! `longhaul report DIR`: judge a record again and render it anew, also one of a run that was killed half-way.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use reports::record::Record;
use reports::render;

/// Re-judges, re-renders, prints the summary and exits with the verdict.
pub(super) fn report(directory: &Path) -> ExitCode {
    match crate::run::conclude(directory, crate::run::Said::Text) {
        Ok(judgement) => ExitCode::from(judgement.verdict.exit_code()),
        Err(error) => super::fail(reports::exit::USAGE, &error),
    }
}

/// Prints a series of the record; there is no verdict.
pub(super) fn csv(directory: &Path, series: &str) -> ExitCode {
    let written = Record::open(directory).map_err(anyhow::Error::from).and_then(|record| {
        let mut text = Vec::new();
        render::csv(&record, series, &mut text)?;
        std::io::stdout().write_all(&text).context("failed to write to stdout")
    });
    match written {
        Ok(()) => ExitCode::from(reports::exit::PASS),
        Err(error) => super::fail(reports::exit::USAGE, &error),
    }
}

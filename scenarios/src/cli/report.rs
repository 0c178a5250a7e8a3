//! `longhaul report DIR`: judges a run record again and rewrites its reports, even if the run was killed.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use reports::exit;
use reports::record::Record;

use super::Broken;

/// Judges the record again, rewrites its reports, prints the summary and returns the code of the verdict. If `series`
/// names a series, only prints this series.
pub(super) fn report(directory: &Path, series: Option<&str>) -> Result<u8> {
    let Some(series) = series else {
        return Ok(crate::run::conclude(directory, crate::run::Format::Text)?.verdict.exit_code());
    };
    let mut text = Vec::new();
    reports::render::csv(&Record::open(directory)?, series, &mut text)?;
    std::io::stdout().write_all(&text).context(Broken("failed to write to stdout"))?;
    Ok(exit::PASS)
}

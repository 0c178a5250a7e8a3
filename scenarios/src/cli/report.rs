//! `longhaul report DIR`: judges a record again and renders it anew, even after a run that was killed half-way.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use reports::exit;
use reports::record::Record;

use super::Broken;

/// Judges again, renders anew, prints the summary and exits with the verdict. If a series is named, it prints only that
/// series.
pub(super) fn report(directory: &Path, series: Option<&str>) -> Result<u8> {
    let Some(series) = series else {
        return Ok(crate::run::conclude(directory, crate::run::Format::Text)?.verdict.exit_code());
    };
    let mut text = Vec::new();
    reports::render::csv(&Record::open(directory)?, series, &mut text)?;
    std::io::stdout().write_all(&text).context(Broken("failed to write to stdout"))?;
    Ok(exit::PASS)
}

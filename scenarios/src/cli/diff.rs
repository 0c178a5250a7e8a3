//! `longhaul diff A B`: two run records side by side.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use reports::judge::judge;
use reports::record::Record;

use crate::out::out;

/// What can be said on the command line.
#[derive(Args)]
pub(super) struct Arguments {
    /// The first run's directory, for example that of the release.
    a: PathBuf,
    /// The second run's directory.
    b: PathBuf,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
    /// Write a page with both runs into this file as well: budgets, figures, and each series of both in one chart.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Judges both again and compares them. There is no verdict: exit 0, or 64 where one cannot be read.
pub(super) fn diff(Arguments { a, b, json, html }: &Arguments) -> ExitCode {
    match compared(a, b, *json, html.as_deref()) {
        Ok(text) => {
            out!("{}", text.trim_end());
            ExitCode::from(reports::exit::PASS)
        }
        Err(error) => super::fail(reports::exit::USAGE, &error),
    }
}

fn compared(a: &Path, b: &Path, is_json: bool, page: Option<&Path>) -> anyhow::Result<String> {
    let (one, other) = (Record::open(a)?, Record::open(b)?);
    let diff = reports::diff::diff((&one, &judge(&one)), (&other, &judge(&other)));
    if let Some(path) = page {
        let text = reports::render::diff_html(&one, &other, &diff)?;
        std::fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))?;
    }
    Ok(if is_json { serde_json::to_string_pretty(&diff)? } else { reports::render::diff(&diff) })
}

//! `longhaul diff A B`: two run records side by side.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

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
}

/// Judges both again and compares them. There is no verdict: exit 0, or 64 where one cannot be read.
pub(super) fn diff(Arguments { a, b, json }: &Arguments) -> ExitCode {
    match compared(a, b, *json) {
        Ok(text) => {
            out!("{}", text.trim_end());
            ExitCode::from(reports::exit::PASS)
        }
        Err(error) => super::fail(reports::exit::USAGE, &error),
    }
}

fn compared(a: &Path, b: &Path, is_json: bool) -> anyhow::Result<String> {
    let (one, other) = (Record::open(a)?, Record::open(b)?);
    let diff = reports::diff::diff((&one, &judge(&one)), (&other, &judge(&other)));
    Ok(if is_json { serde_json::to_string_pretty(&diff)? } else { reports::render::diff(&diff) })
}

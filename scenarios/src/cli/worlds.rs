//! `cargo xtask worlds`: runs the library's scenarios and planted bugs on every control plane.

use std::path::PathBuf;

use anyhow::Context as _;
use reports::exit;

use crate::scenario::ControlPlaneKind;
use crate::worlds::{self, Wanted};

/// Arguments of `cargo xtask worlds`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Only use these control planes, such as `mock,node`.
    #[arg(long, value_enum, value_delimiter = ',')]
    on: Vec<ControlPlaneKind>,
    /// Only run these scenarios, such as `smoke,multi-pod`.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Also run this scenario file, for example the scenario of an operator. The flag may be given several times.
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// The file to which results are added. Results of earlier calls stay in the file.
    #[arg(long, default_value = "worlds.jsonl")]
    results: PathBuf,
    /// Keep the records of all runs in this folder.
    #[arg(long, value_name = "DIR")]
    runs: Option<PathBuf>,
    /// Run no scenario, and only write the table of the results so far.
    #[arg(long)]
    table: bool,
    /// Write the table into this Markdown file instead of printing it, between `<!-- worlds -->` and `<!-- up to here
    /// -->`.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

/// Runs the scenarios and writes the table. The exit code says whether the table is complete, not whether the runs
/// passed.
pub(super) fn worlds(arguments: Arguments) -> anyhow::Result<u8> {
    let Arguments { on, only, file: files, results, runs, table, page } = arguments;
    if !table {
        worlds::play(&Wanted { on, only, runs, files }, &results)?;
    }
    let text = worlds::table(&results)?;
    match page {
        None => crate::out::out!("{}", text.trim_end()),
        Some(page) => {
            let old = std::fs::read_to_string(&page).with_context(|| format!("failed to read {}", page.display()))?;
            let new = worlds::into_page(&old, &text).with_context(|| {
                format!("{} has no `{}`: write it where the table belongs", page.display(), worlds::BEGIN)
            })?;
            std::fs::write(&page, new).with_context(|| format!("failed to write {}", page.display()))?;
        }
    }
    Ok(exit::PASS)
}

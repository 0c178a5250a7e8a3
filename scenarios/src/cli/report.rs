//! `longhaul report DIR`: judge a record again and render it anew, also one of a run that was killed half-way.

use std::path::Path;
use std::process::ExitCode;

/// Re-judges, re-renders, prints the summary and exits with the verdict.
pub(super) fn report(directory: &Path) -> ExitCode {
    match crate::run::conclude(directory, crate::run::Said::Text) {
        Ok(judgement) => ExitCode::from(judgement.verdict.exit_code()),
        Err(error) => super::fail(reports::exit::USAGE, &error),
    }
}

//! `alerts.onDryRun`: alerts of dry runs.

use super::{AtMost, sum};
use crate::judge::rule::{Findings, Name, Rule, Word};
use crate::record::{AlertsRow, Record};

pub(super) struct OnDryRun;

impl Rule for OnDryRun {
    const WORD: Option<Word> = Some(Word::AlertOnDryRun);
    const DEFAULT: Option<u64> = Some(0);

    fn judge(_: &Record, rows: &Vec<&AlertsRow>, limit: &u64, findings: &mut Findings) {
        let at_most = AtMost {
            observed: sum(rows, |row| row.on_dry_run),
            limit: *limit,
            of: sum(rows, |row| row.dry_runs),
            among: "dry run",
            what: ("alert was about a dry run", "alerts were about dry runs"),
            sort: "dry run",
        };
        at_most.judge(rows, Name::of::<Self>(), findings);
    }
}

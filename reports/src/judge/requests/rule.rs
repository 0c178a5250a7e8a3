//! What one rule on requests is made of: a row.
//!
//! A rule is a file with its row and a line in the list of `requests.rs`. What a scenario may write, the JSON Schema, the page on
//! faults and the words of a verdict come from the rows.

use super::Asked;
use crate::judge::{Findings, Word};
use crate::record::Record;

/// A limit on what the subject asks.
pub(super) trait Rule {
    /// What a scenario writes.
    type Limit;
    /// The key below `budgets.requests`; the budget of its findings is `requests.` and this.
    const KEY: &'static str;
    /// What the limit limits, for the schema and the page.
    const DOC: &'static str;
    /// A value that the example client meets, in YAML.
    const EXAMPLE: &'static str;
    /// What a subject is that breaks it.
    const WORD: Word;

    /// The budgets of its findings with their limits.
    fn limits(limit: &Self::Limit) -> Vec<(String, String)>;

    /// Judges.
    fn judge(record: &Record, asked: &Asked, limit: &Self::Limit, findings: &mut Findings);
}

/// What a rule says of itself.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(test), expect(dead_code, reason = "the page on faults is written by the test that compares it"))]
pub(in crate::judge) struct Row {
    pub key: &'static str,
    pub doc: &'static str,
    pub example: &'static str,
    pub word: Word,
}

impl Row {
    pub(super) const fn of<R: Rule>() -> Self {
        Self { key: R::KEY, doc: R::DOC, example: R::EXAMPLE, word: R::WORD }
    }

    /// Whether a budget is this rule's: its own name, or one below it.
    pub(in crate::judge) fn owns(&self, budget: &str) -> bool {
        let below = budget.strip_prefix("requests.").and_then(|key| key.strip_prefix(self.key));
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

/// The one budget of a rule that has no keys of its own below it.
pub(super) fn one<R: Rule>(limit: String) -> Vec<(String, String)> {
    vec![(name::<R>(), limit)]
}

/// The budget of a rule's findings.
pub(super) fn name<R: Rule>() -> String {
    format!("requests.{}", R::KEY)
}

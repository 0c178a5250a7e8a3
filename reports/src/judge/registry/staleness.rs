//! `registry.staleness`: how long after a tag moved an answer may give the old digest.

use units::Span;

use crate::judge::rule::{Findings, Rule, Word};
use crate::record::{Record, RegistryRow};

pub(super) struct Staleness;

impl Rule for Staleness {
    const WORD: Option<Word> = None;

    /// Adds no finding: the load generator used the limit to decide which answers are wrong, and the budget
    /// `admission.wrongVerdicts` judges the wrong answers.
    fn judge(_: &Record, _: &Vec<&RegistryRow>, _: &Span, _: &mut Findings) {}
}

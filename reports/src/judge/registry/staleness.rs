//! `registry.staleness`: the greatest age of an answer.

use units::Span;

use crate::judge::rule::{Findings, Rule, Word};
use crate::record::{Record, RegistryRow};

pub(super) struct Staleness;

impl Rule for Staleness {
    const WORD: Option<Word> = None;

    /// The load generator used it to decide which answers are wrong, and those are judged there.
    fn judge(_: &Record, _: &Vec<&RegistryRow>, _: &Span, _: &mut Findings) {}
}

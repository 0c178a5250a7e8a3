//! `registry.staleness`: how old an answer may be.

use units::Span;

use crate::judge::rule::{Findings, Rule, Word};
use crate::record::{Record, RegistryRow};

/// `registry.staleness`.
pub(super) struct Staleness;

impl Rule for Staleness {
    const WORD: Option<Word> = None;

    /// It decided what a wrong answer is while load ran, and is judged as one.
    fn judge(_: &Record, _: &Vec<&RegistryRow>, _: &Span, _: &mut Findings) {}
}

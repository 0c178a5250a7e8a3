//! `registry.staleness`: how old an answer may be.

use units::Span;

use crate::judge::rule::{Findings, Rule, Word};
use crate::record::{Record, RegistryRow};

/// `registry.staleness`.
pub(super) struct Staleness;

impl Rule for Staleness {
    const DOC: &'static str = "How long after a tag has moved a review may still be answered with the digest that it left; later answers are wrong \
        (`admission.wrongVerdicts`). Absent: for ever.";
    const WORD: Option<Word> = None;

    /// It decided what a wrong answer is while load ran, and is judged as one.
    fn judge(_: &Record, _: &Vec<&RegistryRow>, _: &Span, _: &mut Findings) {}
}

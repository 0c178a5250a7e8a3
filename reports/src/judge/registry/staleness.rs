//! `registry.staleness`: how old an answer may be.

use units::Span;

use super::Registry;
use crate::judge::rule::Rule;
use crate::judge::{Findings, Word};
use crate::record::{Record, RegistryRow};

/// `registry.staleness`.
pub(super) struct Staleness;

impl Rule for Staleness {
    type Section = Registry;
    type Limit = Span;
    const KEY: &'static str = "staleness";
    const DOC: &'static str = "How long after a tag has moved a review may still be answered with the digest that it left; later answers are wrong \
        (`admission.wrongVerdicts`). Absent: for ever.";
    const WORD: Option<Word> = None;

    /// It decided what a wrong answer is while load ran, and is judged as one.
    fn judge(_: &Record, _: &Vec<&RegistryRow>, _: &Span, _: &mut Findings) {}
}

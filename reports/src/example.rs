//! Judges the example record of the crate `record`, for tests of this crate.

pub use record::example::*;

use crate::judge::{Judgement, judge};

/// Judges a record that a test made.
pub trait Judged {
    /// Writes the record, reads it back and judges it.
    fn judged(&self) -> Judgement;
}

impl Judged for Example {
    fn judged(&self) -> Judgement {
        judge(&self.opened())
    }
}

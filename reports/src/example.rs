//! The example record of `record`, judged.

pub use record::example::*;

use crate::judge::{Judgement, judge};

/// Judging a record that a test writes.
pub trait Judged {
    /// Writes the record, reads it back and judges it.
    fn judged(&self) -> Judgement;
}

impl Judged for Example {
    fn judged(&self) -> Judgement {
        judge(&self.opened())
    }
}

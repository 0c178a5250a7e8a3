//! The example record of `record`, judged.

pub use record::example::*;

use crate::judge::{Judgement, judge};

/// What is found about a record that a test writes.
pub trait Judged {
    /// The judgement on what was written, read back.
    fn judged(&self) -> Judgement;
}

impl Judged for Example {
    fn judged(&self) -> Judgement {
        judge(&self.opened())
    }
}

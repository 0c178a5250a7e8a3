//! Judges the example record of the crate `record`, for tests of this crate.

pub use record::example::*;

use record::Objects;

use crate::judge::{Judgement, Verdict, judge};

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

/// The judgement of the clean record with these facts about objects, under `budgets` if they are given.
pub fn judgement_of_objects(objects: Option<Objects>, budgets: Option<&str>) -> Judgement {
    let mut example = Example::clean();
    if let Some(budgets) = budgets {
        example.manifest.budgets = serde_json::from_str(budgets).unwrap();
    }
    example.objects = objects;
    example.judged()
}

/// Verdict and text of a budget's finding; `None` if the budget was not judged.
pub fn finding<'a>(judgement: &'a Judgement, budget: &str) -> Option<(Verdict, &'a str)> {
    let found = judgement.findings.iter().find(|finding| finding.budget == budget);
    found.map(|finding| (finding.verdict, finding.text.as_str()))
}

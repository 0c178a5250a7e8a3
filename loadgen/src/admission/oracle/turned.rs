//! The right answer if the trusted keys have changed during the load. Pure, except for the changes of keys that
//! [`Truth`] contains.

use std::time::Instant;

use super::{Expected, Field, Refused};
use crate::admission::review::Template;
use crate::admission::truth::Truth;

/// The right answer to a call that began at `begun`, if one of its images has another verdict than in the plan. While a
/// change of keys may still take effect, the answers before and after the change are both right.
pub(super) fn expected(truth: &Truth, template: &Template, begun: Instant, allowed: bool) -> Option<Expected> {
    let (images, planned) = match &template.expected {
        Expected::Allow { images } => (images, &[][..]),
        Expected::Deny { images, refused } => (images, &refused[..]),
        Expected::Admit | Expected::Refuse | Expected::Any => return None,
    };
    let mut turned = false;
    // An image that cannot be resolved stays so with any trusted keys.
    let field_of = |refused: &Refused| images.iter().any(|field| field.written == refused.written);
    let mut refused: Vec<Refused> = planned.iter().filter(|one| !field_of(one)).cloned().collect();
    for field in images.iter().filter(|field| field.asked) {
        let of_plan = planned.iter().find(|one| one.written == field.written);
        match truth.turned(reference(field), begun) {
            None => refused.extend(of_plan.cloned()),
            Some(verdicts) => {
                turned = true;
                // An admission needs the verdict of every image, a denial that of one image.
                let fitting = verdicts.iter().find(|verdict| verdict.is_none() == allowed);
                let verdict = fitting.or(verdicts.first()).copied().flatten();
                let named = verdicts.len() == 1;
                refused.extend(verdict.map(|why| Refused { written: field.written.clone(), why, named }));
            }
        }
    }
    turned.then(|| {
        let images = images.clone();
        if refused.is_empty() { Expected::Allow { images } } else { Expected::Deny { images, refused } }
    })
}

/// The reference of the field's image, without a digest.
fn reference(field: &Field) -> &str {
    field.written.split_once('@').map_or(field.written.as_str(), |(reference, _)| reference)
}

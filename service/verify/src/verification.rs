//! The verdict on an image: each piece of evidence through all of its links, then the requirement over what is left.

use crate::digest::Subject;
use crate::evidence::Evidence;
use crate::requirement::Requirement;
use crate::time::UnixTime;
use crate::trust::Trust;
use crate::verdict::{Class, Outcome, Verdict};

/// Judges `evidence` for `subject`. Never fails: what cannot be read or checked is a rejected piece of the verdict. `now` is for
/// what has no signed time of its own; what a log or timestamp authority dated is judged at that time.
pub fn verify(
    _subject: &Subject,
    _evidence: &[Evidence],
    _requirement: &Requirement,
    _trust: &Trust,
    _now: UnixTime,
) -> Verdict {
    let cause = "verification is not built in".to_owned();
    let outcome = Outcome::Refused { class: Class::Misconfigured, cause };
    Verdict { outcome, signers: Vec::new(), rejected: Vec::new() }
}

//! Messages about an image's signatures, for the author of a refused object and for the audit log.

use std::fmt::Write as _;
use std::sync::Arc;

use service_verify::{Class as Found, Outcome, Requirement, Roots, Signer as Proof, Trust, Verdict};

use crate::validator::{Approval, SIGNERS_MAX, Signer};
use service_registry::verdicts::{Class, Failure};

/// Maximum number of rejected or unreadable signatures and bundles that a denial describes; others are only counted.
const REJECTED_SAID_MAX: usize = 3;
/// Maximum number of trust roots that a denial names.
const ROOTS_SAID_MAX: usize = 5;
/// Maximum number of characters of the cause for one object in a denial.
const CAUSE_CHARS_MAX: usize = 160;

#[derive(Default)]
pub(super) struct Searched {
    /// The locations that were searched for signatures, and the objects that were found.
    pub looked: Vec<String>,
    /// Objects with an invalid format.
    pub broken: Vec<String>,
    /// The first failure that made the result for the image uncertain.
    pub doubt: Option<Failure>,
}

/// The approval that follows from a positive verdict.
pub(super) fn approval(verdict: &Verdict) -> Arc<Approval> {
    let signer = |proof: &Proof| {
        let mut evidence = format!("{} {}", proof.kind.name(), proof.source);
        if let Some(index) = proof.log_index {
            let _ = write!(evidence, ", log index {index}");
        }
        if let Some(time) = proof.time {
            let _ = write!(evidence, ", {time}");
        }
        if let Some(predicate) = &proof.predicate_type {
            let _ = write!(evidence, ", {predicate}");
        }
        Signer { name: format!("{}: {}", proof.root, proof.identity), evidence }
    };
    let signers = verdict.signers.iter().take(SIGNERS_MAX).map(signer).collect();
    Arc::new(Approval { signers })
}

fn wanted(requirement: &Requirement, trust: &Trust) -> String {
    let names: Vec<String> = match &requirement.roots {
        Roots::Named(names) => names.clone(),
        Roots::All => trust.names().map(str::to_owned).collect(),
    };
    let more = names.len().saturating_sub(ROOTS_SAID_MAX);
    let names: Vec<_> = names.iter().take(ROOTS_SAID_MAX).map(|name| format!("`{name}`")).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let threshold = requirement.threshold;
    let many = if threshold > 1 { format!("{threshold} of ") } else { String::new() };
    format!("{many}{}{more}", names.join(", "))
}

/// The failure that says why the image may not run. If the result is uncertain, the message does not call the image
/// unsigned.
pub(super) fn refusal((requirement, trust): (&Requirement, &Trust), searched: Searched, verdict: &Verdict) -> Failure {
    let Searched { looked, broken, doubt } = searched;
    let looked = if looked.is_empty() { "nothing".to_owned() } else { looked.join(", ") };
    if let Some(doubt) = doubt {
        let said = format!("its signatures cannot be verified: {}; looked at {looked}", doubt.cause);
        return doubt.in_words(said);
    }
    let Outcome::Refused { class, cause } = &verdict.outcome else {
        return Failure::new(Class::Internal, "a verdict that is good was taken for a refusal");
    };
    let class = match class {
        // A piece exists and has a wrong form.
        Found::Unsigned if !broken.is_empty() => Class::Invalid,
        Found::Unsigned => Class::Unsigned,
        Found::Invalid => Class::Invalid,
        Found::Mismatch => Class::Mismatch,
        Found::Misconfigured => Class::Misconfigured,
    };
    let rejected = verdict.rejected.iter().map(|piece| format!("{}: {}", piece.source, piece.cause));
    let mut reasons: Vec<String> = rejected.chain(broken).collect();
    reasons.retain(|reason| !cause.contains(reason.as_str()));
    let more = reasons.len().saturating_sub(REJECTED_SAID_MAX);
    let wanted = wanted(requirement, trust);
    let mut said = match class {
        Class::Unsigned => format!("no signature by {wanted} in any format"),
        _ => format!("{cause} (wanted: {wanted})"),
    };
    for reason in reasons.into_iter().take(REJECTED_SAID_MAX) {
        said.push_str("; ");
        said.extend(reason.chars().take(CAUSE_CHARS_MAX));
    }
    if more > 0 {
        let _ = write!(said, "; and {more} more");
    }
    Failure::new(class, format!("{said}; looked at {looked}"))
}

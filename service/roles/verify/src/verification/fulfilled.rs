//! Counts the signers of an image: decides whether they are enough, and names the cause if not.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::Counted;
use crate::requirement::Requirement;
use crate::verdict::{Class, Identity, Outcome, Rejected, Signer};

/// Maximum number of rejected objects that a cause names; the verdict lists all of them.
const TOLD_MAX: usize = 3;

pub(super) fn outcome(requirement: &Requirement, counted: &[&Counted], rejected: &[Rejected]) -> Outcome {
    let mut found = Ok(());
    if requirement.image_signature {
        let signers: Vec<&Signer> = counted.iter().filter(|one| one.rules.is_empty()).map(|one| &one.signer).collect();
        found = enough(&signers, requirement.threshold, &requirement.required, "signature");
    }
    for (place, rule) in requirement.attestations.iter().enumerate() {
        let signers = counted.iter().filter(|one| one.rules.contains(&place)).map(|one| &one.signer);
        let signers: Vec<&Signer> = signers.collect();
        let what = format!("attestation of type {}", rule.predicate_type);
        // Next to signatures of the image, an attestation needs one signer; alone it needs as many as signatures would.
        let (threshold, required) =
            if requirement.image_signature { (1, &[][..]) } else { (requirement.threshold, &requirement.required[..]) };
        found = found.and_then(|()| enough(&signers, threshold, required, &what));
    }
    match found {
        Ok(()) => Outcome::Verified,
        Err(Missing { class, cause }) => refused(class, cause, rejected),
    }
}

/// The demand that the signatures do not fulfil. If no signature counts, `class` is `None`, and the rejected objects
/// decide the class.
struct Missing {
    class: Option<Class>,
    cause: String,
}

fn enough(signers: &[&Signer], threshold: usize, required: &[String], what: &str) -> Result<(), Missing> {
    if signers.is_empty() {
        return Err(Missing { class: None, cause: format!("no {what} that counts") });
    }
    let invalid = |cause| Err(Missing { class: Some(Class::Invalid), cause });
    let absent: Vec<_> = required.iter().filter(|name| !signers.iter().any(|signer| signer.root == **name)).collect();
    if !absent.is_empty() {
        let absent: Vec<_> = absent.into_iter().map(|name| format!("`{name}`")).collect();
        return invalid(format!("no {what} by {}, which must be among the signers", absent.join(", ")));
    }
    let count = distinct(signers);
    if count < threshold {
        let names: BTreeSet<_> = signers.iter().map(|signer| format!("`{}`", signer.root)).collect();
        let names: Vec<_> = names.into_iter().collect();
        return invalid(format!("{count} of {threshold} signers: {what} by {}", names.join(", ")));
    }
    Ok(())
}

/// The number of different signers, for which each root and each identity counts once: the size of the largest matching
/// of roots with identities.
fn distinct(signers: &[&Signer]) -> usize {
    let roots: BTreeSet<&str> = signers.iter().map(|signer| signer.root.as_str()).collect();
    let identities: BTreeSet<&Identity> = signers.iter().map(|signer| &signer.identity).collect();
    let identities: Vec<&Identity> = identities.into_iter().collect();
    let edges: Vec<Vec<usize>> = roots
        .iter()
        .map(|root| {
            let is_of = |identity: &&&Identity| {
                signers.iter().any(|signer| signer.root == **root && signer.identity == ***identity)
            };
            identities.iter().enumerate().filter(|(_, identity)| is_of(identity)).map(|(place, _)| place).collect()
        })
        .collect();
    let mut taken: Vec<Option<usize>> = vec![None; identities.len()];
    (0..edges.len()).filter(|root| place(*root, &edges, &mut taken, &mut BTreeSet::new())).count()
}

/// Finds an identity for `root`, and gives other roots another identity if needed. The recursion is at most as deep as
/// the number of roots.
fn place(root: usize, edges: &[Vec<usize>], taken: &mut [Option<usize>], seen: &mut BTreeSet<usize>) -> bool {
    for identity in &edges[root] {
        if !seen.insert(*identity) {
            continue;
        }
        let is_free = match taken[*identity] {
            None => true,
            Some(other) => place(other, edges, taken, seen),
        };
        if is_free {
            taken[*identity] = Some(root);
            return true;
        }
    }
    false
}

fn refused(class: Option<Class>, mut cause: String, rejected: &[Rejected]) -> Outcome {
    let of_pieces = rejected.iter().map(|piece| piece.class).max().unwrap_or(Class::Unsigned);
    for piece in rejected.iter().take(TOLD_MAX) {
        let _ = write!(cause, "; {}: {}", piece.source, piece.cause);
    }
    if rejected.len() > TOLD_MAX {
        let _ = write!(cause, "; and {} more", rejected.len() - TOLD_MAX);
    }
    Outcome::Refused { class: class.unwrap_or(of_pieces), cause }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::EvidenceKind;

    fn signer(root: &str, key: &str) -> Signer {
        Signer {
            root: root.to_owned(),
            identity: Identity::Key(key.to_owned()),
            kind: EvidenceKind::Signature,
            predicate_type: None,
            source: String::new(),
            log_index: None,
            time: None,
        }
    }

    #[test]
    fn a_signer_counts_once_under_however_many_names_and_signatures() {
        for (pairs, count) in [
            (&[("a", "1"), ("a", "1")][..], 1),
            (&[("a", "1"), ("b", "1")], 1),
            (&[("a", "1"), ("a", "2")], 1),
            (&[("a", "1"), ("b", "2")], 2),
            // `a` must leave 1 to `b`.
            (&[("a", "1"), ("a", "2"), ("b", "1")], 2),
            (&[("a", "1"), ("b", "1"), ("c", "1"), ("c", "2")], 2),
        ] {
            let all: Vec<Signer> = pairs.iter().map(|(root, key)| signer(root, key)).collect();
            assert_eq!(distinct(&all.iter().collect::<Vec<_>>()), count, "{pairs:?}");
        }
        assert_eq!(distinct(&[]), 0);
    }

    #[test]
    fn without_evidence_an_image_is_unsigned_and_with_bad_evidence_it_is_what_the_worst_piece_is() {
        let requirement = Requirement::default();
        let class = |classes: &[Class]| {
            let piece = |class: &Class| Rejected { source: "s".to_owned(), class: *class, cause: "c".to_owned() };
            let rejected: Vec<_> = classes.iter().map(piece).collect();
            match outcome(&requirement, &[], &rejected) {
                Outcome::Refused { class, .. } => class,
                Outcome::Verified => panic!("verified by nothing"),
            }
        };
        assert_eq!(class(&[]), Class::Unsigned);
        assert_eq!(class(&[Class::Invalid; 9]), Class::Invalid);
        assert_eq!(class(&[Class::Invalid, Class::Mismatch, Class::Invalid]), Class::Mismatch);
    }
}

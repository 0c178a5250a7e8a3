//! Resource versions, which are opaque text in requests, but can be compared if the server promises so.
//!
//! This module compares revisions (KEP-5504: decimal integers of at most 128 bits).

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision(Arc<str>);

impl Revision {
    /// The revision in a `resourceVersion`; `None` for an empty text.
    pub fn new(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self(text.into()))
    }

    /// The revision `0`, which means "any state" in a request.
    pub fn zero() -> Self {
        Self("0".into())
    }

    /// Whether this revision is certainly older than `other`; false if the two cannot be compared.
    pub fn older_than(&self, other: &Self) -> bool {
        matches!((self.number(), other.number()), (Some(a), Some(b)) if a.cmp(&b) == Ordering::Less)
    }

    /// The newer of two revisions; `other` if they cannot be compared.
    pub fn newest(self, other: Self) -> Self {
        if other.older_than(&self) { self } else { other }
    }

    /// The revision whose number is higher by one. Only a client with a mistake counts revisions in this way.
    pub fn following(&self) -> Self {
        self.number().map_or_else(|| self.clone(), |number| Self((number + 1).to_string().into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn number(&self) -> Option<u128> {
        self.0.parse().ok()
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_as_numbers_and_texts_not_at_all() {
        let revision = |text| Revision::new(text).unwrap();
        assert!(revision("9").older_than(&revision("10")));
        assert!(!revision("10").older_than(&revision("10")));
        assert!(!revision("a").older_than(&revision("b")));
        assert_eq!(revision("10").newest(revision("9")), revision("10"));
        assert_eq!(Revision::new(""), None);
        assert_eq!((revision("9").following(), revision("a").following()), (revision("10"), revision("a")));
    }
}

//! The keys that several faults share: the keys of every fault, and the keys that choose targets within a family.

/// The keys that every fault has.
pub(crate) const OF_ALL: [&str; 7] = ["name", "id", "at", "when", "for", "count", "probability"];

/// The keys that choose targets, and the faults that have them, as text.
pub(super) const CHOOSING: [(&str, &str); 9] = [
    ("resource", "faults on requests, watches and workloads"),
    ("userAgent", "faults on requests and watches"),
    ("repository", "faults on requests to the registry"),
    ("on", "faults on requests"),
    ("query", "faults on requests and watches"),
    ("nth", "faults on requests, watches and connections"),
    ("every", "faults on requests, watches and connections"),
    ("endpoint", "faults on requests, watches and connections"),
    ("afterEvents", "faults on watches"),
];

/// Whether a key belongs to single faults and sets details of their effect.
pub(super) fn is_of_rows(key: &str) -> bool {
    !OF_ALL.contains(&key) && CHOOSING.iter().all(|(choosing, _)| *choosing != key)
}

/// Whether every fault, or every fault of a family, has a key.
pub(super) fn is_shared(key: &str) -> bool {
    !is_of_rows(key)
}

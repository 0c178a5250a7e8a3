//! The version of an object in a write, and its labels. Pure: no I/O.

use rand_chacha::ChaCha8Rng;

use crate::seed;

/// The label that identifies all objects of churn.
pub(crate) const LABEL: &str = "longhaul.dev/churn";
/// The label of all objects in one group, which are deleted together.
pub(super) const GROUP: &str = "longhaul.dev/group";

/// An object of churn after one of its writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version {
    pub seed: u64,
    pub section: u8,
    /// Whether the object is a dependent of another object.
    pub child: bool,
    pub object: u64,
    /// The number of the operation that writes the object; 0 for the first objects.
    pub revision: u64,
}

/// The seed, followed by a letter from the second section on.
pub(super) fn tag(seed: u64, section: u8) -> String {
    match section {
        0 => seed.to_string(),
        _ => format!("{seed}{}", char::from(b'a' + section)),
    }
}

/// The name of a section's random stream. The first section uses the name of a single section.
pub(super) fn of_section(name: &str, section: u8) -> String {
    if section == 0 { name.to_owned() } else { format!("{name} of section {section}") }
}

impl Version {
    pub(super) fn rng(self) -> ChaCha8Rng {
        let kind = if self.child { "child" } else { "object" };
        let name = format!("churn {kind} {} revision {}", self.object, self.revision);
        seed::stream(self.seed, &of_section(&name, self.section))
    }

    /// The value of churn's label on all objects of the section.
    pub(super) fn tag(self) -> String {
        tag(self.seed, self.section)
    }
}

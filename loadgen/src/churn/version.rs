//! The version of an object that is written, and its labels. Pure.

use rand_chacha::ChaCha8Rng;

use crate::seed;

/// The label that identifies every object that churn makes.
pub(crate) const LABEL: &str = "longhaul.dev/churn";
/// The label of objects that are deleted together.
pub(super) const GROUP: &str = "longhaul.dev/group";

/// An object, in one of its states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version {
    pub seed: u64,
    /// The section of the churn, from 0.
    pub section: u8,
    /// Whether it is a dependent.
    pub child: bool,
    /// Number of the object in its section.
    pub object: u64,
    /// Number of the operation that writes it; 0 for the fill.
    pub revision: u64,
}

/// The seed, and from the second section on a letter.
pub(super) fn tag(seed: u64, section: u8) -> String {
    match section {
        0 => seed.to_string(),
        _ => format!("{seed}{}", char::from(b'a' + section)),
    }
}

/// The name of a stream of a section. The first section has the names of a single section.
pub(super) fn of_section(name: &str, section: u8) -> String {
    if section == 0 { name.to_owned() } else { format!("{name} of section {section}") }
}

impl Version {
    pub(super) fn rng(self) -> ChaCha8Rng {
        let kind = if self.child { "child" } else { "object" };
        let name = format!("churn {kind} {} revision {}", self.object, self.revision);
        seed::stream(self.seed, &of_section(&name, self.section))
    }

    /// The label value of all objects of its section.
    pub(super) fn tag(self) -> String {
        tag(self.seed, self.section)
    }
}

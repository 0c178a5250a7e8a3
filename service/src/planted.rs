//! The list of planted bugs; compiled only with the feature `planted-bugs`.
//!
//! Owns the names. The bugs themselves sit where the real code would have them, behind the same feature.

/// A known bug that a run can switch on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// Deletions are dropped: neither the store nor the witness learns of them.
    MissedDelete,
    /// Half a mebibyte is kept for each distinct uid ever seen.
    LeakPerObject,
    /// A review with a failing image is admitted without a patch.
    WrongAllow,
    /// A 410 resumes from the same version for ever; the periodic relist is off.
    Ignore410,
}

impl Bug {
    /// Every name that `LONGHAUL_PLANTED_BUG` accepts, in the order of the enum.
    pub const NAMES: [&'static str; 4] = ["missed-delete", "leak-per-object", "wrong-allow", "ignore-410"];

    /// The bug of that name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "missed-delete" => Some(Self::MissedDelete),
            "leak-per-object" => Some(Self::LeakPerObject),
            "wrong-allow" => Some(Self::WrongAllow),
            "ignore-410" => Some(Self::Ignore410),
            _ => None,
        }
    }
}

/// Bytes kept for each uid by [`Bug::LeakPerObject`]; large enough that a short run shows a slope.
const LEAK_BYTES: usize = 512 * 1024;

/// What [`Bug::LeakPerObject`] keeps: one block for each distinct uid, with every page touched so that it is resident.
#[derive(Debug, Default)]
pub struct Hoard {
    blocks: std::collections::BTreeMap<String, Vec<u8>>,
}

impl Hoard {
    /// Keeps a block for `uid` unless there is one.
    pub fn keep(&mut self, uid: &str) {
        if !self.blocks.contains_key(uid) {
            // A non-zero fill writes every page; zeroed memory would stay unmapped and show no growth.
            self.blocks.insert(uid.to_owned(), vec![0xA5; LEAK_BYTES]);
        }
    }

    /// How many blocks are kept.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }
}

#[cfg(test)]
mod tests {
    use super::{Bug, Hoard};

    #[test]
    fn every_name_is_a_bug_and_other_names_are_not() {
        let bugs: Vec<_> = Bug::NAMES.iter().filter_map(|name| Bug::parse(name)).collect();
        assert_eq!(bugs, [Bug::MissedDelete, Bug::LeakPerObject, Bug::WrongAllow, Bug::Ignore410]);
        assert_eq!(Bug::parse("missed_delete"), None);
    }

    #[test]
    fn one_block_for_each_distinct_uid() {
        let mut hoard = Hoard::default();
        for uid in ["a", "b", "a"] {
            hoard.keep(uid);
        }
        assert_eq!(hoard.blocks(), 2);
    }
}

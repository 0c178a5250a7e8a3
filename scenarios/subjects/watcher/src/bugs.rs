//! Planted bugs, to prove that a run finds them. Never part of what is copied.

use std::collections::BTreeMap;

/// What `leak-per-object` keeps for every uid, in bytes.
const LEAK_BYTES: usize = 512 << 10;

/// What is planted.
pub enum Bug {
    /// Nothing.
    None,
    /// Deletions go unnoticed.
    MissedDelete,
    /// 410 does not lead to a list.
    Ignore410,
    /// Memory grows with every object ever seen.
    LeakPerObject(BTreeMap<String, Vec<u8>>),
}

impl Bug {
    /// From `LONGHAUL_PLANTED_BUG`; an unknown name ends the program.
    pub fn from_environment() -> Self {
        match std::env::var("LONGHAUL_PLANTED_BUG").as_deref() {
            Err(_) => Self::None,
            Ok("missed-delete") => Self::MissedDelete,
            Ok("ignore-410") => Self::Ignore410,
            Ok("leak-per-object") => Self::LeakPerObject(BTreeMap::new()),
            Ok(other) => {
                eprintln!("LONGHAUL_PLANTED_BUG={other}: write missed-delete, ignore-410 or leak-per-object");
                std::process::exit(64);
            }
        }
    }

    /// Whether deletions go unnoticed.
    pub const fn misses_deletes(&self) -> bool {
        matches!(self, Self::MissedDelete)
    }

    /// Whether 410 does not lead to a list.
    pub const fn ignores_gone(&self) -> bool {
        matches!(self, Self::Ignore410)
    }

    /// An object was seen. Ones, not zeros: untouched pages would not be resident.
    pub fn sees(&mut self, uid: &str) {
        if let Self::LeakPerObject(kept) = self
            && !kept.contains_key(uid)
        {
            kept.insert(uid.to_owned(), vec![1; LEAK_BYTES]);
        }
    }
}

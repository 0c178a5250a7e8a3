//! Regular expressions in CEL, compiled within a size limit. Matching takes time linear in the length of the text.

use regex::Regex;

use super::re2::{self, Refused};

/// Size limits of compiled patterns in bytes, each with the cost per byte of the searched text: a larger pattern may
/// read each byte more often.
const PATTERN_SIZES: &[(usize, usize)] = &[(16 * 1024, 1), (64 * 1024, 4), (512 * 1024, 32)];

/// A compiled pattern and the cost per byte of a searched text.
#[derive(Debug)]
pub(super) struct Pattern {
    pub regex: Regex,
    pub weight: usize,
}

impl Pattern {
    /// Whether the pattern is small enough to keep.
    pub(crate) fn is_small(&self) -> bool {
        self.weight == 1
    }
}

/// Compiles a pattern; the error says why the pattern is invalid.
pub(super) fn compile(pattern: &str) -> Result<Pattern, Refused> {
    let pattern = re2::translate(pattern)?;
    let mut made = Err(Refused::TooLarge);
    for (size, weight) in PATTERN_SIZES {
        made = re2::compile(&pattern, *size).map(|regex| Pattern { regex, weight: *weight });
        if !matches!(made, Err(Refused::TooLarge)) {
            break;
        }
    }
    made
}

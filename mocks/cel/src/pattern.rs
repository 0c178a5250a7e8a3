//! Patterns, compiled within a bound. Matching takes time linear in the text.

use regex::Regex;

use super::re2::{self, Refused};

/// Size limits for compiling, each with the cost of one byte of a text: a larger pattern may read every byte more
/// often.
const PATTERN_SIZES: &[(usize, usize)] = &[(16 * 1024, 1), (64 * 1024, 4), (512 * 1024, 32)];

/// A compiled pattern and its cost for each byte.
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

/// Compiles a pattern; the error says why that is impossible.
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

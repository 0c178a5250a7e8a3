//! Patterns, compiled within a bound. A text is looked at in linear time.

use regex::Regex;

use super::re2::{self, Refused};

/// Sizes of compiled patterns that are tried, with what each byte of a text costs then: a larger pattern may look at
/// every byte more often.
const PATTERN_SIZES: &[(usize, usize)] = &[(16 * 1024, 1), (64 * 1024, 4), (512 * 1024, 32)];

/// A compiled pattern and what it costs for each byte.
#[derive(Debug)]
pub(super) struct Pattern {
    pub regex: Regex,
    pub weight: usize,
}

impl Pattern {
    /// Whether it is worth keeping for what it takes.
    pub(crate) fn is_small(&self) -> bool {
        self.weight == 1
    }
}

/// Compiles a pattern; the error says why not.
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

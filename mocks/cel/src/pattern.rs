//! Patterns: compiling them within a bound, and what they find.
//!
//! Owns their cost: a larger pattern may look at every byte of a text more often. A text is looked at in linear time.

use std::sync::Arc;

use regex::Regex;

use super::run::{Found, Run};
use super::value::Val;
use crate::Failed;
use crate::re2::{self, Refused};

/// Sizes of compiled patterns that are tried, with what each byte of a text costs then: a larger pattern may look at
/// every byte more often.
const PATTERN_SIZES: &[(usize, usize)] = &[(16 * 1024, 1), (64 * 1024, 4), (512 * 1024, 32)];
/// What compiling a pattern costs, and each byte of it.
const PATTERN_STEPS: usize = 200;
const PATTERN_BYTE_STEPS: usize = 20;

/// A compiled pattern and what it costs for each byte.
#[derive(Debug)]
pub(super) struct Pattern {
    regex: Regex,
    weight: usize,
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

fn pattern(run: &mut Run<'_, '_>, source: &str) -> Result<Arc<Pattern>, Failed> {
    if let Some(known) = run.written.get(source).or_else(|| run.patterns.get(source)) {
        return Ok(known.clone());
    }
    run.pay(PATTERN_STEPS + source.len() * PATTERN_BYTE_STEPS)?;
    let made = compile(source)?;
    // One that is large was expensive to make.
    run.pay(PATTERN_STEPS * made.weight)?;
    let made = Arc::new(made);
    run.patterns.insert(source.to_owned(), made.clone());
    Ok(made)
}

/// Whether a pattern is somewhere in a text.
pub(super) fn matches<'a>(run: &mut Run<'a, '_>, text: &str, source: &str) -> Found<'a> {
    let pattern = pattern(run, source)?;
    run.pay(text.len() * pattern.weight)?;
    Ok(Val::Bool(pattern.regex.is_match(text)))
}

/// The first part of a text that matches, or nothing.
pub(super) fn find<'a>(run: &mut Run<'a, '_>, text: &str, source: &str) -> Found<'a> {
    let pattern = pattern(run, source)?;
    run.pay(text.len() * pattern.weight)?;
    Ok(Val::text(pattern.regex.find(text).map_or("", |found| found.as_str())))
}

/// The parts of a text that match; less than none is all.
pub(super) fn find_all<'a>(run: &mut Run<'a, '_>, text: &str, source: &str, most: i64) -> Found<'a> {
    let pattern = pattern(run, source)?;
    run.pay(text.len() * pattern.weight)?;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut parts = Vec::new();
    for found in pattern.regex.find_iter(text).take(most) {
        // To find the next one, all that is left may be looked at.
        run.pay_for_bytes((text.len() - found.start()) * pattern.weight)?;
        run.pay(1)?;
        parts.push(Val::text(found.as_str()));
    }
    Ok(Val::list(parts))
}

//! The CEL functions that search texts for regular expressions.
//!
//! Owns the cost of a search, which grows with the pattern, because a larger pattern may read each byte of a text more
//! often.

use std::sync::Arc;

use super::super::Failed;
use super::super::pattern::{Pattern, compile};
use super::super::run::{Found, Run};
use super::super::value::Val;

/// The fixed cost of compiling a pattern, and the additional cost of each byte of the pattern.
const PATTERN_STEPS: usize = 200;
const PATTERN_BYTE_STEPS: usize = 20;

fn pattern(run: &mut Run<'_, '_>, source: &str) -> Result<Arc<Pattern>, Failed> {
    if let Some(known) = run.written.get(source).or_else(|| run.patterns.get(source)) {
        return Ok(known.clone());
    }
    run.pay(PATTERN_STEPS + source.len() * PATTERN_BYTE_STEPS)?;
    let made = compile(source)?;
    // A large pattern was expensive to compile.
    run.pay(PATTERN_STEPS * made.weight)?;
    let made = Arc::new(made);
    run.patterns.insert(source.to_owned(), made.clone());
    Ok(made)
}

pub(super) fn matches<'a>(run: &mut Run<'a, '_>, text: &str, source: &str) -> Found<'a> {
    let pattern = pattern(run, source)?;
    run.pay(text.len() * pattern.weight)?;
    Ok(Val::Bool(pattern.regex.is_match(text)))
}

/// The first match in a text as an optional, which is empty if there is no match.
pub(super) fn find<'a>(run: &mut Run<'a, '_>, text: &str, source: &str) -> Found<'a> {
    let pattern = pattern(run, source)?;
    run.pay(text.len() * pattern.weight)?;
    Ok(Val::text(pattern.regex.find(text).map_or("", |found| found.as_str())))
}

/// All matches in a text, at most `most` of them; a negative `most` means all.
pub(super) fn find_all<'a>(run: &mut Run<'a, '_>, text: &str, source: &str, most: i64) -> Found<'a> {
    let pattern = pattern(run, source)?;
    run.pay(text.len() * pattern.weight)?;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut parts = Vec::new();
    for found in pattern.regex.find_iter(text).take(most) {
        // The search for the next match may read the rest of the text.
        run.pay_for_bytes((text.len() - found.start()) * pattern.weight)?;
        run.pay(1)?;
        parts.push(Val::text(found.as_str()));
    }
    Ok(Val::list(parts))
}

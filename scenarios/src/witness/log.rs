//! Witness `log`: a regular expression with named groups over the subject's stdout and stderr.

use facts::Change;
use regex::Regex;

use super::{Ear, change};
use facts::Observation;

/// Longer lines are cut before they are matched: a log line that long is no observation.
pub(crate) const LINE_BYTES_MAX: usize = 16 * 1024;

/// The expression. Groups: `uid` and `rv` are needed, `change` is a modification where it is absent.
pub(crate) struct Pattern {
    regex: Regex,
}

impl Pattern {
    /// Compiles an expression; the scenario's check has looked at its groups already.
    pub(crate) fn new(pattern: &str) -> Result<Self, regex::Error> {
        Ok(Self { regex: Regex::new(pattern)? })
    }

    /// Looks at one line. A line that does not match is no observation and no error.
    pub(crate) async fn line(&self, line: &str, ear: &Ear) {
        match self.observation(line, ear.now_ms()) {
            Some(Ok(observation)) => ear.heard(observation).await,
            Some(Err(why)) => ear.malformed(line, why),
            None => {}
        }
    }

    fn observation(&self, line: &str, t_ms: u64) -> Option<Result<Observation, &'static str>> {
        let found = self.regex.captures(line)?;
        let (Some(uid), Some(rv)) = (found.name("uid"), found.name("rv")) else {
            return Some(Err("the pattern matched without `uid` and `rv`"));
        };
        let change = match found.name("change") {
            None => Change::Modified,
            Some(word) => match change(word.as_str()) {
                Some(change) => change,
                None => return Some(Err("`change` is neither added, modified nor deleted")),
            },
        };
        Some(Ok(Observation { t_ms, uid: uid.as_str().into(), revision: rv.as_str().into(), change }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_observations() {
        let pattern = Pattern::new(r"saw (?P<change>\w+) (?P<uid>[0-9a-f-]+)@(?P<rv>\d+)").unwrap();
        let seen = pattern.observation("12:00 INFO saw Deleted ab-12@17 in default", 5).unwrap().unwrap();
        assert_eq!(
            (seen.uid.as_str(), seen.revision.as_str(), seen.change, seen.t_ms),
            ("ab-12", "17", Change::Deleted, 5)
        );
        assert!(pattern.observation("12:00 INFO nothing here", 5).is_none());
        assert!(pattern.observation("saw pondered ab@17", 5).unwrap().is_err());
    }
}

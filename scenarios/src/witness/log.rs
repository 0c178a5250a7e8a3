//! Witness `log`: a regular expression with named groups over the subject's stdout and stderr.

use std::sync::Arc;

use facts::{Change, Observation};
use regex::Regex;
use reports::record::Sees;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Ear, Kind, Lines, Open, change};

/// Its keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Log {
    /// A regular expression over stdout and stderr with the named groups `uid`, `rv` and `change`.
    #[serde(default)]
    pub pattern: Option<String>,
}

/// The expression. Groups: `uid` and `rv` are needed, `change` is a modification where it is absent.
struct Pattern {
    regex: Regex,
}

impl Kind for Log {
    const NAME: &'static str = "log";
    const REMEDY: &'static str = "Does `pattern` match what it logs? See subject.log in the record.";

    /// A line that does not say what changed cannot tell that something is gone.
    fn sees(&self) -> Sees {
        let deleted = self.read().is_ok_and(|pattern| pattern.tells_change());
        Sees { deleted, ..Sees::ALL }
    }

    fn check(&self) -> Result<(), String> {
        self.read().map(drop)
    }

    async fn open(&self, _: &Ear) -> anyhow::Result<Open> {
        let pattern = self.read().map_err(anyhow::Error::msg)?;
        Ok(Open { lines: Some(Arc::new(pattern)), ..Open::default() })
    }
}

impl Log {
    fn read(&self) -> Result<Pattern, String> {
        let Some(pattern) = &self.pattern else {
            return Err("`witness: {kind: log}` needs a `pattern` with the groups `uid`, `rv`, `change`".to_owned());
        };
        let regex =
            Regex::new(pattern).map_err(|error| format!("witness `pattern` is not a regular expression: {error}"))?;
        for group in ["uid", "rv"] {
            if !regex.capture_names().flatten().any(|name| name == group) {
                return Err(format!("witness `pattern` lacks the named group `(?P<{group}>…)`"));
            }
        }
        Ok(Pattern { regex })
    }
}

impl Pattern {
    fn tells_change(&self) -> bool {
        self.regex.capture_names().flatten().any(|name| name == "change")
    }
}

impl Lines for Pattern {
    fn read(&self, line: &str, t_ms: u64) -> Option<Result<Observation, &'static str>> {
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
        let pattern = Some(r"saw (?P<change>\w+) (?P<uid>[0-9a-f-]+)@(?P<rv>\d+)".to_owned());
        let pattern = Log { pattern }.read().unwrap();
        let seen = pattern.read("12:00 INFO saw Deleted ab-12@17 in default", 5).unwrap().unwrap();
        assert_eq!(
            (seen.uid.as_str(), seen.revision.as_str(), seen.change, seen.t_ms),
            ("ab-12", "17", Change::Deleted, 5)
        );
        assert!(pattern.read("12:00 INFO nothing here", 5).is_none());
        assert!(pattern.read("saw pondered ab@17", 5).unwrap().is_err());
        assert!(pattern.tells_change());
    }

    #[test]
    fn lines_without_a_change_tell_of_no_deletion() {
        let log = |pattern: &str| Log { pattern: Some(pattern.to_owned()) };
        assert!(!log(r"reconciled (?P<uid>\S+)@(?P<rv>\d+)").sees().deleted);
        assert!(log(r"(?P<change>\w+) (?P<uid>\S+)@(?P<rv>\d+)").sees().deleted);
    }
}

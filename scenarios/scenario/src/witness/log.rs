//! Witness `log`: reads the subject's stdout and stderr by a regular expression with named groups, or by the log format
//! of a library.

use std::sync::Arc;

use facts::{Change, Observation};
use record::Sees;
use regex::{Captures, Regex};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::known::{By, Known};
use super::{About, Claim, Commits, Fact, Kind, Lines, Of, Open, Reporter, Scene, Statement, change};

mod preset;

pub use preset::Preset;

/// The keys of `witness: {kind: log}`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Log {
    /// A regular expression over stdout and stderr. The named groups identify the object (`uid`, or `name` with
    /// `namespace`), the version (`rv`, or `generation`, or none) and, with `uid` and `rv`, the `change`.
    pub pattern: Option<String>,
    /// Instead of `pattern`: the library that writes the lines.
    pub preset: Option<Preset>,
    /// With `preset`: the kind of the objects, such as `Memcached`, if the subject has controllers of several kinds.
    pub of: Option<String>,
}

/// The version that the named groups of an expression prove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proves {
    /// The groups name a uid and a resourceVersion, which together are an observation.
    Whole {
        /// Whether the line also names the change.
        change: bool,
    },
    Revision,
    Generation,
    /// The groups name no version and prove only that the subject knows the object.
    Nothing,
}

/// The compiled regular expression, and the facts that its groups prove.
struct Pattern {
    regex: Regex,
    proves: Proves,
}

impl Kind for Log {
    const NAME: &'static str = "log";
    const REMEDY: &'static str = "Does `pattern` or `preset` match its log lines, and is its log level high enough? See subject.log in the record.";

    /// Without the group `change`, a line cannot show that an object is gone.
    fn sees(&self, _: &About) -> Sees {
        let proves = match self.preset {
            Some(preset) => preset.proves(),
            None => self.read().map_or(Proves::Nothing, |pattern| pattern.proves),
        };
        match proves {
            Proves::Whole { change } => Sees { deleted: change, ..Sees::ALL },
            Proves::Revision | Proves::Generation => Sees { created: true, updated: true, ..Sees::NOTHING },
            Proves::Nothing => Sees { created: true, ..Sees::NOTHING },
        }
    }

    fn check(&self, about: &About) -> Result<(), String> {
        let by_name = match (&self.pattern, self.preset) {
            (Some(_), Some(_)) => {
                return Err("`witness` has both `pattern` and `preset`: keep one".to_owned());
            }
            (None, Some(preset)) => preset.is_by_name(),
            _ if self.of.is_some() => return Err("witness `of` belongs to `preset`: leave it out".to_owned()),
            _ => !self.read()?.has("uid"),
        };
        if by_name && about.reuses_names {
            return Err("`script` makes objects again under the same name, and lines without the uid cannot tell them apart: log the uid, or use \
                 another witness"
                .to_owned());
        }
        if let Some(other) = about.others.first().filter(|_| by_name) {
            return Err(format!(
                "the lines of this witness have no uid, and {other} is judged as well: leave it out of `watches`"
            ));
        }
        Ok(())
    }

    async fn open(&self, _: &Reporter, _: &Scene) -> anyhow::Result<Open> {
        if let Some(preset) = self.preset {
            let lines = preset.lines(self.of.clone()).map_err(anyhow::Error::msg)?;
            return Ok(Open { lines: Some(lines), commits: preset.proves().commits(), ..Open::default() });
        }
        let pattern = self.read().map_err(anyhow::Error::msg)?;
        let commits = pattern.proves.commits();
        Ok(Open { lines: Some(Arc::new(pattern)), commits, ..Open::default() })
    }
}

impl Log {
    fn read(&self) -> Result<Pattern, String> {
        let Some(pattern) = &self.pattern else {
            return Err("`witness: {kind: log}` needs a `pattern` with the groups `uid`, `rv`, `change`, or the `preset` of a library"
                .to_owned());
        };
        let regex =
            Regex::new(pattern).map_err(|error| format!("witness `pattern` is not a regular expression: {error}"))?;
        let has = |group: &str| regex.capture_names().flatten().any(|name| name == group);
        if !has("uid") && !has("name") {
            return Err(
                "witness `pattern` does not identify the object: add the named group `(?P<uid>…)`, or `(?P<name>…)` and `(?P<namespace>…)`"
                    .to_owned(),
            );
        }
        if has("rv") && has("generation") {
            return Err("witness `pattern` has both groups `rv` and `generation`: keep one".to_owned());
        }
        let proves = match (has("uid") && has("rv"), has("rv"), has("generation")) {
            (true, ..) => Proves::Whole { change: has("change") },
            _ if has("change") => {
                return Err(
                    "witness `pattern` has the group `change`, which needs `(?P<uid>…)` and `(?P<rv>…)` beside it"
                        .to_owned(),
                );
            }
            (_, true, _) => Proves::Revision,
            (.., true) => Proves::Generation,
            _ => Proves::Nothing,
        };
        Ok(Pattern { regex, proves })
    }
}

impl Proves {
    /// The reader of commits that resolves claims, if lines name no resourceVersion.
    fn commits(self) -> Option<Box<dyn Commits>> {
        let by = match self {
            Self::Whole { .. } => return None,
            Self::Revision => By::Revision,
            Self::Generation => By::Generation,
            Self::Nothing => By::Nothing,
        };
        Some(Box::new(Known::new(by, false)))
    }
}

impl Pattern {
    fn has(&self, group: &str) -> bool {
        self.regex.capture_names().flatten().any(|name| name == group)
    }

    fn whole(found: &Captures<'_>, t_ms: u64) -> Result<Statement, &'static str> {
        let (Some(uid), Some(rv)) = (found.name("uid"), found.name("rv")) else {
            return Err("the pattern matched without `uid` and `rv`");
        };
        let change = match found.name("change") {
            None => Change::Modified,
            Some(word) => change(word.as_str()).ok_or("`change` is neither added, modified nor deleted")?,
        };
        Ok(Statement::Saw(Observation { t_ms, uid: uid.as_str().into(), revision: rv.as_str().into(), change }))
    }
}

/// The object that the groups of a matched line name.
fn object(found: &Captures<'_>) -> Option<Of> {
    if let Some(uid) = found.name("uid") {
        return Some(Of::Uid(uid.as_str().into()));
    }
    let namespace = found.name("namespace").map_or("", |namespace| namespace.as_str());
    Some(Of::Name(namespace.into(), found.name("name")?.as_str().into()))
}

impl Lines for Pattern {
    fn read(&self, line: &str, t_ms: u64) -> Option<Result<Statement, &'static str>> {
        let found = self.regex.captures(line)?;
        if let Proves::Whole { .. } = self.proves {
            return Some(Self::whole(&found, t_ms));
        }
        let Some(of) = object(&found) else {
            return Some(Err("the pattern matched without `uid` or `name`"));
        };
        let what = match found.name("rv").or_else(|| found.name("generation")) {
            None => Fact::There { ends: false },
            Some(number) => match number.as_str().parse() {
                Ok(number) => Fact::Version(number),
                Err(_) => return Some(Err("`rv` or `generation` is no number")),
            },
        };
        Some(Ok(Statement::Claims(Claim { t_ms, of, what })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(pattern: &str) -> Log {
        Log { pattern: Some(pattern.to_owned()), ..Log::default() }
    }

    #[test]
    fn lines_become_observations() {
        let pattern = log(r"saw (?P<change>\w+) (?P<uid>[0-9a-f-]+)@(?P<rv>\d+)").read().unwrap();
        let Some(Ok(Statement::Saw(seen))) = pattern.read("12:00 INFO saw Deleted ab-12@17 in default", 5) else {
            panic!("it was not read")
        };
        assert_eq!(
            (seen.uid.as_str(), seen.revision.as_str(), seen.change, seen.t_ms),
            ("ab-12", "17", Change::Deleted, 5)
        );
        assert!(pattern.read("12:00 INFO nothing here", 5).is_none());
        assert!(pattern.read("saw pondered ab@17", 5).unwrap().is_err());
    }

    #[test]
    fn lines_without_a_version_claim_less() {
        let claimed = |pattern: &str, line: &str| log(pattern).read().unwrap().read(line, 5).unwrap();
        let name = || Of::Name("ns".into(), "a".into());
        let claim = |of, what| Ok(Statement::Claims(Claim { t_ms: 5, of, what }));
        let by_name = r"done (?P<namespace>\S+)/(?P<name>\S+)";
        assert_eq!(claimed(by_name, "done ns/a"), claim(name(), Fact::There { ends: false }));
        let generation = format!("{by_name} g(?P<generation>.+)");
        assert_eq!(claimed(&generation, "done ns/a g4"), claim(name(), Fact::Version(4)));
        assert!(claimed(&generation, "done ns/a gx").is_err());
        assert_eq!(claimed("done (?P<uid>.+)", "done u"), claim(Of::Uid("u".into()), Fact::There { ends: false }));
    }

    #[test]
    fn what_lines_tell_depends_on_their_groups() {
        let sees = |pattern: &str| {
            let sees = log(pattern).sees(&About::default());
            (sees.created, sees.updated, sees.deleted, sees.intermediate)
        };
        assert_eq!(sees(r"(?P<change>\w+) (?P<uid>\S+)@(?P<rv>\d+)"), (true, true, true, true));
        assert_eq!(sees(r"reconciled (?P<uid>\S+)@(?P<rv>\d+)"), (true, true, false, true));
        assert_eq!(sees(r"(?P<name>\S+)@(?P<rv>\d+)"), (true, true, false, false));
        assert_eq!(sees(r"(?P<uid>\S+) (?P<generation>\d+)"), (true, true, false, false));
        assert_eq!(sees(r"(?P<namespace>\S+)/(?P<name>\S+)"), (true, false, false, false));
    }

    #[test]
    fn patterns_without_sense_are_refused() {
        let about = About::default();
        let wrong = |log: &Log, about: &About| log.check(about).unwrap_err();
        assert!(wrong(&Log::default(), &about).contains("needs a `pattern`"));
        assert!(wrong(&log("(?P<rv>a)"), &about).contains("does not identify the object"));
        assert!(wrong(&log("(?P<uid>a)(?P<rv>b)(?P<generation>c)"), &about).contains("keep one"));
        assert!(wrong(&log("(?P<uid>a)(?P<change>c)"), &about).contains("beside it"));
        assert!(wrong(&log("("), &about).contains("not a regular expression"));
        assert!(wrong(&Log { preset: Some(Preset::Kopf), ..log("a") }, &about).contains("keep one"));
        assert!(wrong(&Log { of: Some("A".into()), ..log("(?P<uid>a)") }, &about).contains("leave it out"));
        let reused = About { reuses_names: true, ..About::default() };
        assert!(wrong(&log("(?P<name>a)"), &reused).contains("cannot tell them apart"));
        assert_eq!(log("(?P<uid>a)").check(&reused), Ok(()));
        let others = About { others: vec!["pods".into()], ..About::default() };
        assert!(wrong(&log("(?P<name>a)"), &others).contains("pods is judged as well"));
    }
}

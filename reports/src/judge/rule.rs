//! The parts of a rule: its row.
//!
//! A rule is a file with its row and a line in the list of its section (`section!`); the section's type in `budgets`
//! defines what a scenario may write below which key. The tables of the documentation pages and the words of a verdict
//! come from the rows. A finding's [`Name`] identifies its rule, never its text. This module has what every rule needs.

use std::fmt;

use serde::Serialize;

pub(super) use super::{Findings, Verdict, Word};
use crate::record::{Sees, Sight};
pub(super) use record::Record;

/// The rules below one key of `budgets`.
pub(super) trait Section {
    /// The key below `budgets`.
    const KEY: &'static str;
    /// The judge that its findings name.
    const JUDGE: &'static str;
    /// The data that its rules read besides the record, gathered once.
    type Facts<'a>;
    /// The rows of its rules, in the order in which they judge.
    #[cfg(test)]
    const ROWS: &'static [Row];
    /// The rows of rules without a key, which are judged whenever the section is present.
    #[cfg(test)]
    const ALWAYS: &'static [Row];

    /// Judges by each rule whose limit is set, or has a default.
    fn judge_each(&self, record: &Record, facts: &Self::Facts<'_>, findings: &mut Findings);

    /// The limits that are set and that a witness cannot decide, each with the facts that it does not report.
    fn unseen(&self, sees: Sees) -> Vec<(Name, Vec<Sight>)>;
}

/// The place of a rule in a section's list.
pub(super) trait Placed {
    /// The section that has its limit.
    type Section: Section;
    /// The type of the value in a scenario.
    type Limit;
    /// The key in its section; the budget of its findings is both, with a dot.
    const KEY: &'static str;
}

/// A rule: one limit and its judge.
pub(super) trait Rule: Placed {
    /// The description, if no key of the scenario has one.
    #[cfg_attr(not(test), expect(dead_code, reason = "the pages are written by the test that compares them"))]
    const DOC: &'static str = "";
    /// A value that the example client meets, in YAML; none if no short run can show it.
    #[cfg_attr(not(test), expect(dead_code, reason = "the pages are written by the test that compares them"))]
    const EXAMPLE: Option<&'static str> = None;
    /// The word for a subject that breaks it; none if no finding has this name.
    const WORD: Option<Word>;
    /// The limit if the section is present and the key is absent; none: not judged.
    const DEFAULT: Option<Self::Limit> = None;
    /// The facts that the witness has to report: without them it is unknown whether the limit was kept.
    const NEEDS: &'static [Sight] = &[];

    /// The facts needed for one limit, if some limits need fewer.
    fn needs(_: &Self::Limit) -> &'static [Sight] {
        Self::NEEDS
    }

    fn judge(
        record: &Record,
        facts: &<Self::Section as Section>::Facts<'_>,
        limit: &Self::Limit,
        findings: &mut Findings,
    );
}

#[cfg(test)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub name: Name,
    pub doc: &'static str,
    pub example: Option<&'static str>,
}

#[cfg(test)]
impl Row {
    pub(super) const fn of<R: Rule>() -> Self {
        Self { name: Name::of::<R>(), doc: R::DOC, example: R::EXAMPLE }
    }
}

/// The rule, or condition of validity, that a finding belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name {
    /// The judge that the finding names.
    pub judge: &'static str,
    pub section: &'static str,
    pub key: &'static str,
    /// The word for a subject that breaks it.
    pub word: Option<Word>,
}

impl Name {
    pub(super) const fn of<R: Rule>() -> Self {
        Self { judge: R::Section::JUDGE, section: R::Section::KEY, key: R::KEY, word: R::WORD }
    }

    /// A part of the rule that has a limit of its own.
    pub(super) fn below(self, part: &str) -> Budget {
        Budget { name: self, text: format!("{self}.{part}") }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.section, self.key)
    }
}

/// The subject of a finding: a rule, or a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Budget {
    pub name: Name,
    /// The displayed text.
    pub text: String,
}

impl From<Name> for Budget {
    fn from(name: Name) -> Self {
        Self { name, text: name.to_string() }
    }
}

/// The needed facts that a witness does not report.
pub(super) fn lacks(sees: Sees, needs: &[Sight]) -> Vec<Sight> {
    needs.iter().copied().filter(|sight| !sees.can(*sight)).collect()
}

/// A limit as the scenario spells it.
pub(super) fn shown(limit: &impl Serialize) -> String {
    match serde_json::to_value(limit) {
        Ok(serde_json::Value::String(text)) => text,
        Ok(value) => value.to_string(),
        Err(_) => String::new(),
    }
}

/// Builds the judge of a section of `budgets` from a list of rules: each with its key, and the type of its value in a
/// scenario.
macro_rules! section {
    (
        $section:ident as $key:literal, judge $judge:literal, facts<$lifetime:lifetime> $facts:ty
            $(, always [$($always:ident::$always_rule:ident $always_key:literal),*])?;
        $($field:ident $key_of:literal: $limit:ty = $rule:ty,)*
    ) => {
        $(
            impl $crate::judge::rule::Placed for $rule {
                type Section = $section;
                type Limit = $limit;
                const KEY: &'static str = $key_of;
            }
        )*

        $($(
            impl $crate::judge::rule::Placed for $always::$always_rule {
                type Section = $section;
                type Limit = ();
                const KEY: &'static str = $always_key;
            }
        )*)?

        impl $crate::judge::rule::Section for $section {
            const KEY: &'static str = $key;
            const JUDGE: &'static str = $judge;
            type Facts<$lifetime> = $facts;
            #[cfg(test)]
            const ROWS: &'static [$crate::judge::rule::Row] = &[$($crate::judge::rule::Row::of::<$rule>()),*];
            #[cfg(test)]
            const ALWAYS: &'static [$crate::judge::rule::Row] = &[$($($crate::judge::rule::Row::of::<$always::$always_rule>()),*)?];

            fn judge_each(
                &self,
                record: &$crate::record::Record,
                facts: &Self::Facts<'_>,
                findings: &mut $crate::judge::Findings,
            ) {
                // A record that does not describe its witness is judged as if the witness reported all facts.
                let sees = record.manifest.witness_sees.unwrap_or($crate::record::Sees::ALL);
                $(
                    let unsaid = <$rule as $crate::judge::rule::Rule>::DEFAULT;
                    let name = $crate::judge::rule::Name::of::<$rule>();
                    let limit = self.$field.as_ref().or(unsaid.as_ref());
                    let needs = limit.map_or(&[][..], <$rule as $crate::judge::rule::Rule>::needs);
                    let lacks = $crate::judge::rule::lacks(sees, needs);
                    match (self.$field.as_ref(), unsaid.as_ref()) {
                        (Some(limit), _) if !lacks.is_empty() => {
                            findings.unseen(name, $crate::judge::rule::shown(limit), &lacks, record);
                        }
                        (None, Some(_)) if !lacks.is_empty() => findings.unjudged(name, &lacks),
                        (Some(limit), _) => <$rule as $crate::judge::rule::Rule>::judge(record, facts, limit, findings),
                        (None, Some(limit)) => findings.unasked(|findings| {
                            <$rule as $crate::judge::rule::Rule>::judge(record, facts, limit, findings);
                        }),
                        (None, None) => {}
                    }
                )*
                $($(findings.unasked(|findings| {
                    <$always::$always_rule as $crate::judge::rule::Rule>::judge(record, facts, &(), findings);
                });)*)?
            }

            fn unseen(
                &self,
                sees: $crate::record::Sees,
            ) -> Vec<($crate::judge::rule::Name, Vec<$crate::record::Sight>)> {
                let mut unseen = Vec::new();
                $(
                    let needs = self.$field.as_ref().map_or(&[][..], <$rule as $crate::judge::rule::Rule>::needs);
                    let lacks = $crate::judge::rule::lacks(sees, needs);
                    if !lacks.is_empty() {
                        unseen.push(($crate::judge::rule::Name::of::<$rule>(), lacks));
                    }
                )*
                unseen
            }
        }
    };
}

pub(super) use section;

//! A rule: one limit of a scenario, and the function that judges it.
//!
//! A rule is a file that implements [`Rule`] and a line in the list of its section (`section!`). The section's type in
//! `budgets` defines the keys and values that a scenario may have. The tables of the documentation and the words of a
//! verdict are generated from the rules. A finding's [`Name`] identifies its rule; the text of the finding does not.
//! This module has the code that every rule of every section needs.

use std::fmt;

use serde::Serialize;

pub(super) use super::{Findings, Verdict, Word};
use crate::record::{Sees, Sight};
pub(super) use record::Record;

pub(super) trait Section {
    /// The key of the section below `budgets`.
    const KEY: &'static str;
    /// The judge that the section's findings name.
    const JUDGE: &'static str;
    /// The data that the section's rules read besides the record, computed once.
    type Facts<'a>;
    /// The descriptions of the section's rules, in the order of judging.
    #[cfg(test)]
    const ROWS: &'static [Row];
    /// The descriptions of rules without a key, which are judged whenever a scenario has the section.
    #[cfg(test)]
    const ALWAYS: &'static [Row];

    /// Judges each rule whose limit the scenario sets or the rule sets by default.
    fn judge_each(&self, record: &Record, facts: &Self::Facts<'_>, findings: &mut Findings);

    /// The limits that the scenario sets and a witness cannot decide, each with the facts that the witness does not
    /// report.
    fn unseen(&self, sees: Sees) -> Vec<(Name, Vec<Sight>)>;
}

/// The section, key and limit type of a rule, as its section's list gives them.
pub(super) trait Placed {
    type Section: Section;
    type Limit;
    /// The key of the limit in its section. A finding names the section and this key, with a dot between.
    const KEY: &'static str;
}

/// A rule: one limit and its judge.
pub(super) trait Rule: Placed {
    /// The rule's description in the documentation, for a rule without a key that has a description.
    #[cfg_attr(not(test), expect(dead_code, reason = "the pages are written by the test that compares them"))]
    const DOC: &'static str = "";
    /// A value of the limit in YAML that the example client meets; none if no short run can show the rule.
    #[cfg_attr(not(test), expect(dead_code, reason = "the pages are written by the test that compares them"))]
    const EXAMPLE: Option<&'static str> = None;
    /// The word that names the defect of a subject that breaks the rule; none if no finding has the rule's name.
    const WORD: Option<Word>;
    /// The limit if a scenario has the section but not the key. A rule without a default is not judged if the key is
    /// absent.
    const DEFAULT: Option<Self::Limit> = None;
    /// The facts that the witness has to report, so that it is known whether the limit was met.
    const NEEDS: &'static [Sight] = &[];

    /// The facts that this limit needs. Some limits need fewer facts than [`Self::NEEDS`].
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

/// Identifies the rule, or the condition of validity, of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name {
    pub judge: &'static str,
    pub section: &'static str,
    pub key: &'static str,
    /// The word that names the defect of a subject that breaks the rule.
    pub word: Option<Word>,
}

impl Name {
    pub(super) const fn of<R: Rule>() -> Self {
        Self { judge: R::Section::JUDGE, section: R::Section::KEY, key: R::KEY, word: R::WORD }
    }

    /// The name of one of the rule's limits, if the rule judges several, such as one for each series.
    pub(super) fn below(self, part: &str) -> Budget {
        Budget { name: self, text: format!("{self}.{part}") }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.section, self.key)
    }
}

/// The rule, or one of its separate limits, that a finding is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Budget {
    pub name: Name,
    /// The name of the limit in reports.
    pub text: String,
}

impl From<Name> for Budget {
    fn from(name: Name) -> Self {
        Self { name, text: name.to_string() }
    }
}

/// The facts in `needs` that a witness does not report.
pub(super) fn lacks(sees: Sees, needs: &[Sight]) -> Vec<Sight> {
    needs.iter().copied().filter(|sight| !sees.can(*sight)).collect()
}

pub(super) fn shown(limit: &impl Serialize) -> String {
    match serde_json::to_value(limit) {
        Ok(serde_json::Value::String(text)) => text,
        Ok(value) => value.to_string(),
        Err(_) => String::new(),
    }
}

/// Builds the judge of a section of `budgets` from a list of its rules, each with its key and the type of its value in
/// a scenario.
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

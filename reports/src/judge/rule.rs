//! What one rule is made of: a row.
//!
//! A rule is a file with its row and a line in the list of its section (`section!`); what a scenario may write below which key is the
//! section's type in `budgets`. The tables of the pages and the words of a verdict come from the rows. Which rule a finding is of says its [`Name`], never the
//! text that is shown for it. What every rule needs comes from here.

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
    /// What its rules read besides the record, gathered once.
    type Facts<'a>;
    /// What its rules say of themselves, in the order in which they judge.
    #[cfg(test)]
    const ROWS: &'static [Row];
    /// The same of what is judged whenever the section is there, and has no key.
    #[cfg(test)]
    const ALWAYS: &'static [Row];

    /// Judges by each rule whose limit is set, or has a default.
    fn judge_each(&self, record: &Record, facts: &Self::Facts<'_>, findings: &mut Findings);

    /// The limits that are set and that a witness cannot decide, each with what it does not tell.
    fn unseen(&self, sees: Sees) -> Vec<(Name, Vec<Sight>)>;
}

/// What the list of a section says of a rule.
pub(super) trait Placed {
    /// Where its limit is written.
    type Section: Section;
    /// What a scenario writes.
    type Limit;
    /// The key in its section; the budget of its findings is both, with a dot.
    const KEY: &'static str;
}

/// A limit.
pub(super) trait Rule: Placed {
    /// What is judged, where no key of the scenario says it.
    #[cfg_attr(not(test), expect(dead_code, reason = "the pages are written by the test that compares them"))]
    const DOC: &'static str = "";
    /// A value that the example client meets, in YAML; none where no short run can show it.
    #[cfg_attr(not(test), expect(dead_code, reason = "the pages are written by the test that compares them"))]
    const EXAMPLE: Option<&'static str> = None;
    /// What a subject is that breaks it; none where nothing is found under this name.
    const WORD: Option<Word>;
    /// The limit where the section is there and the key is not; none: not judged.
    const DEFAULT: Option<Self::Limit> = None;
    /// What the witness has to be able to tell: without it nobody knows whether the limit was kept.
    const NEEDS: &'static [Sight] = &[];

    /// The same for one limit, where not each limit needs as much.
    fn needs(_: &Self::Limit) -> &'static [Sight] {
        Self::NEEDS
    }

    /// Judges.
    fn judge(
        record: &Record,
        facts: &<Self::Section as Section>::Facts<'_>,
        limit: &Self::Limit,
        findings: &mut Findings,
    );
}

/// What a rule says of itself.
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

/// Of which rule, or condition of validity, a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name {
    /// The judge that the finding names.
    pub judge: &'static str,
    pub section: &'static str,
    pub key: &'static str,
    /// What is said of a subject that breaks it.
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

/// What a finding is about: a rule, or a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Budget {
    pub name: Name,
    /// As it is shown.
    pub text: String,
}

impl From<Name> for Budget {
    fn from(name: Name) -> Self {
        Self { name, text: name.to_string() }
    }
}

/// What a witness cannot tell of what a rule needs.
pub(super) fn lacks(sees: Sees, needs: &[Sight]) -> Vec<Sight> {
    needs.iter().copied().filter(|sight| !sees.can(*sight)).collect()
}

/// A limit as it is written.
pub(super) fn shown(limit: &impl Serialize) -> String {
    match serde_json::to_value(limit) {
        Ok(serde_json::Value::String(text)) => text,
        Ok(value) => value.to_string(),
        Err(_) => String::new(),
    }
}

/// Makes of a list of rules what judges a section of `budgets`: each with its key, and what a scenario writes there.
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
                // A record that does not say what its witness tells is judged as if it told all.
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

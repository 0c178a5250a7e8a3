//! Decides which budgets become undecided if a condition of validity is not met.
//!
//! Owns the kinds of facts on which findings depend. A gap in the measurement never excuses a broken budget whose facts
//! are complete. A gap in the measurement makes only those budgets undecided whose facts it affects. A run is invalid
//! only if no judged budget can be trusted.

use super::rule::Name;
use super::{BY_DEFAULT, Finding, Findings, Verdict};

/// The name of the judge in findings about conditions of validity.
pub(super) const JUDGE: &str = "validity";

pub(super) const fn condition(key: &'static str) -> Name {
    Name { judge: JUDGE, section: JUDGE, key, word: None }
}

/// The budgets that an unmet condition of validity makes undecided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubts {
    /// Met budgets are undecided, because a fact that was not measured may have broken them.
    Met,
    /// Broken budgets are undecided, because the measurement itself may have broken them.
    Broken,
    /// Met and broken budgets are undecided.
    Either,
}

impl Doubts {
    fn of(self, verdict: Verdict) -> bool {
        match verdict {
            Verdict::Pass => self != Self::Broken,
            Verdict::Fail => self != Self::Met,
            Verdict::Inconclusive | Verdict::Invalid => false,
        }
    }
}

/// A condition of validity that is not met, with the texts for its finding.
pub(super) struct Unmet {
    pub name: Name,
    pub observed: String,
    pub limit: String,
    /// The text of the finding: one or more sentences.
    pub text: String,
    /// The reason as text, which follows "not decided, because".
    pub because: String,
}

/// Whether the budget of a finding depends on samples of the subject's processes, or on its metrics page.
pub(super) fn is_sampled(name: Name) -> bool {
    matches!(name.section, "memory" | "descriptors" | "threads" | "metrics")
}

/// Whether the budget of a finding depends on ends of the subject's processes.
pub(super) fn is_about_ends(name: Name) -> bool {
    matches!(name.section, "crashes" | "subject")
}

/// Whether the budget of a finding depends on answers to the harness's load.
pub(super) fn is_answered(name: Name) -> bool {
    matches!(name.section, "admission" | "alerts" | "api")
}

/// Whether the budget of a finding depends on writes to the control plane, on the subject's requests, or on its
/// observations. All sections that the other functions of this file do not name depend on these facts.
pub(super) fn is_observed(name: Name) -> bool {
    !is_sampled(name) && !is_about_ends(name) && !is_answered(name) && name.section != "registry"
}

/// Whether the budget of a finding depends on facts that only the witness reports.
pub(super) fn is_witnessed(name: Name) -> bool {
    name.section == "events" && !matches!(name.key, "blind" | "hotLoop" | "converged" | "restored" | "reported")
}

impl Findings {
    /// Adds a finding for a condition that is not met, and makes the budgets that depend on it undecided. If no budget
    /// depends on the unmet condition, the verdict does not change.
    pub(super) fn unmet(&mut self, unmet: Unmet, doubts: Doubts, rests: impl Fn(Name, &Finding) -> bool) {
        let number = self.doubt(&unmet, doubts, rests);
        let Unmet { name, observed, limit, text, .. } = unmet;
        if number == 0 {
            self.push(name, Verdict::Pass, observed, limit, format!("{text} No budget was decided by it."));
        } else {
            self.unmet.push(name);
            self.push(name, Verdict::Inconclusive, observed, limit, text);
        }
    }

    /// Whether a budget for which `of` returns true is broken.
    pub(super) fn any_broken_by(&self, of: impl Fn(Name, &Finding) -> bool) -> bool {
        let mut broken = self.judged.iter().filter(|(_, finding)| finding.verdict == Verdict::Fail);
        broken.any(|(name, finding)| finding.judge != JUDGE && of(*name, finding))
    }

    /// Adds an unmet condition that makes the dependent budgets undecided, whether they were met or broken.
    pub(super) fn says_nothing(&mut self, unmet: Unmet, rests: impl Fn(Name, &Finding) -> bool) {
        self.doubt(&unmet, Doubts::Either, rests);
        let Unmet { name, observed, limit, text, .. } = unmet;
        self.invalid(name, observed, limit, text);
    }

    /// Adds an unmet condition that prevents the run from passing, while broken budgets remain broken.
    pub(super) fn invalid(
        &mut self,
        name: Name,
        observed: impl Into<String>,
        limit: impl Into<String>,
        text: impl Into<String>,
    ) {
        self.push(name, Verdict::Invalid, observed, limit, text);
    }

    /// Makes the run invalid if no budget is decided, unless the only reason is that the run is short.
    pub(super) fn settle_validity(&mut self) {
        if self.any_decided() {
            return;
        }
        let unmet = std::mem::take(&mut self.unmet);
        for (_, finding) in self.judged.iter_mut().filter(|(name, _)| unmet.contains(name)) {
            if finding.verdict == Verdict::Inconclusive {
                finding.verdict = Verdict::Invalid;
            }
        }
    }

    /// Makes the findings that depend on an unmet condition undecided, and returns their number.
    fn doubt(&mut self, unmet: &Unmet, doubts: Doubts, rests: impl Fn(Name, &Finding) -> bool) -> usize {
        let (mut number, mut unasked) = (0, Vec::new());
        self.judged.retain_mut(|(name, finding)| {
            if finding.judge == JUDGE || !doubts.of(finding.verdict) || !rests(*name, finding) {
                return true;
            }
            number += 1;
            // Default limits without a failure are listed together, not in a line each.
            if finding.verdict == Verdict::Pass && finding.limit.ends_with(BY_DEFAULT) {
                unasked.push(finding.budget.clone());
                return false;
            }
            finding.verdict = Verdict::Inconclusive;
            finding.text = format!("not decided, because {}; measured: {}", unmet.because, finding.text);
            finding.used_pct = None;
            true
        });
        if !unasked.is_empty() {
            let were = if unasked.len() == 1 { "was" } else { "were" };
            self.note(format!("{} {were} not judged either, because {}.", unasked.join(", "), unmet.because));
        }
        number
    }
}

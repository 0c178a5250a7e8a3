//! The budgets that a condition of validity leaves undecided if it is not met.
//!
//! Owns the facts that each finding depends on. A gap in the measurement never hides a failure. It takes the verdict
//! only from budgets whose facts it affects. A run is invalid only if no judged budget can be trusted.

use super::rule::Name;
use super::{BY_DEFAULT, Finding, Findings, Verdict};

/// The name of the judge in findings about conditions of validity.
pub(super) const JUDGE: &str = "validity";

/// A condition of validity.
pub(super) const fn condition(key: &'static str) -> Name {
    Name { judge: JUDGE, section: JUDGE, key, word: None }
}

/// The verdicts that can no longer be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubts {
    /// Met budgets: an unmeasured fact may have broken them.
    Met,
    /// Broken budgets: the measurement itself may have broken them.
    Broken,
    /// Met and broken budgets.
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

/// A condition that is not met, and the text about it.
pub(super) struct Unmet {
    pub name: Name,
    pub observed: String,
    pub limit: String,
    /// One or more sentences.
    pub text: String,
    /// The end of "not decided, because …".
    pub because: String,
}

/// Whether the facts are samples of the subject's processes, or pages that it serves.
pub(super) fn is_sampled(name: Name) -> bool {
    matches!(name.section, "memory" | "descriptors" | "threads" | "metrics")
}

/// Whether the facts are the ends of the subject.
pub(super) fn is_about_ends(name: Name) -> bool {
    matches!(name.section, "crashes" | "subject")
}

/// Whether the facts are answers to load of the harness.
pub(super) fn is_answered(name: Name) -> bool {
    matches!(name.section, "admission" | "alerts" | "api")
}

/// Whether the facts are writes to the control plane, the subject's requests there, and its observations: all other
/// sections.
pub(super) fn is_observed(name: Name) -> bool {
    !is_sampled(name) && !is_about_ends(name) && !is_answered(name) && name.section != "registry"
}

/// Whether the facts come through the witness alone.
pub(super) fn is_witnessed(name: Name) -> bool {
    name.section == "events" && !matches!(name.key, "blind" | "hotLoop" | "converged" | "restored")
}

impl Findings {
    /// Adds a condition that is not met, and leaves the budgets that depend on it undecided; if there are none, the
    /// condition costs nothing.
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

    /// Whether one of these budgets is broken.
    pub(super) fn any_broken_by(&self, of: impl Fn(Name, &Finding) -> bool) -> bool {
        let mut broken = self.judged.iter().filter(|(_, finding)| finding.verdict == Verdict::Fail);
        broken.any(|(name, finding)| finding.judge != JUDGE && of(*name, finding))
    }

    /// Adds a condition without which the dependent budgets are undecided, whatever was found.
    pub(super) fn says_nothing(&mut self, unmet: Unmet, rests: impl Fn(Name, &Finding) -> bool) {
        self.doubt(&unmet, Doubts::Either, rests);
        let Unmet { name, observed, limit, text, .. } = unmet;
        self.invalid(name, observed, limit, text);
    }

    /// Adds a condition without which this run cannot pass. Broken budgets stay broken.
    pub(super) fn invalid(
        &mut self,
        name: Name,
        observed: impl Into<String>,
        limit: impl Into<String>,
        text: impl Into<String>,
    ) {
        self.push(name, Verdict::Invalid, observed, limit, text);
    }

    /// If no budget is decided, and not only because the run is short, the run is invalid.
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

    /// Returns the number of findings that lost their verdict.
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

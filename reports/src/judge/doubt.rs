//! What a condition of validity that is not met leaves undecided.
//!
//! Owns which findings rest on what. A gap in the measurement never hides what was seen: it takes from those budgets their verdict whose
//! facts it spoilt, and from no other. A run is invalid only where nothing that was judged can be trusted.

use super::rule::Name;
use super::{BY_DEFAULT, Finding, Findings, Verdict};

/// The judge that conditions of validity name.
pub(super) const JUDGE: &str = "validity";

/// A condition of validity.
pub(super) const fn condition(key: &'static str) -> Name {
    Name { judge: JUDGE, section: JUDGE, key, word: None }
}

/// What is not to be believed any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubts {
    /// Budgets that were met: what was not measured may have broken them.
    Met,
    /// Budgets that were broken: who measured may have broken them.
    Broken,
    /// Both.
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

/// A condition that is not met, and what is told of it.
pub(super) struct Unmet {
    pub name: Name,
    pub observed: String,
    pub limit: String,
    /// One or more sentences.
    pub text: String,
    /// The end of "not decided, because …".
    pub because: String,
}

/// Sections whose facts are samples of the subject's processes, or pages that it serves.
pub(super) fn is_sampled(name: Name) -> bool {
    matches!(name.section, "memory" | "descriptors" | "threads" | "metrics")
}

/// Sections whose facts are how the subject ended.
pub(super) fn is_about_ends(name: Name) -> bool {
    matches!(name.section, "crashes" | "subject")
}

/// Sections whose facts are answers to load of the harness.
pub(super) fn is_answered(name: Name) -> bool {
    matches!(name.section, "admission" | "alerts" | "api")
}

/// Sections whose facts come from what was written to the control plane, what the subject asked there, and what it proved: all others.
pub(super) fn is_observed(name: Name) -> bool {
    !is_sampled(name) && !is_about_ends(name) && !is_answered(name) && name.section != "registry"
}

/// Budgets whose facts come through the witness alone.
pub(super) fn is_witnessed(name: Name) -> bool {
    name.section == "events" && !matches!(name.key, "blind" | "hotLoop" | "converged" | "restored")
}

impl Findings {
    /// Tells of a condition that is not met, and leaves undecided what rests on it; where that is nothing, nothing is lost.
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

    /// Whether a budget of these is broken.
    pub(super) fn any_broken_by(&self, of: impl Fn(Name, &Finding) -> bool) -> bool {
        let mut broken = self.judged.iter().filter(|(_, finding)| finding.verdict == Verdict::Fail);
        broken.any(|(name, finding)| finding.judge != JUDGE && of(*name, finding))
    }

    /// Tells of a condition without which the run says nothing of what rests on it, whatever was found.
    pub(super) fn says_nothing(&mut self, unmet: Unmet, rests: impl Fn(Name, &Finding) -> bool) {
        self.doubt(&unmet, Doubts::Either, rests);
        let Unmet { name, observed, limit, text, .. } = unmet;
        self.invalid(name, observed, limit, text);
    }

    /// Tells of a condition without which no pass of this run is one. What was broken stays broken.
    pub(super) fn invalid(
        &mut self,
        name: Name,
        observed: impl Into<String>,
        limit: impl Into<String>,
        text: impl Into<String>,
    ) {
        self.push(name, Verdict::Invalid, observed, limit, text);
    }

    /// Where not one budget is decided, and not for want of length alone, the run says nothing.
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

    /// How many findings lost their verdict.
    fn doubt(&mut self, unmet: &Unmet, doubts: Doubts, rests: impl Fn(Name, &Finding) -> bool) -> usize {
        let (mut number, mut unasked) = (0, Vec::new());
        self.judged.retain_mut(|(name, finding)| {
            if finding.judge == JUDGE || !doubts.of(finding.verdict) || !rests(*name, finding) {
                return true;
            }
            number += 1;
            // What nobody asked for and nothing was found of is told once, not a line each.
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

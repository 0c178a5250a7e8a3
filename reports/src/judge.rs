//! Judges derive a verdict from the facts of a run record.
//!
//! Owns the verdict on a run and the rules by which it follows from the findings. Each judge is a function from
//! [`Record`] to findings, in a file of its own. A judge reads nothing but the record, so judging an old record again
//! gives the same verdict.
//!
//! The verdict is the first that applies: fail if a budget with complete facts is broken; invalid if no judged budget
//! can be trusted; inconclusive if a budget could not be decided *or none was judged*; else pass. If a condition of
//! validity is not met, `doubt.rs` decides which budgets become undecided.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::exit;
use crate::record::{EndReason, Record, Sight};

mod admission;
mod alerts;
mod api;
mod asked;
mod children;
mod crashes;
mod doubt;
mod ending;
mod events;
mod finalizers;
mod harness;
mod objects;
#[cfg(test)]
mod page;
mod quantile;
mod queue;
mod registry;
mod requests;
mod resources;
mod rights;
mod rule;
mod so_far;
#[cfg(test)]
mod tests;
mod validity;
mod word;
mod writes;

pub use events::{DRIFT, unseen_by};
pub(crate) use queue::Queue;
pub(crate) use requests::grown::{Grown, grown};
pub(crate) use requests::longest_blind_ms;
pub(crate) use resources::growth::{Fit, fits};
pub(crate) use so_far::interims;
pub use so_far::{Interim, SoFar};
pub use word::Word;

use rule::{Budget, Name, Rule};

/// A judge, which is responsible for one section of budgets.
type Judge = fn(&Record, &mut Findings);

/// The judges, in the order in which their findings are shown.
const JUDGES: [Judge; 17] = [
    crashes::judge,
    events::judge,
    writes::judge,
    finalizers::judge,
    objects::judge,
    children::judge,
    ending::judge,
    requests::judge,
    admission::judge,
    asked::judge,
    alerts::judge,
    api::judge,
    registry::judge,
    rights::judge,
    resources::judge,
    queue::judge,
    validity::judge,
];

/// The version of the schema of a judgement, as `verdict.json` names it.
pub const SCHEMA: &str = "longhaul.verdict/v1";

/// The verdict on a run. If findings have different verdicts, the later variant in this list decides the verdict on the
/// run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every budget was met, with the stated confidence.
    Pass,
    /// There is too little data; the text of the finding says how much more is needed.
    Inconclusive,
    /// The run cannot be trusted; the text of the finding says why.
    Invalid,
    /// A budget was broken, with the stated confidence, and gaps in the measurement do not excuse it.
    Fail,
}

/// A judge's finding about one budget or one condition of validity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The judge: `events`, `writes`, `finalizers`, `objects`, `children`, `ending`, `requests`, `admission`, `alerts`, `api`,
    /// `registry`, `resources`, `subject` or `validity`.
    pub judge: String,
    /// The budget or condition, such as `events.missed`.
    pub budget: String,
    /// The verdict on the budget or condition.
    pub verdict: Verdict,
    /// The measured value, with its unit.
    pub observed: String,
    /// The limit, with its unit.
    pub limit: String,
    /// One sentence for people, with cause and numbers.
    pub text: String,
    /// The percentage of the limit that was used: 100 is at the limit, and more is beyond it. For growth the percentage
    /// is computed from the upper bound of the growth. None if the observed value is no number, or if the limit is
    /// zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_pct: Option<u32>,
}

/// All findings about a run, with the verdict that follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Judgement {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The identifier of the run.
    pub run_id: String,
    /// The scenario's name.
    pub name: String,
    /// The seed of the run.
    pub seed: u64,
    /// The verdict on the whole run.
    pub verdict: Verdict,
    /// The exit code that belongs to the verdict.
    pub exit_code: u8,
    /// The reason for the verdict, in one sentence.
    pub reason: String,
    /// The words that name the subject's kinds of defects, each once; empty if no budget was broken.
    #[serde(default)]
    pub words: Vec<Word>,
    /// One finding for each budget and each condition of validity, met or not.
    pub findings: Vec<Finding>,
    /// Further notes of the judges for the reader of a report.
    pub notes: Vec<String>,
}

/// The text that follows a limit in a finding if the scenario does not set this limit.
const BY_DEFAULT: &str = ", by default";

/// Collects the findings about one record.
#[derive(Debug, Default)]
struct Findings {
    /// Each finding with the budget or condition that it belongs to.
    judged: Vec<(Name, Finding)>,
    notes: Vec<String>,
    /// For each undecided budget, the length of the steady phase that would decide it, in seconds.
    needed: Vec<(String, f64)>,
    /// Budgets with a default limit that the witness cannot decide, each with the facts that the witness does not
    /// report.
    unjudged: Vec<(Name, Vec<Sight>)>,
    unmet: Vec<Name>,
}

pub fn judge(record: &Record) -> Judgement {
    let mut findings = Findings::default();
    for judge in JUDGES {
        judge(record, &mut findings);
    }
    let words = findings.words();
    let (_, judged): (Vec<Name>, Vec<Finding>) = findings.judged.into_iter().unzip();
    let verdict = add_up(&judged);
    // If the subject requested no churned resource, its other requests explain the undecided budgets.
    let never_asked = matches!(record.end.as_ref().map(|end| &end.reason), Some(EndReason::NeverAsked { .. }));
    let completed = judged.iter().find(|finding| never_asked && finding.budget == "validity.completed");
    let mut reason = match completed.filter(|finding| finding.verdict == verdict) {
        Some(completed) => crate::words::first_sentence(&completed.text),
        None => reason(verdict, &judged),
    };
    if let (Verdict::Inconclusive | Verdict::Invalid, Some(busy)) = (verdict, validity::Busy::of(record)) {
        // If a run cannot be decided, the machine is often the cause, so its load is shown first.
        if !reason.contains("other programs had") {
            reason = format!("{reason} {}", busy.sentence());
        }
    }
    let mut notes = record.manifest.notes.clone();
    notes.extend(record.notes.iter().cloned());
    notes.append(&mut findings.notes);
    Judgement {
        schema: SCHEMA.to_owned(),
        run_id: record.manifest.run_id.clone(),
        name: record.manifest.name.clone(),
        seed: record.manifest.seed,
        verdict,
        exit_code: verdict.exit_code(),
        reason,
        words,
        findings: judged,
        notes,
    }
}

/// The planned faults that had no effect: the run does not show how the subject reacts to such faults.
pub fn never_hit(record: &Record) -> Vec<&record::PlannedFault> {
    validity::never_hit(record)
}

/// The verdict of all findings together. A run in which only conditions of validity were judged and met does not pass.
fn add_up(findings: &[Finding]) -> Verdict {
    let worst = findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Inconclusive);
    let judged = findings.iter().any(|finding| finding.judge != doubt::JUDGE);
    if worst == Verdict::Pass && !judged { Verdict::Inconclusive } else { worst }
}

/// The reason for the verdict in one line: the finding that decided, the number of other such findings, and the gaps in
/// the measurement.
fn reason(verdict: Verdict, findings: &[Finding]) -> String {
    let decisive: Vec<&Finding> = findings.iter().filter(|finding| finding.verdict == verdict).collect();
    match (verdict, decisive.first()) {
        (Verdict::Pass, _) => {
            let budgets = || findings.iter().filter(|finding| finding.judge != doubt::JUDGE);
            let unasked = budgets().filter(|finding| finding.limit.ends_with(BY_DEFAULT)).count() as u64;
            let all = crate::words::counted(budgets().count() as u64, "budget");
            if unasked == 0 {
                return format!("all {all} were met.");
            }
            format!("all {all} were met, {} of them that the scenario does not name.", crate::words::count(unasked))
        }
        (_, None) => "the scenario sets no budget, so there was nothing to decide.".to_owned(),
        (_, Some(first)) => {
            let more = (decisive.len() as u64).checked_sub(1).filter(|more| *more > 0);
            let more = more.map(|more| format!("{} more", crate::words::count(more)));
            let open = || {
                findings.iter().filter(|finding| matches!(finding.verdict, Verdict::Inconclusive | Verdict::Invalid))
            };
            let open = match open().count() as u64 {
                open @ 1.. if verdict == Verdict::Fail => Some(format!("{} not decided", crate::words::count(open))),
                _ => None,
            };
            let besides: Vec<String> = more.into_iter().chain(open).collect();
            let first = crate::words::first_sentence(&first.text);
            if besides.is_empty() { first } else { format!("{first} (and {})", besides.join(", ")) }
        }
    }
}

/// The facts that a witness does not report, as part of a sentence.
fn of_sights(sights: &[Sight]) -> String {
    sights.iter().map(Sight::to_string).collect::<Vec<_>>().join(" and not ")
}

impl Verdict {
    /// The verdict as one word, for people and programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Inconclusive => "inconclusive",
            Self::Fail => "fail",
            Self::Invalid => "invalid",
        }
    }

    pub fn exit_code(self) -> u8 {
        match self {
            Self::Pass => exit::PASS,
            Self::Inconclusive => exit::INCONCLUSIVE,
            Self::Fail => exit::FAIL,
            Self::Invalid => exit::INVALID,
        }
    }
}

impl Judgement {
    /// Findings that are not a pass, ordered: findings that decide the verdict come first.
    pub fn crossed(&self) -> Vec<&Finding> {
        let mut crossed: Vec<_> = self.findings.iter().filter(|finding| finding.verdict != Verdict::Pass).collect();
        crossed.sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
        crossed
    }
}

/// The finding that was added last, so that a judge can add details to it.
struct Pushed<'a>(Option<&'a mut Finding>);

impl Pushed<'_> {
    fn used(self, observed: f64, limit: f64) {
        let share = observed.max(0.0) / limit;
        if let Some(finding) = self.0
            && limit > 0.0
            && share.is_finite()
        {
            // A value beyond its limit is never shown as within it.
            let pct = if observed > limit { (100.0 * share).ceil() } else { (100.0 * share).floor() };
            finding.used_pct = Some(u32::try_from(crate::words::whole(pct)).unwrap_or(u32::MAX));
        }
    }
}

impl Findings {
    fn push(
        &mut self,
        budget: impl Into<Budget>,
        verdict: Verdict,
        observed: impl Into<String>,
        limit: impl Into<String>,
        text: impl Into<String>,
    ) -> Pushed<'_> {
        let Budget { name, text: budget } = budget.into();
        let judge = name.judge.to_owned();
        let (observed, limit, text) = (observed.into(), limit.into(), text.into());
        self.judged.push((name, Finding { judge, budget, verdict, observed, limit, text, used_pct: None }));
        Pushed(self.judged.last_mut().map(|(_, finding)| finding))
    }

    /// Adds a finding about a number of objects. The finding fails if the number is above its limit, and is undecided
    /// if the harness did not see some objects.
    fn push_counted(&mut self, name: Name, (number, limit): (u64, u64), unread: Option<&str>, text: String) {
        let (observed, shown) = (crate::words::counted(number, "object"), crate::words::count(limit));
        match unread {
            Some(why) if number <= limit => {
                let text = format!("not decided, because {why}; as far as observed: {text}");
                self.push(name, Verdict::Inconclusive, observed, shown, text);
            }
            _ => {
                let verdict = if number > limit { Verdict::Fail } else { Verdict::Pass };
                self.push(name, verdict, observed, shown, text).used(number as f64, limit as f64);
            }
        }
    }

    /// Runs a judge on limits that the scenario does not set, and marks these limits in the findings as defaults.
    fn unasked(&mut self, judge: impl FnOnce(&mut Self)) {
        let before = self.judged.len();
        judge(self);
        for (_, finding) in self.judged.iter_mut().skip(before) {
            finding.limit.push_str(BY_DEFAULT);
        }
    }

    /// Adds an undecided finding for a limit that the scenario sets and the witness cannot decide.
    fn unseen(&mut self, name: Name, limit: String, lacks: &[Sight], record: &Record) {
        let text = format!(
            "the witness `{}` does not report {}, so this budget cannot be judged: use a witness that does, or remove `{name}`.",
            record.manifest.witness,
            of_sights(lacks)
        );
        self.push(name, Verdict::Inconclusive, "not seen", limit, text);
    }

    /// Notes a default limit that the witness cannot decide.
    fn unjudged(&mut self, name: Name, lacks: &[Sight]) {
        self.unjudged.push((name, lacks.to_vec()));
    }

    /// Adds one note to the report about all default limits that were not judged.
    fn tell_unjudged(&mut self, record: &Record) {
        if self.unjudged.is_empty() {
            return;
        }
        let unjudged = std::mem::take(&mut self.unjudged);
        let names: Vec<String> = unjudged.iter().map(|(name, _)| name.to_string()).collect();
        let mut lacks: Vec<Sight> = unjudged.into_iter().flat_map(|(_, lacks)| lacks).collect();
        lacks.sort_unstable();
        lacks.dedup();
        self.note(format!(
            "{} {} not judged: the witness `{}` does not report {}.",
            names.join(", "),
            if names.len() == 1 { "was" } else { "were" },
            record.manifest.witness,
            of_sights(&lacks)
        ));
    }

    /// The budgets and conditions that were broken.
    fn all_broken(&self) -> impl Iterator<Item = Name> {
        self.judged.iter().filter(|(_, finding)| finding.verdict == Verdict::Fail).map(|(name, _)| *name)
    }

    fn broken<R: Rule>(&self) -> bool {
        self.all_broken().any(|name| name == Name::of::<R>())
    }

    /// The words that name the defects behind all broken budgets, each word once.
    fn words(&self) -> Vec<Word> {
        let mut words: Vec<Word> = self.all_broken().filter_map(|name| name.word).collect();
        words.sort_unstable();
        words.dedup();
        words
    }

    fn any_decided(&self) -> bool {
        let decided = |finding: &Finding| matches!(finding.verdict, Verdict::Pass | Verdict::Fail);
        self.judged.iter().any(|(_, finding)| finding.judge != doubt::JUDGE && decided(finding))
    }

    fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }
}

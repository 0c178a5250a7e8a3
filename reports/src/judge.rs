//! Judges: from the facts of a run record to a verdict.
//!
//! Owns the verdict and how findings add up to it. A judge is a function from [`Record`] to findings, one file each,
//! and reads nothing else; so judging an old record again gives the same verdict.
//!
//! A verdict is earned. The verdict is fail if a budget is broken whose facts are complete, whatever else is undecided.
//! Else the verdict is invalid if no judged budget can be trusted, else inconclusive if a budget could not be decided
//! *or none was judged*, and only else pass. If a condition of validity is not met, `doubt.rs` decides which budgets it
//! leaves undecided.

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

/// A judge of one side of the run.
type Judge = fn(&Record, &mut Findings);

/// The judges, in the order in which their findings are shown.
const JUDGES: [Judge; 16] = [
    crashes::judge,
    events::judge,
    writes::judge,
    finalizers::judge,
    objects::judge,
    children::judge,
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

/// The schema of a judgement, as in `verdict.json`.
pub const SCHEMA: &str = "longhaul.verdict/v1";

/// The verdict on a run; in a summary, later variants take precedence over earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every budget was met, with the stated confidence.
    Pass,
    /// Not enough data; the text says how much more.
    Inconclusive,
    /// The run itself cannot be trusted; the text says why.
    Invalid,
    /// A budget was broken, with the stated confidence. Other gaps in the measurement do not hide it.
    Fail,
}

/// A judge's finding about one budget or one condition of validity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The judge: `events`, `writes`, `finalizers`, `objects`, `children`, `requests`, `admission`, `alerts`, `api`, `registry`, `resources`,
    /// `subject` or `validity`.
    pub judge: String,
    /// The budget or condition, such as `events.missed`.
    pub budget: String,
    /// The verdict on it.
    pub verdict: Verdict,
    /// The measured value, with its unit.
    pub observed: String,
    /// The limit, with its unit.
    pub limit: String,
    /// One sentence for people, with cause and numbers.
    pub text: String,
    /// The used share of the limit, in percent: 100 is at the limit, more is beyond it. For growth it is the upper
    /// bound. None if there is no number to divide, or the limit is zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_pct: Option<u32>,
}

/// All findings about a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Judgement {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The identifier of the run.
    pub run_id: String,
    /// The scenario's name.
    pub name: String,
    /// The seed.
    pub seed: u64,
    /// The verdict on the whole run.
    pub verdict: Verdict,
    /// The exit code that goes with it.
    pub exit_code: u8,
    /// The reason, in one sentence.
    pub reason: String,
    /// The defects of the subject, each word once; empty if no budget was broken.
    #[serde(default)]
    pub words: Vec<Word>,
    /// One finding for each budget and each condition of validity, met or not.
    pub findings: Vec<Finding>,
    /// Further notes for the reader.
    pub notes: Vec<String>,
}

/// Follows a limit that the scenario does not set.
const BY_DEFAULT: &str = ", by default";

/// Collects the findings of one record.
#[derive(Debug, Default)]
struct Findings {
    /// Each finding with its rule or condition.
    judged: Vec<(Name, Finding)>,
    notes: Vec<String>,
    /// The length of the steady phase, in seconds, that would decide each undecided budget.
    needed: Vec<(String, f64)>,
    /// Rules with a default limit that the witness cannot decide, each with the facts that it does not report.
    unjudged: Vec<(Name, Vec<Sight>)>,
    /// The conditions that are not met.
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

/// The planned faults that had no effect: the run does not show how the subject reacts to them.
pub fn never_hit(record: &Record) -> Vec<&record::PlannedFault> {
    validity::never_hit(record)
}

/// The verdict of all findings together. Conditions of validity alone earn no pass.
fn add_up(findings: &[Finding]) -> Verdict {
    let worst = findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Inconclusive);
    let judged = findings.iter().any(|finding| finding.judge != doubt::JUDGE);
    if worst == Verdict::Pass && !judged { Verdict::Inconclusive } else { worst }
}

/// The reason in one line: the deciding finding, the number of further ones, and the gaps in the measurement.
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

/// The text for people.
fn of_sights(sights: &[Sight]) -> String {
    sights.iter().map(Sight::to_string).collect::<Vec<_>>().join(" and not ")
}

impl Verdict {
    /// The word for people and machines.
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
    /// Findings that are not a pass, those that decide the verdict first.
    pub fn crossed(&self) -> Vec<&Finding> {
        let mut crossed: Vec<_> = self.findings.iter().filter(|finding| finding.verdict != Verdict::Pass).collect();
        crossed.sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
        crossed
    }
}

/// The finding that was just added, for further details.
struct Pushed<'a>(Option<&'a mut Finding>);

impl Pushed<'_> {
    /// Sets the used share of the limit.
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

    /// Adds a finding about a number of objects: fail if there are too many, undecided if not all of them were seen.
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

    /// Marks limits that the scenario does not set as defaults.
    fn unasked(&mut self, judge: impl FnOnce(&mut Self)) {
        let before = self.judged.len();
        judge(self);
        for (_, finding) in self.judged.iter_mut().skip(before) {
            finding.limit.push_str(BY_DEFAULT);
        }
    }

    /// Adds a limit that the scenario sets and the witness cannot decide.
    fn unseen(&mut self, name: Name, limit: String, lacks: &[Sight], record: &Record) {
        let text = format!(
            "the witness `{}` does not report {}, so this budget cannot be judged: use a witness that does, or remove `{name}`.",
            record.manifest.witness,
            of_sights(lacks)
        );
        self.push(name, Verdict::Inconclusive, "not seen", limit, text);
    }

    /// Adds a default limit that the witness cannot decide.
    fn unjudged(&mut self, name: Name, lacks: &[Sight]) {
        self.unjudged.push((name, lacks.to_vec()));
    }

    /// Adds one note about all limits that were not judged.
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

    /// The rules and conditions that were broken.
    fn all_broken(&self) -> impl Iterator<Item = Name> {
        self.judged.iter().filter(|(_, finding)| finding.verdict == Verdict::Fail).map(|(name, _)| *name)
    }

    /// Whether a rule was broken, or a part of it.
    fn broken<R: Rule>(&self) -> bool {
        self.all_broken().any(|name| name == Name::of::<R>())
    }

    /// The words of all broken rules, each once.
    fn words(&self) -> Vec<Word> {
        let mut words: Vec<Word> = self.all_broken().filter_map(|name| name.word).collect();
        words.sort_unstable();
        words.dedup();
        words
    }

    /// Whether any budget of the subject was decided.
    fn any_decided(&self) -> bool {
        let decided = |finding: &Finding| matches!(finding.verdict, Verdict::Pass | Verdict::Fail);
        self.judged.iter().any(|(_, finding)| finding.judge != doubt::JUDGE && decided(finding))
    }

    fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }
}

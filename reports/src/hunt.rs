//! The result of `longhaul hunt`: the findings, what was covered, and how certain the findings are.
//!
//! Owns the types of the result, the odds of a finding, and the exit code. The hunt fills the types.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::exit;
use crate::record::Machine;
use crate::statistics::proportion::wilson;

/// The version of the schema of a result.
pub const SCHEMA: &str = "longhaul.hunt/v1";
/// The confidence of the interval of a finding's odds.
const CONFIDENCE: f64 = 0.95;

/// The whole result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hunt {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// When the hunt began, RFC 3339.
    pub started_at: String,
    /// The version of `longhaul`.
    pub longhaul: String,
    pub machine: Machine,
    /// The name of the scenario.
    pub scenario: String,
    /// The program and its arguments. Values with secret names are masked.
    pub command: Vec<String>,
    pub seed: u64,
    /// The command that repeats the hunt.
    pub repeat: String,
    pub seconds: f64,
    pub ending: Ending,
    /// Causes with their scenarios, the most certain first.
    pub findings: Vec<Found>,
    pub reference: Baseline,
    pub coverage: Coverage,
    /// The questions to the webhooks of the subject; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhooks: Option<Webhooks>,
    /// Restrictions of the hunt, each a sentence.
    pub notes: Vec<String>,
}

/// How a hunt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "how")]
pub enum Ending {
    /// All planned trials were played, or the time was over.
    Done,
    /// The user interrupted the hunt.
    Interrupted,
    /// The search did not begin or could not continue.
    Stopped {
        /// The reason, and what would help.
        why: String,
    },
}

/// The behaviour of the subject without disturbances.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Baseline {
    /// Number of plays without disturbances.
    pub plays: usize,
    /// Number of objects that every play has at its end.
    pub objects: usize,
    /// The points: each kind of write that every play has.
    pub points: Vec<String>,
    /// Number of kinds of writes that only some plays have.
    pub unsteady_points: usize,
    /// Fields that differ between plays and are not compared, each with its object.
    pub masked: Vec<String>,
    /// Objects that only some plays have at their end.
    pub loose: Vec<String>,
}

/// The number of trials of each kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Coverage {
    /// Number of trials, without references and replays.
    pub trials: u32,
    /// Trials whose disturbances had no effect, because their point was not reached.
    pub without_effect: u32,
    /// Trials that hung, or in which Longhaul itself failed.
    pub broken: u32,
    /// Single disturbances that were tried, and all that fit.
    pub singles: (u32, u32),
    /// Pairs that were tried.
    pub pairs: u32,
    /// Other combinations that were tried.
    pub others: u32,
    /// Different courses: the set of requests and their answers, and the end state.
    pub shapes: u32,
    /// Number of trials of each disturbance, and how many of them had an effect.
    pub disturbances: Vec<(String, u32, u32)>,
    /// Findings that no replay showed again.
    pub unconfirmed: u32,
}

/// The questions to the subject's webhooks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Webhooks {
    /// The paths of the webhooks.
    pub asked: Vec<String>,
    /// The kinds of objects in the questions.
    pub kinds: Vec<String>,
    /// Number of different questions.
    pub questions: u32,
    /// Number of quiet answers that allow the request.
    pub allowed: u32,
    /// Number of quiet answers that deny the request.
    pub denied: u32,
    /// Number of questions without a valid answer on a quiet system.
    pub unanswered: u32,
    /// Each condition with its number of compared answers, and of questions without a valid answer.
    pub conditions: Vec<(String, u32, u32)>,
    /// Parts of answers that differ on a quiet system and are not compared.
    pub masked: Vec<String>,
    /// Signs that no replay showed again.
    pub unconfirmed: u32,
}

/// One finding: one cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// The difference, in one sentence.
    pub title: String,
    pub sign: Sign,
    /// Further signs in the same trial.
    pub also: Vec<Sign>,
    /// The disturbances that are left after shrinking, each a sentence; empty if the subject needs none.
    pub disturbances: Vec<String>,
    /// The names of all disturbances that showed the cause.
    pub shown_by: Vec<String>,
    /// Number of trials that showed the cause.
    pub trials: u32,
    pub odds: Odds,
    /// The events after which the end is right, each a sentence; empty if none was tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub healing: Vec<String>,
    /// The course of the shrunk trial, one line each.
    pub story: Vec<String>,
    /// The course of a play without the disturbances, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// The scenario file that shows the cause, and the command that plays it.
    pub scenario: Option<String>,
    pub play: Option<String>,
}

/// The kinds of signs, the most telling first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// A judge found a broken budget, or the subject exited.
    Judge,
    /// A webhook answered differently without a reason, or in a way that no webhook may answer.
    Answer,
    /// More objects at one moment than in any reference.
    Most,
    /// More creations than in any reference.
    Made,
    /// More deletions than in any reference.
    Deleted,
    /// An object is missing at the end.
    Missing,
    /// An object is there that no reference has.
    Additional,
    /// A field has another value.
    Field,
}

/// One difference of a trial from the reference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sign {
    pub what: What,
    /// The budget, or the resource.
    pub subject: String,
    /// Namespace and name of the object.
    pub object: Option<String>,
    pub field: Option<String>,
    /// The value or number in the trial.
    pub happened: String,
    /// The value or number in the references.
    pub expected: String,
    /// The highest number of the references.
    pub most: Option<u64>,
    /// The value of the references; null if the field is absent.
    pub value: Option<Value>,
}

/// How often a trial failed when it was played again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Odds {
    pub failed: u32,
    pub plays: u32,
    /// The 95 % interval of the share of failures.
    pub low: f64,
    pub high: f64,
}

impl Odds {
    /// The odds of so many failures, with Wilson's interval.
    pub fn of(failed: u32, plays: u32) -> Self {
        let interval = wilson(failed.into(), plays.into(), CONFIDENCE);
        let (low, high) = interval.map_or((0.0, 1.0), |interval| (interval.lower, interval.upper));
        Self { failed, plays, low, high }
    }

    /// For example `4 of 5 plays failed (95 % interval: 38 % to 96 %)`.
    pub fn words(&self) -> String {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let (low, high) = (percent(self.low), percent(self.high));
        format!("{} of {} plays failed (95 % interval: {low} to {high})", self.failed, self.plays)
    }
}

impl Sign {
    /// The sign as a sentence.
    pub fn sentence(&self) -> String {
        let plural = self.subject.split('.').next().unwrap_or_default();
        let object = self.object.as_deref().unwrap_or_default();
        let (happened, expected) = (&self.happened, &self.expected);
        match self.what {
            What::Judge => format!("{}: {happened}", self.subject),
            What::Answer => format!("{object}: {happened}; {expected}."),
            What::Made | What::Deleted | What::Most => {
                format!("{plural}: {happened}; without the disturbance {expected}.")
            }
            What::Missing => format!("{plural} {object} is missing at the end."),
            What::Additional => {
                format!("{plural} {object} is there at the end, and without the disturbance it is not.")
            }
            What::Field => {
                let field = self.field.as_deref().unwrap_or_default();
                format!("{plural} {object}: {field} is {happened} at the end; without the disturbance {expected}.")
            }
        }
    }

    /// Whether two signs have the same cause: the same kind, resource or budget, and field.
    pub fn is_like(&self, other: &Self) -> bool {
        self.what == other.what && self.subject == other.subject && self.field == other.field
    }
}

impl Hunt {
    /// Exit 0 nothing found, 1 findings, 2 too little was tried, 3 no search was possible.
    pub fn exit_code(&self) -> u8 {
        let (tried, all) = self.coverage.singles;
        // A subject that only answers reviews has no disturbances.
        let tried_all = tried >= all && (all > 0 || self.webhooks.is_some());
        match () {
            () if !self.findings.is_empty() => exit::FAIL,
            () if matches!(self.ending, Ending::Stopped { .. }) => exit::INVALID,
            () if self.ending == Ending::Done && tried_all => exit::PASS,
            () => exit::INCONCLUSIVE,
        }
    }

    /// The result in one sentence.
    pub fn sentence(&self) -> String {
        let trials = crate::words::counted(u64::from(self.coverage.trials), "trial");
        let (tried, all) = self.coverage.singles;
        if let Ending::Stopped { why } = &self.ending {
            return format!("The search ended early: {why}");
        }
        let interrupted = if self.ending == Ending::Interrupted { " You interrupted the hunt." } else { "" };
        let found = match self.findings.len() {
            0 => "No finding".to_owned(),
            count => crate::words::counted(count as u64, "finding"),
        };
        let asked = self.webhooks.as_ref().map(|webhooks| {
            let questions = crate::words::counted(u64::from(webhooks.questions), "question");
            format!("{questions} to {}", crate::words::counted(webhooks.asked.len() as u64, "webhook"))
        });
        match asked {
            Some(asked) if all == 0 => format!("{found} in {asked}.{interrupted}"),
            Some(asked) => format!(
                "{found} in {asked} and {trials}; {tried} of {all} single disturbances were tried.{interrupted}"
            ),
            None => format!("{found} in {trials}; {tried} of {all} single disturbances were tried.{interrupted}"),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn sign() -> Sign {
        Sign {
            what: What::Field,
            subject: "caches.cache.example.com".to_owned(),
            object: Some("default/a".to_owned()),
            field: Some("status.created".to_owned()),
            happened: "absent".to_owned(),
            expected: "<time>".to_owned(),
            most: None,
            value: Some("<time>".into()),
        }
    }

    pub(crate) fn hunt(findings: Vec<Found>) -> Hunt {
        Hunt {
            schema: SCHEMA.to_owned(),
            started_at: "2026-01-01T00:00:00Z".to_owned(),
            longhaul: "0.1.0".to_owned(),
            machine: Machine { cores: 2, memory_bytes: 8 << 30, kernel: "6.1".to_owned(), cpu: "example".to_owned() },
            scenario: "mine".to_owned(),
            command: vec!["bin/manager".to_owned()],
            seed: 1,
            repeat: "longhaul hunt longhaul.yaml --seed 1".to_owned(),
            seconds: 181.0,
            ending: Ending::Done,
            findings,
            reference: Baseline {
                plays: 3,
                objects: 9,
                points: vec!["create of pods".to_owned()],
                ..Baseline::default()
            },
            coverage: Coverage {
                trials: 40,
                singles: (30, 30),
                pairs: 10,
                disturbances: vec![("hold own".to_owned(), 5, 4)],
                ..Coverage::default()
            },
            webhooks: None,
            notes: vec!["The clock was not changed.".to_owned()],
        }
    }

    /// The result of a subject that only answers reviews.
    pub(crate) fn webhook() -> Hunt {
        let webhooks = Webhooks {
            asked: vec!["/mutate".to_owned(), "/validate".to_owned()],
            kinds: vec!["Cache".to_owned()],
            questions: 12,
            allowed: 8,
            denied: 2,
            conditions: vec![("side by side".to_owned(), 40, 1)],
            masked: vec!["/validate: the warnings".to_owned()],
            ..Webhooks::default()
        };
        let (reference, coverage) = (Baseline::default(), Coverage::default());
        Hunt { webhooks: Some(webhooks), reference, coverage, ..hunt(Vec::new()) }
    }

    pub(crate) fn found() -> Found {
        Found {
            title: sign().sentence(),
            sign: sign(),
            also: Vec::new(),
            disturbances: vec!["hold caches for 2s before the 1st create of pods".to_owned()],
            shown_by: vec!["hold own".to_owned()],
            trials: 2,
            odds: Odds::of(4, 5),
            healing: vec!["Healed by a restart of the program.".to_owned()],
            story: vec!["1.2 s create of pods default/a".to_owned()],
            without: vec!["1.3 s create of pods default/a".to_owned()],
            scenario: Some("hunt-1.yaml".to_owned()),
            play: Some("longhaul soak hunt-1.yaml".to_owned()),
        }
    }

    #[test]
    fn odds_have_an_interval() {
        let words = Odds::of(4, 5).words();
        assert_eq!(words, "4 of 5 plays failed (95 % interval: 38 % to 96 %)");
        assert_eq!(Odds::of(0, 0).words(), "0 of 0 plays failed (95 % interval: 0 % to 100 %)");
    }

    #[test]
    fn exit_codes_follow_from_what_was_tried() {
        assert_eq!(hunt(Vec::new()).exit_code(), exit::PASS);
        assert_eq!(hunt(vec![found()]).exit_code(), exit::FAIL);
        let mut short = hunt(Vec::new());
        short.coverage.singles.0 = 3;
        assert_eq!(short.exit_code(), exit::INCONCLUSIVE);
        let mut stopped = hunt(Vec::new());
        stopped.ending = Ending::Stopped { why: "it never settles.".to_owned() };
        assert_eq!(stopped.exit_code(), exit::INVALID);
        assert!(stopped.sentence().contains("it never settles"));
        assert_eq!(webhook().exit_code(), exit::PASS, "a webhook alone has no disturbances");
        let interrupted = Hunt { ending: Ending::Interrupted, ..hunt(vec![found()]) };
        assert_eq!(interrupted.exit_code(), exit::FAIL, "findings so far count");
    }

    #[test]
    fn signs_are_sentences_and_compare_without_the_object() {
        let mut other = sign();
        other.object = Some("default/b".to_owned());
        assert!(sign().is_like(&other));
        let answer = Sign { what: What::Answer, object: Some("/validate: Cache CREATE".to_owned()), ..sign() };
        assert_eq!(answer.sentence(), "/validate: Cache CREATE: absent; <time>.");
        other.field = None;
        assert!(!sign().is_like(&other));
        let wanted = "caches default/a: status.created is absent at the end; without the disturbance <time>.";
        assert_eq!(sign().sentence(), wanted);
    }
}

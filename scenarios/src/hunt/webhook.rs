//! The part of a hunt that asks a webhook: the same questions on a quiet system and under other conditions.
//!
//! Owns which questions are asked, what a difference between answers means, and how the part becomes findings of the
//! hunt. Each play is a separate process, which `run/asking.rs` carries out. Only the module `part` does I/O.

pub(crate) mod answer;
mod built_in;
pub(crate) mod compare;
pub(crate) mod corpus;
mod mutate;
mod part;
mod place;
pub(crate) mod question;

pub(crate) use built_in::kinds as built_in_kinds;
pub(super) use part::{ask, is_alone};
pub(crate) use question::{Question, Resource};

pub(crate) use reports::budgets::Condition;
use reports::hunt::Sign;
use serde::{Deserialize, Serialize};

/// The budget that a webhook breaks if its answers are not consistent.
pub(crate) const CONSISTENT: &str = "admission.consistent";

/// The file with the plan in the folder of a play, and the file that its process leaves there.
pub(crate) const PLAN: &str = "plan.json";
pub(crate) const REPORT: &str = "report.json";

/// The parts of one play besides its questions on a quiet system.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Plan {
    pub(crate) conditions: Vec<Condition>,
}

/// The result of one play, which its process leaves for the hunt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Report {
    /// The paths of the webhooks.
    pub(crate) webhooks: Vec<String>,
    /// The kinds of objects in the questions.
    pub(crate) kinds: Vec<String>,
    pub(crate) questions: u32,
    /// Numbers of quiet answers: allowed, denied, and without a valid answer.
    pub(crate) allowed: u32,
    pub(crate) denied: u32,
    pub(crate) unanswered: u32,
    /// Each condition with its number of compared answers, and of questions without a valid answer.
    pub(crate) conditions: Vec<(String, u32, u32)>,
    /// Parts of answers that differ on a quiet system and are not compared.
    pub(crate) masked: Vec<String>,
    pub(crate) signs: Vec<Shown>,
    pub(crate) notes: Vec<String>,
}

/// A sign with everything that its finding shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Shown {
    pub(crate) sign: Sign,
    /// The conditions under which the sign was seen; empty if the sign needs none.
    pub(crate) conditions: Vec<Condition>,
    /// Number of answers with the sign.
    pub(crate) answers: u32,
    pub(crate) story: Vec<String>,
}

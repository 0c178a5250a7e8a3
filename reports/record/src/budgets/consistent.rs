//! The budget `admission.consistent`: the conditions under which a webhook is asked the same questions again.
//!
//! Owns the names of the conditions, and which answers a condition excuses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A condition under which the subject's webhooks are asked again, the simplest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// The same questions come one by one in another order.
    Order,
    /// Many questions are open at the same time, by several users.
    Together,
    /// Requests of the subject to the API server fail with 500.
    Errors,
    /// Answers of the API server to the subject are late.
    Slow,
    /// Requests of the subject failed before, and work again. Comes after `errors` if both are listed.
    Recovered,
    /// The serving certificate was replaced.
    Reload,
    /// The subject was stopped and started again.
    Restart,
}

/// The same questions get the same answers. After the run, a new copy of the subject is asked about many objects on a
/// quiet system, and then again under these conditions. Needs the mock control plane and a subject that the run starts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Consistent {
    /// The conditions. Default: all of them.
    #[serde(default = "all")]
    #[schemars(length(min = 1))]
    pub under: Vec<Condition>,
}

fn all() -> Vec<Condition> {
    Condition::ALL.to_vec()
}

impl Condition {
    /// All conditions, in the order in which they are tried.
    pub const ALL: [Self; 7] =
        [Self::Order, Self::Together, Self::Errors, Self::Slow, Self::Recovered, Self::Reload, Self::Restart];

    /// The short name, for tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Order => "another order",
            Self::Together => "side by side",
            Self::Errors => "API server fails",
            Self::Slow => "API server is slow",
            Self::Recovered => "API server works again",
            Self::Reload => "certificate replaced",
            Self::Restart => "after a restart",
        }
    }

    /// The condition after the words `the webhook was asked`.
    pub fn phrase(self) -> &'static str {
        match self {
            Self::Order => "in another order",
            Self::Together => "side by side with other requests",
            Self::Errors => "while the API server answers its requests with 500",
            Self::Slow => "while the API server answers its requests late",
            Self::Recovered => "after the API server had failed",
            Self::Reload => "after its certificate was replaced",
            Self::Restart => "after a restart",
        }
    }

    /// The condition as a sentence, with the situation that makes it in a cluster.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Order => "The same questions come one by one in another order: other users are faster.",
            Self::Together => "Many requests are open at the same time, by several users: a busy cluster.",
            Self::Errors => "Requests of the program to the API server fail with 500: etcd changes its leader.",
            Self::Slow => "Answers of the API server to the program are late: a busy API server.",
            Self::Recovered => "Requests of the program failed before, and work again.",
            Self::Reload => "The serving certificate was replaced: cert-manager renewed it.",
            Self::Restart => "The program was stopped and started again: a rolling update.",
        }
    }

    /// Whether a denial is no sign, because a webhook that cannot decide must refuse.
    pub fn excuses_denials(self) -> bool {
        matches!(self, Self::Errors | Self::Slow | Self::Recovered | Self::Restart)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_conditions_all_of_them_are_meant() {
        let read = |text: &str| serde_json::from_str::<Consistent>(text).unwrap().under;
        assert_eq!(read("{}"), Condition::ALL);
        assert_eq!(read(r#"{"under": ["together"]}"#), [Condition::Together]);
    }
}

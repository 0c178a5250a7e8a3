//! The metrics of questions to other processes.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// The labels: a validator of the configuration, and a closed list.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Labels {
    validator: String,
    outcome: &'static str,
}

/// The outcome of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The first instance answered.
    Answered,
    /// Another instance answered, or the same one later.
    Elsewhere,
    /// No instance answered.
    Unavailable,
    /// The answer breaks the contract.
    Wrong,
    Refused,
    /// Too many questions wait.
    Crowded,
}

impl Outcome {
    fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Elsewhere => "answered-elsewhere",
            Self::Unavailable => "unavailable",
            Self::Wrong => "wrong",
            Self::Refused => "refused",
            Self::Crowded => "crowded",
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct Metrics {
    questions: Family<Labels, Counter>,
}

impl Metrics {
    /// Registers counters at zero, under the prefix `longhaul_remote`.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let sub = registry.sub_registry_with_prefix("longhaul_remote");
        let help = "Requests to other processes, by validator and outcome";
        sub.register("questions", help, metrics.questions.clone());
        metrics
    }

    pub fn count(&self, validator: &str, outcome: Outcome) {
        self.questions.get_or_create(&Labels { validator: validator.to_owned(), outcome: outcome.name() }).inc();
    }
}

//! The metrics of inquiries that this process sends to other processes.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Labels {
    validator: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The first instance answered.
    Answered,
    /// Another instance answered, or the first instance at a later attempt.
    Elsewhere,
    /// No instance answered.
    Unavailable,
    /// An instance's answer breaks the protocol.
    Wrong,
    Refused,
    /// Too many inquiries were already waiting for an instance.
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

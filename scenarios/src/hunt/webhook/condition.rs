//! The conditions under which questions are asked again.
//!
//! Owns which answers a condition excuses. Does no I/O.

/// A condition, the simplest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Condition {
    Order,
    Together,
    Errors,
    Slow,
    Recovered,
    Reload,
    Restart,
}

impl Condition {
    pub(crate) const ALL: [Self; 7] =
        [Self::Order, Self::Together, Self::Errors, Self::Slow, Self::Recovered, Self::Reload, Self::Restart];

    /// The short name, for tables.
    pub(crate) fn name(self) -> &'static str {
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
    pub(crate) fn phrase(self) -> &'static str {
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
    pub(crate) fn sentence(self) -> &'static str {
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
    pub(crate) fn excuses_denials(self) -> bool {
        matches!(self, Self::Errors | Self::Slow | Self::Recovered | Self::Restart)
    }
}

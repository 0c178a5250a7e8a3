//! The configuration of a registry fault, as a scenario file writes it.
//!
//! Owns the keys, their types and which of them belong to which fault. It must not do anything.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

use super::{
    Ask, Behaviour, auth_failing, hang, redirect_loop, referrers_404, server_error, tag_moved, too_many_requests,
    truncated_blob, wrong_digest,
};

/// One scheduled fault of the registry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Fault {
    /// Which misbehaviour.
    pub name: Name,
    /// When it begins, counted from the start of the phase that the scenario says.
    pub at: Span,
    /// How long it lasts; without it the fault lasts until it is ended.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
    /// Only requests about this repository, or about those with this prefix when it ends in `*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// The most effects it may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Only clients whose `User-Agent` contains this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    /// The chance of each single effect, 0 to 1, decided by the seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// `server-error` only: the status, 500 to 599. Default: 503.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// `too-many-requests` and `server-error` only: what `Retry-After` says, in whole seconds. Default: `1s` and none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Span>,
}

/// The catalogue of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Name {
    /// Every request is refused with 401, and `/token` too.
    AuthFailing,
    /// 429 with `Retry-After`.
    TooManyRequests,
    /// A status of the 500s.
    ServerError,
    /// The request is read and never answered; when the fault ends the connection is closed.
    Hang,
    /// A blob ends after half of the bytes that its `Content-Length` promised.
    TruncatedBlob,
    /// The content of a blob or manifest does not have the digest that its header names.
    WrongDigest,
    /// A tag points elsewhere when it is read again.
    TagMoved,
    /// A blob redirects to itself for ever.
    RedirectLoop,
    /// The referrers API answers 404, as registries before v1.1 of the specification do.
    #[serde(rename = "referrers-404")]
    Referrers404,
}

/// A fault that cannot begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A key that this fault does not have.
    #[error("`{key}` has no meaning for `{name}`: remove it, or use it with {belongs_to}")]
    KeyWithoutMeaning {
        /// The key.
        key: &'static str,
        /// The fault.
        name: Name,
        /// The faults that have the key.
        belongs_to: &'static str,
    },
    /// A value outside its range.
    #[error("`{key}: {value}` is out of range: write {expected}")]
    OutOfRange {
        /// The key.
        key: &'static str,
        /// What was written.
        value: String,
        /// What is possible.
        expected: &'static str,
    },
    /// The same number twice.
    #[error("fault {id} is running already")]
    AlreadyRunning {
        /// The number.
        id: u32,
    },
}

impl Name {
    pub(super) fn behaviour(self) -> Box<dyn Behaviour> {
        match self {
            Self::AuthFailing => Box::new(auth_failing::AuthFailing),
            Self::TooManyRequests => Box::new(too_many_requests::TooManyRequests),
            Self::ServerError => Box::new(server_error::ServerError),
            Self::Hang => Box::new(hang::Hang),
            Self::TruncatedBlob => Box::new(truncated_blob::TruncatedBlob),
            Self::WrongDigest => Box::new(wrong_digest::WrongDigest),
            Self::TagMoved => Box::new(tag_moved::TagMoved::default()),
            Self::RedirectLoop => Box::new(redirect_loop::RedirectLoop),
            Self::Referrers404 => Box::new(referrers_404::Referrers404),
        }
    }

    /// The name as a scenario file writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AuthFailing => "auth-failing",
            Self::TooManyRequests => "too-many-requests",
            Self::ServerError => "server-error",
            Self::Hang => "hang",
            Self::TruncatedBlob => "truncated-blob",
            Self::WrongDigest => "wrong-digest",
            Self::TagMoved => "tag-moved",
            Self::RedirectLoop => "redirect-loop",
            Self::Referrers404 => "referrers-404",
        }
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Fault {
    /// A fault with nothing set but its name: every request that it concerns, until it is ended.
    pub const fn new(name: Name) -> Self {
        Self {
            name,
            at: Span::from_millis(0),
            lasts: None,
            repository: None,
            count: None,
            user_agent: None,
            probability: None,
            status: None,
            retry_after: None,
        }
    }

    /// Refuses settings that contradict each other, so that a scenario fails before it runs.
    pub fn check(&self) -> Result<(), Error> {
        let without_meaning = |key, belongs_to| Err(Error::KeyWithoutMeaning { key, name: self.name, belongs_to });
        if self.status.is_some() && self.name != Name::ServerError {
            return without_meaning("status", "server-error");
        }
        if self.retry_after.is_some() && !matches!(self.name, Name::ServerError | Name::TooManyRequests) {
            return without_meaning("retryAfter", "too-many-requests or server-error");
        }
        if let Some(status) = self.status.filter(|status| !(500..600).contains(status)) {
            return Err(Error::OutOfRange { key: "status", value: status.to_string(), expected: "500 to 599" });
        }
        if let Some(chance) = self.probability.filter(|chance| !(0.0..=1.0).contains(chance)) {
            return Err(Error::OutOfRange { key: "probability", value: chance.to_string(), expected: "0 to 1" });
        }
        Ok(())
    }

    pub(super) fn matches(&self, ask: &Ask<'_>) -> bool {
        let repository = self.repository.as_deref().is_none_or(|pattern| {
            ask.route.repository().is_some_and(|name| match pattern.strip_suffix('*') {
                Some(prefix) => name.starts_with(prefix),
                None => name == pattern,
            })
        });
        repository && self.user_agent.as_deref().is_none_or(|part| ask.user_agent.contains(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_read_as_it_is_written() {
        let fault: Fault = serde_saphyr::from_str(
            "name: referrers-404\nat: 10s\nfor: 5s\nrepository: seeded/*\ncount: 3\nuserAgent: skopeo\nprobability: 0.5\n",
        )
        .unwrap();
        assert_eq!(fault.name, Name::Referrers404);
        assert_eq!(fault.lasts, Some(Span::from_secs(5)));
        fault.check().unwrap();
        let text = serde_json::to_string(&fault).unwrap();
        assert_eq!(serde_json::from_str::<Fault>(&text).unwrap(), fault);
        assert!(serde_saphyr::from_str::<Fault>("name: hang\nat: 0s\nfro: 5s\n").is_err());
    }

    #[test]
    fn every_name_is_spelled_as_serde_spells_it() {
        use Name::*;
        for name in [
            AuthFailing,
            TooManyRequests,
            ServerError,
            Hang,
            TruncatedBlob,
            WrongDigest,
            TagMoved,
            RedirectLoop,
            Referrers404,
        ] {
            assert_eq!(serde_json::to_value(name).unwrap(), name.as_str());
        }
    }

    #[test]
    fn contradictions_are_refused_with_what_to_write() {
        let fault = Fault { status: Some(503), ..Fault::new(Name::Hang) };
        assert_eq!(
            fault.check().unwrap_err().to_string(),
            "`status` has no meaning for `hang`: remove it, or use it with server-error"
        );
        assert!(Fault { status: Some(200), ..Fault::new(Name::ServerError) }.check().is_err());
        assert!(Fault { probability: Some(1.5), ..Fault::new(Name::Hang) }.check().is_err());
        assert!(Fault { retry_after: Some(Span::from_secs(1)), ..Fault::new(Name::Hang) }.check().is_err());
    }
}

//! Reads command line and environment: the mistakes to make, timeouts and intervals, the watched resources, and the
//! witness.

use std::time::Duration;

use anyhow::Context as _;
use clap::{Parser, ValueEnum};
use units::Span;

use crate::mistakes::Mistake;

/// The resource that the harness writes by default.
const DEFAULT_WATCH: &str = "packages.longhaul.dev/v1alpha1";

/// A correct list/watch client, except for the mistakes that are switched on.
#[derive(Debug, Clone, Parser)]
#[command(name = "planted-client", args_override_self = true)]
pub struct Args {
    /// A mistake that the client makes. May be given several times.
    #[arg(long = "mistake", value_enum)]
    pub mistakes: Vec<Mistake>,
    /// Print all mistakes, each with its name, its numbers in the catalogue of bugs, and a sentence.
    #[arg(long)]
    pub list_mistakes: bool,
    /// HTTP versions to offer to the server.
    #[arg(long, value_enum, default_value = "auto")]
    pub http: Http,
    /// The action on each version before the client reports it.
    #[arg(long, value_enum, default_value = "none")]
    pub handler: Handling,
    /// Time that the handler takes for each version.
    #[arg(long, default_value = "0s")]
    pub handler_delay: Span,
    /// Ask for the initial events on the watch instead of listing.
    #[arg(long)]
    pub streaming_lists: bool,
    /// Number of watches of each kind. Only the last watch of each kind reports events.
    #[arg(long, default_value_t = 1)]
    pub copies: usize,
    /// Interval between two complete lists.
    #[arg(long, default_value = "15s")]
    pub relist: Span,
    /// Longest time without a message on a watch. Bookmarks must come more often.
    #[arg(long, default_value = "4s")]
    pub silence: Span,
    /// How long consistent lists must be older than the known state before the client accepts them.
    #[arg(long, default_value = "6s")]
    pub rewind_patience: Span,
    /// Print each request and its reason to stderr.
    #[arg(long)]
    pub verbose: bool,
}

/// HTTP versions to offer to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Http {
    /// HTTP/1.1 only.
    #[value(name = "1")]
    One,
    /// HTTP/2 only.
    #[value(name = "2")]
    Two,
    /// HTTP/1.1 and HTTP/2; the server chooses.
    Auto,
}

/// The action on each version before the client reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Handling {
    /// Nothing.
    None,
    /// Write `status.observedGeneration`.
    Status,
    /// Write an annotation, once per object.
    Annotation,
    /// Keep a `ConfigMap` with the same name for each object: read it, then create or replace it, and delete it with the object.
    Copy,
}

/// Settings from the environment.
#[derive(Debug, Clone)]
pub struct Environment {
    pub kubeconfig: String,
    /// The URL to which observations are posted.
    pub witness: String,
    pub scopes: Vec<Scope>,
}

/// One kind of objects, in one namespace or in all namespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// The resource's name for the witness, such as `packages.longhaul.dev`.
    pub resource: String,
    /// The base path of the API group, such as `/apis/longhaul.dev/v1alpha1`.
    base: String,
    plural: String,
    namespace: String,
}

/// Timeouts and intervals of the client. These times are short, so that a run of half a minute shows their effect.
#[derive(Debug, Clone, Copy)]
pub struct Clocks {
    /// Longest time without a message on a watch.
    pub silence: Duration,
    /// Interval between two complete lists.
    pub relist: Duration,
    /// See [`Args::rewind_patience`].
    pub rewind_patience: Duration,
}

impl Environment {
    /// Reads `KUBECONFIG`, `LONGHAUL_WITNESS_URL`, `LONGHAUL_WATCH` and `LONGHAUL_NAMESPACE`.
    pub fn read() -> anyhow::Result<Self> {
        let variable = |name: &str| std::env::var(name).with_context(|| format!("{name} is not set"));
        let watch = std::env::var("LONGHAUL_WATCH").unwrap_or_else(|_| DEFAULT_WATCH.to_owned());
        let namespace = std::env::var("LONGHAUL_NAMESPACE").unwrap_or_default();
        let scopes = watch.split(',').map(str::trim).filter(|wanted| !wanted.is_empty());
        let scopes: Vec<Scope> = scopes.map(|wanted| Scope::parse(wanted, &namespace)).collect::<Result<_, _>>()?;
        anyhow::ensure!(!scopes.is_empty(), "LONGHAUL_WATCH names nothing: write for example {DEFAULT_WATCH}");
        Ok(Self { kubeconfig: variable("KUBECONFIG")?, witness: variable("LONGHAUL_WITNESS_URL")?, scopes })
    }
}

impl Scope {
    /// Parses `plural.group/version` or `plural/version`.
    pub fn parse(wanted: &str, namespace: &str) -> anyhow::Result<Self> {
        let malformed = || format!("`{wanted}` in LONGHAUL_WATCH: write `configmaps/v1` or `plural.group/version`");
        let (resource, version) = wanted.split_once('/').with_context(malformed)?;
        anyhow::ensure!(!resource.is_empty() && !version.is_empty(), malformed());
        let (plural, base) = match resource.split_once('.') {
            None => (resource, format!("/api/{version}")),
            Some((plural, group)) => (plural, format!("/apis/{group}/{version}")),
        };
        let (plural, namespace) = (plural.to_owned(), namespace.to_owned());
        Ok(Self { resource: resource.to_owned(), base, plural, namespace })
    }

    /// The path to list and watch the objects of this kind.
    pub fn path(&self) -> String {
        match self.namespace.as_str() {
            "" => format!("{}/{}", self.base, self.plural),
            namespace => format!("{}/namespaces/{namespace}/{}", self.base, self.plural),
        }
    }

    pub fn object_path(&self, namespace: &str, name: &str) -> String {
        match namespace {
            "" => format!("{}/{}/{name}", self.base, self.plural),
            namespace => format!("{}/namespaces/{namespace}/{}/{name}", self.base, self.plural),
        }
    }
}

impl Args {
    pub fn clocks(&self) -> Clocks {
        let (silence, relist) = (self.silence.0, self.relist.0);
        Clocks { silence, relist, rewind_patience: self.rewind_patience.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_become_paths() {
        let path = |wanted, namespace| Scope::parse(wanted, namespace).unwrap().path();
        assert_eq!(path("configmaps/v1", ""), "/api/v1/configmaps");
        assert_eq!(path("packages.longhaul.dev/v1alpha1", "a"), "/apis/longhaul.dev/v1alpha1/namespaces/a/packages");
        let scope = Scope::parse("packages.longhaul.dev/v1alpha1", "").unwrap();
        assert_eq!(scope.object_path("n", "x"), "/apis/longhaul.dev/v1alpha1/namespaces/n/packages/x");
        assert!(Scope::parse("configmaps", "").unwrap_err().to_string().contains("configmaps/v1"));
    }
}

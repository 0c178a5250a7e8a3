//! The command line and the environment: the mistakes, the clocks, the watched resources, and the witness.
//!
//! Owns their names, defaults and checks. It must not act on them.

use std::time::Duration;

use anyhow::Context as _;
use clap::{Parser, ValueEnum};
use units::Span;

use crate::mistakes::Mistake;

/// Default resource of the harness.
const DEFAULT_WATCH: &str = "packages.longhaul.dev/v1alpha1";

/// A correct watch client whose mistakes are switches.
#[derive(Debug, Clone, Parser)]
#[command(name = "planted-client", args_override_self = true)]
pub struct Args {
    /// A mistake to make. May be given several times.
    #[arg(long = "mistake", value_enum)]
    pub mistakes: Vec<Mistake>,
    /// Print name, rows of the corpus and one sentence for each mistake.
    #[arg(long)]
    pub list_mistakes: bool,
    /// The versions of HTTP to offer.
    #[arg(long, value_enum, default_value = "auto")]
    pub http: Http,
    /// The treatment of each version before it is reported.
    #[arg(long, value_enum, default_value = "none")]
    pub handler: Handling,
    /// Time that the handler takes for each version.
    #[arg(long, default_value = "0s")]
    pub handler_delay: Span,
    /// Ask for the initial events on the watch instead of listing.
    #[arg(long)]
    pub streaming_lists: bool,
    /// Watches of each kind; only the last one reports.
    #[arg(long, default_value_t = 1)]
    pub copies: usize,
    /// Time between two lists of everything.
    #[arg(long, default_value = "15s")]
    pub relist: Span,
    /// The longest silence of a watch. Bookmarks must come more often.
    #[arg(long, default_value = "4s")]
    pub silence: Span,
    /// Time for which consistent lists must be older than the known state before the client accepts them.
    #[arg(long, default_value = "6s")]
    pub rewind_patience: Span,
    /// Print each request and its reason to stderr.
    #[arg(long)]
    pub verbose: bool,
}

/// The versions of HTTP to offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Http {
    /// HTTP/1.1 only.
    #[value(name = "1")]
    One,
    /// HTTP/2 only.
    #[value(name = "2")]
    Two,
    /// Both; the server chooses.
    Auto,
}

/// The treatment of each version before it is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Handling {
    /// Nothing.
    None,
    /// Write `status.observedGeneration`.
    Status,
    /// Write an annotation, once per object.
    Annotation,
    /// Keep a `ConfigMap` of the same name beside the object: read, then create or replace it, and delete it with the object.
    Copy,
}

/// Settings from the environment.
#[derive(Debug, Clone)]
pub struct Environment {
    pub kubeconfig: String,
    /// The URL of the witness.
    pub witness: String,
    pub scopes: Vec<Scope>,
}

/// One kind of objects, in one namespace or in all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// The resource in the witness's form, such as `packages.longhaul.dev`.
    pub resource: String,
    /// The base path, such as `/apis/longhaul.dev/v1alpha1`.
    base: String,
    plural: String,
    namespace: String,
}

/// The clocks. They are short, so that a run of half a minute shows the client's reaction to them.
#[derive(Debug, Clone, Copy)]
pub struct Clocks {
    /// Longest silence of a watch.
    pub silence: Duration,
    /// Interval of complete lists.
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

    /// The path for listing and watching the objects of the scope.
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

//! Where the pieces of signatures lie: the seam between those who verify and those who keep images.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::verdicts::Failure;
use crate::{Keyring, Piece, Registry, Wanted};

/// An image that somebody wants to run.
#[derive(Debug, Clone)]
pub struct Question {
    /// Its host, as images write it.
    pub host: String,
    pub repository: String,
    pub digest: Arc<str>,
    /// Credentials of its pod: the part that fits the host.
    pub keyring: Keyring,
    /// When the answer must be there.
    pub deadline: Instant,
}

/// Where the pieces of signatures lie: a registry, or images that are about to travel.
pub trait Pieces: Send + Sync + 'static {
    /// The piece that is `wanted` of the image's repository, for whoever asks.
    fn piece<'p>(&'p self, question: &'p Question, wanted: Wanted<'p>) -> BoxFuture<'p, Result<Piece, Failure>>;

    /// The part of `keyring` that may be shown for `repository` at `host`.
    fn relevant(&self, host: &str, repository: &str, keyring: &Keyring) -> Keyring;
}

impl Pieces for Registry {
    fn piece<'p>(&'p self, question: &'p Question, wanted: Wanted<'p>) -> BoxFuture<'p, Result<Piece, Failure>> {
        let Question { host, repository, keyring, deadline, .. } = question;
        Self::piece(self, (host, repository), wanted, keyring, *deadline).boxed()
    }

    fn relevant(&self, host: &str, repository: &str, keyring: &Keyring) -> Keyring {
        self.relevant_at(host, repository, keyring)
    }
}

//! The source of signatures' parts: the interface between verification and the storage of images.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::verdicts::Failure;
use crate::{Keyring, Piece, Registry, Wanted};

/// A question about one image.
#[derive(Debug, Clone)]
pub struct Question {
    /// Its host, spelled as in images.
    pub host: String,
    pub repository: String,
    pub digest: Arc<str>,
    /// Credentials of its pod: those that match the host.
    pub keyring: Keyring,
    /// Deadline of the answer.
    pub deadline: Instant,
}

/// A source of signatures' parts: a registry, or images that are about to be injected.
pub trait Pieces: Send + Sync + 'static {
    /// The piece `wanted` of the image's repository, as seen with the question's credentials.
    fn piece<'p>(&'p self, question: &'p Question, wanted: Wanted<'p>) -> BoxFuture<'p, Result<Piece, Failure>>;

    /// The part of `keyring` that may be sent for `repository` at `host`.
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

//! The interface by which signature checks fetch signatures.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::verdicts::Failure;
use crate::{Keyring, Piece, Registry, Wanted};

/// One image whose signatures are needed: its name, credentials and deadline.
#[derive(Debug, Clone)]
pub struct Question {
    /// The image's registry host, spelled as in references.
    pub host: String,
    pub repository: String,
    pub digest: Arc<str>,
    /// The credentials of the image's Pod that match the host.
    pub keyring: Keyring,
    /// The time by which the answer is needed.
    pub deadline: Instant,
}

/// A source of signatures: a registry, or the images that `inject` copies.
pub trait Pieces: Send + Sync + 'static {
    /// Fetches the object `wanted` from the image's repository, with the credentials in `question`.
    fn piece<'p>(&'p self, question: &'p Question, wanted: Wanted<'p>) -> BoxFuture<'p, Result<Piece, Failure>>;

    /// The credentials in `keyring` that may be sent for `repository` at `host`.
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

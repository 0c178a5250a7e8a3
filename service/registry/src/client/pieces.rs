//! Fetches the objects that hold signatures: manifests by tag or digest, referrers of a digest, and blobs.
//!
//! If the registry answers that an object does not exist, the caller gets [`Piece::Absent`]. For an unclear answer, the
//! caller gets a failure with a class. This module does not examine the contents of objects.

use bytes::Bytes;
use http::{Method, StatusCode};
use tokio::time::Instant;

use super::{ATTEMPTS, Question, Registry, shown};
use crate::keychain::Keyring;
use crate::verdicts::{Class, Failure};
use crate::wanted::Wanted;

/// The result of a request for an object of a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Found(Bytes),
    /// The registry has no such object.
    Absent,
    /// The registry does not support the request.
    Unknown,
}

impl Registry {
    /// Requests `wanted` for `repository` at `host`, both spelled as in images, with the credentials in `keyring`.
    ///
    /// The mirrors and the registry are asked in order until one of them has the object. If none of them has the
    /// object, the last answer counts.
    pub async fn piece(
        &self,
        (host, repository): (&str, &str),
        wanted: Wanted<'_>,
        keyring: &Keyring,
        deadline: Instant,
    ) -> Result<Piece, Failure> {
        let mut stops = self.hosts.route(host, repository)?.into_iter();
        while let Some(stop) = stops.next() {
            let last = stops.len() == 0;
            let share =
                deadline.saturating_duration_since(Instant::now()) / u32::try_from(stops.len() + 1).unwrap_or(1);
            let question = Question {
                upstream: &self.hosts.upstream_at(stop.host),
                repository: &stop.repository,
                wanted,
                keyring,
                deadline: if last { deadline } else { Instant::now() + share },
                attempts: if last { ATTEMPTS } else { 1 },
            };
            match self.piece_at(&question).await {
                Ok(Piece::Found(bytes)) => return Ok(Piece::Found(bytes)),
                outcome if last => {
                    return outcome.map_err(|failure| {
                        let said = shown(&failure.cause);
                        failure.in_words(said)
                    });
                }
                _ => {}
            }
        }
        Err(Failure::new(Class::Misconfigured, "there is no place to ask"))
    }

    async fn piece_at(&self, question: &Question<'_>) -> Result<Piece, Failure> {
        let answer = self.request(question, &Method::GET).await?;
        match (answer.status(), question.wanted) {
            (StatusCode::OK, _) => Ok(Piece::Found(answer.into_body())),
            // Registries without the API have no such path; those with it always answer with an index.
            (
                StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED,
                Wanted::Referrers(_),
            ) => Ok(Piece::Unknown),
            (StatusCode::NOT_FOUND, _) => Ok(Piece::Absent),
            (status, _) => Err(question.refusal(status)),
        }
    }
}

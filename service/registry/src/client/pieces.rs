//! The pieces that signatures are made of: manifests by tag or digest, the referrers of a digest, blobs.
//!
//! That there is none is an answer; that nobody can tell is a failure with its class. What a piece means is not looked at here.

use bytes::Bytes;
use http::{Method, StatusCode};
use tokio::time::Instant;

use super::{ATTEMPTS, Question, Registry, shown};
use crate::keychain::Keyring;
use crate::verdicts::{Class, Failure};
use crate::wanted::Wanted;

/// The outcome of asking for a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Found(Bytes),
    /// The registry has none.
    Absent,
    /// The registry does not know such questions.
    Unknown,
}

impl Registry {
    /// Asks for `wanted` in what images call `repository` at `host`, for whoever has `keyring`.
    ///
    /// The places of the image are asked one after the other until one has it; what the last one says counts.
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
        let answer = self.asked(question, &Method::GET).await?;
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

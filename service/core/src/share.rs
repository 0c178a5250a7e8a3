//! The memory that outsiders can make this process hold: one fixed share of the process' memory.
//!
//! Bodies and images in work, evidence of signatures, and answers of registries each have a part of the share, so that
//! none of them takes the memory of the others. A review that does not fit is refused; evidence waits. Announced sizes
//! are never trusted.

mod limit;
mod reviews;
mod turns;

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::time::Instant;

pub use reviews::{BodyMemory, IMAGES_AT_ONCE, ImageMemory, ReviewMemory, Stop};
use turns::{Account, Grant, Turns};

/// Least memory with which the process can work, in bytes.
pub const LEAST: usize = 24 << 20;
/// The share in bytes if memory has no limit: a larger one would only help an attacker.
const MOST: usize = 256 << 20;
/// The unit in which evidence is counted.
const EVIDENCE_UNIT_BYTES: usize = 1 << 10;
/// Least part of registries' answers: one of the largest manifests.
const ANSWERS_LEAST: usize = 4 << 20;
/// Cost of a judged piece per byte (as a fraction): the bytes, and its envelope's decoded payload (base64: three
/// quarters).
const JUDGED: (usize, usize) = (7, 4);

#[derive(Debug)]
pub struct Share {
    bytes: usize,
    reviews: Arc<ReviewMemory>,
    answers: Arc<Semaphore>,
    pieces: Budget,
    kept: Budget,
}

#[derive(Debug)]
struct Budget {
    bytes: usize,
    turns: Arc<Turns>,
}

/// A user of memory for evidence, one per image; it waits its turn.
#[derive(Debug, Default)]
pub struct Payer {
    pieces: Account,
    kept: Account,
}

/// Memory that evidence holds; given back when dropped.
#[derive(Debug)]
pub struct Reserved {
    _grant: Grant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoMemory {
    /// More than there can ever be.
    #[error("it needs {needed} bytes of memory and the share for evidence is {most}")]
    TooLarge { needed: usize, most: usize },
    /// Others held it until the deadline.
    #[error("other evidence held the memory for it until the deadline")]
    Late,
}

impl Share {
    pub fn of(bytes: usize) -> Arc<Self> {
        let bytes = bytes.max(LEAST);
        let (evidence, answers) = (bytes / 16 * 7, (bytes / 8).max(ANSWERS_LEAST));
        // The memory that manifests keep while their pieces are fetched is separate: a wait for pieces would otherwise
        // wait for itself.
        let kept = evidence / 8;
        Arc::new(Self {
            bytes,
            reviews: ReviewMemory::new(bytes - evidence - kept - answers),
            answers: Arc::new(Semaphore::new(answers / crate::wire::HELD_UNIT_BYTES)),
            pieces: Budget::new(evidence),
            kept: Budget::new(kept),
        })
    }

    /// A share of `configured` bytes, else of half the memory that this process may use.
    pub fn found(configured: Option<usize>) -> Arc<Self> {
        let found = || limit::memory_bytes().map_or(MOST, |limit| (limit / 2).clamp(LEAST, MOST));
        Self::of(configured.unwrap_or_else(found))
    }

    /// Memory for calls of other processes of the service, whose bodies belong to a role and are not reviews. It comes
    /// on top of the share, and is a quarter of the share of such a process. The largest call fits, and half of such a
    /// call besides it.
    pub fn of_calls() -> Arc<ReviewMemory> {
        ReviewMemory::new(Self::found(None).bytes / 4)
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes that open calls of all listeners may hold on top of the share: an eighth of it.
    pub fn room_bytes(&self) -> usize {
        self.bytes / 8
    }

    pub fn reviews(&self) -> &Arc<ReviewMemory> {
        &self.reviews
    }

    /// The part of registries' answers while they are read, in units of [`crate::wire::HELD_UNIT_BYTES`].
    pub fn answers(&self) -> &Arc<Semaphore> {
        &self.answers
    }

    /// Memory to read and judge a piece of evidence of `bytes`, when it is the turn of `payer`. Its holder must not
    /// wait for more before dropping it.
    pub async fn piece(&self, payer: &Payer, bytes: usize, deadline: Instant) -> Result<Reserved, NoMemory> {
        self.pieces.reserve(&payer.pieces, bytes.saturating_mul(JUDGED.0) / JUDGED.1, deadline).await
    }

    /// Memory for `bytes` of a manifest that are kept while its pieces are fetched.
    pub async fn kept(&self, payer: &Payer, bytes: usize, deadline: Instant) -> Result<Reserved, NoMemory> {
        self.kept.reserve(&payer.kept, bytes, deadline).await
    }
}

impl Budget {
    fn new(bytes: usize) -> Self {
        Self { bytes, turns: Turns::new((bytes / EVIDENCE_UNIT_BYTES) as u64) }
    }

    async fn reserve(&self, payer: &Account, bytes: usize, deadline: Instant) -> Result<Reserved, NoMemory> {
        let units = bytes.div_ceil(EVIDENCE_UNIT_BYTES);
        if units > self.bytes / EVIDENCE_UNIT_BYTES {
            return Err(NoMemory::TooLarge { needed: bytes, most: self.bytes });
        }
        let grant = self.turns.take(payer, units as u64, deadline).await;
        grant.map(|grant| Reserved { _grant: grant }).ok_or(NoMemory::Late)
    }
}

impl Default for Share {
    fn default() -> Self {
        Arc::into_inner(Self::of(MOST)).expect("nobody else has it yet")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_largest_evidence_fits_the_shipped_limit_alone_and_others_wait_for_it() {
        let share = Share::of(32 << 20);
        let soon = || Instant::now() + Duration::from_secs(1);
        let (one, other) = (Payer::default(), Payer::default());
        let largest = share.piece(&one, 8 << 20, soon()).await.unwrap();
        assert_eq!(share.piece(&other, 1 << 20, soon()).await.unwrap_err(), NoMemory::Late);
        let (waited, ()) = tokio::join!(share.piece(&other, 1 << 20, soon()), async move { drop(largest) });
        assert!(waited.is_ok());
        let never = share.piece(&one, 9 << 20, soon()).await.unwrap_err();
        assert!(matches!(never, NoMemory::TooLarge { .. }), "{never}");
        assert!(share.kept(&one, 64 << 10, soon()).await.is_ok(), "what is kept has a part of its own");
    }

    #[test]
    fn the_parts_are_the_share() {
        for bytes in [0, LEAST, 32 << 20, MOST, 1 << 30] {
            let share = Share::of(bytes);
            let answers = share.answers.available_permits() * crate::wire::HELD_UNIT_BYTES;
            let sum = share.reviews.all_max() + answers + share.pieces.bytes + share.kept.bytes;
            assert!(sum <= share.bytes && share.bytes - sum < 1 << 20, "{bytes}: {sum} of {}", share.bytes);
            assert!(share.reviews.all_max() >= share.bytes / 4, "{bytes}");
        }
    }
}

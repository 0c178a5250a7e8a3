//! The memory that callers and registries can make this process use, called the share: a fixed fraction of the process'
//! memory.
//!
//! The share is divided among reviews (bodies and image lookups), signatures, and answers of registries, so that none
//! can use up the memory of the others. A review that exceeds its memory limit is refused. The verification of
//! signatures waits until memory is free. Announced sizes are never trusted.

mod limit;
mod reviews;
mod turns;

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::time::Instant;

pub use reviews::{BodyMemory, IMAGES_AT_ONCE, ImageMemory, ReviewMemory, Stop};
use turns::{Account, Grant, Turns};

/// Smallest memory limit with which the process works, in bytes.
pub const LEAST: usize = 24 << 20;
/// Maximum size of [`Share`] in bytes, even if the process has no memory limit. A larger limit would only help an
/// attacker.
const MOST: usize = 256 << 20;
/// The unit in which memory for signatures is counted.
const EVIDENCE_UNIT_BYTES: usize = 1 << 10;
/// Minimum memory for answers of registries, in bytes: one manifest of the largest size.
const ANSWERS_LEAST: usize = 4 << 20;
/// Memory that is reserved for each byte of a signature, as a fraction: its bytes, and the decoded payload of its
/// envelope (three quarters, because of base64).
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

/// The account under which one image requests memory for its signatures. Images get memory in turn (see the module
/// `turns`).
#[derive(Debug, Default)]
pub struct Payer {
    pieces: Account,
    kept: Account,
}

/// Memory that signatures hold; released on drop.
#[derive(Debug)]
pub struct Reserved {
    _grant: Grant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoMemory {
    #[error("it needs {needed} bytes of memory and the share for evidence is {most}")]
    TooLarge { needed: usize, most: usize },
    /// Other images held the memory until the deadline.
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

    /// A [`Share`] of `configured` bytes; if `None`, half of the memory that this process may use.
    pub fn found(configured: Option<usize>) -> Arc<Self> {
        let found = || limit::memory_bytes().map_or(MOST, |limit| (limit / 2).clamp(LEAST, MOST));
        Self::of(configured.unwrap_or_else(found))
    }

    /// Memory for calls from other processes of the service; bodies of these calls are no reviews. The memory for these
    /// calls is additional to the [`Share`] and a quarter of its size. The largest call fits into this memory together
    /// with half of another large call.
    pub fn of_calls() -> Arc<ReviewMemory> {
        ReviewMemory::new(Self::found(None).bytes / 4)
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes that open calls of all listeners may hold, additional to the [`Share`]: an eighth of its size.
    pub fn room_bytes(&self) -> usize {
        self.bytes / 8
    }

    pub fn reviews(&self) -> &Arc<ReviewMemory> {
        &self.reviews
    }

    /// The memory for answers of registries that are being read, in units of [`crate::wire::HELD_UNIT_BYTES`].
    pub fn answers(&self) -> &Arc<Semaphore> {
        &self.answers
    }

    /// Waits in the queue of `payer` for memory to read and check a signature of `bytes`. The caller must release this
    /// memory before it requests more.
    pub async fn piece(&self, payer: &Payer, bytes: usize, deadline: Instant) -> Result<Reserved, NoMemory> {
        self.pieces.reserve(&payer.pieces, bytes.saturating_mul(JUDGED.0) / JUDGED.1, deadline).await
    }

    /// Waits for memory for `bytes` of a manifest that is kept while its signatures are fetched.
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

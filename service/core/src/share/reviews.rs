//! Memory limits for the bodies of reviews and for the lookups of their images.
//!
//! Memory for a body is reserved as its bytes arrive, not by its announced size, and a body must keep arriving. Large
//! reviews may use only three quarters of the memory, so that small reviews always find some. One peer may use seven
//! eighths of the memory, because a peer usually is an API server, whose users must not keep out other peers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt as _;
use tokio::time::{Instant, timeout_at};

use crate::edge::{Meter, Peer};

/// A review with more bytes counts as large. Nearly all reviews are smaller, such as that of an object of 20 KiB with
/// ten images.
const SMALL_BYTES: usize = 256 << 10;
/// Memory for one image lookup at a registry: the request, the connection and its read buffer (measured in
/// `docs/decisions/062`).
const IMAGE_BYTES: usize = 16 << 10;
/// Maximum number of images of one review, and of one namespace, that are looked up at one time; other images wait. The
/// number 16 is a quarter of the default limit of requests to a registry. With 50 ms per lookup, the number allows
/// three hundred lookups a second.
pub const IMAGES_AT_ONCE: usize = 16;
/// When this fraction of an announced body (one eighth) has arrived, memory for the whole body is reserved. The single
/// reservation avoids a copy, which would need old and new memory together.
const SHOWN_PART: usize = 8;
/// Number of bytes that are first reserved for a body that arrives in several pieces; the number is enough for most
/// reviews.
const FIRST_BYTES: usize = 32 << 10;
/// In each interval of this length, a body must bring [`PACE_BYTES`] or its end. The interval is long enough for
/// retries after a lost packet.
const PACE: Duration = Duration::from_secs(5);
/// Minimum number of bytes of a body per interval: a quarter of the pace at which 8 MiB arrive within 30 s, the longest
/// timeout of a webhook.
const PACE_BYTES: usize = 256 << 10;

#[derive(Debug)]
pub struct ReviewMemory {
    held: Meter,
    large: Meter,
    all_max: usize,
    large_max: usize,
    peer_max: usize,
}

/// Why the service stops reading a body.
#[derive(Debug, PartialEq, Eq)]
pub enum Stop {
    TooLarge,
    /// All reviews together already hold as much memory as the limit allows.
    Full,
    /// The reviews of this peer already hold as much memory as one peer may use.
    PeerFull,
    /// The body arrives too slowly or not at all.
    Slow,
    Broken(String),
}

/// The memory of one review's body; released on drop.
#[derive(Debug)]
pub struct BodyMemory<'a> {
    charge: Charge,
    peer: &'a Peer,
    body_max: usize,
}

/// The memory of one image lookup; released on drop.
#[derive(Debug)]
pub struct ImageMemory {
    _charge: Charge,
}

#[derive(Debug)]
struct Charge {
    memory: Arc<ReviewMemory>,
    bytes: usize,
}

impl ReviewMemory {
    pub(super) fn new(all_max: usize) -> Arc<Self> {
        let (held, large) = (Meter::default(), Meter::default());
        Arc::new(Self { held, large, all_max, large_max: all_max / 4 * 3, peer_max: all_max / 8 * 7 })
    }

    pub fn body_max(&self) -> usize {
        self.large_max / (SHOWN_PART + 1) * SHOWN_PART
    }

    /// An empty reservation for a review of `peer` whose body has at most `body_max` bytes.
    pub fn hold<'a>(self: &Arc<Self>, peer: &'a Peer, body_max: usize) -> BodyMemory<'a> {
        BodyMemory { charge: Charge { memory: Arc::clone(self), bytes: 0 }, peer, body_max }
    }

    /// Memory for one image lookup; `None` if the limit is reached.
    pub fn image(self: &Arc<Self>) -> Option<ImageMemory> {
        let mut charge = Charge { memory: Arc::clone(self), bytes: 0 };
        charge.grow(IMAGE_BYTES).then_some(ImageMemory { _charge: charge })
    }

    #[cfg(test)]
    pub(super) fn all_max(&self) -> usize {
        self.all_max
    }

    #[cfg(test)]
    pub fn held_bytes(&self) -> usize {
        self.held.now()
    }
}

impl Charge {
    /// Reserves `bytes` more if the limit allows it; returns whether it did.
    fn grow(&mut self, bytes: usize) -> bool {
        let memory = &self.memory;
        let large = large(self.bytes + bytes) - large(self.bytes);
        if !memory.large.try_add(large, memory.large_max) {
            return false;
        }
        if !memory.held.try_add(bytes, memory.all_max) {
            memory.large.sub(large);
            return false;
        }
        self.bytes += bytes;
        true
    }

    fn shrink(&mut self, bytes: usize) {
        self.memory.large.sub(large(self.bytes) - large(self.bytes - bytes));
        self.memory.held.sub(bytes);
        self.bytes -= bytes;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}

/// The number of `bytes` that count as held by large reviews: all or none.
fn large(bytes: usize) -> usize {
    if bytes > SMALL_BYTES { bytes } else { 0 }
}

impl BodyMemory<'_> {
    /// Reads `body` by `deadline`; the reservation then has the body's size.
    pub async fn read<B>(&mut self, mut body: B, deadline: Instant) -> Result<Bytes, Stop>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: std::fmt::Display,
    {
        let announced = body.size_hint().exact().map(|size| usize::try_from(size).unwrap_or(usize::MAX));
        if announced.is_some_and(|size| size > self.body_max) {
            return Err(Stop::TooLarge);
        }
        let most = announced.unwrap_or(self.body_max);
        let mut bytes: Vec<u8> = Vec::new();
        let mut pace = Pace { ends: Instant::now() + PACE, brought: 0 };
        loop {
            // One timer for both.
            let frame = match timeout_at(pace.ends.min(deadline), body.frame()).await {
                Ok(None) => return Ok(Bytes::from(bytes)),
                Ok(Some(frame)) => frame.map_err(|error| Stop::Broken(error.to_string()))?,
                Err(_) if deadline <= pace.ends => return Err(Stop::Slow),
                Err(_) => {
                    pace.turn()?;
                    continue;
                }
            };
            let Ok(data) = frame.into_data() else { continue };
            if bytes.is_empty() && announced == Some(data.len()) {
                self.grow(data.len())?;
                return Ok(data);
            }
            let needed = bytes.len() + data.len();
            if needed > self.body_max {
                return Err(Stop::TooLarge);
            }
            if needed > bytes.capacity() {
                let shown = announced.filter(|announced| needed >= announced / SHOWN_PART);
                let doubled = needed.max(bytes.capacity() * 2).max(FIRST_BYTES).min(most.max(needed));
                let capacity = shown.unwrap_or(doubled).max(needed);
                // Both places exist while the bytes are copied.
                let old = bytes.capacity();
                self.grow(capacity)?;
                bytes.try_reserve_exact(capacity - bytes.len()).map_err(|_| Stop::Full)?;
                self.shrink(old);
            }
            bytes.extend_from_slice(&data);
            pace.brought += data.len();
            let now = Instant::now();
            if now >= deadline {
                return Err(Stop::Slow);
            }
            if now >= pace.ends {
                pace.turn()?;
            }
        }
    }

    fn grow(&mut self, bytes: usize) -> Result<(), Stop> {
        // Other peers always find some room.
        if !self.peer.try_hold(bytes, self.charge.memory.peer_max) {
            return Err(Stop::PeerFull);
        }
        if !self.charge.grow(bytes) {
            self.peer.release(bytes);
            return Err(Stop::Full);
        }
        Ok(())
    }

    fn shrink(&mut self, bytes: usize) {
        self.charge.shrink(bytes);
        self.peer.release(bytes);
    }
}

impl Drop for BodyMemory<'_> {
    fn drop(&mut self) {
        self.peer.release(self.charge.bytes);
    }
}

/// Checks whether a body arrives fast enough.
struct Pace {
    ends: Instant,
    brought: usize,
}

impl Pace {
    fn turn(&mut self) -> Result<(), Stop> {
        if self.brought < PACE_BYTES {
            return Err(Stop::Slow);
        }
        *self = Self { ends: Instant::now() + PACE, brought: 0 };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use futures_util::{StreamExt as _, stream};
    use http_body_util::{Full, StreamBody};
    use hyper::body::Frame;

    use super::*;
    use crate::edge::Accounts;

    fn peer(accounts: &Accounts, last: u8) -> Arc<Peer> {
        accounts.peer(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), None)
    }

    const MIB: usize = 1 << 20;

    fn far() -> Instant {
        Instant::now() + Duration::from_hours(1)
    }

    fn drip(parts: usize, bytes: usize, pause: Duration) -> impl Body<Data = Bytes, Error = std::io::Error> + Unpin {
        let parts = stream::iter(0..parts).then(move |_| async move {
            tokio::time::sleep(pause).await;
            Ok(Frame::data(Bytes::from(vec![b'x'; bytes])))
        });
        StreamBody::new(parts.boxed())
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_has_arrived_is_held_and_it_is_given_back() {
        let (memory, accounts) = (ReviewMemory::new(64 * MIB), Accounts::default());
        let peer = peer(&accounts, 1);
        let mut held = memory.hold(&peer, 8 * MIB);
        let deadline = Instant::now() + Duration::from_secs(4);
        let late = held.read(drip(100, 1000, Duration::from_secs(1)), deadline).await;
        assert_eq!((late, Instant::now()), (Err(Stop::Slow), deadline));
        assert_eq!(memory.held_bytes(), FIRST_BYTES);
        drop(held);
        assert_eq!(memory.held_bytes(), 0);
        let mut held = memory.hold(&peer, 8 * MIB);
        let read = held.read(drip(50, 100_000, Duration::from_millis(1)), far()).await.unwrap();
        assert_eq!(read.len(), 5_000_000);
        assert!((5_000_000..=8 << 20).contains(&memory.held_bytes()));
        drop(held);
        let mut held = memory.hold(&peer, 8 * MIB);
        held.read(Full::new(Bytes::from_static(b"whole")), far()).await.unwrap();
        assert_eq!(memory.held_bytes(), 5);
    }

    /// A body that is too slow in one interval is refused, however long the deadline is; a steady body is read to its
    /// end.
    #[tokio::test(start_paused = true)]
    async fn a_body_that_stands_still_is_ended_and_one_that_moves_is_not() {
        let (memory, accounts) = (ReviewMemory::new(64 * MIB), Accounts::default());
        let peer = peer(&accounts, 1);
        let started = Instant::now();
        let slow = memory.hold(&peer, 8 * MIB).read(drip(100, 1000, Duration::from_secs(1)), far()).await;
        assert_eq!((slow, started.elapsed()), (Err(Stop::Slow), PACE));
        let burst_then_drip = drip(1, 1 << 20, Duration::ZERO);
        assert!(memory.hold(&peer, 8 * MIB).read(burst_then_drip, far()).await.is_ok());
        let moving = memory.hold(&peer, 8 * MIB).read(drip(20, 64 << 10, Duration::from_secs(1)), far()).await;
        assert_eq!(moving.map(|bytes| bytes.len()), Ok(20 << 16), "64 KiB/s is slow but moves");
        let stalls = drip(3, 200 << 10, Duration::from_secs(4));
        assert_eq!(memory.hold(&peer, 8 * MIB).read(stalls, far()).await, Err(Stop::Slow));
    }

    #[tokio::test]
    async fn one_peer_cannot_take_all_the_room() {
        let (memory, accounts) = (ReviewMemory::new(64 * MIB), Accounts::default());
        let (greedy, other) = (peer(&accounts, 1), peer(&accounts, 2));
        let body = || Full::new(Bytes::from(vec![b'x'; 8 * MIB]));
        let mut held: Vec<_> = (0..7).map(|_| memory.hold(&greedy, 8 * MIB)).collect();
        let mut outcomes = Vec::new();
        for held in &mut held {
            outcomes.push(held.read(body(), far()).await.map(|bytes| bytes.len()));
        }
        assert_eq!(outcomes[..6], [const { Ok(8 * MIB) }; 6]);
        assert_eq!(outcomes[6], Err(Stop::Full));
        assert_eq!(
            memory.hold(&other, 8 * MIB).read(body(), far()).await,
            Err(Stop::Full),
            "large ones leave a quarter"
        );
        let small = Full::new(Bytes::from(vec![b'x'; SMALL_BYTES]));
        let little = memory.hold(&greedy, 8 * MIB).read(small.clone(), far()).await;
        assert!(little.is_ok(), "the same one may send little");
        assert!(memory.hold(&other, 8 * MIB).read(small, far()).await.is_ok(), "and so may others");
        assert!(memory.image().is_some());
        let mut many: Vec<_> = (0..40).map(|_| memory.hold(&greedy, 8 * MIB)).collect();
        let mut refused = Vec::new();
        for held in &mut many {
            let small = Full::new(Bytes::from(vec![b'x'; SMALL_BYTES]));
            refused.extend(held.read(small, far()).await.err());
        }
        assert_eq!(refused, [const { Stop::PeerFull }; 8], "an eighth is left to others");
        drop((held, many));
        assert!(memory.hold(&other, 8 * MIB).read(body(), far()).await.is_ok());
        assert_eq!((memory.held_bytes(), memory.large.now()), (0, 0));
    }

    /// Under the shipped memory limit of 64 MiB, the service reads a review of the largest default size, however its
    /// bytes are divided.
    #[tokio::test]
    async fn the_largest_body_fits_the_shipped_limit() {
        let (memory, accounts) = (super::super::Share::of(32 * MIB).reviews().clone(), Accounts::default());
        assert!(memory.body_max() >= 8 * MIB, "{}", memory.body_max());
        let peer = peer(&accounts, 1);
        let mut held = memory.hold(&peer, 8 * MIB);
        let announced = Announced(drip(128, 64 << 10, Duration::ZERO), 8 * MIB as u64);
        assert_eq!(held.read(announced, far()).await.map(|bytes| bytes.len()), Ok(8 * MIB));
        assert_eq!(memory.held_bytes(), 8 * MIB, "what it moved through was given back");
    }

    /// A body that announces its length in advance.
    struct Announced<B>(B, u64);

    impl<B: Body<Data = Bytes> + Unpin> Body for Announced<B> {
        type Data = Bytes;
        type Error = B::Error;

        fn poll_frame(
            mut self: std::pin::Pin<&mut Self>,
            context: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<Frame<Bytes>, B::Error>>> {
            std::pin::Pin::new(&mut self.0).poll_frame(context)
        }

        fn size_hint(&self) -> http_body::SizeHint {
            http_body::SizeHint::with_exact(self.1)
        }
    }

    #[tokio::test]
    async fn a_body_that_grows_past_the_limit_is_refused() {
        let (memory, accounts) = (ReviewMemory::new(64 * MIB), Accounts::default());
        let peer = peer(&accounts, 1);
        let announced = memory.hold(&peer, 10_000).read(Full::new(Bytes::from(vec![0; 10_001])), far()).await;
        assert_eq!(announced, Err(Stop::TooLarge));
        let grown = memory.hold(&peer, 10_000).read(drip(11, 1000, Duration::ZERO), far()).await;
        assert_eq!(grown, Err(Stop::TooLarge));
    }
}

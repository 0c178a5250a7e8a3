//! Reading a review's body: memory is reserved as bytes arrive, never as they are announced, and a body must keep moving.
//!
//! Owns the bytes that are held at one time, by everybody and by one peer.

use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt as _;
use tokio::time::{Instant, timeout_at};

use crate::edge::{Meter, Peer};

/// Bytes of reviews held at one time, whatever their number: eight of the largest default size.
const HELD_BYTES_MAX: usize = 64 << 20;
/// The first piece of memory for a body that comes in several parts: most reviews fit.
const FIRST_BYTES: usize = 32 << 10;
/// In each such span a body must bring [`PACE_BYTES`] or its end. Long enough for a lost packet and its retries.
const PACE: Duration = Duration::from_secs(5);
/// A quarter of what 8 MiB would need to arrive within the longest deadline of a webhook, 30 s.
const PACE_BYTES: usize = 256 << 10;
/// The bytes of all reviews that are held.
#[derive(Debug)]
pub struct Room {
    held: Meter,
    all_max: usize,
    peer_max: usize,
    body_max: usize,
}

/// Why a body is not read to its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Stop {
    /// It is larger than a body may be.
    TooLarge,
    /// All reviews together hold as much as they may.
    Full,
    /// Those of this peer do.
    PeerFull,
    /// It stands still, or nearly so.
    Slow,
    /// The connection or its framing broke.
    Broken(String),
}

/// What one review holds; given back when dropped.
#[derive(Debug)]
pub struct Held<'a> {
    room: &'a Room,
    peer: &'a Peer,
    bytes: usize,
}

impl Room {
    /// Room for bodies of at most `body_max` bytes. One peer gets half, so that another one always finds some.
    pub fn new(body_max: usize) -> Self {
        let all_max = HELD_BYTES_MAX.max(body_max.saturating_mul(2));
        Self { held: Meter::default(), all_max, peer_max: all_max / 2, body_max }
    }

    /// Nothing yet, for a review of `peer`.
    pub fn hold<'a>(&'a self, peer: &'a Peer) -> Held<'a> {
        Held { room: self, peer, bytes: 0 }
    }

    /// Bytes held now.
    #[cfg(test)]
    pub fn held_bytes(&self) -> usize {
        self.held.now()
    }

    /// Largest body, bytes.
    pub fn body_max(&self) -> usize {
        self.body_max
    }
}

impl Held<'_> {
    /// Reads `body`, which must be there at `deadline`; what this holds has its size.
    pub async fn read<B>(&mut self, mut body: B, deadline: Instant) -> Result<Bytes, Stop>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: std::fmt::Display,
    {
        let announced = body.size_hint().exact().map(|size| usize::try_from(size).unwrap_or(usize::MAX));
        if announced.is_some_and(|size| size > self.room.body_max) {
            return Err(Stop::TooLarge);
        }
        let most = announced.unwrap_or(self.room.body_max);
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
            if needed > self.room.body_max {
                return Err(Stop::TooLarge);
            }
            if needed > bytes.capacity() {
                let capacity = needed.max(bytes.capacity() * 2).max(FIRST_BYTES).min(most.max(needed));
                self.grow(capacity - bytes.capacity())?;
                bytes.reserve_exact(capacity - bytes.len());
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
        if !self.peer.try_hold(bytes, self.room.peer_max) {
            return Err(Stop::PeerFull);
        }
        if !self.room.held.try_add(bytes, self.room.all_max) {
            self.peer.release(bytes);
            return Err(Stop::Full);
        }
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.peer.release(self.bytes);
        self.room.held.sub(self.bytes);
    }
}

/// The least that must arrive.
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
    use std::sync::Arc;

    use futures_util::{StreamExt as _, stream};
    use http_body_util::{Full, StreamBody};
    use hyper::body::Frame;

    use super::*;
    use crate::edge::Accounts;

    fn peer(accounts: &Accounts, last: u8) -> Arc<Peer> {
        accounts.peer(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), None)
    }

    fn far() -> Instant {
        Instant::now() + Duration::from_hours(1)
    }

    /// A body of parts of `bytes` bytes, one each `pause`.
    fn drip(parts: usize, bytes: usize, pause: Duration) -> impl Body<Data = Bytes, Error = std::io::Error> + Unpin {
        let parts = stream::iter(0..parts).then(move |_| async move {
            tokio::time::sleep(pause).await;
            Ok(Frame::data(Bytes::from(vec![b'x'; bytes])))
        });
        StreamBody::new(parts.boxed())
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_has_arrived_is_held_and_it_is_given_back() {
        let (room, accounts) = (Room::new(8 << 20), Accounts::default());
        let peer = peer(&accounts, 1);
        let mut held = room.hold(&peer);
        let deadline = Instant::now() + Duration::from_secs(4);
        let late = held.read(drip(100, 1000, Duration::from_secs(1)), deadline).await;
        assert_eq!((late, Instant::now()), (Err(Stop::Slow), deadline));
        assert_eq!(room.held_bytes(), FIRST_BYTES);
        drop(held);
        assert_eq!(room.held_bytes(), 0);
        let mut held = room.hold(&peer);
        let read = held.read(drip(50, 100_000, Duration::from_millis(1)), far()).await.unwrap();
        assert_eq!(read.len(), 5_000_000);
        assert!((5_000_000..=8 << 20).contains(&room.held_bytes()));
        drop(held);
        let mut held = room.hold(&peer);
        held.read(Full::new(Bytes::from_static(b"whole")), far()).await.unwrap();
        assert_eq!(room.held_bytes(), 5);
    }

    /// Whoever brings less than the pace in a span is ended, however long the deadline.
    #[tokio::test(start_paused = true)]
    async fn a_body_that_stands_still_is_ended_and_one_that_moves_is_not() {
        let (room, accounts) = (Room::new(8 << 20), Accounts::default());
        let peer = peer(&accounts, 1);
        let started = Instant::now();
        let slow = room.hold(&peer).read(drip(100, 1000, Duration::from_secs(1)), far()).await;
        assert_eq!((slow, started.elapsed()), (Err(Stop::Slow), PACE));
        let burst_then_drip = drip(1, 1 << 20, Duration::ZERO);
        assert!(room.hold(&peer).read(burst_then_drip, far()).await.is_ok());
        let moving = room.hold(&peer).read(drip(20, 64 << 10, Duration::from_secs(1)), far()).await;
        assert_eq!(moving.map(|bytes| bytes.len()), Ok(20 << 16), "64 KiB/s is slow but moves");
        let stalls = drip(3, 200 << 10, Duration::from_secs(4));
        assert_eq!(room.hold(&peer).read(stalls, far()).await, Err(Stop::Slow));
    }

    #[tokio::test]
    async fn one_peer_cannot_take_all_the_room() {
        let (room, accounts) = (Room::new(8 << 20), Accounts::default());
        let (greedy, other) = (peer(&accounts, 1), peer(&accounts, 2));
        let body = || Full::new(Bytes::from(vec![b'x'; 8 << 20]));
        let mut held: Vec<_> = (0..5).map(|_| room.hold(&greedy)).collect();
        let mut outcomes = Vec::new();
        for held in &mut held {
            outcomes.push(held.read(body(), far()).await.map(|bytes| bytes.len()));
        }
        assert_eq!(outcomes[..4], [const { Ok(8 << 20) }; 4]);
        assert_eq!(outcomes[4], Err(Stop::PeerFull));
        assert!(room.hold(&other).read(body(), far()).await.is_ok());
    }

    #[tokio::test]
    async fn a_body_that_grows_past_the_limit_is_refused() {
        let (room, accounts) = (Room::new(10_000), Accounts::default());
        let peer = peer(&accounts, 1);
        let announced = room.hold(&peer).read(Full::new(Bytes::from(vec![0; 10_001])), far()).await;
        assert_eq!(announced, Err(Stop::TooLarge));
        let grown = room.hold(&peer).read(drip(11, 1000, Duration::ZERO), far()).await;
        assert_eq!(grown, Err(Stop::TooLarge));
    }
}

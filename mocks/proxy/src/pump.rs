//! One direction of one connection: moves bytes as the effects of faults demand.
//!
//! Owns the order of bytes, back-pressure, delay, rate, freezing and cutting. A direction holds at most [`PIECES_MAX`]
//! pieces of [`PIECE_BYTES_MAX`] (1 MiB), and none while it is idle. This module passes on a half-close, but opens and
//! closes no sockets.

use std::io;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::AsyncWriteExt;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::shape::{End, Lane, Shape, Way};
use super::wire::Wire;

/// Largest piece of data in bytes: the size of one TLS record.
const PIECE_BYTES_MAX: usize = 16 * 1024;
/// Maximum number of pieces that a direction holds. A delayed direction therefore moves at most 1 MiB in the time of
/// the delay.
const PIECES_MAX: usize = 64;
/// Number of writes per second in a slowed direction, so that bytes arrive steadily.
const SLICES_PER_S: u64 = 20;

/// Bytes that were read and not yet written.
struct Piece {
    due: Instant,
    bytes: Bytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// The sender closed this direction, and the proxy passed on the half-close.
    Finished,
    /// A fault ends the whole connection: by RST or FIN.
    Whole(End),
}

/// Moves bytes until the sender closes this direction or the connection ends.
pub(super) async fn pump(mut from: ReadHalf<'_>, mut to: WriteHalf<'_>, way: Way, wire: &Wire) -> Ended {
    match move_bytes(&mut from, &mut to, way, wire).await {
        Ok(()) => Ended::Finished,
        Err(Stopped::Cut(how)) => Ended::Whole(how),
        Err(Stopped::Broken) => Ended::Whole(End::Reset),
    }
}

async fn move_bytes(from: &mut ReadHalf<'_>, to: &mut WriteHalf<'_>, way: Way, wire: &Wire) -> Result<(), Stopped> {
    let (queue, pieces) = mpsc::channel(PIECES_MAX);
    let mut shape = wire.shape.subscribe();
    let read = {
        let reading = async {
            let read = read(from, queue, way, wire).await;
            if way == Way::ToServer {
                wire.subject_gone.cancel();
            }
            read
        };
        let mut reading = std::pin::pin!(reading);
        let mut writing = std::pin::pin!(write(to, pieces, way, wire, &mut shape));
        tokio::select! {
            // The writer ends first only on failure: otherwise it ends because no more data comes.
            written = writing.as_mut() => {
                written?;
                reading.await
            }
            read = reading.as_mut() => {
                writing.await?;
                read
            }
        }
    };
    // A frozen direction does not pass on an end either.
    loop {
        let lane = *shape.borrow_and_update().lane(way);
        let Some(by) = lane.frozen else { break };
        wire.hit_once(by, || format!("the end {} withheld", way.as_str()));
        thawed(wire, &mut shape).await?;
    }
    read.map_err(|_| Stopped::Broken)?;
    to.shutdown().await.map_err(|_| Stopped::Broken)
}

enum Stopped {
    Cut(End),
    Broken,
}

async fn read(from: &mut ReadHalf<'_>, queue: mpsc::Sender<Piece>, way: Way, wire: &Wire) -> io::Result<()> {
    let mut last_due = Instant::now();
    loop {
        // Room is reserved first: data that cannot be passed on stays in the kernel, where the sender notices.
        let Ok(room) = queue.reserve().await else { return Ok(()) };
        from.readable().await?;
        let mut bytes = BytesMut::with_capacity(PIECE_BYTES_MAX);
        match from.try_read_buf(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        }
        let now = Instant::now();
        let late = wire.shape.borrow().lane(way).late;
        if let Some(late) = late {
            // Order is kept: TCP would wait for the late piece too.
            last_due = last_due.max(now + late.delay + late.jitter.mul_f64(wire.random()));
            wire.hit_once(late.by, || format!("data {} delayed by {:?} or more", way.as_str(), late.delay));
        }
        room.send(Piece { due: last_due, bytes: bytes.freeze() });
    }
}

/// Waits until a frozen direction moves again. If the subject closes meanwhile, the connection ends, so that a server
/// which counts its connections does not count this one as leaked.
async fn thawed(wire: &Wire, shape: &mut watch::Receiver<Shape>) -> Result<(), Stopped> {
    tokio::select! {
        biased;
        _ = shape.changed() => Ok(()),
        () = wire.subject_gone.cancelled() => Err(Stopped::Broken),
    }
}

async fn write(
    to: &mut WriteHalf<'_>,
    mut pieces: mpsc::Receiver<Piece>,
    way: Way,
    wire: &Wire,
    shape: &mut watch::Receiver<Shape>,
) -> Result<(), Stopped> {
    let mut free_at = Instant::now();
    while let Some(mut piece) = pieces.recv().await {
        if piece.due > Instant::now() {
            tokio::time::sleep_until(piece.due).await;
        }
        while piece.bytes.has_remaining() {
            let lane = *shape.borrow_and_update().lane(way);
            if let Some(by) = lane.frozen {
                wire.hit_once(by, || format!("data {} withheld", way.as_str()));
                thawed(wire, shape).await?;
                continue;
            }
            cut(&lane, way, wire)?;
            if let Some(slow) = lane.slow
                && free_at > Instant::now()
            {
                wire.hit_once(slow.by, || format!("data {} slowed to {} B/s", way.as_str(), slow.bytes_per_s));
                tokio::select! {
                    biased;
                    _ = shape.changed() => {}
                    () = tokio::time::sleep_until(free_at) => {}
                }
                continue;
            }
            tokio::select! {
                biased;
                _ = shape.changed() => continue,
                ready = to.writable() => ready.map_err(|_| Stopped::Broken)?,
            }
            match to.try_write(&piece.bytes[..allowed(&lane, wire.moved(way), piece.bytes.len())]) {
                Ok(count) => {
                    piece.bytes.advance(count);
                    wire.note_moved(way, count);
                    if let Some(slow) = lane.slow {
                        free_at = free_at.max(Instant::now()) + pause(count, slow.bytes_per_s);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Err(Stopped::Broken),
            }
        }
        // Not only before the next byte: a cut after the last byte would never come.
        let lane = *shape.borrow().lane(way);
        cut(&lane, way, wire)?;
    }
    Ok(())
}

/// Ends the connection if the fault's number of bytes has passed.
fn cut(lane: &Lane, way: Way, wire: &Wire) -> Result<(), Stopped> {
    let moved = wire.moved(way);
    let Some(cut) = lane.cut.filter(|cut| moved >= cut.at_bytes) else { return Ok(()) };
    wire.hit_once(cut.by, || format!("cut after {moved} bytes {}", way.as_str()));
    Err(Stopped::Cut(cut.how))
}

/// Number of bytes that may be written now, at least one.
fn allowed(lane: &Lane, moved: u64, wanted: usize) -> usize {
    let mut most = u64::try_from(wanted).unwrap_or(u64::MAX);
    if let Some(cut) = lane.cut {
        most = most.min(cut.at_bytes.saturating_sub(moved));
    }
    if let Some(slow) = lane.slow {
        most = most.min(slow.bytes_per_s / SLICES_PER_S);
    }
    usize::try_from(most.max(1)).unwrap_or(wanted)
}

/// The time that this many bytes take at a rate.
fn pause(count: usize, bytes_per_s: u64) -> Duration {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    Duration::from_secs(1) * count / u32::try_from(bytes_per_s.max(1)).unwrap_or(u32::MAX)
}

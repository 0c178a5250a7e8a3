//! A fault's settings as the proxy uses them.
//!
//! Owns the conversion of a [`Fault`] into plain values with all defaults. This module does not know connections.

use std::sync::Arc;
use std::time::Duration;

use mock_faults::{
    BandwidthKeys, CutKeys, Direction, Fault, FaultId, FreezeKeys, How, LatencyKeys, LossKeys, Name, NewConnections,
    RefuseKeys,
};

use super::link::Link;
use super::shape::{Cut, End, Lane, Late, Slow, Way};

/// The default delay, as on a slow hop between regions.
const DELAY: Duration = Duration::from_millis(100);
/// The default rate in bytes per second: slow enough to delay the first list, and fast enough for a TLS handshake.
const BYTES_PER_S: u64 = 10 * 1024;
/// The default number of bytes before a cut: few enough to cut in the middle of the server's TLS handshake or of an
/// answer.
const CUT_BYTES: u64 = 1024;

/// Whether a new connection is served or refused.
pub(super) enum Acceptance {
    Open(Arc<Link>),
    Shut(Refusal),
}

/// How a connection is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    Reset,
    Close,
    Hang,
}

/// The directions that a fault affects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ways {
    pub to_server: bool,
    pub to_subject: bool,
}

/// A fault's settings as the proxy uses them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan {
    pub what: Effect,
    pub ways: Ways,
    /// Whether the fault affects connections that are open when it begins.
    pub on_open: bool,
    /// Whether the fault affects connections that open while it is active.
    pub on_new: bool,
    /// Whether the fault's effects on a connection end with the fault.
    pub heals: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Freeze,
    Reset,
    Refuse(Refusal),
    Latency { delay: Duration, jitter: Duration },
    Bandwidth { bytes_per_s: u64 },
    Cut { bytes: u64, how: End },
    Loss,
}

impl Refusal {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reset => "reset",
            Self::Close => "closed",
            Self::Hang => "accepted and never served",
        }
    }
}

impl Ways {
    pub const BOTH: Self = Self { to_server: true, to_subject: true };

    pub fn contains(self, way: Way) -> bool {
        match way {
            Way::ToSubject => self.to_subject,
            Way::ToServer => self.to_server,
        }
    }

    fn of(direction: Option<Direction>) -> Self {
        match direction.unwrap_or(Direction::Both) {
            Direction::Both => Self::BOTH,
            Direction::ToSubject => Self { to_server: false, to_subject: true },
            Direction::ToServer => Self { to_server: true, to_subject: false },
        }
    }
}

impl Plan {
    /// The settings of a network fault; `None` for a fault of another family.
    pub fn of(fault: &Fault) -> Option<Self> {
        let (freeze, loss) = (fault.keys::<FreezeKeys>(), fault.keys::<LossKeys>());
        let what = match fault.name {
            Name::NetFreeze => Effect::Freeze,
            Name::NetReset => Effect::Reset,
            Name::NetRefuse => Effect::Refuse(match fault.keys::<RefuseKeys>().how.unwrap_or(How::Reset) {
                How::Reset => Refusal::Reset,
                How::Close => Refusal::Close,
                How::Hang => Refusal::Hang,
            }),
            Name::NetLatency => {
                let LatencyKeys { delay, jitter } = fault.keys();
                Effect::Latency {
                    delay: delay.map_or(DELAY, |delay| delay.0),
                    jitter: jitter.map_or(Duration::ZERO, |jitter| jitter.0),
                }
            }
            Name::NetBandwidth => {
                let rate = fault.keys::<BandwidthKeys>().rate;
                Effect::Bandwidth { bytes_per_s: rate.map_or(BYTES_PER_S, |rate| rate.bytes_per_second).max(1) }
            }
            Name::NetCut => {
                let CutKeys { bytes, how } = fault.keys();
                Effect::Cut {
                    bytes: bytes.map_or(CUT_BYTES, |bytes| bytes.0),
                    how: if how == Some(How::Close) { End::Close } else { End::Reset },
                }
            }
            Name::NetLoss => Effect::Loss,
            _ => return None,
        };
        let ways = match fault.name {
            // The answer is cut, not the request.
            Name::NetCut => Ways::of(Some(Direction::ToSubject)),
            _ => Ways::of(freeze.direction.or(loss.direction)),
        };
        // A fault that is armed before the subject starts, or waits for its turn, is meant for later connections.
        let waits = fault.is_armed_before() || fault.counts_turns();
        let on_new = match what {
            Effect::Freeze | Effect::Loss => {
                let default = if waits { NewConnections::Frozen } else { NewConnections::Healthy };
                freeze.new_connections.or(loss.new_connections).unwrap_or(default) == NewConnections::Frozen
            }
            _ => true,
        };
        Some(Self {
            what,
            ways,
            on_open: !matches!(what, Effect::Refuse(_)) && !fault.counts_turns(),
            on_new,
            heals: match what {
                Effect::Freeze => freeze.heals == Some(true),
                // Packets arrive again when they are no longer dropped.
                _ => true,
            },
        })
    }

    /// The effects of the fault on one direction of a connection in which `moved` bytes have passed.
    pub fn lane(&self, by: FaultId, way: Way, moved: u64) -> Lane {
        let mut lane = Lane::default();
        if !self.ways.contains(way) {
            return lane;
        }
        match self.what {
            Effect::Freeze => lane.frozen = Some(by),
            Effect::Latency { delay, jitter } => lane.late = Some(Late { by, delay, jitter }),
            Effect::Bandwidth { bytes_per_s } => lane.slow = Some(Slow { by, bytes_per_s }),
            Effect::Cut { bytes, how } => lane.cut = Some(Cut { by, at_bytes: moved.saturating_add(bytes), how }),
            Effect::Reset | Effect::Refuse(_) | Effect::Loss => {}
        }
        lane
    }
}

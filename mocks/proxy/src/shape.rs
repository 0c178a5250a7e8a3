//! The effects of faults on the bytes of one connection.
//!
//! Owns the combined effect of all faults on a connection, as plain values. The modules `pump` and `connection` carry
//! out the effects.

use std::time::Duration;

use mock_faults::FaultId;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    ToSubject,
    ToServer,
}

/// How a fault ends a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Reset,
    Close,
}

/// The effects of faults on one connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Shape {
    pub to_subject: Lane,
    pub to_server: Lane,
    /// If set, a fault ends the connection now: by RST or FIN.
    pub end: Option<End>,
}

/// The effects on one direction of a connection. The effects of several faults add up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Lane {
    pub frozen: Option<FaultId>,
    pub late: Option<Late>,
    pub slow: Option<Slow>,
    pub cut: Option<Cut>,
}

/// A delay of each piece of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Late {
    pub by: FaultId,
    pub delay: Duration,
    /// An additional random delay up to this duration, evenly distributed. The bytes stay in order.
    pub jitter: Duration,
}

/// A limit of the bytes in a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slow {
    pub by: FaultId,
    pub bytes_per_s: u64,
}

/// The end of the connection after this many bytes in this direction, counted from the opening of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    pub by: FaultId,
    pub at_bytes: u64,
    pub how: End,
}

impl Shape {
    pub fn lane(&self, way: Way) -> &Lane {
        match way {
            Way::ToSubject => &self.to_subject,
            Way::ToServer => &self.to_server,
        }
    }

    pub fn lane_mut(&mut self, way: Way) -> &mut Lane {
        match way {
            Way::ToSubject => &mut self.to_subject,
            Way::ToServer => &mut self.to_server,
        }
    }
}

impl Way {
    pub const BOTH: [Self; 2] = [Self::ToSubject, Self::ToServer];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::ToSubject => "to the subject",
            Self::ToServer => "to the server",
        }
    }
}

impl Lane {
    /// Adds the effects of another fault on the same direction.
    pub fn add(&mut self, other: &Self) {
        self.frozen = self.frozen.or(other.frozen);
        self.late = match (self.late, other.late) {
            (Some(one), Some(two)) => {
                Some(Late { by: one.by, delay: one.delay + two.delay, jitter: one.jitter + two.jitter })
            }
            (one, two) => one.or(two),
        };
        self.slow = [self.slow, other.slow].into_iter().flatten().min_by_key(|slow| slow.bytes_per_s);
        self.cut = [self.cut, other.cut].into_iter().flatten().min_by_key(|cut| cut.at_bytes);
    }
}

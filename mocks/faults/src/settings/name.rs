//! The catalogue of faults: what each one is called, and which family it belongs to.
//!
//! Owns the names. What a fault does is its own file's business, which keys it understands is `keys.rs`'s.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The catalogue of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Name {
    /// The connection of each open watch is reset (RST; `RST_STREAM` on HTTP/2).
    WatchReset,
    /// Watches end cleanly: the last chunk on HTTP/1.1, `END_STREAM` on HTTP/2.
    WatchEnd,
    /// The connection of a watch ends with FIN in the middle of the body, without TLS `close_notify`.
    WatchEof,
    /// The history is compacted to now and open watches end: resuming answers 410.
    #[serde(rename = "watch-410")]
    Watch410,
    /// Open watches stay open and get no bytes.
    SilentWatch,
    /// An `ERROR` event with a `Status` in the stream; the stream then ends or stays open without a byte.
    ErrorEvent,
    /// Committed events are never sent on a stream.
    EventDropped,
    /// Events are sent later than they could be, in their order.
    EventDelayed,
    /// A watch that resumes gets the last events before its revision once more.
    EventRepeated,
    /// Two neighbouring events are sent in the wrong order.
    OutOfOrder,
    /// Half of an event's line is sent, then a newline; the stream goes on with the next event.
    TruncatedLine,
    /// Every event goes out in small pieces, each with a flush of its own.
    Split,
    /// Several events go out as one piece.
    MergeLines,
    /// Nothing is sent before so many bytes are there, as through a proxy's buffer.
    HoldBuffer,
    /// Bytes trickle.
    SlowDrip,
    /// An event is withheld, a bookmark with its revision is sent, and the stream ends cleanly.
    BookmarkAhead,
    /// Bookmarks that were asked for are not sent.
    NoBookmarks,
    /// The closing bookmark of `sendInitialEvents` goes without its annotation.
    InitialEndMissing,
    /// The closing bookmark of `sendInitialEvents` comes late, after live events.
    InitialEndHeld,
    /// Requests are answered with an HTTP error.
    HttpError,
    /// Requests are read and never answered.
    NoAnswer,
    /// Answers are decided at once and sent later; watches begin later.
    DelayAnswer,
    /// A watch is opened at once, but its headers and events are sent later, together.
    HoldHeaders,
    /// Watches are answered with 200 and end at once.
    #[serde(rename = "empty-200")]
    Empty200,
    /// Lists, gets and watches are answered from an old state.
    StaleView,
    /// A revision that the server has not seen is refused with 504, too large.
    TooLarge,
    /// Lists come in small pages although nobody asked for them.
    ForcedPages,
    /// Lists and initial events come newest first.
    Unordered,
    /// The history is forgotten; open watches go on.
    Compact,
    /// Answers carry another `Content-Type`.
    WrongContentType,
    /// The subject's token is refused from now on; its token file has a new one.
    TokenRotated,
    /// The store goes back to an older state and hands out its revisions again, as after a restore from a backup.
    Rewind,
    /// No byte moves any more on the connections that carry a matching watch; they stay open.
    Freeze,
    /// HTTP/2 PINGs of the client are not answered.
    NoPong,
    /// HTTP/2 GOAWAY on the connections that carry a matching watch.
    Goaway,
    /// New TCP connections of the subject are not served.
    RefuseConnections,
    /// New HTTP/2 connections allow few concurrent streams.
    MaxStreams,
    /// New connections are shown another certificate.
    Certificate,
    /// No byte passes the network between subject and control plane; connections stay open.
    NetFreeze,
    /// Connections are reset on the network between subject and control plane.
    NetReset,
    /// New connections are refused on the network between subject and control plane.
    NetRefuse,
    /// Bytes arrive later.
    NetLatency,
    /// Bytes pass slowly.
    NetBandwidth,
    /// Connections are cut after so many bytes.
    NetCut,
    /// Packets vanish without an acknowledgement; needs a network namespace.
    NetLoss,
    /// Requests to the registry are answered with an HTTP error.
    RegistryError,
    /// Requests to the registry are read and never answered.
    RegistryHang,
    /// Answers of the registry come late, or trickle.
    RegistrySlow,
    /// Answers of the registry end in the middle.
    RegistryCut,
    /// Nobody can connect to the registry, and open connections end.
    RegistryDown,
    /// The registry refuses everybody with 401, and gives no tokens.
    RegistryAuthFailing,
    /// Content of the registry does not have the digest that its header names.
    RegistryWrongDigest,
    /// A tag points elsewhere when it is read again.
    RegistryTagMoved,
    /// The referrers API answers 404, as registries before v1.1 of the specification do.
    #[serde(rename = "registry-referrers-404")]
    RegistryReferrers404,
    /// Manifests and blobs redirect to themselves for ever.
    RegistryRedirectLoop,
}

/// What a fault acts on, and so who plays it and which keys choose its targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Single requests, before they are answered.
    Requests,
    /// Watches, while they are open.
    Watches,
    /// The store or the users, without regard to who asks.
    Server,
    /// Connections of the mock API server.
    Connections,
    /// The network in front of any control plane: played by `mock_proxy`.
    Network,
    /// The mock registry.
    Registry,
}

impl Family {
    /// Whether its faults are played with any control plane, not by the mock API server.
    pub fn is_played_anywhere(self) -> bool {
        matches!(self, Self::Network | Self::Registry)
    }
}

impl Name {
    /// Every name, in the order of the catalogue.
    pub const ALL: [Self; 55] = [
        Self::WatchReset,
        Self::WatchEnd,
        Self::WatchEof,
        Self::Watch410,
        Self::SilentWatch,
        Self::ErrorEvent,
        Self::EventDropped,
        Self::EventDelayed,
        Self::EventRepeated,
        Self::OutOfOrder,
        Self::TruncatedLine,
        Self::Split,
        Self::MergeLines,
        Self::HoldBuffer,
        Self::SlowDrip,
        Self::BookmarkAhead,
        Self::NoBookmarks,
        Self::InitialEndMissing,
        Self::InitialEndHeld,
        Self::HttpError,
        Self::NoAnswer,
        Self::DelayAnswer,
        Self::HoldHeaders,
        Self::Empty200,
        Self::StaleView,
        Self::TooLarge,
        Self::ForcedPages,
        Self::Unordered,
        Self::Compact,
        Self::WrongContentType,
        Self::TokenRotated,
        Self::Rewind,
        Self::Freeze,
        Self::NoPong,
        Self::Goaway,
        Self::RefuseConnections,
        Self::MaxStreams,
        Self::Certificate,
        Self::NetFreeze,
        Self::NetReset,
        Self::NetRefuse,
        Self::NetLatency,
        Self::NetBandwidth,
        Self::NetCut,
        Self::NetLoss,
        Self::RegistryError,
        Self::RegistryHang,
        Self::RegistrySlow,
        Self::RegistryCut,
        Self::RegistryDown,
        Self::RegistryAuthFailing,
        Self::RegistryWrongDigest,
        Self::RegistryTagMoved,
        Self::RegistryReferrers404,
        Self::RegistryRedirectLoop,
    ];

    /// The name as scenarios spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WatchReset => "watch-reset",
            Self::WatchEnd => "watch-end",
            Self::WatchEof => "watch-eof",
            Self::Watch410 => "watch-410",
            Self::SilentWatch => "silent-watch",
            Self::ErrorEvent => "error-event",
            Self::EventDropped => "event-dropped",
            Self::EventDelayed => "event-delayed",
            Self::EventRepeated => "event-repeated",
            Self::OutOfOrder => "out-of-order",
            Self::TruncatedLine => "truncated-line",
            Self::Split => "split",
            Self::MergeLines => "merge-lines",
            Self::HoldBuffer => "hold-buffer",
            Self::SlowDrip => "slow-drip",
            Self::BookmarkAhead => "bookmark-ahead",
            Self::NoBookmarks => "no-bookmarks",
            Self::InitialEndMissing => "initial-end-missing",
            Self::InitialEndHeld => "initial-end-held",
            Self::HttpError => "http-error",
            Self::NoAnswer => "no-answer",
            Self::DelayAnswer => "delay-answer",
            Self::HoldHeaders => "hold-headers",
            Self::Empty200 => "empty-200",
            Self::StaleView => "stale-view",
            Self::TooLarge => "too-large",
            Self::ForcedPages => "forced-pages",
            Self::Unordered => "unordered",
            Self::Compact => "compact",
            Self::WrongContentType => "wrong-content-type",
            Self::TokenRotated => "token-rotated",
            Self::Rewind => "rewind",
            Self::Freeze => "freeze",
            Self::NoPong => "no-pong",
            Self::Goaway => "goaway",
            Self::RefuseConnections => "refuse-connections",
            Self::MaxStreams => "max-streams",
            Self::Certificate => "certificate",
            Self::NetFreeze => "net-freeze",
            Self::NetReset => "net-reset",
            Self::NetRefuse => "net-refuse",
            Self::NetLatency => "net-latency",
            Self::NetBandwidth => "net-bandwidth",
            Self::NetCut => "net-cut",
            Self::NetLoss => "net-loss",
            Self::RegistryError => "registry-error",
            Self::RegistryHang => "registry-hang",
            Self::RegistrySlow => "registry-slow",
            Self::RegistryCut => "registry-cut",
            Self::RegistryDown => "registry-down",
            Self::RegistryAuthFailing => "registry-auth-failing",
            Self::RegistryWrongDigest => "registry-wrong-digest",
            Self::RegistryTagMoved => "registry-tag-moved",
            Self::RegistryReferrers404 => "registry-referrers-404",
            Self::RegistryRedirectLoop => "registry-redirect-loop",
        }
    }

    /// What the fault acts on.
    pub fn family(self) -> Family {
        match self {
            Self::WatchReset
            | Self::WatchEnd
            | Self::WatchEof
            | Self::Watch410
            | Self::SilentWatch
            | Self::ErrorEvent
            | Self::EventDropped
            | Self::EventDelayed
            | Self::EventRepeated
            | Self::OutOfOrder
            | Self::TruncatedLine
            | Self::Split
            | Self::MergeLines
            | Self::HoldBuffer
            | Self::SlowDrip
            | Self::BookmarkAhead
            | Self::NoBookmarks
            | Self::InitialEndMissing
            | Self::InitialEndHeld => Family::Watches,
            Self::HttpError
            | Self::NoAnswer
            | Self::DelayAnswer
            | Self::HoldHeaders
            | Self::Empty200
            | Self::StaleView
            | Self::TooLarge
            | Self::ForcedPages
            | Self::Unordered
            | Self::WrongContentType => Family::Requests,
            Self::Compact | Self::TokenRotated | Self::Rewind => Family::Server,
            Self::Freeze
            | Self::NoPong
            | Self::Goaway
            | Self::RefuseConnections
            | Self::MaxStreams
            | Self::Certificate => Family::Connections,
            Self::NetFreeze
            | Self::NetReset
            | Self::NetRefuse
            | Self::NetLatency
            | Self::NetBandwidth
            | Self::NetCut
            | Self::NetLoss => Family::Network,
            Self::RegistryError
            | Self::RegistryHang
            | Self::RegistrySlow
            | Self::RegistryCut
            | Self::RegistryDown
            | Self::RegistryAuthFailing
            | Self::RegistryWrongDigest
            | Self::RegistryTagMoved
            | Self::RegistryReferrers404
            | Self::RegistryRedirectLoop => Family::Registry,
        }
    }

    /// Whether the fault is one moment when it has a time and no `for`.
    pub fn is_instant(self) -> bool {
        matches!(
            self,
            Self::WatchReset
                | Self::WatchEnd
                | Self::WatchEof
                | Self::Watch410
                | Self::ErrorEvent
                | Self::Compact
                | Self::TokenRotated
                | Self::Rewind
                | Self::Goaway
                | Self::NetReset
        )
    }
}

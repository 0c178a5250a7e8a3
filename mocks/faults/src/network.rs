//! Catalogue entries of network faults, which `mock_proxy` injects in front of any control plane.

use units::{Bytes, Span, Throughput};

use super::settings::{Family, Row};
use super::settings::{keys, not_zero};
use super::{Direction, Error, Fault, How, NewConnections};

const fn row(name: &'static str, doc: &'static str) -> Row {
    Row::new(Family::Network, name, doc)
}

keys! {
    pub struct FreezeKeys {
        direction "direction": Direction = ("`both`", "`both`, `toSubject`, `toServer`"),
        new_connections "newConnections": NewConnections = ("", "of connections opened meanwhile: `healthy` or `frozen`"),
        heals "heals": bool = ("false", ""),
    }
}

keys! {
    pub struct RefuseKeys {
        how "how": How = ("`reset`", "`reset`, `close`, `hang`"),
    }
}

keys! {
    pub struct LatencyKeys {
        delay "delay": Span = ("100ms", ""),
        jitter "jitter": Span = ("none", "the largest addition, decided by the seed"),
    }
}

keys! {
    pub struct BandwidthKeys {
        rate "rate": Throughput = ("10KiB/s", ""),
    }
}

keys! {
    pub struct CutKeys {
        bytes "bytes": Bytes = ("1KiB", "how many pass to the client"),
        how "how": How = ("`reset`", "`reset` or `close`"),
    }
}

keys! {
    pub struct LossKeys {
        direction "direction": Direction = ("`both`", "`both`, `toSubject`, `toServer`"),
        new_connections "newConnections": NewConnections = ("", "of connections opened meanwhile: `healthy` or `frozen`"),
    }
}

pub(super) const FREEZE: Row =
    row("net-freeze", "No byte passes the network between subject and control plane; connections stay open.")
        .takes::<FreezeKeys>()
        .sees("bytes stop, connections stay open");

pub(super) const RESET: Row =
    row("net-reset", "Connections are reset on the network between subject and control plane.")
        .instant()
        .sees("connections are reset");

pub(super) const REFUSE: Row =
    row("net-refuse", "New connections are refused on the network between subject and control plane.")
        .takes::<RefuseKeys>()
        .sees("new connections fail");

pub(super) const LATENCY: Row =
    row("net-latency", "Bytes arrive later.").takes::<LatencyKeys>().sees("bytes arrive later");

pub(super) const BANDWIDTH: Row = row("net-bandwidth", "Bytes pass slowly.")
    .takes::<BandwidthKeys>()
    .refuses(|fault| {
        not_zero("rate", fault.keys::<BandwidthKeys>().rate.is_some_and(|rate| rate.bytes_per_second == 0))
    })
    .sees("bytes pass at this rate");

pub(super) const CUT: Row = row("net-cut", "Connections are cut after so many bytes.")
    .takes::<CutKeys>()
    .refuses(cannot_hang)
    .sees("a connection is cut after so many bytes to the client");

pub(super) const LOSS: Row = row("net-loss", "Packets vanish without an acknowledgement; needs a network namespace.")
    .takes::<LossKeys>()
    .sees("packets vanish without an acknowledgement; needs root, iproute2 and nftables");

fn cannot_hang(fault: &Fault) -> Result<(), Error> {
    if fault.keys::<CutKeys>().how == Some(How::Hang) {
        return Err(Error::Value { key: "how", given: "hang".to_owned(), instead: "a cut is `reset` or `close`" });
    }
    not_zero("bytes", fault.keys::<CutKeys>().bytes.is_some_and(|bytes| bytes.0 == 0))
}

//! Rows of the faults of the network, which `mock_proxy` plays in front of any control plane.

use super::row::{Family, Row, Takes};
use super::{Error, Fault, How};

const fn row(name: &'static str, doc: &'static str) -> Row {
    Row::new(Family::Network, name, doc)
}

const NEW_CONNECTIONS: Takes = ("newConnections", "", "how connections fare that open meanwhile");
const DIRECTION: Takes = ("direction", "`both`", "`both`, `toSubject`, `toServer`");

pub(super) const FREEZE: Row =
    row("net-freeze", "No byte passes the network between subject and control plane; connections stay open.")
        .takes(&[DIRECTION, NEW_CONNECTIONS, ("heals", "false", "")])
        .sees("bytes stop, connections stay open");

pub(super) const RESET: Row =
    row("net-reset", "Connections are reset on the network between subject and control plane.")
        .instant()
        .sees("connections are reset");

pub(super) const REFUSE: Row =
    row("net-refuse", "New connections are refused on the network between subject and control plane.")
        .takes(&[("how", "`reset`", "`reset`, `close`, `hang`")])
        .sees("new connections fail");

pub(super) const LATENCY: Row = row("net-latency", "Bytes arrive later.")
    .takes(&[("delay", "100ms", ""), ("jitter", "none", "the most that is added, decided by the seed")])
    .sees("bytes come later");

pub(super) const BANDWIDTH: Row =
    row("net-bandwidth", "Bytes pass slowly.").takes(&[("rate", "10KiB/s", "")]).sees("bytes pass slowly");

pub(super) const CUT: Row = row("net-cut", "Connections are cut after so many bytes.")
    .takes(&[("bytes", "1KiB", "how many pass to the client"), ("how", "`reset`", "`reset` or `close`")])
    .refuses(cannot_hang)
    .sees("a connection is cut after so many bytes to the client");

pub(super) const LOSS: Row = row("net-loss", "Packets vanish without an acknowledgement; needs a network namespace.")
    .takes(&[DIRECTION, NEW_CONNECTIONS])
    .sees("packets vanish without an acknowledgement; needs root, iproute2 and nftables");

fn cannot_hang(fault: &Fault) -> Result<(), Error> {
    if fault.how == Some(How::Hang) {
        return Err(Error::Value { key: "how", given: "hang".to_owned(), instead: "a cut is `reset` or `close`" });
    }
    Ok(())
}

//! Catalogue entries of faults of a real control plane's programs. The code that starts these programs injects the
//! faults.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

use super::later::{begins_later, lasts};
use super::settings::keys;
use super::settings::{Family, Row};
use super::{Error, Fault};

/// How long etcd is stopped in each period of `etcd-slow`.
pub const STALL: Span = Span::from_millis(800);
/// The period of `etcd-slow`.
pub const STALL_EVERY: Span = Span::from_secs(1);

const fn row(name: &'static str, doc: &'static str) -> Row {
    Row::new(Family::Plane, name, doc).refuses(begins_later)
}

/// How a program is ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum EndBy {
    /// SIGTERM, as in an upgrade, and SIGKILL if the program has not ended after ten seconds.
    #[default]
    Term,
    /// SIGKILL, as for a program that uses too much memory.
    Kill,
}

keys! {
    pub struct ApiserverRestartKeys {
        signal "signal": EndBy = ("`term`", "`term` or `kill`"),
        pause "pause": Span = ("20s", "from one start to the next, with `count`"),
    }
}

keys! {
    pub struct EtcdSlowKeys {
        stall "stall": Span = ("800ms", "pause of etcd in each second, as on a disk that does not answer"),
    }
}

pub(super) const APISERVER_RESTART: Row =
    row("apiserver-restart", "The API server ends, and is started again with an empty cache.")
        .takes::<ApiserverRestartKeys>()
        .instant()
        .once()
        .sees("connections end and new ones are refused for seconds; watches resume from etcd")
        .hit("an API server that is ready again")
        .drawn(20, None);

pub(super) const ETCD_SLOW: Row = row("etcd-slow", "etcd stands still for a part of each second.")
    .takes::<EtcdSlowKeys>()
    .refuses(stalls)
    .sees("writes and consistent reads take as long")
    .hit("a pause");

pub(super) const LEADER_LOSS: Row = row(
    "leader-loss",
    "The control plane that leads stands still, as a machine that has lost its disk or its network; two others go on.",
)
.refuses(lasts)
.sees("connections through it stay open and silent; the others take over its Leases and its part of etcd")
.hit("a new leader")
.drawn(40, None);

fn stalls(fault: &Fault) -> Result<(), Error> {
    lasts(fault)?;
    let stall = fault.keys::<EtcdSlowKeys>().stall.unwrap_or(STALL);
    if stall.0.is_zero() || stall >= STALL_EVERY {
        let instead = "write less than 1s, of which the rest is for work";
        return Err(Error::Value { key: "stall", given: stall.to_string(), instead });
    }
    Ok(())
}
